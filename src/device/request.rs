//! What a pod asks of cards, container by container.

use std::{collections::BTreeSet, num::NonZeroU32};

use super::{
    amount::{MiB, Percent},
    assignment::Role,
    choice::CardChoice,
    mark::Mark,
    selection::Selection,
};

/// How much memory of each card.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
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

/// What one container asks: shares of so many different cards, each of the same size.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ShareRequest {
    /// How many cards.
    pub cards: NonZeroU32,
    /// Memory of each.
    pub memory: MemoryRequest,
    /// Compute of each; 0: whatever is free.
    pub cores: Percent,
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
    /// Any: nodes are not told apart by their cards.
    Indifferent,
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
    pub marks: BTreeSet<Mark>,
    /// Marks whose bearers it shares no card with.
    pub shuns: BTreeSet<Mark>,
}

/// What the pod's namespace may still take of cards; none: as much as there is.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Quota {
    /// Memory of all cards together.
    pub memory: Option<MiB>,
    /// Compute of all cards together.
    pub cores: Option<Percent>,
}

impl PodRequest {
    /// The largest number of cards that one container asks for.
    pub fn widest(&self) -> u32 {
        let cards =
            self.containers.iter().filter_map(|container| container.share).map(|share| share.cards.get());
        cards.max().unwrap_or(0)
    }
}
