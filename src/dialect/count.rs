//! How many cards a container requests, and whether it requests a share at all.
//!
//! One reading for every dialect: amounts of 0 request nothing, and memory or compute without a count is either given the default count
//! or refused.

use std::num::NonZeroU32;

use super::{
    amounts::ResourceReader,
    unreadable::{Problem, Unreadable},
};

/// What becomes of a container that requests memory or compute but states no number of cards.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MissingCount {
    /// It has the dialect's default count: the pod is on its way through admission, which adds that count to it.
    Default,
    /// It can't be read: the pod is stored as it is, and the device plugin is asked for the count alone. In HAMi the webhook adds a count
    /// and the scheduler does not (v2.10 `pkg/device/nvidia/device.go` `mutateContainerResource`); Volcano's scheduler counts 1 beside
    /// memory and none beside cores (ed72c7c `pkg/scheduler/api/devices/util.go`), but its plugin then does nothing
    /// (volcano-vgpu-device-plugin 4fb76ba `pkg/plugin/server.go`: only `Allocate` for the count does work).
    Refuse,
}

/// The number of cards of a container, in the resource `count`; `None`: the container requests no share, since each amount of `count` and
/// of `shares` is 0 or absent. `default` is the count of a container that states none; `None` or 0: there is no default.
pub(super) fn cards<'a>(
    read: &ResourceReader<'_>,
    count: &str,
    shares: impl IntoIterator<Item = &'a str>,
    default: Option<u32>,
) -> Result<Option<NonZeroU32>, Unreadable> {
    let stated = read.number(count, "cards", 1)?;
    if let Some(cards) = stated.and_then(NonZeroU32::new) {
        return Ok(Some(cards));
    }
    let Some(share) = shares.into_iter().find(|name| read.requests(name)) else { return Ok(None) };
    let default = default.filter(|_| stated.is_none()).and_then(NonZeroU32::new);
    if default.is_some() {
        return Ok(default);
    }
    let message = format!("a share without a number of cards; add `{count}: 1`");
    Err(Unreadable::new(Problem::CountMissing, read.field(share), message))
}

impl MissingCount {
    /// The default count, where it may be used.
    pub(super) fn supplied(self, default: u32) -> Option<u32> {
        match self {
            Self::Default => Some(default),
            Self::Refuse => None,
        }
    }
}
