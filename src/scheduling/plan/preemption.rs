//! Preemption: which pods of one node must go so that a pod of higher priority fits there, and on which node that does the least harm.
//!
//! Source: v1.37 `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go`, `framework/preemption/preemption.go`. Each
//! node is tried in a plan that is undone; `preempt` carries out the choice. Claims of victims are
//! free in it where only victims use them, which upstream does not have. Where a PodGroup says so, its pods on other nodes go too (`unit`).

mod budgets;
mod dry_run;
mod everywhere;
#[cfg(test)]
mod tests;
mod unit;

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use jiff::Timestamp;

use super::Plan;
use crate::scheduling::{
    decide::{
        Filters,
        blame::Resolvable,
        fit_error::{Awaits, FitError},
        no_room::Hopeless,
    },
    model::{
        gang::GangName,
        name::{NodeName, Uid},
        pod::{Deletion, Demand, Importance, PreemptionPolicy},
        steps::{Allowance, COMPARE, FOLD, FOLD_CLAIM, JUDGE, LIST_VICTIM, PER_MILLISECOND, TRY_POD},
    },
    plugin::{filter::filter, pod_counts::PodCounts, rejection::Cure},
    snapshot::Snapshot,
    world::{
        ledger::{Charge, Held},
        node_state::NodeState,
        quota::Exceeded,
        resource_claims::{awaits_freeing, beside_those_of},
    },
};
use budgets::Budgets;
use dry_run::{DryRun, InPlan, OnNode, looks_at_one_node};
use unit::{PreemptionUnit, WholeGroup};

pub use unit::{mates, members_of, whole_group};

pub(super) use everywhere::{OffUnit, take_off_all};
pub(super) use unit::Reach;

/// At least so many nodes are compared, and at least a tenth of all (v1.36 `DefaultPreemptionArgs`).
const FEWEST_CANDIDATES: usize = 100;

/// Claims may take so many steps in one search for victims, about 60 ms, and so many on one node: adding up what they hold, and comparing those of
/// the pod with devices.
const OF_SEARCH: Allowance = Allowance::of(60 * PER_MILLISECOND);
const OF_NODE: Allowance = Allowance::of(20 * PER_MILLISECOND);

/// Groups that go as a whole may take so many steps in one search for victims, about 30 ms: looking through their pods, and taking off those on
/// other nodes.
const OF_GROUPS: Allowance = Allowance::of(30 * PER_MILLISECOND);

/// Which pods may be preempted, and which of them first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rules {
    /// Whether pods of other schedulers may be victims.
    pub other_schedulers: bool,
    /// Whether of pods of one priority those go first that are marked as preemptable (Volcano's `PreemptableFn`).
    pub preemptable_first: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { other_schedulers: true, preemptable_first: true }
    }
}

impl Rules {
    /// The place of a pod among victims, the most important first.
    pub(in crate::scheduling) fn place(self, importance: &Importance) -> (Reverse<i32>, bool, Timestamp) {
        let preemptable = self.preemptable_first && importance.preemptable;
        (Reverse(importance.priority), preemptable, started(importance))
    }
}

/// A pod that must go.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Victim {
    /// The pod.
    pub pod: Uid,
    /// On which node it is.
    pub node: NodeName,
    /// How much it matters.
    pub importance: Importance,
}

impl Victim {
    fn of(pod: &Uid, charge: &Charge) -> Self {
        Self { pod: pod.clone(), node: charge.node.clone(), importance: charge.importance.clone() }
    }
}

/// A node on which the pod fits once these pods are gone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Candidate {
    /// The node.
    pub node: NodeName,
    /// The pods, the most important first; at least one. Those on other nodes go since one of their group goes.
    pub victims: Vec<Victim>,
    /// How many of them a PodDisruptionBudget covers that allows no further disruption.
    pub violations: usize,
}

/// Whether victims are looked for, for a pod that fits nowhere for this reason: other pods could be in its way, it may preempt them now, and
/// it is not known yet that preemption makes no room.
pub fn is_tried(demand: &Demand, error: &FitError, snapshot: &Snapshot) -> bool {
    // Some other node may have devices, as long as not all are compared.
    !error.is_hopeless()
        && error.awaits() != Awaits::Comparison
        && error.blame().resolvable() == Resolvable::Yes
        && is_eligible(demand, snapshot)
}

/// Whether the pod may preempt others now: its policy allows it, and it does not wait for victims to end.
fn is_eligible(demand: &Demand, snapshot: &Snapshot) -> bool {
    demand.preemption_policy != PreemptionPolicy::Never && !awaits_victims(demand, snapshot)
}

/// Whether victims of the pod are still ending on the node that is kept for it. They do not count if that node can't have the pod any more,
/// whatever runs there.
pub fn awaits_victims(demand: &Demand, snapshot: &Snapshot) -> bool {
    // A decision that was taken back has ended the nomination; the pod's status states it all the same.
    let nominated = snapshot.nominations().node_of(&demand.uid).or(demand.nominated.as_ref());
    let Some(node) = nominated else { return false };
    let Some(state) = snapshot.node(node) else { return false };
    let is_waited_for = |charge: &Charge| {
        charge.importance.deletion == Deletion::Preempted
            && unit::priority(&charge.importance, snapshot.objects()) < demand.priority
    };
    let waits = snapshot.ledger().on_node(node).any(|(_, charge)| is_waited_for(charge));
    (waits || awaits_claims(demand, state, snapshot)) && !is_lost(demand, state, snapshot.device_resources())
}

/// Whether claims that only pods used which have ended still hold what the pod waits for on its node: Kubernetes frees them after the pods have
/// ended. Where it is known which pods were deleted for the pod, only their claims count.
fn awaits_claims(demand: &Demand, state: &NodeState, snapshot: &Snapshot) -> bool {
    let claims = snapshot.resource_claims();
    let node = &state.info.name;
    let takes_cards = !demand.ask.devices.is_empty() && claims.on_node(node).is_some();
    if !takes_cards && !demand.footprint.may_use_devices() {
        return false;
    }
    let victims: BTreeSet<&str> =
        snapshot.nominations().victims(&demand.uid).map(|victim| &**victim).collect();
    let has_ended = |user: &str| {
        snapshot.ledger().get(&user.into()).is_none() && (victims.is_empty() || victims.contains(user))
    };
    awaits_freeing(claims, node, |user| !has_ended(user))
}

/// Whether the node can't have the pod whatever runs there: kube-scheduler's `UnschedulableAndUnresolvable`.
pub(super) fn is_lost(demand: &Demand, state: &NodeState, device_resources: &BTreeSet<String>) -> bool {
    match filter(&demand.ask, state, device_resources, &[]) {
        Ok(_) => false,
        Err(reasons) => {
            let of_time = reasons.iter().any(|reason| reason.cure() == Cure::Time);
            of_time || Resolvable::on_node(&reasons) == Resolvable::No
        }
    }
}

/// Whether the pod has lost a node on which room was made for it at that time, to no fault of its own: the node is gone or can't have it any
/// more, or has been given to a pod of higher priority.
pub fn has_lost_node(demand: &Demand, node: &NodeName, since: Timestamp, snapshot: &Snapshot) -> bool {
    let Some(state) = snapshot.node(node) else { return true };
    let is_above = |charge: &Charge| charge.importance.priority > demand.priority && charge.since >= since;
    is_lost(demand, state, snapshot.device_resources())
        || snapshot.nominations().has_above(demand.priority, node)
        || snapshot.ledger().on_node(node).any(|(_, charge)| is_above(charge))
}

/// The quota of the pod's namespace that keeps it from preempting others, and would not if no node were kept for other pods of the namespace.
pub fn exceeded_beside_nominated(demand: &Demand, snapshot: &Snapshot) -> Option<Exceeded> {
    let kept = snapshot.nominations().kept_of_namespace(demand);
    let exceeded = |beside: &Held| snapshot.quotas().exceeded_by(demand, beside);
    exceeded(&kept).filter(|_| exceeded(&Held::default()).is_none())
}

/// The node on which room is made for the pod, by kube-scheduler's rules: the fewest violated budgets, the lowest of the highest
/// priorities, the lowest sum of priorities, the fewest victims, the one whose most important victim was started last; equals go by name.
///
/// # Errors
///
/// No node would have the pod, whichever pods of lower priority were gone.
pub fn choose(
    demand: &Demand,
    snapshot: &mut Snapshot,
    counts: &mut PodCounts,
    rules: Rules,
) -> Result<Candidate, Hopeless> {
    choose_among(demand, &mut Plan::new(snapshot), counts, rules, &|_| true)
}

/// As [`choose`], in a plan, which is as it was afterwards, and among some of the nodes.
///
/// # Errors
///
/// None of these nodes would have the pod, whichever pods of lower priority were gone.
pub fn choose_among(
    demand: &Demand,
    plan: &mut Plan<'_>,
    counts: &mut PodCounts,
    rules: Rules,
    allowed: &dyn Fn(&NodeName) -> bool,
) -> Result<Candidate, Hopeless> {
    let snapshot: &Snapshot = plan;
    // The priority of a group may be lower than those of its pods.
    let has_lower = snapshot.ledger().lowest_priority().is_some_and(|lowest| lowest < demand.priority);
    if !has_lower && !snapshot.ledger().has_groups() {
        return Err(Hopeless { without_victims: snapshot.nodes.count(), ..Hopeless::default() });
    }
    let budgets = Budgets::of(snapshot.objects());
    let looks_at_one_node = looks_at_one_node(demand, snapshot, counts);
    let mut search = VictimSearch {
        demand,
        cost: demand.ask.cost(),
        counts,
        rules,
        budgets,
        looks_at_one_node,
        allowance: OF_SEARCH,
        groups: BTreeMap::new(),
        of_groups: OF_GROUPS,
    };
    let mut best: Option<(Harm, Candidate)> = None;
    let mut compared = 0;
    let mut hopeless = Hopeless::default();
    let slots = snapshot.nodes.slots().len();
    let first = first_slot(slots, &demand.uid);
    let enough = (snapshot.nodes.count() / 10).max(FEWEST_CANDIDATES);
    search.counts.steps().add(JUDGE, slots);
    for slot in (first..slots).chain(0..first) {
        let state = plan.nodes.at(slot).filter(|state| allowed(&state.info.name));
        let Some(state) = state.cloned() else { continue };
        match search.dry_run(plan, &state, best.as_ref().map(|(harm, _)| harm)) {
            NodeTrial::NoVictims => hopeless.without_victims += 1,
            NodeTrial::Fails => hopeless.not_helpful += 1,
            NodeTrial::Unfinished(TooLong::Claims) => hopeless.unfinished += 1,
            NodeTrial::Unfinished(TooLong::Groups) => hopeless.too_large += 1,
            NodeTrial::NoBetter => compared += 1,
            NodeTrial::Fits(candidate) => {
                compared += 1;
                let harm = candidate.harm(rules);
                if best.as_ref().is_none_or(|(least, _)| harm < *least) {
                    best = Some((harm, candidate));
                }
            }
        }
        if compared >= enough && best.as_ref().is_some_and(|(_, candidate)| candidate.violations == 0) {
            break;
        }
    }
    best.map(|(_, candidate)| candidate).ok_or(hopeless)
}

/// The place of the node that is tried first, which the pod decides: where not all are compared, not always the same are.
fn first_slot(slots: usize, pod: &Uid) -> usize {
    let mut hasher = DefaultHasher::new();
    pod.hash(&mut hasher);
    usize::try_from(hasher.finish() % (slots.max(1) as u64)).unwrap_or_default()
}

/// How much harm is done on a node; the least is chosen. One more pod that goes is more harm.
type Harm = (usize, i32, i64, usize, usize, Reverse<Timestamp>, NodeName);

impl Candidate {
    fn harm(&self, rules: Rules) -> Harm {
        harm(&self.node, self.violations, self.victims.iter().map(|victim| &victim.importance), rules)
    }
}

/// How much harm it does on a node if pods go that matter so much, so many of which violate a budget.
fn harm<'v>(
    node: &NodeName,
    violations: usize,
    victims: impl Iterator<Item = &'v Importance>,
    rules: Rules,
) -> Harm {
    let (mut highest, mut earliest) = (i32::MIN, Timestamp::MAX);
    let (mut sum, mut unmarked, mut count) = (0, 0, 0);
    for victim in victims {
        match victim.priority.cmp(&highest) {
            Ordering::Less => {}
            Ordering::Equal => earliest = earliest.min(started(victim)),
            Ordering::Greater => (highest, earliest) = (victim.priority, started(victim)),
        }
        // As in kube-scheduler, none is negative: many pods of a negative priority do more harm than few.
        sum += i64::from(victim.priority) - i64::from(i32::MIN);
        unmarked += usize::from(rules.preemptable_first && !victim.preemptable);
        count += 1;
    }
    (violations, highest, sum, unmarked, count, Reverse(earliest), node.clone())
}

/// When the pod was started; one that is not yet counts as the latest.
fn started(importance: &Importance) -> Timestamp {
    importance.started.unwrap_or(Timestamp::MAX)
}

/// What comes of a dry run on one node.
enum NodeTrial {
    NoVictims,
    Fails,
    Unfinished(TooLong),
    /// It does no less harm than another node.
    NoBetter,
    Fits(Candidate),
}

/// The charges on one node, by uid.
type NodeCharges<'a> = Vec<(&'a Uid, &'a Arc<Charge>)>;

/// What was not finished within the steps that it may take.
#[derive(Clone, Copy, Debug)]
enum TooLong {
    /// Comparing claims with devices.
    Claims,
    /// Looking through the pods of groups that go as a whole.
    Groups,
}

struct VictimSearch<'a> {
    demand: &'a Demand,
    /// What it costs to judge a node for it, in steps.
    cost: u64,
    counts: &'a mut PodCounts,
    rules: Rules,
    budgets: Budgets,
    /// Whether what a node makes of the pod depends on that node alone.
    looks_at_one_node: bool,
    /// How much comparing claims with devices may still take.
    allowance: Allowance,
    /// The groups that go as a whole, as far as they were met; none: it may not go.
    groups: BTreeMap<GangName, Option<Arc<WholeGroup>>>,
    /// How much looking through them may still take.
    of_groups: Allowance,
}

impl VictimSearch<'_> {
    /// Takes every pod that may be preempted off the node, and puts back as many as the node can have beside the pod: those first
    /// whose budget would be violated, of these the most important first. Pods that go together are put back together. The plan is as it was
    /// afterwards.
    fn dry_run(&mut self, plan: &mut Plan<'_>, state: &NodeState, best: Option<&Harm>) -> NodeTrial {
        let node = &state.info.name;
        let charges: NodeCharges<'_> = plan.ledger().shared_on_node(node).collect();
        let potential = match self.potential_victims(plan, node, &charges) {
            Ok(potential) if potential.is_empty() => return NodeTrial::NoVictims,
            Ok(potential) => potential,
            Err(too_long) => return NodeTrial::Unfinished(too_long),
        };
        let least = |unit: &PreemptionUnit| harm(node, 0, unit.importances(), self.rules);
        if best.is_some_and(|best| potential.iter().all(|unit| least(unit) >= *best)) {
            return NodeTrial::NoBetter;
        }
        if self.looks_at_one_node
            && let Some(mut on_node) = OnNode::of(plan, state, charges, &potential)
        {
            let mut allowance = OF_NODE;
            let found = self.victims_on(&mut on_node, potential, best, &mut allowance);
            return found.unwrap_or_else(NodeTrial::Unfinished);
        }
        let mark = plan.mark();
        let mut allowance = self.allowance.at_most(OF_NODE);
        let before = allowance;
        let found = self.victims_in_plan(plan, node, potential, best, &mut allowance);
        self.allowance = self.allowance.less(before.left() - allowance.left());
        plan.undo(mark);
        found.unwrap_or_else(NodeTrial::Unfinished)
    }

    fn victims_in_plan(
        &mut self,
        plan: &mut Plan<'_>,
        node: &NodeName,
        potential: Vec<PreemptionUnit>,
        best: Option<&Harm>,
        allowance: &mut Allowance,
    ) -> Result<NodeTrial, TooLong> {
        let claims = plan.resource_claims();
        let tried = potential.iter().flat_map(PreemptionUnit::tried);
        let folded: usize = tried.map(|pod| beside_those_of(claims, pod)).sum();
        let folding = FOLD_CLAIM.saturating_mul(folded as u64);
        if folding > allowance.left() {
            return Err(TooLong::Claims);
        }
        self.counts.steps().add(folding, 1);
        *allowance = allowance.less(folding);
        self.victims_on(&mut InPlan { plan, node }, potential, best, allowance)
    }

    fn victims_on(
        &mut self,
        dry_run: &mut impl DryRun,
        mut potential: Vec<PreemptionUnit>,
        best: Option<&Harm>,
        allowance: &mut Allowance,
    ) -> Result<NodeTrial, TooLong> {
        for unit in &mut potential {
            dry_run.take_off(unit, self.demand);
        }
        let mut budgets = self.budgets.clone();
        let mut judged: Vec<_> =
            potential.into_iter().map(|unit| (unit.violate(&mut budgets), unit)).collect();
        // Where it does no less harm than elsewhere if all go, it matters only whether some can stay.
        let all_matter = best.is_none_or(|best| self.harm_of(dry_run.node(), &judged) < *best);
        if all_matter && !self.fits(dry_run, allowance)? {
            return Ok(NodeTrial::Fails);
        }
        // Those first that violate one. The sort is stable.
        judged.sort_by_key(|(violations, _)| *violations == 0);
        let (mut gone, mut staying) = (Vec::new(), Vec::new());
        for (violations, mut unit) in judged {
            dry_run.put_back(&mut unit);
            if self.fits(dry_run, allowance)? {
                staying.push(unit);
                continue;
            }
            dry_run.take_off(&mut unit, self.demand);
            gone.push((violations, unit));
            if best.is_some_and(|best| self.harm_of(dry_run.node(), &gone) >= *best) {
                return Ok(NodeTrial::NoBetter);
            }
        }
        if !all_matter {
            for unit in &mut staying {
                dry_run.take_off(unit, self.demand);
            }
            if !self.fits(dry_run, allowance)? {
                return Ok(NodeTrial::Fails);
            }
        }
        if gone.is_empty() {
            return Ok(NodeTrial::Fails);
        }
        let violations = gone.iter().map(|(violations, _)| violations).sum();
        gone.sort_by_key(|(_, unit)| unit.place());
        let victims = gone.iter().flat_map(|(_, unit)| unit.victims()).collect();
        Ok(NodeTrial::Fits(Candidate { node: dry_run.node().clone(), victims, violations }))
    }

    /// How much harm it does on a node if these go.
    fn harm_of(&self, node: &NodeName, gone: &[(usize, PreemptionUnit)]) -> Harm {
        let violations = gone.iter().map(|(violations, _)| violations).sum();
        harm(node, violations, gone.iter().flat_map(|(_, unit)| unit.importances()), self.rules)
    }

    /// The pods of the node that may be preempted, the most important first, with those that go with them.
    fn potential_victims(
        &mut self,
        plan: &Plan<'_>,
        node: &NodeName,
        charges: &[(&Uid, &Arc<Charge>)],
    ) -> Result<Vec<PreemptionUnit>, TooLong> {
        let mut met: BTreeSet<GangName> = BTreeSet::new();
        let mut potential = Vec::new();
        for (pod, charge) in charges {
            match whole_group(&charge.importance, plan.objects()) {
                None => {
                    let one = PreemptionUnit::one(pod, charge, self.demand, plan.objects(), self.rules);
                    potential.extend(one);
                }
                Some(group) if met.insert(group.clone()) => potential.extend(self.group(plan, node, &group)?),
                Some(_) => {}
            }
        }
        potential.sort_by_key(PreemptionUnit::place);
        Ok(potential)
    }

    /// The pods of a group that goes as a whole; `None`: it may not go.
    fn group(
        &mut self,
        plan: &Plan<'_>,
        node: &NodeName,
        group: &GangName,
    ) -> Result<Option<PreemptionUnit>, TooLong> {
        let known = if let Some(known) = self.groups.get(group) {
            known.clone()
        } else {
            let each = FOLD + COMPARE * self.budgets.len() as u64;
            self.take_of_groups(each, members_of(group, plan).len())?;
            let found = WholeGroup::of(group, self.demand, plan, self.rules, &self.budgets).map(Arc::new);
            self.groups.entry(group.clone()).or_insert(found).clone()
        };
        let Some(known) = known else { return Ok(None) };
        self.take_of_groups(LIST_VICTIM, known.size())?;
        let most_far = usize::try_from(self.of_groups.left() / TRY_POD).unwrap_or(usize::MAX);
        let unit = PreemptionUnit::group(&known, node, most_far);
        self.take_of_groups(TRY_POD, unit.tried().len().min(most_far))?;
        Ok(Some(unit))
    }

    /// Takes the steps of looking through so many pods of a group, each of which takes so many.
    fn take_of_groups(&mut self, each: u64, pods: usize) -> Result<(), TooLong> {
        let steps = each.saturating_mul(pods as u64);
        if steps > self.of_groups.left() {
            return Err(TooLong::Groups);
        }
        self.counts.steps().add(each, pods);
        self.of_groups = self.of_groups.less(steps);
        Ok(())
    }

    fn fits(&mut self, dry_run: &mut impl DryRun, allowance: &mut Allowance) -> Result<bool, TooLong> {
        self.counts.steps().add(self.cost, 1);
        match dry_run.fits(self.demand, self.counts, allowance) {
            TrialFit::Fits => Ok(true),
            TrialFit::Fails => Ok(false),
            TrialFit::Unfinished => Err(TooLong::Claims),
        }
    }
}

/// Whether the node has no devices for the pod's claims as they stand.
pub(super) fn lacks_devices(
    demand: &Demand,
    plan: &Plan<'_>,
    node: &NodeName,
    counts: &mut PodCounts,
) -> bool {
    if demand.footprint.resource_claims.is_empty() {
        return false;
    }
    let filters = Filters::prepare(demand, plan.world(), counts);
    let has_devices = |state| filters.cycle.as_ref().is_ok_and(|cycle| cycle.has_devices(state));
    !plan.node(node).is_some_and(|state| has_devices(state))
}

/// Whether the node passes every filter for a pod for which others would go. Where comparing its claims with the node's devices takes too long, it does not.
pub(super) fn fits(demand: &Demand, plan: &Plan<'_>, node: &NodeName, counts: &mut PodCounts) -> bool {
    trial_fit(demand, plan, node, counts, &mut OF_NODE.clone()) == TrialFit::Fits
}

/// What a node makes of a pod for which others would go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum TrialFit {
    Fits,
    Fails,
    /// It was not found out within the steps that comparing claims with devices may take.
    Unfinished,
}

fn trial_fit(
    demand: &Demand,
    plan: &Plan<'_>,
    node: &NodeName,
    counts: &mut PodCounts,
    allowance: &mut Allowance,
) -> TrialFit {
    let Some(state) = plan.node(node) else { return TrialFit::Fails };
    counts.on_one_node(state.slot, allowance, |counts| {
        let filters = Filters::prepare_to_preempt(demand, plan.world(), counts);
        match filters.rejected() {
            Some(error) if error.awaits() == Awaits::Comparison => TrialFit::Unfinished,
            None if filters.passes(state) => TrialFit::Fits,
            _ => TrialFit::Fails,
        }
    })
}
