//! The order of the rules: which pods are judged, which defaults are set, and which checks follow.
//!
//! For an update, only violations that the change has caused count, so that an admitted pod is not denied later. A change of other
//! fields is not judged.

use super::{
    amounts, bypasses, capacity, defaults,
    draft::Draft,
    facts::Facts,
    findings::ReviewFindings,
    hint_keys, hint_lists, hint_values, hints,
    modes::Ways,
    namespace_pods, preemptable, quantities, quota,
    request::{AdmissionStage, Operation, Request},
    resource_names, rules,
    scheduler_name::{self, PlacingScheduler},
    shares::PodShares,
    verdict::Verdict,
    work::Work,
};
use crate::{
    dialect::{MissingCount, hami},
    object::{Metadata, Pod},
};

/// The label that keeps a pod or a namespace from being changed.
pub const OPT_OUT: &str = "berth.dev/admission";

/// Judges one pod, with as much optional help for the user as [`Work::default`] allows.
pub fn review(request: &Request<'_>, facts: &Facts) -> Verdict {
    review_within(request, facts, &mut Work::default())
}

/// Judges one pod and counts the work. Whether the pod is admitted, and with which patch, does not depend on how much is left of it.
pub fn review_within(request: &Request<'_>, facts: &Facts, work: &mut Work) -> Verdict {
    match request.operation {
        Operation::Create => create(request, facts, work),
        Operation::Update(_) if request.stage == AdmissionStage::Adopt => Verdict::Ignored,
        Operation::Update(old) => update(request, old, facts, work),
        Operation::Delete | Operation::Connect => Verdict::Ignored,
    }
}

fn create(request: &Request<'_>, facts: &Facts, work: &mut Work) -> Verdict {
    if request.stage == AdmissionStage::Adopt {
        return adopt(request, facts, work);
    }
    let ways = Ways::of(request.pod, facts);
    let mut findings = ReviewFindings::within(*work);
    if !ways.ask_for_a_share() && !preemptable::is_marked(&request.pod.metadata) {
        resource_names::judge(&mut findings, request.pod, facts);
        return if findings.is_empty() { Verdict::Ignored } else { verdict(findings, work, Vec::new) };
    }
    ways.judge(&mut findings, facts);
    let mutates = request.stage == AdmissionStage::Mutate
        && findings.violations().is_empty()
        && ways.ask_for_a_share()
        && scheduler_name::owner(request.pod, &facts.settings) != PlacingScheduler::Other
        && request.pod.spec.node_name.as_ref().is_none_or(String::is_empty)
        && !opts_out(request, facts);
    if !mutates {
        judge_created(&mut findings, request.pod, request, &ways, facts);
        return verdict(findings, work, Vec::new);
    }
    let mut draft = Draft::new(request.pod);
    mutate(&mut draft, request, &ways, facts, &mut findings);
    judge_created(&mut findings, draft.pod(), request, &ways, facts);
    verdict(findings, work, || draft.into_operations())
}

/// Names Berth in a pod without a share. A pod that the rules would deny once it names Berth is left alone.
fn adopt(request: &Request<'_>, facts: &Facts, work: &mut Work) -> Verdict {
    if !namespace_pods::is_adopted(request.pod, request.namespace, facts) || opts_out(request, facts) {
        return Verdict::Ignored;
    }
    let mut draft = Draft::new(request.pod);
    draft.set_scheduler_name(&facts.settings.scheduler_name);
    let named = Request { stage: AdmissionStage::Validate, pod: draft.pod(), ..*request };
    match create(&named, facts, work) {
        Verdict::Denied { .. } => Verdict::Ignored,
        Verdict::Ignored | Verdict::Admitted { .. } => {
            Verdict::Admitted { patch: draft.into_operations(), warnings: Vec::new() }
        }
    }
}

/// Judges a pod that is being created, as this stage leaves it.
fn judge_created(
    findings: &mut ReviewFindings,
    pod: &Pod,
    request: &Request<'_>,
    ways: &Ways,
    facts: &Facts,
) {
    let shares = PodShares::read(pod, facts, missing_count(pod, facts));
    judge(findings, pod, request.namespace, ways, &shares, facts);
    judge_against_the_cluster(findings, pod, request.namespace, &shares, facts);
}

/// A pod that Berth is to place has its counts by now: what this stage leaves of it is what the binder reads. Those of another scheduler's pod
/// are not judged.
fn missing_count(pod: &Pod, facts: &Facts) -> MissingCount {
    match scheduler_name::owner(pod, &facts.settings) {
        PlacingScheduler::Berth | PlacingScheduler::Adopted => MissingCount::Refuse,
        PlacingScheduler::Other => MissingCount::Default,
    }
}

/// The violations that the change has caused, by the rules on the pod alone and on what may change; capacity and quota were checked at the creation.
fn update(request: &Request<'_>, old: &Pod, facts: &Facts, work: &mut Work) -> Verdict {
    if request.pod.metadata.deletion_timestamp.is_some() || reads_the_same(request.pod, old) {
        return Verdict::Ignored;
    }
    // Both get the same help, or the difference would be in the help.
    let each = *work;
    let found = |pod: &Pod| {
        let ways = Ways::of(pod, facts);
        let mut findings = ReviewFindings::within(each);
        if ways.ask_for_a_share() || preemptable::is_marked(&pod.metadata) {
            ways.judge(&mut findings, facts);
            let shares = PodShares::read(pod, facts, missing_count(pod, facts));
            judge(&mut findings, pod, request.namespace, &ways, &shares, facts);
        }
        findings
    };
    let mut findings = found(request.pod).without(&found(old));
    preemptable::judge_change(&mut findings, request.pod, old);
    if findings.is_empty() {
        *work = *findings.work();
        return Verdict::Ignored;
    }
    verdict(findings, work, Vec::new)
}

/// Whether the fields that rules read are unchanged.
fn reads_the_same(new: &Pod, old: &Pod) -> bool {
    new.metadata.annotations == old.metadata.annotations
        && new.metadata.labels == old.metadata.labels
        && new.spec == old.spec
}

fn mutate(
    draft: &mut Draft,
    request: &Request<'_>,
    ways: &Ways,
    facts: &Facts,
    findings: &mut ReviewFindings,
) {
    defaults::add_counts(draft, facts);
    defaults::add_hami(draft, facts);
    defaults::add_vendors(draft, facts);
    defaults::complete_koordinator(draft, facts);
    defaults::show_own_gpus(draft, facts);
    scheduler_name::set(draft, &facts.settings);
    let Some(namespace) = facts.namespace(request.namespace) else { return };
    for mode in ways.modes() {
        for dialect in facts.dialects.iter().filter(|dialect| dialect.mode() == mode) {
            if let Some(keys) = dialect.hint_keys() {
                hints::merge(draft, namespace, keys, findings);
            }
        }
    }
}

fn judge(
    findings: &mut ReviewFindings,
    pod: &Pod,
    namespace: &str,
    ways: &Ways,
    shares: &PodShares<'_>,
    facts: &Facts,
) {
    preemptable::judge(findings, pod, namespace, facts);
    if !ways.ask_for_a_share() {
        return;
    }
    quantities::judge(findings, pod, shares, facts);
    amounts::judge(findings, pod, shares, facts);
    resource_names::judge(findings, pod, facts);
    hint_lists::judge(findings, &pod.metadata, ways, facts);
    hint_keys::judge(findings, &pod.metadata, ways, facts);
    hint_values::judge(findings, &pod.metadata, ways);
    bypasses::judge(findings, pod, facts);
    scheduler_name::judge(findings, pod, &facts.settings);
    ways.judge_nodes(findings, pod, facts);
    if let Err(error) = pod.spec.check_constraints() {
        findings.deny(rules::TOO_MANY_CONSTRAINTS, error.field, error.to_string());
    }
}

/// Compares the pod with the cards of the cluster, if it can be read; unreadable requests are already reported.
fn judge_against_the_cluster(
    findings: &mut ReviewFindings,
    pod: &Pod,
    namespace: &str,
    shares: &PodShares<'_>,
    facts: &Facts,
) {
    if findings.violations().is_empty() {
        capacity::judge(findings, pod, shares, facts);
        quota::judge(findings, shares, namespace, facts);
    }
}

fn verdict(
    mut findings: ReviewFindings,
    work: &mut Work,
    patch: impl FnOnce() -> Vec<json_patch::PatchOperation>,
) -> Verdict {
    *work = *findings.work();
    let (violations, warnings) = findings.into_parts();
    if violations.is_empty() {
        Verdict::Admitted { patch: patch(), warnings }
    } else {
        Verdict::Denied { violations, warnings }
    }
}

fn opts_out(request: &Request<'_>, facts: &Facts) -> bool {
    let ignored = |metadata: &Metadata| {
        [OPT_OUT, hami::names::OPT_OUT].into_iter().any(|key| metadata.label(key) == Some("ignore"))
    };
    ignored(&request.pod.metadata) || facts.namespace(request.namespace).is_some_and(ignored)
}
