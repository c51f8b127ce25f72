//! What a pod's containers ask for in extended resources, and the claim that serves them on a node without a device plugin for these
//! (KEP-5004).
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go`.

mod requests;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    device::{ByClass, CardUsage, ProfileName},
    dra::extended_resources::is_extended,
    object::{
        Container, Metadata, Pod,
        pod::{ExtendedResourceClaimStatus, RequestMapping},
        resource_claim::{AllocationResult, DeviceClaim, RequestedDevices, ResourceClaimSpec},
    },
};

pub use crate::dra::ExtendedResources;

/// Marks a claim that was made for extended resources (kubernetes `api/resource/v1`, `ExtendedResourceClaimAnnotation`).
pub const ANNOTATION: &str = "resource.kubernetes.io/extended-resource-claim";

/// What stands between a pod's name and the end of the claim's.
pub const INFIX: &str = "-extended-resources";

/// The longest name that the API server completes (kubernetes `apiserver/pkg/storage/names`): a claim's name is no longer either.
const LONGEST: usize = 63;

/// The claim that serves extended resources of a pod that waits, as its status says.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct StatedClaim {
    /// The claim, and which of its requests serves which resource of which container.
    pub status: Arc<ExtendedResourceClaimStatus>,
    /// Whether the pod's status can't be made to name no claim any more: kubelet starts the pod with one alone.
    pub lasts: bool,
}

/// What a pod asks for in extended resources.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ExtendedRequests {
    /// The name of the claim that is made for it: the one that its status names, whatever scheduler has made it, or else a name of its own.
    pub claim: Arc<str>,
    /// The containers that ask for some: init containers, then the others.
    containers: Vec<Asking>,
    /// What of it are shares of a dialect's cards that a class may serve.
    pub shares: Option<Shares>,
}

/// Shares of cards that a class of devices may serve.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Shares {
    /// Whose cards.
    pub profile: ProfileName,
    /// Which class.
    pub by_class: ByClass,
    /// What they come to in quotas, as far as the pod says.
    pub least: CardUsage,
}

/// Shares of cards, as requests of a claim.
#[derive(Clone, Debug)]
pub struct ShareRequests {
    /// The shares together.
    pub shares: Shares,
    /// By the container's place among init containers and containers.
    pub containers: Vec<(usize, RequestedDevices)>,
}

/// A container that asks for extended resources.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Asking {
    /// Its place among init containers and containers.
    at: usize,
    name: Arc<str>,
    /// Whether it runs beside those after it: all but init containers that end.
    stays: bool,
    resources: Vec<AskedResource>,
}

/// How much a container asks for of one resource.
#[derive(Clone, Debug, Eq, PartialEq)]
struct AskedResource {
    /// Its place among the names of all that the container requests.
    at: usize,
    resource: Arc<str>,
    count: i64,
    /// What is asked of each device; `None`: nothing but its class.
    share: Option<Arc<RequestedDevices>>,
}

/// A resource that a node serves by claim, and the class that stands for it.
pub(in crate::scheduling) type Served<'a> = (&'a str, &'a str);

/// A claim that serves extended resources on a node, before it exists.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ExtendedClaim {
    /// What it asks for.
    pub spec: ResourceClaimSpec,
    /// Which of its requests serves which resource of which container.
    pub mappings: Vec<RequestMapping>,
}

/// What has to be written before a pod is bound to a node whose extended resources are served by claim, or no longer are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ExtendedChoice {
    /// The claim's name in the pod's namespace.
    pub claim: Arc<str>,
    /// The claim and its devices; `None`: the node needs none, and one that was made for another node is to go.
    pub made: Option<(Arc<ExtendedClaim>, Arc<AllocationResult>)>,
}

impl ExtendedRequests {
    /// What the pod asks for; `None`: no extended resource.
    pub fn of_pod(pod: &Pod) -> Option<Self> {
        let init = pod.spec.init_containers.iter().map(|container| (container, container.is_sidecar()));
        let apps = pod.spec.containers.iter().map(|container| (container, true));
        let containers = init.chain(apps).enumerate();
        let containers = containers.filter_map(|(at, (container, stays))| Asking::read(at, container, stays));
        let containers: Vec<_> = containers.collect();
        let stated = pod.status.extended_resource_claim_status.as_ref();
        let stated = stated.map(|status| &*status.resource_claim_name).filter(|name| !name.is_empty());
        let claim = stated.map_or_else(|| claim_name(&pod.metadata), Arc::from);
        (!containers.is_empty()).then_some(Self { claim, containers, shares: None })
    }

    /// With shares of a dialect's cards; `None`: a container has one without naming the resource that counts cards, so that the pod's status
    /// could not say which request serves it.
    pub fn sharing(&self, requests: ShareRequests) -> Option<Self> {
        let mut sharing = self.clone();
        for (at, devices) in requests.containers {
            let container = sharing.containers.iter_mut().find(|container| container.at == at)?;
            let asked = container
                .resources
                .iter_mut()
                .find(|asked| asked.resource == requests.shares.by_class.resource)?;
            asked.share = Some(Arc::new(devices));
        }
        sharing.shares = Some(requests.shares);
        Some(sharing)
    }

    /// Every resource that is asked for, once.
    pub fn resources(&self) -> BTreeSet<&str> {
        let asked = self.containers.iter().flat_map(|container| &container.resources);
        asked.map(|asked| &*asked.resource).collect()
    }

    /// Whether a node could serve any of it by claim, as far as classes decide.
    pub(in crate::scheduling) fn may_be_served(
        &self,
        classes: &ExtendedResources,
        own: &BTreeSet<String>,
    ) -> bool {
        let shares = self.shares.as_ref().map(|shares| &shares.by_class);
        shares.is_some_and(|by| classes.class_or(&by.resource, &by.otherwise).is_some())
            || self.resources().into_iter().any(|name| !own.contains(name) && classes.class(name).is_some())
    }

    /// The claim for these resources.
    pub(in crate::scheduling) fn claim_for(&self, served: &[Served<'_>]) -> ExtendedClaim {
        let (requests, mappings) = requests::of(&self.containers, served);
        let devices = DeviceClaim { requests, ..DeviceClaim::default() };
        ExtendedClaim { spec: ResourceClaimSpec { devices }, mappings }
    }

    /// A text that is equal for pods that ask for the same.
    pub(in crate::scheduling) fn text(&self) -> String {
        format!("{:?}", self.containers)
    }
}

impl Asking {
    /// `None`: it asks for none.
    fn read(at: usize, container: &Container, stays: bool) -> Option<Self> {
        let asked = container.resources.names().enumerate().filter_map(|(at, resource)| {
            // The API server makes a limit without a request a request.
            let quantity =
                container.resources.request(resource).or_else(|| container.resources.limit(resource));
            let count = quantity?.amount().ok()?.whole()?;
            let count = i64::try_from(count).ok().filter(|count| *count > 0)?;
            is_extended(resource).then(|| AskedResource { at, resource: resource.into(), count, share: None })
        });
        let resources: Vec<_> = asked.collect();
        (!resources.is_empty()).then(|| Self { at, name: container.name.as_str().into(), stays, resources })
    }
}

/// Whether both ask for the same: the API server respells amounts.
pub(in crate::scheduling) fn asks_for_same(one: &ResourceClaimSpec, other: &ResourceClaimSpec) -> bool {
    respelt(one) == respelt(other)
}

fn respelt(spec: &ResourceClaimSpec) -> ResourceClaimSpec {
    let mut spec = spec.clone();
    let exact = spec.devices.requests.iter_mut().filter_map(|request| request.exactly.as_mut());
    let capacity = exact.filter_map(|devices| devices.capacity.as_mut());
    for quantity in capacity.flat_map(|capacity| capacity.requests.values_mut()) {
        if let Ok(amount) = quantity.amount() {
            *quantity = amount.binary();
        }
    }
    spec
}

impl ExtendedClaim {
    /// What the pod's status says of the claim of this name.
    pub fn status(&self, claim: &str) -> ExtendedResourceClaimStatus {
        ExtendedResourceClaimStatus {
            request_mappings: self.mappings.clone(),
            resource_claim_name: claim.to_owned(),
        }
    }
}

/// The name of the claim that is made for a pod: upstream's prefix, and a number that is the pod's own in place of a random one, so that a
/// claim whose creation had no answer is not made twice.
fn claim_name(pod: &Metadata) -> Arc<str> {
    let suffix = format!("{INFIX}-{:08x}", fnv(pod.uid.as_bytes()));
    let room = LONGEST - suffix.len();
    let mut name = &pod.name[..pod.name.floor_char_boundary(room)];
    // A name's parts between dots end with a letter or a digit.
    name = name.trim_end_matches(['.', '-']);
    format!("{name}{suffix}").into()
}

/// FNV-1a with 32 bits (RFC 9923).
fn fnv(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
