//! Pods whose node kube-scheduler chooses: Berth chooses the cards there and binds.

use berth::{
    config::Config,
    scheduling::{
        Effect, Event, Finding, NodeName, Uid,
        plan::extension::{NodeStanding, standings},
        scheduler::Directed,
    },
};
use serde_json::{Value, json};

use super::machine::{Machine, bound, node, parsed, pod};

/// A node with one card of 16000 MiB of this model.
fn hami_node(name: &str, model: &str) -> Value {
    let card = json!([{"id": format!("{name}-0"), "index": 0, "count": 20, "devmem": 16000, "devcore": 100,
        "type": model, "mode": "hami-core", "health": true}]);
    node(name, &json!({"hami.io/node-nvidia-register": card.to_string()}))
}

fn share(name: &str, memory: u32) -> Value {
    pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string()}))
}

/// A pod that runs on the node with so much memory of its card.
fn running(name: &str, node: &str, memory: u32) -> Value {
    let devices = format!("{node}-0,NVIDIA,{memory},0:;");
    let annotations = json!({"hami.io/vgpu-node": node, "hami.io/vgpu-time": "1800000000",
        "hami.io/vgpu-devices-to-allocate": "", "hami.io/vgpu-devices-allocated": devices,
        "hami.io/bind-phase": "success"});
    bound(share(name, memory), node, annotations)
}

fn machine(nodes: &[&str]) -> Machine {
    let nodes: Vec<_> = nodes.iter().map(|name| hami_node(name, "NVIDIA A100")).collect();
    Machine::directed(&Config::default(), &nodes)
}

fn choose(machine: &mut Machine, pod: &str, node: &str) {
    machine.tell(Event::Directed { pod: pod.into(), node: node.into() });
}

/// Why the node that was chosen for the pod last is not taken.
fn untaken(machine: &Machine, pod: &str) -> String {
    match direction(machine, pod) {
        Directed::Waiting(Some(untaken)) => untaken.to_string(),
        other => panic!("{other:?}"),
    }
}

fn direction(machine: &Machine, pod: &str) -> Directed {
    machine.scheduler().view().direction(&Uid::from(pod))
}

#[test]
fn a_pod_waits_for_its_node_to_be_chosen_and_goes_there() {
    let mut machine = machine(&["n1", "n2"]);
    machine.show_pod(&running("other", "n1", 8000));
    machine.show_pod(&share("p", 1000));
    assert_eq!(machine.run().1, [], "Berth chooses no node");
    assert_eq!(direction(&machine, "p"), Directed::Waiting(None));
    // Berth would have packed it on n1.
    choose(&mut machine, "p", "n2");
    assert_eq!(machine.run().1, [("p".to_owned(), "n2".to_owned())]);
    assert_eq!(direction(&machine, "p"), Directed::Bound("n2".into()));
}

#[test]
fn a_node_without_room_is_refused_with_the_reason_and_another_can_be_chosen() {
    let mut machine = machine(&["n1", "n2"]);
    machine.show_pod(&running("other", "n1", 8000));
    machine.show_pod(&share("p", 10_000));
    choose(&mut machine, "p", "n1");
    assert_eq!(machine.run().1, []);
    assert_eq!(untaken(&machine, "p"), "Insufficient GPU memory");
    choose(&mut machine, "p", "nowhere");
    assert_eq!(untaken(&machine, "p"), "node nowhere is not known");
    choose(&mut machine, "p", "n2");
    assert_eq!(machine.run().1, [("p".to_owned(), "n2".to_owned())]);
    assert_eq!(direction(&machine, "unheard-of"), Directed::Unseen);
}

#[test]
fn two_pods_that_were_given_one_card_do_not_both_get_it() {
    let mut machine = machine(&["n1"]);
    for name in ["a", "b"] {
        machine.show_pod(&share(name, 10_000));
        choose(&mut machine, name, "n1");
    }
    assert_eq!(machine.run().1, [("a".to_owned(), "n1".to_owned())]);
    assert_eq!(untaken(&machine, "b"), "Insufficient GPU memory");
}

#[test]
fn a_pod_in_line_leaves_it_when_its_choice_is_taken_back_and_one_that_is_being_bound_stays() {
    let mut machine = machine(&["n1", "n2"]);
    for name in ["a", "b"] {
        machine.show_pod(&share(name, 1000));
        choose(&mut machine, name, "n1");
    }
    let effects = machine.settle();
    assert!(matches!(&effects[..], [Effect::TakeLock { pod, .. }] if &*pod.name == "a"), "{effects:?}");
    for name in ["a", "b"] {
        machine.tell(Event::Undirected { pod: name.into() });
    }
    assert_eq!(direction(&machine, "a"), Directed::InLine("n1".into()), "its lock was asked for");
    assert_eq!(direction(&machine, "b"), Directed::Waiting(None));
    choose(&mut machine, "a", "n2");
    assert_eq!(direction(&machine, "a"), Directed::InLine("n1".into()));
    choose(&mut machine, "b", "n1");
    choose(&mut machine, "b", "n2");
    assert_eq!(direction(&machine, "b"), Directed::InLine("n2".into()), "it only stood in line");
}

#[test]
fn the_audit_finds_nothing_wrong_with_pods_that_wait_for_a_choice() {
    let mut machine = machine(&["n1", "n2"]);
    machine.show_pod(&running("other", "n1", 8000));
    for name in ["a", "b", "c"] {
        machine.show_pod(&share(name, 10_000));
    }
    choose(&mut machine, "a", "n1");
    choose(&mut machine, "b", "n2");
    choose(&mut machine, "b", "n1");
    choose(&mut machine, "c", "n2");
    machine.tell(Event::Undirected { pod: "c".into() });
    for _ in 0..5 {
        machine.pass(60);
        let effects = machine.settle();
        assert!(
            !effects
                .iter()
                .any(|effect| matches!(effect, Effect::ReportFinding { finding: Finding::Drift(_), .. })),
            "{effects:?}"
        );
        assert!(machine.next_deadline().is_none_or(|at| at > machine.now()), "it would never rest");
    }
}

#[test]
fn what_kube_scheduler_has_decided_is_not_tested_again() {
    let mut node = hami_node("n1", "NVIDIA A100");
    node["spec"] = json!({"unschedulable": true, "taints": [{"key": "keep", "effect": "NoSchedule"}]});
    let mut machine = Machine::directed(&Config::default(), &[node]);
    let mut pod = share("p", 1000);
    pod["spec"]["nodeSelector"] = json!({"zone": "a"});
    pod["spec"]["resourceClaims"] = json!([{"name": "claim"}]);
    pod["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    pod["spec"]["containers"][0]["resources"]["requests"] = json!({"cpu": "1000"});
    machine.show_pod(&pod);
    choose(&mut machine, "p", "n1");
    assert_eq!(machine.run().1, [("p".to_owned(), "n1".to_owned())]);
}

#[test]
fn each_node_is_told_to_fit_to_be_full_or_to_be_of_no_use() {
    let nodes =
        [hami_node("n1", "NVIDIA A100"), hami_node("n2", "NVIDIA A100"), hami_node("n3", "NVIDIA T4")];
    let mut machine = Machine::directed(&Config::default(), &nodes);
    machine.show_pod(&running("other", "n2", 8000));
    let mut pod = share("p", 10_000);
    pod["metadata"]["annotations"] = json!({"nvidia.com/use-gputype": "A100"});
    let demand = machine.reader().pod(&parsed(&pod)).0.demand().unwrap();
    let names = ["n3", "n2", "n1", "n9"].map(str::to_owned);
    let found = standings(&demand, &machine.scheduler().view().outlook(), &names);
    let [of_t4, full, free, unseen] = &found[..] else { panic!("{found:?}") };
    assert_eq!(*of_t4, NodeStanding::FailsEmpty("node(s) didn't match Pod's GPU type".to_owned()));
    assert_eq!(*full, NodeStanding::Fails("Insufficient GPU memory".to_owned()));
    assert!(matches!(free, NodeStanding::Fits(0..=10)), "{free:?}");
    assert_eq!(*unseen, NodeStanding::Fails("Berth has not seen the node yet".to_owned()));
}

#[test]
fn the_fuller_of_two_nodes_scores_higher_where_pods_are_packed() {
    let mut machine = machine(&["n1", "n2"]);
    machine.show_pod(&running("other", "n2", 12_000));
    let demand = machine.reader().pod(&parsed(&share("p", 1000))).0.demand().unwrap();
    let found =
        standings(&demand, &machine.scheduler().view().outlook(), &["n1".to_owned(), "n2".to_owned()]);
    let [NodeStanding::Fits(empty), NodeStanding::Fits(fuller)] = found[..] else { panic!("{found:?}") };
    assert!(empty < fuller && fuller <= 10, "{found:?}");
    // A node with a full line is the last choice, however well its cards suit.
    for number in 0..9 {
        let name = format!("p{number}");
        machine.show_pod(&share(&name, 100));
        choose(&mut machine, &name, "n2");
    }
    machine.settle();
    let found = standings(&demand, &machine.scheduler().view().outlook(), &["n2".to_owned()]);
    assert_eq!(found, [NodeStanding::Fits(0)]);
}

#[test]
fn victims_help_only_where_their_cards_are_enough_and_nothing_is_taken_from_them() {
    let mut machine = machine(&["n1", "n2"]);
    machine.show_pod(&running("small", "n1", 2000));
    machine.show_pod(&running("large", "n1", 12_000));
    let demand = machine.reader().pod(&parsed(&share("p", 10_000))).0.demand().unwrap();
    let n1 = NodeName::from("n1");
    let mut relieves = |victims: &[&str]| {
        let victims: Vec<Uid> = victims.iter().map(|uid| Uid::from(*uid)).collect();
        machine.scheduler_mut().relieves(&demand, &n1, &victims)
    };
    assert_eq!(
        [relieves(&["small"]), relieves(&["large"]), relieves(&["small", "large"])],
        [false, true, true]
    );
    assert!(!relieves(&[]), "what was tried is undone");
}
