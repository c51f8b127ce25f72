//! GPUs in parts of a card, as JSON.

use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer};

use crate::cluster::report::gpus::{Lack, ModelGpus, models::FleetGpus};

/// Cards in parts.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GpuParts {
    /// Of each card that works the larger part of its memory and compute that is given away, to whomever.
    #[serde(serialize_with = "thousandths")]
    pub allocated: f64,
    /// The rest.
    #[serde(serialize_with = "thousandths")]
    pub free: f64,
    /// FGD's fragmentation.
    #[serde(serialize_with = "thousandths")]
    pub fragmented: f64,
    /// What is free and could be given to none of the pods that may come.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stranded: Vec<StrandedGpus>,
}

/// What is free and of no use.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct StrandedGpus {
    /// What is lacking first.
    pub reason: Cow<'static, str>,
    /// In parts of a card.
    #[serde(serialize_with = "thousandths")]
    pub gpus: f64,
}

impl GpuParts {
    /// Adds these.
    pub fn add(&mut self, gpus: ModelGpus) {
        self.allocated += gpus.allocated.max(0.0);
        self.free += (gpus.capacity - gpus.allocated).max(0.0);
        self.fragmented += gpus.fragmented.max(0.0);
    }

    /// Adds so many that are stranded.
    pub fn strand(&mut self, lack: Lack, gpus: f64) {
        let reason = lack.as_str();
        match self.stranded.iter_mut().find(|stranded| stranded.reason == reason) {
            Some(stranded) => stranded.gpus += gpus,
            None => self.stranded.push(StrandedGpus { reason: reason.into(), gpus }),
        }
        self.stranded.sort_by(|one, other| one.reason.cmp(&other.reason));
    }
}

impl From<&FleetGpus> for GpuParts {
    fn from(fleet: &FleetGpus) -> Self {
        let mut parts = Self::default();
        parts.add(fleet.gpus);
        for (lack, gpus) in Lack::ALL.into_iter().zip(fleet.stranded).filter(|(_, gpus)| *gpus > 0.0) {
            parts.strand(lack, gpus);
        }
        parts
    }
}

/// Rounds for a reader: sums of parts would end in digits that mean nothing.
#[expect(clippy::cast_possible_truncation, reason = "amounts of cards are small numbers")]
pub fn thousandths<S: Serializer>(amount: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    let rounded = (amount * 1000.0).round() / 1000.0;
    if rounded.fract() == 0.0 {
        serializer.serialize_i64(rounded as i64)
    } else {
        serializer.serialize_f64(rounded)
    }
}
