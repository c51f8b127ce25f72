//! Pods that wait for room on a node that was nominated for them: it is kept for them against pods of lower priority, the cards that
//! they will get included.
//!
//! Source: v1.36 `pkg/scheduler/framework/runtime/framework.go` (`RunFilterPluginsWithNominatedPods`). The pods of other schedulers
//! count too: their room was made by evicting others. Of these no cards are known.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;

use super::{ledger::Held, node_state::NodeState, quota::Quotas, resource_claims::KeptDevices};
use crate::{
    device::{Allocation, CardUsage, InitPhase, ProfileName, usage},
    scheduling::model::{
        footprint::Footprint,
        kept_room::RoomCourse,
        name::{NodeName, Uid},
        pod::{Ask, Claim, Demand, PodInfo, PreemptionPolicy},
    },
};

/// Every nominated pod that holds nothing yet.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Nominations {
    by_pod: BTreeMap<Uid, Nomination>,
    by_node: BTreeMap<NodeName, BTreeSet<Uid>>,
}

/// A node that is kept for a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Nomination {
    node: NodeName,
    priority: i32,
    footprint: Arc<Footprint>,
    /// What it asks for, where Berth places it.
    ask: Option<Arc<Ask>>,
    /// Whether the pod's status states it.
    stated: bool,
    /// The pods that are deleted to make room for it, or that have to end first where room is kept.
    victims: BTreeSet<Uid>,
    /// The cards that are kept for it.
    cards: Vec<Allocation>,
    /// The devices that are kept for its claims.
    devices: KeptDevices,
    /// Since when room is kept for it because it waits long; `None`: it waits for pods that are deleted for it.
    room_since: Option<Timestamp>,
}

/// A nominated pod whose cards are to be chosen.
#[derive(Debug)]
pub(in crate::scheduling) struct Nominee {
    /// The pod.
    pub(in crate::scheduling) pod: Uid,
    /// What it asks for.
    pub(in crate::scheduling) ask: Arc<Ask>,
    /// What it is to the plugins beside its cards.
    pub(in crate::scheduling) footprint: Arc<Footprint>,
    /// The pods that are deleted to make room for it, or that have to end first where room is kept.
    pub(in crate::scheduling) victims: BTreeSet<Uid>,
    /// Its priority.
    pub(in crate::scheduling) priority: i32,
    /// The devices that are kept for it so far.
    pub(in crate::scheduling) devices: KeptDevices,
}

impl Nominee {
    /// What it asks for, as if it had no node yet.
    pub(in crate::scheduling) fn demand(&self) -> Demand {
        Demand {
            ask: self.ask.clone(),
            footprint: self.footprint.clone(),
            priority: self.priority,
            uid: self.pod.clone(),
            preemption_policy: PreemptionPolicy::Never,
            group: None,
            nominated: None,
            origin: None,
            served: None,
            taken: Arc::default(),
        }
    }
}

impl Nominations {
    /// Takes in what a pod's status says; whether that differs from what was known. A nomination that is still to be
    /// written is kept where the status states none.
    pub(in crate::scheduling) fn see(&mut self, pod: &PodInfo) -> bool {
        let known = self.by_pod.get(&pod.key.uid);
        let Some(node) = &pod.status.nominated else {
            return known.is_some_and(|known| known.stated) && self.remove(&pod.key.uid);
        };
        let known = known.filter(|known| known.node == *node);
        let (victims, cards) = known.map(|known| (known.victims.clone(), known.cards.clone())).unzip();
        let devices = known.map(|known| known.devices.clone()).unwrap_or_default();
        let stated = pod.status.room.filter(|room| room.course == RoomCourse::Kept);
        let room_since = known.and_then(|known| known.room_since).or(stated.map(|room| room.since));
        let nomination = Nomination {
            stated: true,
            victims: victims.unwrap_or_default(),
            cards: cards.unwrap_or_default(),
            devices,
            room_since,
            ..Nomination::new(pod, node)
        };
        self.set(&pod.key.uid, nomination)
    }

    /// Keeps the node for the pod, for which these pods of it are deleted; or, with the time since when, until these have ended.
    pub(in crate::scheduling) fn plan(
        &mut self,
        pod: &PodInfo,
        node: &NodeName,
        victims: BTreeSet<Uid>,
        room_since: Option<Timestamp>,
    ) {
        // Who has to end first is found anew for a room whose nomination stands in the status.
        let is_stated = |known: &Nomination| known.stated && known.node == *node && room_since.is_some();
        let stated = self.by_pod.get(&pod.key.uid).is_some_and(is_stated);
        self.set(&pod.key.uid, Nomination { stated, victims, room_since, ..Nomination::new(pod, node) });
    }

    /// Since when room is kept for the pod because it waits long; `None`: none is.
    pub fn room_since(&self, pod: &Uid) -> Option<Timestamp> {
        self.by_pod.get(pod)?.room_since
    }

    /// The pods for which room is kept because they wait long, each with its priority, its node and the time since when.
    pub fn rooms(&self) -> impl Iterator<Item = (&Uid, i32, &NodeName, Timestamp)> {
        self.by_pod.iter().filter_map(|(uid, one)| Some((uid, one.priority, &one.node, one.room_since?)))
    }

    /// The pod's status states the nomination, whether that has been seen or not.
    pub(in crate::scheduling) fn note_written(&mut self, pod: &Uid) {
        if let Some(nomination) = self.by_pod.get_mut(pod) {
            nomination.stated = true;
        }
    }

    fn set(&mut self, pod: &Uid, nomination: Nomination) -> bool {
        if self.by_pod.get(pod) == Some(&nomination) {
            return false;
        }
        self.remove(pod);
        self.by_node.entry(nomination.node.clone()).or_default().insert(pod.clone());
        self.by_pod.insert(pod.clone(), nomination);
        true
    }

    /// Takes out a pod that holds something or is gone; whether it was nominated.
    pub(in crate::scheduling) fn remove(&mut self, pod: &Uid) -> bool {
        let Some(nomination) = self.by_pod.remove(pod) else { return false };
        if let Some(pods) = self.by_node.get_mut(&nomination.node) {
            pods.remove(pod);
            if pods.is_empty() {
                self.by_node.remove(&nomination.node);
            }
        }
        true
    }

    /// Whether no node is kept for a pod.
    pub(in crate::scheduling) fn is_empty(&self) -> bool {
        self.by_pod.is_empty()
    }

    /// Whether the pod is nominated.
    pub(in crate::scheduling) fn holds(&self, pod: &Uid) -> bool {
        self.by_pod.contains_key(pod)
    }

    /// What a pod asks for, with the node that is kept for it, whether its status states that already or not; `None`: it wants no place.
    pub(in crate::scheduling) fn demand(&self, pod: &PodInfo) -> Option<Demand> {
        let demand = pod.demand()?;
        Some(Demand { nominated: self.node_of(&pod.key.uid).cloned().or(demand.nominated), ..demand })
    }

    /// The node that is kept for the pod.
    pub fn node_of(&self, pod: &Uid) -> Option<&NodeName> {
        self.by_pod.get(pod).map(|nomination| &nomination.node)
    }

    /// The pods for which this node is kept.
    pub(in crate::scheduling) fn on_node(&self, node: &NodeName) -> Vec<Uid> {
        self.by_node.get(node).into_iter().flatten().cloned().collect()
    }

    /// The pods that Berth places for which this node is kept and whose priority is lower than this.
    pub(in crate::scheduling) fn below(&self, priority: i32, node: &NodeName) -> Vec<Uid> {
        let pods = self.by_node.get(node).into_iter().flatten();
        let is_below = |one: &Nomination| one.ask.is_some() && one.priority < priority;
        pods.filter(|uid| self.by_pod.get(*uid).is_some_and(is_below)).cloned().collect()
    }

    /// The pods that Berth places for which this node is kept, in the order in which they choose their cards: by priority.
    pub(in crate::scheduling) fn nominees(&self, node: &NodeName) -> Vec<Nominee> {
        let pods = self.by_node.get(node).into_iter().flatten();
        let mut nominees: Vec<_> = pods
            .filter_map(|pod| {
                let Nomination { ask, footprint, priority, victims, devices, .. } = self.by_pod.get(pod)?;
                let (ask, footprint, victims) = (ask.clone()?, footprint.clone(), victims.clone());
                let (pod, priority, devices) = (pod.clone(), *priority, devices.clone());
                Some((Reverse(priority), Nominee { pod, ask, footprint, victims, priority, devices }))
            })
            .collect();
        nominees.sort_by_key(|(priority, _)| *priority);
        nominees.into_iter().map(|(_, nominee)| nominee).collect()
    }

    /// The cards that are kept for the pod.
    pub fn cards(&self, pod: &Uid) -> &[Allocation] {
        self.by_pod.get(pod).map_or(&[], |nomination| &nomination.cards)
    }

    /// Keeps these cards for the pod.
    pub(in crate::scheduling) fn keep_cards(&mut self, pod: &Uid, cards: Vec<Allocation>) {
        if let Some(nomination) = self.by_pod.get_mut(pod) {
            nomination.cards = cards;
        }
    }

    /// Keeps these devices for the pod.
    pub(in crate::scheduling) fn keep_devices(&mut self, pod: &Uid, devices: KeptDevices) {
        if let Some(nomination) = self.by_pod.get_mut(pod) {
            nomination.devices = devices;
        }
    }

    /// The nodes that are kept for pods which claims of devices may serve, and whose devices have another stamp than when some were chosen.
    pub(in crate::scheduling) fn with_other_devices(
        &self,
        stamp: impl Fn(&NodeName) -> u64,
    ) -> BTreeSet<NodeName> {
        let may_claim = |one: &&Nomination| {
            one.ask.is_some() && one.footprint.may_use_devices() && one.devices.stamp() != stamp(&one.node)
        };
        self.by_pod.values().filter(may_claim).map(|one| one.node.clone()).collect()
    }

    /// The other pods that are nominated and of no lower priority.
    fn others<'a>(&'a self, demand: &'a Demand) -> impl Fn(&Uid) -> Option<&'a Nomination> {
        move |uid| {
            let nomination = self.by_pod.get(uid).filter(|_| *uid != demand.uid);
            nomination.filter(|nomination| nomination.priority >= demand.priority)
        }
    }

    /// The pods of this priority that Berth places, and the nodes that are kept for them.
    pub(in crate::scheduling) fn of_priority(
        &self,
        priority: i32,
    ) -> impl Iterator<Item = (&Uid, &NodeName)> {
        let pods = self.by_pod.iter().filter(move |(_, one)| one.priority == priority && one.ask.is_some());
        pods.map(|(uid, one)| (uid, &one.node))
    }

    /// The pods that are deleted to make room for this one, or that have to end first where room is kept for it.
    pub(in crate::scheduling) fn victims(&self, pod: &Uid) -> impl Iterator<Item = &Uid> {
        self.by_pod.get(pod).into_iter().flat_map(|nomination| &nomination.victims)
    }

    /// Whether this node is kept for a pod of higher priority.
    pub(in crate::scheduling) fn has_above(&self, priority: i32, node: &NodeName) -> bool {
        let mut pods = self.by_node.get(node).into_iter().flatten();
        pods.any(|uid| self.by_pod.get(uid).is_some_and(|one| one.priority > priority))
    }

    /// What is kept of the quotas of a pod's namespace for other pods of no lower priority.
    pub(in crate::scheduling) fn kept_of_quota(&self, demand: &Demand) -> Held {
        let others = self.by_pod.keys().filter_map(self.others(demand));
        kept_in(&demand.footprint.namespace, others)
    }

    /// What is kept of the quotas of a pod's namespace for other pods, whatever their priority.
    pub(in crate::scheduling) fn kept_of_namespace(&self, demand: &Demand) -> Held {
        let others = self.by_pod.iter().filter(|(uid, _)| **uid != demand.uid);
        kept_in(&demand.footprint.namespace, others.map(|(_, nomination)| nomination))
    }

    /// The pods of the namespace that the quotas have no room for beside what is used and what is kept for those of no lower priority.
    pub(in crate::scheduling) fn beyond(&self, namespace: &str, quotas: &Quotas) -> Vec<Uid> {
        let of_namespace = |(_, one): &(&Uid, &Nomination)| *one.footprint.namespace == *namespace;
        let mut nominees: Vec<_> = self.by_pod.iter().filter(of_namespace).collect();
        nominees.sort_by_key(|(_, one)| Reverse(one.priority));
        let (mut kept, mut beyond) = (Held::default(), Vec::new());
        for (uid, nomination) in nominees {
            let held = nomination.of_quota();
            let is_over = |(profile, more): (&ProfileName, &CardUsage)| {
                let beside = kept.get(profile).copied().unwrap_or_default();
                quotas.exceeded_beside(namespace, profile, *more, beside).is_some()
            };
            if held.iter().any(is_over) {
                beyond.push(uid.clone());
            } else {
                add(&mut kept, held);
            }
        }
        beyond
    }

    /// Whether a node is kept for a pod of this namespace.
    pub(in crate::scheduling) fn has_of(&self, namespace: &str) -> bool {
        self.by_pod.values().any(|one| *one.footprint.namespace == *namespace)
    }

    /// Whether the pod is to be deleted for one of those that a node is kept for, or has to end before that one finds room.
    pub(in crate::scheduling) fn is_victim(&self, pod: &Uid) -> bool {
        self.by_pod.values().any(|one| one.victims.contains(pod))
    }

    /// The node as it would be with the other pods on it that it is kept for against this one; `None`: there are none.
    pub(in crate::scheduling) fn kept(&self, demand: &Demand, node: &NodeState) -> Option<NodeState> {
        let pods = self.by_node.get(&node.info.name)?;
        let others: Vec<_> = pods.iter().filter_map(self.others(demand)).collect();
        if others.is_empty() {
            return None;
        }
        let footprints = others.iter().map(|nomination| nomination.footprint.clone()).collect();
        let cards = others.iter().flat_map(|nomination| &nomination.cards);
        let state = node.clone().beside(footprints, cards);
        Some(others.iter().fold(state, |state, nomination| nomination.devices.keep_on(state)))
    }
}

/// What is kept of the quotas of a namespace for those of these pods that are in it.
fn kept_in<'a>(namespace: &str, pods: impl Iterator<Item = &'a Nomination>) -> Held {
    let mut held = Held::default();
    for nomination in pods.filter(|one| *one.footprint.namespace == *namespace) {
        add(&mut held, nomination.of_quota());
    }
    held
}

fn add(to: &mut Held, more: Held) {
    for (profile, more) in more {
        let total = to.entry(profile).or_default();
        *total = total.and(more);
    }
}

impl Nomination {
    /// What it takes of the quotas of its namespace: its cards, and at least what it asks for where none could be chosen yet.
    fn of_quota(&self) -> Held {
        let mut held = Held::default();
        for allocation in &self.cards {
            let one = usage::total(&allocation.assignment, InitPhase::Ahead);
            add(&mut held, Held::from([(allocation.profile.clone(), one)]));
        }
        if self.cards.is_empty() {
            for device in self.ask.iter().flat_map(|ask| &ask.devices) {
                add(&mut held, Held::from([(device.profile.name.clone(), device.request.least())]));
            }
        }
        held
    }

    fn new(pod: &PodInfo, node: &NodeName) -> Self {
        Self {
            node: node.clone(),
            priority: pod.importance.priority,
            footprint: pod.footprint.clone(),
            ask: match &pod.claim {
                Claim::Place(ask) => Some(ask.clone()),
                Claim::None | Claim::Unreadable(_) => None,
            },
            stated: false,
            victims: BTreeSet::new(),
            cards: Vec::new(),
            devices: KeptDevices::default(),
            room_since: None,
        }
    }
}
