//! What claims ask for: claims from one template ask for the same, and are known by one number.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use super::Asked;
use crate::{
    dra::{CompiledClasses, WaitingClaim},
    object::ResourceClaim,
};

/// Equal for claims that ask for the same. Claims with different numbers may do so too.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(in crate::scheduling) struct SpecId(u64);

/// What claims asked for lately, by namespace, the latest last.
#[derive(Clone, Debug, Default)]
pub(super) struct Specs {
    known: BTreeMap<String, VecDeque<(Arc<ResourceClaim>, SpecId)>>,
    last: u64,
}

/// So many are remembered of each namespace: few have more than a handful of templates, and none pushes out those of another.
const REMEMBERED: usize = 16;

/// What was asked for in so many namespaces is remembered.
const NAMESPACES: usize = 256;

impl Specs {
    /// What a claim asks for, read by these classes; `None`: it has its devices.
    pub(super) fn read(&mut self, claim: &Arc<ResourceClaim>, classes: &CompiledClasses) -> Option<Asked> {
        if claim.status.allocation.is_some() {
            return None;
        }
        Some((self.id(claim), WaitingClaim::read(claim, classes).map(Arc::new)))
    }

    fn id(&mut self, claim: &Arc<ResourceClaim>) -> SpecId {
        let namespace = &claim.metadata.namespace;
        let same = |(known, _): &&(Arc<ResourceClaim>, SpecId)| known.spec == claim.spec;
        let own = self.known.get(namespace).and_then(|known| known.iter().rev().find(same));
        let known = own.or_else(|| self.known.values().flatten().find(same));
        if let Some((_, id)) = known {
            return *id;
        }
        if self.known.len() >= NAMESPACES && !self.known.contains_key(namespace) {
            self.known.pop_first();
        }
        let known = self.known.entry(namespace.clone()).or_default();
        if known.len() >= REMEMBERED {
            known.pop_front();
        }
        self.last += 1;
        let id = SpecId(self.last);
        known.push_back((claim.clone(), id));
        id
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(specs: &mut Specs, name: &str, class: &str) -> SpecId {
        asked_in("team", specs, name, class)
    }

    fn asked_in(namespace: &str, specs: &mut Specs, name: &str, class: &str) -> SpecId {
        let exactly = json!({"deviceClassName": class});
        let claim = json!({
            "metadata": {"name": name, "namespace": namespace}, "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        });
        let claim = Arc::new(serde_json::from_value(claim).unwrap());
        specs.read(&claim, &CompiledClasses::default()).unwrap().0
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

    #[test]
    fn a_namespace_with_many_templates_does_not_push_out_what_another_asks_for() {
        let mut specs = Specs::default();
        let one = asked_in("one", &mut specs, "a", "gpu");
        for at in 0..1000 {
            asked_in("many", &mut specs, "d", &format!("class-{at}"));
        }
        assert_eq!(asked_in("one", &mut specs, "b", "gpu"), one);
        assert_eq!(
            asked_in("third", &mut specs, "b", "gpu"),
            one,
            "claims of all namespaces that ask for the same"
        );
        assert_eq!(specs.known["many"].len(), REMEMBERED);
        for at in 0..NAMESPACES {
            asked_in(&format!("n{at}"), &mut specs, "c", &format!("other-{at}"));
        }
        assert!(specs.known.len() <= NAMESPACES, "{}", specs.known.len());
    }
}
