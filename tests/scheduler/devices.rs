//! Devices of nodes by type, as Koordinator's node side lists them: they come, go, fail and come back while pods wait and hold some.

use berth::{
    config::Config,
    device::{CoreRequest, Cores, MemoryRequest, MiB, Percent},
    scheduling::{Effect, Event, ObjectChange, PodChange, model::kind::Kind, model::pod_shape::CardShape},
};
use serde_json::{Value, json};

use super::machine::{Machine, bound, heard, node, placed, pod, told};

pub(crate) const ALLOCATED: &str = "scheduling.koordinator.sh/device-allocated";

/// A GPU with 16 GiB.
pub(crate) fn gpu(minor: u32) -> Value {
    json!({
        "type": "gpu", "minor": minor, "id": format!("GPU-{minor}"), "health": true,
        "topology": {"socketID": 0, "nodeID": 0, "pcieID": format!("pcie-{}", minor / 2), "busID": ""},
        "resources": {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "16Gi", "koordinator.sh/gpu-memory-ratio": "100"},
    })
}

/// A NIC with two virtual functions, on the PCIe switch of the GPUs 2n and 2n + 1.
pub(crate) fn nic(minor: u32) -> Value {
    let function = |number: u32| json!({"minor": -1, "busID": format!("0000:{minor}1:00.{number}")});
    json!({
        "type": "rdma", "minor": minor, "id": format!("0000:{minor}1:00.0"), "health": true,
        "topology": {"socketID": 0, "nodeID": 0, "pcieID": format!("pcie-{minor}"), "busID": ""},
        "resources": {"koordinator.sh/rdma": "100"},
        "vfGroups": [{"labels": {}, "vfs": [function(1), function(2)]}],
    })
}

pub(crate) fn device(node: &str, devices: &[Value]) -> Value {
    json!({"metadata": {"name": node}, "spec": {"devices": devices}})
}

pub(crate) fn machine(nodes: &[&str]) -> Machine {
    let nodes: Vec<_> = nodes.iter().map(|name| node(name, &json!({}))).collect();
    Machine::new(&Config::default(), &nodes, &[])
}

pub(crate) fn whole(name: &str) -> Value {
    pod(name, &json!({"koordinator.sh/gpu": "100"}))
}

#[test]
fn a_pod_waits_for_devices_and_goes_without_a_lock_once_they_are_listed() {
    let mut machine = machine(&["n1", "n2"]);
    machine.show_pod(&whole("a"));
    let (effects, bound_now) = machine.run();
    assert_eq!(bound_now, []);
    assert!(told(&effects, "a").starts_with("0/2 nodes are available: 2 "), "{effects:?}");
    assert!(machine.show_device(&device("n2", &[gpu(0)])).is_empty());
    machine.pass(1);
    let effects = machine.settle();
    let [Effect::Bind { pod, node, allocations, devices, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((&*pod.name, &**node), ("a", "n2"));
    let dialects = machine.reader().dialects();
    let dialect = dialects.named(&allocations[0].profile).unwrap();
    let written = dialect.record(&allocations[0].assignment, node, machine.now());
    let written: Value = serde_json::from_str(&written.annotations[ALLOCATED]).unwrap();
    assert_eq!(written["gpu"][0]["minor"], 0);
    assert_eq!(written["gpu"][0]["resources"]["koordinator.sh/gpu-memory"], "16Gi");
    let place = devices.as_ref().unwrap();
    let given = &allocations[0].assignment.devices;
    let adapted = dialect.adaption(given, (node, place), machine.now()).unwrap();
    assert_eq!(adapted.annotations["scheduling.koordinator.sh/gpu-minors"], "0");
}

#[test]
fn gpus_and_nics_are_given_from_one_switch() {
    let mut machine = machine(&["n1"]);
    machine.show_device(&device("n1", &[gpu(0), gpu(1), gpu(2), gpu(3), nic(0), nic(1)]));
    let mut pair = pod("pair", &json!({"koordinator.sh/gpu": "200", "koordinator.sh/rdma": "1"}));
    let joint = json!({"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"});
    pair["metadata"]["annotations"] =
        json!({"scheduling.koordinator.sh/device-joint-allocate": joint.to_string()});
    machine.show_pod(&pair);
    let effects = machine.settle();
    let [Effect::Bind { allocations, .. }] = &effects[..] else { panic!("{effects:?}") };
    let devices = &allocations[0].assignment.devices;
    let minors: Vec<Vec<u32>> = devices.values().map(|of| of.iter().map(|one| one.minor).collect()).collect();
    assert!(minors == [vec![0, 1], vec![0]] || minors == [vec![2, 3], vec![1]], "{minors:?}");
}

#[test]
fn a_device_that_fails_is_given_no_longer_and_stays_held() {
    let mut machine = machine(&["n1"]);
    machine.show_device(&device("n1", &[gpu(0), gpu(1)]));
    machine.show_pod(&whole("a"));
    assert_eq!(machine.run().1, placed(&[("a", "n1")]));
    let held = json!({ALLOCATED: r#"{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"100","koordinator.sh/gpu-memory-ratio":"100"}}]}"#});
    machine.show_pod(&bound(whole("a"), "n1", held));
    let mut broken = gpu(1);
    broken["health"] = json!(false);
    machine.show_device(&device("n1", &[gpu(0), broken]));
    machine.show_pod(&whole("b"));
    let (effects, bound_now) = machine.run();
    assert_eq!(
        (bound_now, &*told(&effects, "b")),
        (Vec::new(), "0/1 nodes are available: 1 Insufficient GPU Devices.")
    );
    // It works again, and helps the pod that waits; the other one is still held.
    machine.show_device(&device("n1", &[gpu(0), gpu(1)]));
    machine.pass(10);
    assert_eq!(machine.run().1, placed(&[("b", "n1")]));
    machine.show_pod(&whole("c"));
    assert_eq!(machine.run().1, []);
}

#[test]
fn devices_that_are_gone_come_back_as_they_are_held() {
    for lost in [
        Event::Object(ObjectChange::Gone(Kind::Device, "n1".into())),
        Event::Object(ObjectChange::Unserved(Kind::Device)),
        Event::Object(ObjectChange::Listed(Kind::Device, Vec::new())),
    ] {
        let mut machine = machine(&["n1"]);
        machine.show_device(&device("n1", &[gpu(0)]));
        let held = json!({ALLOCATED: r#"{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"60","koordinator.sh/gpu-memory-ratio":"60"}}]}"#});
        // Koordinator's own scheduler has placed it.
        let mut theirs = bound(pod("theirs", &json!({"koordinator.sh/gpu": "60"})), "n1", held);
        theirs["spec"]["schedulerName"] = json!("koord-scheduler");
        machine.show_pod(&theirs);
        machine.tell(lost.clone());
        machine.show_pod(&pod("half", &json!({"koordinator.sh/gpu": "50"})));
        assert_eq!(machine.run().1, [], "{lost:?}");
        machine.show_device(&device("n1", &[gpu(0)]));
        machine.pass(10);
        assert_eq!(machine.run().1, [], "{lost:?}: 60 and 50 percent are more than one card");
        machine.show_pod(&pod("less", &json!({"koordinator.sh/gpu": "40"})));
        assert_eq!(machine.run().1, placed(&[("less", "n1")]), "{lost:?}");
    }
}

/// What is said of the pod that waits; its condition then says so.
pub(crate) fn say(machine: &mut Machine, name: &str) -> String {
    let effects = machine.settle();
    for effect in &effects {
        if let Effect::TellUnschedulable { pod, reason, .. } = effect {
            machine.tell(heard(pod.clone(), reason));
        }
    }
    told(&effects, name)
}

#[test]
fn what_a_pod_waits_for_is_said_at_once_when_a_device_changes() {
    for lost in [
        Event::Object(ObjectChange::Gone(Kind::Device, "n1".into())),
        Event::Object(ObjectChange::Unserved(Kind::Device)),
        Event::Object(ObjectChange::Listed(Kind::Device, Vec::new())),
    ] {
        let mut machine = machine(&["n1", "n2"]);
        machine.show_device(&device("n1", &[gpu(0)]));
        machine.show_pod(&pod("pair", &json!({"koordinator.sh/gpu": "200"})));
        let with = say(&mut machine, "pair");
        machine.pass(2);
        machine.tell(lost.clone());
        let without = say(&mut machine, "pair");
        machine.pass(2);
        machine.show_device(&device("n1", &[gpu(0)]));
        assert_eq!(
            [with, without, say(&mut machine, "pair")],
            [
                "0/2 nodes are available: 1 Insufficient GPU Devices, 1 node(s) had no GPUs of the kind that the Pod asks for.",
                "0/2 nodes are available: 2 node(s) had no GPUs of the kind that the Pod asks for.",
                "0/2 nodes are available: 1 Insufficient GPU Devices, 1 node(s) had no GPUs of the kind that the Pod asks for.",
            ],
            "{lost:?}"
        );
    }
}

#[test]
fn a_malformed_device_costs_its_node_alone() {
    let mut machine = machine(&["n1", "n2"]);
    let mut broken = gpu(0);
    broken["resources"]["koordinator.sh/gpu-core"] = json!("all");
    let troubles = machine.show_device(&device("n1", &[broken]));
    assert_eq!(troubles, ["spec.devices[0].resources[koordinator.sh/gpu-core]: `all` is not a quantity"]);
    machine.show_device(&device("n2", &[gpu(0)]));
    machine.show_pod(&whole("a"));
    machine.show_pod(&whole("b"));
    let (effects, bound_now) = machine.run();
    assert_eq!(bound_now, placed(&[("a", "n2")]));
    assert!(
        told(&effects, "b").ends_with("1 node(s) had an unreadable GPU registration."),
        "{}",
        told(&effects, "b")
    );
    machine.show_device(&device("n1", &[gpu(0)]));
    machine.pass(10);
    assert_eq!(machine.run().1, placed(&[("b", "n1")]));
}

#[test]
fn a_card_of_two_plugins_has_one_account() {
    let registered = "GPU-0,10,16384,100,NVIDIA-A100,0,true,0,:";
    let shared = node(
        "n1",
        &json!({"hami.io/node-nvidia-register": registered, "hami.io/node-handshake": "Reported 2026-01-01 00:00:00"}),
    );
    let mut machine = Machine::new(&Config::default(), &[shared], &[]);
    machine.show_device(&device("n1", &[gpu(0)]));
    let held = json!({
        "hami.io/vgpu-devices-allocated": "GPU-0,NVIDIA,10000,0:;", "hami.io/bind-phase": "success", "hami.io/vgpu-node": "n1",
    });
    let theirs = pod("hami", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "10000"}));
    machine.show_pod(&bound(theirs, "n1", held));
    machine.show_pod(&pod("much", &json!({"koordinator.sh/gpu-memory": "8Gi"})));
    assert_eq!(machine.run().1, []);
    machine.show_pod(&pod("little", &json!({"koordinator.sh/gpu-memory": "4Gi"})));
    assert_eq!(machine.run().1, placed(&[("little", "n1")]));
}

#[test]
fn a_label_of_the_node_counts_for_its_devices() {
    let mut machine = machine(&["n1"]);
    machine.show_device(&device("n1", &[gpu(0)]));
    let mut labelled = node("n1", &json!({}));
    labelled["metadata"]["labels"] = json!({"node.koordinator.sh/gpu-vendor": "cambricon"});
    machine.show_node(&labelled);
    machine.show_pod(&whole("a"));
    let (effects, bound_now) = machine.run();
    let plugin = "0/1 nodes are available: 1 node(s) GPU device plugin is not called for the Pod, which names no resource of its vendor.";
    assert_eq!((bound_now, &*told(&effects, "a")), (Vec::new(), plugin));
    machine.show_node(&node("n1", &json!({})));
    machine.pass(10);
    assert_eq!(machine.run().1, placed(&[("a", "n1")]));
}

#[test]
fn a_share_of_an_ascend_card_waits_for_its_template_on_nodes_of_its_model() {
    let npu = |model: &str| {
        let mut npu = gpu(0);
        npu["resources"]["huawei.com/npu-core"] = json!("8");
        let labels =
            json!({"node.koordinator.sh/gpu-vendor": "huawei", "node.koordinator.sh/gpu-model": model});
        json!({"metadata": {"name": model, "labels": labels}, "spec": {"devices": [npu]}})
    };
    let mut machine = machine(&["old", "new"]);
    machine.show_device(&npu("old"));
    machine.show_device(&npu("new"));
    let share = |name: &str| {
        let limits = json!({
            "koordinator.sh/gpu.shared": "1", "koordinator.sh/gpu-memory": "4Gi",
            "huawei.com/npu-core": "2", "huawei.com/npu-cpu": "1",
        });
        pod(name, &limits)
    };
    let template = "{a: {huawei.com/npu-core: 2, huawei.com/npu-cpu: 1, koordinator.sh/gpu-memory: 4Gi}}";
    machine.show_pod(&share("first"));
    let (effects, bound_now) = machine.run();
    let message = "0/2 nodes are available: 2 no matched GPU shared resource template.";
    assert_eq!((bound_now, &*told(&effects, "first")), (Vec::new(), message));
    machine.show_templates(&format!("huawei-new: {template}"));
    machine.pass(10);
    assert_eq!(machine.run().1, placed(&[("first", "new")]));
    // A node that is seen again keeps the templates of its model.
    machine.show_node(&node("new", &json!({"a": "b"})));
    machine.show_pod(&share("second"));
    assert_eq!(machine.run().1, placed(&[("second", "new")]));
    machine.tell(Event::Object(ObjectChange::Gone(
        Kind::ShareTemplates,
        "koordinator-system/gpu-shared-resource-templates".into(),
    )));
    machine.show_pod(&share("third"));
    assert_eq!(machine.run().1, []);
}

/// A pod whose containers ask for GPUs of their own, each for so many percent.
fn by_container(name: &str, percent: &[u32]) -> Value {
    let container = |(at, percent): (usize, &u32)| {
        let limits = json!({"koordinator.sh/gpu": percent.to_string()});
        json!({"name": format!("c{at}"), "image": "train", "resources": {"limits": limits}})
    };
    let mut pod = pod(name, &json!({}));
    pod["spec"]["containers"] = percent.iter().enumerate().map(container).collect();
    pod["metadata"]["annotations"] = json!({"berth.dev/devices-per-container": "true"});
    pod
}

#[test]
fn containers_have_gpus_of_their_own_and_the_pod_has_them_all() {
    let mut machine = machine(&["n1"]);
    machine.show_device(&device("n1", &[gpu(0), gpu(1), gpu(2)]));
    // A whole card finds room although a share comes before it, and two shares make one card.
    machine.show_pod(&by_container("pod", &[60, 200, 40]));
    let effects = machine.settle();
    let [Effect::Bind { allocations, node, .. }] = &effects[..] else { panic!("{effects:?}") };
    let dialect = machine.reader().dialects().named(&allocations[0].profile).unwrap().clone();
    let written = dialect.record(&allocations[0].assignment, node, machine.now()).annotations;
    let read = |key: &str| serde_json::from_str::<Value>(&written[key]).unwrap();
    let whole = read(ALLOCATED);
    let cores = |device: &Value| device["resources"]["koordinator.sh/gpu-core"].as_str().unwrap().to_owned();
    let cores: Vec<_> = whole["gpu"].as_array().unwrap().iter().map(cores).collect();
    assert_eq!(cores, ["100", "100", "100"]);
    let own = read("berth.dev/device-allocated");
    assert_eq!((&own["c0"]["gpu"][0]["minor"], &own["c2"]["gpu"][0]["minor"]), (&json!(2), &json!(2)));
    assert_eq!(own["c2"]["gpu"][0]["resources"]["koordinator.sh/gpu-core"], "40");
    assert_eq!(written["berth.dev/visible-devices.c1"], "GPU-0,GPU-1");
    // After a restart the pod holds the same.
    let mut restarted = self::machine(&["n1"]);
    restarted.show_device(&device("n1", &[gpu(0), gpu(1), gpu(2)]));
    restarted.show_pod(&bound(by_container("pod", &[60, 200, 40]), "n1", json!(written)));
    restarted.show_pod(&pod("late", &json!({"koordinator.sh/gpu": "10"})));
    assert_eq!(restarted.run().1, []);
}

#[test]
fn a_pod_of_which_one_container_finds_nothing_is_given_nothing() {
    let mut machine = machine(&["n1"]);
    machine.show_device(&device("n1", &[gpu(0), gpu(1)]));
    machine.show_pod(&by_container("large", &[100, 60, 60]));
    let (effects, bound_now) = machine.run();
    assert_eq!(
        (bound_now, &*told(&effects, "large")),
        (Vec::new(), "0/1 nodes are available: 1 Insufficient GPU Devices.")
    );
    machine.show_pod(&by_container("fits", &[60, 40, 100]));
    assert_eq!(machine.run().1, placed(&[("fits", "n1")]));
}

/// What the pods that may come ask of each GPU, of how many, and how many such pods there are.
fn asked_of_gpus(machine: &Machine) -> Vec<(u32, MemoryRequest, CoreRequest, bool, u32)> {
    let shapes = machine.scheduler().snapshot().packing().shapes();
    // Made-up pods ask as those of a device plugin do.
    let typed = shapes.filter(|(shape, _)| shape.cards.share.typed);
    let mut asked: Vec<_> = typed
        .map(|(shape, weight)| {
            let CardShape { count, share } = &shape.cards;
            (*count, share.memory, share.cores, share.alone, weight / 1024)
        })
        .collect();
    asked.sort();
    asked
}

#[test]
fn pods_that_hold_devices_or_wait_for_some_count_among_those_that_may_come() {
    let mut machine = machine(&["n1"]);
    machine.show_device(&device("n1", &[gpu(0), gpu(1), nic(0)]));
    assert_eq!(asked_of_gpus(&machine), []);
    let percent =
        |percent| (MemoryRequest::Part(Percent::new(percent)), CoreRequest::Exact(Cores::new(percent)));
    let ((half, half_cores), (all, all_cores)) = (percent(50), percent(100));
    let held = json!({ALLOCATED: r#"{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"50","koordinator.sh/gpu-memory-ratio":"50"}}]}"#});
    machine.show_pod(&bound(pod("half", &json!({"koordinator.sh/gpu": "50"})), "n1", held));
    // It waits, as one GPU is in use.
    machine.show_pod(&pod("both", &json!({"koordinator.sh/gpu": "200", "koordinator.sh/rdma": "1"})));
    say(&mut machine, "both");
    machine.show_pod(&pod("nic", &json!({"koordinator.sh/rdma": "1"})));
    assert_eq!(machine.run().1, placed(&[("nic", "n1")]));
    assert_eq!(asked_of_gpus(&machine), [(1, half, half_cores, false, 1), (2, all, all_cores, true, 1)]);
    let by_amount = json!({"koordinator.sh/gpu-memory": "4000Mi", "koordinator.sh/gpu-core": "30"});
    machine.show_pod(&pod("later", &by_amount));
    let later = (MemoryRequest::Exact(MiB::new(4000)), CoreRequest::Exact(Cores::new(30)));
    assert_eq!(machine.run().1, placed(&[("later", "n1")]));
    assert!(!asked_of_gpus(&machine).iter().any(|(_, memory, ..)| *memory == later.0), "it is not bound yet");
    let held = json!({ALLOCATED: r#"{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"30","koordinator.sh/gpu-memory":"4000Mi"}}]}"#});
    machine.show_pod(&bound(pod("later", &by_amount), "n1", held));
    machine.run();
    assert!(asked_of_gpus(&machine).contains(&(1, later.0, later.1, false, 1)));
    machine.tell(Event::Pod(PodChange::Ended("half".into())));
    machine.run();
    assert!(!asked_of_gpus(&machine).iter().any(|(_, memory, ..)| *memory == half));
}

#[test]
fn a_pod_without_a_share_leaves_cpu_and_memory_to_gpus_that_are_listed_as_devices() {
    let mut machine = machine(&["a", "b"]);
    machine.show_device(&device("a", &[gpu(0), gpu(1)]));
    machine.show_pod(&pod("plain", &json!({"cpu": "1"})));
    assert_eq!(machine.run().1, placed(&[("plain", "b")]));
}

#[test]
fn a_gpu_that_is_in_use_as_a_device_is_not_free_to_the_pods_that_may_come() {
    let mut machine = machine(&["a", "b"]);
    for name in ["a", "b"] {
        machine.show_device(&device(name, &[gpu(0), gpu(1)]));
    }
    let held = json!({ALLOCATED: r#"{"gpu":[
        {"minor":0,"resources":{"koordinator.sh/gpu-core":"100","koordinator.sh/gpu-memory-ratio":"100"}},
        {"minor":1,"resources":{"koordinator.sh/gpu-core":"100","koordinator.sh/gpu-memory-ratio":"100"}}]}"#});
    machine.show_pod(&bound(pod("both", &json!({"koordinator.sh/gpu": "200"})), "b", held));
    // All GPUs of the second node are given away: its cpu is of no use to them.
    machine.show_pod(&pod("plain", &json!({"cpu": "1"})));
    assert_eq!(machine.run().1, placed(&[("plain", "b")]));
}
