//! Places that pods hold while their volumes are being made: kept while nobody else needs them, given to others after half a minute, and bounded
//! for a namespace.

use std::collections::BTreeSet;

use berth::{
    cluster::read::group::pod_group,
    config::Config,
    scheduling::{
        Effect, Event, Finding, ObjectChange, PodChange, WriteOutcome,
        effect::PrebindWrite,
        model::kind::{Kind, PodGroupKind},
        world::object::Object,
    },
};
use serde_json::{Value, json};

use super::machine::{Machine, heard, node, parsed, pod};

const SELECTED: &str = "volume.kubernetes.io/selected-node";

/// A node with so many cards.
fn gpu_node(name: &str, cards: usize) -> Value {
    let card = |at: usize| {
        json!({"id": format!("GPU-{name}-{at}"), "index": at, "count": 10, "devmem": 16000, "devcore": 100,
            "type": "NVIDIA A100", "mode": "hami-core", "health": true})
    };
    let cards: Vec<_> = (0..cards).map(card).collect();
    node(name, &json!({"hami.io/node-nvidia-register": json!(cards).to_string()}))
}

/// A pod of this namespace that asks for so many whole cards.
fn cards(namespace: &str, name: &str, count: usize) -> Value {
    let mut pod = pod(name, &json!({"nvidia.com/gpu": count.to_string(), "nvidia.com/gpumem": "16000"}));
    pod["metadata"]["namespace"] = json!(namespace);
    pod
}

/// That pod, with a claim of its own name.
fn with_claim(namespace: &str, name: &str, count: usize) -> Value {
    let mut pod = cards(namespace, name, count);
    pod["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": name}}]);
    pod
}

/// A cluster whose provisioner makes no volume before it is told to.
struct World {
    machine: Machine,
    version: u64,
    bound: Vec<String>,
    /// What pods were told, in order.
    told: Vec<(String, String)>,
    /// The claims whose node was taken back.
    deselected: BTreeSet<String>,
}

impl World {
    fn new(config: &Config, nodes: &[(&str, usize)]) -> Self {
        let nodes: Vec<_> = nodes.iter().map(|(name, cards)| gpu_node(name, *cards)).collect();
        Self::of(Machine::new(config, &nodes, &[]))
    }

    fn of(machine: Machine) -> Self {
        let (bound, told, deselected) = (Vec::new(), Vec::new(), BTreeSet::new());
        let mut world = Self { machine, version: 1000, bound, told, deselected };
        world.machine.tell(Event::Object(ObjectChange::Listed(Kind::PodDisruptionBudget, Vec::new())));
        let class = json!({"metadata": {"name": "slow"}, "provisioner": "csi.example",
            "volumeBindingMode": "WaitForFirstConsumer"});
        world.machine.tell(Event::Object(ObjectChange::Seen(Object::StorageClass(parsed(&class)))));
        world
    }

    /// A pod with a claim for which no volume is made.
    fn hold(&mut self, namespace: &str, name: &str, count: usize) {
        self.show_claim(namespace, name, &json!({}), "");
        self.machine.show_pod(&with_claim(namespace, name, count));
        self.settle();
    }

    fn show_claim(&mut self, namespace: &str, name: &str, annotations: &Value, volume: &str) -> String {
        self.version += 1;
        let version = self.version.to_string();
        let claim = json!({
            "metadata": {"name": name, "namespace": namespace, "uid": name, "resourceVersion": version,
                "annotations": annotations},
            "spec": {"storageClassName": "slow", "accessModes": ["ReadWriteOnce"], "volumeName": volume,
                "resources": {"requests": {"storage": "1Gi"}}},
        });
        self.machine.tell(Event::Object(ObjectChange::Seen(Object::PersistentVolumeClaim(parsed(&claim)))));
        version
    }

    /// The volume of this pod is made.
    fn provision(&mut self, namespace: &str, name: &str) {
        self.version += 1;
        let volume = json!({
            "metadata": {"name": format!("pv-{name}"), "resourceVersion": self.version.to_string()},
            "spec": {"storageClassName": "slow", "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "2Gi"}, "claimRef": {"namespace": namespace, "name": name, "uid": name}},
            "status": {"phase": "Bound"},
        });
        self.machine.tell(Event::Object(ObjectChange::Seen(Object::PersistentVolume(parsed(&volume)))));
        let annotations = json!({"pv.kubernetes.io/bind-completed": "yes"});
        self.show_claim(namespace, name, &annotations, &format!("pv-{name}"));
        self.settle();
    }

    fn show(&mut self, pod: &Value) {
        self.machine.show_pod(pod);
        self.settle();
    }

    fn settle(&mut self) {
        loop {
            let (effects, bound) = self.machine.run();
            self.bound.extend(bound.into_iter().map(|(pod, _)| pod));
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                self.carry_out(effect);
            }
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Prebind { pod, write } => {
                let PrebindWrite::SelectNode { claim, node } = &write else { panic!("{write:?}") };
                let name = claim.metadata.name.clone();
                let annotations = match node {
                    Some(node) => json!({SELECTED: &**node}),
                    None => json!({}),
                };
                if node.is_none() {
                    self.deselected.insert(name.clone());
                }
                let resource_version = self.show_claim(&pod.namespace, &name, &annotations, "");
                let outcome = WriteOutcome::Written { resource_version };
                self.machine.tell(Event::Prebound { pod, write, outcome });
            }
            Effect::TellUnschedulable { pod, reason, .. } => {
                self.told.push((pod.name.to_string(), reason.message().full));
                self.machine.tell(heard(pod, &reason));
            }
            Effect::ReportFinding { of, finding: Finding::Drift(drift) } => panic!("{of:?}: {drift}"),
            _ => {}
        }
    }

    fn pass(&mut self, seconds: i64) {
        for _ in 0..seconds {
            self.machine.pass(1);
            self.settle();
        }
    }

    fn holds(&self, pod: &str) -> bool {
        self.machine.scheduler().snapshot().ledger().get(&pod.into()).is_some()
    }

    /// What this pod was told last.
    fn last(&self, pod: &str) -> &str {
        let of_pod = self.told.iter().rev().find(|(name, _)| name == pod);
        of_pod.map_or("", |(_, message)| message)
    }
}

fn full(namespace: &str, name: &str) -> Value {
    cards(namespace, name, 1)
}

#[test]
fn a_place_that_is_held_for_a_volume_is_given_to_another_pod_after_half_a_minute() {
    let mut world = World::new(&Config::default(), &[("n1", 1)]);
    world.hold("greedy", "holder", 1);
    world.pass(20);
    world.show(&full("other", "probe"));
    world.pass(9);
    assert_eq!(world.bound, [""; 0], "a volume is mostly made within half a minute");
    world.pass(1);
    assert_eq!(world.bound, ["probe"], "at once");
    assert!(!world.holds("holder"));
    assert!(
        world
            .told
            .iter()
            .any(|(pod, said)| pod == "holder" && said.starts_with("the place on node n1 was given")),
        "{:?}",
        world.told
    );
    assert!(world.deselected.is_empty(), "the volume is made meanwhile");
}

#[test]
fn a_pod_that_comes_later_takes_such_a_place_in_its_first_turn() {
    let mut world = World::new(&Config::default(), &[("n1", 1), ("n2", 1)]);
    world.hold("greedy", "first", 1);
    world.hold("greedy", "second", 1);
    world.pass(60);
    world.show(&full("other", "probe"));
    assert_eq!(world.bound, ["probe"]);
    let left = ["first", "second"].iter().filter(|name| world.holds(name)).count();
    assert_eq!(left, 1, "no more places are given away than are needed");
}

#[test]
fn pods_that_would_hold_such_a_place_again_leave_it_to_those_of_other_namespaces() {
    let mut world = World::new(&Config::default(), &[("n1", 1)]);
    for at in 0..4 {
        world.hold("greedy", &format!("g{at}"), 1);
    }
    world.pass(20);
    world.show(&full("other", "probe"));
    world.pass(10);
    assert_eq!(world.bound, ["probe"], "though the others have waited for longer");
}

#[test]
fn within_a_namespace_such_a_place_goes_to_the_next_pod_with_a_volume() {
    let mut world = World::new(&Config::default(), &[("n1", 1)]);
    world.hold("greedy", "first", 1);
    world.hold("greedy", "second", 1);
    world.pass(30);
    assert!(world.holds("second") && !world.holds("first"), "{:?}", world.told);
}

#[test]
fn a_place_that_nobody_needs_is_held_as_long_as_ever() {
    let mut world = World::new(&Config::default(), &[("n1", 1)]);
    world.hold("greedy", "holder", 1);
    // One needs more than the node has, the other is of lower priority.
    world.show(&cards("other", "large", 2));
    let mut low = full("other", "low");
    low["spec"]["priority"] = json!(-1);
    world.show(&low);
    world.pass(599);
    assert!(world.holds("holder"));
    world.provision("greedy", "holder");
    assert_eq!(world.bound, ["holder"]);
}

#[test]
fn a_pod_says_what_it_holds_its_place_for_and_since_when() {
    let mut world = World::new(&Config::default(), &[("n1", 1)]);
    world.hold("greedy", "holder", 1);
    world.pass(9);
    assert_eq!(world.last("holder"), "");
    world.pass(1);
    assert_eq!(
        world.last("holder"),
        "waiting on node n1 since 2027-01-15T08:00:00Z for persistentvolumeclaim \"holder\"; the place goes to another pod \
         that needs it from 2027-01-15T08:00:30Z on"
    );
    world.pass(300);
    assert_eq!(world.told.len(), 1, "once");
    world.provision("greedy", "holder");
    assert_eq!(world.bound, ["holder"]);
}

#[test]
fn a_pod_that_has_lost_its_place_comes_after_those_that_waited_already() {
    let mut world = World::new(&Config::default(), &[("n1", 1)]);
    let at = |mut pod: Value, second: i64| {
        pod["metadata"]["creationTimestamp"] = json!(format!("2027-01-15T07:00:{second:02}Z"));
        pod
    };
    world.show_claim("greedy", "holder", &json!({}), "");
    world.show(&at(with_claim("greedy", "holder", 1), 0));
    world.show(&at(full("other", "first"), 1));
    world.show(&at(full("other", "second"), 2));
    world.pass(30);
    assert_eq!(world.bound, ["first"]);
    world.provision("greedy", "holder");
    world.pass(60);
    world.machine.tell(Event::Pod(PodChange::Ended("first".into())));
    world.settle();
    assert_eq!(world.bound, ["first", "second"], "the holder is older, and comes after both");
    world.machine.tell(Event::Pod(PodChange::Ended("second".into())));
    world.pass(15);
    assert_eq!(world.bound, ["first", "second", "holder"]);
}

#[test]
fn what_was_written_for_the_volume_of_such_a_pod_is_taken_back_once_it_is_deleted() {
    let mut world = World::new(&Config::default(), &[("n1", 1)]);
    world.hold("greedy", "holder", 1);
    world.pass(30);
    world.show(&full("other", "probe"));
    assert_eq!(world.bound, ["probe"]);
    assert!(world.deselected.is_empty());
    world.machine.tell(Event::Pod(PodChange::Ended("holder".into())));
    world.settle();
    assert_eq!(world.deselected.iter().collect::<Vec<_>>(), ["holder"]);
}

#[test]
fn a_namespace_holds_only_a_part_of_the_cards_for_volumes() {
    let mut world = World::new(&Config::default(), &[("n1", 4), ("n2", 4)]);
    for at in 0..8 {
        world.hold("greedy", &format!("g{at}"), 1);
    }
    let held = |world: &World| (0..8).filter(|at| world.holds(&format!("g{at}"))).count();
    assert_eq!(held(&world), 4, "half of eight");
    let said = world.last("g7");
    assert_eq!(
        said,
        "pods of namespace greedy hold 50% of the cluster's cards while they wait for volumes \
         (scheduling.volumes.heldPercent); the pod waits until some of them are bound"
    );
    // Others have the rest at once, with volumes and without.
    world.hold("other", "probe-1", 1);
    world.show(&full("other", "probe-2"));
    assert!(world.holds("probe-1") && world.bound == ["probe-2"], "{:?}", world.bound);
    world.provision("greedy", "g0");
    world.pass(10);
    assert_eq!(held(&world), 5, "one is bound, and another has come in its place");
}

#[test]
fn the_part_is_a_setting_and_one_pod_may_hold_more() {
    let config = |percent: u32| {
        let text = format!("scheduling: {{volumes: {{heldPercent: {percent}}}}}");
        Config::parse(&text, "berth.yaml").unwrap().0
    };
    for (percent, expected) in [(0, 1), (25, 2), (100, 8)] {
        let mut world = World::new(&config(percent), &[("n1", 8)]);
        for at in 0..8 {
            world.hold("greedy", &format!("g{at}"), 1);
        }
        let held = (0..8).filter(|at| world.holds(&format!("g{at}"))).count();
        assert_eq!(held, expected, "{percent} %");
    }
    let mut world = World::new(&config(25), &[("n1", 8)]);
    world.hold("greedy", "whole", 8);
    assert!(world.holds("whole"), "no setting keeps a pod out for ever");
}

/// A pod of the gang, with a claim of its own name.
fn of_gang(mut pod: Value) -> Value {
    pod["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": "gang"});
    pod
}

/// Two nodes of one card, and a gang of two pods.
fn gang() -> World {
    let nodes = [gpu_node("n1", 1), gpu_node("n2", 1)];
    let mut machine = Machine::with_gangs(&Config::default(), &nodes);
    machine.serve_none(Kind::DEVICES_BY_TYPE);
    let group = json!({"metadata": {"name": "gang", "namespace": "greedy"}, "spec": {"minMember": 2}});
    machine.tell(Event::Object(ObjectChange::Listed(
        Kind::PodGroup(PodGroupKind::Volcano),
        vec![pod_group(PodGroupKind::Volcano, &parsed(&group))],
    )));
    World::of(machine)
}

#[test]
fn the_places_of_a_gang_that_waits_for_volumes_are_given_to_others_together() {
    let mut world = gang();
    for name in ["a", "b"] {
        world.show_claim("greedy", name, &json!({}), "");
        world.machine.show_pod(&of_gang(with_claim("greedy", name, 1)));
    }
    world.settle();
    assert!(world.holds("a") && world.holds("b"), "one gang may hold all: {:?}", world.told);
    world.provision("greedy", "a");
    world.pass(20);
    world.show(&full("other", "probe"));
    assert_eq!(world.bound, [""; 0]);
    world.pass(10);
    assert_eq!(world.bound, ["probe"]);
    assert!(!world.holds("a") && !world.holds("b"), "a gang is placed whole or not at all");
    world.provision("greedy", "b");
    world.machine.tell(Event::Pod(PodChange::Ended("probe".into())));
    world.pass(15);
    assert_eq!(world.bound.len(), 3, "{:?} {:?}", world.bound, world.told);
}

#[test]
fn a_gang_takes_places_that_others_hold_for_volumes() {
    let mut world = gang();
    world.hold("third", "first", 1);
    world.hold("fourth", "second", 1);
    for name in ["a", "b"] {
        world.machine.show_pod(&of_gang(full("greedy", name)));
    }
    world.pass(29);
    assert_eq!(world.bound, [""; 0]);
    world.pass(1);
    world.bound.sort();
    assert_eq!(world.bound, ["a", "b"]);
}

#[test]
fn a_pod_is_woken_that_fits_beside_such_a_place_and_not_beside_another() {
    let mut world = World::new(&Config::default(), &[("n1", 2)]);
    world.show(&full("third", "other"));
    assert_eq!(world.bound, ["other"]);
    world.hold("greedy", "holder", 1);
    world.show(&cards("fourth", "probe", 2));
    world.pass(60);
    assert!(world.holds("holder"), "the other pod would be in the way all the same");
    world.machine.tell(Event::Pod(PodChange::Ended("other".into())));
    world.settle();
    assert_eq!(world.bound, ["other", "probe"]);
    assert!(!world.holds("holder"));
}
