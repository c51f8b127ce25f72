//! What one pod asks for, as far as it decides how much room pods like it leave: cpu, memory and shares of cards.

use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
    iter,
    sync::Arc,
};

use super::{
    card_kind::{CardKind, narrow},
    resources::ResourceAmounts,
};
use crate::{
    device::{
        CardDimensions, CoreRequest, CoreUnit, Cores, DevicePortion, DeviceType, JointRequest, MemoryRequest,
        MiB, Mode, ModelFilter, Percent, PodRequest, ProfileName, ProfileRequest, Role, ShareRequest,
        Sharing, TypedRequest,
    },
    dra::{AskedDevices, Taken, device::DeviceKind},
};

/// A share of one card.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ShareShape {
    /// The dialect that it is asked in.
    pub profile: ProfileName,
    /// Memory of the card.
    pub memory: MemoryRequest,
    /// Compute of the card.
    pub cores: CoreRequest,
    /// Whether no other pod may be on the card.
    pub alone: bool,
    /// Which models serve.
    pub models: ModelFilter,
    /// Ways of sharing that serve; `None`: any.
    pub modes: Option<Vec<Mode>>,
    /// Whether it is asked of devices, by type or by claim, and not of cards that a plugin registers.
    pub typed: bool,
    /// What a claim takes of a device, by the kinds that serve it; none: it is not asked for by claim.
    pub devices: BTreeMap<Arc<DeviceKind>, Taken>,
}

/// Shares of so many cards, each of the same size.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CardShape {
    /// Of how many cards.
    pub count: u32,
    /// Of each.
    pub share: ShareShape,
}

/// What a pod with shares asks for.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PodShape {
    /// cpu, in thousandths.
    pub cpu: u32,
    /// Memory, in MiB.
    pub memory: u32,
    /// Of cards.
    pub cards: CardShape,
}

/// What a share comes to on a card of one kind.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Portion {
    /// Memory, in MiB.
    pub memory: u32,
    /// Compute.
    pub cores: u32,
    /// Whether no other pod may be on the card.
    pub alone: bool,
    /// How much of the card others can't have, in thousandths: the larger part of memory and compute.
    pub worth: u32,
}

impl CardShape {
    /// What these requests ask for; `None`: no shares of cards. Several containers count as one with as many cards as all have at once, each as
    /// large as the largest share.
    pub fn of(devices: &[ProfileRequest]) -> Option<Self> {
        let of_joint =
            |device: &ProfileRequest| Self::of_gpus(&device.profile.name, device.joint.as_deref()?);
        Self::of_registered(devices).or_else(|| devices.iter().find_map(of_joint))
    }

    /// What is asked of GPUs as devices by type. A pod that wants every GPU of a node counts with one: how many these are differs from node to node.
    fn of_gpus(profile: &ProfileName, joint: &JointRequest) -> Option<Self> {
        let containers = joint.containers.iter().map(|container| &container.request);
        let gpus =
            || iter::once(joint).chain(containers.clone()).filter_map(|one| one.types.get(&DeviceType::Gpu));
        let shares = gpus().filter_map(|gpus| ShareShape::of_gpu(profile, gpus));
        let share = shares.max_by_key(|share| (share.alone, rank(share.memory), share.cores))?;
        let count = gpus().map(TypedRequest::least).fold(0, u32::saturating_add);
        Some(Self { count: count.max(1), share })
    }

    /// What a pod asks for whose claims have these requests; `None`: no card serves one of them. They count as one request for as many cards as all
    /// ask for, each as large as the largest.
    pub fn of_claims(asked: Vec<AskedDevices>) -> Option<Self> {
        let count = asked.iter().map(|one| one.count).fold(0, u32::saturating_add);
        let AskedDevices { takes, .. } =
            asked.into_iter().max_by_key(|one| one.takes.values().max().copied())?;
        Some(Self { count: count.max(1), share: ShareShape::of_devices(takes)? })
    }

    fn of_registered(devices: &[ProfileRequest]) -> Option<Self> {
        let device = devices.iter().find(|device| device.joint.is_none())?;
        let shares = || device.request.containers.iter().filter_map(|one| Some((one.role, one.share?)));
        let of_role = |is: fn(Role) -> bool| shares().filter(move |(role, _)| is(*role));
        let staying: u32 = of_role(|role| role != Role::Init)
            .map(|(_, share)| share.cards.get())
            .fold(0, u32::saturating_add);
        let init = of_role(|role| role == Role::Init).map(|(_, share)| share.cards.get()).max().unwrap_or(0);
        let largest = |share: &ShareRequest| (rank(share.memory), share.cores.get());
        let (_, share) = shares().max_by_key(|(_, share)| largest(share))?;
        Some(Self { count: staying.max(init).max(1), share: ShareShape::of(device, &share) })
    }
}

/// By which the larger of two requests of memory is found without a card: a part of a card is compared as one of 100 GiB.
fn rank(memory: MemoryRequest) -> MiB {
    memory.of(MiB::new(100 << 10))
}

/// By hashes of shapes sequences of pods are drawn: what is asked of registered cards hashes as it did before devices by type had shapes, so that the
/// same pods are drawn.
impl Hash for ShareShape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { profile, memory, cores, alone, models, modes, typed, devices } = self;
        (profile, memory, cores, alone, models, modes).hash(state);
        if *typed {
            typed.hash(state);
        }
        if !devices.is_empty() {
            devices.hash(state);
        }
    }
}

impl ShareShape {
    /// What this share of this request asks of each card.
    pub fn of(device: &ProfileRequest, share: &ShareRequest) -> Self {
        let PodRequest { selection, choice, .. } = &device.request;
        Self {
            profile: device.profile.name.clone(),
            memory: share.memory,
            cores: share.cores,
            alone: choice.sharing == Sharing::Alone,
            models: selection.models.clone(),
            modes: selection.modes.clone(),
            typed: false,
            devices: BTreeMap::new(),
        }
    }

    /// What a request of a claim takes, by the kinds of devices that serve it; `None`: none does.
    fn of_devices(takes: BTreeMap<Arc<DeviceKind>, Taken>) -> Option<Self> {
        let (first, _) = takes.first_key_value()?;
        Some(Self {
            profile: ProfileName::from(&*first.driver),
            memory: MemoryRequest::Exact(MiB::default()),
            cores: CoreRequest::NONE,
            alone: false,
            models: ModelFilter::default(),
            modes: None,
            typed: true,
            devices: takes,
        })
    }

    /// What a request of devices takes of each GPU; `None`: of what a card has it takes nothing. Labels of devices are left out.
    fn of_gpu(profile: &ProfileName, gpus: &TypedRequest) -> Option<Self> {
        let CardDimensions { memory, cores } = gpus.card.as_ref()?;
        let [bytes, percent, cores] =
            [&memory.amount, &memory.percent, cores].map(|dimension| gpus.each.get(dimension));
        if [bytes, percent, cores] == [None; 3] {
            return None;
        }
        let percent = narrow(percent.unwrap_or(0)).min(100);
        let memory = bytes.map_or(MemoryRequest::Part(Percent::new(percent)), |bytes| {
            MemoryRequest::Exact(MiB::new(bytes.div_ceil(MiB::BYTES)))
        });
        Some(Self {
            profile: profile.clone(),
            memory,
            cores: cores.map_or(CoreRequest::NONE, |cores| CoreRequest::Exact(Cores::new(narrow(cores)))),
            alone: gpus.portion == DevicePortion::Whole || gpus.exclusive.is_some() || percent == 100,
            models: ModelFilter::default(),
            modes: None,
            typed: true,
            devices: BTreeMap::new(),
        })
    }

    /// Whether a card of this model and mode that plugins of these dialects offer may serve it, whatever its size.
    pub fn is_served_by(&self, profiles: &[ProfileName], model: &str, mode: Mode) -> bool {
        profiles.contains(&self.profile)
            && self.models.admits(model)
            && self.modes.as_ref().is_none_or(|modes| modes.contains(&mode))
    }

    /// What it comes to on a card of this kind; `None`: such a card does not serve it.
    pub fn on(&self, kind: &CardKind) -> Option<Portion> {
        if !self.devices.is_empty() {
            return self.on_device(kind);
        }
        if !self.is_served_by(&kind.profiles, &kind.model, kind.mode) {
            return None;
        }
        let memory = narrow(self.memory.of(MiB::new(kind.memory.into())).get());
        let cores = self.cores.of(Cores::new(kind.cores)).get();
        Portion::of(memory, cores, self.alone, kind)
    }

    fn on_device(&self, kind: &CardKind) -> Option<Portion> {
        let taken = kind.devices.iter().find_map(|device| self.devices.get(device))?;
        let cores = match kind.unit {
            CoreUnit::Percent => taken.cores,
            CoreUnit::Units => narrow((u64::from(taken.cores) * u64::from(kind.cores)).div_ceil(100)),
        };
        // A driver and a plugin may round the size of a card in different ways.
        let memory = narrow(taken.memory.div_ceil(MiB::BYTES)).min(kind.memory);
        Portion::of(memory, cores.min(kind.cores), taken.whole, kind)
    }
}

impl Portion {
    /// So much of a card of this kind; `None`: it has less.
    fn of(memory: u32, cores: u32, alone: bool, kind: &CardKind) -> Option<Self> {
        if memory > kind.memory || cores > kind.cores {
            return None;
        }
        let least = if kind.unit == CoreUnit::Percent { 100 } else { 1 };
        let alone = alone || (cores >= least && cores >= kind.cores);
        let part = |amount: u32, whole: u32| {
            let thousandths = (u64::from(amount) * 1000 + u64::from(whole) / 2) / u64::from(whole.max(1));
            narrow(thousandths).min(1000)
        };
        let worth = if alone { 1000 } else { part(memory, kind.memory).max(part(cores, kind.cores)) };
        Some(Self { memory, cores, alone, worth })
    }
}

impl PodShape {
    /// What a pod asks for that requests these resources beside its shares.
    pub fn new(resources: &ResourceAmounts, cards: CardShape) -> Self {
        Self { cpu: cpu(resources), memory: memory(resources), cards }
    }
}

/// The cpu of these resources, in thousandths.
pub(in crate::scheduling) fn cpu(resources: &ResourceAmounts) -> u32 {
    narrow(resources.get("cpu").max(0).unsigned_abs())
}

/// The memory of these resources, in MiB and rounded up.
pub(in crate::scheduling) fn memory(resources: &ResourceAmounts) -> u32 {
    narrow(resources.get("memory").max(0).unsigned_abs().div_ceil(MiB::BYTES))
}
