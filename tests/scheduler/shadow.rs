//! Decisions of HAMi's scheduler beside Berth's own, on the cluster as it was just before each of them.

use std::borrow::Cow;

use berth::{
    cluster::Reader,
    config::Config,
    scheduling::{
        Event, NodeChange, ObjectChange, PodChange, QuotaChange, Scheduler, Uid,
        model::kind::Kind,
        shadow::{
            LeftPending, Shadow, ShadowFinding,
            comparison::{Comparison, Outcome},
        },
    },
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::machine::{START, node, pod};

const SETTLE: SignedDuration = SignedDuration::from_secs(30);

/// A shadow of HAMi's scheduler and what it is shown.
struct World {
    reader: Reader,
    scheduler: Scheduler,
    shadow: Shadow,
    now: Timestamp,
    version: u64,
}

/// A node with two cards of 16000 MiB.
fn hami_node(name: &str) -> Value {
    let card = |index: u32| {
        json!({"id": format!("{name}-{index}"), "index": index, "count": 10, "devmem": 16000, "devcore": 100,
            "type": "NVIDIA A100", "mode": "hami-core", "health": true})
    };
    let mut node =
        node(name, &json!({"hami.io/node-nvidia-register": json!([card(0), card(1)]).to_string()}));
    node["metadata"]["name"] = json!(name);
    node
}

/// A pod of HAMi's scheduler that asks for so much memory of a card.
fn waiting(name: &str, memory: u32) -> Value {
    let mut pod = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string()}));
    pod["spec"]["schedulerName"] = json!("hami-scheduler");
    pod
}

/// The same pod once HAMi's filter has written its decision.
fn intended(pod: &Value, node: &str, card: &str, memory: u32) -> Value {
    let mut pod = pod.clone();
    let devices = format!("{card},NVIDIA,{memory},0:;");
    pod["metadata"]["annotations"] = json!({
        "hami.io/vgpu-node": node, "hami.io/vgpu-time": "1800000000",
        "hami.io/vgpu-devices-to-allocate": devices, "hami.io/vgpu-devices-allocated": devices,
    });
    pod
}

/// The same pod once it is bound.
fn bound(pod: &Value, node: &str) -> Value {
    let mut pod = pod.clone();
    pod["spec"]["nodeName"] = json!(node);
    pod
}

impl World {
    fn new(nodes: &[Value], pods: &[Value]) -> Self {
        let config = Config::default();
        let settings = config.scheduler_settings();
        let mut world = Self {
            reader: config.reader().shadowing(),
            shadow: Shadow::new(settings.weights, SETTLE),
            scheduler: Scheduler::standing_by(settings),
            now: Timestamp::from_second(START).unwrap(),
            version: 1,
        };
        let nodes = nodes.iter().map(|node| world.reader.node(&parsed(node)).0).collect();
        let pods = pods.iter().map(|pod| world.reader.pod(&parsed(pod)).0).collect();
        world.happens(Event::Pod(PodChange::Listed(pods)));
        world.happens(Event::Node(NodeChange::Listed(nodes)));
        world.happens(Event::Quota(QuotaChange::Listed(Vec::new())));
        for kind in Kind::ALL {
            world.happens(Event::Object(ObjectChange::Listed(*kind, Vec::new())));
        }
        assert!(world.scheduler.view().is_synced());
        world
    }

    fn happens(&mut self, event: Event) {
        self.shadow.observe(&self.scheduler, &event, self.now);
        self.scheduler.observe(event, self.now);
        assert_eq!(self.scheduler.settle(self.now), [], "a shadow wants nothing done");
        self.shadow.settle(&self.scheduler, self.now);
    }

    fn show(&mut self, pod: &Value) {
        self.version += 1;
        let mut pod = pod.clone();
        pod["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let info = self.reader.pod(&parsed(&pod)).0;
        self.happens(Event::Pod(PodChange::Seen(Box::new(info))));
    }

    /// Shows a pod that waits, is decided and is bound.
    fn decide(&mut self, pod: &Value, node: &str, card: &str, memory: u32) {
        self.show(pod);
        let decided = intended(pod, node, card, memory);
        self.show(&decided);
        self.show(&bound(&decided, node));
    }

    fn wait(&mut self, seconds: i64) {
        for _ in 0..seconds {
            self.now += SignedDuration::from_secs(1);
            self.happens(Event::Tick);
        }
    }

    /// The one comparison since this was last asked.
    fn compared(&mut self) -> Comparison {
        match <[_; 1]>::try_from(self.shadow.take_findings()) {
            Ok([ShadowFinding::Decided(found)]) => *found,
            other => panic!("not one decision: {other:?}"),
        }
    }

    fn left_pending(&mut self) -> Vec<LeftPending> {
        let findings = self.shadow.take_findings().into_iter();
        findings
            .map(|finding| match finding {
                ShadowFinding::LeftPending(found) => *found,
                ShadowFinding::Decided(found) => panic!("a decision: {found:?}"),
            })
            .collect()
    }
}

fn parsed<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

fn of(comparison: &Comparison) -> (Outcome, Cow<'static, str>) {
    (comparison.outcome(), comparison.reason.name())
}

#[test]
fn a_decision_that_is_berths_too_is_the_same() {
    let mut world = World::new(&[hami_node("n1")], &[]);
    let first = waiting("a", 4000);
    // Where Berth would put it is asked of a decision that is not Berth's.
    world.decide(&first, "n1", "n1-0", 4000);
    let found = world.compared();
    let own = found.own.as_ref().unwrap().shares[0].card.to_string();
    let mut world = World::new(&[hami_node("n1")], &[]);
    world.decide(&first, "n1", &own, 4000);
    let found = world.compared();
    assert_eq!((of(&found), found.rank, found.feasible), ((Outcome::Same, "".into()), Some(1), 1));
    assert_eq!(world.shadow.waiting(), 0, "a bound pod is not remembered");
}

#[test]
fn another_card_or_amount_on_the_same_node_is_told() {
    let decide = |card: &str, memory| {
        let mut world = World::new(&[hami_node("n1")], &[]);
        world.decide(&waiting("a", 4000), "n1", card, memory);
        world.compared()
    };
    let cards = ["n1-0", "n1-1"].map(|card| of(&decide(card, 4000)).0);
    assert!(cards.contains(&Outcome::Same) && cards.contains(&Outcome::OtherCards), "{cards:?}");
    let amounts = ["n1-0", "n1-1"].map(|card| decide(card, 5000).reason.name());
    assert!(
        amounts.iter().any(|name| name == "amounts") && amounts.iter().any(|name| name == "cards"),
        "{amounts:?}"
    );
}

#[test]
fn a_node_that_is_short_of_memory_is_infeasible_and_the_reason_is_named() {
    let mut world = World::new(&[hami_node("n1"), hami_node("n2")], &[]);
    for (name, card) in [("a", "n1-0"), ("b", "n1-1")] {
        world.decide(&waiting(name, 10_000), "n1", card, 10_000);
        world.compared();
    }
    world.decide(&waiting("c", 10_000), "n1", "n1-0", 10_000);
    let found = world.compared();
    assert_eq!(of(&found), (Outcome::Infeasible, "CardInsufficientMemory".into()));
    assert_eq!((found.own.unwrap().node.to_string(), found.rank), ("n2".to_owned(), None));
}

#[test]
fn a_pod_that_fits_nowhere_would_have_waited() {
    let mut world = World::new(&[hami_node("n1")], &[]);
    world.decide(&waiting("a", 20_000), "n1", "n1-0", 20_000);
    let found = world.compared();
    assert_eq!(
        (of(&found), found.own.clone()),
        ((Outcome::WouldWait, "CardInsufficientMemory".into()), None)
    );
    assert!(
        found.reason.to_string().starts_with("0/1 nodes are available: 1 Insufficient GPU memory."),
        "{found:?}"
    );
}

#[test]
fn another_feasible_node_has_its_rank_by_score() {
    let mut world = World::new(&[hami_node("n1"), hami_node("n2"), hami_node("n3")], &[]);
    world.decide(&waiting("a", 4000), "n2", "n2-0", 4000);
    let found = world.compared();
    assert_eq!((of(&found), found.rank), ((Outcome::OtherNode, "equal_score".into()), Some(1)));
    // n2 is now the fullest, which Berth prefers: the empty ones are worse.
    world.decide(&waiting("b", 4000), "n3", "n3-0", 4000);
    let found = world.compared();
    assert_eq!(
        (of(&found), found.rank, found.feasible),
        ((Outcome::OtherNode, "lower_score".into()), Some(2), 3)
    );
    assert_eq!(found.own.unwrap().node.to_string(), "n2");
}

#[test]
fn a_decision_that_replaces_another_is_compared_without_that() {
    let mut world = World::new(&[hami_node("n1"), hami_node("n2")], &[]);
    world.decide(&waiting("other", 10_000), "n1", "n1-1", 10_000);
    world.compared();
    let pod = waiting("a", 10_000);
    world.show(&pod);
    world.show(&intended(&pod, "n1", "n1-0", 10_000));
    // HAMi's filter has run once more: the card is free but for the pod itself.
    let last = intended(&pod, "n1", "n1-0", 11_000);
    world.show(&last);
    world.show(&bound(&last, "n1"));
    let found = world.compared();
    assert_eq!((of(&found), found.feasible), ((Outcome::OtherCards, "amounts".into()), 2), "{found:?}");
    assert_eq!(found.chosen.shares[0].memory.get(), 11_000, "the decision that was bound");
}

#[test]
fn a_pod_whose_request_cannot_be_read_is_told() {
    let mut world = World::new(&[hami_node("n1")], &[]);
    let mut pod = waiting("a", 4000);
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"] = json!("-5");
    world.decide(&pod, "n1", "n1-0", 4000);
    assert_eq!(of(&world.compared()), (Outcome::Unreadable, "request".into()));
}

#[test]
fn pods_without_a_share_and_pods_made_with_a_node_are_no_decisions() {
    let mut world = World::new(&[hami_node("n1")], &[]);
    let mut plain = pod("plain", &json!({"cpu": "1"}));
    plain["spec"]["schedulerName"] = json!("default-scheduler");
    world.show(&plain);
    assert_eq!(world.shadow.waiting(), 0);
    world.show(&bound(&plain, "n1"));
    world.show(&bound(&intended(&waiting("static", 4000), "n1", "n1-0", 4000), "n1"));
    assert_eq!(world.shadow.take_findings(), []);
}

#[test]
fn what_was_bound_before_the_first_list_or_between_two_is_not_compared() {
    let before = bound(&intended(&waiting("a", 4000), "n1", "n1-0", 4000), "n1");
    let mut world = World::new(&[hami_node("n1")], std::slice::from_ref(&before));
    assert_eq!(world.shadow.take_findings(), []);
    world.show(&waiting("b", 4000));
    let during = bound(&intended(&waiting("b", 4000), "n1", "n1-1", 4000), "n1");
    let pods = [before, during].map(|pod| world.reader.pod(&parsed(&pod)).0);
    world.happens(Event::Pod(PodChange::Listed(pods.into_iter().collect())));
    assert_eq!(of(&world.compared()), (Outcome::NotCompared, "watch_gap".into()));
    assert_eq!(world.shadow.waiting(), 0);
}

#[test]
fn a_pod_that_berth_would_place_is_left_pending_once_it_has_waited() {
    let mut world = World::new(&[hami_node("n1")], &[]);
    world.show(&waiting("a", 4000));
    world.wait(29);
    assert_eq!(world.left_pending().len(), 0);
    world.wait(1);
    let found = world.left_pending();
    assert_eq!(found.len(), 1);
    assert_eq!((&*found[0].pod.name, found[0].own.node.to_string()), ("a", "n1".to_owned()));
    world.wait(300);
    assert_eq!(world.left_pending().len(), 0, "it is told once");
    assert_eq!(world.shadow.next_deadline(), None);
}

#[test]
fn a_pod_that_berth_would_not_place_either_is_not_left_pending() {
    let mut world = World::new(&[hami_node("n1")], &[]);
    world.decide(&waiting("a", 10_000), "n1", "n1-0", 10_000);
    world.decide(&waiting("b", 10_000), "n1", "n1-1", 10_000);
    world.shadow.take_findings();
    world.show(&waiting("c", 10_000));
    world.wait(120);
    assert_eq!(world.left_pending().len(), 0);
    // Once there is room the other scheduler is given its time again.
    world.happens(Event::Pod(PodChange::Ended(Uid::from("a"))));
    world.wait(15);
    assert_eq!(world.left_pending().len(), 0);
    world.wait(15);
    assert_eq!(world.left_pending().len(), 1);
}

#[test]
fn a_pod_that_is_deleted_or_gated_is_forgotten() {
    let mut world = World::new(&[hami_node("n1")], &[]);
    world.show(&waiting("a", 4000));
    world.show(&waiting("b", 4000));
    assert_eq!(world.shadow.waiting(), 2);
    world.happens(Event::Pod(PodChange::Gone(Uid::from("a"))));
    let mut gated = waiting("b", 4000);
    gated["spec"]["schedulingGates"] = json!([{"name": "later"}]);
    world.show(&gated);
    assert_eq!((world.shadow.waiting(), world.shadow.next_deadline()), (0, None));
}

#[test]
fn a_pod_is_left_pending_once_however_often_a_node_is_kept_for_it() {
    let mut world = World::new(&[hami_node("n1")], &[]);
    let pod = waiting("a", 4000);
    let mut nominated = pod.clone();
    nominated["status"]["nominatedNodeName"] = json!("n1");
    // kube-scheduler sets the node at one attempt and clears it at the next one.
    for _ in 0..10 {
        world.show(&pod);
        world.wait(5);
        world.show(&nominated);
        world.wait(5);
    }
    let found = world.left_pending();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].since, Timestamp::from_second(START).unwrap());
}

#[test]
fn a_pod_is_left_pending_once_whatever_changes_of_it_and_under_new_settings() {
    let mut world = World::new(&[hami_node("n1")], &[]);
    let mut pod = waiting("a", 4000);
    world.show(&pod);
    world.wait(30);
    assert_eq!(world.left_pending().len(), 1);
    pod["metadata"]["labels"] = json!({"tier": "batch"});
    world.show(&pod);
    world.wait(60);
    assert_eq!(world.left_pending().len(), 0, "another label");

    let before = std::mem::replace(
        &mut world.shadow,
        Shadow::new(Config::default().scheduling.score_weights(), SETTLE),
    );
    world.shadow =
        Shadow::new(Config::default().scheduling.score_weights(), SETTLE).after(before.into_counted());
    let pods = [world.reader.pod(&parsed(&pod)).0];
    world.happens(Event::Pod(PodChange::Listed(pods.into_iter().collect())));
    world.wait(60);
    assert_eq!(world.left_pending().len(), 0, "a shadow with other settings");

    world.happens(Event::Pod(PodChange::Gone(Uid::from("a"))));
    world.show(&pod);
    world.wait(30);
    assert_eq!(world.left_pending().len(), 1, "it was gone and forgotten");
}

#[test]
fn the_workload_of_a_pod_is_the_deployment_behind_its_replica_set_or_its_controller() {
    let made_by = |kind: &str, name: &str, labels: Value| {
        let mut world = World::new(&[hami_node("n1")], &[]);
        let mut pod = waiting("a", 20_000);
        pod["metadata"]["labels"] = labels;
        pod["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": kind, "name": name, "uid": "u", "controller": true}]);
        world.decide(&pod, "n1", "n1-0", 20_000);
        world.compared().workload.map(|workload| workload.to_string())
    };
    let hashed = || json!({"pod-template-hash": "6d4f"});
    assert_eq!(made_by("ReplicaSet", "web-6d4f", hashed()).as_deref(), Some("Deployment/web"));
    assert_eq!(made_by("ReplicaSet", "web", hashed()).as_deref(), Some("ReplicaSet/web"));
    assert_eq!(made_by("Job", "train-6d4f", hashed()).as_deref(), Some("Job/train-6d4f"));
}
