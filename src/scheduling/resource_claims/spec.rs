//! What claims ask for: claims from one template ask for the same, and are known by one number.

use std::{collections::VecDeque, sync::Arc};

use super::Asked;
use crate::{
    dra::{Claim, Classes},
    object::{ResourceClaim, resource_claim::ResourceClaimSpec},
};

/// Equal for claims that ask for the same. Claims with different numbers may do so too.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(in crate::scheduling) struct SpecId(u64);

/// What claims asked for lately, the latest last.
#[derive(Clone, Debug, Default)]
pub(super) struct Specs {
    known: VecDeque<(Arc<ResourceClaim>, SpecId)>,
    last: u64,
}

/// How many are remembered: few clusters have more than a handful of templates.
const REMEMBERED: usize = 64;

impl Specs {
    /// What a claim asks for, read by these classes; `None`: it has its devices.
    pub(super) fn read(&mut self, claim: &Arc<ResourceClaim>, classes: &Classes) -> Option<Asked> {
        if claim.status.allocation.is_some() {
            return None;
        }
        Some((self.id(claim), Claim::read(claim, classes).map(Arc::new)))
    }

    fn id(&mut self, claim: &Arc<ResourceClaim>) -> SpecId {
        let same = |spec: &ResourceClaimSpec| *spec == claim.spec;
        if let Some((_, id)) = self.known.iter().rev().find(|(known, _)| same(&known.spec)) {
            return *id;
        }
        if self.known.len() >= REMEMBERED {
            self.known.pop_front();
        }
        self.last += 1;
        let id = SpecId(self.last);
        self.known.push_back((claim.clone(), id));
        id
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(specs: &mut Specs, name: &str, class: &str) -> SpecId {
        let exactly = json!({"deviceClassName": class});
        let claim = json!({
            "metadata": {"name": name}, "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        });
        let claim = Arc::new(serde_json::from_value(claim).unwrap());
        specs.read(&claim, &Classes::default()).unwrap().0
    }

    #[test]
    fn claims_that_ask_for_the_same_have_one_number() {
        let mut specs = Specs::default();
        let [a, b, other] =
            [("a", "gpu"), ("b", "gpu"), ("c", "nic")].map(|(name, class)| asked(&mut specs, name, class));
        assert!(a == b && a != other, "{a:?} {b:?} {other:?}");
        for at in 0..REMEMBERED {
            asked(&mut specs, "d", &format!("class-{at}"));
        }
        assert_ne!(asked(&mut specs, "a", "gpu"), other, "a number is never given again");
    }
}
