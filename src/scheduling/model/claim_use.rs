//! The claims of devices that a pod names, and whether they are served.

use std::sync::Arc;

use crate::object::{Pod, pod::PodResourceClaim};

/// Whether claims of devices are served.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DeviceClaims {
    /// They are.
    #[default]
    Served,
    /// `scheduling.claims.enabled` is `false`: nothing of `resource.k8s.io` is read or written.
    Off,
}

/// A claim of devices that a pod uses.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ResourceClaimUse {
    /// The name of the pod's entry.
    pub entry: Arc<str>,
    /// The claim's name; `None`: it is made from a template, and its name is not known yet.
    pub claim: Option<Arc<str>>,
    /// Whether the claim is made from a template: then it has to be the pod's own.
    pub own: bool,
}

impl ResourceClaimUse {
    /// The claims of a pod; an entry for which the pod's status names no claim needs none.
    pub(in crate::scheduling) fn all(pod: &Pod) -> Vec<Self> {
        let statuses = &pod.status.resource_claim_statuses;
        let read = |entry: &PodResourceClaim| {
            let made = statuses.iter().find(|status| status.name == entry.name);
            let claim = match (&entry.resource_claim_name, made) {
                (Some(claim), _) => Some(claim),
                (None, Some(made)) => Some(made.resource_claim_name.as_ref()?),
                (None, None) => None,
            };
            let (entry, own) = (entry.name.as_str().into(), entry.resource_claim_name.is_none());
            Some(Self { entry, claim: claim.map(|claim| claim.as_str().into()), own })
        };
        pod.spec.resource_claims.iter().filter_map(read).collect()
    }
}

/// Keeps a claim of devices until its devices are free again (kubernetes `api/resource/v1`, `Finalizer`).
pub const FINALIZER: &str = "resource.kubernetes.io/delete-protection";
