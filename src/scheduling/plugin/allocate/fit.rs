//! Whether one card can serve one more share, and with what: every test, in upstream's order.

use std::collections::BTreeMap;

use super::{core_budget, is_placed, slice};
use crate::{
    device::{
        Card, CardId, CardUsage, Cores, Health, Inventory, Mode, PodRequest, Profile, Quota, Role, Share,
        ShareRequest, Sharing, Slice, SlicesOfCard, Usage, usage,
    },
    scheduling::plugin::devices::reason::CardReason,
};

/// All that a card's tests look at.
#[derive(Clone, Debug)]
pub struct CardScene<'a> {
    /// The pod's wishes.
    pub request: &'a PodRequest,
    /// The node's cards.
    pub inventory: &'a Inventory,
    /// What other pods hold of them.
    pub usage: &'a Usage,
    /// How they are shared.
    pub profile: &'a Profile,
    /// What the namespace may still take.
    pub quota: Quota,
    /// What earlier containers of the pod were given.
    pub held: HeldByPod,
    /// The card that is tried before others.
    pub first: Option<&'a CardId>,
}

/// What the pod itself holds so far.
#[derive(Clone, Debug, Default)]
pub struct HeldByPod {
    cards: BTreeMap<CardId, (usage::Held, Vec<Slice>)>,
    /// All cards together.
    total: usage::Held,
}

impl HeldByPod {
    /// Takes in what a further container was given.
    pub fn take(&mut self, role: Role, shares: &[Share]) {
        for (id, amounts) in usage::amounts(shares) {
            let (held, _) = self.cards.entry(id.clone()).or_default();
            *held = held.with(role, amounts);
        }
        for share in shares {
            self.cards.entry(share.card.clone()).or_default().1.extend(share.slice.as_deref().cloned());
        }
        self.total = self.with(role, shares);
    }

    /// All cards together, with these shares of a further container.
    fn with(&self, role: Role, shares: &[Share]) -> usage::Held {
        self.total.with(role, shares.iter().fold(CardUsage::default(), CardUsage::with))
    }
}

impl CardScene<'_> {
    /// What is in use of the card while the next container runs.
    pub fn in_use(&self, card: &Card) -> CardUsage {
        let own = self.held.cards.get(&card.id).map(|(amounts, _)| amounts.beside()).unwrap_or_default();
        self.usage.card(&card.id).and(own)
    }

    /// The share of this card that the request comes to, where so much of the card is in use before the container; `chosen` are the shares that the
    /// same container has already.
    pub(super) fn fit(
        &self,
        (card, before): (&Card, CardUsage),
        role: Role,
        ask: ShareRequest,
        chosen: &[Share],
    ) -> Result<Share, CardReason> {
        if !self.request.selection.ids.admits(&card.id) {
            return Err(CardReason::CardUuidMismatch);
        }
        let here = || chosen.iter().filter(|share| share.card == card.id);
        let used = here().fold(before, CardUsage::with);
        let want = Share {
            card: card.id.clone(),
            memory: ask.memory.of(card.memory),
            cores: ask.cores.of(card.cores),
            slice: None,
        };
        self.fit_users(card, before, used)?;
        // Of a slice, the quota counts what it holds, which may be less compute than was asked.
        if card.mode != Mode::Mig {
            self.fit_quota(role, ask, chosen, &want)?;
        }
        if card.memory.left(used.memory) < want.memory {
            return Err(CardReason::CardInsufficientMemory);
        }
        // A placed slice brings its compute with it, whatever is asked: HAMi v2.10 (`pkg/device/nvidia/device.go` `Fit`) tests each share of
        // a container against the use before the container. Others take what they ask.
        self.fit_compute(card, if is_placed(card) { before } else { used }, &want)?;
        if card.mode != Mode::Mig {
            return Ok(want);
        }
        let own = self.held.cards.get(&card.id).map(|(_, slices)| slices.as_slice()).unwrap_or_default();
        let taken = own.iter().chain(here().filter_map(|share| share.slice.as_deref()));
        if self.profile.slices == SlicesOfCard::One && taken.clone().next().is_some() {
            return Err(CardReason::CardMigTopologyInfeasible);
        }
        let slice = slice::cut(card, self.usage.users(&card.id), taken, want);
        // A slice may be larger than what was asked. Where the card has no memory left for it, the registration is wrong.
        let room = |share: &Share| card.memory.left(used.memory) >= share.memory;
        let slice = slice.filter(room).ok_or(CardReason::CardMigTopologyInfeasible)?;
        self.fit_quota(role, ask, chosen, &slice)?;
        Ok(slice)
    }

    /// What depends on the card and the pod's wishes, not on what is in use.
    pub(super) fn suits(&self, card: &Card) -> Result<(), CardReason> {
        let selection = &self.request.selection;
        match card.health {
            Health::Unhealthy => return Err(CardReason::CardNotHealth),
            Health::Cordoned => return Err(CardReason::CardCordoned),
            Health::Healthy => {}
        }
        if !selection.models.admits(&card.model) {
            return Err(CardReason::CardTypeMismatch);
        }
        if !selection.admits_mode(card) {
            return Err(CardReason::ModeNotFit);
        }
        Ok(())
    }

    /// `before`: in use before the container; `used`: with its own earlier shares.
    fn fit_users(&self, card: &Card, before: CardUsage, used: CardUsage) -> Result<(), CardReason> {
        if used.slots >= card.slots {
            return Err(CardReason::CardTimeSlicingExhausted);
        }
        if self.request.choice.sharing == Sharing::Alone && before.slots > 0 {
            return Err(CardReason::ExclusiveDeviceAllocateConflict);
        }
        let shunned = |mark| self.usage.users(&card.id).is_some_and(|users| users.marks.contains(mark));
        if self.request.shuns.iter().any(shunned) {
            return Err(CardReason::CardMarkConflict);
        }
        Ok(())
    }

    /// Whether what is in use leaves the compute that is asked.
    fn fit_compute(&self, card: &Card, used: CardUsage, want: &Share) -> Result<(), CardReason> {
        let budget = core_budget(self.profile, card);
        let whole = self.profile.core_budget.is_whole(want.cores, budget);
        if budget.left(used.cores) < want.cores {
            return Err(CardReason::CardInsufficientCore);
        }
        if whole && used.slots > 0 {
            return Err(CardReason::ExclusiveDeviceAllocateConflict);
        }
        // Slices with a place are limited by it, not by the sum of their compute, which is rounded up.
        if !is_placed(card) && budget > Cores::NONE && used.cores >= budget {
            return Err(CardReason::CardComputeUnitsExhausted);
        }
        Ok(())
    }

    /// Whether the share, beside the smallest of those chosen that make up the request, stays within the namespace's quota: where
    /// links decide, more are chosen than will be taken.
    fn fit_quota(
        &self,
        role: Role,
        ask: ShareRequest,
        chosen: &[Share],
        want: &Share,
    ) -> Result<(), CardReason> {
        if self.quota == Quota::default() {
            return Ok(());
        }
        let mut shares: Vec<_> = chosen.to_vec();
        shares.sort_by_key(|share| (share.memory, share.cores));
        shares.truncate(ask.cards.get().saturating_sub(1) as usize);
        shares.push(want.clone());
        if self.is_within_quota(role, &shares) { Ok(()) } else { Err(CardReason::ResourceQuotaNotFit) }
    }

    /// Whether the pod stays within the namespace's quota with these shares of a further container.
    pub(super) fn is_within_quota(&self, role: Role, shares: &[Share]) -> bool {
        self.quota.admits(self.held.with(role, shares).most())
    }
}
