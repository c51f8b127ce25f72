//! Room that is kept for pods that wait long: a stream of small pods starves no large one, and no room is kept for longer than is set.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use berth::{
    config::Config,
    scheduling::{
        Effect, Event, Measure, NodeChange, ObjectChange, PodChange, Uid, WriteOutcome,
        model::{
            kept_room::{KeptRoom, RoomCourse, RoomStatus},
            kind::Kind,
        },
    },
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::machine::{Machine, bound, heard, key, node, pod};

const MINUTE: i64 = 60;

/// Room is kept after 10 minutes, for an hour.
const SET: &str = "scheduling: {pods: {keepRoomAfter: 10m, keepRoomFor: 1h}}";
const OFF: &str = "scheduling: {pods: {keepRoomAfter: 0s}}";

/// A cluster of nodes with 64 cpus, and the pods that its API server has.
struct World {
    config: Config,
    nodes: Vec<String>,
    machine: Machine,
    pods: BTreeMap<String, Value>,
    /// What each pod was told last.
    told: BTreeMap<String, String>,
    /// When each pod was bound, and where.
    bound: BTreeMap<String, (Timestamp, String)>,
    version: u64,
    given_up: usize,
}

impl World {
    fn new(settings: &str, nodes: usize) -> Self {
        let config = Config::parse(settings, "berth.yaml").unwrap().0;
        let nodes: Vec<String> = (1..=nodes).map(|at| format!("n{at}")).collect();
        let machine = begin(&config, &nodes, &BTreeMap::new());
        let (pods, told, bound) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { config, nodes, machine, pods, told, bound, version: 1000, given_up: 0 }
    }

    /// Two nodes full of small pods, the names of these, and the room that is kept for the pod `large`.
    fn with_room() -> (Self, VecDeque<String>, KeptRoom) {
        let mut world = Self::new(SET, 2);
        let running = world.fill();
        world.create("large", 64, 0);
        world.pass(11 * MINUTE);
        let room = world.room("large").unwrap();
        (world, running, room)
    }

    /// Another scheduler begins with what the API server has, as late as the first one was.
    fn restart(&mut self) {
        let now = self.machine.now();
        self.machine = begin(&self.config, &self.nodes, &self.pods);
        self.machine.pass(now.duration_since(self.machine.now()).as_secs());
        self.settle();
    }

    /// A pod comes that asks for so many cpus.
    fn create(&mut self, name: &str, cpu: u32, priority: i32) {
        let mut pod = pod(name, &json!({"cpu": cpu.to_string()}));
        pod["spec"]["priority"] = json!(priority);
        pod["metadata"]["creationTimestamp"] = json!(self.machine.now().to_string());
        pod["status"] = json!({"conditions": []});
        self.pods.insert(name.to_owned(), pod);
        self.show(name);
        self.settle();
    }

    fn show(&mut self, name: &str) {
        self.version += 1;
        let pod = self.pods.get_mut(name).unwrap();
        pod["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let info = self.machine.reader().pod(&serde_json::from_value(pod.clone()).unwrap()).0;
        self.machine.tell(Event::Pod(PodChange::Seen(Box::new(info))));
    }

    /// A pod has ended, or is deleted.
    fn end(&mut self, name: &str) {
        self.pods.remove(name).unwrap();
        self.machine.tell(Event::Pod(PodChange::Ended(name.into())));
        self.settle();
    }

    /// Carries out all that is to be done now.
    fn settle(&mut self) {
        loop {
            let (effects, bound_now) = self.machine.run();
            if effects.is_empty() && bound_now.is_empty() {
                break;
            }
            for (name, node) in bound_now {
                self.bound.insert(name.clone(), (self.machine.now(), node.clone()));
                let pod = self.pods.get_mut(&name).unwrap();
                *pod = bound(pod.clone(), &node, json!({}));
                self.show(&name);
            }
            for effect in effects {
                self.carry_out(effect);
            }
        }
        let measures = self.machine.scheduler_mut().take_measured().measures;
        self.given_up += measures.iter().filter(|one| **one == Measure::RoomGivenUp).count();
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Nominate { pod, node, room } => {
                self.state(&pod.name, node.as_deref(), room);
                self.show(&pod.name);
                let outcome = WriteOutcome::Written { resource_version: self.version.to_string() };
                self.machine.tell(Event::Nominated { pod, node, room, outcome });
            }
            Effect::TellUnschedulable { pod, reason, .. } => {
                self.told.insert(pod.name.to_string(), reason.message().full);
                self.machine.tell(heard(pod, &reason));
            }
            Effect::Preempt { pod, .. } => panic!("{pod} is preempted"),
            _ => {}
        }
    }

    /// The pod's status states this from now on, as a patch makes it.
    fn state(&mut self, name: &str, node: Option<&str>, room: Option<RoomStatus>) {
        let Some(pod) = self.pods.get_mut(name) else { return };
        pod["status"]["nominatedNodeName"] = json!(node);
        if let Some(room) = room {
            let reason = match room.course {
                RoomCourse::Kept => "WaitsLong",
                RoomCourse::GivenUp => "TimeOver",
                RoomCourse::Lost => "NodeLost",
            };
            pod["status"]["conditions"] = json!([{"type": "berth.dev/RoomKept", "status": "True",
                "reason": reason, "lastTransitionTime": room.since.to_string()}]);
        }
    }

    /// Lets so many seconds pass, and stops at every deadline on the way.
    fn pass(&mut self, seconds: i64) {
        let end = self.machine.now() + SignedDuration::from_secs(seconds);
        while self.machine.now() < end {
            let next = self.machine.next_deadline().filter(|at| *at < end).unwrap_or(end);
            let step = next.duration_since(self.machine.now()).as_secs().max(1);
            self.machine.pass(step);
            self.settle();
        }
    }

    fn room(&self, name: &str) -> Option<KeptRoom> {
        self.machine.scheduler().view().kept_room(&Uid::from(name))
    }

    /// The nodes on which room is kept.
    fn rooms(&self) -> usize {
        self.machine.scheduler().view().standing(self.machine.now()).kept_rooms
    }

    fn is_bound(&self, name: &str) -> bool {
        self.bound.contains_key(name)
    }

    /// Ends and replaces a small pod of 16 cpus each minute, for so many minutes or until the pod is bound: minutes passed.
    fn stream(&mut self, minutes: usize, running: &mut VecDeque<String>, until: &str) -> usize {
        for minute in 0..minutes {
            let next = format!("small-{}", self.version);
            self.create(&next, 16, 0);
            running.push_back(next);
            self.pass(MINUTE);
            let at = running.iter().position(|name| self.is_bound(name)).unwrap();
            let oldest = running.remove(at).unwrap();
            self.end(&oldest);
            assert!(self.rooms() <= 1, "of two nodes room is kept on one");
            if self.is_bound(until) {
                return minute;
            }
        }
        minutes
    }

    /// Both nodes are full of pods of 16 cpus, and one has just ended on each and was replaced.
    fn fill(&mut self) -> VecDeque<String> {
        let mut running = VecDeque::new();
        for at in 0..4 * self.nodes.len() + self.nodes.len() {
            let name = format!("small-{at}");
            self.create(&name, 16, 0);
            running.push_back(name);
        }
        let mut ended = BTreeSet::new();
        for name in running.clone() {
            if let Some((_, node)) = self.bound.get(&name).cloned()
                && ended.insert(node)
            {
                self.end(&name);
                running.retain(|other| *other != name);
            }
        }
        running
    }
}

fn begin(config: &Config, nodes: &[String], pods: &BTreeMap<String, Value>) -> Machine {
    let nodes: Vec<_> = nodes.iter().map(|name| node(name, &json!({}))).collect();
    let pods: Vec<_> = pods.values().cloned().collect();
    let mut machine = Machine::new(config, &nodes, &pods);
    machine.tell(Event::Object(ObjectChange::Listed(Kind::PodDisruptionBudget, Vec::new())));
    machine
}

#[test]
fn a_stream_of_small_pods_starves_a_large_one_unless_room_is_kept_for_it() {
    let waited = |settings: &str| {
        let mut world = World::new(settings, 2);
        let mut running = world.fill();
        world.create("large", 64, 0);
        world.stream(120, &mut running, "large")
    };
    assert_eq!(waited(OFF), 120);
    let waited = waited(SET);
    // After ten minutes a node is kept, and within eight every pod has ended that was there.
    assert!((10..20).contains(&waited), "{waited} minutes");
}

#[test]
fn it_is_said_where_room_is_kept_since_when_and_until_when() {
    let mut world = World::new(SET, 2);
    world.fill();
    world.create("large", 64, 0);
    world.pass(9 * MINUTE);
    assert_eq!(world.room("large"), None);
    world.pass(2 * MINUTE);
    let room = world.room("large").unwrap();
    assert_eq!(room.until.duration_since(room.since), SignedDuration::from_hours(1));
    assert!(world.told["large"].contains(&format!("{room}.")), "{}", world.told["large"]);
    assert_eq!(world.pods["large"]["status"]["nominatedNodeName"], *room.node);
}

#[test]
fn a_room_is_given_up_in_time_and_the_next_pod_has_its_turn() {
    let mut world = World::new(SET, 2);
    world.fill();
    world.create("first", 64, 0);
    world.pass(1);
    world.create("second", 64, 0);
    world.pass(11 * MINUTE);
    let kept = world.room("first").unwrap();
    assert_eq!(world.room("second"), None, "room is kept on one of two nodes at a time");
    let late = kept.until.duration_since(world.machine.now()).as_secs();
    world.pass(late - 1);
    assert_eq!(world.room("first"), Some(kept));
    // Pods have ended since on the other node, or it would not be kept.
    let other = world.pods.keys().find(|name| world.bound.get(*name).is_some_and(|(_, node)| *node == "n2"));
    let other = other.cloned().unwrap();
    world.end(&other);
    world.create("again", 16, 0);
    world.pass(11);
    assert_eq!((world.room("first"), world.given_up), (None, 1));
    assert!(world.room("second").is_some(), "{:?}", world.told);
    assert!(!world.told["first"].contains("room is kept"), "{}", world.told["first"]);
    world.pass(9 * MINUTE);
    world.end("second");
    world.pass(MINUTE / 2);
    assert_eq!(world.room("first"), None, "it waits as long as before the first time");
}

#[test]
fn where_nothing_has_ended_for_long_no_room_is_kept() {
    let mut world = World::new(SET, 2);
    for at in 0..9 {
        world.create(&format!("small-{at}"), 16, 0);
    }
    world.create("large", 64, 0);
    world.pass(3 * 60 * MINUTE);
    assert_eq!((world.room("large"), world.given_up), (None, 0));
}

#[test]
fn a_pod_of_higher_priority_goes_first() {
    let never = |world: &mut World, name: &str, priority: i32| {
        world.create(name, 64, priority);
        world.pods.get_mut(name).unwrap()["spec"]["preemptionPolicy"] = json!("Never");
        world.show(name);
    };
    let mut world = World::new(&format!("{SET}\n"), 2);
    world.config =
        Config::parse("scheduling: {preemption: {enabled: false}, pods: {keepRoomAfter: 10m}}", "f")
            .unwrap()
            .0;
    world.restart();
    world.fill();
    never(&mut world, "low", 0);
    never(&mut world, "high", 5);
    world.pass(11 * MINUTE);
    assert!(world.room("high").is_some() && world.room("low").is_none());
    never(&mut world, "higher", 9);
    world.pass(11 * MINUTE);
    assert!(
        world.room("higher").is_some() && world.room("high").is_none(),
        "it takes the turn of the others"
    );
}

#[test]
fn a_restart_keeps_the_same_room_since_the_same_time() {
    let (mut world, mut running, room) = World::with_room();
    world.restart();
    assert_eq!(world.room("large"), Some(room.clone()));
    world.create("small", 16, 0);
    let on_node =
        running.iter().find(|name| world.bound.get(*name).is_some_and(|(_, node)| *node == *room.node));
    let on_node = on_node.cloned().unwrap();
    running.retain(|name| *name != on_node);
    world.pods.remove(&on_node);
    world.restart();
    assert!(!world.is_bound("small"), "the room is kept from the first decision");
    for name in running {
        if world.bound.get(&name).is_some_and(|(_, node)| *node == *room.node) {
            world.end(&name);
        }
    }
    assert!(world.is_bound("large"));
    assert_eq!((world.bound["large"].1.as_str(), world.rooms()), (&*room.node, 0));
}

#[test]
fn a_node_that_goes_away_or_is_cordoned_is_not_kept_and_another_is() {
    for goes in [true, false] {
        let (mut world, _, room) = World::with_room();
        if goes {
            world.nodes.retain(|name| **name != *room.node);
            world.machine.tell(Event::Node(NodeChange::Gone(room.node.clone())));
        } else {
            let mut cordoned = node(&room.node, &json!({}));
            cordoned["spec"]["unschedulable"] = json!(true);
            world.machine.show_node(&cordoned);
        }
        world.settle();
        assert_eq!(world.room("large"), None);
        world.pass(11);
        let other = world.room("large").unwrap();
        assert_ne!(other.node, room.node);
        assert_eq!(world.pods["large"]["status"]["nominatedNodeName"], *other.node);
    }
}

#[test]
fn what_is_kept_for_a_pod_that_is_deleted_is_free_at_once() {
    let (mut world, running, room) = World::with_room();
    let on_node =
        running.iter().find(|name| world.bound.get(*name).is_some_and(|(_, node)| *node == *room.node));
    world.create("small", 16, 0);
    world.end(&on_node.cloned().unwrap());
    assert!(!world.is_bound("small"));
    world.end("large");
    world.pass(10);
    assert!(world.is_bound("small"));
    assert_eq!(world.rooms(), 0);
}

#[test]
fn a_pod_that_fits_on_no_empty_node_gets_no_room_and_others_do() {
    let mut world = World::new(SET, 2);
    world.fill();
    world.create("too-large", 65, 0);
    world.create("large", 64, 0);
    world.pass(11 * MINUTE);
    assert!(world.room("too-large").is_none() && world.room("large").is_some());
}

#[test]
fn an_answer_that_does_not_come_keeps_no_room_for_longer() {
    let (mut world, _, room) = World::with_room();
    // The status is as it was, and what was written is lost.
    let until = room.until.duration_since(world.machine.now()).as_secs();
    world.machine.pass(until);
    let (effects, _) = world.machine.run();
    let nominated = effects.iter().any(|effect| matches!(effect, Effect::Nominate { node: None, .. }));
    assert!(nominated, "{effects:?}");
    let outcome = WriteOutcome::Refused("no".to_owned());
    let status = RoomStatus { course: RoomCourse::GivenUp, since: world.machine.now() };
    world.machine.tell(Event::Nominated { pod: key("large"), node: None, room: Some(status), outcome });
    world.settle();
    world.show("large");
    world.pass(9 * MINUTE);
    assert_eq!(world.room("large"), None);
    assert_eq!(world.pods["large"]["status"]["nominatedNodeName"], Value::Null);
}
