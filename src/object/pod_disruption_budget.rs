//! A PodDisruptionBudget (`policy/v1`): which pods it covers, and how many of them may be evicted now.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use super::{
    metadata::Metadata,
    nullable,
    selector::{LabelSelector, LabelValues},
};

/// `policy/v1` PodDisruptionBudget.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct PodDisruptionBudget {
    /// Its name and namespace.
    pub metadata: Metadata,
    /// Which pods it covers.
    #[serde(deserialize_with = "nullable")]
    pub spec: PodDisruptionBudgetSpec,
    /// How many of them may be evicted now.
    #[serde(deserialize_with = "nullable")]
    pub status: PodDisruptionBudgetStatus,
}

/// `spec` of a PodDisruptionBudget. `minAvailable` and `maxUnavailable` are not read: the disruption controller makes
/// `status.disruptionsAllowed` of them.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct PodDisruptionBudgetSpec {
    /// The labels of the pods in its namespace that it covers. Absent: no pod. Empty: every pod.
    pub selector: Option<LabelSelector>,
    /// Which pods may be evicted that are not ready.
    #[serde(deserialize_with = "nullable")]
    pub unhealthy_pod_eviction_policy: UnhealthyPods,
}

/// Which pods that are not ready the Eviction API evicts although the budget allows no disruption.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
pub enum UnhealthyPods {
    /// All.
    AlwaysAllow,
    /// Those of a budget with as many healthy pods as it wants; the default.
    #[default]
    #[serde(other)]
    IfHealthyBudget,
}

/// `status` of a PodDisruptionBudget, which the disruption controller writes.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct PodDisruptionBudgetStatus {
    /// How many of its pods may be evicted now. It is 0 until the controller has seen the budget.
    #[serde(deserialize_with = "nullable")]
    pub disruptions_allowed: i32,
    /// How many of its pods are ready.
    #[serde(deserialize_with = "nullable")]
    pub current_healthy: i32,
    /// How many of its pods must be.
    #[serde(deserialize_with = "nullable")]
    pub desired_healthy: i32,
    /// Pods whose eviction the API server has granted and the controller has not yet seen, by name, with the time of the grant.
    /// They have been taken off `disruptionsAllowed` already.
    #[serde(deserialize_with = "nullable")]
    pub disrupted_pods: BTreeMap<String, Timestamp>,
}

impl PodDisruptionBudget {
    /// Whether the budget covers a pod of this namespace with these labels, as kube-scheduler and the Eviction API decide it
    /// (kubernetes v1.36 `pkg/scheduler/framework/plugins/defaultpreemption`, `pkg/registry/core/pod/storage/eviction.go`).
    pub fn covers(&self, namespace: &str, labels: &impl LabelValues) -> bool {
        self.metadata.namespace == namespace
            && self.spec.selector.as_ref().is_some_and(|selector| selector.matches(labels))
    }

    /// Whether the eviction of the pod of this name has been granted and is counted already.
    pub fn has_disrupted(&self, pod: &str) -> bool {
        self.status.disrupted_pods.contains_key(pod)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Labels;

    fn budget(json: &str) -> PodDisruptionBudget {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_budget_covers_the_pods_of_its_namespace_that_its_selector_matches() {
        let labels = Labels::from([("app".to_owned(), "web".to_owned())]);
        for (spec, namespace, expected) in [
            (r#"{"selector":{"matchLabels":{"app":"web"}}}"#, "team", true),
            (r#"{"selector":{"matchLabels":{"app":"web"}}}"#, "other", false),
            (r#"{"selector":{"matchLabels":{"app":"db"}}}"#, "team", false),
            (r#"{"selector":{}}"#, "team", true),
            (r#"{"selector":null}"#, "team", false),
            ("{}", "team", false),
            ("null", "team", false),
        ] {
            let budget = budget(&format!(r#"{{"metadata":{{"namespace":"team"}},"spec":{spec}}}"#));
            assert_eq!(budget.covers(namespace, &labels), expected, "{spec} {namespace}");
        }
    }

    #[test]
    fn a_budget_without_a_status_allows_no_eviction() {
        assert_eq!(budget("{}").status.disruptions_allowed, 0);
        assert_eq!(budget(r#"{"status":null}"#).status.disruptions_allowed, 0);
        let seen = r#"{"status":{"disruptionsAllowed":2,"disruptedPods":{"a":"2026-01-01T00:00:00Z"}}}"#;
        let seen = budget(seen);
        assert_eq!(seen.status.disruptions_allowed, 2);
        assert_eq!((seen.has_disrupted("a"), seen.has_disrupted("b")), (true, false));
    }
}
