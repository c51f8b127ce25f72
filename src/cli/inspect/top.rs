//! `berth top`: how much of the cards is used, by node, by model and by namespace; once, or on a screen that is read again and again.

mod bar;
mod rows;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use anyhow::Result;
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::{
    berth_api::{Answerer, ApiArgs},
    cells::CellTable,
    cluster::InspectedArgs,
    order::{SortBy, Sortable},
    screen::{Screen, Watched},
    watch::{Read, WatchArgs, apart},
};
use crate::{
    api::top::{ClusterUsage, ModelUsage, NamespaceUsage, NodeUsage, UsageScope},
    cli::{
        CommandAnswer,
        documents::Document,
        output::{self, Detail, WideFormat},
        simulate::{PreparedSimulation, prepare},
    },
    config::Config,
    simulation::SimulatedCluster,
};

pub use bar::Glyphs;

const EXAMPLE: &str = "\
Examples: all nodes, the same on the whole screen, the namespaces that hold most, and one namespace with its quota
  berth top
  berth top -w
  berth top namespaces --sort-by memory
  berth top namespaces -n team-a -o wide";

/// Arguments of `berth top`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct TopArgs {
    /// What each row is
    #[arg(value_enum, default_value_t = TopView::Nodes, hide_default_value = true, value_name = "VIEW")]
    pub view: TopView,
    /// Count only what the pods of this namespace hold [default: all that is given away]
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// The order of the rows
    #[arg(long, value_enum, default_value_t = SortBy::Name, value_name = "KEY")]
    pub sort_by: SortBy,
    /// Draw bars in ASCII [default: in blocks, if the locale is one of UTF-8]
    #[arg(long)]
    pub ascii: bool,
    /// Whether it is shown on a screen
    #[command(flatten)]
    pub watch: WatchArgs,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = WideFormat::Table)]
    pub output: WideFormat,
    /// Which cluster
    #[command(flatten)]
    pub cluster: InspectedArgs,
    /// Who answers
    #[command(flatten)]
    pub api: ApiArgs,
}

/// What each row is.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum TopView {
    /// A node.
    #[value(alias = "node", alias = "no")]
    Nodes,
    /// A model of cards.
    #[value(alias = "model")]
    Models,
    /// A namespace.
    #[value(alias = "namespace", alias = "ns")]
    Namespaces,
}

/// One view, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum TopAnswer<'a> {
    Nodes(&'a [NodeUsage]),
    Models(&'a [ModelUsage]),
    Namespaces(&'a [NamespaceUsage]),
}

impl TopAnswer<'_> {
    fn is_empty(&self) -> bool {
        match self {
            Self::Nodes(rows) => rows.is_empty(),
            Self::Models(rows) => rows.is_empty(),
            Self::Namespaces(rows) => rows.is_empty(),
        }
    }
}

/// What is used, as it is drawn.
#[derive(Clone, Debug)]
struct DrawnUsage {
    usage: ClusterUsage,
    glyphs: Glyphs,
}

impl TopArgs {
    fn glyphs(&self) -> Glyphs {
        let value = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        if self.ascii { Glyphs::Ascii } else { Glyphs::of_locale(value) }
    }

    /// What is used, and what was left out of that or odd about it.
    async fn read(self: Arc<Self>, answerer: Arc<Answerer>, config: Arc<Config>) -> Read<ClusterUsage> {
        let (documents, mut left_out) = match &*answerer {
            Answerer::Objects(cluster) => cluster.cards().await?,
            Answerer::Api(api, _) => {
                let query = self.namespace.as_ref().map(|name| format!("?namespace={name}"));
                let usage = api.get(&["top"], query.as_deref().unwrap_or_default()).await?;
                return Ok((usage, Vec::new()));
            }
        };
        let (usage, warnings) = apart(move || self.usage(&documents, &config)).await?;
        left_out.extend(warnings);
        Ok((usage, left_out))
    }

    /// What is used in the cluster of these documents, and what was odd about them.
    fn usage(&self, documents: &[Document], config: &Config) -> Read<ClusterUsage> {
        let now = self.cluster.now();
        let PreparedSimulation { reader, settings, mut lists, incoming, warnings, .. } =
            prepare(documents, config, now)?;
        let mut waiting: BTreeMap<String, u64> = BTreeMap::new();
        for pod in &incoming {
            *waiting.entry(pod.key.namespace.to_string()).or_default() += 1;
        }
        // What waits is among the pods that may come.
        lists.pods.extend(incoming);
        let cluster = SimulatedCluster::new(settings, lists, now);
        let scope = self.namespace.as_deref().map_or(UsageScope::Everything, UsageScope::Namespace);
        let snapshot = cluster.scheduler().snapshot();
        let holders = snapshot.ledger().shared();
        Ok((ClusterUsage::of(snapshot.world(), &holders, reader.dialects(), &waiting, scope), warnings))
    }
}

/// Prints what is used, or shows it until it is told to end.
pub async fn run(args: TopArgs, config: Config) -> Result<CommandAnswer> {
    let (args, config) = (Arc::new(args), Arc::new(config));
    let glyphs = args.glyphs();
    let detail = args.watch.detail(args.output, &args.cluster.file)?;
    let answerer = Arc::new(args.api.answerer(&args.cluster).await?);
    if let Some(detail) = detail {
        let screen = Screen::new::<DrawnUsage>(args.view as usize, args.sort_by, detail);
        let read = || {
            let read = Arc::clone(&args).read(Arc::clone(&answerer), Arc::clone(&config));
            let drawn = async move {
                let (usage, warnings) = read.await?;
                Ok((DrawnUsage { usage, glyphs }, warnings))
            };
            Box::pin(drawn) as _
        };
        return args.watch.show(screen, read).await;
    }
    let (mut usage, warnings) = Arc::clone(&args).read(answerer, config).await?;
    for warning in warnings {
        output::remark(&format!("warning: {warning}"));
    }
    sort(&mut usage, args.sort_by);
    let answer = match args.view {
        TopView::Nodes => TopAnswer::Nodes(&usage.nodes),
        TopView::Models => TopAnswer::Models(&usage.models),
        TopView::Namespaces => TopAnswer::Namespaces(&usage.namespaces),
    };
    if answer.is_empty() {
        let why = match (&args.namespace, args.view) {
            (Some(namespace), _) => format!("no pod of namespace {namespace} holds or wants any of a card"),
            (None, TopView::Namespaces) => "no pod holds or wants any of a card".to_owned(),
            (None, TopView::Nodes | TopView::Models) => "no node has cards".to_owned(),
        };
        args.output.remark_empty(&why);
    }
    args.output.print(&answer, |detail| rows::table(&usage, args.view, detail, glyphs).shown())?;
    Ok(CommandAnswer::Yes)
}

/// All rows in this order.
fn sort(usage: &mut ClusterUsage, by: SortBy) {
    by.sort(&mut usage.nodes);
    by.sort(&mut usage.models);
    by.sort(&mut usage.namespaces);
}

impl TopView {
    const ALL: [Self; 3] = [Self::Nodes, Self::Models, Self::Namespaces];
}

impl Watched for DrawnUsage {
    const TITLE: &'static str = "berth top";
    const TABS: &'static [&'static str] = &["nodes", "models", "namespaces"];

    fn sum(&self) -> String {
        let Self { usage, .. } = self;
        let total = usage.total();
        let cards: usize = usage.nodes.iter().map(|node| node.cards.len()).sum();
        let pods: u64 = usage.nodes.iter().map(|node| node.pods).sum();
        let waiting: u64 = usage.namespaces.iter().map(|namespace| namespace.waiting).sum();
        format!(
            "nodes {}, cards {cards}, memory {} %, compute {} %, pods with cards {pods}, waiting pods {waiting}",
            usage.nodes.len(),
            bar::percent(total.memory_part()),
            bar::percent(total.cores_part()),
        )
    }

    fn table(&self, tab: usize, sort_by: SortBy, detail: Detail) -> CellTable {
        let mut usage = self.usage.clone();
        sort(&mut usage, sort_by);
        rows::table(&usage, TopView::ALL[tab % TopView::ALL.len()], detail, self.glyphs)
    }
}

impl Sortable for NodeUsage {
    fn name(&self) -> (&str, &str) {
        (&self.name, "")
    }

    fn memory_used(&self) -> u64 {
        self.amounts.memory_used
    }

    fn cores_used(&self) -> f64 {
        self.amounts.cores_used
    }
}

impl Sortable for ModelUsage {
    fn name(&self) -> (&str, &str) {
        (&self.model, "")
    }

    fn memory_used(&self) -> u64 {
        self.amounts.memory_used
    }

    fn cores_used(&self) -> f64 {
        self.amounts.cores_used
    }
}

impl Sortable for NamespaceUsage {
    /// Those without a name come last.
    fn name(&self) -> (&str, &str) {
        (if self.others.is_some() { "others" } else { "" }, &self.namespace)
    }

    fn memory_used(&self) -> u64 {
        self.amounts.memory_used
    }

    fn cores_used(&self) -> f64 {
        self.amounts.cores_used
    }
}
