//! `berth top`: how much of the cards is used, by node, by model and by namespace; once, or on a screen that is read again and again.

mod bar;
mod rows;
mod screen;
#[cfg(test)]
mod tests;
mod usage;
mod watch;

use std::{collections::BTreeMap, time::Duration};

use anyhow::Result;
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::cluster::InspectedArgs;
use crate::{
    cli::{
        CommandAnswer,
        documents::Document,
        output::{self, WideFormat},
        simulate::{PreparedSimulation, prepare},
        simulated_cluster::SimulatedCluster,
    },
    config::Config,
};

pub use bar::Glyphs;
pub use rows::UsageTable;
pub use screen::{KeyEffect, TopReading, TopScreen};
pub use usage::{ClusterUsage, UsageScope};

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
    /// Show it on the whole screen, and read the cluster again and again; keys are listed at the bottom
    #[arg(short, long)]
    pub watch: bool,
    /// With --watch, how long to wait between two readings
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = watch::interval, requires = "watch")]
    pub interval: Duration,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = WideFormat::Table)]
    pub output: WideFormat,
    /// Which cluster
    #[command(flatten)]
    pub cluster: InspectedArgs,
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

/// The order of rows.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum SortBy {
    /// The most memory in use first.
    Memory,
    /// The most compute in use first.
    Cores,
    /// By name.
    Name,
}

/// One view, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum TopAnswer<'a> {
    Nodes(&'a [usage::NodeUsage]),
    Models(&'a [usage::ModelUsage]),
    Namespaces(&'a [usage::NamespaceUsage]),
}

impl TopArgs {
    fn glyphs(&self) -> Glyphs {
        let value = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        if self.ascii { Glyphs::Ascii } else { Glyphs::of_locale(value) }
    }

    /// What is used in the cluster of these documents, and what was odd about them.
    fn usage(&self, documents: &[Document], config: &Config) -> Result<(ClusterUsage, Vec<String>)> {
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
        let mut usage = ClusterUsage::of(cluster.scheduler(), reader.dialects(), &waiting, scope);
        usage.sort(self.sort_by);
        Ok((usage, warnings))
    }
}

/// Prints what is used, or shows it until it is told to end.
pub async fn run(args: TopArgs, config: Config) -> Result<CommandAnswer> {
    if args.watch {
        return watch::run(args, config).await;
    }
    let (documents, left_out) = args.cluster.inspected().await?.cards().await?;
    let (usage, warnings) = args.usage(&documents, &config)?;
    for warning in left_out.into_iter().chain(warnings) {
        output::remark(&format!("warning: {warning}"));
    }
    let answer = match args.view {
        TopView::Nodes => TopAnswer::Nodes(&usage.nodes),
        TopView::Models => TopAnswer::Models(&usage.models),
        TopView::Namespaces => TopAnswer::Namespaces(&usage.namespaces),
    };
    let table = |detail| UsageTable::of(&usage, args.view, detail, args.glyphs()).shown();
    args.output.print(&answer, table)?;
    Ok(CommandAnswer::Yes)
}
