//! How many pods of usual sizes would fit now, by card model, as JSON.

use serde::Serialize;

use crate::cluster::gpus::{FITTED, FittedPods};

/// How many pods of each size would fit.
#[derive(Clone, Debug, Serialize)]
pub struct FittingSizes {
    /// By model, then by size.
    sizes: Vec<FittingSize>,
}

/// How many pods of one size would fit on cards of one model, one after the other, if no others came.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct FittingSize {
    request: SizeRequest,
    model: String,
    fits: u64,
}

/// What each of these pods asks for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct SizeRequest {
    /// Cards of one node.
    cards: u32,
    /// Of the memory of each.
    memory_percent: f64,
    /// Of the compute of each.
    cores_percent: f64,
}

impl FittingSizes {
    /// Of these models.
    pub fn of<'a>(models: impl Iterator<Item = (&'a str, FittedPods)>) -> Self {
        let sizes = models.flat_map(|(model, pods)| {
            sizes(pods).map(move |(cards, percent, fits)| FittingSize {
                request: SizeRequest { cards, memory_percent: percent, cores_percent: percent },
                model: model.to_owned(),
                fits,
            })
        });
        Self { sizes: sizes.collect() }
    }
}

/// Each size, as cards of one node and percent of each, and how many pods of it would fit.
pub(super) fn sizes(pods: FittedPods) -> impl Iterator<Item = (u32, f64, u64)> {
    let size = |((eighths, _), fits): ((u32, _), u64)| {
        ((eighths / 8).max(1), f64::from(eighths.min(8)) * 12.5, fits)
    };
    FITTED.into_iter().zip(pods).map(size)
}
