//! How many pods with claims from a template are decided a second without an API server, or bound a second with a real one, beside
//! kube-scheduler in the same run.
//!
//! Figures are printed, not judged. Both sides get the same objects and the same cores; kube-scheduler has its defaults.
#![expect(clippy::unwrap_used, reason = "what fails in a bench ends the bench")]

mod claims {
    pub(crate) mod berth;
    pub(crate) mod cluster;
    pub(crate) mod end_to_end;
    pub(crate) mod kube_scheduler;
    pub(crate) mod objects;
}
#[path = "end_to_end/observer.rs"]
#[allow(dead_code, reason = "the bench of binding uses the rest of it")]
mod observer;
#[path = "end_to_end/process.rs"]
#[allow(dead_code, reason = "the bench of binding uses the rest of it")]
mod process;
#[path = "end_to_end/requests.rs"]
#[allow(dead_code, reason = "the bench of binding uses the rest of it")]
mod requests;
#[path = "../tests/support/lib.rs"]
mod support;

use std::time::Duration;

use claims::{
    berth::Berth,
    cluster::Cluster,
    end_to_end::{self, Side},
    kube_scheduler,
    objects::Kind,
};
use clap::Parser;

/// The program's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Prints how many pods a second Berth and kube-scheduler decide, in turns; with --end-to-end, how many they bind.
#[derive(Debug, Parser)]
struct Args {
    /// Nodes of the cluster, one comparison for each number.
    #[arg(long, value_delimiter = ',', default_values_t = [500, 5_000])]
    nodes: Vec<usize>,
    /// Pods that are decided in each turn.
    #[arg(long, default_value_t = 200)]
    pods: usize,
    /// What claims ask for; all of them unless given.
    #[arg(long, value_delimiter = ',')]
    kinds: Vec<Kind>,
    /// Turns of each side.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Against a real API server, from the first create to the last bind.
    #[arg(long)]
    end_to_end: bool,
    /// One turn of 50 nodes and 50 pods.
    #[arg(long)]
    quick: bool,
    /// Passed by cargo; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> anyhow::Result<()> {
    let mut args = Args::parse();
    if args.quick {
        (args.nodes, args.pods, args.rounds) = (vec![50], 50, 1);
    }
    if args.kinds.is_empty() {
        args.kinds = vec![Kind::Any, Kind::Selected, Kind::Share];
    }
    for &nodes in &args.nodes {
        for &kind in &args.kinds {
            let cluster = Cluster { nodes, pods: args.pods, kind };
            if args.end_to_end { bind(&cluster, args.rounds)? } else { decide(&cluster, args.rounds)? }
        }
    }
    Ok(())
}

fn decide(cluster: &Cluster, rounds: usize) -> anyhow::Result<()> {
    let program = support::build::ours(support::build::Release::Usual).map_err(anyhow::Error::msg)?;
    println!("{cluster}: decisions/s, median and 99th percentile of a decision in µs");
    for _ in 0..rounds {
        let theirs = kube_scheduler::decide_all(&program, cluster)?;
        let ours = Berth::new(cluster).decide_all();
        let ratio = rate(&ours) / rate(&theirs);
        println!("  kube-scheduler {}   Berth {}   ratio {ratio:.1}", figures(&theirs), figures(&ours));
    }
    Ok(())
}

fn bind(cluster: &Cluster, rounds: usize) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!("{cluster}: bound against a real API server");
    for round in 0..rounds {
        // In turns: a machine that slows down harms both.
        let mut sides = [Side::KubeScheduler, Side::Berth];
        sides.rotate_left(round % 2);
        let mut rates = Vec::new();
        for side in sides {
            let outcome = runtime.block_on(end_to_end::run(side, cluster))?;
            println!("    {side:?}: {outcome}");
            rates.push((side, outcome.pods_per_second));
        }
        rates.sort_by_key(|(side, _)| *side != Side::Berth);
        println!("  ratio {:.2}", rates[0].1 / rates[1].1);
    }
    Ok(())
}

/// Decisions a second.
fn rate(decisions: &[Duration]) -> f64 {
    let count = u32::try_from(decisions.len()).expect("a bench decides few pods");
    f64::from(count) / decisions.iter().sum::<Duration>().as_secs_f64()
}

fn figures(decisions: &[Duration]) -> String {
    let mut sorted = decisions.to_vec();
    sorted.sort_unstable();
    let quantile = |percent: usize| {
        let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        sorted[at].as_secs_f64() * 1e6
    };
    format!("{:>8.0}/s {:>7.0} {:>7.0}", rate(decisions), quantile(50), quantile(99))
}
