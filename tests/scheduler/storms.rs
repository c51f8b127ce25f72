//! Preemption in vain: what a pod costs others that has pods preempted and is never bound, and that all other pods preempt as ever.

use std::collections::BTreeMap;

use berth::{
    config::Config,
    scheduling::{
        Effect, Event, NodeChange, ObjectChange, PodChange, WriteOutcome, effect::PrebindWrite,
        world::object::Object,
    },
};
use serde_json::{Value, json};

use super::machine::{Machine, bound, heard, node, parsed, pod};

fn gpu_node(name: &str) -> Value {
    let card = json!([{"id": format!("GPU-{name}"), "index": 0, "count": 10, "devmem": 16000, "devcore": 100,
        "type": "NVIDIA A100", "mode": "hami-core", "health": true}]);
    node(name, &json!({"hami.io/node-nvidia-register": card.to_string()}))
}

/// A pod of another user that holds the card of the node.
fn victim(name: &str, node: &str) -> Value {
    let annotations = json!({
        "hami.io/vgpu-node": node, "hami.io/bind-phase": "success",
        "hami.io/vgpu-devices-allocated": format!("GPU-{node},NVIDIA,16000,0:;"),
    });
    let mut pod = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "16000"}));
    pod["metadata"]["namespace"] = json!("other");
    pod["spec"]["priority"] = json!(0);
    bound(pod, node, annotations)
}

/// A pod of high priority that needs a whole card.
fn urgent(namespace: &str, name: &str) -> Value {
    let mut pod = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "16000"}));
    pod["metadata"]["namespace"] = json!(namespace);
    pod["spec"]["priority"] = json!(100);
    pod
}

/// As [`urgent`], with the claim `data`, for which no volume is ever made.
fn with_claim(name: &str) -> Value {
    let mut pod = urgent("greedy", name);
    pod["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    pod
}

/// A cluster whose API server writes all that it is asked to, and whose users answer at once.
struct World {
    machine: Machine,
    version: u64,
    replaced: usize,
    /// The node of each pod that was preempted and is replaced at once, by name; in order of time.
    preempted: Vec<(i64, String)>,
    bound: Vec<String>,
    told: BTreeMap<String, String>,
    seconds: i64,
}

impl World {
    fn new(nodes: &[&str]) -> Self {
        let described: Vec<_> = nodes.iter().map(|name| gpu_node(name)).collect();
        let machine = Machine::new(&Config::default(), &described, &[]);
        let (preempted, bound, told) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut world = Self { machine, version: 1000, replaced: 0, preempted, bound, told, seconds: 0 };
        for node in nodes {
            world.replace(node);
        }
        world.machine.tell(Event::Object(ObjectChange::Listed(
            berth::scheduling::model::kind::Kind::PodDisruptionBudget,
            Vec::new(),
        )));
        let class = json!({"metadata": {"name": "slow"}, "provisioner": "csi.example",
            "volumeBindingMode": "WaitForFirstConsumer"});
        world.machine.tell(Event::Object(ObjectChange::Seen(Object::StorageClass(parsed(&class)))));
        world.show_claim(None);
        world
    }

    /// Another pod of the other user takes the card of the node.
    fn replace(&mut self, node: &str) {
        self.replaced += 1;
        self.machine.show_pod(&victim(&format!("{node}-v{}", self.replaced), node));
    }

    fn show_claim(&mut self, selected: Option<&str>) -> u64 {
        self.version += 1;
        let annotations =
            selected.map_or_else(|| json!({}), |node| json!({"volume.kubernetes.io/selected-node": node}));
        let claim = json!({
            "metadata": {"name": "data", "namespace": "greedy", "uid": "claim",
                "resourceVersion": self.version.to_string(), "annotations": annotations},
            "spec": {"storageClassName": "slow", "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}},
        });
        self.machine.tell(Event::Object(ObjectChange::Seen(Object::PersistentVolumeClaim(parsed(&claim)))));
        self.version
    }

    /// Carries out all that is to be done now. Victims end at once; what `selected` says follows each time that a node is selected.
    fn settle(&mut self, selected: &mut dyn FnMut(&mut Self, &str)) {
        loop {
            let (effects, bound) = self.machine.run();
            self.bound.extend(bound.into_iter().map(|(pod, _)| pod));
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                self.carry_out(effect, selected);
            }
        }
    }

    fn carry_out(&mut self, effect: Effect, selected: &mut dyn FnMut(&mut Self, &str)) {
        let version = self.version.to_string();
        let written = || WriteOutcome::Written { resource_version: version.clone() };
        match effect {
            Effect::Nominate { pod, node, room } => {
                self.machine.tell(Event::Nominated {
                    pod,
                    node,
                    room,
                    outcome: WriteOutcome::Written { resource_version: "1".to_owned() },
                });
            }
            Effect::Preempt { pod, node, preemptor } => {
                self.preempted.push((self.seconds, node.to_string()));
                self.machine.tell(Event::Preempted { pod: pod.clone(), preemptor, outcome: written() });
                self.machine.tell(Event::Pod(PodChange::Ended(pod.uid)));
            }
            Effect::Prebind { pod, write } => {
                let node = match &write {
                    PrebindWrite::SelectNode { node, .. } => node.clone(),
                    other => panic!("{other:?}"),
                };
                let resource_version = self.show_claim(node.as_deref()).to_string();
                let outcome = WriteOutcome::Written { resource_version };
                self.machine.tell(Event::Prebound { pod, write, outcome });
                if let Some(node) = node {
                    selected(self, &node);
                }
            }
            Effect::TellUnschedulable { pod, reason, .. } => {
                self.told.insert(pod.name.to_string(), reason.message().full);
                self.machine.tell(heard(pod, &reason));
            }
            _ => {}
        }
    }

    fn pass(&mut self, seconds: i64, selected: &mut dyn FnMut(&mut Self, &str)) {
        for _ in 0..seconds {
            self.settle(selected);
            self.machine.pass(1);
            self.seconds += 1;
        }
        self.settle(selected);
    }

    fn times(&self) -> Vec<i64> {
        self.preempted.iter().map(|(at, _)| *at).collect()
    }
}

/// The user takes the node away from the claim, and the controller of the victim has made another pod that takes the room.
fn deselect(world: &mut World, node: &str) {
    world.show_claim(None);
    world.replace(node);
}

#[test]
fn a_pod_that_has_others_preempted_in_vain_does_so_less_and_less_often() {
    let mut world = World::new(&["n1"]);
    world.machine.show_pod(&with_claim("evil"));
    world.pass(900, &mut deselect);
    let times = world.times();
    let pauses: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses, [10, 20, 40, 80, 160, 300], "{times:?}");
    let said = &world.told["evil"];
    assert!(said.contains("preemption: none before ") && said.contains("was not bound"), "{said}");
}

#[test]
fn a_pod_that_is_created_anew_after_each_preemption_does_not_begin_from_the_first_pause() {
    let mut world = World::new(&["n1"]);
    let mut number = 0;
    for _ in 0..600 {
        let evil = format!("evil-{number}");
        world.machine.show_pod(&urgent("greedy", &evil));
        let before = world.preempted.len();
        // No Binding is sent before the pod is gone again.
        let effects = world.machine.settle();
        for effect in effects {
            world.carry_out(effect, &mut deselect);
        }
        let effects = world.machine.settle();
        for effect in effects {
            if matches!(effect, Effect::Preempt { .. }) {
                world.carry_out(effect, &mut deselect);
            }
        }
        if world.preempted.len() > before {
            world.machine.tell(Event::Pod(PodChange::Ended(evil.as_str().into())));
            world.replace("n1");
            number += 1;
        }
        world.machine.pass(1);
        world.seconds += 1;
    }
    let times = world.times();
    assert!((4..=7).contains(&times.len()), "{times:?}");
}

#[test]
fn pods_of_other_namespaces_and_others_of_the_same_preempt_at_once() {
    let mut world = World::new(&["n1", "n2", "n3"]);
    world.machine.show_pod(&with_claim("evil"));
    world.pass(5, &mut deselect);
    let before = world.preempted.len();
    world.machine.show_pod(&urgent("third", "probe"));
    world.machine.show_pod(&urgent("greedy", "sound"));
    world.settle(&mut deselect);
    assert_eq!(world.preempted.len() - before, 2, "{:?}", world.preempted);
    assert_eq!(world.bound, ["probe", "sound"], "each gets the room that was made for it");
}

#[test]
fn a_pod_whose_node_is_gone_preempts_again_without_a_pause_once() {
    let mut world = World::new(&["n1", "n2", "n3"]);
    world.machine.show_pod(&urgent("greedy", "p"));
    // The node of the victim is gone each time before the pod is locked there.
    let lose = |world: &mut World| {
        let effects = world.machine.settle();
        for effect in effects {
            world.carry_out(effect, &mut |_, _| ());
        }
        let effects = world.machine.settle();
        for effect in effects {
            if let Effect::Preempt { node, .. } = &effect {
                let node = node.clone();
                world.carry_out(effect, &mut |_, _| ());
                world.machine.tell(Event::Node(NodeChange::Gone(node)));
            }
        }
    };
    lose(&mut world);
    assert_eq!(world.times().len(), 1);
    lose(&mut world);
    assert_eq!(world.times().len(), 2, "it is not to blame for the node");
    lose(&mut world);
    lose(&mut world);
    assert_eq!(world.times().len(), 2, "this is so once");
    world.pass(10, &mut |_, _| ());
    assert_eq!(world.times().len(), 3, "after ten seconds there are others again");
    assert_eq!(world.bound, ["p"]);
}

#[test]
fn a_pod_that_is_bound_leaves_no_pause_behind() {
    let mut world = World::new(&["n1", "n2"]);
    for name in ["a", "b"] {
        world.machine.show_pod(&urgent("greedy", name));
        world.settle(&mut |_, _| ());
        world.machine.tell(Event::Pod(PodChange::Ended(name.into())));
        world.machine.pass(20);
        world.settle(&mut |_, _| ());
        for node in ["n1", "n2"] {
            if world.machine.scheduler().snapshot().ledger().on_node(&node.into()).next().is_none() {
                world.replace(node);
            }
        }
    }
    assert_eq!(world.bound, ["a", "b"]);
    world.machine.show_pod(&urgent("greedy", "c"));
    world.settle(&mut |_, _| ());
    assert_eq!(world.bound, ["a", "b", "c"]);
    assert_eq!(world.preempted.len(), 3);
}

#[test]
fn a_pod_whose_room_goes_to_a_pod_of_higher_priority_preempts_again_without_a_pause() {
    let mut world = World::new(&["n1", "n2"]);
    world.machine.show_pod(&urgent("greedy", "p"));
    let mut taken = false;
    loop {
        let effects = world.machine.settle();
        if effects.is_empty() {
            break;
        }
        for effect in effects {
            let is_preempted = matches!(effect, Effect::Preempt { .. });
            if is_preempted && !std::mem::replace(&mut taken, true) {
                // Another scheduler binds a pod of higher priority just where the room is made.
                let Effect::Preempt { node, .. } = &effect else { continue };
                let mut other = victim("other", node);
                other["spec"]["priority"] = json!(1000);
                world.carry_out(effect, &mut |_, _| ());
                world.machine.show_pod(&other);
            } else {
                world.carry_out(effect, &mut |_, _| ());
            }
        }
    }
    assert_eq!(world.times(), [0, 0], "{:?}", world.told);
}
