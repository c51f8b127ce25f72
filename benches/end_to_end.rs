//! How fast pods are bound against a real API server, measured beside a client that binds without thinking in the same run.
//!
//! It must not judge by absolute figures: machines differ, so the ratio of the two is what counts.

mod end_to_end {
    pub(crate) mod binder;
    pub(crate) mod blind;
    pub(crate) mod child;
    #[allow(dead_code, reason = "the bench of restarts uses the rest of it")]
    pub(crate) mod load;
    pub(crate) mod observer;
    pub(crate) mod process;
    pub(crate) mod report;
    pub(crate) mod requests;
    pub(crate) mod round;
    pub(crate) mod run;
}
#[path = "../tests/support/lib.rs"]
mod support;

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use end_to_end::{binder, run};

/// The program's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Binds GPU pods on simulated nodes with Berth and with a blind binder, in turns, and pods without a GPU with kube-scheduler, and prints all.
#[derive(Debug, Parser)]
struct Args {
    /// Nodes of the cluster; with --pods it replaces the two standard scenarios.
    #[arg(long, requires = "pods")]
    nodes: Option<usize>,
    /// GPU pods of each run.
    #[arg(long, requires = "nodes")]
    pods: Option<usize>,
    /// Rounds: each runs the blind binder at every level, with a run of Berth beside each.
    #[arg(long, default_value_t = 2)]
    rounds: usize,
    /// How many milliseconds a node's agent takes for one allocation; 500 stands for HAMi's plugin with its throttled client.
    #[arg(long, default_value_t = 10)]
    agent_ms: u64,
    /// How many pods the blind binder has in flight, one run each; the best counts.
    #[arg(long, value_delimiter = ',', default_values_t = [8, 16, 32, 64, 128])]
    levels: Vec<usize>,
    /// How many writes Berth may have under way.
    #[arg(long, default_value_t = 128)]
    writes_at_once: usize,
    /// When Berth takes node locks; the blind binder always does.
    #[arg(long, value_enum, default_value_t = binder::LockPolicy::Always)]
    node_lock: binder::LockPolicy,
    /// Only Berth, with so many pods created in a second, one run each.
    #[arg(long, value_delimiter = ',')]
    rates: Vec<f64>,
    /// One round of 50 nodes and 200 pods.
    #[arg(long)]
    quick: bool,
    /// Where to write the results as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Passed by cargo; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// One binder in a process of its own, as this program starts it.
    #[command(hide = true)]
    Binder(binder::Args),
}

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("this machine has threads to give");
    let outcome = match args.role {
        Some(Role::Binder(ref binder)) => runtime.block_on(binder::run(binder)),
        None => runtime.block_on(run::all(&plan(&args), args.json.as_deref())),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("end_to_end: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn plan(args: &Args) -> run::Plan {
    let scenarios = match (args.quick, args.nodes, args.pods) {
        (_, Some(nodes), Some(pods)) => vec![run::Scenario { nodes, pods }],
        (true, ..) => vec![run::Scenario { nodes: 50, pods: 200 }],
        _ => vec![run::Scenario { nodes: 1000, pods: 2000 }, run::Scenario { nodes: 10, pods: 200 }],
    };
    run::Plan {
        scenarios,
        rounds: if args.quick { 1 } else { args.rounds },
        agent: std::time::Duration::from_millis(args.agent_ms),
        levels: args.levels.clone(),
        rates: args.rates.clone(),
        writes_at_once: args.writes_at_once,
        node_lock: args.node_lock,
    }
}
