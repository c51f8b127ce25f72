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

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::device::{
        ContainerRequest, InitPhase, MemoryRequest, MiB, NodePolicy, ProfileName, Role, Selection,
    };

    const HAMI: Profile = Profile {
        name: ProfileName("test"),
        blend: Blend::Even,
        tie: Tie::Highest,
        core_budget: CoreBudget::Registered,
    };

    fn card(index: u32) -> Card {
        Card {
            id: format!("GPU-{index}").into(),
            index,
            slots: 4,
            memory: MiB::new(10_000),
            cores: Percent::WHOLE,
            model: "NVIDIA A100".into(),
            numa: 0,
            mode: Mode::Soft,
            health: Health::Healthy,
        }
    }

    fn ask(containers: &[(Role, u32, u64, u32)]) -> PodRequest {
        let container = |&(role, cards, memory, cores): &(Role, u32, u64, u32)| ContainerRequest {
            role,
            share: NonZeroU32::new(cards).map(|cards| ShareRequest {
                cards,
                memory: MemoryRequest::Exact(MiB::new(memory)),
                cores: Percent::new(cores),
            }),
        };
        PodRequest {
            containers: containers.iter().map(container).collect(),
            selection: Selection::default(),
            card_policy: CardPolicy::Spread,
            node_policy: NodePolicy::Binpack,
        }
    }

    fn used(shares: &[(u32, u64, u32)]) -> Usage {
        let pods: Vec<_> = shares.iter().map(|&(index, memory, cores)| held(index, memory, cores)).collect();
        Usage::of(pods.iter().map(|pod| (pod, InitPhase::Done)))
    }

    fn held(index: u32, memory: u64, cores: u32) -> Assignment {
        let share = Share {
            card: format!("GPU-{index}").into(),
            memory: MiB::new(memory),
            cores: Percent::new(cores),
        };
        Assignment { containers: vec![ContainerShares { role: Role::App, shares: vec![share] }] }
    }

    fn cards_of(request: &PodRequest, usage: &Usage) -> Result<Vec<String>, NodeReasons> {
        let inventory = Inventory::new(vec![card(0), card(1), card(2)]);
        let assignment = allocate(request, &inventory, usage, &HAMI)?;
        Ok(assignment.shares().map(|share| share.card.to_string()).collect())
    }

    fn reasons(request: &PodRequest, usage: &Usage) -> Vec<(CardReason, usize)> {
        let card = |reason: &Reason| match reason {
            Reason::Card { reason, count, .. } => Some((*reason, *count)),
            _ => None,
        };
        cards_of(request, usage).expect_err("it must not fit").iter().filter_map(card).collect()
    }

    #[test]
    fn spread_takes_the_emptiest_and_binpack_the_fullest() {
        let usage = used(&[(2, 4000, 10), (1, 1000, 10)]);
        let mut request = ask(&[(Role::App, 1, 1000, 10)]);
        assert_eq!(cards_of(&request, &usage).unwrap(), ["GPU-0"]);
        request.card_policy = CardPolicy::Binpack;
        assert_eq!(cards_of(&request, &usage).unwrap(), ["GPU-2"]);
        request.card_policy = CardPolicy::Mutex;
        assert_eq!(cards_of(&request, &usage).unwrap(), ["GPU-0"]);
    }

    #[test]
    fn equals_go_by_the_profiles_tie() {
        let request = ask(&[(Role::App, 1, 1000, 10)]);
        assert_eq!(cards_of(&request, &Usage::default()).unwrap(), ["GPU-2"]);
        let lowest = Profile { tie: Tie::Lowest, ..HAMI };
        let inventory = Inventory::new(vec![card(1), card(0)]);
        let assignment = allocate(&request, &inventory, &Usage::default(), &lowest).unwrap();
        assert_eq!(assignment.shares().next().unwrap().card, "GPU-0".into());
    }

    #[test]
    fn one_containers_shares_are_on_different_cards() {
        assert_eq!(cards_of(&ask(&[(Role::App, 3, 1, 0)]), &Usage::default()).unwrap().len(), 3);
        let four = cards_of(&ask(&[(Role::App, 4, 1, 0)]), &Usage::default());
        assert_eq!(four, Err(vec![Reason::NodeInsufficientDevice]));
    }

    #[test]
    fn each_shortage_is_told_by_its_name() {
        let full = used(&[(0, 9500, 0), (1, 9500, 0), (2, 100, 80)]);
        let request = ask(&[(Role::App, 1, 1000, 30)]);
        assert_eq!(
            reasons(&request, &full),
            [(CardReason::CardInsufficientMemory, 2), (CardReason::CardInsufficientCore, 1)]
        );
        let slots: Vec<_> = (0..3).flat_map(|index| vec![(index, 1, 0); 4]).collect();
        assert_eq!(reasons(&request, &used(&slots)), [(CardReason::CardTimeSlicingExhausted, 3)]);
    }

    #[test]
    fn exclusive_use_holds_both_ways() {
        let shared = used(&[(0, 1, 0), (1, 1, 0), (2, 1, 0)]);
        let exclusive = ask(&[(Role::App, 1, 1000, 100)]);
        assert_eq!(reasons(&exclusive, &shared), [(CardReason::ExclusiveDeviceAllocateConflict, 3)]);
        let taken = used(&[(0, 1, 100), (1, 1, 100), (2, 1, 100)]);
        let modest = ask(&[(Role::App, 1, 1, 0)]);
        assert_eq!(reasons(&modest, &taken), [(CardReason::CardComputeUnitsExhausted, 3)]);
    }

    #[test]
    fn a_pods_own_containers_count_by_kubernetes_rule() {
        let mut request = ask(&[(Role::Init, 1, 9000, 0), (Role::App, 1, 9000, 0)]);
        request.selection.ids.one_of = vec!["GPU-1".to_owned()];
        assert_eq!(cards_of(&request, &Usage::default()).unwrap(), ["GPU-1", "GPU-1"]);
        request.containers[0].role = Role::Sidecar;
        assert!(cards_of(&request, &Usage::default()).is_err(), "a sidecar runs beside the app");
    }
}
