//! What kube-scheduler's extender protocol asks of cards: which of the named nodes would have a pod, whether preemption could help on the
//! others, and how well each suits.
//!
//! The cards alone are judged: kube-scheduler runs all other plugins itself. Nothing is decided or held here.

use std::collections::BTreeSet;

use super::Plan;
use crate::device::{Quota, Usage};
use crate::scheduling::{
    decide::{outlook::Outlook, verdict::judge},
    model::{
        name::{NodeName, Uid},
        pod::Demand,
    },
    plugin::{NodeReasons, Reason},
    snapshot::Snapshot,
    world::{
        ledger::Held,
        node_state::{self, NodeState},
    },
};

/// The highest score that an extender gives a node (`k8s.io/kube-scheduler/extender/v1`, `MaxExtenderPriority`).
pub const MOST_PRIORITY: i64 = 10;
/// So much of a score of cards, which is at most 100, is one point of an extender's.
const PER_POINT: f64 = 10.0;

/// What one node makes of a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Standing {
    /// It would have the pod; its score is from 0 to [`MOST_PRIORITY`].
    Fits(i64),
    /// It would not as it is, but might without some of its pods.
    Fails(String),
    /// It would not, whichever of its pods were gone.
    FailsEmpty(String),
}

/// What each of these nodes makes of a pod, in their order.
pub fn standings(demand: &Demand, outlook: &Outlook, names: &[String]) -> Vec<Standing> {
    let world = outlook.world();
    let quotas = world.quotas().left_for(demand, &Held::default());
    let of = |name: &String| match world.node(name) {
        Some(state) => match standing(demand, state, world.device_resources(), &quotas) {
            // A pod would wait there for longer than kube-scheduler does.
            Standing::Fits(_) if outlook.is_passed_over(name) => Standing::Fits(0),
            standing => standing,
        },
        None => Standing::Fails("Berth has not seen the node yet".to_owned()),
    };
    names.iter().map(of).collect()
}

fn standing(demand: &Demand, state: &NodeState, own: &BTreeSet<String>, quotas: &[Quota]) -> Standing {
    let reasons = match judge(&demand.ask, state, own, quotas) {
        Ok((_, scores)) => return Standing::Fits(priority(scores.devices())),
        Err(reasons) => words(&reasons),
    };
    match judge(&demand.ask, &without_pods(state), own, &[]) {
        Ok(_) => Standing::Fails(reasons),
        Err(_) => Standing::FailsEmpty(reasons),
    }
}

/// The node as it would be without any pod.
fn without_pods(state: &NodeState) -> NodeState {
    NodeState {
        usage: state.info.devices.joined(Usage::default()),
        beside_claims: None,
        requested: node_state::requested(&[]),
        pods: Vec::new(),
        anti_affinity: Vec::new(),
        ..state.clone()
    }
}

/// A score of cards, 0 to 100, as an extender's.
#[expect(clippy::cast_possible_truncation, reason = "a score of at most 100 is meant to lose its fraction")]
fn priority(devices: f64) -> i64 {
    (devices / PER_POINT).round() as i64
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
    now.node(node).is_some_and(|state| judge(&demand.ask, state, now.device_resources(), &quotas).is_ok())
}

/// Reasons for a person, each once.
pub(in crate::scheduling) fn words(reasons: &NodeReasons) -> String {
    let kinds: BTreeSet<_> = reasons.iter().map(Reason::kind).collect();
    kinds.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
