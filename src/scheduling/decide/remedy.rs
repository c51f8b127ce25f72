//! The smallest change of what a pod asks with which a node would have it.
//!
//! One dimension at a time: less memory, less compute, fewer cards, or one wish less. Each answer was tried on the node: what is not
//! found here may still exist as a change of two things at once.

use std::{collections::BTreeSet, fmt, num::NonZeroU32};

use crate::device::{
    Card, CardUsage, CoreRequest, Cores, IdFilter, Inventory, Marks, MemoryRequest, MiB, ModelFilter,
    NumaBinding, Percent, PodRequest, ProfileRequest, Quota, ShareRequest, Sharing,
};
use crate::scheduling::{
    model::pod::Ask,
    plugin::{allocate::core_budget, filter::filter},
    world::node_state::NodeState,
};

/// A change with which the node would have the pod.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Remedy {
    /// At most so much memory of each card.
    Memory(MiB),
    /// At most this part of each card's memory.
    MemoryPart(Percent),
    /// At most so much compute of each card.
    Cores(CoreRequest),
    /// At most so many cards a container.
    Cards(NonZeroU32),
    /// Cards of any model.
    AnyModel,
    /// Cards of any uuid.
    AnyCard,
    /// Cards sliced in any way.
    AnyMode,
    /// Cards of several NUMA nodes.
    AnyNuma,
    /// Cards that others use.
    SharedCards,
    /// Cards of pods that this one is kept apart from.
    AnyCompany,
}

impl fmt::Display for Remedy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(memory) => write!(formatter, "with at most {memory} per card"),
            Self::MemoryPart(part) => write!(formatter, "with at most {}% of a card's memory", part.get()),
            Self::Cores(cores) if cores.get() == 0 => formatter.write_str("without a compute request"),
            // It is asked for in percent, whatever it is counted in.
            Self::Cores(cores) => write!(formatter, "with at most {}% of a card's compute", cores.get()),
            Self::Cards(cards) => write!(formatter, "with at most {cards} card(s) per container"),
            Self::AnyModel => formatter.write_str("with any card model"),
            Self::AnyCard => formatter.write_str("without UUIDs"),
            Self::AnyMode => formatter.write_str("with any card mode"),
            Self::AnyNuma => formatter.write_str("without the binding to one NUMA node"),
            Self::SharedCards => formatter.write_str("on cards that other pods use"),
            Self::AnyCompany => formatter.write_str("on a card with pods that it is kept apart from"),
        }
    }
}

/// The smallest of those changes, by the part of the wish that is given up; a wish for certain cards is given up last.
///
/// `at` is the place of the request of cards that is changed, `quotas` is what the pod's namespace may still take for each.
pub fn remedy(
    ask: &Ask,
    at: usize,
    node: &NodeState,
    device_resources: &BTreeSet<String>,
    quotas: &[Quota],
) -> Option<Remedy> {
    let (device, quota) = (ask.devices.get(at)?, quotas.get(at).copied().unwrap_or_default());
    let fits = |remedy: &Remedy| {
        let mut changed = ask.clone();
        changed.devices[at].request = with(&device.request, *remedy);
        filter(&changed, node, device_resources, quotas).is_ok()
    };
    let amounts =
        [memory(device, node, quota), parts(device, node), cores(device, node, quota), cards(device)];
    let best = amounts
        .into_iter()
        .filter_map(|larger_first| larger_first.into_iter().find(|(_, remedy)| fits(remedy)));
    let best = best.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, remedy)| remedy);
    best.or_else(|| wishes(&device.request).into_iter().find(fits))
}

/// Changes of one dimension, the smallest first, each with the part that is given up.
type Candidates = Vec<(f64, Remedy)>;

fn candidates<T: Copy + Ord + Into<u64>>(
    most: Option<T>,
    smaller: impl IntoIterator<Item = T>,
    remedy: impl Fn(T) -> Remedy,
) -> Candidates {
    let Some(most) = most else { return Vec::new() };
    let smaller: BTreeSet<T> = smaller.into_iter().filter(|amount| *amount < most).collect();
    #[expect(clippy::cast_precision_loss, reason = "amounts of cards are far below 2^52")]
    let part = |amount: T| 1.0 - amount.into() as f64 / most.into() as f64;
    smaller.into_iter().rev().map(|amount| (part(amount), remedy(amount))).collect()
}

fn shares(request: &PodRequest) -> impl Iterator<Item = ShareRequest> + '_ {
    request.containers.iter().filter_map(|container| container.share)
}

/// How many shares all containers want together.
fn wanted(request: &PodRequest) -> u32 {
    shares(request).map(|share| share.cards.get()).fold(0_u32, u32::saturating_add).max(1)
}

/// What is free of each card, and each of it in as many parts as containers may want one.
fn free<'a>(
    device: &'a ProfileRequest,
    node: &'a NodeState,
) -> impl Iterator<Item = (&'a Card, CardUsage, u32)> {
    let containers = u32::try_from(shares(&device.request).count()).unwrap_or(u32::MAX).min(8);
    let inventory =
        node.info.devices.offer(&device.profile.name).and_then(|offer| offer.inventory.as_deref());
    let cards = inventory.into_iter().flat_map(Inventory::cards);
    cards.flat_map(move |card| {
        let used = node.usage.card(&card.id);
        (1..=containers.max(1)).map(move |parts| (card, used, parts))
    })
}

fn memory(device: &ProfileRequest, node: &NodeState, quota: Quota) -> Candidates {
    let exact = shares(&device.request).filter_map(|share| match share.memory {
        MemoryRequest::Exact(memory) => Some(memory.get()),
        MemoryRequest::Part(_) => None,
    });
    let free =
        free(device, node).map(|(card, used, parts)| card.memory.left(used.memory).get() / u64::from(parts));
    let left = quota.memory.map(|left| left.get() / u64::from(wanted(&device.request)));
    candidates(exact.max(), free.chain(left).filter(|&free| free > 0), |memory| {
        Remedy::Memory(MiB::new(memory))
    })
}

fn parts(device: &ProfileRequest, node: &NodeState) -> Candidates {
    let part = shares(&device.request).filter_map(|share| match share.memory {
        MemoryRequest::Part(part) => Some(part.get()),
        MemoryRequest::Exact(_) => None,
    });
    let free = free(device, node).filter_map(|(card, used, parts)| {
        let free = card.memory.left(used.memory).get() / u64::from(parts);
        u32::try_from((free * 100).checked_div(card.memory.get())?).ok()
    });
    candidates(part.max(), free.filter(|&free| free > 0), |part| Remedy::MemoryPart(Percent::new(part)))
}

fn cores(device: &ProfileRequest, node: &NodeState, quota: Quota) -> Candidates {
    let cores = shares(&device.request).map(|share| share.cores).filter(|cores| cores.get() > 0);
    let Some(most) = cores.max_by_key(|cores| cores.get()) else { return Vec::new() };
    let left = quota.cores.map(|left| left.get() / wanted(&device.request));
    let smaller = free(device, node).flat_map(|(card, used, parts)| {
        let budget = core_budget(&device.profile, card);
        let free = budget.left(used.cores).get() / parts.max(1);
        let rooms = std::iter::once(free).chain(left);
        rooms.map(move |room| most.filling(Cores::new(room), budget).get())
    });
    // A part of compute units is at least one percent: a container that states none gets all of them.
    let free_of_claims = matches!(most, CoreRequest::Exact(_)).then_some(0);
    let smaller = smaller.filter(|&cores| cores > 0).chain(free_of_claims);
    candidates(Some(most.get()), smaller, |cores| Remedy::Cores(most.with(cores)))
}

fn cards(device: &ProfileRequest) -> Candidates {
    let widest = device.request.widest();
    let fewer = (1..widest).rev().take(64).filter_map(NonZeroU32::new);
    candidates(NonZeroU32::new(widest).map(NonZeroU32::get), fewer.map(NonZeroU32::get), |cards| {
        Remedy::Cards(NonZeroU32::new(cards).unwrap_or(NonZeroU32::MIN))
    })
}

fn wishes(request: &PodRequest) -> Vec<Remedy> {
    let wishes = [
        (request.selection.models != ModelFilter::default(), Remedy::AnyModel),
        (request.selection.ids != IdFilter::default(), Remedy::AnyCard),
        (request.selection.modes.is_some(), Remedy::AnyMode),
        (request.choice.numa != NumaBinding::Free, Remedy::AnyNuma),
        (request.choice.sharing != Sharing::Shared, Remedy::SharedCards),
        (!request.shuns.is_empty(), Remedy::AnyCompany),
    ];
    wishes.into_iter().filter(|(wished, _)| *wished).map(|(_, remedy)| remedy).collect()
}

/// The request with that change.
fn with(request: &PodRequest, remedy: Remedy) -> PodRequest {
    let mut request = request.clone();
    for share in request.containers.iter_mut().filter_map(|container| container.share.as_mut()) {
        match (remedy, share.memory) {
            (Remedy::Memory(most), MemoryRequest::Exact(memory)) => {
                share.memory = MemoryRequest::Exact(memory.min(most));
            }
            (Remedy::MemoryPart(most), MemoryRequest::Part(part)) => {
                share.memory = MemoryRequest::Part(part.min(most));
            }
            (Remedy::Cores(most), _) => share.cores = share.cores.with(share.cores.get().min(most.get())),
            (Remedy::Cards(most), _) => share.cards = share.cards.min(most),
            _ => {}
        }
    }
    match remedy {
        Remedy::AnyModel => request.selection.models = ModelFilter::default(),
        Remedy::AnyCard => request.selection.ids = IdFilter::default(),
        Remedy::AnyMode => request.selection.modes = None,
        Remedy::AnyNuma => request.choice.numa = NumaBinding::Free,
        Remedy::SharedCards => request.choice.sharing = Sharing::Shared,
        Remedy::AnyCompany => request.shuns = Marks::default(),
        Remedy::Memory(_) | Remedy::MemoryPart(_) | Remedy::Cores(_) | Remedy::Cards(_) => {}
    }
    request
}
