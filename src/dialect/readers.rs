//! Which dialect reads a resource. Whole cards by their vendors' names may be of two dialects; the pod then decides which of them reads it.
//!
//! It reads names alone, never amounts.

use std::{collections::BTreeMap, sync::Arc};

use super::{Dialect, Dialects, SharingMode, extended_resources, hami, well_known_mode};
use crate::object::{Pod, Quantity};

/// By resource, the places of the dialects that read it.
#[derive(Clone, Debug, Default)]
pub(super) struct Readers {
    /// The first that reads it.
    first: BTreeMap<String, usize>,
    /// Whole cards that two dialects read: the one that reads them in pods for whole cards alone, and the other.
    contested: BTreeMap<String, Contested>,
}

#[derive(Clone, Copy, Debug)]
struct Contested {
    of_whole_cards: usize,
    of_shares: usize,
}

impl Readers {
    /// The readers among these dialects.
    pub(super) fn of(dialects: &[Arc<dyn Dialect>]) -> Self {
        let mut readers = Self::default();
        for (at, dialect) in dialects.iter().enumerate() {
            let whole = dialect.whole_cards();
            for resource in dialect.resources() {
                let other = *readers.first.entry(resource.to_owned()).or_insert(at);
                if other != at && whole.contains(&resource) {
                    let contested = Contested { of_whole_cards: at, of_shares: other };
                    readers.contested.insert(resource.to_owned(), contested);
                }
            }
        }
        readers
    }

    /// The place of the first dialect that reads a resource, whatever the pod.
    pub(super) fn first(&self, resource: &str) -> Option<usize> {
        self.first.get(resource).copied()
    }
}

/// Which dialect reads each resource of one pod.
#[derive(Clone, Debug)]
pub struct InPod<'a> {
    dialects: &'a Dialects,
    /// Whole cards of which the pod asks no share, and the dialect that then reads them.
    whole: Vec<(&'a str, usize)>,
}

impl Dialects {
    /// Which dialect reads each resource of this pod. Whole cards that two dialects read are of the second, unless the pod names a further resource
    /// of the first or carries cards of the first.
    pub fn in_pod(&self, pod: &Pod) -> InPod<'_> {
        let mut whole = Vec::new();
        if self.readers.contested.is_empty() {
            return InPod { dialects: self, whole };
        }
        let named = |resource: &str| extended_resources(pod).any(|(name, _)| name == resource);
        for (resource, &Contested { of_whole_cards, of_shares }) in &self.readers.contested {
            let is_further = |name: &String| {
                self.readers.first(name) == Some(of_shares) && !self.readers.contested.contains_key(name)
            };
            let shares = || extended_resources(pod).any(|(name, _)| is_further(name));
            let carries = || !matches!(self.spoken[of_shares].assignment(pod), Ok(None));
            if named(resource) && !shares() && !carries() {
                whole.push((resource.as_str(), of_whole_cards));
            }
        }
        InPod { dialects: self, whole }
    }
}

impl<'a> InPod<'a> {
    /// The place of the dialect that reads a resource.
    pub(super) fn place(&self, resource: &str) -> Option<usize> {
        let whole = self.whole.iter().find(|(name, _)| *name == resource).map(|(_, at)| *at);
        whole.or_else(|| self.dialects.readers.first(resource))
    }

    /// The mode that a resource of this name speaks, whether or not it is enabled here.
    pub fn mode_of(&self, resource: &str) -> Option<&'a SharingMode> {
        let enabled = self.place(resource).map(|at| self.dialects.spoken[at].mode());
        enabled.or_else(|| well_known_mode(resource))
    }

    /// The mode in which so much of a resource requests a share, whether or not it is enabled here; `None`: it requests none, since the
    /// amount is 0 or the resource only describes a share. An amount that can't be read requests one: what is wrong with it is to be said.
    pub fn mode_requested(&self, resource: &str, amount: &Quantity) -> Option<&'a SharingMode> {
        let qualifies = match self.place(resource).map(|at| &self.dialects.spoken[at]) {
            Some(dialect) => dialect.qualifies(resource),
            None => resource == hami::names::PRIORITY,
        };
        self.mode_of(resource).filter(|_| !qualifies && !amount.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{config::Config, dialect::Dialects, object::Pod};

    const ON: &str = "dialects: {koordinator: {wholeCards: true}, hami: {amd: {}}}";

    fn dialects(settings: &str) -> Dialects {
        Config::parse(settings, "f").unwrap().0.dialects()
    }

    fn pod(limits: &Value) -> Pod {
        let spec = json!({"containers": [{"name": "main", "resources": {"limits": limits}}]});
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap()
    }

    fn modes(dialects: &Dialects, pod: &Pod) -> Vec<String> {
        dialects.asked(pod).into_iter().map(|dialect| dialect.mode().to_string()).collect()
    }

    #[test]
    fn whole_cards_are_koordinators_only_where_the_setting_says_so_and_no_share_is_asked() {
        let (off, on) = (dialects("dialects: {hami: {amd: {}}}"), dialects(ON));
        for (limits, without, with) in [
            (json!({"nvidia.com/gpu": "2"}), &["hami"][..], &["koordinator"][..]),
            (json!({"amd.com/gpu": "1"}), &["hami-amd"], &["koordinator"]),
            (json!({"dcu.com/gpu": "1"}), &[], &["koordinator"]),
            (json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"}), &["hami"], &["hami"]),
            (json!({"nvidia.com/gpu": "1", "nvidia.com/gpucores": "0"}), &["hami"], &["hami"]),
            (
                json!({"nvidia.com/gpu": "1", "koordinator.sh/rdma": "1"}),
                &["hami", "koordinator"],
                &["koordinator"],
            ),
            (
                json!({"nvidia.com/gpu": "1", "volcano.sh/vgpu-number": "1"}),
                &["hami", "vgpu"],
                &["vgpu", "koordinator"],
            ),
            (json!({"cpu": "1"}), &[], &[]),
        ] {
            let pod = pod(&limits);
            assert_eq!(modes(&off, &pod), without, "{limits}");
            assert_eq!(modes(&on, &pod), with, "{limits}");
        }
    }

    #[test]
    fn a_share_in_any_container_makes_the_pod_hamis() {
        let mut pod = pod(&json!({"nvidia.com/gpu": "1"}));
        let init = json!({"name": "init", "resources": {"limits": {"nvidia.com/gpumem": "100"}}});
        pod.spec.init_containers = vec![serde_json::from_value(init).unwrap()];
        assert_eq!(modes(&dialects(ON), &pod), ["hami"]);
    }

    #[test]
    fn a_pod_that_hami_has_placed_stays_hamis() {
        let mut placed = pod(&json!({"nvidia.com/gpu": "1"}));
        let cards = json!({
            "hami.io/vgpu-node": "n", "hami.io/vgpu-devices-allocated": "GPU-1,NVIDIA,16384,100:;",
        });
        placed.metadata.annotations = Some(serde_json::from_value(cards).unwrap());
        assert_eq!(modes(&dialects(ON), &placed), ["hami"]);
    }

    #[test]
    fn whole_cards_ask_for_as_many_gpus_and_an_amount_of_0_for_none() {
        let dialects = dialects(ON);
        let request = |amount: &str| {
            let pod = pod(&json!({"nvidia.com/gpu": amount}));
            let asked = dialects.request(&pod).unwrap();
            asked.map(|(dialect, _)| dialect.joint_request(&pod).unwrap().unwrap().types.len())
        };
        assert_eq!((request("2"), request("0")), (Some(1), None));
    }
}
