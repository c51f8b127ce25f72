//! `berth why`: why a pod waits, what each node makes of it now, and the smallest change with which it would fit.

mod api;
mod groups;
mod history;

use std::ops::ControlFlow;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    berth_api::{Answerer, ApiArgs},
    cluster::{InspectedArgs, InspectedCluster, is_pod},
};
use crate::{
    admission::passage::ReviewVerdict,
    api::{
        change::{self, PodChanges},
        explanation::{ExplanationRow, QueuePlace},
        history::HistoryRow,
    },
    cli::{
        CommandAnswer,
        documents::Document,
        output::{self, Detail, Shown},
        review,
        simulate::{PreparedSimulation, prepare},
    },
    cluster::Reader,
    config::Config,
    object::{Pod, workload::Places},
    scheduling::{Outlook, PodKey, plugin::pod_counts::PodCounts},
    simulation::{SimulatedCluster, SimulatedOutcome, SimulatedPod},
};

/// Arguments of `berth why`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Examples: why a pod waits; and the change with which it would fit, for kubectl\n  berth why -n research training-0\n  berth why -n research training-0 -o patch"
)]
pub struct WhyArgs {
    /// The pod
    #[arg(value_name = "POD")]
    pub pod: String,
    /// Its namespace [default: that of the context, as with kubectl; of files `default`]
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Which cluster
    #[command(flatten)]
    pub cluster: InspectedArgs,
    /// Who answers
    #[command(flatten)]
    pub api: ApiArgs,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = WhyFormat::Table)]
    pub output: WhyFormat,
}

/// The form of the answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum WhyFormat {
    /// Text.
    Table,
    /// The same with the name of every node.
    Wide,
    /// One JSON document.
    Json,
    /// The same as YAML.
    Yaml,
    /// The change alone, as a JSON patch; an empty one if no change helps.
    Patch,
}

/// How far a pod is.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
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
#[derive(Clone, Debug, Deserialize, Serialize)]
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
    /// How often it was decided in vain; the objects of the cluster do not tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
    /// Its place among the pods that wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<QueuePlace>,
    /// What the nodes make of it.
    #[serde(flatten)]
    explained: ExplanationRow,
    /// Why its attempts failed, the latest outcome first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    history: Vec<HistoryRow>,
    /// The smallest change of the pod with which it would fit now.
    #[serde(default, skip_serializing_if = "PodChanges::is_empty")]
    pub change: PodChanges,
}

/// What judges a pod of the cluster as it is now.
struct Judge<'a> {
    outlook: Outlook,
    reader: &'a Reader,
}

/// Explains, and prints the explanation.
pub async fn run(args: WhyArgs, config: Config) -> Result<CommandAnswer> {
    if args.pod.is_empty() {
        bail!("the name of the pod is empty");
    }
    let explanation = match args.api.answerer(&args.cluster).await? {
        Answerer::Objects(cluster) => {
            let namespace = args.namespace.as_deref().unwrap_or_else(|| cluster.namespace());
            let (mut events, objects): (Vec<_>, Vec<_>) =
                cluster.documents().await?.into_iter().partition(|document| document.kind() == "Event");
            let waits = |document: &Document| {
                is_pod(document, namespace, &args.pod) && document.value["spec"]["nodeName"].is_null()
            };
            if let InspectedCluster::Live(client, _) = &cluster
                && objects.iter().any(waits)
            {
                events.extend(history::events(client, namespace, &args.pod).await);
            }
            explain((&objects, &events), &config, (namespace, &args.pod), args.cluster.now())?
        }
        Answerer::Api(api, cluster) => {
            let known = cluster.as_ref().map(InspectedCluster::namespace);
            let namespace = args.namespace.as_deref().or(known).unwrap_or("default");
            api::explain(&api, cluster.as_ref(), &config, (namespace, &args.pod)).await?
        }
    };
    match args.output {
        WhyFormat::Table => output::show(&explanation.shown(Detail::Usual))?,
        WhyFormat::Wide => output::show(&explanation.shown(Detail::Wide))?,
        WhyFormat::Json => output::print(&explanation, output::Format::Json, Shown::default)?,
        WhyFormat::Yaml => output::print(&explanation, output::Format::Yaml, Shown::default)?,
        WhyFormat::Patch => {
            output::print(&explanation.change.patch(), output::Format::Json, Shown::default)?;
        }
    }
    Ok(CommandAnswer::Yes)
}

/// Why the pod of this namespace and name waits in the cluster of these objects, with the history that these Events tell.
pub fn explain(
    (objects, events): (&[Document], &[Document]),
    config: &Config,
    pod: (&str, &str),
    now: Timestamp,
) -> Result<PodExplanation> {
    let explanation = judge(objects, config, pod, now)?;
    if explanation.outcome != PodOutcome::Waiting {
        return Ok(explanation);
    }
    let history = history::of_objects(pod, objects, events);
    Ok(PodExplanation { history, ..explanation })
}

fn judge(
    documents: &[Document],
    config: &Config,
    (namespace, name): (&str, &str),
    now: Timestamp,
) -> Result<PodExplanation> {
    let is_asked = |document: &&Document| is_pod(document, namespace, name);
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
    let is_it = |key: &PodKey| (&*key.namespace, &*key.name) == (namespace, name);
    if !incoming.iter().any(|pod| is_it(&pod.key)) {
        return Ok(PodExplanation { outcome: PodOutcome::NotOurs, ..blank });
    }
    lists.pods.extend(incoming);
    let cluster = SimulatedCluster::new(settings, lists, now);
    let view = cluster.scheduler().view();
    let pending = view.pending();
    let Some(at) = pending.iter().position(|pod| is_it(&pod.key)) else { return Ok(blank) };
    let queue = QueuePlace { position: at + 1, of: pending.len() };
    let blank = PodExplanation { since: Some(pending[at].created), queue: Some(queue), ..blank };
    let Some(demand) = &pending[at].demand else { return Ok(blank) };
    let judge = Judge { outlook: view.outlook(), reader: &reader };
    let go_on = || ControlFlow::Continue(());
    let explained = judge.outlook.explain(demand, PodCounts::default(), go_on);
    let explained = explained.map(ExplanationRow::from).unwrap_or_default();
    let blank = PodExplanation { explained, ..blank };
    if blank.explained.fitting.is_some_and(|fitting| fitting > 0) {
        return Ok(blank);
    }
    let admitted = admitted(document, config, documents)?;
    let change = change::smallest(&admitted, |changed| judge.fits(document, changed));
    Ok(PodExplanation { change, ..blank })
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
            attempts: None,
            queue: None,
            explained: ExplanationRow::default(),
            history: Vec::new(),
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
        Self { outcome, explained: ExplanationRow { message, ..self.explained }, ..self }
    }

    fn shown(&self, detail: Detail) -> Shown {
        let Self { namespace, name, .. } = self;
        let since = self.since.map(|since| format!(" since {}", output::second(since))).unwrap_or_default();
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
            let tries = match self.attempts {
                None => String::new(),
                Some(1) => ", tried once".to_owned(),
                Some(attempts) => format!(", tried {attempts} times"),
            };
            shown = shown.and(&Shown::line(format!("Queue: {position} of {of}{tries}")));
        }
        if let Some(fitting) = self.explained.fitting.filter(|fitting| *fitting > 0) {
            shown = shown.and(&Shown::line(format!("It fits on {fitting} node(s) now.")));
        }
        if let Some(message) = &self.explained.message {
            shown = shown.and(&Shown::line(message));
        }
        if !self.explained.nodes.is_empty() {
            shown = shown.and(&groups::table(&self.explained.nodes, detail));
        }
        if !self.history.is_empty() {
            shown = shown.and(&history::table(&self.history, detail));
        }
        for line in self.change.lines() {
            shown = shown.and(&Shown::line(line));
        }
        shown
    }
}

impl Judge<'_> {
    /// Whether the pod would fit if its object were this one.
    fn fits(&self, document: &Document, changed: &Value) -> bool {
        let Ok(pod) = document.read_part::<Pod>(changed, &Places::default()) else { return false };
        let (info, troubles) = self.reader.pod(&pod);
        let Some(demand) = info.demand().filter(|_| troubles.is_empty()) else { return false };
        self.outlook.fits(&demand)
    }
}
