//! Which card of a node fails which test, one by one, where a container finds too few.

use super::{CardScene, core_budget, fit::HeldByPod, order, walk};
use crate::{
    device::{
        Card, CardId, ContainerRequest, Inventory, PodRequest, Profile, ProfileRequest, Quota, Role,
        ShareRequest, Usage,
    },
    scheduling::{model::pod::Ask, plugin::devices::reason::CardReason, world::node_state::NodeState},
};

/// Why one card can't serve the container.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CardFailure {
    /// The card.
    pub card: CardId,
    /// The test that it fails.
    pub reason: CardReason,
    /// What the container needs and what is free, where the test is about an amount: MiB, compute in the profile's unit,
    /// or slots.
    pub amounts: Option<InsufficientAmount>,
}

/// What is needed and what there is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct InsufficientAmount {
    /// By the container.
    pub needed: u64,
    /// On the card.
    pub free: u64,
}

impl InsufficientAmount {
    /// How much is missing.
    pub fn missing(self) -> u64 {
        self.needed.saturating_sub(self.free)
    }

    /// Which part of what is needed is missing, from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "amounts are compared roughly")]
    pub fn part_missing(self) -> f64 {
        if self.needed == 0 { 0.0 } else { self.missing() as f64 / self.needed as f64 }
    }
}

/// What the first container that finds too few cards wants, and what it finds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Short {
    /// How many cards it wants.
    pub wanted: usize,
    /// How many cards pass every test, one by one.
    pub fitting: usize,
    /// The cards that fail one, by number.
    pub failures: Vec<CardFailure>,
}

/// The first request of cards that finds too few on the node, by its place in the ask; `None` where each finds enough, or its plugin
/// offers no cards that can be read.
pub fn short_on(ask: &Ask, node: &NodeState, quotas: &[Quota]) -> Option<(usize, Short)> {
    ask.devices.iter().enumerate().find_map(|(at, ProfileRequest { profile, request, .. })| {
        let inventory = node.info.devices.offer(&profile.name)?.inventory.as_deref()?;
        let quota = quotas.get(at).copied().unwrap_or_default();
        Some((at, short(request, inventory, &node.usage, profile, quota)?))
    })
}

/// The first container that finds too few cards; none where every container finds enough.
pub fn short(
    request: &PodRequest,
    inventory: &Inventory,
    usage: &Usage,
    profile: &Profile,
    quota: Quota,
) -> Option<Short> {
    let mut scene =
        CardScene { request, inventory, usage, profile, quota, held: HeldByPod::default(), first: None };
    for ContainerRequest { role, share } in &request.containers {
        let Some(ask) = *share else { continue };
        if let Ok(shares) = walk::walk(&scene, *role, ask, &order::preferred(&scene, ask)) {
            scene.held.take(*role, &shares);
            continue;
        }
        let cards = inventory.cards();
        let failures: Vec<_> = cards.iter().filter_map(|card| failure(&scene, card, *role, ask)).collect();
        let fitting = cards.len() - failures.len();
        return Some(Short { wanted: ask.cards.get() as usize, fitting, failures });
    }
    None
}

fn failure(scene: &CardScene<'_>, card: &Card, role: Role, ask: ShareRequest) -> Option<CardFailure> {
    let tested = scene.suits(card).and_then(|()| scene.fit((card, scene.in_use(card)), role, ask, &[]));
    let reason = tested.err()?;
    let used = scene.in_use(card);
    let amounts = match reason {
        CardReason::CardInsufficientMemory => {
            Some((ask.memory.of(card.memory).get(), card.memory.left(used.memory).get()))
        }
        CardReason::CardInsufficientCore => {
            let (needed, budget) = (ask.cores.of(card.cores), core_budget(scene.profile, card));
            Some((needed.get().into(), budget.left(used.cores).get().into()))
        }
        CardReason::CardTimeSlicingExhausted => Some((1, 0)),
        _ => None,
    };
    let amounts = amounts.map(|(needed, free)| InsufficientAmount { needed, free });
    Some(CardFailure { card: card.id.clone(), reason, amounts })
}
