//! Koordinator's Reservations: what they hold of a node is kept for their owners, and given to these first.

use berth::{
    config::Config,
    scheduling::{BindOutcome, Effect, Event, Finding, ObjectChange, WriteOutcome, model::kind::Kind},
};
use serde_json::{Value, json};

use super::{
    devices::{ALLOCATED, device, gpu, machine, say, whole},
    machine::{Machine, bound, device_object, node, placed, pod, told},
};

const USED: &str = "scheduling.koordinator.sh/reservation-allocated";
const WANTED: &str = "scheduling.koordinator.sh/reservation-affinity";

/// So many percent of the GPUs with these numbers.
fn gpus(minors: &[u32], percent: u32) -> Value {
    let resources = json!({
        "koordinator.sh/gpu-core": percent.to_string(), "koordinator.sh/gpu-memory-ratio": percent.to_string(),
        "koordinator.sh/gpu-memory": format!("{}", (u64::from(percent) << 34) / 100),
    });
    let one = |minor: &u32| json!({"minor": minor, "id": format!("GPU-{minor}"), "resources": resources});
    json!({"gpu": minors.iter().map(one).collect::<Vec<_>>()})
}

/// A Reservation of these devices on this node for pods with the label `app: mine`; its uid is its name.
fn reservation(name: &str, node: &str, devices: &Value) -> Value {
    json!({
        "metadata": {"name": name, "uid": name, "annotations": {ALLOCATED: devices.to_string()}},
        "spec": {"owners": [{"labelSelector": {"matchLabels": {"app": "mine"}}}], "template": {}},
        "status": {"phase": "Available", "nodeName": node, "allocatable": {}},
    })
}

/// A pod that the Reservations are for.
fn owner(name: &str, percent: &str) -> Value {
    let mut pod = pod(name, &json!({"koordinator.sh/gpu": percent}));
    pod["metadata"]["labels"] = json!({"app": "mine"});
    pod
}

/// The numbers of the GPUs that the pod which is bound now is given, and the Reservation that it uses.
fn given(machine: &mut Machine) -> (Vec<u64>, Option<String>) {
    let effects = machine.settle();
    let bind = effects.iter().find_map(|effect| match effect {
        Effect::Bind { pod, node, allocations, .. } => Some((pod, node, &allocations[0])),
        _ => None,
    });
    let (pod, node, allocation) = bind.unwrap_or_else(|| panic!("{effects:?}"));
    let (pod, outcome) = (pod.clone(), BindOutcome::Bound);
    machine.tell(Event::BindAnswered { pod, node: node.clone(), outcome });
    let dialect = machine.reader().dialects().named(&allocation.profile).unwrap();
    let written = dialect.record(&allocation.assignment, node, machine.now()).annotations;
    let devices: Value = serde_json::from_str(&written[ALLOCATED]).unwrap();
    let minors = devices["gpu"].as_array().unwrap().iter().map(|gpu| gpu["minor"].as_u64().unwrap());
    (minors.collect(), written.get(USED).cloned())
}

#[test]
fn what_is_reserved_is_kept_from_others_and_given_to_its_owner_first() {
    let mut machine = machine(&["n1", "n2"]);
    machine.show_device(&device("n1", &[gpu(0), gpu(1)]));
    machine.show_device(&device("n2", &[gpu(0), gpu(1)]));
    machine.show_reservation(&reservation("r", "n2", &gpus(&[1], 100)));
    machine.show_pod(&pod("large", &json!({"koordinator.sh/gpu": "200"})));
    assert_eq!(machine.run().1, placed(&[("large", "n1")]));
    machine.show_pod(&whole("small"));
    assert_eq!(given(&mut machine), (vec![0], None));
    machine.show_pod(&whole("late"));
    let (effects, bound_now) = machine.run();
    assert_eq!(bound_now, []);
    assert!(told(&effects, "late").starts_with("0/2 nodes are available: 2 Insufficient GPU Devices."));
    machine.show_pod(&owner("mine", "100"));
    assert_eq!(given(&mut machine), (vec![1], Some(r#"{"name":"r","uid":"r"}"#.to_owned())));
}

#[test]
fn an_owner_takes_the_reserved_card_though_others_are_free() {
    let mut machine = machine(&["n1", "n2"]);
    machine.show_device(&device("n1", &[gpu(0)]));
    machine.show_device(&device("n2", &[gpu(0), gpu(1), gpu(2), gpu(3)]));
    machine.show_reservation(&reservation("r", "n2", &gpus(&[3], 100)));
    machine.show_pod(&owner("mine", "100"));
    assert_eq!(given(&mut machine).0, [3]);
}

#[test]
fn a_reservation_is_for_the_pods_that_one_of_its_owners_is_about() {
    let mut with_controller = owner("a", "100");
    with_controller["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j-1", "controller": true}]);
    for (owners, is_for) in [
        (json!([{"object": {"name": "a", "namespace": "default"}}]), true),
        (json!([{"object": {"name": "b"}}]), false),
        (json!([{"object": {"uid": "a"}}]), true),
        (json!([{"controller": {"kind": "Job", "name": "j", "namespace": "default"}}]), true),
        (json!([{"controller": {"kind": "Job", "name": "j", "namespace": "other"}}]), false),
        (json!([{"labelSelector": {"matchLabels": {"app": "mine"}}}]), true),
        (json!([{"object": {"name": "a"}, "labelSelector": {"matchLabels": {"app": "other"}}}]), false),
        (json!([{"object": {"name": "b"}}, {"labelSelector": {}}]), true),
        (json!([{}]), true),
        (json!([]), false),
    ] {
        let mut machine = machine(&["n1"]);
        machine.show_device(&device("n1", &[gpu(0)]));
        let mut reserved = reservation("r", "n1", &gpus(&[0], 100));
        reserved["spec"]["owners"] = owners.clone();
        machine.show_reservation(&reserved);
        machine.show_pod(&with_controller);
        let expected = if is_for { placed(&[("a", "n1")]) } else { Vec::new() };
        assert_eq!(machine.run().1, expected, "{owners}");
    }
}

#[test]
fn a_pod_waits_until_a_reservation_ends_comes_or_is_opened() {
    let mut machine = machine(&["n1"]);
    machine.show_device(&device("n1", &[gpu(0)]));
    let mut closed = reservation("r", "n1", &gpus(&[0], 100));
    closed["spec"]["unschedulable"] = json!(true);
    machine.show_reservation(&closed);
    machine.show_pod(&owner("mine", "100"));
    assert_eq!(machine.run().1, []);
    machine.pass(10);
    machine.show_reservation(&reservation("r", "n1", &gpus(&[0], 100)));
    assert_eq!(machine.run().1, placed(&[("mine", "n1")]));

    for end in [
        |machine: &mut Machine| {
            machine.tell(Event::Object(ObjectChange::Gone(Kind::Reservation, "r".into())));
        },
        |machine: &mut Machine| machine.tell(Event::Object(ObjectChange::Unserved(Kind::Reservation))),
        |machine: &mut Machine| {
            let mut over = reservation("r", "n1", &gpus(&[0], 100));
            over["status"]["phase"] = json!("Failed");
            machine.show_reservation(&over);
        },
    ] {
        let mut machine = self::machine(&["n1"]);
        machine.show_device(&device("n1", &[gpu(0)]));
        machine.show_reservation(&reservation("r", "n1", &gpus(&[0], 100)));
        machine.show_pod(&whole("other"));
        assert_eq!(machine.run().1, []);
        machine.pass(10);
        end(&mut machine);
        assert_eq!(machine.run().1, placed(&[("other", "n1")]));
    }
}

/// The pod as it stands once it is bound with this much of GPU 0, in the Reservation `r`.
fn within(pod: Value, percent: u32) -> Value {
    let annotations = json!({ALLOCATED: gpus(&[0], percent).to_string(), USED: r#"{"name":"r","uid":"r"}"#});
    bound(pod, "n1", annotations)
}

#[test]
fn what_one_pod_leaves_of_a_reservation_is_for_others_only_where_several_may_use_it() {
    for (once, second) in [(json!(null), "other"), (json!(true), "other"), (json!(false), "mine-2")] {
        let mut machine = machine(&["n1"]);
        machine.show_device(&device("n1", &[gpu(0)]));
        let mut reserved = reservation("r", "n1", &gpus(&[0], 100));
        reserved["spec"]["allocateOnce"] = once.clone();
        machine.show_reservation(&reserved);
        machine.show_pod(&owner("mine", "50"));
        machine.run();
        machine.show_pod(&within(owner("mine", "50"), 50));
        // What is left is the node's again, or the Reservation's.
        machine.show_pod(&pod("other", &json!({"koordinator.sh/gpu": "50"})));
        assert_eq!(machine.run().1, if second == "other" { placed(&[("other", "n1")]) } else { vec![] });
        machine.show_pod(&owner("mine-2", "50"));
        assert_eq!(machine.run().1, if second == "mine-2" { placed(&[("mine-2", "n1")]) } else { vec![] });
    }
}

#[test]
fn restricted_gives_no_more_of_what_is_reserved_and_aligned_adds_what_the_node_has_left() {
    for (policy, fits) in [("Restricted", false), ("Aligned", true), ("", true)] {
        let mut machine = machine(&["n1"]);
        machine.show_device(&device("n1", &[gpu(0)]));
        let mut reserved = reservation("r", "n1", &gpus(&[0], 50));
        reserved["spec"]["allocatePolicy"] = json!(policy);
        machine.show_reservation(&reserved);
        machine.show_pod(&owner("mine", "80"));
        assert_eq!(machine.run().1.len(), usize::from(fits), "{policy}");
    }
    // Of what the Reservation does not hold, a pod gets what the node has.
    let mut machine = machine(&["n1"]);
    machine.show_device(&device("n1", &[gpu(0)]));
    let mut reserved = reservation("r", "n1", &gpus(&[0], 100));
    reserved["spec"]["allocatePolicy"] = json!("Restricted");
    reserved["status"]["allocatable"] = json!({"cpu": "1", "koordinator.sh/gpu": "100"});
    machine.show_reservation(&reserved);
    let asks = |name: &str, cpu: &str| {
        let mut pod = owner(name, "100");
        pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!(cpu);
        pod["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!("1Gi");
        pod
    };
    machine.show_pod(&asks("much", "2"));
    assert_eq!(machine.run().1, []);
    machine.show_pod(&asks("little", "1"));
    assert_eq!(machine.run().1, placed(&[("little", "n1")]));
}

#[test]
fn cpu_that_is_reserved_is_kept_from_others() {
    let mut machine = machine(&["n1"]);
    machine.show_device(&device("n1", &[gpu(0), gpu(1)]));
    let mut reserved = reservation("r", "n1", &gpus(&[0], 100));
    reserved["status"]["allocatable"] = json!({"cpu": "63"});
    machine.show_reservation(&reserved);
    let mut negative = reservation("s", "n1", &json!({}));
    negative["status"]["allocatable"] = json!({"cpu": "-60"});
    machine.show_reservation(&negative);
    let mut other = whole("other");
    other["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!("2");
    machine.show_pod(&other);
    let (effects, bound_now) = machine.run();
    assert_eq!(
        (bound_now, &*told(&effects, "other")),
        (vec![], "0/1 nodes are available: 1 Insufficient cpu.")
    );
}

#[test]
fn a_pod_that_wants_a_reservation_goes_nowhere_else() {
    let mut machine = machine(&["n1"]);
    machine.show_device(&device("n1", &[gpu(0), gpu(1)]));
    let wants = |name: &str, wanted: Value| {
        let mut pod = owner(name, "100");
        pod["metadata"]["annotations"] = json!({WANTED: wanted.to_string()});
        pod
    };
    machine.show_pod(&wants("a", json!({"name": "r"})));
    let (effects, bound_now) = machine.run();
    let why = "0/1 nodes are available: 1 node(s) no reservation(s) met the Pod's reservation affinity.";
    assert_eq!((bound_now, &*told(&effects, "a")), (vec![], why));
    let mut labelled = reservation("s", "n1", &gpus(&[0], 100));
    labelled["metadata"]["labels"] = json!({"tier": "gold"});
    machine.show_reservation(&labelled);
    machine.pass(10);
    assert_eq!(machine.run().1, []);
    machine.show_reservation(&reservation("r", "n1", &gpus(&[1], 100)));
    assert_eq!(machine.run().1, placed(&[("a", "n1")]));
    let terms = json!([{"matchExpressions": [{"key": "tier", "operator": "In", "values": ["gold"]}]}]);
    let term = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"reservationSelectorTerms": terms}});
    machine.show_pod(&wants("b", term));
    machine.pass(10);
    assert_eq!(given(&mut machine).1.unwrap(), r#"{"name":"s","uid":"s"}"#);
}

#[test]
fn a_reservation_that_can_not_be_read_keeps_all_devices_of_its_node() {
    let mut machine = machine(&["n1", "n2"]);
    machine.show_device(&device("n1", &[gpu(0)]));
    let mut broken = reservation("r", "n1", &json!({}));
    broken["metadata"]["annotations"][ALLOCATED] = json!("[");
    let troubles = machine.show_reservation(&broken);
    assert!(troubles[0].starts_with(&format!("metadata.annotations[{ALLOCATED}]: ")), "{troubles:?}");
    machine.show_pod(&whole("a"));
    assert_eq!(machine.run().1, []);
    machine.show_device(&device("n2", &[gpu(0)]));
    machine.pass(10);
    assert_eq!(machine.run().1, placed(&[("a", "n2")]));
}

#[test]
fn the_ledger_holds_after_each_of_these() {
    let mut machine = machine(&["n1"]);
    machine.show_device(&device("n1", &[gpu(0), gpu(1)]));
    machine.show_reservation(&reservation("r", "n1", &gpus(&[0], 100)));
    machine.show_pod(&owner("mine", "50"));
    machine.show_pod(&whole("other"));
    let (mut effects, _) = machine.run();
    machine.show_pod(&within(owner("mine", "50"), 50));
    // The audit runs once a minute.
    machine.pass(61);
    effects.extend(machine.run().0);
    let drifts = effects
        .iter()
        .filter(|effect| matches!(effect, Effect::ReportFinding { finding: Finding::Drift(_), .. }));
    assert_eq!(drifts.count(), 0, "{effects:?}");
}

#[test]
fn no_device_is_given_away_before_devices_and_reservations_are_listed() {
    let mut machine = Machine::without_storage(&Config::default(), &[node("n1", &json!({}))]);
    machine.show_pod(&whole("a"));
    assert_eq!(say(&mut machine, "a"), "", "the lists come within a moment");
    machine.pass(30);
    let missing = |names: &str| {
        format!(
            "the Pod asks for devices, and these are not listed yet: {names}; Berth's ServiceAccount must be allowed to list and watch them"
        )
    };
    assert_eq!(say(&mut machine, "a"), missing("devices, reservations"));
    let (listed, _) = device_object(&device("n1", &[gpu(0)]));
    machine.tell(Event::Object(ObjectChange::Listed(Kind::Device, vec![listed])));
    assert_eq!(say(&mut machine, "a"), missing("reservations"));
    let (reserved, _) = berth::cluster::read::reservation::reservation(
        &serde_json::from_value(reservation("r", "n1", &gpus(&[0], 50))).unwrap(),
    );
    machine.tell(Event::Object(ObjectChange::Listed(Kind::Reservation, vec![reserved])));
    assert_eq!(machine.run().1, []);
    machine.show_pod(&pod("half", &json!({"koordinator.sh/gpu": "50"})));
    assert_eq!(machine.run().1, placed(&[("half", "n1")]));
}

/// The same with an order.
fn ordered(mut reservation: Value, order: &str) -> Value {
    reservation["metadata"]["labels"] = json!({"scheduling.koordinator.sh/reservation-order": order});
    reservation
}

/// That takes several pods.
fn lasting(mut reservation: Value) -> Value {
    reservation["spec"]["allocateOnce"] = json!(false);
    reservation
}

#[test]
fn of_several_reservations_the_lowest_order_comes_first_and_then_the_fullest() {
    let name = |used: Option<String>| -> String {
        let used: Value = serde_json::from_str(&used.unwrap()).unwrap();
        used["name"].as_str().unwrap().to_owned()
    };
    let of =
        |name: &str, minors: &[u32], order: &str| ordered(reservation(name, "n1", &gpus(minors, 100)), order);
    for (reservations, first) in [
        (vec![of("a", &[0], "7"), of("b", &[1], "3"), of("c", &[2], "")], "b"),
        (vec![of("a", &[0], ""), of("b", &[1], "9")], "b"),
        (vec![of("a", &[0], "2"), of("b", &[1], "-1")], "b"),
        // 0 and what is no number are none.
        (vec![of("a", &[0], "0"), of("b", &[1], "1")], "b"),
        (vec![of("a", &[0], "first"), of("b", &[1], "1")], "b"),
        (vec![of("a", &[0, 1], ""), of("b", &[2], "")], "b"),
        (vec![of("a", &[0], ""), of("b", &[1], "")], "a"),
    ] {
        let mut machine = machine(&["n1"]);
        machine.show_device(&device("n1", &[gpu(0), gpu(1), gpu(2)]));
        for reservation in &reservations {
            machine.show_reservation(reservation);
        }
        machine.show_pod(&owner("mine", "100"));
        assert_eq!(name(given(&mut machine).1), first, "{reservations:?}");
    }
    // The order counts across nodes too.
    let mut machine = machine(&["n1", "n2"]);
    for (node, order) in [("n1", "5"), ("n2", "4")] {
        machine.show_device(&device(node, &[gpu(0)]));
        machine.show_reservation(&ordered(reservation(node, node, &gpus(&[0], 100)), order));
    }
    machine.show_pod(&owner("mine", "100"));
    assert_eq!(name(given(&mut machine).1), "n2");
}

#[test]
fn a_reservation_is_filled_before_the_next_is_begun() {
    let mut machine = machine(&["n1", "n2"]);
    for node in ["n1", "n2"] {
        machine.show_device(&device(node, &[gpu(0)]));
        machine.show_reservation(&lasting(reservation(node, node, &gpus(&[0], 100))));
    }
    let mut nodes = Vec::new();
    for name in ["a", "b", "c"] {
        machine.show_pod(&owner(name, "50"));
        nodes.extend(machine.run().1.into_iter().map(|(_, node)| node));
    }
    assert_eq!(nodes, ["n1", "n1", "n2"]);
}

#[test]
fn a_pod_that_wants_a_reservation_preempts_within_it_alone() {
    let wanting = |name: &str, priority: i64| {
        let mut pod = owner(name, "100");
        pod["spec"]["priority"] = json!(priority);
        pod["metadata"]["annotations"] = json!({WANTED: json!({"name": "r"}).to_string()});
        pod
    };
    let mut machine = machine(&["n1", "n2"]);
    machine.show_device(&device("n1", &[gpu(0), gpu(1)]));
    machine.show_device(&device("n2", &[gpu(0)]));
    machine.tell(Event::Object(ObjectChange::Listed(Kind::PodDisruptionBudget, Vec::new())));
    machine.show_reservation(&lasting(reservation("r", "n1", &gpus(&[0], 100))));
    let held = |devices: Value, used: bool| {
        let mut held = json!({ALLOCATED: devices.to_string()});
        if used {
            held[USED] = json!(r#"{"name":"r","uid":"r"}"#);
        }
        held
    };
    machine.show_pod(&bound(wanting("user", 1), "n1", held(gpus(&[0], 100), true)));
    let mut beside = owner("beside", "100");
    beside["spec"]["priority"] = json!(5);
    machine.show_pod(&bound(beside.clone(), "n1", held(gpus(&[1], 100), false)));
    beside["metadata"]["name"] = json!("other");
    beside["metadata"]["uid"] = json!("other");
    machine.show_pod(&bound(beside, "n2", held(gpus(&[0], 100), false)));
    // Of no lower priority: it waits.
    machine.show_pod(&wanting("equal", 1));
    let (effects, bound_now) = machine.run();
    assert!(told(&effects, "equal").contains("2 Insufficient GPU Devices"), "{effects:?}");
    assert_eq!(bound_now, []);
    machine.show_pod(&wanting("urgent", 9));
    let (effects, _) = machine.run();
    let nominated = effects.iter().find_map(|effect| match effect {
        Effect::Nominate { pod, node, .. } => Some((pod.clone(), node.clone())),
        _ => None,
    });
    let (pod, node) = nominated.unwrap_or_else(|| panic!("{effects:?}"));
    assert_eq!((&*pod.name, node.as_deref()), ("urgent", Some("n1")));
    let outcome = WriteOutcome::Written { resource_version: "99".to_owned() };
    machine.tell(Event::Nominated { pod, node, room: None, outcome });
    let (effects, _) = machine.run();
    let victims: Vec<_> = effects
        .iter()
        .filter_map(|effect| if let Effect::Preempt { pod, .. } = effect { Some(&*pod.name) } else { None })
        .collect();
    assert_eq!(victims, ["user"], "{effects:?}");
}

#[test]
fn what_is_short_in_a_reservation_alone_is_said_and_made_room_for() {
    let wanting = |name: &str, priority: i64| {
        let mut pod = owner(name, "100");
        pod["spec"]["priority"] = json!(priority);
        pod["metadata"]["annotations"] = json!({WANTED: json!({"name": "r"}).to_string()});
        pod
    };
    // The node has a card left, the Reservation none.
    let mut machine = machine(&["n1"]);
    machine.show_device(&device("n1", &[gpu(0), gpu(1)]));
    machine.tell(Event::Object(ObjectChange::Listed(Kind::PodDisruptionBudget, Vec::new())));
    let mut reserved = lasting(reservation("r", "n1", &gpus(&[0], 100)));
    reserved["spec"]["allocatePolicy"] = json!("Restricted");
    machine.show_reservation(&reserved);
    let held = json!({ALLOCATED: gpus(&[0], 100).to_string(), USED: r#"{"name":"r","uid":"r"}"#});
    machine.show_pod(&bound(wanting("user", 1), "n1", held));
    machine.show_pod(&wanting("equal", 1));
    let (effects, bound_now) = machine.run();
    let reason = "1 node(s) reservation(s) that met the Pod's reservation affinity had not enough left.";
    assert_eq!(
        (bound_now, told(&effects, "equal")),
        (Vec::new(), format!("0/1 nodes are available: {reason}"))
    );
    machine.show_pod(&wanting("urgent", 9));
    let (effects, _) = machine.run();
    assert!(
        effects.iter().any(|effect| matches!(effect, Effect::Nominate { pod, .. } if *pod.name == *"urgent")),
        "{effects:?}"
    );
}
