//! What a pod's request comes to on cards, whichever it is given: the least that it holds at its peak, and the most of one card.

use super::{CardUsage, Held, InitPhase};
use crate::device::{
    Cores, MiB, Role,
    request::{ContainerRequest, MemoryRequest, PodRequest, ShareRequest},
};

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
            // The smallest card there may be has least of which to give a part.
            cores: Cores::new(self.cores.of(Cores::NONE).get().saturating_mul(cards)),
        }
    }
}

impl PodRequest {
    /// The most that the pod may hold of one card with so much memory and compute: of each container one share, since those of one container are of
    /// different cards.
    pub fn most_of_card(&self, memory: MiB, cores: Cores, init: InitPhase) -> CardUsage {
        let mut held = Held::default();
        for ContainerRequest { role, share } in &self.containers {
            if *role == Role::Init && init == InitPhase::Done {
                continue;
            }
            if let Some(share) = share {
                let amounts =
                    CardUsage { slots: 1, memory: share.memory.of(memory), cores: share.cores.of(cores) };
                held = held.with(*role, amounts);
            }
        }
        held.most()
    }

    /// The least that the pod holds at its peak, whichever cards it is given: a part of a card's memory counts as nothing, and one of its
    /// compute units as one unit.
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
