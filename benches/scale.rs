//! What the installed program takes on a large cluster: from the lists to its readiness, memory, and the time of a decision, a dry run and a scrape.
//!
//! The program is a process of its own; it must not be looked into: its log, its metrics and `/proc` tell. Figures are printed and drawn, not judged.

#[path = "end_to_end/process.rs"]
#[allow(dead_code, reason = "the bench of binding uses all of it")]
mod process;
mod scale {
    pub(crate) mod api_server;
    pub(crate) mod chart;
    pub(crate) mod objects;
    pub(crate) mod program;
    pub(crate) mod sweep;
}

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;
use scale::{
    chart,
    sweep::{ClusterSize, Figures, measure},
};

/// Starts the installed program on clusters of several sizes, and prints what it takes.
#[derive(Debug, Parser)]
struct Args {
    /// Nodes of eight cards each, with ten GPU pods on each: one cluster for each number
    #[arg(long, num_args = 0.., value_delimiter = ',', default_values_t = [1_000, 2_500, 5_000, 10_000])]
    nodes: Vec<usize>,
    /// GPU pods on the largest number of nodes: one cluster for each number
    #[arg(long, num_args = 0.., value_delimiter = ',', default_values_t = [10_000, 50_000, 100_000])]
    pods: Vec<usize>,
    /// Pods that wait, of which no two are alike, on the smallest number of nodes: one cluster for each number
    #[arg(long, num_args = 0.., value_delimiter = ',', default_values_t = [100, 500, 1_000])]
    classes: Vec<usize>,
    /// Let the shares that pods hold differ by up to 39 MiB, so that the rooms of most nodes differ and seem to be worth the same
    #[arg(long)]
    uneven: bool,
    /// The program to start in place of the one that cargo has built
    #[arg(long, default_value = env!("CARGO_BIN_EXE_berth"))]
    program: PathBuf,
    /// Settings of the program
    #[arg(long)]
    config: Option<PathBuf>,
    /// Draw `scale-nodes.svg`, `scale-pods.svg` and `scale-classes.svg` into this folder
    #[arg(long)]
    draw: Option<PathBuf>,
    /// Passed by cargo; means nothing here
    #[arg(long, hide = true)]
    bench: bool,
}

/// What is varied, how much of it a cluster has, and the clusters.
type Sweep = (&'static str, fn(&ClusterSize) -> usize, Vec<ClusterSize>);

/// So many pods run on each node, unless it is their number that is varied.
const PODS_OF_A_NODE: usize = 10;

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime.expect("this machine has threads to give").block_on(run(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scale: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &Args) -> anyhow::Result<()> {
    let size = |nodes, pods, classes| ClusterSize { nodes, pods, classes, uneven: args.uneven };
    let (most, fewest) = (args.nodes.iter().max().copied(), args.nodes.iter().min().copied());
    let by_nodes = args.nodes.iter().map(|nodes| size(*nodes, nodes * PODS_OF_A_NODE, 0));
    let by_pods = args.pods.iter().filter_map(|pods| Some(size(most?, *pods, 0)));
    let by_classes =
        args.classes.iter().filter_map(|classes| Some(size(fewest?, fewest? * PODS_OF_A_NODE, *classes)));
    let sweeps: [Sweep; 3] = [
        ("nodes", |size| size.nodes, by_nodes.collect()),
        ("pods", |size| size.pods, by_pods.collect()),
        ("classes", |size| size.classes, by_classes.collect()),
    ];
    println!("{}", Figures::HEADING);
    for (varied, number, sizes) in sweeps {
        let mut points = Vec::new();
        for size in sizes {
            let figures = measure(size, &args.program, args.config.as_deref()).await?;
            println!("{figures}");
            points.push((number(&size), figures));
        }
        if let Some(folder) = args.draw.as_ref().filter(|_| !points.is_empty()) {
            std::fs::write(folder.join(format!("scale-{varied}.svg")), chart::svg(varied, &points)?)?;
        }
    }
    Ok(())
}
