//! From `kill -9` of a binder without others to the first Binding of its successor.

use std::{path::Path, time::Duration};

use anyhow::Context as _;
use berth::cluster::Clock;
use jiff::Timestamp;

use tokio::time::Instant;

use super::cluster::Full;
use crate::{load, support::installed::Replica};

const ALONE: [&str; 2] = ["--scheduler-only", "--leader-elect=false"];
/// What the program says when it has a certificate and when it has listed.
const MARKS: [&str; 2] = ["listening", "pods and nodes are known"];

pub(crate) async fn measure(cluster: &mut Full, times: usize) -> anyhow::Result<()> {
    println!("\nrestart: kill -9 to the first Binding, ms (to `listening`, to listed, to bound)");
    let mut replica = Replica::start(&cluster.plane, "restart-0", &ALONE);
    place_one(cluster).await?;
    let mut all = Vec::new();
    for time in 1..=times {
        replica.kill();
        let (killed, at) = (Instant::now(), Clock::System.now());
        let name = format!("restart-{time}");
        replica = Replica::start(&cluster.plane, &name, &ALONE);
        let took = place_one(cluster).await?.duration_since(killed);
        let marks = marks(&cluster.plane.directory().join(format!("{name}.log")), at)?;
        println!("  {:>5}  ({marks:?})", took.as_millis());
        all.push(took);
    }
    all.sort();
    let of = |at: usize| all.get(at).map_or(0, Duration::as_millis);
    println!("  median {} ms, longest {} ms", of(all.len() / 2), of(all.len().saturating_sub(1)));
    let (now, most) = replica.memory();
    println!("  the program's memory: {now} MiB, {most} MiB at most");
    Ok(())
}

/// Creates a pod; when it was bound.
async fn place_one(cluster: &mut Full) -> anyhow::Result<Instant> {
    let (run, names) = cluster.next_run();
    load::create(&cluster.client, run, 1).await?;
    cluster.binds.of(&names, 1).await?.pop().context("one pod was bound")
}

/// After how many milliseconds each mark stands in the log.
fn marks(log: &Path, since: Timestamp) -> anyhow::Result<Vec<i128>> {
    let text = std::fs::read_to_string(log).with_context(|| log.display().to_string())?;
    let when = |mark: &str| {
        let line = text.lines().find(|line| line.contains(mark))?;
        let at: Timestamp = line.split_whitespace().next()?.parse().ok()?;
        Some((at.as_nanosecond() - since.as_nanosecond()) / 1_000_000)
    };
    Ok(MARKS.into_iter().filter_map(when).collect())
}
