//! How long nobody binds when the program is killed and started again, or when one replica hands over to another.
//!
//! It must not look inside Berth: what counts is when the API server shows a Binding; what the program's own log says is a breakdown.

#[path = "end_to_end/load.rs"]
#[allow(dead_code, reason = "the bench of binding uses all of it")]
mod load;
mod restart {
    pub(crate) mod binds;
    pub(crate) mod cluster;
    pub(crate) mod handover;
    pub(crate) mod lead;
    pub(crate) mod restarts;
}
#[path = "../tests/support/lib.rs"]
mod support;

use std::process::ExitCode;

use clap::Parser;
use restart::{cluster, handover, restarts};

/// Kills, restarts and replaces the installed program on a full cluster, and prints how long nothing was bound.
#[derive(Debug, Parser)]
struct Args {
    /// Nodes of eight cards each.
    #[arg(long, default_value_t = 1000)]
    nodes: usize,
    /// GPU pods that run already.
    #[arg(long, default_value_t = 10_000)]
    pods: usize,
    /// How often each case is run.
    #[arg(long, default_value_t = 5)]
    times: usize,
    /// Passed by cargo; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("this machine has threads to give");
    match runtime.block_on(measure(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("restart: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn measure(args: &Args) -> anyhow::Result<()> {
    let mut cluster = cluster::Full::start(args.nodes, args.pods).await?;
    restarts::measure(&mut cluster, args.times).await?;
    handover::measure(&mut cluster, args.times).await
}
