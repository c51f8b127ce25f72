//! What Volcano's older device plugin (volcano-sh/devices) counts: memory of cards or whole cards, and what a pod's record gives in it.

use super::share::{Names, Share};
use super::view::{Container, Pod};

pub(super) const MEMORY: Names =
    Names { count: "volcano.sh/gpu-memory", memory: "", percentage: None, cores: "" };
pub(super) const CARDS: Names =
    Names { count: "volcano.sh/gpu-number", memory: "", percentage: None, cores: "" };
pub(super) const INDEX: &str = "volcano.sh/gpu-index";

/// What the plugin counts: one of both on each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// MiB of one card.
    Memory,
    /// Whole cards.
    Cards,
}

impl Strategy {
    pub(super) fn names(self) -> &'static Names {
        match self {
            Strategy::Memory => &MEMORY,
            Strategy::Cards => &CARDS,
        }
    }

    /// What the pod's record gives to each of its containers, the cards called by their numbers.
    pub(super) fn shares<'a>(
        self,
        pod: &'a Pod,
        text: &str,
    ) -> Result<Vec<(&'a Container, Vec<Share>)>, String> {
        let indices = indices(text)?;
        let share = |index: &u32, amount: u64| Share {
            uuid: index.to_string(),
            kind: String::new(),
            memory: if self == Strategy::Memory { i32::try_from(amount).unwrap_or(i32::MAX) } else { 0 },
            cores: if self == Strategy::Cards { 100 } else { 0 },
        };
        let asking = pod.spec.containers.iter();
        let asking = asking.filter_map(|container| Some((container, container.amount(self.names().count)?)));
        Ok(asking
            .map(|(container, amount)| {
                (container, indices.iter().map(|index| share(index, amount)).collect())
            })
            .collect())
    }
}

/// The numbers of the cards in a record.
pub(super) fn indices(text: &str) -> Result<Vec<u32>, String> {
    text.split(',').map(|index| index.parse().map_err(|error| format!("`{index}`: {error}"))).collect()
}
