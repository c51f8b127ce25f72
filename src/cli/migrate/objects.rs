//! The claims and templates of a plan, as they can be applied.
//!
//! A pod that a controller made is made again from a template, so it gets a ResourceClaimTemplate; any other pod has a ResourceClaim of its own.

use serde::Serialize;

use crate::object::{Pod, resource_claim::ResourceClaimSpec};

/// The version in which they are written.
const VERSION: &str = "resource.k8s.io/v1";

/// What names end with.
const SUFFIX: &str = "-cards";

/// How long a name may be (a DNS subdomain).
const LONGEST: usize = 253;

/// A ResourceClaim or a ResourceClaimTemplate.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClaimObject {
    api_version: &'static str,
    kind: ClaimKind,
    metadata: Name,
    spec: ClaimSpec,
}

/// Which of the two.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub(super) enum ClaimKind {
    /// A claim.
    ResourceClaim,
    /// What a claim is made from for each pod.
    ResourceClaimTemplate,
}

/// Name and namespace.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(super) struct Name {
    name: String,
    namespace: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum ClaimSpec {
    Claim(ResourceClaimSpec),
    Template { spec: ResourceClaimSpec },
}

/// Which object a pod would use.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(super) struct Used {
    /// Its kind.
    pub kind: ClaimKind,
    /// Its name.
    pub name: String,
}

/// The objects of a plan.
#[derive(Debug, Default)]
pub(super) struct PlanObjects(pub(super) Vec<ClaimObject>);

impl PlanObjects {
    /// The object from which the pod would have this claim: one that is there already, or a new one.
    pub(super) fn of(&mut self, pod: &Pod, spec: ResourceClaimSpec) -> Used {
        let (kind, owner, spec) = match &pod.metadata.controller {
            Some(controller) => {
                (ClaimKind::ResourceClaimTemplate, controller.name(), ClaimSpec::Template { spec })
            }
            None => (ClaimKind::ResourceClaim, pod.metadata.name.as_str(), ClaimSpec::Claim(spec)),
        };
        for number in 1.. {
            let name = Name { name: name(owner, number), namespace: pod.metadata.namespace.clone() };
            let used = Used { kind, name: name.name.clone() };
            match self.0.iter().find(|object| object.kind == kind && object.metadata == name) {
                Some(known) if known.spec == spec => return used,
                Some(_) => {}
                None => {
                    self.0.push(ClaimObject { api_version: VERSION, kind, metadata: name, spec });
                    return used;
                }
            }
        }
        unreachable!("there are more numbers than objects")
    }
}

/// A name from that of the pod or of its controller; further ones of the same owner are numbered.
fn name(owner: &str, number: usize) -> String {
    let suffix = if number == 1 { SUFFIX.to_owned() } else { format!("{SUFFIX}-{number}") };
    let kept: String = owner.chars().take(LONGEST - suffix.len()).collect();
    kept.trim_end_matches(['-', '.']).to_owned() + &suffix
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::resource_claim::{DeviceClaim, DeviceRequest};

    fn spec(request: &str) -> ResourceClaimSpec {
        let requests = vec![DeviceRequest { name: request.to_owned(), ..DeviceRequest::default() }];
        ResourceClaimSpec { devices: DeviceClaim { requests, ..DeviceClaim::default() } }
    }

    fn pod(name: &str, controller: Option<&str>) -> Pod {
        let owner = |name| json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "u", "controller": true});
        let owners: Vec<_> = controller.into_iter().map(owner).collect();
        let metadata = json!({"namespace": "team", "name": name, "ownerReferences": owners});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    #[test]
    fn pods_of_one_controller_share_a_template_as_long_as_they_ask_for_the_same() {
        let mut objects = PlanObjects::default();
        let mut named = |pod: &Pod, request: &str| objects.of(pod, spec(request)).name;
        assert_eq!(named(&pod("web-1", Some("web")), "a"), "web-cards");
        assert_eq!(named(&pod("web-2", Some("web")), "b"), "web-cards-2");
        assert_eq!(named(&pod("web-3", Some("web")), "a"), "web-cards");
        assert_eq!(named(&pod("web", None), "a"), "web-cards");
        let kinds: Vec<_> = objects.0.iter().map(|object| object.kind).collect();
        let (template, claim) = (ClaimKind::ResourceClaimTemplate, ClaimKind::ResourceClaim);
        assert_eq!(kinds, [template, template, claim]);
    }

    #[test]
    fn a_name_is_never_too_long_and_ends_as_names_must() {
        let long = format!("{}-{}", "a".repeat(246), "b".repeat(6));
        assert_eq!(name(&long, 1), format!("{}-cards", "a".repeat(246)));
        assert_eq!(name(&"c".repeat(253), 12).len(), LONGEST);
    }
}
