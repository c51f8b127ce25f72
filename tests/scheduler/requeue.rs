//! Which changes have a waiting pod decided again, plugin by plugin: kube-scheduler's queueing hints. Storage stands beside
//! (`requeue_storage`), and so do quotas and nodes that are kept for other pods (`kept`).

#[path = "requeue/kept.rs"]
mod kept;

use berth::{
    config::Config,
    scheduling::{Effect, Event, NodeChange, ObjectChange, PodChange, world::object::Object},
};
use serde_json::{Value, json};

use super::{
    machine::{Machine, parsed, pod},
    neighbours::{away, hami_node, near, other, share, spread},
};

/// What a change comes to for the pod that waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Woken {
    /// It goes to this node.
    Goes(&'static str),
    /// It is decided again and waits on.
    InVain,
    /// It is not decided again.
    No,
}

/// A change, what it is called, and what comes of it.
pub(super) type Row = (&'static str, fn(&mut Machine), Woken);

/// Shows the pod, which waits for this counted reason, and then one of the changes.
#[track_caller]
pub(super) fn check(begin: impl Fn() -> Machine, waiting: &Value, counted: &str, rows: &[Row]) {
    for (change, happens, expected) in rows {
        let mut machine = begin();
        machine.show_pod(waiting);
        let (effects, placed) = machine.run();
        assert_eq!(placed, [], "{counted}: it waits");
        let told = effects.iter().find_map(|effect| match effect {
            Effect::TellUnschedulable { reason, .. } => Some(reason.message().full),
            _ => None,
        });
        assert!(told.as_ref().is_some_and(|told| told.contains(counted)), "{told:?}");
        machine.take_decisions();
        happens(&mut machine);
        let placed = machine.run().1;
        let decided = machine.take_decisions() != (0, 0);
        let (node, again) = match expected {
            Woken::Goes(node) => (Some(*node), true),
            Woken::InVain => (None, true),
            Woken::No => (None, false),
        };
        let found = (placed.first().map(|(_, node)| node.as_str()), decided);
        assert_eq!(found, (node, again), "{counted}, then {change}");
    }
}

/// The node `n1`, changed like this.
fn first(change: impl FnOnce(&mut Value)) -> Value {
    let mut node = hami_node("n1", "a");
    change(&mut node);
    node
}

fn one(node: &Value, pods: &[Value]) -> Machine {
    Machine::new(&Config::default(), std::slice::from_ref(node), pods)
}

/// The nodes `n1` in zone a and `n2` in zone b, and these pods on them.
fn two(pods: &[Value]) -> Machine {
    Machine::new(&Config::default(), &[hami_node("n1", "a"), hami_node("n2", "b")], pods)
}

/// A pod of another scheduler that requests so many cpus of a node.
fn busy(name: &str, node: &str, cpu: u32) -> Value {
    let mut pod = other(name, "busy", node, &json!({}));
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu.to_string()}});
    pod
}

/// A share pod that asks for so many cpus.
fn asks(cpu: u32) -> Value {
    let mut pod = share("p", "web", &json!({}));
    pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!(cpu.to_string());
    pod
}

fn labelled(key: &str) -> Value {
    first(|node| node["metadata"]["labels"][key] = json!("yes"))
}

#[test]
fn a_pod_with_a_node_selector_is_woken_by_its_label() {
    let waiting = share("p", "web", &json!({"nodeSelector": {"gpu": "yes"}}));
    let rows: &[Row] = &[
        ("its label is added", |machine| machine.show_node(&labelled("gpu")), Woken::Goes("n1")),
        ("another label is added", |machine| machine.show_node(&labelled("disk")), Woken::No),
        (
            "another node joins without the label",
            |machine| machine.show_node(&hami_node("n2", "b")),
            Woken::No,
        ),
    ];
    check(|| one(&hami_node("n1", "a"), &[]), &waiting, "node affinity/selector", rows);
}

fn tainted(keys: &[&str]) -> Value {
    let taints: Vec<_> = keys.iter().map(|key| json!({"key": key, "effect": "NoSchedule"})).collect();
    first(|node| node["spec"]["taints"] = json!(taints))
}

#[test]
fn a_pod_that_no_taint_lets_in_is_woken_once_the_last_is_gone() {
    let rows: &[Row] = &[
        ("both taints are removed", |machine| machine.show_node(&tainted(&[])), Woken::Goes("n1")),
        ("one taint is removed", |machine| machine.show_node(&tainted(&["two"])), Woken::No),
        ("a taint is added", |machine| machine.show_node(&tainted(&["one", "two", "three"])), Woken::No),
    ];
    check(|| one(&tainted(&["one", "two"]), &[]), &share("p", "web", &json!({})), "untolerated taint", rows);
    let cordoned = first(|node| node["spec"]["unschedulable"] = json!(true));
    let rows: &[Row] =
        &[("the cordon is lifted", |machine| machine.show_node(&hami_node("n1", "a")), Woken::Goes("n1"))];
    check(|| one(&cordoned, &[]), &share("p", "web", &json!({})), "unschedulable", rows);
}

#[test]
fn a_pod_is_woken_by_the_port_that_it_needs() {
    let with_port = |mut pod: Value, port: u32| {
        pod["spec"]["containers"][0]["ports"] = json!([{"containerPort": port, "hostPort": port}]);
        pod
    };
    let holders = [
        with_port(other("holder", "x", "n1", &json!({})), 80),
        with_port(other("beside", "x", "n1", &json!({})), 81),
    ];
    let rows: &[Row] = &[
        (
            "the port is freed",
            |machine| machine.tell(Event::Pod(PodChange::Ended("holder".into()))),
            Woken::Goes("n1"),
        ),
        (
            "another port is freed",
            |machine| machine.tell(Event::Pod(PodChange::Ended("beside".into()))),
            Woken::No,
        ),
    ];
    let waiting = with_port(share("p", "web", &json!({})), 80);
    check(|| one(&hami_node("n1", "a"), &holders), &waiting, "free ports", rows);
}

fn with_cpu(cpu: u32) -> Value {
    first(|node| node["status"]["allocatable"]["cpu"] = json!(cpu.to_string()))
}

#[test]
fn a_pod_is_woken_by_room_for_it_and_by_no_less() {
    let rows: &[Row] = &[
        (
            "a pod that leaves enough ends",
            |machine| machine.tell(Event::Pod(PodChange::Ended("large".into()))),
            Woken::Goes("n1"),
        ),
        (
            "a pod that leaves too little ends",
            |machine| machine.tell(Event::Pod(PodChange::Ended("small".into()))),
            Woken::No,
        ),
        ("the node has more", |machine| machine.show_node(&with_cpu(74)), Woken::Goes("n1")),
        ("the node has too little more", |machine| machine.show_node(&with_cpu(73)), Woken::No),
    ];
    let pods = [busy("large", "n1", 50), busy("small", "n1", 4)];
    check(|| one(&hami_node("n1", "a"), &pods), &asks(20), "Insufficient cpu", rows);
    let small = |memory: u32| {
        let card = json!([{"id": "GPU-n1", "index": 0, "count": 10, "devmem": memory, "devcore": 100,
            "type": "NVIDIA A100", "mode": "hami-core", "health": true}]);
        first(|node| {
            node["metadata"]["annotations"]["hami.io/node-nvidia-register"] = json!(card.to_string());
        })
    };
    let rows: &[Row] =
        &[("the card is larger", |machine| machine.show_node(&hami_node("n1", "a")), Woken::Goes("n1"))];
    check(|| one(&small(500), &[]), &share("p", "web", &json!({})), "Insufficient GPU memory", rows);
}

fn end(pod: &str) -> Event {
    Event::Pod(PodChange::Ended(pod.into()))
}

#[test]
fn a_pod_that_keeps_away_from_others_is_woken_by_their_end() {
    let pods = [
        other("web-1", "web", "n1", &json!({})),
        other("web-2", "web", "n2", &json!({})),
        other("noise", "noise", "n2", &json!({})),
    ];
    let rows: &[Row] = &[
        ("one of them ends elsewhere", |machine| machine.tell(end("web-2")), Woken::Goes("n2")),
        ("another pod ends", |machine| machine.tell(end("noise")), Woken::No),
        ("one more comes", |machine| machine.show_pod(&other("web-3", "web", "n1", &json!({}))), Woken::No),
        (
            "one of them becomes another",
            |machine| machine.show_pod(&other("web-2", "db", "n2", &json!({}))),
            Woken::Goes("n2"),
        ),
        ("a node joins", |machine| machine.show_node(&hami_node("n3", "c")), Woken::Goes("n3")),
        ("a namespace changes", |machine| machine.tell(namespace("default")), Woken::InVain),
        ("a class of volumes comes", |machine| machine.tell(storage_class()), Woken::No),
    ];
    check(|| two(&pods), &share("p", "web", &away("web")), "anti-affinity rules", rows);
}

fn namespace(name: &str) -> Event {
    Event::Object(ObjectChange::Seen(Object::Namespace(
        name.into(),
        std::sync::Arc::new([("a".to_owned(), "b".to_owned())].into()),
    )))
}

fn storage_class() -> Event {
    let class = json!({"metadata": {"name": "local"}, "provisioner": "csi.example"});
    Event::Object(ObjectChange::Seen(Object::StorageClass(std::sync::Arc::new(parsed(&class)))))
}

#[test]
fn a_pod_that_must_be_near_others_is_woken_by_their_coming() {
    let rows: &[Row] = &[
        (
            "one comes",
            |machine| machine.show_pod(&other("cache", "cache", "n2", &json!({}))),
            Woken::Goes("n2"),
        ),
        (
            "another pod comes",
            |machine| machine.show_pod(&other("noise", "noise", "n2", &json!({}))),
            Woken::No,
        ),
        ("a pod of no interest ends", |machine| machine.tell(end("beside")), Woken::No),
    ];
    let pods = [other("beside", "beside", "n1", &json!({}))];
    check(|| two(&pods), &share("p", "web", &near("cache")), "pod affinity rules", rows);
}

/// Zone b has two pods of the spread, and the one node of zone a is cordoned.
fn skewed() -> Machine {
    let cordoned = first(|node| node["spec"]["unschedulable"] = json!(true));
    let pods = [
        other("web-1", "web", "n2", &json!({})),
        other("web-2", "web", "n2", &json!({})),
        other("noise", "noise", "n2", &json!({})),
    ];
    Machine::new(&Config::default(), &[cordoned, hami_node("n2", "b")], &pods)
}

#[test]
fn a_pod_that_is_spread_is_woken_by_what_moves_the_skew() {
    let rows: &[Row] = &[
        ("a pod of the full zone ends", |machine| machine.tell(end("web-2")), Woken::InVain),
        (
            "a pod comes to the empty zone",
            |machine| machine.show_pod(&other("web-3", "web", "n1", &json!({}))),
            Woken::InVain,
        ),
        (
            "two pods come to the empty zone",
            |machine| {
                machine.show_pod(&other("web-3", "web", "n1", &json!({})));
                machine.show_pod(&other("web-4", "web", "n1", &json!({})));
            },
            Woken::Goes("n2"),
        ),
        ("another pod ends", |machine| machine.tell(end("noise")), Woken::No),
        (
            "a pod of the full zone begins to end",
            |machine| {
                let mut ending = other("web-2", "web", "n2", &json!({}));
                ending["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:00:00Z");
                machine.show_pod(&ending);
            },
            Woken::InVain,
        ),
        (
            "the empty zone is gone",
            |machine| machine.tell(Event::Node(NodeChange::Gone("n1".into()))),
            Woken::Goes("n2"),
        ),
        (
            "the empty zone's node moves to the full one",
            |machine| machine.show_node(&first(|node| node["metadata"]["labels"]["zone"] = json!("b"))),
            Woken::Goes("n1"),
        ),
        ("a namespace changes", |machine| machine.tell(namespace("default")), Woken::No),
    ];
    check(skewed, &share("p", "web", &spread("web")), "topology spread constraints", rows);
}

#[test]
fn a_node_that_takes_the_place_of_one_that_is_gone_wakes_the_pods_that_it_would_have() {
    let disk = json!({"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": "disk"}}]});
    let mut machine = two(&[other("holder", "x", "n1", &disk)]);
    machine.show_pod(&share("q", "web", &disk));
    assert_eq!(machine.run().1, [("q".to_owned(), "n2".to_owned())]);
    machine.tell(Event::Node(NodeChange::Gone("n2".into())));
    machine.show_pod(&share("p", "web", &disk));
    assert_eq!(machine.run().1, []);
    machine.show_node(&hami_node("n3", "a"));
    assert_eq!(machine.run().1, [("p".to_owned(), "n3".to_owned())]);
}

#[test]
fn a_pod_that_leaves_a_line_for_another_node_wakes_those_that_its_node_would_have() {
    let mut locked = first(|node| {
        let card = json!([{"id": "GPU-n1", "index": 0, "count": 10, "devmem": 1500, "devcore": 100,
            "type": "NVIDIA A100", "mode": "hami-core", "health": true}]);
        node["metadata"]["annotations"]["hami.io/node-nvidia-register"] = json!(card.to_string());
    });
    let unlocked = locked.clone();
    locked["metadata"]["annotations"]["hami.io/mutex.lock"] = json!("2027-01-15T08:00:00Z,default,theirs");
    let theirs = {
        let mut pod = pod("theirs", &json!({}));
        pod["spec"]["schedulerName"] = json!("another");
        pod
    };
    let mut machine = one(&locked, &[theirs]);
    machine.show_pod(&share("moves", "x", &json!({})));
    machine.run();
    for name in ["web-1", "web-2"] {
        machine.show_pod(&other(name, "web", "n2", &json!({})));
    }
    machine.show_node(&hami_node("n2", "b"));
    machine.show_pod(&share("p", "web", &spread("web")));
    machine.run();
    machine.pass(10);
    assert_eq!(machine.run().1, [("moves".to_owned(), "n2".to_owned())]);
    machine.show_node(&unlocked);
    assert_eq!(machine.run().1, [("p".to_owned(), "n1".to_owned())]);
}
