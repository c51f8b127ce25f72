//! How long nothing is bound while the lead goes from one replica to another, under load.

use std::time::Duration;

use anyhow::Context as _;
use tokio::{task::JoinSet, time::Instant};

use super::{
    cluster::Full,
    lead::{Held, Lead},
};
use crate::{load, support::installed::Replica};

/// Pods that are created around a change of the lead.
const LOAD: usize = 1200;
const ELECTED: [&str; 1] = ["--scheduler-only"];

/// How the leader ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    Terminated,
    Killed,
}

pub(crate) async fn measure(cluster: &mut Full, times: usize) -> anyhow::Result<()> {
    println!(
        "\nhand-over under load, ms: from the end to the Lease free or over, taken, and to the next leader's first Binding"
    );
    let mut lead = Lead::follow(cluster.client.clone());
    let mut started = 0;
    let mut start = |cluster: &Full| {
        started += 1;
        Replica::start(&cluster.plane, &format!("handover-{started}"), &ELECTED)
    };
    let mut leader = start(cluster);
    lead.when(|held| leader.is_named_by(&held.holder)).await?;
    for end in [End::Terminated, End::Killed] {
        for _ in 0..times {
            let follower = start(cluster);
            once(cluster, &mut lead, leader, &follower, end).await?;
            leader = follower;
        }
    }
    Ok(())
}

async fn once(
    cluster: &mut Full,
    lead: &mut Lead,
    leader: Replica,
    follower: &Replica,
    end: End,
) -> anyhow::Result<()> {
    let ((run, names), client) = (cluster.next_run(), cluster.client.clone());
    let mut users = JoinSet::new();
    users.spawn(async move { load::create(&client, run, LOAD).await });
    // The follower stands by once it has watched the Lease for a while.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let last_sign = lead.when(|held| leader.is_named_by(&held.holder)).await?.renewed;
    let ended = Instant::now();
    match end {
        End::Terminated => leader.terminate(),
        End::Killed => leader.kill(),
    }
    let is_next = |held: &Held| follower.is_named_by(&held.holder);
    let taken = lead.when(is_next).await?.since;
    users.join_next().await.context("the load was spawned")??.context("the load")?;
    let bound = cluster.binds.of(&names, LOAD).await?;
    let first = bound.iter().filter(|at| **at >= taken).min().context("nothing was left to bind")?;
    let last = bound.iter().filter(|at| **at < taken).max();
    let since = |from: Instant, to: Instant| to.saturating_duration_since(from).as_millis();
    let free = match end {
        End::Terminated => lead.when(|held| held.holder.is_empty()).await?.since,
        End::Killed => last_sign + Duration::from_secs(15),
    };
    println!(
        "  {end:?}: free {}, taken {}, bound {}; between two Bindings {}; from free to bound {}",
        since(ended, free),
        since(ended, taken),
        since(ended, *first),
        last.map_or_else(|| "?".to_owned(), |last| since(*last, *first).to_string()),
        since(free, *first),
    );
    Ok(())
}
