//! Volcano's marks on pods: whether a pod may be preempted, in which zone, and how many of a job at a time.
//!
//! Names and the values that Volcano reads there; no decision. Source: volcano `staging/src/volcano.sh/apis/pkg/apis/scheduling/v1beta1/labels.go`.

use super::go_bool;
use crate::object::Metadata;

/// Whether the pod may be preempted: annotation first, then label.
pub const PREEMPTABLE: &str = "volcano.sh/preemptable";
/// On a pod: the revocable zones that it may use, an annotation. On a node: the zone that it is in, a label.
pub const REVOCABLE_ZONE: &str = "volcano.sh/revocable-zone";
/// How long the pod is not preempted after it began: label first, then annotation.
pub const COOLDOWN_TIME: &str = "volcano.sh/cooldown-time";
/// How many of the job must stay: annotation.
pub const MIN_AVAILABLE: &str = "volcano.sh/jdb-min-available";
/// How many of the job may be away: annotation.
pub const MAX_UNAVAILABLE: &str = "volcano.sh/jdb-max-unavailable";
/// How long the pod is expected to run, as Go writes durations: annotation. Berth's own.
pub const EXPECTED_DURATION: &str = "berth.dev/expected-duration";
/// The pod's group; the first that is set counts.
pub const GROUP_NAMES: [&str; 2] = ["scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"];

/// The task of a Volcano Job that a pod belongs to (volcano `staging/src/volcano.sh/apis/pkg/apis/batch/v1alpha1/labels.go`): annotation.
pub const TASK: &str = "volcano.sh/task-spec";
/// The PodClique that a pod belongs to (grove `operator/api/common/labels.go`): label.
pub const POD_CLIQUE: &str = "grove.io/podclique";
/// The pod's group, as the coscheduling plugin has it: label (scheduler-plugins `apis/scheduling/v1alpha1/types.go`).
pub const COSCHEDULING_GROUP: &str = "scheduling.x-k8s.io/pod-group";
/// How many pods of a PodGroup run at most: annotation. Berth's own.
pub const MAX_MEMBERS: &str = "berth.dev/max-members";
/// The node label of which all pods of a PodGroup share one value: annotation. Berth's own.
pub const REQUIRED_TOPOLOGY: &str = "berth.dev/required-topology";
/// The node label of which all pods of a PodGroup share one value where that is possible: annotation. Berth's own.
pub const PREFERRED_TOPOLOGY: &str = "berth.dev/preferred-topology";

/// What is used of a ResourceQuota by key, as JSON: an annotation. Berth's own.
pub const USED: &str = "berth.dev/used";

/// The API group of PodGroups (volcano `staging/src/volcano.sh/apis/pkg/apis/scheduling/v1beta1/register.go`).
pub const GROUPS_API: &str = "scheduling.volcano.sh";
/// Its version.
pub const GROUPS_VERSION: &str = "v1beta1";

/// The revocable zone in which the pod was bound: an annotation of the Binding. Berth's own, and protected like an assignment.
pub const LENT: &str = "assigned.berth.dev/revocable-zone";
/// The mark of a pod that the kubelet runs from a file: annotation. The API server adds it to no pod that exists, and takes a new pod with it
/// only if that names its node (kubernetes v1.36 `pkg/apis/core/validation/validation.go`, `ValidatePodSpecificAnnotations` and
/// `ValidatePodSpecificAnnotationUpdates`), so no pod that a scheduler has placed has it.
pub const MIRROR: &str = "kubernetes.io/config.mirror";

/// The value that stands for every zone.
pub const ANY_ZONE: &str = "*";

/// Whether the pod says that it may be preempted: the annotation, else the label; what is neither true nor false counts as false, as
/// Volcano reads it (`pkg/scheduler/api/pod_info.go`, `GetPodPreemptable`).
pub fn preemptable(metadata: &Metadata) -> Option<bool> {
    let text = metadata.annotation(PREEMPTABLE).or(metadata.label(PREEMPTABLE))?;
    Some(go_bool(text).unwrap_or(false))
}

/// Whether the pod leaves its node when the node's zone closes: it says so, or was bound there because it did. One that says nothing of
/// preemption may be one that an operator of the cluster runs on every node: it stays, although Volcano takes it to be preemptable.
pub fn leaves_when_closed(metadata: &Metadata) -> bool {
    metadata.annotation(LENT).is_some() || says_that_it_leaves(metadata)
}

/// Whether the pod itself says that it leaves its node when the node's zone closes.
pub fn says_that_it_leaves(metadata: &Metadata) -> bool {
    let zone = || metadata.annotation(REVOCABLE_ZONE).is_some_and(|zone| !zone.is_empty());
    preemptable(metadata).unwrap_or_else(zone)
}

/// Whether the text is a duration as Go's `time.ParseDuration` reads it, and not a negative one.
pub fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let number = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let (digits, tail) = rest.split_at(number);
        let readable = digits.contains(|c: char| c.is_ascii_digit()) && digits.matches('.').count() <= 1;
        let units = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"];
        let unit = units.iter().filter(|unit| tail.starts_with(**unit)).max_by_key(|unit| unit.len());
        let (true, Some(unit)) = (readable, unit) else { return false };
        rest = &tail[unit.len()..];
    }
    true
}

/// Whether the text is a budget as Volcano's webhook takes it: a whole number above 0 in 32 bits, or `1%` to `99%`.
///
/// Source: `pkg/webhooks/admission/pods/validate/admit_pod.go`, which also strips `%` from within (`5%0`): its scheduler reads that as 0.
pub fn is_budget(text: &str) -> bool {
    let whole = |digits: &str| {
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| digits.parse::<i32>().ok()).flatten()
    };
    match text.strip_suffix('%') {
        Some(percent) => whole(percent).is_some_and(|percent| (1..=99).contains(&percent)),
        None => whole(text).is_some_and(|number| number > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for text in ["0", "+0", "300ms", "1h30m", "1.5h", ".5s", "2h45m3s", "10µs", "1m0.s", "+5s"] {
            assert!(is_go_duration(text), "{text}");
        }
        for text in ["", "+", "5", "-5s", "1 h", "h", ".s", "1d", "5s3", "1.2.3s", "s5"] {
            assert!(!is_go_duration(text), "{text}");
        }
    }

    #[test]
    fn budgets_are_whole_numbers_above_nothing_or_true_parts() {
        for text in ["1", "2147483647", "1%", "99%"] {
            assert!(is_budget(text), "{text}");
        }
        for text in ["", "0", "-1", "+1", "2147483648", "0%", "100%", "5%0", "%5", "50%%", "1.5", "a"] {
            assert!(!is_budget(text), "{text}");
        }
    }
}
