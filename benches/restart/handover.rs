//! How long nothing is bound while the lead goes from one replica to another, under load.

use std::{path::Path, time::Duration};

use anyhow::Context as _;
use tokio::{task::JoinSet, time::Instant};

use super::{
    cluster::Full,
    lead::{Held, Lead},
};
use crate::{load, support::installed::Replica};

/// Pods that are created around a change of the lead.
const LOAD: usize = 1200;
/// After this time a replica that does not stand by will not.
const PATIENCE: Duration = Duration::from_mins(1);
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
        let name = format!("handover-{started}");
        let log = cluster.plane.directory().join(format!("{name}.log"));
        (Replica::start(&cluster.plane, &name, &ELECTED), log)
    };
    let (mut leader, _) = start(cluster);
    lead.when(|held| leader.is_named_by(&held.holder)).await?;
    for end in [End::Terminated, End::Killed] {
        for _ in 0..times {
            let (follower, log) = start(cluster);
            stands_by(&log).await?;
            once(cluster, &mut lead, leader, &follower, end).await?;
            leader = follower;
        }
    }
    Ok(())
}

/// Waits until the replica that writes this log has seen what the leader sees.
async fn stands_by(log: &Path) -> anyhow::Result<()> {
    let told = async {
        while !std::fs::read_to_string(log).is_ok_and(|text| text.contains("standing by")) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, told).await.with_context(|| format!("{} never stood by", log.display()))
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
    // So that pods wait and are being bound.
    tokio::time::sleep(Duration::from_secs(2)).await;
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
    load::delete(&cluster.client, run).await?;
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
