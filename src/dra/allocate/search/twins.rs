//! Devices that are the same in all that the search looks at, so that only one of them has to be tried.

use std::collections::BTreeMap;

use crate::dra::{
    WaitingClaim,
    allocate::{CandidateDevice, options::DeviceOptions},
    device::{AttributeValues, DerivedValues, PCIE_ROOT, SetUse},
};

/// The kind of each candidate.
pub(super) struct Twins {
    kinds: Vec<usize>,
}

/// What the search looks at. Shared devices and those in use differ by what is left of them, and are of a kind of their own.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
struct Features<'a> {
    alone: Option<usize>,
    /// The values of each attribute that a constraint or the score compares.
    values: Vec<Option<&'a AttributeValues>>,
    /// Counters of this pool.
    counters: Option<(usize, &'a [SetUse])>,
    /// Which alternatives it would do for.
    serves: Vec<bool>,
    /// The attributes that alternatives compute of it.
    derived: Vec<Option<&'a DerivedValues>>,
}

impl Twins {
    pub(super) fn of<'a>(
        claims: &[&WaitingClaim],
        options: &'a [Vec<Vec<DeviceOptions>>],
        candidates: &[CandidateDevice<'a>],
    ) -> Self {
        let constraints = claims.iter().flat_map(|claim| &claim.constraints);
        let attributes: Vec<&str> =
            constraints.map(|constraint| constraint.attribute.as_str()).chain([PCIE_ROOT]).collect();
        let alternatives: Vec<&'a DeviceOptions> = options.iter().flatten().flatten().collect();
        let mut known: BTreeMap<Features<'a>, usize> = BTreeMap::new();
        let kind = |(at, candidate): (usize, &CandidateDevice<'a>)| {
            let device = candidate.device;
            let features = Features {
                alone: (device.shareable || candidate.held.is_some()).then_some(at),
                values: attributes.iter().map(|attribute| device.attribute(attribute)).collect(),
                counters: (!device.consumes.is_empty()).then_some((candidate.pool, &*device.consumes)),
                serves: alternatives
                    .iter()
                    .map(|options| options.devices.binary_search(&at).is_ok())
                    .collect(),
                derived: alternatives
                    .iter()
                    .map(|options| options.derived.get(&at).map(|derived| &**derived))
                    .collect(),
            };
            let next = known.len();
            *known.entry(features).or_insert(next)
        };
        Self { kinds: candidates.iter().enumerate().map(kind).collect() }
    }

    /// The number of the candidate's kind.
    pub(super) fn kind(&self, candidate: usize) -> usize {
        self.kinds[candidate]
    }
}
