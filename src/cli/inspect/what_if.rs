//! `berth what-if`: where pods would go if the cluster, or they themselves, were different.

use std::{collections::BTreeSet, path::PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::{Args, builder::Resettable};
use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{
    berth_api::{Answerer, ApiArgs, BerthApi},
    cluster::{InspectedArgs, InspectedCluster},
};
use crate::{
    api::what_if::{MoreNodes, WhatIfQuestion},
    cli::{
        CommandAnswer,
        connection::ConnectionArgs,
        documents::{self, Document},
        output::{Detail, Shown, WideFormat},
        simulate,
    },
    cluster::Clock,
    config::Config,
    simulation::{self, Simulation, added_names},
};

/// Why nothing is asked.
const NO_POD: &str = "--filename: there is no pod, nor a workload that makes one";

/// So many nodes can be added at most.
const MOST_NODES: u16 = 10_000;

/// Arguments of `berth what-if`.
#[derive(Args, Clone, Debug)]
#[command(
    mut_arg("through", |arg| arg.conflicts_with(Resettable::Reset)),
    mut_arg("berth_namespace", |arg| arg.conflicts_with(Resettable::Reset)),
    mut_arg("berth_server", |arg| arg.conflicts_with(Resettable::Reset).conflicts_with_all(["through", "berth_namespace"])),
    after_help = "Examples: with four more nodes like gpu-7; without a pod that holds cards; in a cluster that `berth dump` has written
  berth what-if -f pod.yaml --add-nodes 4 --like gpu-7
  berth what-if -f pod.yaml --without research/training-0
  berth what-if -f pod.yaml -f cluster/ --cordon gpu-7"
)]
pub struct WhatIfArgs {
    /// Pods and workloads; and a file or folder with the nodes of a cluster [default: those of the live cluster]
    #[arg(short, long = "filename", alias = "file", value_name = "FILE|DIR|-", required = true)]
    pub file: Vec<PathBuf>,
    /// Add so many nodes
    #[arg(long, value_name = "N", requires = "like", value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST_NODES)))]
    pub add_nodes: Option<u16>,
    /// The node that added nodes are like
    #[arg(long, value_name = "NODE", requires = "add_nodes")]
    pub like: Option<String>,
    /// Leave out a pod of the cluster, as NAMESPACE/NAME; may be given several times
    #[arg(long, value_name = "POD")]
    pub without: Vec<String>,
    /// Cordon a node; may be given several times
    #[arg(long, value_name = "NODE")]
    pub cordon: Vec<String>,
    /// Give the pods this priority
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub priority: Option<i32>,
    /// The current time to assume, which makes the output reproducible [default: now]
    #[arg(long, value_name = "RFC3339")]
    pub at: Option<Timestamp>,
    /// Which cluster
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Who answers
    #[command(flatten)]
    pub api: ApiArgs,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = WideFormat::Table)]
    pub output: WideFormat,
}

/// Prints where the pods would go.
pub async fn run(args: WhatIfArgs, config: Config) -> Result<CommandAnswer> {
    let (mut cluster, mut asked) = (Vec::new(), Vec::new());
    for file in &args.file {
        let read = documents::read(std::slice::from_ref(file))?;
        let is_of_cluster = read.iter().any(|document| document.kind() == "Node");
        (if is_of_cluster { &mut cluster } else { &mut asked }).extend(read);
    }
    if asked.is_empty() {
        bail!("--filename: there is no pod beside the cluster");
    }
    let asked = prioritised(asked, args.priority);
    if cluster.is_empty() {
        let inspected = InspectedArgs { file: Vec::new(), at: args.at, connection: args.connection.clone() };
        cluster = match args.api.answerer(&inspected).await? {
            Answerer::Objects(live) => live.documents().await?,
            Answerer::Api(api, live) => {
                let namespace = live.as_ref().map_or("default", InspectedCluster::namespace);
                return told(&api, asked, &args, (namespace, &config)).await;
            }
        };
    } else if args.api.is_given() {
        bail!(
            "--through, --berth-server and --berth-namespace are for a live cluster, and --filename has the nodes of one"
        );
    }
    let cluster = changed(cluster, &args)?;
    let now = args.at.unwrap_or_else(|| Clock::System.now());
    let simulation = simulate::placed(cluster, asked, &config, now)?;
    if simulation.pods.is_empty() {
        bail!("{NO_POD}");
    }
    args.output.print(&simulation, |detail| table(&simulation, detail))?;
    Ok(CommandAnswer::Yes)
}

/// Prints where the pods would go, as Berth's API tells it. Pods that name no namespace are in this one.
async fn told(
    api: &BerthApi,
    asked: Vec<Document>,
    args: &WhatIfArgs,
    (namespace, config): (&str, &Config),
) -> Result<CommandAnswer> {
    let (pods, others) = simulate::pods_alone(&asked, config)?;
    documents::tell_skipped(
        others.iter().map(Document::kind),
        "is not asked of Berth's API, as it makes no pod, or one for each node",
    );
    if pods.is_empty() {
        bail!("{NO_POD}");
    }
    let question = WhatIfQuestion {
        pods: pods.into_iter().map(|pod| in_namespace(pod.value, namespace)).collect(),
        add_nodes: args
            .add_nodes
            .zip(args.like.clone())
            .map(|(count, like)| MoreNodes { count: count.into(), like }),
        without: args.without.clone(),
        cordon: args.cordon.clone(),
        priority: args.priority,
    };
    let answer: Value = api.post("what-if", &question).await?;
    let mut simulation =
        Simulation::deserialize(&answer).context("the answer of Berth's API can't be read")?;
    simulation.name_cards();
    args.output.print(&answer, |detail| table(&simulation, detail))?;
    Ok(CommandAnswer::Yes)
}

/// The pods, and the cards of the nodes that they get; in a wide table those of all nodes.
fn table(simulation: &Simulation, detail: Detail) -> Shown {
    if detail == Detail::Wide {
        return simulate::table(simulation, simulate::ShownNodes::All);
    }
    let taken: Vec<String> = simulation.pods.iter().filter_map(|pod| pod.node.clone()).collect();
    simulate::table(simulation, simulate::ShownNodes::Named(&taken))
}

/// The pod, in this namespace where it names none.
fn in_namespace(mut pod: Value, namespace: &str) -> Value {
    if let Some(metadata) = pod.get_mut("metadata").and_then(Value::as_object_mut) {
        let named = metadata.get("namespace").and_then(Value::as_str).is_some_and(|named| !named.is_empty());
        if !named {
            metadata.insert("namespace".to_owned(), namespace.into());
        }
    }
    pod
}

/// The pods with this priority.
fn prioritised(mut asked: Vec<Document>, priority: Option<i32>) -> Vec<Document> {
    let Some(priority) = priority else { return asked };
    for document in &mut asked {
        set_priority(&mut document.value, priority);
    }
    asked
}

/// Sets it in every specification of a pod that the object holds.
fn set_priority(value: &mut Value, priority: i32) {
    match value {
        Value::Object(fields) if fields.get("containers").is_some_and(Value::is_array) => {
            fields.remove("priorityClassName");
            fields.insert("priority".to_owned(), priority.into());
        }
        Value::Object(fields) => fields.values_mut().for_each(|value| set_priority(value, priority)),
        Value::Array(items) => items.iter_mut().for_each(|value| set_priority(value, priority)),
        _ => {}
    }
}

/// The cluster as the arguments want it.
fn changed(mut cluster: Vec<Document>, args: &WhatIfArgs) -> Result<Vec<Document>> {
    for pod in &args.without {
        let is_it = |document: &Document| document.kind() == "Pod" && called(document) == *pod;
        if !cluster.iter().any(is_it) {
            bail!("--without {pod}: there is no such pod; name it as NAMESPACE/NAME");
        }
        cluster.retain(|document| !is_it(document));
    }
    if let (Some(count), Some(like)) = (args.add_nodes, &args.like) {
        add(&mut cluster, usize::from(count), like)?;
    }
    for node in &args.cordon {
        let found = cluster.iter_mut().find(|document| is_node(document, node));
        let Some(found) = found else { bail!("--cordon {node}: there is no such node") };
        let Some(fields) = found.value.as_object_mut() else { continue };
        let spec = fields.entry("spec").or_insert_with(|| json!({}));
        if let Some(spec) = spec.as_object_mut() {
            spec.insert("unschedulable".to_owned(), true.into());
        }
    }
    Ok(cluster)
}

/// Adds so many nodes that are like this one.
fn add(cluster: &mut Vec<Document>, count: usize, like: &str) -> Result<()> {
    if !cluster.iter().any(|document| is_node(document, like)) {
        bail!("--like {like}: there is no such node");
    }
    let names: BTreeSet<&str> =
        cluster.iter().filter(|document| document.kind() == "Node").filter_map(Document::name).collect();
    let added = added_names(like, count, |name| names.contains(name));
    let of_node: Vec<_> = cluster.iter().filter(|document| belongs(document, like)).cloned().collect();
    for name in added {
        cluster.extend(of_node.iter().map(|document| Document {
            value: renamed(document.value.clone(), like, &name),
            place: document.place.clone(),
        }));
    }
    Ok(())
}

fn called(document: &Document) -> String {
    format!("{}/{}", document.namespace_or_default(), document.name().unwrap_or_default())
}

fn is_node(document: &Document, name: &str) -> bool {
    document.kind() == "Node" && document.name() == Some(name)
}

/// Whether the object says what a node is or has.
fn belongs(document: &Document, node: &str) -> bool {
    match document.kind() {
        "Node" | "CSINode" | "Device" => document.name() == Some(node),
        "ResourceSlice" => document.value.pointer("/spec/nodeName").and_then(Value::as_str) == Some(node),
        _ => false,
    }
}

/// The same for another node: each text that is the node's name is the other's, and names that begin with it begin with the other's.
fn renamed(value: Value, from: &str, to: &str) -> Value {
    match value {
        Value::String(text) => simulation::renamed(&text, from, to).unwrap_or(text).into(),
        Value::Array(items) => items.into_iter().map(|item| renamed(item, from, to)).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(key, _)| key != "uid");
            fields.map(|(key, value)| (key, renamed(value, from, to))).collect()
        }
        other => other,
    }
}
