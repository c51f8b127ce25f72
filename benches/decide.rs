//! What one decision costs, by the number of nodes and by what a pod demands of other nodes and pods.
//!
//! Each decision is charged before the next, so that one node has changed since. Figures are printed, not judged.
#![expect(clippy::unwrap_used, reason = "what fails in a bench ends the bench")]

mod decide {
    pub(crate) mod claims;
    pub(crate) mod devices;
    pub(crate) mod family;
    pub(crate) mod mix;
    pub(crate) mod rounds;
    pub(crate) mod storage;
    pub(crate) mod trials;
    pub(crate) mod world;
}

#[path = "../tests/support/fixtures.rs"]
mod fixtures;
#[path = "claims/objects.rs"]
#[allow(dead_code, reason = "the benches beside kube-scheduler use the rest of it")]
mod objects;

use clap::Parser;
use decide::{
    family::Family,
    rounds::{Rounds, Timing},
    world::World,
};

/// The program's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Prints the microseconds of a decision for each family of constraints.
#[derive(Debug, Parser)]
struct Args {
    /// Nodes of the cluster, one table for each number.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000])]
    nodes: Vec<usize>,
    /// Only families whose name contains this.
    #[arg(long, default_value = "")]
    family: String,
    /// Rounds for each figure.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Decisions of a round for classes that were decided before.
    #[arg(long, default_value_t = 20)]
    known: usize,
    /// Classes that were decided before, whose pods take turns.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    classes: u64,
    /// Decisions of a round for classes that were not; 0 leaves them out.
    #[arg(long, default_value_t = 2)]
    new: usize,
    /// Let a view of the cluster be held over each decision, as the program publishes them, and count all that is done for the pod.
    #[arg(long)]
    viewed: bool,
    /// Passed by cargo; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
}

fn columns(timing: Option<Timing>) -> String {
    let figures = |Timing { least, median, most }: Timing| format!("{least:>9.0} {median:>9.0} {most:>9.0}");
    timing.map_or_else(|| format!("{:>29}", "–"), figures)
}

fn main() {
    let args = Args::parse();
    let (known, new) = (Rounds::new(args.rounds, args.known), Rounds::new(args.rounds, args.new));
    for &nodes in &args.nodes {
        println!("{nodes} nodes, µs a decision: least, median and most of {} rounds", args.rounds);
        println!("{:<45} {:>29} {:>29}", "the pod has", "known class", "new class");
        for family in Family::ALL.iter().filter(|family| family.name().contains(&args.family)) {
            let known = known.of_known_classes(args.classes, &mut World::new(nodes, *family, args.viewed));
            let new = new.of_new_classes(&mut World::new(nodes, *family, args.viewed));
            println!("{:<45} {} {}", family.name(), columns(known), columns(new));
        }
    }
}
