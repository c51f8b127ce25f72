//! How long pods wait for their Binding at a steady pace, and what the program uses meanwhile.

use std::time::Duration;

use anyhow::Context as _;
use tokio::time::{Instant, MissedTickBehavior};

use crate::{cluster::Full, load, support::installed::Replica};

/// What was measured in one turn.
pub(crate) struct Measured {
    waits: Vec<Duration>,
    /// Processor time of the program, and how long the turn took.
    used: Duration,
    took: Duration,
}

/// Waits until the program binds.
pub(crate) async fn first(cluster: &mut Full) -> anyhow::Result<()> {
    let (run, names) = cluster.next_run();
    load::create(&cluster.client, run, 1).await?;
    cluster.binds.of(&names, 1).await.map(drop)
}

/// Creates so many pods, one after each `pace`.
pub(crate) async fn measure(
    cluster: &mut Full,
    replica: &Replica,
    pods: usize,
    pace: Duration,
) -> anyhow::Result<Measured> {
    let (began, used) = (Instant::now(), replica.processor_time());
    let mut pace = tokio::time::interval(pace);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut sent = Vec::with_capacity(pods);
    for _ in 0..pods {
        pace.tick().await;
        let (run, names) = cluster.next_run();
        let at = load::create(&cluster.client, run, 1).await?.into_values().next().context("one pod")?;
        sent.push((names, at));
    }
    let mut waits = Vec::with_capacity(pods);
    for (names, at) in sent {
        let bound = cluster.binds.of(&names, 1).await?.pop().context("one pod was bound")?;
        waits.push(bound.duration_since(at));
    }
    waits.sort();
    Ok(Measured { waits, used: replica.processor_time().saturating_sub(used), took: began.elapsed() })
}

impl Measured {
    pub(crate) fn print(&self, what: &str) {
        println!(
            "  {what:<10} created to bound: {} median, {} p99; the program used {:.1} % of a processor",
            milliseconds(&self.waits, 50),
            milliseconds(&self.waits, 99),
            self.used.as_secs_f64() * 100.0 / self.took.as_secs_f64()
        );
    }
}

/// The percentile of what is sorted.
pub(crate) fn milliseconds(sorted: &[Duration], percent: usize) -> String {
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    format!("{:.1} ms", sorted.get(at).map_or(0.0, |wait| wait.as_secs_f64() * 1000.0))
}
