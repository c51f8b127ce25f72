//! Features of the kubelet that a pod may need (KEP-5328).
//!
//! Source: v1.36 `k8s.io/component-helpers/nodedeclaredfeatures/features`; only these two decide where a pod may go.

use crate::object::Pod;

/// A feature of the kubelet that a pod may need.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Feature {
    /// All containers are started again when one of them ends in a certain way.
    RestartAllContainers,
    /// A user namespace of the pod's own on the node's network.
    UserNamespacesHostNetwork,
}

impl Feature {
    /// The name under which a node declares it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RestartAllContainers => "RestartAllContainersOnContainerExits",
            Self::UserNamespacesHostNetwork => "UserNamespacesHostNetworkSupport",
        }
    }

    /// What the pod needs.
    pub fn needed(pod: &Pod) -> Vec<Self> {
        let spec = &pod.spec;
        let mut rules =
            spec.containers.iter().chain(&spec.init_containers).flat_map(|one| &one.restart_policy_rules);
        let restarts = rules.any(|rule| rule.action == "RestartAllContainers");
        let own_users = spec.host_network && spec.host_users == Some(false);
        let needed = [(restarts, Self::RestartAllContainers), (own_users, Self::UserNamespacesHostNetwork)];
        needed.into_iter().filter(|(needs, _)| *needs).map(|(_, feature)| feature).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_needs_what_its_spec_uses() {
        let needed = |spec: &str| {
            Feature::needed(&serde_json::from_str::<Pod>(&format!(r#"{{"spec":{spec}}}"#)).unwrap())
        };
        let rules = |action: &str| {
            format!(r#"{{"initContainers":[{{"restartPolicyRules":[{{"action":"{action}"}}]}}]}}"#)
        };
        assert_eq!(needed(&rules("RestartAllContainers")), [Feature::RestartAllContainers]);
        assert_eq!(needed(&rules("Restart")), []);
        assert_eq!(needed(r#"{"hostNetwork":true,"hostUsers":false}"#), [Feature::UserNamespacesHostNetwork]);
        assert_eq!(needed(r#"{"hostNetwork":true}"#), []);
    }
}
