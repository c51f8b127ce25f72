//! On which nodes there are devices for claims: found anew where a node, its devices or what is held of them has changed, kept everywhere else.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use super::ClaimRejection;
use crate::{
    dra::Selected,
    scheduling::{
        node::NodeName,
        pod_counts::Surroundings,
        reason::Reason,
        resource_claims::{Beside, ChangedNodes, SpecId},
        snapshot::NodeState,
    },
};

/// What claims ask for, the version of the classes by which that is read, and whether the pod asks for shares too.
pub(super) type Asked = (u64, Beside, Vec<AskedOf>);

/// What one claim asks for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum AskedOf {
    /// A claim that exists.
    Claim(SpecId),
    /// The one that is made for extended resources, as a text that is equal for pods for which the allocator finds the same.
    Extended(Arc<str>),
}

/// What the allocator finds for some claims on the node in one slot.
#[derive(Clone, Debug)]
struct Judged {
    /// The node's generation when it was judged; 0: there was no node.
    generation: u64,
    /// The stamp of its devices then; `None`: the verdict holds for one decision.
    stamp: Option<u64>,
    found: Result<(), Reason>,
    /// Which of its devices selectors admit.
    selected: Selected,
}

impl Default for Judged {
    fn default() -> Self {
        Self { generation: 0, stamp: None, found: Ok(()), selected: Selected::default() }
    }
}

/// What the allocator finds on each node, for claims that ask for the same. A copy is cheap.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeFits {
    /// In the order of the nodes.
    judged: Arc<Vec<Judged>>,
    /// The place that each node had when it was judged last.
    places: Arc<HashMap<NodeName, usize>>,
}

impl NodeFits {
    /// Whether the node has devices for the claims.
    pub(super) fn on(&self, node: &NodeState) -> Result<(), Reason> {
        self.of(node).map_or(Ok(()), |judged| judged.found.clone())
    }

    /// Which of the node's devices selectors admit, as far as it is known.
    pub(super) fn selected(&self, node: &NodeState) -> Selected {
        self.of(node).map(|judged| judged.selected.clone()).unwrap_or_default()
    }

    fn of(&self, node: &NodeState) -> Option<&Judged> {
        let in_slot = self.judged.get(node.slot).filter(|judged| judged.generation == node.generation);
        // The nodes are not in the slots of the snapshot in an outlook.
        in_slot.or_else(|| self.judged.get(*self.places.get(&node.info.name)?))
    }
}

/// What is known of claims that ask for the same.
#[derive(Debug, Default)]
struct Known {
    fits: NodeFits,
    /// Up to which version changes of claims and devices have been taken in.
    version: u64,
    /// The places of nodes whose verdict holds for one decision.
    unsettled: BTreeSet<usize>,
}

/// What the allocator finds on each node, by what claims ask for.
#[derive(Debug, Default)]
pub struct ClaimFits(HashMap<Asked, Known>);

/// Beyond this number of different asks all of them are forgotten: few clusters have more than a handful of templates.
const REMEMBERED: usize = 64;

impl ClaimFits {
    /// On which nodes there are devices for the claims, as `judge` finds out.
    pub(super) fn of(
        &mut self,
        asked: Asked,
        around: Surroundings<'_>,
        judge: impl Fn(&NodeState, &mut Selected) -> Result<(), Reason>,
    ) -> NodeFits {
        if self.0.len() >= REMEMBERED && !self.0.contains_key(&asked) {
            self.0.clear();
        }
        let known = self.0.entry(asked).or_default();
        for place in known.outdated(around) {
            known.judge(place, around, &judge);
        }
        known.fits.clone()
    }
}

impl Known {
    /// The places of the nodes that may have to be judged anew.
    fn outdated(&mut self, around: Surroundings<'_>) -> BTreeSet<usize> {
        let claims = around.resource_claims;
        let judged = Arc::make_mut(&mut self.fits.judged);
        judged.resize_with(around.slots.len(), Judged::default);
        let mut outdated = std::mem::take(&mut self.unsettled);
        let both = judged.iter().zip(around.generations).enumerate();
        outdated.extend(both.filter(|(_, (judged, now))| judged.generation != **now).map(|(place, _)| place));
        match claims.changed_since(self.version) {
            ChangedNodes::These(nodes) => {
                outdated.extend(nodes.iter().filter_map(|node| self.fits.places.get(node)));
            }
            ChangedNodes::Any => outdated.extend(0..around.slots.len()),
        }
        self.version = claims.version();
        outdated
    }

    fn judge(
        &mut self,
        place: usize,
        around: Surroundings<'_>,
        judge: &impl Fn(&NodeState, &mut Selected) -> Result<(), Reason>,
    ) {
        let Some(judged) = Arc::make_mut(&mut self.fits.judged).get_mut(place) else { return };
        let Some(state) = &around.slots[place] else {
            *judged = Judged::default();
            return;
        };
        let (name, generation) = (&state.info.name, state.generation);
        let stamp = around.resource_claims.stamp(name);
        if (judged.generation, judged.stamp) == (generation, Some(stamp)) {
            return;
        }
        let found = judge(state, &mut judged.selected);
        // An error names the claim, which is another the next time.
        let keeps = !matches!(&found, Err(Reason::ResourceClaims(ClaimRejection::Undecidable(_))));
        (judged.generation, judged.stamp, judged.found) = (generation, keeps.then_some(stamp), found);
        if !keeps {
            self.unsettled.insert(place);
        }
        if self.fits.places.get(name) != Some(&place) {
            Arc::make_mut(&mut self.fits.places).insert(name.clone(), place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, ops::ControlFlow};

    use serde_json::{Value, json};

    use crate::scheduling::{
        Snapshot,
        class::Classes,
        node::NodeInfo,
        object::{Kind, Object},
        outlook::{Context, Outlook},
        pod::Demand,
    };

    fn read<T: serde::de::DeserializeOwned>(object: Value) -> std::sync::Arc<T> {
        std::sync::Arc::new(serde_json::from_value(object).unwrap())
    }

    fn slice(node: &str) -> Object {
        let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
        let spec = json!({"driver": "gpu.example.com", "pool": pool, "nodeName": node, "devices": [{"name": "gpu-0"}]});
        Object::ResourceSlice(read(json!({"metadata": {"name": format!("of-{node}")}, "spec": spec})))
    }

    fn claim(name: &str) -> Object {
        let requests = json!([{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]);
        let metadata = json!({"namespace": "team", "name": name, "uid": name});
        Object::ResourceClaim(read(
            json!({"metadata": metadata, "spec": {"devices": {"requests": requests}}}),
        ))
    }

    /// A cluster of these nodes, which have no devices, and a claim for one device.
    fn cluster(nodes: &[&str]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for name in nodes {
            let name: super::NodeName = (*name).into();
            snapshot.set_node(NodeInfo { uid: name.clone(), name, ..NodeInfo::default() });
        }
        snapshot.set_object(Object::DeviceClass(read(json!({"metadata": {"name": "gpu"}}))));
        snapshot.set_object(claim("shared"));
        snapshot
    }

    fn demand() -> Demand {
        super::super::tests::demand("shared")
    }

    fn chosen(classes: &mut Classes, snapshot: &Snapshot) -> Option<String> {
        classes.decide(&demand(), snapshot, |_| 0).ok().map(|decision| decision.node.to_string())
    }

    #[test]
    fn nodes_are_judged_again_once_their_devices_change() {
        let (mut snapshot, mut classes) = (cluster(&["a", "b", "c"]), Classes::default());
        assert_eq!(chosen(&mut classes, &snapshot), None);
        snapshot.set_object(slice("b"));
        assert_eq!(chosen(&mut classes, &snapshot).as_deref(), Some("b"));
        snapshot.set_object(slice("c"));
        snapshot.remove_object(Kind::ResourceSlice, &"of-b".into());
        assert_eq!(chosen(&mut classes, &snapshot).as_deref(), Some("c"));
        let mut other = claim("other");
        if let Object::ResourceClaim(claim) = &mut other {
            let result =
                json!({"request": "gpu", "driver": "gpu.example.com", "pool": "c", "device": "gpu-0"});
            let status = json!({"allocation": {"devices": {"results": [result]}}});
            std::sync::Arc::make_mut(claim).status = serde_json::from_value(status).unwrap();
        }
        snapshot.set_object(other);
        assert_eq!(chosen(&mut classes, &snapshot), None);
        snapshot.remove_object(Kind::ResourceClaim, &"team/other".into());
        assert_eq!(chosen(&mut classes, &snapshot).as_deref(), Some("c"));
        snapshot.remove_node("c");
        assert_eq!(chosen(&mut classes, &snapshot), None);
    }

    /// The nodes of an outlook are in the order of their names and not in the slots of the snapshot.
    #[test]
    fn an_outlook_finds_the_devices_of_the_right_node() {
        let mut snapshot = cluster(&["c", "b", "a"]);
        snapshot.set_object(slice("c"));
        let context = Context {
            objects: snapshot.objects().clone(),
            resource_claims: snapshot.resource_claims().clone(),
            ..Context::default()
        };
        let outlook = Outlook::new(snapshot.nodes().cloned().collect(), BTreeMap::new(), context);
        let placed = outlook.place(&demand(), || ControlFlow::Continue(())).unwrap();
        assert_eq!(placed.map(|prospect| prospect.node.info.name.to_string()).ok().as_deref(), Some("c"));
    }
}
