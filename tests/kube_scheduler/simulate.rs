//! What Berth makes of a cluster: `berth simulate`, as a user calls it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::build::Release;

/// What a call prints, as far as it is read here.
#[derive(Deserialize)]
struct Simulation {
    pods: Vec<PodRow>,
}

/// What is printed of one pod.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodRow {
    name: String,
    outcome: String,
    /// The node that is kept for it where only preemption helps.
    pub(crate) nominated_node: Option<String>,
    /// The pods that would go, as `namespace/name`.
    #[serde(default)]
    pub(crate) victims: Vec<String>,
    /// Absent where a pod is held back before any node is looked at.
    #[serde(default)]
    nodes: Vec<NodeVerdict>,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    violations: Vec<Value>,
}

/// Berth's verdict on one node.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct NodeVerdict {
    name: String,
    /// Whether the pod fits.
    pub(crate) fits: bool,
    #[serde(default)]
    reasons: Vec<Reason>,
    /// By plugin, before the weights; absent where the plugin has nothing to score for the pod.
    #[serde(default)]
    pub(crate) scores: BTreeMap<String, f64>,
}

#[derive(Clone, Debug, Deserialize)]
struct Reason {
    reason: String,
}

impl NodeVerdict {
    /// Why not, by name.
    pub(crate) fn reasons(&self) -> Vec<&str> {
        self.reasons.iter().map(|reason| reason.reason.as_str()).collect()
    }
}

/// A file of settings with which Berth scores by every plugin that kube-scheduler scores by, and the release that is followed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings(&'static str, Release);

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kube_scheduler/settings");

impl Settings {
    /// Those in which kube-scheduler's defaults are.
    pub(crate) const fn usual(release: Release) -> Self {
        Self("least-allocated.yaml", release)
    }

    /// Those for the cluster of this seed: each strategy has its turn.
    pub(crate) fn of(seed: u64, release: Release) -> Self {
        match seed % 3 {
            0 => Self::usual(release),
            1 => Self("most-allocated.yaml", release),
            _ => Self("requested-to-capacity-ratio.yaml", release),
        }
    }

    fn read(self) -> Value {
        serde_saphyr::from_str(&fs::read_to_string(Path::new(FOLDER).join(self.0)).unwrap()).unwrap()
    }

    /// A file with the settings for this release.
    fn path(self) -> PathBuf {
        static WRITTEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
        let name = format!("follow-1.{}-{}", self.1.minor(), self.0);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut written = WRITTEN.lock().unwrap();
        if written.insert(path.clone()) {
            let mut settings = self.read();
            settings["scheduling"]["kubeScheduler"] = format!("v1.{}", self.1.minor()).into();
            fs::write(&path, settings.to_string()).unwrap();
        }
        path
    }

    /// What the file says to NodeResourcesFit, with the keys of kube-scheduler's configuration; `None`: nothing.
    pub(crate) fn scoring_strategy(self) -> Option<Value> {
        self.read().pointer("/scheduling/pluginConfig/NodeResourcesFit/scoringStrategy").cloned()
    }
}

/// What each node, by name, makes of the pod with these settings; empty where the pod is held back whatever the node.
pub(crate) fn simulate(
    items: &[&Value],
    pod: &str,
    settings: Settings,
) -> Result<BTreeMap<String, NodeVerdict>, String> {
    Ok(row(items, pod, settings)?.nodes.into_iter().map(|node| (node.name.clone(), node)).collect())
}

/// What is printed of the pod with these settings.
pub(crate) fn row(items: &[&Value], pod: &str, settings: Settings) -> Result<PodRow, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    command.args(["simulate", "-f", "-", "--explain", "-o", "json", "--skip-admission"]);
    command.args(["--at", "2026-01-01T00:00:00Z"]).env("BERTH_CONFIG", settings.path());
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    // Berth reads all of it before it writes.
    child.stdin.take().unwrap().write_all(list.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    if !output.status.success() {
        return Err(format!("berth: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    let simulation: Simulation = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let row = simulation.pods.into_iter().find(|row| row.name == pod).ok_or("berth: no such pod")?;
    match row.outcome.as_str() {
        "Bound" | "Unschedulable" => Ok(row),
        outcome => Err(format!("berth: {pod} is {outcome}: {:?} {:?}", row.warnings, row.violations)),
    }
}
