//! Which revocable zones a pod may use, and for how long it needs its node.

use std::sync::Arc;

use jiff::SignedDuration;

/// The zones that a pod may use.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub enum Permission {
    /// None: it must not be preempted, or does not say that it may be.
    #[default]
    Nowhere,
    /// Every zone.
    Anywhere,
    /// The zone of this name.
    Zone(Arc<str>),
}

impl Permission {
    /// Whether it covers a zone.
    pub fn covers(&self, zone: &str) -> bool {
        match self {
            Self::Nowhere => false,
            Self::Anywhere => true,
            Self::Zone(name) => **name == *zone,
        }
    }
}

/// What a pod says of time division.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Revocable {
    /// The zones that it may use.
    pub zones: Permission,
    /// How long it needs its node, where its annotation states that.
    pub expected_duration: Option<SignedDuration>,
}
