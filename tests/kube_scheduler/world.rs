//! A small cluster under construction, decided by its seed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::kube_scheduler::{
    dice::Dice,
    family::{Family, spread},
};

/// The zones of nodes, volumes and spread.
pub(crate) const ZONES: &[&str] = &["a", "b", "c"];
/// The label of a zone.
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
/// The label of a node's own name.
pub(crate) const HOSTNAME: &str = "kubernetes.io/hostname";
/// A topology that some nodes are not in.
pub(crate) const RACK: &str = "example.com/rack";
/// Namespaces, and the label `team` of each.
pub(crate) const NAMESPACES: &[(&str, &str)] = &[("default", "none"), ("team-a", "a"), ("team-b", "b")];

/// A cluster and the pods that are to be judged on it.
pub(crate) struct World {
    /// Where chance comes from.
    pub(crate) dice: Dice,
    /// The nodes.
    pub(crate) nodes: Vec<Value>,
    /// Pods that are on a node.
    pub(crate) bound: Vec<Value>,
    /// Pods that ask for a share and wait.
    pub(crate) waiting: Vec<Value>,
    /// Everything else.
    pub(crate) objects: Vec<Value>,
    /// The families that a waiting pod itself asks for, by the pod's position.
    pub(crate) asked: BTreeMap<usize, BTreeSet<Family>>,
}

/// A finished cluster.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// What it was made from.
    pub(crate) seed: u64,
    /// The families in it.
    pub(crate) families: BTreeSet<Family>,
    /// Its objects.
    pub(crate) items: Vec<Value>,
    /// The waiting pods by name, with the families that each itself asks for.
    pub(crate) waiting: BTreeMap<String, BTreeSet<Family>>,
}

/// Appends to a list that may not be there yet.
pub(crate) fn push(list: &mut Value, item: Value) {
    if list.is_null() {
        *list = json!([]);
    }
    list.as_array_mut().expect("only lists are pushed to").push(item);
}

impl Case {
    /// The cluster of this seed, with up to three of these families; every other one has none that Berth does not serve.
    pub(crate) fn generate(seed: u64, enabled: &[Family]) -> Self {
        Self::generate_with(seed, enabled, |_| {})
    }

    /// As [`Self::generate`], with something done to the cluster before the families are put into it.
    pub(crate) fn generate_with(seed: u64, enabled: &[Family], alter: impl FnOnce(&mut World)) -> Self {
        let mut dice = Dice::new(seed);
        let served: Vec<_> = enabled.iter().copied().filter(|family| family.is_served()).collect();
        let pool = if dice.in_thousand(500) && !served.is_empty() { &served } else { enabled };
        let mut families = BTreeSet::new();
        for _ in 0..=dice.below(3) {
            let family = dice.one_of(pool);
            if !(family.gives_room() && families.iter().any(|other: &Family| other.gives_room())) {
                families.insert(family);
            }
        }
        let mut world = World::new(dice);
        alter(&mut world);
        Family::all().filter(|family| families.contains(family)).for_each(|family| family.enter(&mut world));
        if families.contains(&Family::Nominated) {
            spread::select_some(&mut world);
        }
        world.into_case(seed, families)
    }
}

impl World {
    fn new(mut dice: Dice) -> Self {
        let count = 3 + dice.below(10);
        let nodes: Vec<_> = (0..count).map(|at| node(&mut dice, at)).collect();
        let bound = (0..dice.below(31)).map(|at| bound(&mut dice, at, count)).collect();
        let waiting = (0..dice.pick(&[(1, 7), (2, 2), (3, 1)])).map(|at| waiting(&mut dice, at)).collect();
        let objects = NAMESPACES
            .iter()
            .map(|(name, team)| {
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": team}}})
            })
            .collect();
        Self { dice, nodes, bound, waiting, objects, asked: BTreeMap::new() }
    }

    fn into_case(self, seed: u64, families: BTreeSet<Family>) -> Case {
        let mut asked = self.asked;
        let name = |pod: &Value| pod["metadata"]["name"].as_str().expect("a pod has a name").to_owned();
        let waiting = self
            .waiting
            .iter()
            .enumerate()
            .map(|(at, pod)| (name(pod), asked.remove(&at).unwrap_or_default()))
            .collect();
        let items = [self.objects, self.nodes, self.bound, self.waiting].concat();
        Case { seed, families, items, waiting }
    }

    /// Adds an object, unless it is there already.
    pub(crate) fn add(&mut self, object: Value) {
        let names = |object: &Value| (object["kind"].clone(), object["metadata"].clone());
        if !self.objects.iter().any(|other| names(other) == names(&object)) {
            self.objects.push(object);
        }
    }

    /// Notes that a waiting pod itself asks for what the family is about.
    pub(crate) fn asks(&mut self, pod: usize, family: Family) {
        self.asked.entry(pod).or_default().insert(family);
    }

    /// The positions of those waiting pods that a family is put into.
    pub(crate) fn chosen(&mut self) -> Vec<usize> {
        (0..self.waiting.len()).filter(|_| self.dice.in_thousand(850)).collect()
    }

    /// The namespace of a waiting pod.
    pub(crate) fn namespace(&self, pod: usize) -> String {
        self.waiting[pod]["metadata"]["namespace"].as_str().expect("a pod has a namespace").to_owned()
    }

    /// The position of any node.
    pub(crate) fn any_node(&mut self) -> usize {
        usize::try_from(self.dice.below(self.nodes.len() as u64)).expect("a cluster is small")
    }

    /// The name of any node.
    pub(crate) fn any_node_name(&mut self) -> String {
        let at = self.any_node();
        self.nodes[at]["metadata"]["name"].as_str().expect("a node has a name").to_owned()
    }

    /// A pod on any node, of the namespace, with no labels.
    pub(crate) fn bind_another(&mut self, name: &str, namespace: &str) -> &mut Value {
        let node = self.any_node_name();
        self.bound.push(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "uid": format!("uid-{namespace}-{name}")},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "none"}]},
            "status": {"phase": "Running"},
        }));
        self.bound.last_mut().expect("one was just added")
    }
}

fn node(dice: &mut Dice, at: u64) -> Value {
    let name = format!("n{at:02}");
    let mut labels = json!({});
    let mut label = |dice: &mut Dice, key: &str, cases: u64, value: &str| {
        if dice.in_thousand(cases) {
            labels[key] = json!(value);
        }
    };
    label(dice, HOSTNAME, 950, &name);
    let (zone, disk) = (dice.one_of(ZONES), dice.one_of(&["ssd", "hdd"]));
    let (generation, rack) = (dice.one_of(&["3", "4", "10", "x"]), dice.one_of(&["r1", "r2"]));
    label(dice, ZONE, 850, zone);
    label(dice, "disk", 600, disk);
    label(dice, "gen", 600, generation);
    label(dice, RACK, 600, rack);
    let amounts = json!({
        "cpu": "32", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi", "nvidia.com/gpu": "100",
    });
    let card = |at: u32| {
        json!({"id": format!("GPU-{name}-{at}"), "index": at, "count": 10, "devmem": 80000, "devcore": 100,
            "type": "NVIDIA A100", "health": true})
    };
    let register = Value::from((0..4).map(card).collect::<Vec<_>>()).to_string();
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {"hami.io/node-nvidia-register": register}},
        "status": {"capacity": amounts, "allocatable": amounts},
    })
}

/// Labels that selectors of other pods are about.
fn labels(dice: &mut Dice) -> Value {
    let mut labels = json!({"app": dice.one_of(&["web", "db"])});
    if dice.in_thousand(700) {
        labels["tier"] = json!(dice.one_of(&["x", "y"]));
    }
    labels
}

fn bound(dice: &mut Dice, at: u64, nodes: u64) -> Value {
    let (namespace, _) = dice.one_of(NAMESPACES);
    let phase = dice.pick(&[("Running", 8), ("Pending", 1), ("Succeeded", 1)]);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("b{at:02}"), "namespace": namespace, "uid": format!("uid-b{at:02}"), "labels": labels(dice)},
        "spec": {
            "nodeName": format!("n{:02}", dice.below(nodes)),
            "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}],
        },
        "status": {"phase": phase},
    })
}

fn waiting(dice: &mut Dice, at: u64) -> Value {
    let (namespace, _) = dice.one_of(NAMESPACES);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("p{at}"), "namespace": namespace, "uid": format!("uid-p{at}"), "labels": labels(dice)},
        "spec": {"containers": [
            {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}}},
        ]},
    })
}
