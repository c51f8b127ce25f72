//! How early the alternatives are that prioritized lists get.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go`, `computeScore`.

use std::iter::Sum;

use crate::object::{ResourceClaim, resource_claim::AllocationResult};

/// How many alternatives a list has at most, by the API.
const LONGEST_LIST: usize = 8;

/// For each list, [`LONGEST_LIST`] less the place of the alternative, from 0.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::scheduling) struct AlternativePoints(pub(super) usize);

impl AlternativePoints {
    /// Those of one claim with these devices.
    pub(super) fn of(claim: &ResourceClaim, allocation: &AllocationResult) -> Self {
        let given = |request: &str, alternative: &str| {
            let mut names = allocation.devices.results.iter().map(|result| result.request.split_once('/'));
            names.any(|name| name == Some((request, alternative)))
        };
        let points = claim.spec.devices.requests.iter().flat_map(|request| {
            let alternatives = request.first_available.iter().enumerate();
            let given = alternatives.filter(move |(_, one)| given(&request.name, &one.name));
            given.map(|(place, _)| LONGEST_LIST.saturating_sub(place))
        });
        Self(points.sum())
    }
}

impl Sum for AlternativePoints {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        Self(all.map(|Self(points)| points).sum())
    }
}

/// Whether a claim has a prioritized list.
pub(super) fn has_lists(claim: &ResourceClaim) -> bool {
    claim.spec.devices.requests.iter().any(|request| !request.first_available.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_list_has_points_for_the_place_of_its_alternative() {
        let list = |name: &str| json!({"name": name, "firstAvailable": [{"name": "a"}, {"name": "b"}]});
        let plain = json!({"name": "plain", "exactly": {}});
        let requests = json!([list("one"), list("two"), plain]);
        let claim = json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}});
        let claim: ResourceClaim = serde_json::from_value(claim).unwrap();
        let points = |requests: &[&str]| {
            let results = requests.iter().map(|request| json!({"request": request}));
            let allocation = json!({"devices": {"results": results.collect::<Vec<_>>()}});
            AlternativePoints::of(&claim, &serde_json::from_value(allocation).unwrap()).0
        };
        assert_eq!(points(&["one/a", "two/b", "plain"]), 8 + 7);
        assert_eq!(
            points(&["one/b", "one/b", "two/b"]),
            7 + 7,
            "an alternative with several devices counts once"
        );
        assert_eq!(points(&["plain"]), 0);
        assert!(has_lists(&claim));
    }
}
