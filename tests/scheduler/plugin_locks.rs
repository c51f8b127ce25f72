//! Device plugins of vendors that serve one pod at a time, on nodes of Koordinator's: whose lock is taken, and who ends it.

use berth::{
    config::Config,
    device::LockOwner,
    scheduling::{AgentFailure, BindOutcome, Effect, Event, LockOutcome, PodKey, ReadAnswer, ReadRequest},
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    devices::{ALLOCATED, device, gpu, nic},
    machine::{Machine, bound, key, node, placed, pod, told},
};

const METAX: &str = "hami.io/mutex.lock";
const CAMBRICON: &str = "cambricon.com/dsmlu.lock";

/// A share of a card of MetaX'.
fn sgpu(name: &str) -> Value {
    let limits = json!({
        "koordinator.sh/gpu.shared": "1", "koordinator.sh/gpu-core": "10", "koordinator.sh/gpu-memory": "1Gi",
        "metax-tech.com/sgpu": "1",
    });
    pod(name, &limits)
}

/// A share of a card of Cambricon's.
fn smlu(name: &str) -> Value {
    let limits = json!({
        "koordinator.sh/gpu.shared": "1", "koordinator.sh/gpu-core": "10", "koordinator.sh/gpu-memory": "1Gi",
        "cambricon.com/mlu.smlu.vcore": "10", "cambricon.com/mlu.smlu.vmemory": "4",
    });
    pod(name, &limits)
}

/// A node with the resources of both plugins, and these annotations.
fn machine_node(annotations: &Value) -> Value {
    let mut node = node("n1", annotations);
    let resources = json!({"metax-tech.com/sgpu": "16", "cambricon.com/mlu.smlu.vcore": "200", "cambricon.com/mlu.smlu.vmemory": "128"});
    for (name, amount) in resources.as_object().unwrap() {
        node["status"]["allocatable"][name] = amount.clone();
    }
    node
}

fn of_vendor(vendor: &str) -> Value {
    let mut device = device("n1", &[gpu(0), gpu(1), nic(0)]);
    device["metadata"]["labels"] = json!({"node.koordinator.sh/gpu-vendor": vendor});
    device
}

/// A node of this vendor's with these annotations, and these pods on it from the start.
fn begin(vendor: &str, annotations: &Value, pods: &[Value]) -> Machine {
    let mut machine = Machine::new(&Config::default(), &[machine_node(annotations)], pods);
    machine.show_device(&of_vendor(vendor));
    machine
}

/// The lock as it stands on a node that the pod has.
fn held(lock: &str, pod: &str, since: Timestamp) -> Value {
    json!({lock: format!("{since:.0},default,{pod}")})
}

/// For which pod which lock is to be taken, if that is all that is to be done.
fn to_be_locked(effects: &[Effect]) -> Option<(String, String)> {
    let [Effect::TakeLock { pod, locks, .. }] = effects else { return None };
    let [lock] = &locks[..] else { return None };
    Some((pod.name.to_string(), lock.key.to_string()))
}

/// A pod and the lock that is to be taken for it.
fn pair(pod: &str, lock: &str) -> (String, String) {
    (pod.to_owned(), lock.to_owned())
}

/// Lets the pod have its lock and be bound; the annotations of its Binding.
fn bind(machine: &mut Machine, effects: &[Effect]) -> Value {
    let [Effect::TakeLock { pod, node, locks, .. }] = effects else { panic!("{effects:?}") };
    let outcome = LockOutcome::Taken { resource_version: "2".to_owned() };
    machine.tell(Event::LockAnswered { pod: pod.clone(), node: node.clone(), locks: locks.clone(), outcome });
    let effects = machine.settle();
    let [Effect::Bind { pod, node, allocations, devices, .. }] = &effects[..] else { panic!("{effects:?}") };
    let dialect = machine.reader().dialects().named(&allocations[0].profile).unwrap();
    let given = &allocations[0].assignment;
    let place = devices.as_ref().unwrap();
    let adapted = dialect.adaption(&given.devices, (node, place), machine.now()).unwrap();
    let written = dialect.record(given, node, machine.now()).and(adapted);
    let outcome = BindOutcome::Bound;
    machine.tell(Event::BindAnswered { pod: pod.clone(), node: node.clone(), outcome });
    let effects = machine.settle();
    assert!(matches!(&effects[..], [Effect::TellScheduled { .. }]), "{effects:?}");
    json!(written.annotations)
}

#[test]
fn a_pod_has_its_vendors_lock_and_the_next_goes_once_the_plugin_has_freed_it() {
    let mut machine = begin("metax", &json!({}), &[]);
    machine.show_pod(&sgpu("first"));
    let effects = machine.settle();
    assert_eq!(to_be_locked(&effects), Some(pair("first", METAX)));
    let written = bind(&mut machine, &effects);
    assert_eq!(
        written["metax-tech.com/gpu-devices-allocated"],
        r#"[[{"uuid":"GPU-0","compute":10,"vRam":1024}]]"#
    );
    machine.show_pod(&sgpu("second"));
    assert_eq!(machine.settle(), [], "the lock is the first pod's, although it is not seen yet");
    machine.show_pod(&bound(sgpu("first"), "n1", written));
    assert_eq!(machine.settle(), []);
    machine.show_node(&machine_node(&held(METAX, "first", machine.now())));
    assert_eq!(machine.settle(), []);
    machine.show_node(&machine_node(&json!({})));
    assert_eq!(to_be_locked(&machine.settle()), Some(pair("second", METAX)));
}

#[test]
fn cambricons_plugin_has_to_say_it_on_the_pod_too() {
    let mut machine = begin("cambricon", &json!({}), &[]);
    machine.show_pod(&smlu("first"));
    let effects = machine.settle();
    assert_eq!(to_be_locked(&effects), Some(pair("first", CAMBRICON)));
    let mut written = bind(&mut machine, &effects);
    assert_eq!(
        (&written["CAMBRICON_DSMLU_PROFILE"], &written["CAMBRICON_DSMLU_ASSIGHED"]),
        (&json!("0_10_4"), &json!("false"))
    );
    machine.show_pod(&bound(smlu("first"), "n1", written.clone()));
    machine.show_pod(&smlu("second"));
    machine.show_node(&machine_node(&json!({})));
    assert_eq!(machine.settle(), []);
    written["CAMBRICON_DSMLU_ASSIGHED"] = json!("true");
    machine.show_pod(&bound(smlu("first"), "n1", written));
    assert_eq!(to_be_locked(&machine.settle()), Some(pair("second", CAMBRICON)));
}

#[test]
fn a_restarted_scheduler_knows_by_pod_and_node_who_is_being_served() {
    for (vendor, lock, share) in [("metax", METAX, sgpu as fn(&str) -> Value), ("cambricon", CAMBRICON, smlu)]
    {
        let mut before = begin(vendor, &json!({}), &[]);
        before.show_pod(&share("first"));
        let effects = before.settle();
        let mut written = bind(&mut before, &effects);
        let lock = held(lock, "first", before.now());
        let mut machine = begin(vendor, &lock, &[bound(share("first"), "n1", written.clone())]);
        machine.show_pod(&share("second"));
        assert_eq!(machine.settle(), [], "{vendor}");
        machine.show_node(&machine_node(&json!({})));
        if vendor == "cambricon" {
            assert_eq!(machine.settle(), [], "the plugin has not said that it has served the pod");
            written["CAMBRICON_DSMLU_ASSIGHED"] = json!("true");
            machine.show_pod(&bound(share("first"), "n1", written));
        }
        assert_eq!(to_be_locked(&machine.settle()).unwrap().0, "second", "{vendor}");
    }
}

#[test]
fn a_lock_whose_pod_is_gone_or_runs_for_five_minutes_is_taken_over() {
    let start = begin("metax", &json!({}), &[]).now();
    // Nobody has ever seen this pod: it is read.
    let mut machine = begin("metax", &held(METAX, "gone", start), &[]);
    machine.show_pod(&sgpu("next"));
    let effects = machine.settle();
    let Some(Effect::Read(ReadRequest::Holder { owner, since })) = effects.first() else {
        panic!("{effects:?}")
    };
    assert_eq!(*owner, LockOwner::parse("default", "gone").unwrap());
    machine.tell(Event::Read(ReadAnswer::Holder { owner: owner.clone(), since: *since, found: None }));
    assert_eq!(to_be_locked(&machine.settle()), Some(pair("next", METAX)));

    // The pod of another scheduler runs, and its plugin has not freed the node.
    let mut other = sgpu("other");
    other["spec"]["schedulerName"] = json!("koord-scheduler");
    let given = json!({ALLOCATED: r#"{"gpu":[{"minor":1,"resources":{"koordinator.sh/gpu-core":"10"}}]}"#});
    let mut running = bound(other, "n1", given);
    running["status"]["phase"] = json!("Running");
    let mut machine = begin("metax", &held(METAX, "other", start), &[running]);
    machine.show_pod(&sgpu("next"));
    assert_eq!(machine.settle(), []);
    machine.pass(299);
    assert_eq!(to_be_locked(&machine.settle()), None);
    machine.pass(1);
    let effects = machine.settle();
    let locked = effects.iter().filter(|effect| matches!(effect, Effect::TakeLock { .. })).cloned();
    assert_eq!(to_be_locked(&locked.collect::<Vec<_>>()), Some(pair("next", METAX)));
}

#[test]
fn a_plugin_that_does_not_free_its_node_gets_no_further_pod_until_it_does() {
    let mut before = begin("metax", &json!({}), &[]);
    before.show_pod(&sgpu("first"));
    let effects = before.settle();
    let written = bind(&mut before, &effects);
    let lock = held(METAX, "first", before.now());
    let mut machine = begin("metax", &lock, &[bound(sgpu("first"), "n1", written)]);
    machine.pass(301);
    let effects = machine.settle();
    assert!(
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::TellAgent { pod, failure: AgentFailure::Silence, .. } if *pod.name == *"first")),
        "{effects:?}"
    );
    machine.show_pod(&sgpu("second"));
    let (effects, bound_now) = machine.run();
    assert_eq!(bound_now, []);
    assert!(told(&effects, "second").contains("device plugin"), "{effects:?}");
    // Its answer ends the silence at once.
    machine.show_node(&machine_node(&json!({})));
    machine.pass(10);
    assert_eq!(machine.run().1, placed(&[("second", "n1")]));
}

#[test]
fn a_pod_without_gpus_needs_no_lock() {
    let mut machine = begin("metax", &held(METAX, "other", Timestamp::UNIX_EPOCH), &[]);
    machine.show_pod(&pod("network", &json!({"koordinator.sh/rdma": "100"})));
    let effects = machine.settle();
    let bindings: Vec<&PodKey> = effects
        .iter()
        .filter_map(|effect| if let Effect::Bind { pod, .. } = effect { Some(pod) } else { None })
        .collect();
    assert_eq!(bindings, [&key("network")], "{effects:?}");
}

#[test]
fn a_pod_that_the_plugin_would_not_serve_is_told_so() {
    let without = |name: &str, limits: Value| pod(name, &limits);
    let share = json!({"koordinator.sh/gpu-core": "10", "koordinator.sh/gpu-memory": "1Gi"});
    let with = |mut limits: Value, amounts: &[(&str, &str)]| {
        for (name, amount) in amounts {
            limits[*name] = json!(amount);
        }
        limits
    };
    let mlu = [("cambricon.com/mlu.smlu.vcore", "10"), ("cambricon.com/mlu.smlu.vmemory", "4")];
    let sgpu = [("metax-tech.com/sgpu", "1")];
    let not_asked = "GPU device plugin is not called for the Pod, which names no resource of its vendor";
    let small = "GPU device plugin needs compute, and memory of at least one of its units";
    for (vendor, limits, reason) in [
        ("metax", share.clone(), not_asked),
        ("metax", with(share.clone(), &mlu), not_asked),
        ("nvidia", with(share.clone(), &sgpu), not_asked),
        (
            "cambricon",
            with(json!({"koordinator.sh/gpu": "200"}), &mlu),
            "GPU device plugin gives a Pod fewer cards",
        ),
        (
            "cambricon",
            with(json!({"koordinator.sh/gpu-core": "10", "koordinator.sh/gpu-memory": "255Mi"}), &mlu),
            small,
        ),
        ("metax", with(json!({"koordinator.sh/gpu-memory": "1Gi"}), &sgpu), small),
    ] {
        let mut machine = begin(vendor, &json!({}), &[]);
        machine.show_pod(&without("a", limits.clone()));
        let (effects, bound_now) = machine.run();
        let message = format!("0/1 nodes are available: 1 node(s) {reason}.");
        assert_eq!((bound_now, &*told(&effects, "a")), (Vec::new(), &*message), "{vendor} {limits}");
    }
}

#[test]
fn two_cards_of_metax_are_two_in_one_list() {
    let limits = json!({"koordinator.sh/gpu": "200", "metax-tech.com/sgpu": "2"});
    let mut machine = begin("metax", &json!({}), &[]);
    machine.show_pod(&pod("pair", &limits));
    let effects = machine.settle();
    let written = bind(&mut machine, &effects);
    assert_eq!(
        written["metax-tech.com/gpu-devices-allocated"],
        r#"[[{"uuid":"GPU-0","compute":100,"vRam":16384},{"uuid":"GPU-1","compute":100,"vRam":16384}]]"#
    );
}
