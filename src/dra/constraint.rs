//! What must hold between the devices of a claim.

use super::device::{AttributeValues, DerivedValues, PoolDevice};
use crate::object::resource_claim::DeviceConstraint;

/// A constraint on an attribute.
#[derive(Clone, Debug)]
pub(super) struct Constraint {
    /// The requests whose devices are compared; none: all.
    requests: Vec<String>,
    /// The attribute's full name.
    pub(super) attribute: String,
    demand: MatchDemand,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum MatchDemand {
    /// All devices have one value in common.
    Match,
    /// No two devices have a value in common.
    Distinct,
}

/// The devices that were compared so far. A device without the attribute is refused.
#[derive(Clone, Debug, Default)]
pub(super) struct ComparedDevices {
    /// For a match: what all devices up to this one have in common; otherwise the values of each device. One entry a device, so that
    /// the last one can be taken back.
    values: Vec<AttributeValues>,
}

impl Constraint {
    /// `None`: it is of a kind that this version does not know.
    pub(super) fn read(constraint: &DeviceConstraint) -> Option<Self> {
        let matched = constraint.match_attribute.as_ref().map(|attribute| (attribute, MatchDemand::Match));
        let distinct =
            constraint.distinct_attribute.as_ref().map(|attribute| (attribute, MatchDemand::Distinct));
        let (attribute, demand) = matched.or(distinct)?;
        Some(Self { requests: constraint.requests.clone(), attribute: attribute.clone(), demand })
    }

    /// Whether it is about the devices of an alternative, by its full name. The name of a request stands for all its alternatives.
    pub(super) fn is_about(&self, request: &str, alternative: &str) -> bool {
        let named = |name: &String| name == request || name == alternative;
        self.requests.is_empty() || self.requests.iter().any(named)
    }

    /// Takes a device in, of which a claim computes these attributes; `false`: it does not fit the others. A computed attribute hides one that the device
    /// has.
    pub(super) fn add(
        &self,
        compared: &mut ComparedDevices,
        device: &PoolDevice,
        derived: Option<&DerivedValues>,
    ) -> bool {
        let derived = derived.and_then(|derived| derived.get(&*self.attribute));
        let Some(values) = derived.or_else(|| device.attribute(&self.attribute)) else { return false };
        let entry = match (self.demand, compared.values.last()) {
            (MatchDemand::Match, Some(common)) => common.shared(values),
            (MatchDemand::Match, None) => Some(values.clone()),
            (MatchDemand::Distinct, _) => {
                let alone = compared.values.iter().all(|other| other.shared(values).is_none());
                alone.then(|| values.clone())
            }
        };
        let fits = entry.is_some();
        compared.values.extend(entry);
        fits
    }

    /// Takes the last device out.
    pub(super) fn remove_last(compared: &mut ComparedDevices) {
        compared.values.pop();
    }
}
