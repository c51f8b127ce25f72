//! `berth moves`: which pods to move so that whole GPUs become free, and with `--apply` the moves themselves.
//!
//! What moves is found by the binder's own rules (`scheduling/plan/moves`). Here stand what is read, what is printed, and what is written to the
//! cluster.

mod apply;
mod report;

use std::{path::PathBuf, time::Duration};

use anyhow::bail;
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use tokio::time::Instant;

use super::{
    CommandAnswer,
    connection::{ConnectionArgs, not_reached},
    documents::{self, Document},
    live_cluster,
    output::{self, Format},
    simulate::{PreparedSimulation, prepare},
};
pub use crate::api::moves::MovesReport;
use crate::{
    api::moves::{AnsweredMoves, MovesQuestion},
    cluster::{Clock, Reader},
    config::{Config, duration},
    scheduling::{
        plan::moves::MovePlan,
        scheduler::{Pace, Settings},
    },
    simulation::SimulatedCluster,
};

const EXAMPLE: &str = "\
Examples: what could be won, four GPUs of one model, and a node emptied
  berth moves
  berth moves --free 4 --model A100
  berth moves --node gpu-7 --apply";

/// Arguments of `berth moves`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct MovesArgs {
    /// A file, a folder, or `-` for standard input; may be given several times [default: the live cluster]
    #[arg(short, long = "filename", alias = "file", value_name = "FILE|DIR|-", conflicts_with_all = ["kubeconfig", "context", "live", "apply"])]
    pub file: Vec<PathBuf>,
    /// Read the live cluster, as without -f.
    #[arg(long)]
    pub live: bool,
    /// So many whole GPUs are to become free [default: as many as pay]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub free: Option<u32>,
    /// GPUs whose model contains this, whatever the case.
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// GPUs of this node. Its pods may then take GPUs of other nodes that are free.
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// Move the pods: evict one after the other, and wait until each stands again.
    #[arg(long)]
    pub apply: bool,
    /// With --apply, wait so long for a pod to stand again, for example `10m`.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = patience)]
    pub timeout: Duration,
    /// The current time to assume for -f, which makes the output reproducible [default: now]
    #[arg(long, value_name = "RFC3339", conflicts_with_all = ["live", "apply"])]
    pub at: Option<Timestamp>,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub output: Format,
    /// Which cluster
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

fn patience(text: &str) -> Result<Duration, String> {
    let time = duration::parse(text).filter(SignedDuration::is_positive);
    time.map(SignedDuration::unsigned_abs).ok_or_else(|| "not a time, such as `10m`".to_owned())
}

/// Plans, prints the plan, and carries it out where that is asked for. No: fewer GPUs become free than were asked for, or a pod does not stand again.
pub async fn run(args: MovesArgs, config: Config) -> anyhow::Result<CommandAnswer> {
    if !args.file.is_empty() {
        let plan = plan(&args, &config, &documents::read(&args.file)?)?;
        return plan.print(&args);
    }
    let (client, cluster) = args.connection.client().await?;
    let planned = plan_live(&client, &args, &config).await.map_err(|error| not_reached(error, &cluster))?;
    let answer = planned.print(&args)?;
    if !args.apply || answer == CommandAnswer::No || planned.plan.moves.is_empty() {
        return Ok(answer);
    }
    planned.apply(&client, args.timeout).await
}

/// The plan for a live cluster.
///
/// # Errors
///
/// As [`plan`], and a list that the API server does not give.
pub async fn plan_live(client: &Client, args: &MovesArgs, config: &Config) -> anyhow::Result<PlannedMoves> {
    plan(args, config, &live_cluster::all(client).await?)
}

/// A plan, and what it was made with.
#[derive(Debug)]
pub struct PlannedMoves {
    reader: Reader,
    plan: MovePlan,
    report: MovesReport,
}

impl PlannedMoves {
    /// What is printed.
    pub fn report(&self) -> &MovesReport {
        &self.report
    }

    /// Moves the pods. No: a pod does not stand again where the plan has it, and those after it are not moved.
    ///
    /// # Errors
    ///
    /// The API server does not answer, or refuses what is written for the moves. Cards that could not be admitted to new pods again are named.
    pub async fn apply(&self, client: &Client, timeout: Duration) -> anyhow::Result<CommandAnswer> {
        apply::apply(client, &self.reader, &self.plan, timeout).await
    }

    fn print(&self, args: &MovesArgs) -> anyhow::Result<CommandAnswer> {
        output::print(&self.report, args.output, || report::table(&self.report))?;
        let wanted = args.free.map_or(0, |free| free as usize);
        if self.plan.won >= wanted {
            if self.plan.is_cut_short && args.free.is_none() {
                output::remark("The search ended before everything was tried: more GPUs may become free.");
            }
            return Ok(CommandAnswer::Yes);
        }
        let cut_short = if self.plan.is_cut_short { ", as far as was searched" } else { "" };
        output::remark(&format!("{} of {wanted} GPUs can become free{cut_short}", self.plan.won));
        Ok(CommandAnswer::No)
    }
}

/// The plan for what the documents hold.
///
/// # Errors
///
/// A document that can't be read, or a node that is not there.
pub fn plan(args: &MovesArgs, config: &Config, documents: &[Document]) -> anyhow::Result<PlannedMoves> {
    let now = args.at.unwrap_or_else(|| Clock::System.now());
    let PreparedSimulation { reader, settings, mut lists, incoming, state, warnings, .. } =
        prepare(documents, config, now)?;
    for warning in &warnings {
        output::remark(&format!("warning: {warning}"));
    }
    let pods = reader.movable_pods(&state);
    let weights = settings.weights;
    // Pods that wait are not decided here, but nodes may be kept for them.
    lists.pods.extend(incoming);
    let cluster = SimulatedCluster::new(Settings { pace: Pace::Standby, ..settings }, lists, now);
    let mut snapshot = cluster.scheduler().snapshot().clone();
    if let Some(node) = &args.node
        && snapshot.node(node).is_none()
    {
        bail!("--node {node}: there is no such node");
    }
    let question = MovesQuestion { free: args.free, model: args.model.clone(), node: args.node.clone() };
    let began = Instant::now();
    let answer = AnsweredMoves::of(&question, &mut snapshot, &pods, (&reader, weights));
    tracing::info!(took = ?began.elapsed(), pods = pods.movable.len(), "the moves are planned");
    let report = answer.report(|_| true);
    Ok(PlannedMoves { reader, plan: answer.plan, report })
}
