//! `berth simulate`: where the pods of files would go, on the cluster that the files describe, offline.
//!
//! Admission, reading and the scheduler are those of the live binder, and `simulation` takes the API server's place. Here stand
//! the order of the input, the clock that was given, and what is printed.

mod admit;
mod claims;
mod enter;
mod expand;
mod gather;
mod input;
mod lists;
mod prepare;
mod reader;
mod stateful_set;
mod table;
mod unread;

use std::{ops::ControlFlow, path::PathBuf};

use anyhow::bail;
use clap::Args;
use jiff::Timestamp;

use super::{
    CommandAnswer,
    connection::ConnectionArgs,
    documents::{self, Document},
    live_cluster, output,
    output::Format,
};
use crate::{
    cluster::Clock,
    config::Config,
    scheduling::{model::message::Message, scheduler::Pace},
    simulation::{Explain, Simulation, SimulationStage, simulate},
};

pub(super) use prepare::{PreparedSimulation, prepare, why_left_out};
pub(super) use table::{ShownNodes, table};

/// Arguments of `berth simulate`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  berth simulate -f cluster/ -f pod.yaml --explain -o json")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct SimulateArgs {
    /// A file, a folder, or `-` for standard input; may be given several times.
    #[arg(
        short,
        long = "filename",
        alias = "file",
        value_name = "FILE|DIR|-",
        required_unless_present = "from_cluster"
    )]
    pub file: Vec<PathBuf>,
    /// Place the pods on the live cluster as it is, beside those that wait there; nothing is changed.
    #[arg(long)]
    pub from_cluster: bool,
    /// For every node, print whether the pod fits there, and if not, why.
    #[arg(long)]
    pub explain: bool,
    /// Print only this node; may be repeated. JSON and YAML have every node.
    #[arg(long, value_name = "NAME", requires = "explain")]
    pub node: Vec<String>,
    /// The current time to assume, which makes the output reproducible [default: now].
    #[arg(long, value_name = "RFC3339")]
    pub at: Option<Timestamp>,
    /// Place the pods as they are, without applying the admission rules.
    #[arg(long)]
    pub skip_admission: bool,
    /// Exit with code 1 if a pod is denied or does not fit, and with 2 if a document is not read.
    #[arg(long)]
    pub strict: bool,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub output: Format,
    /// Which cluster
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

impl SimulateArgs {
    /// Places what the files hold.
    pub fn run(&self, config: &Config) -> anyhow::Result<CommandAnswer> {
        self.place(&documents::read(&self.file)?, config)
    }

    /// Places what waits in the live cluster, and what the files hold.
    pub async fn run_on_cluster(self, config: Config) -> anyhow::Result<CommandAnswer> {
        let mut documents = live_cluster::read(&self.connection).await?;
        if !self.file.is_empty() {
            documents.extend(documents::read(&self.file)?);
        }
        self.place(&documents, &config)
    }

    fn place(&self, documents: &[Document], config: &Config) -> anyhow::Result<CommandAnswer> {
        let now = self.at.unwrap_or_else(|| Clock::System.now());
        let explain = if self.explain { Explain::EveryNode } else { Explain::Nothing };
        let entrance = if self.skip_admission { admit::Entrance::Open } else { admit::Entrance::Guarded };
        let input = input::read(documents, config)?;
        let is_there = |name: &&String| input.nodes.iter().any(|(node, _)| node.metadata.name == **name);
        if let Some(unknown) = self.node.iter().find(|name| !is_there(name)) {
            bail!("--node {unknown}: there is no such node among the documents");
        }
        if self.strict {
            unread::refuse(&input.unread)?;
        }
        let (simulation, warnings) = simulated(&input, config, entrance, explain, now)?;
        for warning in input.warnings.iter().chain(&warnings) {
            output::remark(&format!("warning: {warning}"));
        }
        let unread = input.unread.iter().map(Document::kind);
        documents::tell_skipped(unread, "is not used by the simulation");
        let nodes = if self.node.is_empty() { ShownNodes::All } else { ShownNodes::Named(&self.node) };
        output::print(&simulation, self.output, || table(&simulation, nodes))?;
        let answer =
            if self.strict && simulation.is_short() { CommandAnswer::No } else { CommandAnswer::Yes };
        Ok(answer)
    }
}

/// Places every pod that wants a place; beside the result, what could not be read.
fn simulated(
    input: &input::SimulationInput,
    config: &Config,
    entrance: admit::Entrance,
    explain: Explain,
    now: Timestamp,
) -> anyhow::Result<(Simulation, Vec<String>)> {
    let start = gather::gather(input, config, Pace::OneByOne, entrance, now)?;
    let gather::SimulationStart { reader, settings, mut lists, rows } = start;
    let warnings = std::mem::take(&mut lists.warnings);
    let positions = std::mem::take(&mut lists.positions);
    let allocated = input.claims.allocated.clone();
    let stage = SimulationStage { settings, lists: lists.into_lists(), rows, positions, allocated };
    let told = |message: Message| message.full;
    let mut go_on = || ControlFlow::Continue(());
    let simulation = simulate(stage, &reader, (explain, &told), now, &mut go_on)?;
    Ok((simulation, warnings))
}

/// The pods that these documents are, or that their workloads would make in a cluster of which no node is known; and the documents of which no pod
/// can be known so.
pub(super) fn pods_alone(
    documents: &[Document],
    config: &Config,
) -> anyhow::Result<(Vec<Document>, Vec<Document>)> {
    let expansion = expand::Expansion::new(documents, config.workloads());
    let (mut pods, mut others) = (Vec::new(), Vec::new());
    for document in documents {
        match expansion.pods(document)? {
            _ if document.kind() == "Pod" => pods.push(document.clone()),
            Some(_) if expansion.is_for_each_node(document) => others.push(document.clone()),
            Some(expanded) => pods.extend(expanded.into_iter().map(|(pod, _)| pod)),
            None => others.push(document.clone()),
        }
    }
    Ok((pods, others))
}

/// Where these pods would go on a cluster of these objects, on which other pods may wait too.
pub(super) fn placed(
    mut cluster: Vec<Document>,
    asked: Vec<Document>,
    config: &Config,
    now: Timestamp,
) -> anyhow::Result<Simulation> {
    // The pods of the input stand in its order, those of the cluster first.
    let others = input::read(&cluster, config)?.pods.len();
    cluster.extend(asked);
    let input = input::read(&cluster, config)?;
    let (mut simulation, warnings) =
        simulated(&input, config, admit::Entrance::Guarded, Explain::Nothing, now)?;
    for warning in input.warnings.iter().chain(&warnings) {
        output::remark(&format!("warning: {warning}"));
    }
    simulation.pods = simulation.pods.split_off(others.min(simulation.pods.len()));
    Ok(simulation)
}
