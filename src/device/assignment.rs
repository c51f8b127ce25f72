//! What a pod was given: for each container, shares of cards.

use jiff::Timestamp;
use thin_vec::ThinVec;

use super::{
    amount::{Cores, MiB},
    card::CardId,
    joint::{ContainerDevices, DeviceAllocations},
    mark::Marks,
    reservation::ReservationName,
    slice::Slice,
};

/// When a container runs, which decides whose shares add up.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Role {
    /// Before the app containers, one after the other.
    Init,
    /// From its turn among the init containers to the end.
    Sidecar,
    /// Together with all other app containers.
    App,
}

/// A share of one card.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Share {
    /// The card.
    pub card: CardId,
    /// Memory of it.
    pub memory: MiB,
    /// Compute of it; 0: whatever is free.
    pub cores: Cores,
    /// The hardware slice that it is, where the card is cut into such.
    pub slice: Option<Box<Slice>>,
}

/// One container's shares; none where it asked nothing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ContainerShares {
    /// When the container runs.
    pub role: Role,
    /// Its shares, each of a different card or another slice of one.
    pub shares: Vec<Share>,
}

/// What a pod was given, its containers in kubelet's starting order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Assignment {
    /// Init containers and sidecars in order, then app containers.
    pub containers: Vec<ContainerShares>,
    /// Devices by type, of all containers together.
    pub devices: DeviceAllocations,
    /// The Reservation whose devices the pod uses before others.
    pub reservation: Option<Box<ReservationName>>,
    /// Which of them each container has, where containers have devices of their own.
    pub by_container: ThinVec<ContainerDevices>,
    /// What the pod bears.
    pub marks: Marks,
    /// When it was written, where agents serve pods by that; of one that is yet to be written, the earliest time that it may
    /// bear.
    pub written: Option<Timestamp>,
}

impl Assignment {
    /// Whether both hold the same, whenever they were written.
    pub fn holds_as(&self, other: &Self) -> bool {
        let Self { containers, devices, by_container: _, reservation, marks, written: _ } = other;
        let own = (&self.containers, &self.devices, &self.reservation, &self.marks);
        own == (containers, devices, reservation, marks)
    }

    /// Every share, whichever container's.
    pub fn shares(&self) -> impl Iterator<Item = &Share> {
        self.containers.iter().flat_map(|container| &container.shares)
    }
}
