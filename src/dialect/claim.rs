//! What a pod's shares of NVIDIA cards would be as a claim of devices, for a driver of Dynamic Resource Allocation that publishes each card as a
//! device which several requests may share.
//!
//! Source of the devices: Project-HAMi/k8s-dra-driver ebeaad9 `cmd/hami-kubelet-plugin/hami_core.go` (`GetDevice`): texts `uuid` and
//! `productName`, capacities `memory` and `cores`. Source of the requests' names: kubernetes 1.36
//! `pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go`.

mod loss;
pub mod published;
mod selectors;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::{Dialect, SharingMode, amounts::ResourceReader};
use crate::{
    device::{CoreRequest, Cores, Dimension, MemoryRequest, MiB, Percent, PodRequest, ShareRequest},
    excerpt::{FIELD, MESSAGE, shortened},
    object::{
        Container, Pod, Quantity,
        device_class::DeviceSelector,
        resource_claim::{
            CapacityRequirements, DeviceClaim, DeviceRequest, RequestedDevices, ResourceClaimSpec,
        },
    },
};

/// The name of HAMi's driver, and of the class that its chart brings.
pub const HAMI_DRIVER: &str = "hami-core-gpu.project-hami.io";

/// What each device has to give, by the names that HAMi's driver publishes.
pub const MEMORY: &str = "memory";
/// Percent of the card's compute.
pub const CORES: &str = "cores";

/// How many requests a claim may have (kubernetes `staging/src/k8s.io/api/resource/v1/types.go`, `DeviceRequestsMaxSize`).
const MOST_REQUESTS: usize = 32;

/// The extended resource whose class serves shares of the dialect's cards; `None`: no class does.
pub fn class_resource(dialect: &dyn Dialect) -> Option<&str> {
    let is_nvidias = matches!(dialect.mode(), SharingMode::Hami | SharingMode::Vgpu);
    let counted = dialect.counted().into_iter().filter(|_| is_nvidias);
    Some(counted.into_iter().find(|counted| counted.dimension == Dimension::Cards)?.resource)
}

/// Whose devices the claim is to ask for.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The DeviceClass that each request names.
    pub class: &'a str,
    /// The driver of its devices, in whose domain their attributes are named; `None`: whichever driver publishes the device that is tested.
    pub driver: Option<&'a str>,
    /// The memory of each card that may serve the pod, where all have the same: a percentage is of it, since a claim can ask for an amount
    /// alone. `None`: they differ, or are not known, so that a percentage below 100 can't be said.
    pub card_memory: Option<MiB>,
}

/// What a claim can't say of what the pod asks.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct Unexpressed {
    /// The field, as a path from the pod's root.
    pub field: String,
    /// Why a claim can't say it, in words.
    pub reason: String,
}

/// A pod's shares as a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Translation {
    /// The claim; `None`: there is none that would give the pod what it asks.
    pub spec: Option<ResourceClaimSpec>,
    /// Why there is no claim, or what of the pod's wishes the claim leaves out.
    pub unexpressed: Vec<Unexpressed>,
}

impl Unexpressed {
    fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: shortened(field, FIELD), reason: shortened(reason, MESSAGE) }
    }
}

/// The claim that would give the pod what `request` asks, which the dialect has read of it: for each container a request of its own, named as
/// kube-scheduler names those that it makes of extended resources. Different containers may be given shares of one card, and the cards of
/// one container are different ones, as in HAMi. Shares of init containers are held as long as those of the others.
pub fn translate(dialect: &dyn Dialect, pod: &Pod, request: &PodRequest, target: &Target<'_>) -> Translation {
    let reading = PodReading { dialect, pod, request, target };
    let mut impossible = loss::impossible(&reading);
    let mut requests = Vec::new();
    for asking in reading.asking() {
        match reading.device_request(&asking) {
            Ok(made) => requests.push(made),
            Err(reason) => impossible.push(reason),
        }
    }
    if impossible.is_empty() {
        let devices = DeviceClaim { requests, ..DeviceClaim::default() };
        let spec = Some(ResourceClaimSpec { devices });
        Translation { spec, unexpressed: loss::left_out(&reading) }
    } else {
        Translation { spec: None, unexpressed: impossible }
    }
}

/// A pod that is read.
struct PodReading<'a> {
    dialect: &'a dyn Dialect,
    pod: &'a Pod,
    request: &'a PodRequest,
    target: &'a Target<'a>,
}

/// A container that asks for a share.
struct SharingContainer<'a> {
    /// Its place, init containers first.
    at: usize,
    path: String,
    container: &'a Container,
    share: ShareRequest,
}

impl SharingContainer<'_> {
    /// The path of a resource, in limits or requests, wherever it stands.
    fn field(&self, resource: &str) -> String {
        ResourceReader::new(self.container, &self.path).field(resource)
    }
}

impl<'a> PodReading<'a> {
    fn asking(&self) -> impl Iterator<Item = SharingContainer<'a>> {
        let containers = self.pod.containers().zip(&self.request.containers).enumerate();
        containers.filter_map(|(at, ((path, container), asked))| {
            asked.share.map(|share| SharingContainer { at, path, container, share })
        })
    }

    fn device_request(&self, asking: &SharingContainer<'_>) -> Result<DeviceRequest, Unexpressed> {
        let capacity = self.capacity(asking)?;
        let mut selectors = selectors::of(self.request, self.dialect, self.target.driver)?;
        if !capacity.is_empty() {
            selectors.insert(0, selectors::shareable());
        }
        let name = format!("container-{}-request-{}", asking.at, self.place_of_count(asking.container));
        let exactly = RequestedDevices {
            device_class_name: self.target.class.to_owned(),
            selectors: selectors.into_iter().map(|cel| DeviceSelector { cel: Some(cel) }).collect(),
            allocation_mode: Some("ExactCount".to_owned()),
            count: Some(asking.share.cards.get().into()),
            capacity: (!capacity.is_empty()).then_some(CapacityRequirements { requests: capacity }),
            ..RequestedDevices::default()
        };
        Ok(DeviceRequest { name, exactly: Some(exactly), ..DeviceRequest::default() })
    }

    /// What is taken of each card; nothing where that is the whole card. All memory is taken where none is named: then no other share fits
    /// beside it, as in HAMi.
    fn capacity(&self, asking: &SharingContainer<'_>) -> Result<BTreeMap<String, Quantity>, Unexpressed> {
        let memory = match asking.share.memory {
            MemoryRequest::Exact(memory) => Some(memory),
            MemoryRequest::Part(part) if part >= Percent::WHOLE => None,
            MemoryRequest::Part(part) => {
                let Some(card) = self.target.card_memory else {
                    let field = asking.field(self.memory_percentage());
                    let reason = "a claim asks for an amount, and the cards that may serve the pod differ in size or are not known";
                    return Err(Unexpressed::new(field, reason));
                };
                Some(card.part(part))
            }
        };
        let cores = match asking.share.cores {
            CoreRequest::NONE => memory.map(|_| Cores::NONE),
            cores => Some(cores.of(Cores::WHOLE)).filter(|cores| memory.is_some() || *cores < Cores::WHOLE),
        };
        let memory = memory.map(|memory| (MEMORY.to_owned(), format!("{}Mi", memory.get()).into()));
        let cores = cores.map(|cores| (CORES.to_owned(), cores.get().to_string().into()));
        Ok(memory.into_iter().chain(cores).collect())
    }

    /// The place of the resource that counts cards among all that the container requests, in order of their names. The API server makes a
    /// request of each limit.
    fn place_of_count(&self, container: &Container) -> usize {
        let counted = self.dialect.counted();
        let count = counted.iter().find(|counted| counted.dimension == Dimension::Cards);
        let count = count.map(|count| count.resource).or_else(|| self.dialect.resources().first().copied());
        container.resources.names().filter(|name| count.is_some_and(|count| *name < count)).count()
    }

    /// The resource that asks for a part of a card's memory: the one of a share that no quota counts.
    fn memory_percentage(&self) -> &'a str {
        let counted = self.dialect.counted();
        let is_counted = |name: &&str| counted.iter().any(|counted| counted.resource == *name);
        self.dialect.share_resources().into_iter().find(|name| !is_counted(name)).unwrap_or_default()
    }

    /// Whether the dialect is about NVIDIA's cards, which HAMi's driver publishes.
    fn is_of_nvidia(&self) -> bool {
        !matches!(self.dialect.mode(), SharingMode::Vendor(_))
    }
}
