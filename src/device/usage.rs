//! How much of each card is in use: a fold over assignments, computed anew and never adjusted.
//!
//! A pod's use of a card is the most that it holds at any moment of its life: init containers run one after the other, each
//! beside the sidecars started before it; then all sidecars and app containers run together (the rule of
//! `k8s.io/component-helpers/resource`, applied to each card).

mod asked;
mod cards;
mod claimed;
mod twins;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use thin_vec::ThinVec;

use self::cards::UsersOfCards;
use super::{
    amount::{Cores, MiB},
    assignment::{Assignment, ContainerShares, Role, Share},
    card::{Card, CardId},
    joint::DevicesUsed,
    mark::Marks,
    profile::ProfileName,
    request::PodRequest,
    slice::Slice,
};

pub use claimed::Claimed;

/// What is in use of one card.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct CardUsage {
    /// Containers that share it.
    pub slots: u32,
    /// Memory given away.
    pub memory: MiB,
    /// Compute given away.
    pub cores: Cores,
}

impl CardUsage {
    /// With one more container's share.
    #[must_use]
    pub fn with(self, share: &Share) -> Self {
        let share = Self { slots: 1, memory: share.memory, cores: share.cores };
        self.and(share)
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            slots: self.slots.saturating_add(other.slots),
            memory: self.memory + other.memory,
            cores: self.cores + other.cores,
        }
    }

    /// The larger of each.
    #[must_use]
    pub fn peak(self, other: Self) -> Self {
        Self {
            slots: self.slots.max(other.slots),
            memory: self.memory.max(other.memory),
            cores: self.cores.max(other.cores),
        }
    }
}

/// Whether a pod's init containers still hold their shares.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InitPhase {
    /// They have not all ended yet.
    Ahead,
    /// All have ended well.
    Done,
}

/// Everything that is known of a card's users.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Users {
    /// The amounts that they hold.
    pub amounts: CardUsage,
    /// The hardware slices that they hold: those of init containers too, since agents free them with the pod only.
    pub slices: ThinVec<Slice>,
    /// How many shares are no slice.
    pub unsliced: u32,
    /// What they bear.
    pub marks: Marks,
}

impl Users {
    /// One share, which is no slice.
    fn unsliced(amounts: CardUsage) -> Self {
        Self { amounts, unsliced: 1, ..Self::default() }
    }

    /// Both together.
    fn and(mut self, other: Self) -> Self {
        self.amounts = self.amounts.and(other.amounts);
        self.slices.extend(other.slices);
        self.unsliced = self.unsliced.saturating_add(other.unsliced);
        self.marks.extend(other.marks);
        self
    }

    /// Placed slices take no more compute together than the card has: each is registered with its part of the card's multiprocessors
    /// rounded up (HAMi v2.10 `nvinternal/plugin/register.go` `discoverMigProfiles`), so that those of a full A100 sum to 101 to 105 %.
    /// What limits them is where they lie. A card in MIG mode has 100 %, whatever the scaling of others.
    fn bound_compute(&mut self) {
        let placed = self.slices.iter().any(|slice| matches!(slice, Slice::Placed { .. }));
        if placed && self.amounts.cores.known().is_some() {
            self.amounts.cores = self.amounts.cores.min(Cores::WHOLE);
        }
    }

    /// Adds a pod by its shares of this card, container by container.
    fn add_pod(&mut self, shares: &[HeldShare<'_>]) {
        let mut held = Held::default();
        for of_container in shares.chunk_by(|one, other| one.container == other.container) {
            let HeldShare { role, has_ended, .. } = of_container[0];
            let shares = || of_container.iter().map(|held| held.share);
            if !has_ended {
                held = held.with(role, shares().fold(CardUsage::default(), CardUsage::with));
            }
            shares().for_each(|share| self.add(share));
        }
        self.amounts = self.amounts.and(held.most());
        if let Some(running) = shares.iter().find(|held| !held.has_ended) {
            self.marks.extend(running.assignment.marks.iter().cloned());
        }
    }

    fn add(&mut self, share: &Share) {
        match &share.slice {
            Some(slice) => self.slices.push(Slice::clone(slice)),
            None => self.unsliced = self.unsliced.saturating_add(1),
        }
    }
}

/// What is in use of each card; a card that is not in use is absent.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Usage {
    cards: UsersOfCards,
    devices: DevicesUsed,
    unread: BTreeSet<ProfileName>,
    /// What pods may hold whose cards are unknown, by dialect, until it is known which cards there are.
    asked: Vec<(ProfileName, Arc<PodRequest>, InitPhase)>,
}

impl Usage {
    /// The use of all these pods together.
    pub fn of<'a>(pods: impl IntoIterator<Item = (&'a Assignment, InitPhase)>) -> Self {
        let (mut usage, mut held) = (Self::default(), Vec::new());
        for (pod, (assignment, init)) in pods.into_iter().enumerate() {
            if !assignment.devices.is_empty() {
                usage.devices = usage.devices.and(DevicesUsed::of([&assignment.devices]));
            }
            held.extend(HeldShare::of_pod(pod, assignment, init));
        }
        // The sort is stable: the shares of a card stay in order of pod and container.
        held.sort_by(|one, other| one.share.card.cmp(&other.share.card));
        let same_card = |one: &HeldShare<'_>, other: &HeldShare<'_>| one.share.card == other.share.card;
        let mut cards = Vec::with_capacity(held.chunk_by(same_card).count());
        for of_card in held.chunk_by(same_card) {
            let mut users = Users::default();
            of_card.chunk_by(|one, other| one.pod == other.pod).for_each(|of_pod| users.add_pod(of_pod));
            users.bound_compute();
            cards.push((of_card[0].share.card.clone(), users));
        }
        usage.cards = UsersOfCards::in_order(cards);
        usage
    }

    /// Both together, of pods that are in one of them alone.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.cards = self.cards.and(other.cards);
        self.cards.for_each(Users::bound_compute);
        self.devices = self.devices.and(other.devices);
        self.unread.extend(other.unread);
        self.asked.extend(other.asked);
        self
    }

    /// With what a pod may hold of any card of this dialect.
    #[must_use]
    pub fn with_asked(mut self, profile: ProfileName, request: Arc<PodRequest>, init: InitPhase) -> Self {
        self.asked.push((profile, request, init));
        self
    }

    /// Without what pods may hold whose cards are unknown.
    #[must_use]
    pub fn without_asked(self) -> Self {
        Self { asked: Vec::new(), ..self }
    }

    /// With what pods may hold of the node's cards, `cards_of` a dialect, counted on each of them.
    #[must_use]
    pub fn with_cards<'a, C: Iterator<Item = &'a Card>>(
        mut self,
        cards_of: impl Fn(&ProfileName) -> C,
    ) -> Self {
        for (profile, request, init) in std::mem::take(&mut self.asked) {
            let most = |card: &Card| request.most_of_card(card.memory, card.cores, init);
            let cards = cards_of(&profile).map(|card| (card.id.clone(), Users::unsliced(most(card))));
            self.cards = self.cards.and(cards);
        }
        self
    }

    /// With cards of these dialects in use that are unknown.
    #[must_use]
    pub fn with_unread(mut self, profiles: impl IntoIterator<Item = ProfileName>) -> Self {
        self.unread.extend(profiles);
        self
    }

    /// With cards of two names counted together, under both.
    #[must_use]
    pub fn with_aliases(mut self, aliases: &[(CardId, CardId)]) -> Self {
        let mut named: BTreeMap<&CardId, Vec<&CardId>> = BTreeMap::new();
        for (one, other) in aliases {
            named.entry(one).or_insert_with(|| vec![one]).push(other);
        }
        for names in named.into_values() {
            let parts = names.iter().filter_map(|name| self.users(name).cloned());
            let Some(whole) = parts.reduce(Users::and) else { continue };
            self.cards = self.cards.replaced(names.into_iter(), &whole);
        }
        self
    }

    /// What is in use of this card.
    pub fn card(&self, id: &CardId) -> CardUsage {
        self.users(id).map(|users| users.amounts).unwrap_or_default()
    }

    /// Everything that is known of this card's users; `None`: it has none.
    pub fn users(&self, id: &CardId) -> Option<&Users> {
        self.cards.get(id.as_str())
    }

    /// As [`Self::users`], of the card of this uuid.
    pub fn users_of(&self, uuid: &str) -> Option<&Users> {
        self.cards.get(uuid)
    }

    /// What is in use of the node's typed devices.
    pub fn devices(&self) -> &DevicesUsed {
        &self.devices
    }

    /// The dialects of which some cards in use are unknown: any of theirs may be full.
    pub fn unread(&self) -> &BTreeSet<ProfileName> {
        &self.unread
    }

    /// Whether no card and no device is in use, as far as is known, and none may be.
    pub fn is_nothing(&self) -> bool {
        self.cards.is_empty()
            && self.unread.is_empty()
            && self.asked.is_empty()
            && self.devices == DevicesUsed::default()
    }

    /// Every card in use, by uuid.
    pub fn cards(&self) -> impl Iterator<Item = (&CardId, CardUsage)> {
        self.cards.iter().map(|(id, usage)| (id, usage.amounts))
    }
}

impl FromIterator<(CardId, Users)> for Usage {
    fn from_iter<I: IntoIterator<Item = (CardId, Users)>>(cards: I) -> Self {
        Self { cards: UsersOfCards::default().and(cards), ..Self::default() }
    }
}

/// What one pod holds of a card over its life so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    /// The most of any moment of the init phase.
    peak: CardUsage,
    /// Sidecars and app containers, which stay.
    staying: CardUsage,
}

impl Held {
    /// What a further container of this role comes on top of.
    pub fn beside(self) -> CardUsage {
        self.staying
    }

    /// With what a further container holds of the card, all its shares together.
    #[must_use]
    pub fn with(mut self, role: Role, amounts: CardUsage) -> Self {
        let running = self.staying.and(amounts);
        match role {
            Role::Init => self.peak = self.peak.peak(running),
            Role::Sidecar | Role::App => self.staying = running,
        }
        self
    }

    /// The most that is held at any moment.
    pub fn most(self) -> CardUsage {
        self.peak.peak(self.staying)
    }
}

/// The most that a pod holds at any moment, over all its cards: what quotas count.
///
/// HAMi (v2.10 `pkg/device/quota.go`) sums the peaks of each card instead, which counts a card twice that an init container gave back
/// before the apps took another.
pub fn total(assignment: &Assignment, init: InitPhase) -> CardUsage {
    let counted = |container: &&ContainerShares| container.role != Role::Init || init == InitPhase::Ahead;
    let held = assignment.containers.iter().filter(counted).fold(Held::default(), |held, container| {
        let shares = container.shares.iter().map(readable);
        held.with(container.role, shares.fold(CardUsage::default(), |sum, share| sum.with(&share)))
    });
    held.most()
}

/// The share as far as its amounts can be read: one that holds a whole card for want of an amount counts for no more than one share.
fn readable(share: &Share) -> Share {
    let memory = share.memory.known().unwrap_or_default();
    let cores = share.cores.known().unwrap_or_default();
    Share { memory, cores, ..share.clone() }
}

/// What these shares of one container come to on each card.
pub fn amounts<'a>(shares: impl IntoIterator<Item = &'a Share>) -> BTreeMap<&'a CardId, CardUsage> {
    let mut cards: BTreeMap<&CardId, CardUsage> = BTreeMap::new();
    for share in shares {
        let card = cards.entry(&share.card).or_default();
        *card = card.with(share);
    }
    cards
}

/// A share that a container of a pod has not given back.
struct HeldShare<'a> {
    /// Which of the pods, what it was given, and which of its containers.
    pod: usize,
    assignment: &'a Assignment,
    container: usize,
    role: Role,
    /// Whether it is an init container of those that have ended: agents free their slices with the pod only.
    has_ended: bool,
    share: &'a Share,
}

impl<'a> HeldShare<'a> {
    /// Those of a pod, container by container.
    fn of_pod(pod: usize, assignment: &'a Assignment, init: InitPhase) -> impl Iterator<Item = Self> {
        let containers = assignment.containers.iter().enumerate();
        containers.flat_map(move |(container, ContainerShares { role, shares })| {
            let role = *role;
            let has_ended = role == Role::Init && init == InitPhase::Done;
            let held = shares.iter().filter(move |share| !has_ended || share.slice.is_some());
            held.map(move |share| Self { pod, assignment, container, role, has_ended, share })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::SlicePlacement;

    fn container(role: Role, memory: u64, cores: u32) -> ContainerShares {
        let share =
            Share { card: "GPU-1".into(), memory: MiB::new(memory), cores: Cores::new(cores), slice: None };
        ContainerShares { role, shares: vec![share] }
    }

    fn use_of(containers: Vec<ContainerShares>, init: InitPhase) -> (u32, u64, u32) {
        let assignment = Assignment { containers, ..Assignment::default() };
        let usage = Usage::of([(&assignment, init)]).card(&"GPU-1".into());
        (usage.slots, usage.memory.get(), usage.cores.get())
    }

    #[test]
    fn init_containers_count_by_the_largest_and_apps_by_their_sum() {
        use Role::{App, Init};
        let containers = || {
            vec![
                container(Init, 5000, 10),
                container(Init, 2000, 60),
                container(App, 3000, 20),
                container(App, 1000, 20),
            ]
        };
        assert_eq!(use_of(containers(), InitPhase::Ahead), (2, 5000, 60));
        assert_eq!(use_of(containers(), InitPhase::Done), (2, 4000, 40));
    }

    #[test]
    fn a_sidecar_counts_beside_later_init_containers_and_beside_apps() {
        use Role::{App, Init, Sidecar};
        let containers = vec![
            container(Init, 4000, 0),
            container(Sidecar, 4000, 0),
            container(Init, 3000, 0),
            container(App, 2000, 0),
        ];
        assert_eq!(use_of(containers, InitPhase::Ahead), (2, 7000, 0));
        assert_eq!(
            use_of(vec![container(Sidecar, 4000, 0), container(App, 4000, 0)], InitPhase::Done),
            (2, 8000, 0)
        );
    }

    #[test]
    fn two_slices_of_one_card_are_held_at_once_by_an_init_container_too() {
        let mut twice = container(Role::Init, 1000, 10);
        twice.shares.extend(twice.shares.clone());
        assert_eq!(use_of(vec![twice, container(Role::App, 500, 0)], InitPhase::Ahead), (2, 2000, 20));
    }

    #[test]
    fn an_amount_that_can_not_be_read_holds_the_card_and_nothing_of_a_quota() {
        let mut broken = container(Role::App, MiB::UNREAD.get(), 10);
        broken.shares[0].cores = Cores::UNREAD;
        let pod = Assignment { containers: vec![broken], ..Assignment::default() };
        let held = total(&pod, InitPhase::Done);
        assert_eq!((held.slots, held.memory, held.cores), (1, MiB::default(), Cores::NONE));
        assert_eq!(Usage::of([(&pod, InitPhase::Done)]).card(&"GPU-1".into()).memory, MiB::UNREAD);
    }

    #[test]
    fn placed_slices_that_are_rounded_up_take_the_whole_card_at_most() {
        let slice = |start| {
            let mut container = container(Role::App, 4864, 15);
            let placement = SlicePlacement { start, size: 1 };
            container.shares[0].slice = Some(Box::new(Slice::Placed { profile: "1g.5gb".into(), placement }));
            Assignment { containers: vec![container], ..Assignment::default() }
        };
        let cores_of = |pods: &[Assignment]| {
            let cards = Usage::of(pods.iter().map(|pod| (pod, InitPhase::Done)));
            cards.card(&"GPU-1".into()).cores.get()
        };
        assert_eq!(cores_of(&(0..6).map(slice).collect::<Vec<_>>()), 90);
        let mut pods: Vec<_> = (0..7).map(slice).collect();
        assert_eq!(cores_of(&pods), 100);
        pods[0].containers[0].shares[0].cores = Cores::UNREAD;
        assert!(cores_of(&pods) >= Cores::UNREAD.get(), "what can't be read is not hidden");
        let soft = Assignment { containers: vec![container(Role::App, 1, 60)], ..Assignment::default() };
        assert_eq!(cores_of(&[soft.clone(), soft]), 120, "shares in software are summed as they are");
    }

    #[test]
    fn a_card_of_two_names_is_one_card() {
        let pod = |card: &str, memory| {
            let mut container = container(Role::App, memory, 10);
            container.shares[0].card = card.into();
            Assignment { containers: vec![container], ..Assignment::default() }
        };
        let pods = [pod("0", 1000), pod("GPU-a", 3000), pod("1", 500)];
        let usage = Usage::of(pods.iter().map(|pod| (pod, InitPhase::Done)));
        let usage = usage.with_aliases(&[("0".into(), "GPU-a".into()), ("1".into(), "GPU-b".into())]);
        let memory = ["0", "GPU-a", "1", "GPU-b"].map(|card| usage.card(&card.into()).memory.get());
        assert_eq!(memory, [4000, 4000, 500, 500]);
    }

    #[test]
    fn pods_on_one_card_are_summed() {
        let pod = Assignment { containers: vec![container(Role::App, 1000, 30)], ..Assignment::default() };
        let usage = Usage::of([(&pod, InitPhase::Done), (&pod, InitPhase::Done)]).card(&"GPU-1".into());
        assert_eq!((usage.slots, usage.memory, usage.cores), (2, MiB::new(2000), Cores::new(60)));
    }
}
