//! `berth fits`: how many pods of usual sizes would fit now, by card model.

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Args;

use super::cluster::InspectedArgs;
use crate::{
    api::{closed::closed, fits::FittingSizes},
    cli::{
        CommandAnswer,
        output::{Detail, Shown, WideFormat},
        table::Table,
    },
    cluster::{
        cards::NodeCards,
        gpus::{FITTED, FittedPods, fitting},
    },
    config::Config,
    device::CardUsage,
};

/// Arguments of `berth fits`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  berth fits -o json")]
pub struct FitsArgs {
    /// Which cluster
    #[command(flatten)]
    pub cluster: InspectedArgs,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = WideFormat::Table)]
    pub output: WideFormat,
}

/// The cards of one model on nodes that take new pods.
#[derive(Clone, Copy, Debug, Default)]
struct OpenCards {
    /// How many pods of each size would fit.
    fitting: FittedPods,
    nodes: usize,
    /// Those that work.
    cards: usize,
    /// Those of which nothing is given away.
    unused: usize,
}

/// Prints what would fit.
pub async fn run(args: FitsArgs, config: Config) -> Result<CommandAnswer> {
    let (reader, cluster) = args.cluster.cluster(&config).await?;
    let mut models: BTreeMap<String, OpenCards> = BTreeMap::new();
    for state in cluster.scheduler().snapshot().nodes().filter(|state| closed(&state.info).is_empty()) {
        let cards = NodeCards::of(state, reader.dialects());
        for (model, pods) in fitting(&cards) {
            let of_model =
                || cards.cards.iter().filter(|card| card.is_healthy() && card.card.model == *model);
            let open = models.entry(model.to_string()).or_default();
            open.fitting.iter_mut().zip(pods).for_each(|(sum, pods)| *sum += pods);
            open.nodes += 1;
            open.cards += of_model().count();
            open.unused += of_model().filter(|card| card.used == CardUsage::default()).count();
        }
    }
    let sizes = FittingSizes::of(models.iter().map(|(model, open)| (&**model, open.fitting)));
    args.output.print(&sizes, |detail| table(&models, detail))?;
    Ok(CommandAnswer::Yes)
}

fn table(models: &BTreeMap<String, OpenCards>, detail: Detail) -> Shown {
    let sizes: Vec<_> = FITTED.into_iter().map(|(_, cards)| format!("{cards} GPU")).collect();
    let more: &[&str] = if detail == Detail::Wide { &["NODES", "CARDS", "UNUSED"] } else { &[] };
    let sizes = sizes.iter().map(String::as_str);
    let headings: Vec<_> = std::iter::once("MODEL").chain(more.iter().copied()).chain(sizes).collect();
    let mut table = Table::new(&headings);
    for (model, open) in models {
        let more: &[usize] =
            if detail == Detail::Wide { &[open.nodes, open.cards, open.unused] } else { &[] };
        let more = more.iter().map(ToString::to_string);
        let fitting = open.fitting.iter().map(ToString::to_string);
        table.row(std::iter::once(model.clone()).chain(more).chain(fitting));
    }
    table.render()
}
