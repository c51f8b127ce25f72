//! `berth who`: which pods hold how much of which card, and since when.

use std::{collections::HashMap, sync::Arc};

use anyhow::{Result, bail};
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

use super::cluster::InspectedArgs;
use crate::{
    cli::{
        CommandAnswer,
        output::{Detail, Shown, WideFormat},
        table::Table,
    },
    cluster::ledger::{self, ChargeRow, HeldRow, LedgerCard, LedgerNode},
    config::Config,
    excerpt::{FIELD, excerpt},
};

/// Arguments of `berth who`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Examples:\n  berth who\n  berth who gpu-7 -o wide\n  berth who GPU-2d0cf8d5-9a4a-1f63-7d7f-7c1d4b6c0a11 -o json"
)]
pub struct WhoArgs {
    /// Only this node or card [default: all]
    #[arg(value_name = "NODE|CARD")]
    pub name: Option<String>,
    /// Which cluster
    #[command(flatten)]
    pub cluster: InspectedArgs,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = WideFormat::Table)]
    pub output: WideFormat,
}

/// Who holds which card.
#[derive(Clone, Debug, Serialize)]
pub struct CardHolders {
    /// Every node that has cards, by name.
    nodes: Vec<HeldNode>,
}

/// A node.
#[derive(Clone, Debug, Serialize)]
struct HeldNode {
    name: String,
    cards: Vec<CardOfHolders>,
}

/// A card.
#[derive(Clone, Debug, Serialize)]
struct CardOfHolders {
    #[serde(flatten)]
    card: LedgerCard,
    /// As its plugin spells it.
    model: Arc<str>,
    /// By namespace and name.
    holders: Vec<HolderRow>,
}

/// A pod that holds some of a card.
#[derive(Clone, Debug, Serialize)]
struct HolderRow {
    namespace: String,
    name: String,
    /// In MiB.
    memory: u64,
    /// Compute, in percent of the card or in its own units.
    cores: u32,
    /// When it was started; absent: that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
}

/// Prints who holds which card.
pub async fn run(args: WhoArgs, config: Config) -> Result<CommandAnswer> {
    let (reader, cluster) = args.cluster.cluster(&config).await?;
    let page = ledger::page(cluster.scheduler(), reader.dialects());
    let started = |row: &ChargeRow| cluster.pod(&row.uid).and_then(|pod| pod.importance.started);
    let holders = CardHolders::of(page.nodes, &page.pods, started).only(args.name.as_deref())?;
    args.output.print(&holders, |detail| holders.table(detail))?;
    Ok(CommandAnswer::Yes)
}

impl CardHolders {
    fn of(
        nodes: Vec<LedgerNode>,
        pods: &[ChargeRow],
        started: impl Fn(&ChargeRow) -> Option<Timestamp>,
    ) -> Self {
        let mut on_node: HashMap<&str, Vec<(&ChargeRow, &HeldRow)>> = HashMap::new();
        for pod in pods {
            on_node.entry(&pod.node).or_default().extend(pod.cards.iter().map(|held| (pod, held)));
        }
        let card = |node: &str, card: LedgerCard| {
            let is_held = |held: &HeldRow| (&held.uuid, held.index) == (&card.uuid, card.index);
            // The ledger shortens and escapes the node's name in its rows of pods.
            let held =
                on_node.get(&*excerpt(node, FIELD)).into_iter().flatten().filter(|(_, held)| is_held(held));
            let holders = held.map(|(pod, held)| HolderRow {
                namespace: pod.namespace.clone(),
                name: pod.name.clone(),
                memory: held.memory,
                cores: held.cores,
                since: started(pod),
            });
            CardOfHolders { holders: holders.collect(), model: card.model.clone(), card }
        };
        let nodes = nodes.into_iter().filter(|node| !node.cards.is_empty()).map(|node| HeldNode {
            cards: node.cards.into_iter().map(|one| card(&node.name, one)).collect(),
            name: node.name,
        });
        Self { nodes: nodes.collect() }
    }

    /// The node or the card of this name alone.
    fn only(mut self, name: Option<&str>) -> Result<Self> {
        let Some(name) = name else { return Ok(self) };
        for node in self.nodes.iter_mut().filter(|node| node.name != name) {
            node.cards.retain(|card| card.card.uuid.as_deref() == Some(name));
        }
        self.nodes.retain(|node| !node.cards.is_empty());
        if self.nodes.is_empty() {
            bail!("no node with cards and no card is called {name}");
        }
        Ok(self)
    }

    fn table(&self, detail: Detail) -> Shown {
        let more: &[&str] = if detail == Detail::Wide { &["MODEL", "SLOTS", "HEALTHY"] } else { &[] };
        let headings = [&["NODE", "CARD", "MEMORY (MIB)", "COMPUTE"], more, &["POD", "HOLDS", "SINCE"]];
        let mut table = Table::new(&headings.concat());
        for node in &self.nodes {
            for card in &node.cards {
                let mut of_card = vec![node.name.clone()];
                of_card.extend(card.cells(detail));
                if card.holders.is_empty() {
                    let none = ["-", "", ""].map(str::to_owned);
                    table.row(of_card.iter().chain(&none));
                }
                for holder in &card.holders {
                    let pod = format!("{}/{}", holder.namespace, holder.name);
                    let held = format!("{} MiB, {} % compute", holder.memory, holder.cores);
                    let since = holder.since.map(|since| since.to_string()).unwrap_or_default();
                    table.row(of_card.iter().chain(&[pod, held, since]));
                    of_card.iter_mut().for_each(String::clear);
                }
            }
        }
        table.render()
    }
}

impl CardOfHolders {
    /// The columns between its node and its holders.
    fn cells(&self, detail: Detail) -> Vec<String> {
        let Self { card, model, .. } = self;
        let number = card.index.map(|index| index.to_string());
        let mut cells = vec![
            card.uuid.clone().or(number).unwrap_or_default(),
            format!("{}/{}", card.memory_used, card.memory),
            format!("{}/{}", card.cores_used, card.cores),
        ];
        if detail == Detail::Wide {
            let healthy = if card.healthy { "yes" } else { "no" };
            cells.extend([
                model.to_string(),
                format!("{}/{}", card.slots_used, card.slots),
                healthy.to_owned(),
            ]);
        }
        cells
    }
}
