//! `berth migrate --plan`: what the pods of a node pool would be as claims of devices, where these would be allocated, and what would not fit.
//!
//! It changes nothing, and reads files or a live cluster. Requests are read by the dialects of admission and of the binder, and the live binder's
//! scheduler places the pods with their claims.

mod cluster;
mod input;
mod objects;
mod place;
mod pool;
mod refusal;
mod report;

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, ValueEnum};

use super::{
    CommandAnswer,
    connection::{ConnectionArgs, not_reached},
    documents::{
        self, Document,
        live::{self, LiveList, Need},
    },
    output,
};
use crate::{
    config::Config,
    dialect::claim::HAMI_DRIVER,
    object::{LabelSelector, selector::UnreadableSelector},
};

use pool::{MigrationPool, PoolClass};
pub use report::MigrationPlan;

const EXAMPLE: &str = "\
Examples: a pool that is given as files, the same pool in the cluster that kubectl reaches, and its claims for kubectl
  berth migrate --plan -f cluster/ --nodes pool=a100
  berth migrate --plan --nodes pool=a100 -o wide
  berth migrate --plan --nodes pool=a100 -o claims | kubectl apply --dry-run=server -f -";

/// What is listed. An API server without Dynamic Resource Allocation has none of its kinds.
const LISTS: [LiveList; 5] = [
    LiveList { path: "/api/v1/nodes", version: "v1", kind: "Node", need: Need::Needed },
    LiveList { path: "/api/v1/pods", version: "v1", kind: "Pod", need: Need::Needed },
    of_devices("/apis/resource.k8s.io/v1/resourceslices", "ResourceSlice"),
    of_devices("/apis/resource.k8s.io/v1/deviceclasses", "DeviceClass"),
    of_devices("/apis/resource.k8s.io/v1/resourceclaims", "ResourceClaim"),
];

const fn of_devices(path: &'static str, kind: &'static str) -> LiveList {
    LiveList { path, version: "resource.k8s.io/v1", kind, need: Need::IfServed }
}

/// Arguments of `berth migrate`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct MigrateArgs {
    /// Plan alone: nothing is changed. Berth serves no other way, so the flag must be given.
    #[arg(long)]
    pub plan: bool,
    /// A file, a folder, or `-` for standard input; may be given several times [default: a live cluster]
    #[arg(short, long = "filename", alias = "file", value_name = "FILE|DIR|-", conflicts_with_all = ["kubeconfig", "context"])]
    pub file: Vec<PathBuf>,
    /// The nodes of the pool, as kubectl selects by label [default: every node that has cards]
    #[arg(long, value_name = "SELECTOR", value_parser = selector)]
    pub nodes: Option<LabelSelector>,
    /// The DeviceClass that claims name
    #[arg(long, value_name = "NAME", default_value = HAMI_DRIVER)]
    pub class: String,
    /// The driver of its devices [default: the one that is called like the class]
    #[arg(long, value_name = "NAME")]
    pub driver: Option<String>,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = PlanFormat::Table)]
    pub output: PlanFormat,
    /// Which cluster
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

/// The form of a plan.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum PlanFormat {
    /// Tables of nodes and pods.
    Table,
    /// The same with the cards that pods have now, and with their claims.
    Wide,
    /// One JSON document.
    Json,
    /// The same as YAML.
    Yaml,
    /// The claims and templates alone, as a List for `kubectl apply`.
    Claims,
}

/// Plans, and prints the plan. No: a pod would not be given all that it asks for.
pub async fn run(args: MigrateArgs, config: Config) -> anyhow::Result<CommandAnswer> {
    if !args.plan {
        bail!("only planning is supported: add --plan");
    }
    let documents = if args.file.is_empty() {
        let (client, cluster) = args.connection.client().await?;
        live::documents(&client, &LISTS, std::convert::identity)
            .await
            .map_err(|error| not_reached(error, &cluster))?
            .0
    } else {
        documents::read(&args.file)?
    };
    let plan = plan(&args, &config, &documents)?;
    for notice in plan.notices() {
        output::remark(&format!("notice: {notice}"));
    }
    match args.output {
        PlanFormat::Table => output::show(&plan.table())?,
        PlanFormat::Wide => output::show(&plan.wide())?,
        PlanFormat::Json => output::print(&plan, output::Format::Json, output::Shown::default)?,
        PlanFormat::Yaml => output::print(&plan, output::Format::Yaml, output::Shown::default)?,
        PlanFormat::Claims => output::print(&plan.list(), output::Format::Json, output::Shown::default)?,
    }
    Ok(if plan.is_complete() { CommandAnswer::Yes } else { CommandAnswer::No })
}

/// The plan for what the documents hold.
pub fn plan(args: &MigrateArgs, config: &Config, documents: &[Document]) -> anyhow::Result<MigrationPlan> {
    let input = input::read(documents)?;
    let unread = input.unread.iter().map(|document| document.kind());
    documents::tell_skipped(unread, "is not used by the plan");
    let class = PoolClass { name: &args.class, driver: args.driver.as_deref().unwrap_or(&args.class) };
    let pool = MigrationPool::of(&input, args.nodes.as_ref(), &config.dialects(), class)?;
    place::place(&input, &pool, config)
}

fn selector(text: &str) -> Result<LabelSelector, UnreadableSelector> {
    text.parse()
}
