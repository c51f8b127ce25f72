//! Pods that wait for what is kept from them: a node that is kept for another pod, and a quota.

use berth::{
    config::Config,
    scheduling::{Event, PodChange, QuotaChange},
};
use serde_json::{Value, json};

use super::{
    super::{
        machine::{Machine, bound, parsed, pod},
        neighbours::{hami_node, other, share, spread},
    },
    Row, Woken, asks, busy, check, end, first, one, two, with_cpu,
};

/// A pod of another scheduler that waits for so many cpus of a node.
fn nominated(node: &str, priority: i32, cpu: u32) -> Value {
    let mut pod = pod("first", &json!({"cpu": cpu.to_string()}));
    pod["spec"]["schedulerName"] = json!("default-scheduler");
    pod["spec"]["priority"] = json!(priority);
    pod["status"] = json!({"nominatedNodeName": node});
    pod
}

#[test]
fn a_pod_is_woken_when_its_node_is_no_longer_kept_for_another() {
    let rows: &[Row] = &[
        (
            "the other pod is gone",
            |machine| machine.tell(Event::Pod(PodChange::Gone("first".into()))),
            Woken::Goes("n1"),
        ),
        ("its node is another", |machine| machine.show_pod(&nominated("n9", 5, 60)), Woken::Goes("n1")),
        ("its priority is lower", |machine| machine.show_pod(&nominated("n1", -1, 60)), Woken::Goes("n1")),
        ("it asks for less", |machine| machine.show_pod(&nominated("n1", 5, 20)), Woken::Goes("n1")),
        ("its priority is higher", |machine| machine.show_pod(&nominated("n1", 9, 60)), Woken::InVain),
        ("a pod ends elsewhere", |machine| machine.tell(end("unknown")), Woken::No),
        ("there is room for both", |machine| machine.show_node(&with_cpu(90)), Woken::Goes("n1")),
    ];
    let begin = || {
        let mut machine = one(&hami_node("n1", "a"), &[]);
        machine.show_pod(&nominated("n1", 5, 60));
        machine
    };
    check(begin, &asks(20), "Insufficient cpu", rows);
}

fn quota(machine: &Machine, namespace: &str, memory: u32) -> Event {
    let hard = json!({"limits.nvidia.com/gpumem": memory.to_string()});
    let quota =
        json!({"metadata": {"name": "q", "namespace": namespace, "uid": "q"}, "spec": {"hard": hard}});
    Event::Quota(QuotaChange::Seen(machine.reader().quota(&parsed(&quota)).0))
}

/// A pod of a namespace that holds so much of the card of `n1`.
fn holding(name: &str, namespace: &str, memory: u32) -> Value {
    let annotations = json!({"hami.io/vgpu-node": "n1", "hami.io/bind-phase": "success",
        "hami.io/vgpu-devices-allocated": format!("GPU-n1,NVIDIA,{memory},0:;")});
    let mut pod = bound(share(name, "x", &json!({})), "n1", annotations);
    pod["metadata"]["namespace"] = json!(namespace);
    pod
}

#[test]
fn a_pod_beyond_its_quota_is_woken_by_the_quota_and_by_what_its_namespace_gives_back() {
    let rows: &[Row] = &[
        ("the quota grows", |machine| machine.tell(quota(machine, "default", 4100)), Woken::Goes("n1")),
        (
            "the quota grows too little",
            |machine| machine.tell(quota(machine, "default", 4000)),
            Woken::InVain,
        ),
        ("the quota bounds as before", |machine| machine.tell(quota(machine, "default", 3900)), Woken::No),
        (
            "the quota is gone",
            |machine| {
                let gone = match quota(machine, "default", 1) {
                    Event::Quota(QuotaChange::Seen(quota)) => Event::Quota(QuotaChange::Gone(quota.key)),
                    other => other,
                };
                machine.tell(gone);
            },
            Woken::Goes("n1"),
        ),
        ("a pod of the namespace ends", |machine| machine.tell(end("large")), Woken::Goes("n1")),
        ("a pod that holds too little ends", |machine| machine.tell(end("small")), Woken::No),
        ("a pod of another namespace ends", |machine| machine.tell(end("theirs")), Woken::No),
        ("another namespace's quota grows", |machine| machine.tell(quota(machine, "other", 9000)), Woken::No),
    ];
    let pods = [
        holding("large", "default", 3000),
        holding("small", "default", 50),
        holding("theirs", "other", 3000),
    ];
    let begin = || {
        let mut machine = one(&hami_node("n1", "a"), &pods);
        let quota = quota(&machine, "default", 3900);
        machine.tell(quota);
        machine
    };
    check(begin, &share("p", "web", &json!({})), "exceeded quota", rows);
}

#[test]
fn a_pod_that_one_node_is_kept_from_and_another_skews_is_woken_by_room_beside_the_kept() {
    let pods = [
        busy("plain", "n1", 10),
        other("web-1", "web", "n2", &json!({})),
        other("web-2", "web", "n2", &json!({})),
    ];
    let begin = || {
        let mut machine = two(&pods);
        machine.show_pod(&nominated("n1", 5, 50));
        machine
    };
    let mut waiting = share("p", "web", &spread("web"));
    waiting["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!("10");
    let rows: &[Row] =
        &[("a pod ends on the node that is kept", |machine| machine.tell(end("plain")), Woken::Goes("n1"))];
    check(begin, &waiting, "1 Insufficient cpu, 1 node(s) didn't match pod topology", rows);
}

#[test]
fn a_pod_that_one_node_is_too_much_for_its_quota_on_is_woken_by_other_cards_there() {
    let cards = |sizes: &[u32]| {
        let card = |(at, size): (usize, &u32)| {
            json!({"id": format!("GPU-{at}"), "index": at, "count": 10, "devmem": size, "devcore": 100,
                "type": "NVIDIA A100", "mode": "hami-core", "health": true})
        };
        let cards: Vec<_> = sizes.iter().enumerate().map(card).collect();
        first(|node| {
            node["metadata"]["annotations"]["hami.io/node-nvidia-register"] = json!(json!(cards).to_string());
        })
    };
    let pods = [other("web-1", "web", "n2", &json!({})), other("web-2", "web", "n2", &json!({}))];
    let mut machine = Machine::new(&Config::default(), &[cards(&[40_000]), hami_node("n2", "b")], &pods);
    machine.tell(quota(&machine, "default", 10_000));
    let mut half = share("p", "web", &spread("web"));
    half["spec"]["containers"][0]["resources"]["limits"] =
        json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "50"});
    machine.show_pod(&half);
    assert_eq!(machine.run().1, []);
    machine.show_node(&cards(&[40_000, 16_000]));
    assert_eq!(machine.run().1, [("p".to_owned(), "n1".to_owned())]);
}
