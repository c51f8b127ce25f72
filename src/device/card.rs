//! A physical card.

use std::{borrow::Borrow, fmt, sync::Arc};

use super::{
    amount::{Cores, MiB},
    slice::Slicing,
};

/// A card's identity: its uuid. Cards of one uuid are one card, whichever plugin names them.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CardId(Arc<str>);

impl CardId {
    /// The card of this uuid, whose text is shared.
    pub fn called(uuid: Arc<str>) -> Self {
        Self(uuid)
    }

    /// The uuid, to be shared.
    pub fn name(&self) -> &Arc<str> {
        &self.0
    }

    /// The uuid.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: AsRef<str>> From<T> for CardId {
    fn from(uuid: T) -> Self {
        Self(Arc::from(uuid.as_ref()))
    }
}

impl Borrow<str> for CardId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CardId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Whether new pods may be given a card.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Health {
    /// It works.
    Healthy,
    /// Its plugin says that it does not.
    Unhealthy,
    /// An operator keeps new pods off it; running ones stay.
    Cordoned,
}

/// How the node's plugin slices a card.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Mode {
    /// Any amount of memory and compute, enforced in software.
    Soft,
    /// Fixed hardware slices.
    Mig,
    /// NVIDIA's multi-process service.
    Mps,
    /// Sizes of memory that the vendor's driver knows, each a template.
    Templates,
}

/// One card and what there is of it to share.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Card {
    /// Its uuid.
    pub id: CardId,
    /// Its number on the node, from 0.
    pub index: u32,
    /// How many containers may share it.
    pub slots: u32,
    /// Memory to share.
    pub memory: MiB,
    /// Compute to share, in the unit of the cards' profile: 100 percent for one card, more where the plugin scales it.
    pub cores: Cores,
    /// The product name, as the plugin spells it.
    pub model: Arc<str>,
    /// The NUMA node that it hangs on.
    pub numa: u32,
    /// How it is sliced.
    pub mode: Mode,
    /// How it may be cut, where it is cut in hardware.
    pub slicing: Slicing,
    /// Whether new pods may be given it.
    pub health: Health,
}
