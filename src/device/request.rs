//! What a pod asks of cards, container by container.

use std::{collections::BTreeSet, num::NonZeroU32};

use super::{
    amount::{MiB, Percent},
    assignment::Role,
    choice::CardChoice,
    mark::Mark,
    selection::Selection,
    usage::{CardUsage, Held},
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

impl ShareRequest {
    /// The least that all its shares together come to.
    fn least(self) -> CardUsage {
        let cards = self.cards.get();
        let memory = match self.memory {
            MemoryRequest::Exact(amount) => amount.get(),
            MemoryRequest::Part(_) => 0,
        };
        CardUsage {
            slots: cards,
            memory: MiB::new(memory.saturating_mul(cards.into())),
            cores: Percent::new(self.cores.get().saturating_mul(cards)),
        }
    }
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

impl PodRequest {
    /// The largest number of cards that one container asks for.
    pub fn widest(&self) -> u32 {
        let cards =
            self.containers.iter().filter_map(|container| container.share).map(|share| share.cards.get());
        cards.max().unwrap_or(0)
    }

    /// The least that the pod holds at its peak, whichever cards it is given: a part of a card's memory counts as nothing.
    pub fn least(&self) -> CardUsage {
        let mut held = Held::default();
        for container in &self.containers {
            if let Some(share) = container.share {
                held = held.with(container.role, share.least());
            }
        }
        held.most()
    }
}
