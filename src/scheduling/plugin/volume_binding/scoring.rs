//! How much storage a node would have left beside a pod's new claims, as part of what it has.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/volumebinding/volume_binding.go` and `scorer.go`, behind the feature gate
//! `StorageCapacityScoring`, which is off by default there and on from v1.37 on; the shape is the default one. Upstream ends with a
//! panic where a driver publishes the largest volume and no capacity; here such storage counts as unknown.

use std::{collections::BTreeMap, sync::Arc};

use super::{Claims, delayed::Delayed, size};
use crate::scheduling::model::prebind_step::VolumeChoice;
use crate::{
    object::Quantity,
    scheduling::{
        model::node::NodeInfo,
        plugin::{
            contract::{FeasibleNodes, PreScored},
            score::range::{MOST, float, whole},
        },
    },
};

/// The claims of one pod that are bound with it, of which some or all are still open.
#[derive(Debug)]
pub struct VolumeCapacity<'a>(Arc<Claims<'a>>);

/// How many bytes of one storage class are requested, of how many.
#[derive(Clone, Copy, Debug, Default)]
struct Storage {
    requested: i64,
    capacity: i64,
}

impl<'a> VolumeCapacity<'a> {
    /// Of the claims that the filters have prepared; `None`: none of them is bound with the pod.
    pub(super) fn of(claims: &Arc<Claims<'a>>) -> Option<Self> {
        (!claims.delayed.is_empty()).then(|| Self(Arc::clone(claims)))
    }

    /// 0 to 100: the mean over storage classes of the part that stays free. Where volumes that exist are bound, only these count; else
    /// the storage that drivers publish for the node.
    fn score(&self, node: &NodeInfo) -> i64 {
        let Ok(choices) = self.0.choose(node) else { return 0 };
        let binds = choices.iter().any(|choice| matches!(choice, VolumeChoice::Bind { .. }));
        let mut classes: BTreeMap<&str, Storage> = BTreeMap::new();
        for choice in &choices {
            match choice {
                VolumeChoice::Bind { claim, volume } => self.add_bound(&mut classes, claim, volume),
                VolumeChoice::Provision { claim } if !binds => self.add_made(&mut classes, claim, node),
                VolumeChoice::Provision { .. } => {}
            }
        }
        if classes.is_empty() {
            return 0;
        }
        let total: i64 = classes.values().map(|storage| storage.score()).sum();
        let classes = i64::try_from(classes.len()).unwrap_or(i64::MAX);
        whole((float(total) / float(classes)).round())
    }

    fn add_bound(&self, classes: &mut BTreeMap<&'a str, Storage>, claim: &str, volume: &str) {
        let Some(volume) = self.0.objects.volume(volume) else { return };
        let storage = classes.entry(&volume.spec.storage_class_name).or_default();
        storage.requested = storage.requested.saturating_add(self.requested(claim));
        storage.capacity = storage.capacity.saturating_add(bytes(volume.spec.capacity.get("storage")));
    }

    /// All claims of one class share what there is of it.
    fn add_made(&self, classes: &mut BTreeMap<&'a str, Storage>, claim: &str, node: &NodeInfo) {
        let published = self.delayed(claim).and_then(|delayed| delayed.published(&node.labels));
        let Some(published) = published else { return };
        let Some(capacity) = &published.capacity else { return };
        let storage = classes.entry(&published.storage_class_name).or_default();
        storage.requested = storage.requested.saturating_add(self.requested(claim));
        storage.capacity = bytes(Some(capacity));
    }

    fn requested(&self, claim: &str) -> i64 {
        bytes(self.delayed(claim).and_then(|delayed| delayed.claim.spec.resources.request("storage")))
    }

    fn delayed(&self, claim: &str) -> Option<&Delayed<'a>> {
        self.0.delayed.iter().find(|delayed| delayed.claim.metadata.name == *claim)
    }
}

impl PreScored for VolumeCapacity<'_> {
    fn normalised(&self, feasible: FeasibleNodes<'_>) -> Vec<i64> {
        feasible.each(|node| self.score(&node.info))
    }
}

impl Storage {
    fn score(self) -> i64 {
        if self.capacity == 0 || self.requested > self.capacity {
            return 0;
        }
        let used = i128::from(self.requested) * i128::from(MOST) / i128::from(self.capacity);
        MOST - i64::try_from(used).unwrap_or(MOST)
    }
}

fn bytes(quantity: Option<&Quantity>) -> i64 {
    size(quantity).units_rounded_up()
}
