//! On which nodes there are devices for claims: found anew where a node, its devices or what is held of them has changed, kept everywhere else.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use super::dynamic_resources::alternatives::AlternativePoints;
use super::dynamic_resources::found::{FoundDevices, TakenByEach};
use super::dynamic_resources::rejection::ClaimRejection;
use crate::{
    dra::{GoOn, Selected},
    scheduling::{
        model::{name::NodeName, steps::Allowance},
        world::{
            World,
            node_state::NodeState,
            resource_claims::{Beside, ChangedNodes, SpecId},
        },
    },
};

/// What claims ask for, the version of the classes by which that is read, and whether the pod asks for shares too.
pub(in crate::scheduling) type Asked = (u64, Beside, Vec<AskedOf>);

/// What one claim asks for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(in crate::scheduling) enum AskedOf {
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
    found: Result<FoundDevices, ClaimRejection>,
    /// Which of its devices selectors admit.
    selected: Selected,
}

impl Default for Judged {
    fn default() -> Self {
        Self { generation: 0, stamp: None, found: Ok(FoundDevices::default()), selected: Selected::default() }
    }
}

/// What the allocator finds on each node, for claims that ask for the same. A copy is cheap.
#[derive(Clone, Debug, Default)]
pub(in crate::scheduling) struct NodeFits {
    /// In the order of the nodes.
    judged: Arc<Vec<Judged>>,
    /// The place that each node had when it was judged last.
    places: Arc<HashMap<NodeName, usize>>,
    /// Whether nodes are left that were not judged.
    is_unfinished: bool,
}

impl NodeFits {
    /// Whether nodes are left that were not judged: the decision may take no longer.
    pub(in crate::scheduling) fn is_unfinished(&self) -> bool {
        self.is_unfinished
    }

    /// Whether the node has devices for the claims, and what each of these claims takes of the node with them.
    pub(in crate::scheduling) fn on(&self, node: &NodeState) -> Result<TakenByEach, ClaimRejection> {
        let Some(judged) = self.of(node) else { return Ok(TakenByEach::default()) };
        judged.found.as_ref().map(|found| found.taken.clone()).map_err(Clone::clone)
    }

    /// How early the alternatives are that the claims get on the node, if it has devices for them.
    pub(in crate::scheduling) fn points(&self, node: &NodeState) -> AlternativePoints {
        let judged = self.of(node).and_then(|judged| judged.found.as_ref().ok());
        judged.map(|found| found.points).unwrap_or_default()
    }

    /// Which of the node's devices selectors admit, as far as it is known.
    pub(in crate::scheduling) fn selected(&self, node: &NodeState) -> Selected {
        self.of(node).map(|judged| judged.selected.clone()).unwrap_or_default()
    }

    /// As [`Self::selected`], of the node in this place.
    pub(in crate::scheduling) fn selected_in(&self, place: usize) -> Selected {
        self.judged.get(place).map(|judged| judged.selected.clone()).unwrap_or_default()
    }

    fn of(&self, node: &NodeState) -> Option<&Judged> {
        let in_slot = self.judged.get(node.slot).filter(|judged| judged.generation == node.generation);
        // The state is not the one that was judged.
        in_slot.or_else(|| self.judged.get(*self.places.get(&node.info.name)?))
    }
}

/// What is known of claims that ask for the same.
#[derive(Debug, Default)]
struct Known {
    fits: NodeFits,
    /// Up to which version changes of claims and devices have been taken in.
    version: u64,
    /// The places of nodes whose verdict holds for one decision, or that are still to be judged.
    unsettled: BTreeSet<usize>,
    /// The namespace of the claims that asked last, and when.
    asked_by: Arc<str>,
    asked_at: u64,
}

/// What the allocator finds on each node, by what claims ask for.
#[derive(Debug, Default)]
pub struct ClaimFits {
    by_asked: HashMap<Asked, Known>,
    asked: u64,
    /// What a decision has left to be judged: the first since this was last taken.
    unfinished: Option<Unfinished>,
}

/// Nodes that were not judged for some claims: the decision may take no longer.
#[derive(Clone, Debug)]
pub(in crate::scheduling) struct Unfinished {
    pub(in crate::scheduling) asked: Asked,
    pub(in crate::scheduling) nodes: Vec<(usize, NodeName)>,
    pub(in crate::scheduling) fits: NodeFits,
}

/// What was found for one node beside the decisions.
#[derive(Clone, Debug)]
pub(in crate::scheduling) struct Compared {
    pub(in crate::scheduling) place: usize,
    pub(in crate::scheduling) node: NodeName,
    pub(in crate::scheduling) generation: u64,
    pub(in crate::scheduling) stamp: u64,
    /// `None`: it was not found out.
    pub(in crate::scheduling) found: Option<Result<FoundDevices, ClaimRejection>>,
    pub(in crate::scheduling) selected: Selected,
}

/// So many different asks are remembered: few clusters have more than a handful of templates.
const REMEMBERED: usize = 256;

/// So many of them from one namespace, so that no namespace pushes out what others have asked for.
const REMEMBERED_OF_ONE: usize = 16;

impl ClaimFits {
    /// On which nodes there are devices for the claims of a pod of this namespace, as `judge` finds out. It judges as many nodes as `allowance`
    /// has steps for; what is left can be taken by [`Self::take_unfinished`]. With `only`, it judges the node in this slot alone, and leaves the others to
    /// the next decision.
    pub(in crate::scheduling) fn of(
        &mut self,
        (asked, namespace): (Asked, &Arc<str>),
        (world, only): (&World, Option<usize>),
        allowance: &mut Allowance,
        judge: impl Fn(&NodeState, &mut Selected, GoOn<'_>) -> Result<FoundDevices, ClaimRejection>,
    ) -> NodeFits {
        if !self.by_asked.contains_key(&asked) {
            self.forget_for(namespace);
        }
        self.asked += 1;
        let known = self.by_asked.entry(asked.clone()).or_default();
        (known.asked_by, known.asked_at) = (namespace.clone(), self.asked);
        let outdated = known.outdated(world);
        known.fits.is_unfinished = false;
        let (outdated, later): (BTreeSet<usize>, BTreeSet<usize>) =
            outdated.into_iter().partition(|place| only.is_none_or(|only| only == *place));
        known.unsettled.extend(later);
        let mut left = outdated.into_iter();
        for place in left.by_ref() {
            if known.judge(place, world, allowance, &judge) == Judging::Interrupted {
                known.fits.is_unfinished = true;
                break;
            }
        }
        if known.fits.is_unfinished && only.is_none() {
            known.unsettled.extend(left);
            let name = |place: &usize| Some((*place, world.nodes.at(*place)?.info.name.clone()));
            let nodes = known.unsettled.iter().filter_map(name).collect();
            let fits = known.fits.clone();
            self.unfinished.get_or_insert(Unfinished { asked, nodes, fits });
        }
        known.fits.clone()
    }

    /// What a decision has left to be judged: the first since this was last called.
    pub(in crate::scheduling) fn take_unfinished(&mut self) -> Option<Unfinished> {
        self.unfinished.take()
    }

    /// What earlier decisions have left to be judged is no longer asked for.
    pub(in crate::scheduling) fn forget_unfinished(&mut self) {
        self.unfinished = None;
    }

    /// Takes in what was found beside the decisions, where it still holds.
    pub(in crate::scheduling) fn take_in(&mut self, asked: &Asked, compared: Vec<Compared>, world: &World) {
        let Some(known) = self.by_asked.get_mut(asked) else { return };
        for compared in compared {
            known.take_in(compared, world);
        }
    }

    /// Makes room for what a pod of this namespace asks.
    fn forget_for(&mut self, namespace: &str) {
        let own = || self.by_asked.iter().filter(|(_, known)| *known.asked_by == *namespace);
        let oldest = if own().count() >= REMEMBERED_OF_ONE {
            own().min_by_key(|(_, known)| known.asked_at)
        } else if self.by_asked.len() >= REMEMBERED {
            self.by_asked.iter().min_by_key(|(_, known)| known.asked_at)
        } else {
            None
        };
        if let Some(asked) = oldest.map(|(asked, _)| asked.clone()) {
            self.by_asked.remove(&asked);
        }
    }
}

/// Whether a node was judged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Judging {
    Done,
    Interrupted,
}

impl Known {
    /// The places of the nodes that may have to be judged anew.
    fn outdated(&mut self, world: &World) -> BTreeSet<usize> {
        let claims = world.resource_claims();
        let judged = Arc::make_mut(&mut self.fits.judged);
        judged.resize_with(world.nodes.slots().len(), Judged::default);
        let mut outdated = std::mem::take(&mut self.unsettled);
        let both = judged.iter().zip(world.nodes.generations()).enumerate();
        outdated.extend(both.filter(|(_, (judged, now))| judged.generation != **now).map(|(place, _)| place));
        match claims.changed_since(self.version) {
            ChangedNodes::These(nodes) => {
                outdated.extend(nodes.iter().filter_map(|node| self.fits.places.get(node)));
            }
            ChangedNodes::Any => outdated.extend(0..world.nodes.slots().len()),
        }
        self.version = claims.version();
        outdated
    }

    fn judge(
        &mut self,
        place: usize,
        world: &World,
        allowance: &mut Allowance,
        judge: &impl Fn(&NodeState, &mut Selected, GoOn<'_>) -> Result<FoundDevices, ClaimRejection>,
    ) -> Judging {
        let Some(judged) = Arc::make_mut(&mut self.fits.judged).get_mut(place) else { return Judging::Done };
        let Some(state) = world.nodes.at(place) else {
            *judged = Judged::default();
            return Judging::Done;
        };
        let (name, generation) = (&state.info.name, state.generation);
        let stamp = world.resource_claims().stamp(name);
        if (judged.generation, judged.stamp) == (generation, Some(stamp)) {
            return Judging::Done;
        }
        let found = judge(state, &mut judged.selected, &mut |toll| allowance.take(toll));
        if is_unfinished(&found) {
            judged.generation = 0;
            self.unsettled.insert(place);
            return Judging::Interrupted;
        }
        self.set(place, name, (generation, stamp), found);
        Judging::Done
    }

    fn set(
        &mut self,
        place: usize,
        name: &NodeName,
        (generation, stamp): (u64, u64),
        found: Result<FoundDevices, ClaimRejection>,
    ) {
        let Some(judged) = Arc::make_mut(&mut self.fits.judged).get_mut(place) else { return };
        // An error names the claim, which is another the next time.
        let keeps = !matches!(&found, Err(ClaimRejection::Undecidable(_)));
        (judged.generation, judged.stamp, judged.found) = (generation, keeps.then_some(stamp), found);
        if !keeps {
            self.unsettled.insert(place);
        }
        if self.fits.places.get(name) != Some(&place) {
            Arc::make_mut(&mut self.fits.places).insert(name.clone(), place);
        }
    }

    fn take_in(&mut self, compared: Compared, world: &World) {
        let Compared { place, node, generation, stamp, found, selected } = compared;
        let Some(state) = world.nodes.at(place).filter(|state| state.info.name == node) else { return };
        let Some(judged) = Arc::make_mut(&mut self.fits.judged).get_mut(place) else { return };
        // Which devices selectors admit holds whatever else has changed.
        judged.selected = selected;
        let is_of_now = (state.generation, world.resource_claims().stamp(&node)) == (generation, stamp);
        if let Some(found) = found.filter(|_| is_of_now) {
            self.unsettled.remove(&place);
            self.set(place, &node, (generation, stamp), found);
        }
    }
}

/// Whether it was not found out whether the node has devices: that would take longer than the decision may.
pub(in crate::scheduling) fn is_unfinished<T>(found: &Result<T, ClaimRejection>) -> bool {
    matches!(found, Err(ClaimRejection::Unfinished))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, ops::ControlFlow};

    use serde_json::{Value, json};

    use crate::scheduling::{
        Snapshot,
        decide::{class::Classes, outlook::Outlook},
        model::{kind::Kind, node::NodeInfo, pod::Demand},
        plugin::score::weights::ScoreWeights,
        world::object::Object,
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
        crate::scheduling::plugin::dynamic_resources::tests::demand("shared")
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

    #[test]
    fn the_node_is_chosen_where_a_list_gets_its_earliest_alternative() {
        let chosen_for = |list: [&str; 2]| {
            let (mut snapshot, mut classes) = (cluster(&["a", "b"]), Classes::default());
            for (node, driver) in [("a", "slow"), ("b", "fast")] {
                let expression = format!("device.driver == '{driver}'");
                let selectors = json!([{"cel": {"expression": expression}}]);
                snapshot.set_object(Object::DeviceClass(read(
                    json!({"metadata": {"name": driver}, "spec": {"selectors": selectors}}),
                )));
                let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
                let spec =
                    json!({"driver": driver, "pool": pool, "nodeName": node, "devices": [{"name": "0"}]});
                let metadata = json!({"name": format!("of-{node}")});
                snapshot.set_object(Object::ResourceSlice(read(json!({"metadata": metadata, "spec": spec}))));
            }
            let list = list.map(|class| json!({"name": class, "deviceClassName": class}));
            let requests = json!([{"name": "gpu", "firstAvailable": list}]);
            let metadata = json!({"namespace": "team", "name": "shared", "uid": "shared"});
            snapshot.set_object(Object::ResourceClaim(read(
                json!({"metadata": metadata, "spec": {"devices": {"requests": requests}}}),
            )));
            chosen(&mut classes, &snapshot)
        };
        assert_eq!(chosen_for(["fast", "slow"]).as_deref(), Some("b"));
        assert_eq!(chosen_for(["slow", "fast"]).as_deref(), Some("a"));
    }

    /// Nodes are in the order in which they came, and not in that of their names.
    #[test]
    fn an_outlook_finds_the_devices_of_the_right_node() {
        let mut snapshot = cluster(&["c", "b", "a"]);
        snapshot.set_object(slice("c"));
        let outlook = Outlook::new(snapshot.world().clone(), BTreeMap::new(), ScoreWeights::default());
        let placed = outlook.place(&demand(), || ControlFlow::Continue(())).unwrap();
        assert_eq!(placed.map(|prospect| prospect.node.info.name.to_string()).ok().as_deref(), Some("c"));
    }

    /// Not even one evaluation is begun that could take longer than a dry run may.
    #[test]
    fn a_dry_run_has_no_answer_where_a_selector_takes_too_long() {
        let mut snapshot = cluster(&["a"]);
        snapshot.set_object(slice("a"));
        let list = format!("[{}]", ["0"; 38].join(","));
        let loops = format!("{list}.all(x, {list}.all(y, {list}.all(z, x + y + z >= 0)))");
        let mut placed = |selector: &str| {
            let selectors = json!([{"cel": {"expression": selector}}]);
            let requests =
                json!([{"name": "gpu", "exactly": {"deviceClassName": "gpu", "selectors": selectors}}]);
            let metadata = json!({"namespace": "team", "name": "shared", "uid": "shared"});
            let claim = json!({"metadata": metadata, "spec": {"devices": {"requests": requests}}});
            snapshot.set_object(Object::ResourceClaim(read(claim)));
            let outlook = Outlook::new(snapshot.world().clone(), BTreeMap::new(), ScoreWeights::default());
            outlook.place(&demand(), || ControlFlow::Continue(())).map(|placed| placed.is_ok())
        };
        assert_eq!(placed("device.driver == 'gpu.example.com'"), Some(true));
        assert_eq!(placed("device.driver == 'other.example.com'"), Some(false));
        assert_eq!(placed(&loops), None);
    }

    #[test]
    fn a_namespace_with_many_claims_does_not_push_out_what_was_found_for_another() {
        let (snapshot, mut fits) = (cluster(&["a"]), super::ClaimFits::default());
        let (one, many) = (std::sync::Arc::from("one"), std::sync::Arc::from("many"));
        let asked = |at: u64| (at, super::Beside::Nothing, Vec::new());
        let judged = std::cell::Cell::new(0);
        let mut ask = |at: u64, namespace: &std::sync::Arc<str>| {
            fits.of(
                (asked(at), namespace),
                (snapshot.world(), None),
                &mut super::Allowance::UNLIMITED.clone(),
                |_, _, _| {
                    judged.set(judged.get() + 1);
                    Ok(super::FoundDevices::default())
                },
            );
            judged.take()
        };
        assert_eq!(ask(0, &one), 1);
        assert_eq!((1..1000).map(|at| ask(at, &many)).sum::<u32>(), 999);
        assert_eq!(ask(0, &one), 0, "it is still known");
        assert_eq!(ask(999, &many), 0);
        assert_eq!(ask(1, &many), 1, "the oldest of the same namespace are forgotten");
    }
}
