//! Which pods to move so that whole cards become free, as JSON.
//!
//! What moves is found by `scheduling/plan/moves`; here stands how it is asked, and shown as far as a viewer may see it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::ApiError;
use crate::{
    cluster::{Reader, report::gpus::ModelGpus},
    device::ModelFilter,
    scheduling::{
        PodKey, Snapshot,
        decide::class::Classes,
        plan::moves::{self, MovablePods, MoveGoal, MovePlan, NodeCard, PodMove, Unmovable},
        plugin::score::weights::ScoreWeights,
        world::World,
    },
};

/// What is asked about moves.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct MovesQuestion {
    /// So many whole cards are to become free; `None`: as many as pay.
    pub free: Option<u32>,
    /// Cards whose model contains this, whatever the case.
    pub model: Option<String>,
    /// Cards of this node.
    pub node: Option<String>,
}

impl MovesQuestion {
    /// The question of a query.
    ///
    /// # Errors
    ///
    /// A parameter that can't be read, or is not known.
    pub(super) fn of(query: &[(String, String)]) -> Result<Self, ApiError> {
        let mut question = Self::default();
        for (key, value) in query {
            match &**key {
                "free" => question.free = Some(cards(value)?),
                "model" => question.model = Some(value.clone()),
                "node" => question.node = Some(value.clone()),
                _ => {
                    let why = format!("{key:?} is no parameter: free, model and node are");
                    return Err(ApiError::BadRequest(why));
                }
            }
        }
        Ok(question)
    }

    fn goal(&self) -> MoveGoal {
        MoveGoal {
            free: self.free.map(|free| free as usize),
            models: ModelFilter {
                any_of: self.model.iter().map(|model| vec![model.clone()]).collect(),
                none_of: Vec::new(),
            },
            node: self.node.as_deref().map(Into::into),
        }
    }
}

fn cards(text: &str) -> Result<u32, ApiError> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| ApiError::BadRequest(format!("free: {text:?} is no number of cards from 1 on")))
}

/// Moves that answer a question, and how the cards are used before and after them.
#[derive(Debug)]
pub struct AnsweredMoves {
    /// The moves.
    pub plan: MovePlan,
    before: f64,
    after: f64,
}

impl AnsweredMoves {
    /// The moves of these pods that answer the question best. The cluster is as it was afterwards.
    pub fn of(
        question: &MovesQuestion,
        snapshot: &mut Snapshot,
        pods: &MovablePods,
        (reader, weights): (&Reader, ScoreWeights),
    ) -> Self {
        let before = fragmentation(snapshot.world(), reader);
        let plan = moves::plan(snapshot, &mut Classes::new(weights), pods, &question.goal());
        let after = fragmentation(&plan.after, reader);
        Self { plan, before, after }
    }

    /// What is shown of them, with the names of pods of the namespaces that are shown.
    pub fn report(&self, shows: impl Fn(&str) -> bool) -> MovesReport {
        MovesReport::of(&self.plan, self.before, self.after, shows)
    }
}

/// How much of the GPUs is free where a pod that may come can't use it, in percent.
fn fragmentation(world: &World, reader: &Reader) -> f64 {
    let nodes = world.nodes().map(|state| &**state);
    let shapes = world.packing().shared_shapes().into_iter();
    let gpus = ModelGpus::of_all(nodes, reader.dialects(), shapes);
    if gpus.capacity > 0.0 { 100.0 * gpus.fragmented.max(0.0) / gpus.capacity } else { 0.0 }
}

/// Which pods move, and what that wins.
#[derive(Clone, Debug, Serialize)]
pub struct MovesReport {
    /// The moves in their order.
    pub moves: Vec<MoveRow>,
    /// What they win.
    pub frees: FreedRow,
    /// How the GPUs are used now.
    pub before: PackingRow,
    /// How they would be used.
    pub after: PackingRow,
    /// How many pods hold cards that count and are not moved, by reason.
    unmovable: BTreeMap<&'static str, usize>,
    /// The same, for people.
    #[serde(skip)]
    pub kept: BTreeMap<Unmovable, usize>,
}

/// A pod that moves.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MoveRow {
    /// The pod.
    #[serde(flatten)]
    pub pod: MovedPod,
    /// Its node.
    pub from: String,
    /// The node that it is given.
    pub to: String,
    /// The cards that it is given there.
    pub cards: Vec<String>,
    /// The pods that must have moved before, as `namespace/name`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// How many others must have moved before, which are not shown by name.
    #[serde(skip_serializing_if = "is_zero")]
    pub after_others: usize,
    /// Cards that must be cordoned while it moves, beside those that become free.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cordon: Vec<NodeCardRow>,
}

/// The pod of a move.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum MovedPod {
    /// By name.
    Named {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// One that is not shown by name.
    Others {
        /// 1.
        others: usize,
    },
}

/// A card of a node.
#[derive(Clone, Debug, Serialize)]
pub struct NodeCardRow {
    /// The node.
    pub node: String,
    /// The card.
    pub card: String,
}

/// What becomes free.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FreedRow {
    /// How many more GPUs are free than before.
    pub whole_gpus: usize,
    /// Their nodes.
    pub nodes: Vec<String>,
    /// The cards.
    pub cards: Vec<NodeCardRow>,
}

/// How the GPUs are used.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PackingRow {
    /// FGD's fragmentation, in percent of all GPUs.
    pub fragmentation_percent: f64,
}

impl From<&NodeCard> for NodeCardRow {
    fn from(NodeCard { node, card }: &NodeCard) -> Self {
        Self { node: node.to_string(), card: card.to_string() }
    }
}

impl MovedPod {
    /// The pod's name, if it is shown.
    pub fn name(&self) -> String {
        match self {
            Self::Named { namespace, name } => format!("{namespace}/{name}"),
            Self::Others { others } => format!("{others} other"),
        }
    }
}

impl MoveRow {
    /// A move, with the names of pods of the namespaces that are shown.
    fn of(one: &PodMove, shows: &impl Fn(&str) -> bool) -> Self {
        let PodKey { namespace, name, .. } = &one.pod;
        let pod = if shows(namespace) {
            MovedPod::Named { namespace: namespace.to_string(), name: name.to_string() }
        } else {
            MovedPod::Others { others: 1 }
        };
        let (after, others): (Vec<_>, Vec<_>) = one.after.iter().partition(|pod| shows(&pod.namespace));
        Self {
            pod,
            from: one.from.to_string(),
            to: one.to.to_string(),
            cards: one.cards.iter().map(ToString::to_string).collect(),
            after: after.into_iter().map(ToString::to_string).collect(),
            after_others: others.len(),
            cordon: one.closed.iter().map(NodeCardRow::from).collect(),
        }
    }
}

impl MovesReport {
    /// A plan, with FGD's fragmentation before and after it, in percent, and with the names of pods of the namespaces that are shown.
    fn of(plan: &MovePlan, before: f64, after: f64, shows: impl Fn(&str) -> bool) -> Self {
        let nodes: BTreeSet<_> = plan.freed.iter().map(|freed| freed.node.to_string()).collect();
        Self {
            moves: plan.moves.iter().map(|one| MoveRow::of(one, &shows)).collect(),
            frees: FreedRow {
                whole_gpus: plan.won,
                nodes: nodes.into_iter().collect(),
                cards: plan.freed.iter().map(NodeCardRow::from).collect(),
            },
            before: PackingRow { fragmentation_percent: rounded(before) },
            after: PackingRow { fragmentation_percent: rounded(after) },
            unmovable: plan.kept.iter().map(|(reason, pods)| (reason.as_str(), *pods)).collect(),
            kept: plan.kept.clone(),
        }
    }
}

/// To a hundredth.
fn rounded(percent: f64) -> f64 {
    (percent * 100.0).round() / 100.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn query(pairs: &[(&str, &str)]) -> Result<MovesQuestion, ApiError> {
        let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        MovesQuestion::of(&pairs.collect::<Vec<_>>())
    }

    #[test]
    fn a_parameter_that_is_wrong_is_named() {
        let asked = query(&[("free", "2"), ("model", "A100"), ("node", "gpu-1")]).unwrap();
        let (model, node) = (Some("A100".to_owned()), Some("gpu-1".to_owned()));
        assert_eq!(asked, MovesQuestion { free: Some(2), model, node });
        for (wrong, said) in [
            (("free", "0"), "free: \"0\" is no number of cards from 1 on"),
            (("free", "x"), "free: \"x\" is no number of cards from 1 on"),
            (("apply", "1"), "\"apply\" is no parameter: free, model and node are"),
        ] {
            assert_eq!(query(&[wrong]).unwrap_err().to_string(), said);
        }
    }

    #[test]
    fn pods_of_namespaces_that_the_viewer_may_not_list_are_amounts() {
        let key = |namespace: &str| PodKey {
            namespace: namespace.into(),
            name: "secret".into(),
            uid: namespace.into(),
        };
        let one = |namespace: &str, after: &[&str]| PodMove {
            pod: key(namespace),
            from: "gpu-1".into(),
            to: "gpu-2".into(),
            cards: BTreeSet::new(),
            after: after.iter().map(|namespace| key(namespace)).collect(),
            closed: BTreeSet::new(),
        };
        let shown = |one: PodMove| {
            serde_json::to_value(MoveRow::of(&one, &|namespace: &str| namespace == "a")).unwrap()
        };
        let own = json!({"namespace": "a", "name": "secret", "from": "gpu-1", "to": "gpu-2", "cards": [],
            "after": ["a/secret"], "afterOthers": 1});
        assert_eq!(shown(one("a", &["a", "b"])), own);
        let theirs = json!({"others": 1, "from": "gpu-1", "to": "gpu-2", "cards": [], "afterOthers": 1});
        assert_eq!(shown(one("b", &["b"])), theirs);
    }
}
