//! Comparing claims with the devices of nodes beside the decisions, where that takes longer than a decision may: selectors that are expensive to
//! evaluate, many devices, a long search.
//!
//! A comparison is made of what never changes: the claims, the nodes and what is held of devices as they stood. What it finds holds for a
//! node as long as neither the node nor its devices have changed; which devices selectors admit holds for as long as a device is published as it
//! was. It must not decide which pod is compared next.

use std::{fmt, ops::ControlFlow, sync::Arc};

use super::outlook::Outlook;
use crate::scheduling::plugin::{
    claim_fits::{Asked, Compared, NodeJudge as _, Unfinished, is_unfinished},
    dynamic_resources::PodClaims,
};
use crate::{
    dra::Toll,
    scheduling::{
        model::{name::NodeName, pod::Demand, steps::Allowance},
        plugin::pod_counts::PodCounts,
        world::World,
    },
};

/// What the claims of a pod are to be compared with.
#[derive(Clone)]
pub struct ClaimComparison(Arc<Task>);

struct Task {
    demand: Demand,
    outlook: Outlook,
    unfinished: Unfinished,
}

/// What a comparison has found.
#[derive(Clone)]
pub struct ComparedClaims {
    namespace: Arc<str>,
    asked: Asked,
    compared: Vec<Compared>,
}

impl ClaimComparison {
    /// What the last decision for this pod has left to be compared; `None`: nothing.
    pub(in crate::scheduling) fn left(
        demand: &Demand,
        counts: &mut PodCounts,
        outlook: impl FnOnce() -> Outlook,
    ) -> Option<Self> {
        let unfinished = counts.claim_fits().take_unfinished()?;
        Some(Self(Arc::new(Task { demand: demand.clone(), outlook: outlook(), unfinished })))
    }

    /// The namespace of the pod.
    pub fn namespace(&self) -> &Arc<str> {
        &self.0.demand.footprint.namespace
    }

    /// Compares one node after another. `go_on` is asked before what may take long; when it says no, what was found until then is the result.
    pub fn run(&self, mut go_on: impl FnMut(Toll) -> ControlFlow<()>) -> ComparedClaims {
        let Task { demand, outlook, unfinished } = &*self.0;
        let mut compared = Vec::new();
        // An error holds on every node, so that the next decision finds it too.
        if let Ok(Some(claims)) = PodClaims::read(demand, outlook.world(), Allowance::UNLIMITED) {
            for (slot, node) in &unfinished.nodes {
                let one = compare(&claims, (*slot, node), self, &mut go_on);
                let is_last = one.as_ref().is_some_and(|one| one.found.is_none());
                compared.extend(one);
                if is_last {
                    break;
                }
            }
        }
        ComparedClaims { namespace: self.namespace().clone(), asked: unfinished.asked.clone(), compared }
    }
}

/// `None`: there is no such node.
fn compare(
    claims: &PodClaims<'_>,
    (slot, node): (usize, &NodeName),
    comparison: &ClaimComparison,
    go_on: &mut dyn FnMut(Toll) -> ControlFlow<()>,
) -> Option<Compared> {
    let Task { outlook, unfinished, .. } = &*comparison.0;
    let state = outlook.world().node(node)?;
    let mut selected = unfinished.selected(slot);
    let found = claims.judge(state, &mut selected, go_on);
    Some(Compared {
        slot,
        node: node.clone(),
        generation: state.generation,
        stamp: outlook.world().resource_claims().stamp(node),
        found: (!is_unfinished(&found)).then_some(found),
        selected,
    })
}

impl ComparedClaims {
    /// The namespace of the pod.
    pub fn namespace(&self) -> &Arc<str> {
        &self.namespace
    }

    /// How many nodes have been compared.
    pub fn nodes(&self) -> usize {
        self.compared.iter().filter(|one| one.found.is_some()).count()
    }

    /// Keeps what was found, where it still holds.
    pub(in crate::scheduling) fn keep(self, counts: &mut PodCounts, world: &World) {
        counts.claim_fits().take_in(&self.asked, self.compared, world);
    }
}

/// Two are equal if they are the same.
impl PartialEq for ClaimComparison {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ClaimComparison {}

impl fmt::Debug for ClaimComparison {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.0.unfinished.nodes.len();
        formatter
            .debug_struct("ClaimComparison")
            .field("pod", &self.0.demand.uid)
            .field("nodes", &nodes)
            .finish()
    }
}

impl fmt::Debug for ComparedClaims {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (namespace, nodes) = (&self.namespace, self.nodes());
        let mut shown = formatter.debug_struct("ComparedClaims");
        shown.field("namespace", namespace).field("nodes", &nodes).finish_non_exhaustive()
    }
}
