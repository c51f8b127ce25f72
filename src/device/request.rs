//! What a pod asks of cards, container by container.

use std::{num::NonZeroU32, sync::Arc};

use super::{
    amount::{CoreUnit, Cores, MiB, Percent},
    assignment::Role,
    choice::CardChoice,
    joint::JointRequest,
    mark::Marks,
    profile::{CoreBudget, Profile},
    selection::Selection,
};

/// How much memory of each card.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum MemoryRequest {
    /// So much.
    Exact(MiB),
    /// A part of the card's memory, rounded down to whole MiB.
    Part(Percent),
}

impl MemoryRequest {
    /// What it comes to on a card of that memory.
    pub fn of(self, memory: MiB) -> MiB {
        match self {
            Self::Exact(amount) => amount,
            Self::Part(percent) => memory.part(percent),
        }
    }
}

/// How much compute of each card.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum CoreRequest {
    /// So much; 0: whatever is free.
    Exact(Cores),
    /// A part of the card's compute units, rounded down to at least one; 0: whatever is free.
    Part(Percent),
}

impl CoreRequest {
    /// Whatever is free.
    pub const NONE: Self = Self::Exact(Cores::NONE);

    /// What a container asks that states so many percent of cards of this budget.
    pub fn stated(percent: Percent, budget: CoreBudget) -> Self {
        match budget.unit() {
            CoreUnit::Percent => Self::Exact(Cores::new(percent.get())),
            CoreUnit::Units => Self::Part(percent),
        }
    }

    /// What it comes to on a card of that compute.
    pub fn of(self, cores: Cores) -> Cores {
        match self {
            Self::Exact(amount) => amount,
            Self::Part(Percent::NONE) => Cores::NONE,
            Self::Part(percent) => cores.part(percent).max(Cores::new(1)),
        }
    }

    /// The number that it states: of an amount, or of percent.
    pub const fn get(self) -> u32 {
        match self {
            Self::Exact(amount) => amount.get(),
            Self::Part(percent) => percent.get(),
        }
    }

    /// A request of the same kind that states this number.
    #[must_use]
    pub const fn with(self, number: u32) -> Self {
        match self {
            Self::Exact(_) => Self::Exact(Cores::new(number)),
            Self::Part(_) => Self::Part(Percent::new(number)),
        }
    }

    /// The request of the same kind that fills this room on a card of that compute.
    #[must_use]
    pub fn filling(self, room: Cores, card: Cores) -> Self {
        match self {
            Self::Exact(_) => Self::Exact(room),
            Self::Part(_) => Self::Part(room.percent_of(card)),
        }
    }
}

/// What one container asks: shares of so many different cards, each of the same size.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ShareRequest {
    /// How many cards.
    pub cards: NonZeroU32,
    /// Memory of each.
    pub memory: MemoryRequest,
    /// Compute of each.
    pub cores: CoreRequest,
}

/// One container and what it asks, if anything.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ContainerRequest {
    /// When the container runs.
    pub role: Role,
    /// What it asks.
    pub share: Option<ShareRequest>,
}

/// Which node is taken first.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum NodePolicy {
    /// The fullest that fits.
    Binpack,
    /// The emptiest.
    Spread,
    /// Any: nodes are not compared by their cards.
    Indifferent,
    /// The one where the pod leaves least of no use for the pods that may come.
    LeastWaste,
}

/// What a pod asks of cards: its containers in kubelet's starting order, those that ask nothing too.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct PodRequest {
    /// Init containers and sidecars in order, then app containers.
    pub containers: Vec<ContainerRequest>,
    /// Which cards may serve.
    pub selection: Selection,
    /// How the cards are chosen.
    pub choice: CardChoice,
    /// Which node first.
    pub node_policy: NodePolicy,
    /// What the pod bears.
    pub marks: Marks,
    /// Marks whose bearers it shares no card with.
    pub shuns: Marks,
}

/// What a pod asks of the cards of one dialect, and how these are shared.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ProfileRequest {
    /// How the cards are shared, and which offers of a node count.
    pub profile: Profile,
    /// Shares of cards, container by container.
    pub request: PodRequest,
    /// Devices by type, for the pod as a whole; `None`: the dialect knows cards alone.
    pub joint: Option<Arc<JointRequest>>,
    /// By which class of devices a node without a device plugin of the dialect may serve it; `None`: none may.
    pub by_class: Option<ByClass>,
}

/// How shares of a dialect's cards are asked for where a driver of devices publishes the cards.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct ByClass {
    /// The extended resource that counts cards: the class that stands for it is asked first.
    pub resource: Arc<str>,
    /// The class that is asked where none stands for the resource.
    pub otherwise: Arc<str>,
}

impl PodRequest {
    /// Whether more than one container asks for cards. Each is given its cards before the next, so that which cards are in use already
    /// decides whether the next still finds some: a node that would not have the pod may have it once another pod is there.
    pub fn has_several_shares(&self) -> bool {
        self.containers.iter().filter(|container| container.share.is_some()).nth(1).is_some()
    }

    /// The largest number of cards that one container asks for.
    pub fn widest(&self) -> u32 {
        let cards =
            self.containers.iter().filter_map(|container| container.share).map(|share| share.cards.get());
        cards.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_cards_compute_units_is_at_least_one() {
        let share = |budget: CoreBudget, asked, registered| {
            CoreRequest::stated(Percent::new(asked), budget).of(Cores::new(registered)).get()
        };
        let units = |asked, registered| share(CoreBudget::Units, asked, registered);
        assert_eq!([units(100, 304), units(50, 304), units(1, 40), units(0, 304)], [304, 152, 1, 0]);
        assert_eq!(share(CoreBudget::Registered, 30, 304), 30);
    }
}
