//! What kube-scheduler's own plugins make of a cluster: the `feasible` program of `tests/controlplane`.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{kube_scheduler::simulate::Settings, support::build::Release};

/// The program of a release.
#[derive(Clone, Debug)]
pub(crate) struct Judge {
    pub(crate) program: PathBuf,
    pub(crate) release: Release,
    /// Feature gates of kube-scheduler, as its flag has them; empty: as they are by default.
    pub(crate) gates: &'static str,
}

/// A program that answers line by line.
pub(crate) struct Plugins {
    /// The release whose plugins these are.
    pub(crate) release: Release,
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// What the program answers about one cluster.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Answer {
    /// Every pod that waits; absent where there is none.
    pub(crate) pods: Option<Vec<PodVerdict>>,
    /// The objects as the API server would have stored them.
    pub(crate) objects: Option<Vec<Value>>,
    /// What the API server would have refused.
    #[serde(default)]
    invalid: Vec<String>,
    #[serde(default)]
    error: String,
}

/// Where one pod could go.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PodVerdict {
    /// The pod's name.
    pub(crate) name: String,
    /// Every node, by name.
    pub(crate) nodes: Vec<NodeVerdict>,
    /// The scores of the nodes that pass, by node.
    #[serde(default)]
    pub(crate) scores: BTreeMap<String, NodeScore>,
    /// What the preemption plugin makes of the pod, where no node fits.
    pub(crate) preemption: Option<PreemptionVerdict>,
}

/// Where room could be made for a pod.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PreemptionVerdict {
    /// Every node where preemption helps; absent where there is none.
    candidates: Option<Vec<Candidate>>,
}

impl PreemptionVerdict {
    /// Every node where preemption helps.
    pub(crate) fn candidates(&self) -> &[Candidate] {
        self.candidates.as_deref().unwrap_or_default()
    }
}

/// Which pods would go from a node.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Candidate {
    /// The node.
    pub(crate) node: String,
    /// The pods, as `namespace/name`.
    pub(crate) victims: Vec<String>,
    /// How many of them a budget does not allow to go.
    pub(crate) violations: u64,
    /// Whether the plugin may choose the node.
    pub(crate) best: bool,
}

/// What the Score plugins make of one node.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct NodeScore {
    /// By plugin, before the weights; absent where the plugin has nothing to score for the pod.
    pub(crate) plugins: BTreeMap<String, i64>,
}

/// Whether one node passes every Filter plugin.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct NodeVerdict {
    /// The node's name.
    pub(crate) name: String,
    /// Whether it passes.
    pub(crate) fits: bool,
    /// The first plugin that it fails.
    #[serde(default)]
    pub(crate) plugin: String,
    /// That plugin's reasons.
    #[serde(default)]
    pub(crate) reasons: Vec<String>,
    /// Whether it fails only by the room that is kept for nominated pods.
    #[serde(default)]
    pub(crate) nominated: bool,
    /// Whether the plugin did not decide but failed with an error.
    #[serde(default)]
    pub(crate) failed: bool,
}

impl PodVerdict {
    /// Whether the plugin gives the node a score unlike that of another node that passes.
    pub(crate) fn scores_apart(&self, node: &str, plugin: &str) -> bool {
        let of = |score: &NodeScore| score.plugins.get(plugin).copied();
        let own = self.scores.get(node).and_then(of);
        self.scores.values().any(|other| of(other) != own)
    }
}

impl Plugins {
    /// Starts the program.
    pub(crate) fn start(judge: &Judge) -> Self {
        let mut command = Command::new(&judge.program);
        let command = command.args(["feasible", "--workers=1", "--gates", judge.gates]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let questions = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { release: judge.release, child, questions, answers }
    }

    /// The answer about these objects with these settings, or why there is none; an object that the API server would refuse is such a reason.
    pub(crate) fn judge(&mut self, items: &[Value], settings: Settings) -> Result<Answer, String> {
        let mut question = json!({"apiVersion": "v1", "kind": "List", "items": items});
        if let Some(strategy) = settings.scoring_strategy() {
            question["scoringStrategy"] = strategy;
        }
        writeln!(self.questions, "{question}").unwrap();
        self.questions.flush().unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let answer: Answer = serde_json::from_str(&line).map_err(|error| format!("{error}: {line}"))?;
        if !answer.invalid.is_empty() {
            return Err(format!("the API server would refuse: {}", answer.invalid.join("; ")));
        }
        if answer.error.is_empty() { Ok(answer) } else { Err(answer.error) }
    }
}

impl Drop for Plugins {
    fn drop(&mut self) {
        let ended = self.child.kill().and_then(|()| self.child.wait());
        if let Err(error) = ended {
            crate::support::server::say(&format!("feasible: {error}"));
        }
    }
}
