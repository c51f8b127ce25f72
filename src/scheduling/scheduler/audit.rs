//! The audit: whether ledger, lines and queue are what the pods say; what is not is reported and put right.
//!
//! It runs after each list of pods and every minute in a cluster, and compares with a fold over all pods. Nothing here ought ever to be found. Waiting pods
//! are decided on trial, which takes long where they are many: these are looked at after all else, and as many in a turn as it has room for.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    mem::take,
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use super::{
    binding_cycle::BindingCycle,
    scheduling_cycle::{
        SchedulingCycle,
        alike::{Alike, Versions},
        conditions::ConditionInput,
        pods::Pods,
        scheduling_queue::{Pace, PodProgress, SchedulingQueue},
    },
};
use crate::{
    device::ProfileName,
    scheduling::{
        decide::{
            class::Classes,
            fit_error::{Awaits, FitError},
        },
        effect::{Effect, ReadRequest},
        finding::{Concern, Drift, Finding},
        model::{
            gang::GangName,
            name::{NodeName, Uid},
            pod::{Binding, Claim, Holding, PodKey, Stage},
        },
        node_flow::NodeFlows,
        prebind::Prebinding,
        snapshot::{Check, Snapshot},
        world::ledger::{Charge, Commitment},
    },
};

/// How long until the next audit.
const PERIOD: SignedDuration = SignedDuration::from_mins(1);
/// A Binding that was answered is seen within this time, or the pod is read.
const UNSEEN: SignedDuration = SignedDuration::from_secs(30);

/// What becomes of a pod that waits, were it decided now.
#[derive(Clone, Debug)]
enum Audited {
    /// A node would have it.
    Fits,
    /// Other pods could go for it.
    Preempts,
    /// It waits, for this reason.
    Waits(Arc<FitError>),
    /// To find out would take longer than a decision may.
    Undecided,
}

/// What is still to be decided on trial.
#[derive(Debug, Default)]
pub(super) struct Audits {
    pods: VecDeque<Uid>,
    gangs: VecDeque<GangName>,
    /// What was found for pods that are decided alike, as long as nothing has changed since.
    found: HashMap<Alike, Audited>,
    versions: Versions,
    /// Plugins whose devices on a node have changed by an object of their own.
    pub(super) changed_devices: BTreeSet<ProfileName>,
    /// When the ledger and the pods are compared next.
    next: Option<Timestamp>,
}

impl Audits {
    /// The pods were listed: they are compared at once.
    pub(super) fn begin(&mut self) {
        self.next = None;
    }

    /// When it goes on.
    pub(super) fn deadline(&self, turn_began: Timestamp) -> [Option<Timestamp>; 2] {
        [self.next, self.are_left().then_some(turn_began)]
    }

    /// The pods are decided on trial, unless they are to be already.
    fn add_pods(&mut self, uids: impl IntoIterator<Item = Uid>) {
        let mut known: HashSet<Uid> = self.pods.iter().cloned().collect();
        self.pods.extend(uids.into_iter().filter(|uid| known.insert(uid.clone())));
    }

    /// Whether waiting pods or gangs are still to be decided on trial.
    pub(super) fn are_left(&self) -> bool {
        !self.pods.is_empty() || !self.gangs.is_empty()
    }

    /// What was found for a pod like this, if nothing has changed since.
    fn find(&mut self, alike: &Alike, versions: Versions) -> Option<Audited> {
        if self.versions != versions {
            (self.versions, self.found) = (versions, HashMap::new());
        }
        self.found.get(alike).cloned()
    }

    /// This was found for a pod. What was tried for that was undone: nothing has changed.
    fn note(&mut self, alike: Alike, found: Audited, versions: Versions) {
        self.versions = versions;
        self.found.insert(alike, found);
    }
}

/// What an audit compares.
#[derive(Clone, Copy)]
struct AuditView<'a> {
    pods: &'a Pods,
    queue: &'a SchedulingQueue,
    classes: &'a Classes,
    snapshot: &'a Snapshot,
    prebinding: &'a Prebinding,
    flows: &'a NodeFlows,
}

impl<'a> AuditView<'a> {
    fn of(BindingCycle { cycle, prebinding, flows }: &'a BindingCycle) -> Self {
        let SchedulingCycle { pods, queue, classes, snapshot, .. } = cycle;
        Self { pods, queue, classes, snapshot, prebinding, flows }
    }

    /// Whether what a pod shows that it holds is what it is charged with.
    fn holding(self, uid: &Uid) -> Option<Drift> {
        let info = &self.pods.get(uid)?.info;
        let holding = info.holding.as_ref().filter(|_| info.stage != Stage::Ended)?;
        let right = |charge: &Charge| is_of(charge, holding) && charge.footprint == info.footprint;
        let is_right = self.snapshot.ledger().get(uid).is_some_and(right);
        (!is_right).then(|| Drift::Uncharged(info.key.clone()))
    }

    /// Whether a pod that wants a place is where its progress says.
    fn progress(self, uid: &Uid) -> Option<Drift> {
        let info = &self.pods.get(uid)?.info;
        let held = self.snapshot.ledger().get(uid);
        let bound = held.is_some_and(|charge| charge.commitment == Commitment::Bound);
        let wants = matches!(&info.claim, Claim::Place(_));
        let listed = || self.queue.holds(&info.key, self.classes);
        let is_right = match self.queue.progress(uid) {
            PodProgress::Idle => !wants || bound,
            PodProgress::Prebinding(_) => held.is_some() && self.prebinding.contains(uid),
            PodProgress::InLine(node) => held.is_some() && self.flows.line(node).any(|pod| pod == uid),
            PodProgress::Ungathered => info.groups.gang().is_some() && listed(),
            _ => listed(),
        };
        (!is_right).then(|| Drift::Forgotten(info.key.clone()))
    }

    /// Who is charged, shows nothing and is not being decided; and the pods that were bound a while ago and do not show it.
    fn charges(self, now: Timestamp) -> (Vec<Drift>, Vec<PodKey>) {
        let (mut wrong, mut unseen) = (Vec::new(), Vec::new());
        for (uid, charge) in self.snapshot.ledger().all() {
            let Some(info) = self.pods.get(uid).map(|entry| &entry.info) else {
                wrong.push((uid, Concern::Node(charge.node.clone())));
                continue;
            };
            let decided = match self.queue.progress(uid) {
                PodProgress::InLine(node) | PodProgress::Prebinding(node) => *node == charge.node,
                _ => false,
            };
            match charge.commitment {
                Commitment::Assumed if !decided => wrong.push((uid, Concern::Pod(info.key.clone()))),
                Commitment::Bound if info.holding.is_none() && charge.since + UNSEEN <= now => {
                    unseen.push(info.key.clone());
                }
                _ => {}
            }
        }
        wrong.sort_by_key(|(uid, _)| *uid);
        unseen.sort();
        let wrong = wrong.into_iter().map(|(uid, concern)| Drift::Overcharged(uid.clone(), concern));
        (wrong.collect(), unseen)
    }
}

impl Audits {
    /// Audits if it is time, and decides waiting pods and gangs on trial, as many as the turn has room for.
    pub(super) fn audit(&mut self, binding: &mut BindingCycle, now: Timestamp) {
        // Pods that ask for devices which have changed by an object of their own: a change that helps no pod wakes none, and its message would
        // say until the next audit what is no longer so.
        let changed = take(&mut self.changed_devices);
        if !changed.is_empty() {
            self.add_pods(binding.cycle.classes.waiting_for(&changed));
        }
        // A scheduler without a cluster has been given what it knows, and nothing is lost on the way to it.
        let has_cluster = binding.cycle.queue.pace() != Pace::OneByOne;
        if has_cluster && self.next.is_none_or(|at| at <= now) {
            self.compare_with_pods(binding, now);
            self.next = now.checked_add(PERIOD).ok();
        }
        while binding.cycle.queue.has_room()
            && let Some(uid) = self.pods.pop_front()
        {
            self.audit_reason(binding, &uid, now);
            binding.cycle.queue.charge_turn(binding.cycle.classes.take_steps());
        }
        while binding.cycle.queue.has_room()
            && let Some(gang) = self.gangs.pop_front()
        {
            if let Some((uid, gathered)) = binding.gang_view().waiting(&gang)
                && gathered.with_pool(|_, pool| binding.gang_trial().would_be_placed(pool))
                && let Some(entry) = binding.cycle.pods.get(&uid)
            {
                put_right(binding, Drift::NeedlessWait(entry.info.key.clone()), now);
            }
            binding.cycle.queue.charge_turn(binding.cycle.classes.take_steps());
        }
        if !self.are_left() {
            take(&mut self.found);
        }
    }

    fn compare_with_pods(&mut self, binding: &mut BindingCycle, now: Timestamp) {
        let mut uids: Vec<Uid> = binding.cycle.pods.uids().cloned().collect();
        uids.sort();
        for uid in &uids {
            if let Some(drift) = AuditView::of(binding).holding(uid) {
                put_right(binding, drift, now);
            }
            if let Some(drift) = AuditView::of(binding).progress(uid) {
                put_right(binding, drift, now);
            }
        }
        let (wrong, unseen) = AuditView::of(binding).charges(now);
        for drift in wrong {
            put_right(binding, drift, now);
        }
        binding
            .cycle
            .outbox
            .effects
            .extend(unseen.into_iter().map(|pod| Effect::Read(ReadRequest::Pod(pod))));
        let nodes: Vec<NodeName> =
            binding.cycle.snapshot.nodes().map(|state| state.info.name.clone()).collect();
        for node in nodes {
            if binding.cycle.snapshot.check(&node) == Check::Wrong {
                put_right(binding, Drift::NodeUse(node), now);
            }
        }
        let namespaces: Vec<_> = binding.cycle.snapshot.quotas().used().keys().cloned().collect();
        for namespace in namespaces {
            if binding.cycle.snapshot.check_quota(&namespace) == Check::Wrong {
                put_right(binding, Drift::QuotaUse(namespace), now);
            }
        }
        self.add_pods(uids);
        let gangs: BTreeSet<GangName> =
            binding.cycle.gangs.names().map(|group| binding.gang_view().root(group)).collect();
        self.gangs = gangs.into_iter().collect();
    }

    /// What is said of a pod that waits is still true, and no node would have it.
    fn audit_reason(&mut self, binding: &mut BindingCycle, uid: &Uid, now: Timestamp) {
        let Some(entry) = binding.cycle.pods.get(uid).filter(|_| !binding.gang_view().is_in_gang(uid)) else {
            return;
        };
        let waits =
            matches!(binding.cycle.queue.progress(uid), PodProgress::Waiting(_) | PodProgress::OverQuota);
        if !waits || !matches!(&entry.info.claim, Claim::Place(_)) {
            return;
        }
        let pod = entry.info.key.clone();
        let alike = binding.cycle.alike(uid);
        let versions = Versions::of(&binding.cycle.snapshot);
        let known = alike.as_ref().and_then(|alike| self.find(alike, versions));
        let audited = known.unwrap_or_else(|| {
            let found = match binding.cycle.decide(uid, &binding.flows) {
                Ok(_) => Audited::Fits,
                Err(error) if error.awaits() == Awaits::Comparison => Audited::Undecided,
                Err(error) => {
                    let waits = binding.still_waits(uid, error).map(Arc::new);
                    waits.map_or(Audited::Preempts, Audited::Waits)
                }
            };
            if let Some(alike) = alike {
                self.note(alike, found.clone(), Versions::of(&binding.cycle.snapshot));
            }
            found
        });
        match audited {
            Audited::Waits(error) => {
                let said = binding.cycle.conditions.reason(uid);
                if !said.is_some_and(|said| said.is_repeated_by(&error)) {
                    // It is said, and is no attempt.
                    binding.cycle.advance_conditions(ConditionInput::Waits(uid, error.into()));
                }
            }
            Audited::Fits => put_right(binding, Drift::NeedlessWait(pod), now),
            Audited::Preempts => binding.cycle.decide_waiting_again(uid),
            Audited::Undecided => {}
        }
    }
}

/// Reports what was found, and puts it right. The uses of nodes and quotas are right already.
fn put_right(binding: &mut BindingCycle, drift: Drift, now: Timestamp) {
    binding
        .cycle
        .outbox
        .effects
        .push(Effect::ReportFinding { of: drift.concern(), finding: Finding::Drift(drift.clone()) });
    match drift {
        Drift::Uncharged(pod) => {
            if let Some(info) = binding.cycle.pods.get(&pod.uid).map(|entry| entry.info.clone()) {
                binding.see_holding(&info, now);
            }
        }
        Drift::Overcharged(uid, _) => binding.release(&uid),
        Drift::NodeUse(node) => binding.wake(&node),
        Drift::QuotaUse(namespace) => binding.cycle.wake_within_quota(&namespace),
        Drift::Forgotten(pod) => {
            binding.forget(&pod.uid);
            binding.cycle.enqueue(&pod.uid);
        }
        Drift::NeedlessWait(pod) => binding.cycle.decide_waiting_again(&pod.uid),
    }
}

fn is_of(charge: &Charge, holding: &Holding) -> bool {
    let commitment = if holding.binding == Binding::Bound { Commitment::Bound } else { Commitment::Intended };
    (&charge.node, &charge.allocations, charge.init, charge.commitment)
        == (&holding.node, &holding.allocations, holding.init, commitment)
}
