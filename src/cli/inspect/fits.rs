//! `berth fits`: how many pods of usual sizes would fit now, by card model.

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Args;

use super::{
    berth_api::{Answerer, ApiArgs, BerthApi},
    cluster::{InspectedArgs, cluster_of},
};
use crate::{
    api::{closed::closed, fits::FittingSizes, top::ClusterUsage},
    cli::{
        CommandAnswer,
        documents::Document,
        output::{Detail, Shown, WideFormat},
        table::Table,
    },
    cluster::report::{
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
    /// Who answers
    #[command(flatten)]
    pub api: ApiArgs,
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

/// By model.
type OpenModels = BTreeMap<String, OpenCards>;

/// Prints what would fit.
pub async fn run(args: FitsArgs, config: Config) -> Result<CommandAnswer> {
    let models = match args.api.answerer(&args.cluster).await? {
        Answerer::Objects(cluster) => of_objects(&cluster.documents().await?, &args.cluster, &config)?,
        Answerer::Api(api, _) => of_api(&api).await?,
    };
    let sizes = FittingSizes::of(models.iter().map(|(model, open)| (&**model, open.fitting)));
    if models.is_empty() {
        args.output.remark_empty("no node that takes new pods has cards");
    }
    args.output.print(&sizes, |detail| table(&models, detail))?;
    Ok(CommandAnswer::Yes)
}

fn of_objects(documents: &[Document], inspected: &InspectedArgs, config: &Config) -> Result<OpenModels> {
    let (reader, cluster) = cluster_of(documents, config, inspected.now())?;
    let mut models = OpenModels::new();
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
    Ok(models)
}

/// The same as Berth tells it; which nodes and cards these are, it tells with what is used of them.
async fn of_api(api: &BerthApi) -> Result<OpenModels> {
    let sizes: FittingSizes = api.get(&["fits"], "").await?;
    let mut models: OpenModels = sizes
        .by_model()
        .map(|(model, fitting)| (model.to_owned(), OpenCards { fitting, ..OpenCards::default() }))
        .collect();
    let usage: ClusterUsage = api.get(&["top"], "").await?;
    for node in usage.nodes.iter().filter(|node| node.closed.is_empty()) {
        let healthy = || node.cards.iter().filter(|card| card.healthy);
        for (model, open) in &mut models {
            let of_model = || healthy().filter(|card| *card.model == **model);
            open.nodes += usize::from(of_model().next().is_some());
            open.cards += of_model().count();
            open.unused += of_model().filter(|card| card.amounts.is_unused()).count();
        }
    }
    Ok(models)
}

fn table(models: &OpenModels, detail: Detail) -> Shown {
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
