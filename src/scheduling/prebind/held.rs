//! Places that pods hold while their claims are being bound: no container runs there, and others may wait for them.
//!
//! A pod holds its place for as long as it likes while nobody else needs it. After half a minute it goes to a pod of no lower priority that fits
//! nowhere and would fit there; the holder is decided again after that one, and its volumes are made meanwhile. A namespace may hold only a part of
//! the cluster's cards in this way, beside one pod or one gang.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{
    Prebinding, flow::PrebindFlow, reason::PrebindReason, request::PrebindRequest, step::ClaimStep,
    view::PrebindView,
};
use crate::{
    device::{DeviceType, Inventory},
    scheduling::{
        decide::Decision,
        model::{
            gang::GangName,
            name::{NodeName, Uid},
            pod::{PodInfo, PodKey},
            prebind_step::PrebindStep,
        },
        plan::held_places::{HeldCard, Holders, cards},
        queue::Queue,
    },
};

/// The cards that a pod would hold while it waits for volumes.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduling) enum Wanted<'a> {
    /// Those of this decision.
    Decided(&'a Decision),
    /// Some, for the pod's gang, which may hold more as a whole.
    ForGang,
}

impl Prebinding {
    /// Has pods say what they wait for on their nodes, and gives the places of others to those that need them from now on.
    pub(super) fn watch_held(&mut self, now: Timestamp) {
        let mut nodes = BTreeSet::new();
        for (uid, flow) in self.flows.iter_mut().filter(|(_, flow)| flow.is_held_for_long(now)) {
            if flow.is_to_yield(now) {
                flow.yields = true;
                nodes.insert(flow.node.clone());
            }
            if !std::mem::replace(&mut flow.is_said, true) {
                self.requests.push(PrebindRequest::Tell(uid.clone(), flow.held()));
            }
        }
        self.requests.extend(nodes.into_iter().map(PrebindRequest::WakeForHeld));
    }

    /// Whether a pod gives its place to others.
    pub(in crate::scheduling) fn yields_any(&self) -> bool {
        self.flows.values().any(|flow| flow.yields)
    }

    /// Whether a pod gives its place on this node to others.
    pub(in crate::scheduling) fn yields_on(&self, node: &NodeName) -> bool {
        self.flows.values().any(|flow| flow.yields && flow.node == *node)
    }

    /// The pods of no higher priority than this that give their places to others, by node, in the order in which they go; not those of the gang of
    /// this pod. One that would hold such a place again takes none of its own namespace's while pods of others are to be decided: else the pods of
    /// one namespace would pass their places on to each other.
    pub(in crate::scheduling) fn yielding(
        &self,
        priority: i32,
        pod: Option<&Uid>,
        queue: &Queue,
        view: &PrebindView<'_>,
    ) -> Holders {
        let pod = pod.and_then(|uid| view.pods.pod(uid));
        let own = pod.and_then(|pod| gang_name(pod, view));
        let left_to_others = pod.filter(|pod| lacks_volume(pod, view)).and_then(|pod| {
            let own = &pod.key.namespace;
            let comes_first = queue.namespaces().chain(queue.early_namespaces()).any(|other| other != own);
            comes_first.then_some(own)
        });
        let mut holders: Holders = BTreeMap::new();
        for (uid, flow) in self.flows.iter().filter(|(_, flow)| flow.yields) {
            let Some(charge) = view.snapshot.ledger().get(uid) else { continue };
            let its = charge.importance.priority;
            let is_left = left_to_others == Some(&charge.pod.namespace);
            if its <= priority && !is_left && (own.is_none() || gang_of(uid, view) != own) {
                holders.entry(flow.node.clone()).or_default().push((its, flow.since, uid.clone()));
            }
        }
        for holders in holders.values_mut() {
            holders.sort();
        }
        holders
    }

    /// Gives the place of a pod whose claims are being bound to others. What was written for its volumes stays, as kube-scheduler's Unreserve
    /// leaves it: they are made meanwhile.
    pub(super) fn put_back(&mut self, uid: &Uid, now: Timestamp) {
        let Some(mut flow) = self.flows.remove(uid) else { return };
        let reason = flow.lost();
        let is_volume = |step: &mut ClaimStep| step.choice.volume().is_some();
        let volumes = flow.steps.extract_if(.., is_volume).collect();
        self.park(
            uid,
            PrebindFlow { steps: volumes, node: flow.node.clone(), pod: flow.pod.clone(), ..flow },
            now,
        );
        self.take_back(flow);
        self.requests.push(PrebindRequest::PutBehind(uid.clone()));
        self.requests.push(PrebindRequest::BackOff(uid.clone(), reason));
    }

    /// Keeps in mind what was written for volumes of a pod that has lost its place.
    fn park(&mut self, uid: &Uid, mut parked: PrebindFlow, now: Timestamp) {
        for step in &mut parked.steps {
            step.drop_answer(now);
        }
        self.parked.insert(uid.clone(), parked);
    }

    /// The pod has a place again: what was written for its volumes and is no part of that is taken back. Returns what is part of it.
    pub(super) fn take_up_parked(
        &mut self,
        uid: &Uid,
        node: &NodeName,
        steps: &[PrebindStep],
    ) -> Vec<PrebindStep> {
        let Some(mut parked) = self.parked.remove(uid) else { return Vec::new() };
        let stays =
            |step: &mut ClaimStep| parked.node == *node && steps.contains(&step.choice) && step.tries > 0;
        let taken: Vec<ClaimStep> = parked.steps.extract_if(.., stays).collect();
        self.take_back(parked);
        taken.into_iter().map(|step| step.choice).collect()
    }

    /// The pod is gone: what was written for its volumes while it had a place is taken back.
    pub(super) fn drop_parked(&mut self, pod: &PodKey) {
        if let Some(parked) = self.parked.remove(&pod.uid) {
            self.take_back(parked);
        }
    }

    /// The pod is bound, with its volumes.
    pub(in crate::scheduling) fn end_parked(&mut self, pod: &Uid) {
        self.parked.remove(pod);
    }

    /// Why a pod waits that would hold these cards until its volumes are bound: its namespace holds as many of the cluster's so as it may. `None`:
    /// it may hold them. One pod may hold more, and a pod that takes a share of cards that are held already holds no more.
    pub(in crate::scheduling) fn exceeded_part(
        &self,
        uid: &Uid,
        wanted: Wanted<'_>,
        view: &PrebindView<'_>,
    ) -> Option<PrebindReason> {
        let pod = view.pods.pod(uid)?;
        let waits = match wanted {
            Wanted::Decided(decision) => decision.steps.iter().any(|step| step.volume().is_some()),
            Wanted::ForGang => lacks_volume(pod, view),
        };
        if !waits {
            return None;
        }
        let held = self.held_beside(pod, view);
        let more = match wanted {
            Wanted::Decided(Decision { node, allocations, .. }) => {
                cards(node, allocations).difference(&held).count()
            }
            Wanted::ForGang => 1,
        };
        if held.is_empty() || more == 0 || self.is_within_part(held.len() + more, view) {
            return None;
        }
        let (namespace, percent) = (pod.key.namespace.clone(), self.held_percent);
        Some(PrebindReason::PartHeld { namespace, percent })
    }

    /// The cards that other pods of the pod's namespace hold while they wait for volumes; those of its gang do not count.
    fn held_beside(&self, pod: &PodInfo, view: &PrebindView<'_>) -> BTreeSet<HeldCard> {
        let (own, namespace) = (gang_name(pod, view), &pod.key.namespace);
        let others = self.flows.iter().filter(|(_, flow)| flow.waits_for_others());
        let others = others.filter(|(uid, _)| own.is_none() || gang_of(uid, view) != own);
        let charges = others.filter_map(|(uid, _)| view.snapshot.ledger().get(uid));
        let charges = charges.filter(|charge| charge.pod.namespace == *namespace);
        charges.flat_map(|charge| cards(&charge.node, &charge.allocations)).collect()
    }

    /// Whether so many cards are no more than the pods of a namespace may hold while they wait for volumes.
    fn is_within_part(&self, cards: usize, view: &PrebindView<'_>) -> bool {
        let inventories = view.snapshot.nodes().flat_map(|node| &node.info.devices.offers);
        let inventories = inventories.filter_map(|offer| offer.inventory.as_deref());
        let of =
            |inventory: &Inventory| inventory.cards().len() + inventory.devices().of(DeviceType::Gpu).count();
        let all: usize = inventories.map(of).sum();
        cards * 100 <= all * usize::try_from(self.held_percent).unwrap_or(usize::MAX)
    }
}

/// Whether a claim of the pod is still to be bound to a volume.
fn lacks_volume(pod: &PodInfo, view: &PrebindView<'_>) -> bool {
    let (objects, footprint) = (view.snapshot.objects(), &pod.footprint);
    let claim = |name: &str| objects.claim(&footprint.namespace, name);
    footprint.claims.iter().any(|used| claim(&used.name).is_some_and(|claim| !claim.is_bound()))
}

/// The gang that the pod is placed with.
fn gang_name(pod: &PodInfo, view: &PrebindView<'_>) -> Option<GangName> {
    pod.groups.gang().map(|member| view.snapshot.objects().groups().root(&member.gang))
}

fn gang_of(pod: &Uid, view: &PrebindView<'_>) -> Option<GangName> {
    view.pods.pod(pod).and_then(|pod| gang_name(pod, view))
}
