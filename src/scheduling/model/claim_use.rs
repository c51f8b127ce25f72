//! The claims of devices that a pod names, and whether they are served.

use std::sync::Arc;

use super::name::Uid;
use crate::object::{Pod, pod::PodResourceClaim, resource_claim::ConsumerReference};

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
    /// Where the claim comes from.
    pub source: ClaimSource,
}

/// Where a claim comes from that a pod uses.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum ClaimSource {
    /// The pod names it.
    Named,
    /// It is made from the template of this name: then it has to be the pod's own, or its PodGroup's.
    Template(Arc<str>),
    /// It is made for the pod's extended resources: then it has to be the pod's own.
    Extended,
}

/// A claim of devices that a PodGroup of Kubernetes has for its pods: an entry of `spec.resourceClaims`. A pod uses it by an entry of its own that
/// is equal in all fields (k8s.io/api v0.37 `core/v1/types.go`, `PodResourceClaim`).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GroupClaim {
    /// The entry's name.
    pub entry: Arc<str>,
    /// What it names.
    pub named: ClaimOrTemplate,
}

/// What an entry of a PodGroup's claims names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ClaimOrTemplate {
    /// A claim.
    Claim(Arc<str>),
    /// A template, from which one claim is made for the PodGroup.
    Template(Arc<str>),
}

impl GroupClaim {
    /// Whether a pod of the group uses this claim by that entry.
    pub fn is_used_by(&self, used: &ResourceClaimUse) -> bool {
        let is_same = match (&self.named, &used.source) {
            (ClaimOrTemplate::Claim(claim), ClaimSource::Named) => used.claim.as_ref() == Some(claim),
            (ClaimOrTemplate::Template(template), ClaimSource::Template(other)) => template == other,
            _ => false,
        };
        is_same && self.entry == used.entry
    }
}

/// Whom the status of a claim names as its user, where a pod uses it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum ClaimConsumer {
    /// The pod.
    #[default]
    Pod,
    /// The pod's PodGroup, once for all its pods.
    PodGroup {
        /// Its name in the pod's namespace.
        name: Arc<str>,
        /// Its uid.
        uid: Arc<str>,
    },
}

impl ClaimConsumer {
    /// The uid by which the status names the user, for this pod.
    pub fn uid<'a>(&'a self, pod: &'a Uid) -> &'a Uid {
        match self {
            Self::Pod => pod,
            Self::PodGroup { uid, .. } => uid,
        }
    }

    /// How the status names the user, for the pod with this name and uid.
    pub fn reference(&self, (pod, uid): (&str, &Uid)) -> ConsumerReference {
        let (api_group, resource, name) = match self {
            Self::Pod => ("", "pods", pod),
            Self::PodGroup { name, .. } => ("scheduling.k8s.io", "podgroups", &**name),
        };
        let (name, uid) = (name.to_owned(), self.uid(uid).to_string());
        ConsumerReference { api_group: api_group.to_owned(), resource: resource.to_owned(), name, uid }
    }

    /// The PodGroup's name in the pod's namespace; `None`: the user is the pod.
    pub fn group(&self) -> Option<&Arc<str>> {
        match self {
            Self::Pod => None,
            Self::PodGroup { name, .. } => Some(name),
        }
    }
}

impl ResourceClaimUse {
    /// The claims of a pod; an entry for which the pod's status names no claim needs none.
    pub fn all(pod: &Pod) -> Vec<Self> {
        let statuses = &pod.status.resource_claim_statuses;
        let read = |entry: &PodResourceClaim| {
            let made = statuses.iter().find(|status| status.name == entry.name);
            let claim = match (&entry.resource_claim_name, made) {
                (Some(claim), _) => Some(claim),
                (None, Some(made)) => Some(made.resource_claim_name.as_ref()?),
                (None, None) => None,
            };
            let source = match (&entry.resource_claim_name, &entry.resource_claim_template_name) {
                (Some(_), _) => ClaimSource::Named,
                (None, template) => ClaimSource::Template(template.as_deref().unwrap_or_default().into()),
            };
            let claim = claim.map(|claim| claim.as_str().into());
            Some(Self { entry: entry.name.as_str().into(), claim, source })
        };
        pod.spec.resource_claims.iter().filter_map(read).collect()
    }
}

/// Keeps a claim of devices until its devices are free again (kubernetes `api/resource/v1`, `Finalizer`).
pub const FINALIZER: &str = "resource.kubernetes.io/delete-protection";
