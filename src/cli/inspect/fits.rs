//! `berth fits`: how many pods of usual sizes would fit now, by card model.

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::cluster::InspectedArgs;
use crate::{
    cli::{
        CommandAnswer,
        output::{self, Format, Shown},
        table::Table,
    },
    cluster::{
        cards::NodeCards,
        gpus::{FITTED, FittedPods, fitting},
    },
    config::Config,
    scheduling::{model::node::NodeInfo, plugin::taint_toleration},
};

/// Arguments of `berth fits`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  berth fits -o json")]
pub struct FitsArgs {
    /// Which cluster
    #[command(flatten)]
    pub cluster: InspectedArgs,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}

/// How many pods of each size would fit.
#[derive(Clone, Debug, Serialize)]
pub struct FittingSizes {
    /// By model, then by size.
    sizes: Vec<FittingSize>,
}

/// How many pods of one size would fit on cards of one model, one after the other, if no others came.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct FittingSize {
    request: SizeRequest,
    model: String,
    fits: u64,
}

/// What each of these pods asks for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct SizeRequest {
    /// Cards of one node.
    cards: u32,
    /// Of the memory of each.
    memory_percent: f64,
    /// Of the compute of each.
    cores_percent: f64,
}

/// Prints what would fit.
pub async fn run(args: FitsArgs, config: Config) -> Result<CommandAnswer> {
    let (reader, cluster) = args.cluster.cluster(&config).await?;
    let mut sums: BTreeMap<String, FittedPods> = BTreeMap::new();
    for state in cluster.scheduler().snapshot().nodes().filter(|state| is_open(&state.info)) {
        for (model, pods) in fitting(&NodeCards::of(state, reader.dialects())) {
            let sums = sums.entry(model.to_string()).or_default();
            sums.iter_mut().zip(pods).for_each(|(sum, pods)| *sum += pods);
        }
    }
    let sizes = FittingSizes::of(&sums);
    output::print(&sizes, args.output, || table(&sums))?;
    Ok(CommandAnswer::Yes)
}

/// Whether a pod without tolerations may go there.
fn is_open(node: &NodeInfo) -> bool {
    !node.cordoned && taint_toleration::tolerates_all(&[], &node.taints)
}

impl FittingSizes {
    fn of(sums: &BTreeMap<String, FittedPods>) -> Self {
        let sizes = sums.iter().flat_map(|(model, pods)| {
            FITTED.into_iter().zip(*pods).map(|((eighths, _), fits)| FittingSize {
                request: SizeRequest::of(eighths),
                model: model.clone(),
                fits,
            })
        });
        Self { sizes: sizes.collect() }
    }
}

impl SizeRequest {
    fn of(eighths: u32) -> Self {
        let percent = f64::from(eighths.min(8)) * 12.5;
        Self { cards: (eighths / 8).max(1), memory_percent: percent, cores_percent: percent }
    }
}

fn table(sums: &BTreeMap<String, FittedPods>) -> Shown {
    let headings: Vec<_> = FITTED.into_iter().map(|(_, cards)| format!("{cards} GPU")).collect();
    let headings: Vec<_> = std::iter::once("MODEL").chain(headings.iter().map(String::as_str)).collect();
    let mut table = Table::new(&headings);
    for (model, pods) in sums {
        table.row(std::iter::once(model.clone()).chain(pods.iter().map(ToString::to_string)));
    }
    table.render()
}
