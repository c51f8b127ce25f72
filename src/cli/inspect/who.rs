//! `berth who`: which pods hold how much of which card, and since when.

#[cfg(test)]
mod tests;

use std::{collections::HashMap, sync::Arc};

use anyhow::{Result, bail};
use clap::Args;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    berth_api::{Answerer, ApiArgs},
    cells::{self, CellTable, TextCell},
    cluster::{InspectedArgs, read_cluster},
    order::{SortBy, Sortable},
    screen::{Screen, Watched},
    watch::{Read, WatchArgs, apart},
};
use crate::{
    cli::{
        CommandAnswer,
        documents::Document,
        output::{self, Detail, Shown, WideFormat},
        table::Table,
    },
    cluster::report::ledger::{self, ChargeRow, HeldRow, LedgerCard, LedgerNode, NamedHolders},
    config::Config,
    excerpt::{FIELD, excerpt},
};

/// Arguments of `berth who`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Examples:\n  berth who\n  berth who --watch\n  berth who gpu-7 -o wide\n  berth who GPU-2d0cf8d5-9a4a-1f63-7d7f-7c1d4b6c0a11 -o json"
)]
pub struct WhoArgs {
    /// Only this node or card [default: all]
    #[arg(value_name = "NODE|CARD")]
    pub name: Option<String>,
    /// Whether it is shown on a screen
    #[command(flatten)]
    pub watch: WatchArgs,
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
    #[serde(flatten)]
    holder: Holder,
    /// In MiB.
    memory: u64,
    /// Compute, in percent of the card or in its own units.
    cores: u32,
    /// When it was started; absent: that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
}

/// Who holds something.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
enum Holder {
    /// A pod.
    Pod {
        namespace: String,
        #[serde(alias = "pod")]
        name: String,
    },
    /// So many pods that the caller may not see.
    Others { others: u64 },
}

/// All cards as Berth's API tells them.
#[derive(Debug, Deserialize)]
struct ToldFleet {
    nodes: Vec<ToldNode>,
}

#[derive(Debug, Deserialize)]
struct ToldNode {
    name: String,
    cards: Vec<ToldCard>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToldCard {
    /// Its uuid, or its node and number.
    id: String,
    index: u32,
    model: Arc<str>,
    healthy: bool,
    memory: u64,
    memory_used: u64,
    cores: u32,
    cores_used: u32,
    slots: u32,
    slots_used: u32,
    shares: Vec<ToldShare>,
}

#[derive(Debug, Deserialize)]
struct ToldShare {
    #[serde(flatten)]
    holder: Holder,
    memory: u64,
    cores: u32,
    since: Option<Timestamp>,
}

impl WhoArgs {
    /// Who holds what, and what was left out of that or odd about it.
    async fn read(self: Arc<Self>, answerer: Arc<Answerer>, config: Arc<Config>) -> Read<CardHolders> {
        let (documents, mut left_out) = match &*answerer {
            Answerer::Objects(cluster) => cluster.cards().await?,
            Answerer::Api(api, _) => {
                let fleet: ToldFleet = api.get(&["fleet"], "").await?;
                let holders = CardHolders { nodes: fleet.nodes.into_iter().map(HeldNode::from).collect() };
                return Ok((holders.only(self.name.as_deref())?, Vec::new()));
            }
        };
        let (holders, warnings) = apart(move || self.holders(&documents, &config)).await?;
        left_out.extend(warnings);
        Ok((holders, left_out))
    }

    /// Who holds what in the cluster of these documents.
    fn holders(&self, documents: &[Document], config: &Config) -> Read<CardHolders> {
        let (reader, cluster, warnings) = read_cluster(documents, config, self.cluster.now())?;
        let page = ledger::page(cluster.scheduler(), reader.dialects());
        let started = |row: &ChargeRow| cluster.pod(&row.uid).and_then(|pod| pod.importance.started);
        let holders = CardHolders::of(page.nodes, &page.pods, started).only(self.name.as_deref())?;
        Ok((holders, warnings))
    }
}

/// Prints who holds which card, or shows it until it is told to end.
pub async fn run(args: WhoArgs, config: Config) -> Result<CommandAnswer> {
    let (args, config) = (Arc::new(args), Arc::new(config));
    let detail = args.watch.detail(args.output, &args.cluster.file)?;
    let answerer = Arc::new(args.api.answerer(&args.cluster).await?);
    if let Some(detail) = detail {
        let screen = Screen::new::<CardHolders>(0, SortBy::Name, detail);
        let read = || Box::pin(Arc::clone(&args).read(Arc::clone(&answerer), Arc::clone(&config))) as _;
        return args.watch.show(screen, read).await;
    }
    let (holders, warnings) = Arc::clone(&args).read(answerer, config).await?;
    for warning in warnings {
        output::remark(&format!("warning: {warning}"));
    }
    if holders.nodes.iter().all(|node| node.cards.is_empty()) {
        args.output.remark_empty("no node has cards");
    }
    args.output.print(&holders, |detail| holders.table(detail))?;
    Ok(CommandAnswer::Yes)
}

impl From<ToldNode> for HeldNode {
    fn from(ToldNode { name, cards }: ToldNode) -> Self {
        let cards = cards.into_iter().map(|card| card.of_node(&name)).collect();
        Self { name, cards }
    }
}

impl ToldCard {
    fn of_node(self, node: &str) -> CardOfHolders {
        let has_uuid = self.id != format!("{node}/{}", self.index);
        let holders: Vec<_> = self.shares.into_iter().map(HolderRow::from).collect();
        let card = LedgerCard {
            index: (!has_uuid).then_some(self.index),
            uuid: has_uuid.then_some(self.id),
            model: self.model.clone(),
            slots_used: self.slots_used,
            slots: self.slots,
            memory_used: self.memory_used,
            memory: self.memory,
            cores_used: self.cores_used,
            cores: self.cores,
            healthy: self.healthy,
            holders: NamedHolders {
                pods: holders.iter().filter_map(|row| row.holder.pod()).collect(),
                ..NamedHolders::default()
            },
        };
        CardOfHolders { card, model: self.model, holders }
    }
}

impl From<ToldShare> for HolderRow {
    fn from(ToldShare { holder, memory, cores, since }: ToldShare) -> Self {
        Self { holder, memory, cores, since }
    }
}

impl Holder {
    /// Its namespace and name, where these are known.
    fn pod(&self) -> Option<String> {
        match self {
            Self::Pod { namespace, name } => Some(format!("{namespace}/{name}")),
            Self::Others { .. } => None,
        }
    }

    fn called(&self) -> String {
        match self {
            Self::Pod { namespace, name } => format!("{namespace}/{name}"),
            Self::Others { others } => cells::others(*others),
        }
    }
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
                holder: Holder::Pod { namespace: pod.namespace.clone(), name: pod.name.clone() },
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
        let mut table = Table::new(&headings(detail));
        for node in &self.nodes {
            for card in &node.cards {
                let mut rows = card.rows(&node.name, detail);
                // What stands above is not said again.
                let of_card = headings(detail).len() - OF_HOLDER.len();
                rows.iter_mut().skip(1).for_each(|row| row[..of_card].iter_mut().for_each(String::clear));
                for row in rows {
                    table.row(row);
                }
            }
        }
        table.render()
    }
}

/// The columns of a card's holders.
const OF_HOLDER: [&str; 3] = ["POD", "HOLDS", "SINCE"];

fn headings(detail: Detail) -> Vec<&'static str> {
    let more: &[&str] = if detail == Detail::Wide { &["MODEL", "SLOTS", "HEALTHY"] } else { &[] };
    [&["NODE", "CARD", "MEMORY (MIB)", "COMPUTE"], more, &OF_HOLDER].concat()
}

/// A card of a node, as the screen sorts it.
struct SortedCard<'a> {
    node: &'a str,
    card: &'a CardOfHolders,
}

impl Sortable for SortedCard<'_> {
    /// The cards of a node stay in their order.
    fn name(&self) -> (&str, &str) {
        (self.node, "")
    }

    fn memory_used(&self) -> u64 {
        self.card.card.memory_used
    }

    fn cores_used(&self) -> f64 {
        self.card.card.cores_used.into()
    }
}

impl Watched for CardHolders {
    const TITLE: &'static str = "berth who";
    const TABS: &'static [&'static str] = &["cards"];

    fn sum(&self) -> String {
        let cards = || self.nodes.iter().flat_map(|node| &node.cards);
        let held = cards().filter(|card| !card.holders.is_empty()).count();
        format!("nodes {}, cards {}, {held} of them held by pods", self.nodes.len(), cards().count())
    }

    /// Each row says its card, since what stands above may be scrolled away.
    fn table(&self, _tab: usize, sort_by: SortBy, detail: Detail) -> CellTable {
        let mut cards = Vec::new();
        for HeldNode { name, cards: of_node } in &self.nodes {
            cards.extend(of_node.iter().map(|card| SortedCard { node: name, card }));
        }
        sort_by.sort(&mut cards);
        let rows = cards.iter().flat_map(|sorted| sorted.card.rows(sorted.node, detail));
        let rows = rows.map(|row| row.iter().map(|text| TextCell::new(text)).collect());
        let names: &[usize] = if detail == Detail::Wide { &[0, 1, 7] } else { &[0, 1, 4] };
        CellTable { headings: headings(detail), rows: rows.collect(), names }
    }
}

impl CardOfHolders {
    /// A row for each holder; one where there is none.
    fn rows(&self, node: &str, detail: Detail) -> Vec<Vec<String>> {
        let mut of_card = vec![node.to_owned()];
        of_card.extend(self.cells(detail));
        let row = |holder: [String; 3]| of_card.iter().cloned().chain(holder).collect::<Vec<_>>();
        if self.holders.is_empty() {
            return vec![row(["-", "", ""].map(str::to_owned))];
        }
        let of_holder = |held: &HolderRow| {
            let amounts = format!("{} MiB, {} % compute", held.memory, held.cores);
            let since = held.since.map(|since| since.to_string()).unwrap_or_default();
            row([held.holder.called(), amounts, since])
        };
        self.holders.iter().map(of_holder).collect()
    }

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
