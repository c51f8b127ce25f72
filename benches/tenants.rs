//! How long a pod of one user waits while another user attacks: the program on a real API server, 200 nodes with eight cards each, and a second
//! user's pod, the probe, created again and again beside each attack.
//!
//! It must not judge: what holds is in the tests, where work is counted. Here it is measured.

#[allow(dead_code, reason = "the bench of bindings uses the rest of it")]
#[path = "end_to_end/load.rs"]
mod load;
#[path = "../tests/support/lib.rs"]
mod support;
mod tenants {
    pub(crate) mod attack;
    pub(crate) mod probe;
    pub(crate) mod run;
}

use std::process::ExitCode;

use clap::Parser;
use tenants::{attack::Attack, run};

/// Prints how long a second user's pods wait without an attack, beside each, and beside all of them.
#[derive(Debug, Parser)]
struct Args {
    /// Nodes of the cluster.
    #[arg(long, default_value_t = 200)]
    nodes: usize,
    /// Probes beside each attack, one after another.
    #[arg(long, default_value_t = 20)]
    probes: usize,
    /// Only these attacks.
    #[arg(long, value_enum, value_delimiter = ',')]
    attacks: Vec<Attack>,
    /// Without the program: only the bare probes, which say what the API server takes by itself.
    #[arg(long)]
    without_program: bool,
    /// Passed by cargo; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("this machine has threads to give");
    let attacks = if args.attacks.is_empty() { Attack::ALL.to_vec() } else { args.attacks };
    match runtime.block_on(run::all(args.nodes, args.probes, &attacks, args.without_program)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tenants: {error:#}");
            ExitCode::FAILURE
        }
    }
}
