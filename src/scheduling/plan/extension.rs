//! What kube-scheduler's extender protocol asks of cards: which of the named nodes would have a pod, whether preemption could help on the
//! others, and how well each suits.
//!
//! The cards alone are judged: kube-scheduler runs all other plugins itself. Nothing is decided or held here.

use std::{collections::BTreeSet, sync::Arc};

use super::Plan;
use crate::device::{Quota, Usage};
use crate::scheduling::{
    decide::{outlook::Outlook, verdict::judge},
    model::{
        name::{NodeName, Uid},
        pod::Demand,
    },
    plugin::{
        NodeReasons, Plugin, Reason,
        contract::FeasibleNodes,
        cycle::Preferences,
        filter::filter,
        score::{NormalisedScores, RawScores, Scores},
    },
    snapshot::Snapshot,
    world::{
        World,
        ledger::Held,
        node_state::{self, ClaimedOnNode, NodeState},
    },
};

/// The highest score that an extender gives a node (`k8s.io/kube-scheduler/extender/v1`, `MaxExtenderPriority`).
pub const MOST_PRIORITY: i64 = 10;
/// So much of a score of cards, which is at most 100, is one point of an extender's.
const PER_POINT: f64 = 10.0;

/// What one node makes of a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NodeStanding {
    /// It would have the pod; its score is from 0 to [`MOST_PRIORITY`].
    Fits(i64),
    /// It would not as it is, but might without some of its pods.
    Fails(String),
    /// It would not, whichever of its pods were gone.
    FailsEmpty(String),
}

/// What each of these nodes makes of a pod, in their order.
pub fn standings(demand: &Demand, outlook: &Outlook, names: &[String]) -> Vec<NodeStanding> {
    let world = outlook.world();
    let quotas = world.quotas().left_for(demand, &Held::default());
    let of = |name: &String| match world.node(name) {
        Some(state) => judged(demand, state, world, &quotas),
        None => Err(NodeStanding::Fails("Berth has not seen the node yet".to_owned())),
    };
    let judged: Vec<_> = names.iter().map(of).collect();
    let fitting: Vec<_> = judged.iter().filter_map(|one| one.as_ref().ok()).copied().collect();
    let slots: Vec<_> = fitting.iter().map(|(node, _)| node.slot).collect();
    let feasible = FeasibleNodes { slots: &slots, nodes: &world.nodes };
    let raw = fitting.iter().map(|(_, raw)| raw).collect();
    let scores = NormalisedScores::of(&Preferences::default(), feasible, raw);
    let mut scores = scores.of_nodes();
    let standing = |(name, judged): (&String, Result<_, NodeStanding>)| match judged {
        Ok(_) => {
            let points = scores.next().map_or(0, |scores| priority(&scores));
            // A pod would wait on a node that is passed over for longer than kube-scheduler does.
            NodeStanding::Fits(if outlook.is_passed_over(name) { 0 } else { points })
        }
        Err(standing) => standing,
    };
    names.iter().zip(judged).map(standing).collect()
}

/// The node with its raw scores, or what it is to a pod that does not fit.
fn judged<'a>(
    demand: &Demand,
    node: &'a Arc<NodeState>,
    world: &World,
    quotas: &[Quota],
) -> Result<(&'a Arc<NodeState>, RawScores), NodeStanding> {
    let reasons = match judge(&demand.ask, node, world.into(), quotas) {
        Ok((_, scores)) => return Ok((node, scores.exact(world.packing()))),
        Err(reasons) => words(&reasons),
    };
    match filter(&demand.ask, &without_pods(node), world.device_resources(), &[]) {
        Ok(_) => Err(NodeStanding::Fails(reasons)),
        Err(_) => Err(NodeStanding::FailsEmpty(reasons)),
    }
}

/// The node as it would be without any pod.
fn without_pods(state: &NodeState) -> NodeState {
    NodeState {
        usage: state.info.devices.joined(Usage::default()),
        claimed: ClaimedOnNode::default(),
        requested: node_state::requested(&[]),
        pods: Vec::new(),
        anti_affinity: Vec::new(),
        ..state.clone()
    }
}

/// The score of the node's cards, 0 to 100, as an extender's.
#[expect(clippy::cast_possible_truncation, reason = "a score of at most 100 is meant to lose its fraction")]
fn priority(scores: &Scores) -> i64 {
    let of_cards = |plugin: &Plugin| matches!(plugin, Plugin::Devices | Plugin::LeastWaste);
    let mut scores = scores.by_plugin().filter(|(plugin, _)| of_cards(plugin));
    let score = scores.next().map_or(0.0, |(_, score)| score.clamp(0.0, 100.0));
    (score / PER_POINT).round() as i64
}

/// Whether a node would have the pod if these of its pods were gone.
pub(in crate::scheduling) fn is_relieved(
    demand: &Demand,
    node: &NodeName,
    victims: &[Uid],
    snapshot: &mut Snapshot,
) -> bool {
    let mut plan = Plan::new(snapshot);
    for victim in victims {
        plan.evict(victim);
    }
    let now: &Snapshot = &plan;
    let quotas = now.quotas().left_for(demand, &Held::default());
    now.node(node).is_some_and(|state| filter(&demand.ask, state, now.device_resources(), &quotas).is_ok())
}

/// Reasons for a person, each once.
pub(in crate::scheduling) fn words(reasons: &NodeReasons) -> String {
    let kinds: BTreeSet<_> = reasons.iter().map(Reason::kind).collect();
    kinds.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
