//! `berth why`: why a pod waits, what each node makes of it now, and the smallest change with which it would fit.

mod change;
mod groups;

use std::cmp::Reverse;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::cluster::InspectedArgs;
use crate::{
    cli::{
        CommandAnswer,
        documents::Document,
        output::{self, Shown},
        review::{self, ReviewVerdict},
        simulate::{NearestRow, PreparedSimulation, SimulatedOutcome, SimulatedPod, prepare},
        simulated_cluster::SimulatedCluster,
    },
    cluster::Reader,
    config::Config,
    object::{Pod, workload::Places},
    scheduling::{
        PodInfo,
        decide::{Filters, evaluation::Evaluation, verdicts::Verdicts},
        model::pod::Demand,
        plugin::{pod_counts::PodCounts, score::weights::ScoreWeights},
        world::World,
    },
};

pub use change::{ChangedField, PodChanges};
pub use groups::NodeGroup;

/// Arguments of `berth why`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Examples: why a pod waits; and the change with which it would fit, for kubectl\n  berth why -n research training-0\n  berth why -n research training-0 -o patch"
)]
pub struct WhyArgs {
    /// The pod
    #[arg(value_name = "POD")]
    pub pod: String,
    /// Its namespace
    #[arg(short, long, value_name = "NAME", default_value = "default")]
    pub namespace: String,
    /// Which cluster
    #[command(flatten)]
    pub cluster: InspectedArgs,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = WhyFormat::Table)]
    pub output: WhyFormat,
}

/// The form of the answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum WhyFormat {
    /// Text.
    Table,
    /// One JSON document.
    Json,
    /// The same as YAML.
    Yaml,
    /// The change alone, as a JSON patch; an empty one if no change helps.
    Patch,
}

/// How far a pod is.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub enum PodOutcome {
    /// It has no node yet.
    Waiting,
    /// It has one.
    Bound,
    /// The rules refuse it.
    Denied,
    /// Berth does not place it.
    NotOurs,
}

/// Why a pod waits, or that it does not; a key that does not apply is absent.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodExplanation {
    namespace: String,
    name: String,
    /// How far it is.
    pub outcome: PodOutcome,
    /// Since when it waits, or runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    /// Its node.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// Its place among the pods that wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<QueuePlace>,
    /// Why it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// On how many nodes it would fit now.
    #[serde(skip_serializing_if = "Option::is_none")]
    fitting: Option<usize>,
    /// The others, by what they lack.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<NodeGroup>,
    /// The node that comes closest.
    #[serde(skip_serializing_if = "Option::is_none")]
    nearest: Option<NearestRow>,
    /// The smallest change of the pod with which it would fit now.
    #[serde(skip_serializing_if = "PodChanges::is_empty")]
    pub change: PodChanges,
}

/// A place in the queue, from 1: by priority, then age.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
struct QueuePlace {
    position: usize,
    of: usize,
}

/// What judges a pod of the cluster as it is now.
struct Judge<'a> {
    world: &'a World,
    reader: &'a Reader,
    weights: ScoreWeights,
}

/// Explains, and prints the explanation.
pub async fn run(args: WhyArgs, config: Config) -> Result<CommandAnswer> {
    let documents = args.cluster.documents().await?;
    let explanation = explain(&documents, &config, (&args.namespace, &args.pod), args.cluster.now())?;
    match args.output {
        WhyFormat::Table => output::show(&explanation.shown())?,
        WhyFormat::Json => output::print(&explanation, output::Format::Json, Shown::default)?,
        WhyFormat::Yaml => output::print(&explanation, output::Format::Yaml, Shown::default)?,
        WhyFormat::Patch => {
            output::print(&explanation.change.patch(), output::Format::Json, Shown::default)?;
        }
    }
    Ok(CommandAnswer::Yes)
}

/// Why the pod of this namespace and name waits in the cluster of these documents.
pub fn explain(
    documents: &[Document],
    config: &Config,
    (namespace, name): (&str, &str),
    now: Timestamp,
) -> Result<PodExplanation> {
    let is_asked = |document: &&Document| {
        document.kind() == "Pod"
            && document.name() == Some(name)
            && document.namespace_or_default() == namespace
    };
    let Some(document) = documents.iter().find(is_asked) else {
        bail!("pod {name} not found in namespace {namespace}");
    };
    let pod: Pod = document.read()?;
    let blank = PodExplanation::new(namespace, name);
    if let Some(node) = pod.spec.node_name.filter(|node| !node.is_empty()) {
        let since = pod.status.start_time;
        return Ok(PodExplanation { outcome: PodOutcome::Bound, since, node: Some(node), ..blank });
    }
    let PreparedSimulation { reader, settings, mut lists, incoming, left_out, .. } =
        prepare(documents, config, now)?;
    if let Some(row) = left_out.iter().find(|row| (&*row.namespace, &*row.name) == (namespace, name)) {
        return Ok(blank.left_out(row));
    }
    let is_it = |pod: &&PodInfo| (&*pod.key.namespace, &*pod.key.name) == (namespace, name);
    let Some(waiting) = incoming.iter().find(is_it).cloned() else {
        return Ok(PodExplanation { outcome: PodOutcome::NotOurs, ..blank });
    };
    let queue = QueuePlace::of(&waiting, &incoming);
    lists.pods.extend(incoming);
    let weights = settings.weights;
    let cluster = SimulatedCluster::new(settings, lists, now);
    let world = cluster.scheduler().snapshot().world();
    let judge = Judge { world, reader: &reader, weights };
    let blank = PodExplanation { since: Some(waiting.lifetime.created), queue: Some(queue), ..blank };
    let Some(demand) = waiting.demand() else { return Ok(blank) };
    let explained = judge.explain(&demand, blank);
    if explained.fitting.is_some_and(|fitting| fitting > 0) {
        return Ok(explained);
    }
    let admitted = admitted(document, config, documents)?;
    let change = change::smallest(&admitted, |changed| judge.fits(document, changed));
    Ok(PodExplanation { change, ..explained })
}

/// The pod as the webhook would leave it: one of a file may not have met it.
fn admitted(document: &Document, config: &Config, documents: &[Document]) -> Result<Value> {
    let facts = review::facts(documents, config)?;
    let judged = review::judge(document, &Places::default(), &facts)?;
    let mut pod =
        if judged.outcome == ReviewVerdict::Admitted { judged.object } else { document.value.clone() };
    if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("schedulerName".to_owned(), config.scheduler_name.clone().into());
    }
    Ok(pod)
}

impl PodExplanation {
    fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            outcome: PodOutcome::Waiting,
            since: None,
            node: None,
            queue: None,
            message: None,
            fitting: None,
            nodes: Vec::new(),
            nearest: None,
            change: PodChanges::default(),
        }
    }

    /// Of a pod that wants no place, or may have none.
    fn left_out(self, row: &SimulatedPod) -> Self {
        let words = |words: Vec<String>| (!words.is_empty()).then(|| words.join("; "));
        let (outcome, message) = match row.outcome {
            SimulatedOutcome::Denied => {
                (PodOutcome::Denied, words(row.violations.iter().map(ToString::to_string).collect()))
            }
            SimulatedOutcome::Ignored => (PodOutcome::NotOurs, words(row.warnings.clone())),
            SimulatedOutcome::Unschedulable | SimulatedOutcome::Bound => {
                (PodOutcome::Waiting, row.message.clone())
            }
        };
        Self { outcome, message, ..self }
    }

    fn shown(&self) -> Shown {
        let Self { namespace, name, .. } = self;
        let since = self.since.map(|since| format!(" since {since}")).unwrap_or_default();
        let first = match self.outcome {
            PodOutcome::Bound => {
                format!("{namespace}/{name} is on {}{since}", self.node.as_deref().unwrap_or_default())
            }
            PodOutcome::Waiting => format!("{namespace}/{name} waits{since}"),
            PodOutcome::Denied => format!("{namespace}/{name} is denied"),
            PodOutcome::NotOurs => format!("{namespace}/{name} is not placed by Berth"),
        };
        let mut shown = Shown::line(first);
        if let Some(QueuePlace { position, of }) = self.queue {
            shown = shown.and(&Shown::line(format!("Queue: {position} of {of}")));
        }
        if let Some(fitting) = self.fitting.filter(|fitting| *fitting > 0) {
            shown = shown.and(&Shown::line(format!("It fits on {fitting} node(s) now.")));
        }
        if let Some(message) = &self.message {
            shown = shown.and(&Shown::line(message));
        }
        if !self.nodes.is_empty() {
            shown = shown.and(&groups::table(&self.nodes));
        }
        for line in self.change.lines() {
            shown = shown.and(&Shown::line(line));
        }
        shown
    }
}

impl QueuePlace {
    fn of(pod: &PodInfo, waiting: &[PodInfo]) -> Self {
        let place = |pod: &PodInfo| (Reverse(pod.importance.priority), pod.lifetime.created, pod.key.clone());
        let comes_before = |other: &&PodInfo| place(other) < place(pod);
        Self { position: 1 + waiting.iter().filter(comes_before).count(), of: waiting.len() }
    }
}

impl Judge<'_> {
    /// What every node makes of the pod.
    fn explain(&self, demand: &Demand, blank: PodExplanation) -> PodExplanation {
        let mut counts = PodCounts::default();
        let filters = Filters::prepare(demand, self.world, &mut counts);
        if let Some(error) = filters.rejected() {
            return PodExplanation { message: Some(error.to_string()), ..blank };
        }
        let mut verdicts = Verdicts::new(&demand.ask, self.world, self.weights);
        let mut evaluation = Evaluation::of(filters, &mut verdicts, &mut counts, self.weights);
        let judged = evaluation.judge_all();
        let mut groups = groups::NodeGroups::default();
        for (state, verdict) in evaluation.nodes(&judged) {
            if let Err(reasons) = verdict {
                groups.add(&demand.ask, state, reasons, evaluation.filters().quotas());
            }
        }
        let (fitting, nodes) = (judged.fitting(), groups.into_rows());
        if fitting > 0 {
            return PodExplanation { fitting: Some(fitting), nodes, ..blank };
        }
        let error = evaluation.fit_error(&judged.refusals);
        let (message, nearest) = (Some(error.to_string()), error.nearest().map(NearestRow::of));
        PodExplanation { message, fitting: Some(0), nodes, nearest, ..blank }
    }

    /// Whether the pod would fit if its object were this one.
    fn fits(&self, document: &Document, changed: &Value) -> bool {
        let Ok(pod) = document.read_part::<Pod>(changed, &Places::default()) else { return false };
        let (info, troubles) = self.reader.pod(&pod);
        let Some(demand) = info.demand().filter(|_| troubles.is_empty()) else { return false };
        let mut counts = PodCounts::default();
        let filters = Filters::prepare(&demand, self.world, &mut counts);
        if filters.rejected().is_some() {
            return false;
        }
        let mut verdicts = Verdicts::new(&demand.ask, self.world, self.weights);
        Evaluation::of(filters, &mut verdicts, &mut counts, self.weights).choose(|_| 0).is_ok()
    }
}
