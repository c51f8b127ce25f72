//! Which cards of one node serve a pod: the one allocator for every dialect.
//!
//! Containers in starting order; for each, the cards in order of preference; each card is tested once and taken if it passes.
//! Order and tests come from HAMi v2.10 `pkg/device/nvidia/device.go` `Fit` and Volcano `vgpu/utils.go`
//! `checkNodeGPUSharingPredicateAndScore`; what differs between them is data in `Profile`.

use std::{cmp::Ordering, collections::BTreeMap};

use super::reason::{CardReason, NodeReasons, Reason};
use crate::device::{
    Assignment, Blend, Card, CardId, CardPolicy, CardUsage, ContainerShares, CoreBudget, Health, Inventory,
    Mode, Percent, PodRequest, Profile, Share, ShareRequest, Tie, Usage, usage::Held,
};

/// The shares for each container, or why a container finds too few cards.
pub fn allocate(
    request: &PodRequest,
    inventory: &Inventory,
    usage: &Usage,
    profile: &Profile,
) -> Result<Assignment, NodeReasons> {
    let cards = inventory.cards();
    if request.widest() as usize > cards.len() {
        return Err(vec![Reason::NodeInsufficientDevice]);
    }
    let mut held: BTreeMap<CardId, Held> = BTreeMap::new();
    let mut containers = Vec::with_capacity(request.containers.len());
    for container in &request.containers {
        let shares = match container.share {
            Some(share) => Walk { request, cards, usage, profile, held: &held }.shares(share)?,
            None => Vec::new(),
        };
        for share in &shares {
            let card = held.entry(share.card.clone()).or_default();
            *card = card.with(container.role, share);
        }
        containers.push(ContainerShares { role: container.role, shares });
    }
    Ok(Assignment { containers })
}

/// How much compute the card has to give.
pub fn core_budget(profile: &Profile, card: &Card) -> Percent {
    match profile.core_budget {
        CoreBudget::Registered => card.cores,
        CoreBudget::Fixed(budget) => budget,
    }
}

/// One container's walk over the cards.
struct Walk<'a> {
    request: &'a PodRequest,
    cards: &'a [Card],
    usage: &'a Usage,
    profile: &'a Profile,
    held: &'a BTreeMap<CardId, Held>,
}

impl Walk<'_> {
    fn shares(&self, share: ShareRequest) -> Result<Vec<Share>, NodeReasons> {
        let wanted = share.cards.get() as usize;
        let mut shares = Vec::with_capacity(wanted);
        let mut failed: BTreeMap<CardReason, usize> = BTreeMap::new();
        for card in self.by_preference() {
            let want =
                Share { card: card.id.clone(), memory: share.memory.of(card.memory), cores: share.cores };
            match self.test(card, &want) {
                Ok(()) => shares.push(want),
                Err(reason) => *failed.entry(reason).or_default() += 1,
            }
            if shares.len() == wanted {
                return Ok(shares);
            }
        }
        let of = self.cards.len();
        let mut reasons: NodeReasons =
            failed.into_iter().map(|(reason, count)| Reason::Card { reason, count, of }).collect();
        if !shares.is_empty() {
            reasons.push(Reason::AllocatedCardsInsufficientRequest { count: shares.len(), of });
        }
        Err(reasons)
    }

    /// What is in use of the card while a container of this role starts.
    fn in_use(&self, card: &Card) -> CardUsage {
        let own = self.held.get(&card.id).copied().unwrap_or_default();
        self.usage.card(&card.id).and(own.beside())
    }

    fn by_preference(&self) -> Vec<&Card> {
        let mut cards: Vec<_> = self.cards.iter().map(|card| (card, self.in_use(card))).collect();
        cards.sort_by(|a, b| self.fuller(b, a).then_with(|| self.tie(a.0, b.0)));
        cards.into_iter().map(|(card, _)| card).collect()
    }

    /// Greater: the first is to be taken before the second.
    fn fuller(&self, a: &(&Card, CardUsage), b: &(&Card, CardUsage)) -> Ordering {
        match (self.request.card_policy, self.profile.blend) {
            (CardPolicy::Mutex, _) | (CardPolicy::Spread, Blend::MemoryThenSlots) => {
                b.1.slots.cmp(&a.1.slots)
            }
            (CardPolicy::Binpack, Blend::MemoryThenSlots) => a.1.memory.cmp(&b.1.memory),
            (CardPolicy::Binpack, Blend::Even) => self.fullness(a).total_cmp(&self.fullness(b)),
            (CardPolicy::Spread, Blend::Even) => self.fullness(b).total_cmp(&self.fullness(a)),
        }
    }

    fn fullness(&self, (card, usage): &(&Card, CardUsage)) -> f64 {
        super::score::fullness(*usage, card, core_budget(self.profile, card))
    }

    fn tie(&self, a: &Card, b: &Card) -> Ordering {
        match self.profile.tie {
            Tie::Highest => (b.numa, b.index, &b.id).cmp(&(a.numa, a.index, &a.id)),
            Tie::Lowest => (a.index, &a.id).cmp(&(b.index, &b.id)),
        }
    }

    fn test(&self, card: &Card, want: &Share) -> Result<(), CardReason> {
        self.test_choice(card)?;
        let used = self.in_use(card);
        let budget = core_budget(self.profile, card);
        let whole = want.cores >= Percent::WHOLE && want.cores >= budget;
        if used.slots >= card.slots {
            return Err(CardReason::CardTimeSlicingExhausted);
        }
        if self.request.card_policy == CardPolicy::Mutex && used.slots > 0 {
            return Err(CardReason::ExclusiveDeviceAllocateConflict);
        }
        if card.memory.left(used.memory) < want.memory {
            return Err(CardReason::CardInsufficientMemory);
        }
        if budget.left(used.cores) < want.cores {
            return Err(CardReason::CardInsufficientCore);
        }
        if whole && used.slots > 0 {
            return Err(CardReason::ExclusiveDeviceAllocateConflict);
        }
        if budget > Percent::NONE && used.cores >= budget {
            return Err(CardReason::CardComputeUnitsExhausted);
        }
        Ok(())
    }

    /// What depends on the card and the pod's wishes, not on what is in use.
    fn test_choice(&self, card: &Card) -> Result<(), CardReason> {
        let selection = &self.request.selection;
        match card.health {
            Health::Unhealthy => return Err(CardReason::CardNotHealth),
            Health::Cordoned => return Err(CardReason::CardCordoned),
            Health::Healthy => {}
        }
        if !selection.models.admits(&card.model) {
            return Err(CardReason::CardTypeMismatch);
        }
        if !selection.admits_mode(card) || card.mode != Mode::Soft {
            return Err(CardReason::ModeNotFit);
        }
        if !selection.ids.admits(&card.id) {
            return Err(CardReason::CardUuidMismatch);
        }
        Ok(())
    }
}
