//! `berth fits`: how many pods of usual sizes would fit now, by card model.

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Args;

use super::cluster::InspectedArgs;
use crate::{
    api::fits::{FittingSizes, is_open},
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

fn table(sums: &BTreeMap<String, FittedPods>) -> Shown {
    let headings: Vec<_> = FITTED.into_iter().map(|(_, cards)| format!("{cards} GPU")).collect();
    let headings: Vec<_> = std::iter::once("MODEL").chain(headings.iter().map(String::as_str)).collect();
    let mut table = Table::new(&headings);
    for (model, pods) in sums {
        table.row(std::iter::once(model.clone()).chain(pods.iter().map(ToString::to_string)));
    }
    table.render()
}
