//! What those who look at a full cluster cost and wait: how fast pods are bound with and without open pages, and how long each answer of the API takes.
//!
//! It must not judge: machines differ, so what counts is the difference within one run.

#[path = "restart/binds.rs"]
mod binds;
#[path = "restart/cluster.rs"]
mod cluster;
#[path = "end_to_end/load.rs"]
#[allow(dead_code, reason = "the bench of binding uses all of it")]
mod load;
#[path = "../tests/support/lib.rs"]
mod support;
mod viewers {
    pub(crate) mod answers;
    pub(crate) mod binding;
    pub(crate) mod page;
    pub(crate) mod users;
}

use std::{process::ExitCode, time::Duration};

use clap::Parser;
use support::installed::{Replica, free_address};

use cluster::Full;
use viewers::{answers, binding, page::Pages, users::Users};

/// Binds pods on a full cluster while pages are open, in turn with none, and asks the API for each of its answers.
#[derive(Debug, Parser)]
struct Args {
    /// Nodes of eight cards each.
    #[arg(long, default_value_t = 1000)]
    nodes: usize,
    /// GPU pods that run already.
    #[arg(long, default_value_t = 10_000)]
    pods: usize,
    /// Pages that are open.
    #[arg(long, default_value_t = 50)]
    viewers: usize,
    /// Pods that are created each second.
    #[arg(long, default_value_t = 10)]
    rate: u32,
    /// Pods of each turn.
    #[arg(long, default_value_t = 200)]
    created: usize,
    /// Turns without pages and turns with them.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How often each answer is asked for.
    #[arg(long, default_value_t = 20)]
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
            eprintln!("viewers: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn measure(args: &Args) -> anyhow::Result<()> {
    let mut cluster = Full::start(args.nodes, args.pods).await?;
    let users = Users::make(&cluster.client, args.viewers).await?;
    let address = free_address();
    let alone = ["--scheduler-only", "--leader-elect=false"];
    let replica = Replica::start_as(&cluster.plane, support::installed::ACCOUNT, "viewed", address, &alone);
    let pace = Duration::from_secs(1) / args.rate;
    binding::first(&mut cluster).await?;
    println!("\n{} pods at {} a second, in turns; {} pages", args.created, args.rate, args.viewers);
    for _ in 0..args.rounds {
        binding::measure(&mut cluster, &replica, args.created, pace).await?.print("no page");
        let pages = Pages::open(address, &users, args.viewers).await?;
        let measured = binding::measure(&mut cluster, &replica, args.created, pace).await?;
        measured.print(&format!("{} pages", args.viewers));
        println!("  {}", pages.close()?);
    }
    answers::measure(&mut cluster, address, &users, args.times, pace).await?;
    let (now, most) = replica.memory();
    println!("\nthe program's memory: {now} MiB, {most} MiB at most");
    Ok(())
}
