//! A node without some of its pods, as a pod would find it for which they go: in a plan, or by itself where nothing beside the node counts.

use std::sync::Arc;

use super::{NodeCharges, TrialFit, trial_fit, unit::PreemptionUnit};
use crate::scheduling::{
    decide::Filters,
    model::{
        name::{NodeName, Uid},
        pod::Demand,
        steps::Allowance,
    },
    plan::Plan,
    plugin::{devices::lacks_cards, filter::filter, pod_counts::PodCounts},
    snapshot::{Snapshot, least_usage, with_charges},
    world::{ledger::Charge, node_state::NodeState},
};

/// A node that pods are taken off on trial.
pub(super) trait DryRun {
    /// Its name.
    fn node(&self) -> &NodeName;

    /// Takes pods off that go together, for the pod of this demand.
    fn take_off(&mut self, unit: &mut PreemptionUnit, demand: &Demand);

    /// Puts pods back.
    fn put_back(&mut self, unit: &mut PreemptionUnit);

    /// What the node makes of the pod as it stands.
    fn fits(&self, demand: &Demand, counts: &mut PodCounts, allowance: &mut Allowance) -> TrialFit;
}

/// The whole cluster, of which a plan takes the pods off: it holds for any pod.
pub(super) struct InPlan<'t, 'a> {
    pub(super) plan: &'t mut Plan<'a>,
    pub(super) node: &'t NodeName,
}

impl DryRun for InPlan<'_, '_> {
    fn node(&self) -> &NodeName {
        self.node
    }

    fn take_off(&mut self, unit: &mut PreemptionUnit, demand: &Demand) {
        unit.take_off(|pod| self.plan.end(pod, demand));
    }

    fn put_back(&mut self, unit: &mut PreemptionUnit) {
        unit.put_back(|pod, charge| self.plan.place(pod, charge));
    }

    fn fits(&self, demand: &Demand, counts: &mut PodCounts, allowance: &mut Allowance) -> TrialFit {
        trial_fit(demand, self.plan, self.node, counts, allowance)
    }
}

/// Whether what a node makes of the pod depends on that node alone, whichever pods end: no plugin looks at more for it, no quota bounds it, and it uses
/// neither a claim of devices nor a Reservation.
pub(super) fn looks_at_one_node(demand: &Demand, snapshot: &Snapshot, counts: &mut PodCounts) -> bool {
    // To prepare for claims of devices is to compare these, which takes long.
    if demand.footprint.may_use_devices() || demand.footprint.reservation.is_some() {
        return false;
    }
    let filters = Filters::prepare_to_preempt(demand, snapshot.world(), counts);
    filters.look_at_one_node() && !filters.has_quota()
}

/// One node, folded without the pods that are off.
pub(super) struct OnNode<'a> {
    snapshot: &'a Snapshot,
    state: &'a NodeState,
    /// What is on the node, by uid.
    charges: NodeCharges<'a>,
    /// Whether each of these is off.
    off: Vec<bool>,
}

impl<'a> OnNode<'a> {
    /// The node with all its pods; `None`: more than what is on the node counts, since it is kept for a pod, or since one of those that may go uses a claim
    /// of devices.
    pub(super) fn of(
        snapshot: &'a Snapshot,
        state: &'a NodeState,
        charges: NodeCharges<'a>,
        potential: &[PreemptionUnit],
    ) -> Option<Self> {
        let is_tried = |pod: &Uid| potential.iter().any(|unit| unit.tried().contains(pod));
        let uses_claims = |(pod, charge): &(&Uid, &Arc<Charge>)| {
            let uses = charge.uses_devices() || snapshot.resource_claims().used_by(pod).next().is_some();
            uses && is_tried(pod)
        };
        let is_kept = !snapshot.nominations().is_empty()
            && !snapshot.nominations().on_node(&state.info.name).is_empty();
        if is_kept || charges.iter().any(uses_claims) {
            return None;
        }
        Some(Self { snapshot, state, off: vec![false; charges.len()], charges })
    }

    fn place_of(&self, pod: &Uid) -> Option<usize> {
        // Those that may go bear the names that they have here, which need not be compared as texts.
        let same = self.charges.iter().position(|(known, _)| Arc::ptr_eq(known, pod));
        same.or_else(|| self.charges.binary_search_by(|(known, _)| (*known).cmp(pod)).ok())
    }
}

impl DryRun for OnNode<'_> {
    fn node(&self) -> &NodeName {
        &self.state.info.name
    }

    fn take_off(&mut self, unit: &mut PreemptionUnit, _: &Demand) {
        unit.take_off(|pod| {
            let at = self.place_of(pod)?;
            self.off[at] = true;
            Some(Arc::clone(self.charges[at].1))
        });
    }

    fn put_back(&mut self, unit: &mut PreemptionUnit) {
        unit.put_back(|pod, _| {
            if let Some(at) = self.place_of(pod) {
                self.off[at] = false;
            }
        });
    }

    fn fits(&self, demand: &Demand, _: &mut PodCounts, _: &mut Allowance) -> TrialFit {
        let mut staying: Vec<&Charge> = Vec::with_capacity(self.charges.len());
        let stays = self.charges.iter().zip(&self.off).filter(|(_, off)| !**off);
        staying.extend(stays.map(|((_, charge), _)| &***charge));
        // Most nodes fail by this, which is found out before the rest of the node is folded.
        if lacks_cards(&demand.ask, self.state, &least_usage(self.snapshot, &self.state.info, &staying)) {
            return TrialFit::Fails;
        }
        let node = with_charges(self.snapshot, self.state, &staying);
        let fits = filter(&demand.ask, &node, self.snapshot.device_resources(), &[]).is_ok();
        if fits { TrialFit::Fits } else { TrialFit::Fails }
    }
}
