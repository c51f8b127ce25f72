//! Gangs: which pods belong to each, and how far it is.
//!
//! What a gang holds is asked of the ledger. Beside it, only two things are remembered of a gang: since when some of its pods are bound and
//! others are not, and whether it was whole at one time.

mod decide;
mod mend;
mod preempt;
mod unfinished;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use super::{Course, PodProgress, Scheduler, decide::assumed, pods::Pods};
use crate::scheduling::{
    decide::Decision,
    model::{
        gang::{Gang, GangName, Member, Membership, Policy, Tally},
        kind::Kind,
        name::{NodeName, Uid},
        pod::{PodInfo, Stage},
    },
    world::ledger::{Charge, Commitment},
};
use unfinished::UnfinishedAttempts;

/// For so long pods wait for the lists of PodGroups after a start.
const PATIENCE: SignedDuration = SignedDuration::from_secs(5);

/// How far a gang is of which pods were bound.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum GangProgress {
    /// Some of the pods that must run together are bound since then, others are not.
    PartlyBound(Timestamp),
    /// The same, but it was found so after a start, with pods that have started: it may have been whole before others ended. So it is completed
    /// first, and not rolled back.
    FoundPartlyBound(Timestamp),
    /// They were all bound at one time.
    Complete,
    /// Its pods are evicted, since not all could be bound; those that are left are evicted again then.
    RollingBack(Timestamp),
}

/// Every gang with pods.
#[derive(Debug, Default)]
pub(super) struct Gangs {
    /// For how long bound pods wait for the others; `None`: every pod is placed alone.
    timeout: Option<SignedDuration>,
    members: BTreeMap<GangName, BTreeSet<Uid>>,
    progress: BTreeMap<GangName, GangProgress>,
    /// When gangs are rolled back, or no longer come first.
    deadlines: BTreeMap<GangName, Timestamp>,
    /// Gangs of which something has changed.
    touched: BTreeSet<GangName>,
    lists: Lists,
    /// Attempts to place a gang that are to go on.
    unfinished: UnfinishedAttempts,
}

/// How long pods wait for the lists of PodGroups after they were listed themselves.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Lists {
    /// The pods are still to be listed.
    #[default]
    Ahead,
    /// Until then.
    AwaitedUntil(Timestamp),
    /// No longer.
    Overdue,
}

impl Gangs {
    pub(super) fn new(timeout: Option<SignedDuration>) -> Self {
        Self { timeout, ..Self::default() }
    }

    /// Whether pods of the pod's gang are bound and wait for others.
    pub(super) fn is_partly_bound(&self, pod: &PodInfo) -> bool {
        pod.groups.gang.as_ref().is_some_and(|member| self.comes_first(&member.gang))
    }

    /// Whether the missing pods of the gang are decided before all other pods.
    fn comes_first(&self, gang: &GangName) -> bool {
        matches!(
            self.progress.get(gang),
            Some(GangProgress::PartlyBound(_) | GangProgress::FoundPartlyBound(_))
        )
    }

    /// Whether the pods of the gang are evicted, since not all could be bound: none is placed before they are gone.
    fn is_rolling_back(&self, gang: &GangName) -> bool {
        matches!(self.progress.get(gang), Some(GangProgress::RollingBack(_)))
    }

    /// For how long bound pods of the gang wait for the others; `None`: every pod is placed alone.
    fn timeout_of(&self, gang: &Gang) -> Option<SignedDuration> {
        let by_settings = self.timeout?;
        Some(gang.timeout.unwrap_or(by_settings))
    }

    /// When the next gang is rolled back, or no longer comes first.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.deadlines.values().min().copied()
    }

    /// Every gang.
    pub(super) fn names(&self) -> impl Iterator<Item = &GangName> {
        self.members.keys()
    }

    fn members(&self, gang: &GangName) -> impl Iterator<Item = &Uid> {
        self.members.get(gang).into_iter().flatten()
    }

    /// Sets how far a gang is; its deadline moves along.
    fn set_progress(&mut self, name: &GangName, progress: Option<GangProgress>, timeout: SignedDuration) {
        let deadline = match progress {
            Some(GangProgress::PartlyBound(since) | GangProgress::FoundPartlyBound(since)) => {
                since.checked_add(timeout).ok()
            }
            Some(GangProgress::RollingBack(again)) => Some(again),
            Some(GangProgress::Complete) | None => None,
        };
        match progress {
            Some(progress) => self.progress.insert(name.clone(), progress),
            None => self.progress.remove(name),
        };
        match deadline {
            Some(at) => self.deadlines.insert(name.clone(), at),
            None => self.deadlines.remove(name),
        };
    }
}

/// What the pods of a gang hold.
#[derive(Debug, Default)]
struct Survey {
    /// Those that hold a place, bound or not.
    placed: Tally,
    /// Those that are bound.
    bound: Tally,
    /// The nodes of those that hold a place.
    nodes: Vec<NodeName>,
    /// Those that are decided, and for which no Binding is under way.
    assumed: Vec<Uid>,
    /// Those that Berth or another scheduler has bound.
    evictable: Vec<Uid>,
    /// Whether a Binding is under way.
    is_binding: bool,
    /// Whether a pod has started.
    has_started: bool,
}

impl Survey {
    /// Whether a pod is bound, or may be by the time that a Binding is answered.
    fn is_committed(&self) -> bool {
        self.is_binding || self.bound.total() > 0
    }
}

impl Scheduler {
    /// Takes in which gang a pod belongs to; the gang, if the pod is new to it or has changed.
    pub(super) fn note_member(&mut self, pod: &PodInfo) -> Option<GangName> {
        self.gangs.timeout?;
        let gang = &pod.groups.gang.as_ref()?.gang;
        let known = self.pods.get(&pod.key.uid).map(|entry| &entry.info);
        let is_same = |known: &PodInfo| {
            (&known.claim, &known.holding, known.stage, known.lifetime.leaving)
                == (&pod.claim, &pod.holding, pod.stage, pod.lifetime.leaving)
        };
        if known.is_some_and(is_same) {
            return None;
        }
        self.gangs.members.entry(gang.clone()).or_default().insert(pod.key.uid.clone());
        Some(gang.clone())
    }

    /// A pod is gone, and its gang has one pod less.
    pub(super) fn lose_member(&mut self, uid: &Uid) {
        let Some(member) = self.pods.get(uid).and_then(|entry| entry.info.groups.gang.clone()) else {
            return;
        };
        if let Some(members) = self.gangs.members.get_mut(&member.gang) {
            members.remove(uid);
            if members.is_empty() {
                self.gangs.members.remove(&member.gang);
                self.gangs.unfinished.forget(&member.gang);
                self.gangs.set_progress(&member.gang, None, SignedDuration::ZERO);
                return;
            }
        }
        self.touch_gang(Some(member.gang.clone()));
    }

    /// Something has changed of a gang.
    pub(super) fn touch_gang(&mut self, gang: Option<GangName>) {
        // A standby scheduler never goes on with one.
        self.gangs.touched.extend(gang.filter(|_| self.duty.course != Course::Standby));
    }

    /// The other pods of the pod's gang that are not bound.
    pub(super) fn unbound_mates(&self, uid: &Uid) -> Vec<Uid> {
        let Some((member, _)) = self.membership(uid) else { return Vec::new() };
        let is_bound = |mate: &Uid| {
            let charge = self.snapshot.ledger().get(mate);
            charge.is_some_and(|charge| charge.commitment == Commitment::Bound)
        };
        let mates = self.gangs.members(&member.gang).filter(|mate| *mate != uid && !is_bound(mate));
        mates.cloned().collect()
    }

    /// Something has changed of the pod's gang.
    pub(super) fn touch_gang_of_pod(&mut self, uid: &Uid) {
        let gang = self.pods.get(uid).and_then(|entry| entry.info.groups.gang.as_ref());
        let gang = gang.filter(|_| self.gangs.timeout.is_some()).map(|member| member.gang.clone());
        self.touch_gang(gang);
    }

    /// A PodGroup has changed: its pods that wait are decided again.
    pub(super) fn wake_gang_of(&mut self, kind: Kind, name: &Arc<str>) {
        if let Some(api) = kind.group_api() {
            self.wake_gang(&GangName { api, group: name.clone() });
        }
    }

    /// PodGroups of this kind have been listed.
    pub(super) fn wake_gangs_of(&mut self, kind: Kind) {
        let Some(api) = kind.group_api() else { return };
        let gangs = self.gangs.members.keys().filter(|gang| gang.api == api);
        for gang in gangs.cloned().collect::<Vec<_>>() {
            self.wake_gang(&gang);
        }
    }

    fn wake_gang(&mut self, gang: &GangName) {
        let members: Vec<Uid> = self.gangs.members(gang).cloned().collect();
        if !members.is_empty() {
            self.touch_gang(Some(gang.clone()));
        }
        for uid in members {
            self.decide_waiting_again(&uid);
        }
    }

    /// Whether it is known which pods are placed together: a pod that is decided earlier could take the room that a gang of which some pods are
    /// bound needs. Where the lists do not come, as without the permission, other pods do not wait for long.
    pub(super) fn knows_gangs(&self) -> bool {
        self.gangs.timeout.is_none()
            || self.gangs.lists == Lists::Overdue
            || self.snapshot.objects().are_listed(Kind::POD_GROUPS)
    }

    /// The pods are listed: for some time from now on they wait for the PodGroups.
    pub(super) fn await_gangs(&mut self, now: Timestamp) {
        if self.gangs.lists == Lists::Ahead {
            self.gangs.lists = Lists::AwaitedUntil(now.checked_add(PATIENCE).unwrap_or(now));
        }
    }

    /// When pods are decided although PodGroups are not listed.
    pub(super) fn gang_lists_deadline(&self) -> Option<Timestamp> {
        match self.gangs.lists {
            Lists::AwaitedUntil(at) if !self.knows_gangs() => Some(at),
            Lists::Ahead | Lists::AwaitedUntil(_) | Lists::Overdue => None,
        }
    }

    /// Ends the wait for PodGroups when its time is over.
    pub(super) fn watch_gang_lists(&mut self, now: Timestamp) {
        if matches!(self.gangs.lists, Lists::AwaitedUntil(at) if at <= now) {
            self.gangs.lists = Lists::Overdue;
        }
    }

    /// What a pod is in its gang, and what its PodGroup says; `None`: it is placed alone.
    fn membership(&self, uid: &Uid) -> Option<(Arc<Member>, Membership)> {
        self.gangs.timeout.filter(|_| !self.duty.directed)?;
        let member = self.pods.get(uid)?.info.groups.gang.clone()?;
        match self.snapshot.objects().membership(&member.gang) {
            Membership::Policy(Policy::Alone) => None,
            membership => Some((member, membership)),
        }
    }

    /// Whether the pod is placed together with others, or waits for its PodGroup.
    pub(super) fn is_in_gang(&self, uid: &Uid) -> bool {
        self.membership(uid).is_some()
    }

    /// Whether all pods of the pod's gang must share a domain.
    pub(super) fn shares_topology(&self, uid: &Uid) -> bool {
        let membership = self.membership(uid);
        matches!(membership, Some((_, Membership::Policy(Policy::Gang(gang)))) if gang.topology.is_some())
    }

    /// Whether the claims of every pod of the gang that is decided are bound.
    pub(super) fn is_permitted(&self, uid: &Uid) -> bool {
        let Some((member, _)) = self.membership(uid) else { return true };
        let prebinding = |mate: &Uid| self.prebinding.pods.get(mate);
        self.gangs.members(&member.gang).filter_map(prebinding).all(|prebind| prebind.bound)
    }

    /// Whether the pod's gang has lost a place before any of its pods was bound: none of them is bound then.
    pub(super) fn is_of_broken_gang(&self, uid: &Uid) -> bool {
        let Some((member, Membership::Policy(Policy::Gang(gang)))) = self.membership(uid) else {
            return false;
        };
        let survey = self.survey(&member.gang);
        !gang.is_whole(&survey.placed) && !survey.is_committed()
    }

    /// What the pods of a gang hold.
    fn survey(&self, gang: &GangName) -> Survey {
        let mut survey = Survey::default();
        for uid in self.gangs.members(gang) {
            let (Some(entry), Some(charge)) = (self.pods.get(uid), self.snapshot.ledger().get(uid)) else {
                continue;
            };
            let Some(member) = &entry.info.groups.gang else { continue };
            survey.placed.count(member);
            survey.nodes.push(charge.node.clone());
            survey.has_started |= charge.stage == Stage::Running;
            match charge.commitment {
                Commitment::Bound => {
                    survey.bound.count(member);
                    survey.evictable.push(uid.clone());
                }
                Commitment::Assumed if self.is_being_bound(uid, &entry.progress) => survey.is_binding = true,
                Commitment::Assumed => survey.assumed.push(uid.clone()),
                Commitment::Intended => {}
            }
        }
        survey
    }

    /// Whether a Binding was sent for the pod, or a lock is being taken for it.
    fn is_being_bound(&self, uid: &Uid, progress: &PodProgress) -> bool {
        matches!(progress, PodProgress::InLine(node) if self.is_served(node, uid))
    }
}

/// What a decision charges to a pod of these.
fn charge_of(pods: &Pods, now: Timestamp) -> impl Fn(&Uid, &Decision) -> Charge {
    move |uid, decision| {
        let Decision { node, allocations, steps } = decision.clone();
        let info = &pods.get(uid).expect("only known pods are placed").info;
        assumed(info, node, allocations, steps, now)
    }
}
