//! Which cards of one node serve a pod: the one allocator for every dialect.
//!
//! Containers in starting order; for each, the cards in order of preference ([`order`]); each card is tested ([`fit`]) and taken
//! if it passes ([`walk`]). Order and tests come from HAMi v2.10 `pkg/device/nvidia/device.go` `Fit` and Volcano `vgpu/utils.go`
//! `checkNodeGPUSharingPredicateAndScore`; what differs between them is data in `Profile`.

pub mod explain;
pub mod fit;
pub mod links;
pub mod order;
pub mod slice;
#[cfg(test)]
mod tests;
pub mod walk;

use crate::device::{
    Assignment, Card, CardId, ContainerRequest, ContainerShares, Cores, Inventory, Mode, PodRequest, Profile,
    Quota, SlicesOfCard, Slicing, Usage,
};
use crate::scheduling::plugin::devices::reason::DeviceReason;
pub use fit::{CardScene, HeldByPod};

/// The shares for each container, or why a container finds too few cards.
pub fn allocate(
    request: &PodRequest,
    inventory: &Inventory,
    usage: &Usage,
    profile: &Profile,
    quota: Quota,
) -> Result<Assignment, Vec<DeviceReason>> {
    allocate_from(None, request, inventory, usage, (profile, quota))
}

/// As [`allocate`], with this card tried before others.
pub(super) fn allocate_from(
    first: Option<&CardId>,
    request: &PodRequest,
    inventory: &Inventory,
    usage: &Usage,
    (profile, quota): (&Profile, Quota),
) -> Result<Assignment, Vec<DeviceReason>> {
    let mut cards = inventory.cards().iter();
    let several = cards.any(|card| takes_several(profile, card) && request.selection.admits_mode(card));
    if request.widest() as usize > inventory.cards().len() && !several {
        return Err(vec![DeviceReason::TooFewCards]);
    }
    let mut scene =
        CardScene { request, inventory, usage, profile, quota, held: HeldByPod::default(), first };
    let mut containers = Vec::with_capacity(request.containers.len());
    let mut rest = request.containers.iter();
    while let Some(container) = rest.next() {
        let shares = match container.share {
            Some(share) => walk::walk(&scene, container.role, share, &order::preferred(&scene, share))?,
            None => Vec::new(),
        };
        // What the last one is given is of no use to another.
        if !rest.as_slice().is_empty() {
            scene.held.take(container.role, &shares);
        }
        containers.push(ContainerShares { role: container.role, shares });
    }
    Ok(Assignment { containers, marks: request.marks.clone(), ..Assignment::default() })
}

/// Whether a container finds too few cards in any order: fewer pass every test by themselves than it asks for. It is found out as soon as too many fail,
/// and not where one card may serve several shares of a container.
pub(super) fn lacks_cards(
    request: &PodRequest,
    inventory: &Inventory,
    usage: &Usage,
    profile: &Profile,
) -> bool {
    let (quota, held) = (Quota::default(), HeldByPod::default());
    let scene = CardScene { request, inventory, usage, profile, quota, held, first: None };
    let cards = inventory.cards();
    let finds_too_few = |container: &ContainerRequest| {
        let Some(ask) = container.share else { return false };
        let fails = |card: &&Card| {
            let fit = || scene.fit((card, scene.in_use(card)), container.role, ask, &[]);
            scene.suits(card).is_err() || fit().is_err()
        };
        let may_fail = cards.len().checked_sub(ask.cards.get() as usize);
        may_fail.is_none_or(|most| cards.iter().filter(fails).nth(most).is_some())
    };
    !cards.iter().any(|card| takes_several(profile, card)) && request.containers.iter().any(finds_too_few)
}

/// How much compute the card has to give.
pub fn core_budget(profile: &Profile, card: &Card) -> Cores {
    profile.core_budget.of(card.cores)
}

/// Whether shares of the card are hardware slices, each placed by itself.
fn is_placed(card: &Card) -> bool {
    card.mode == Mode::Mig && matches!(card.slicing, Slicing::Placements(_))
}

/// Whether the card may serve several shares of one container, each with a hardware slice of its own.
fn takes_several(profile: &Profile, card: &Card) -> bool {
    profile.slices == SlicesOfCard::Several && card.mode == Mode::Mig && card.slicing != Slicing::Unknown
}
