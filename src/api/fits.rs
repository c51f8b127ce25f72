//! How many pods of usual sizes would fit now, by card model, as JSON.

use serde::{Deserialize, Serialize};

use crate::cluster::report::gpus::{FITTED, FittedPods};

/// How many pods of each size would fit.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct FittingSizes {
    /// By model, then by size.
    sizes: Vec<FittingSize>,
}

/// How many pods of one size would fit on cards of one model, one after the other, if no others came.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
struct FittingSize {
    request: SizeRequest,
    model: String,
    fits: u64,
}

/// What each of these pods asks for.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
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

impl FittingSizes {
    /// How many pods of each size would fit, by model.
    pub fn by_model(&self) -> impl Iterator<Item = (&str, FittedPods)> {
        self.sizes.chunk_by(|one, other| one.model == other.model).filter_map(|sizes| {
            let fits: Vec<_> = sizes.iter().map(|size| size.fits).collect();
            Some((sizes.first()?.model.as_str(), fits.try_into().ok()?))
        })
    }
}

/// Each size, as cards of one node and percent of each, and how many pods of it would fit.
pub(super) fn sizes(pods: FittedPods) -> impl Iterator<Item = (u32, f64, u64)> {
    let size = |((eighths, _), fits): ((u32, _), u64)| {
        ((eighths / 8).max(1), f64::from(eighths.min(8)) * 12.5, fits)
    };
    FITTED.into_iter().zip(pods).map(size)
}
