//! What one user's objects cost the pods of another: a second user's pod, the probe, is decided in the first turn after it is seen,
//! whatever the first user has in the queue. Work is counted in turns and decisions, never timed.

use std::ops::ControlFlow;

use berth::{
    cluster::read::group::pod_group,
    config::Config,
    dra::Toll,
    scheduling::{
        Computed, Effect, Event, NodeChange, ObjectChange, PodChange,
        decide::comparison::ClaimComparison,
        model::{
            kind::{Kind, PodGroupKind},
            steps::PER_MILLISECOND,
        },
        world::object::Object,
    },
};
use serde_json::{Value, json};

use super::{
    device_claims::{listed, user, writes},
    machine::{Machine, node, parsed, pod, told},
};

const REGISTER: &str = "hami.io/node-nvidia-register";

/// A node with eight cards of 80 GiB.
fn gpu_node(name: &str) -> Value {
    let card = |at: usize| {
        json!({"id": format!("GPU-{name}-{at}"), "index": at, "count": 10, "devmem": 81920, "devcore": 100,
            "type": "NVIDIA-H100", "numa": 0, "mode": "hami-core", "health": true})
    };
    let cards: Vec<_> = (0..8).map(card).collect();
    node(name, &json!({REGISTER: json!(cards).to_string()}))
}

fn cluster(nodes: usize) -> Machine {
    let nodes: Vec<_> = (0..nodes).map(|at| gpu_node(&format!("n{at:03}"))).collect();
    Machine::new(&Config::default(), &nodes, &[])
}

/// A share pod of this namespace.
fn share(namespace: &str, name: &str, memory: usize) -> Value {
    let limits = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string(), "cpu": "1m"});
    let mut pod = pod(name, &limits);
    pod["metadata"]["namespace"] = json!(namespace);
    pod
}

fn locks(effects: &[Effect], name: &str) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::TakeLock { pod, .. } if &*pod.name == name))
}

/// Whether the probe has a place after one turn, and how many pods of the others wait to be decided after that.
fn probe(machine: &mut Machine) -> (bool, usize) {
    machine.show_pod(&share("other", "probe", 1000));
    machine.settle();
    let is_placed = machine.scheduler().snapshot().ledger().get(&"probe".into()).is_some();
    (is_placed, machine.scheduler().view().standing(machine.now()).active)
}

#[test]
fn pods_that_are_each_a_class_of_their_own_hold_up_no_pod_of_another_namespace() {
    let mut machine = cluster(100);
    for at in 0..3000 {
        machine.show_pod(&share("greedy", &format!("g{at}"), 1000 + at));
    }
    machine.settle();
    let (first, _) = machine.take_decisions();
    assert!((1..1500).contains(&first), "a turn decides some of them and ends: {first}");
    let (decided, active) = probe(&mut machine);
    assert!(decided, "the probe goes before {active} older pods");
    assert!(active > 1000, "most of the others are still to be decided: {active}");
    assert!(machine.next_deadline().is_some(), "they are decided without another event");
    // While the probe is on its way, the others get a part of the time; it is not on its way for ever.
    machine.settle();
    let (passed_over, _) = machine.take_decisions();
    machine.pass(1);
    machine.settle();
    let (later, _) = machine.take_decisions();
    assert!(passed_over <= 1 && later > 30, "{passed_over} at once, {later} a second later");
}

#[test]
fn pods_of_another_namespace_in_the_same_line_are_served_in_turn() {
    let mut machine = cluster(1);
    for at in 0..7 {
        machine.show_pod(&share("greedy", &format!("g{at}"), 1000));
    }
    let locked = machine.settle();
    assert!(locks(&locked, "g0"), "{locked:?}");
    machine.show_pod(&share("other", "probe", 1000));
    machine.show_pod(&share("other", "probe-2", 1000));
    machine.settle();
    let line = machine.scheduler().view().line("n000");
    let names = ["g0", "g1", "probe", "g2", "probe-2", "g3", "g4", "g5", "g6"];
    assert_eq!(line, names, "one of each namespace after the other");
}

#[test]
fn a_namespace_that_is_alone_uses_the_whole_time() {
    let mut machine = cluster(50);
    for at in 0..4000 {
        machine.show_pod(&share("greedy", &format!("g{at}"), 90_000 + at));
    }
    let mut turns = 0;
    while machine.next_deadline().is_some_and(|at| at <= machine.now()) || turns == 0 {
        machine.settle();
        turns += 1;
        assert!(turns < 1000);
    }
    let active = machine.scheduler().view().standing(machine.now()).active;
    assert_eq!(active, 0, "no time has passed, and all of them were decided, in {turns} turns");
    assert!(turns > 1, "between turns the loop takes in what has happened");
}

/// So many gangs of `size` pods of namespace `greedy`, of which one can never be placed.
fn impossible_gangs(machine: &mut Machine, gangs: usize, size: usize) {
    for gang in 0..gangs {
        for at in 0..size {
            let memory = if at + 1 == size { 90_000 } else { 1000 };
            let mut pod = share("greedy", &format!("g{gang}-{at}"), memory);
            pod["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": format!("gang-{gang}")});
            machine.show_pod(&pod);
        }
    }
}

#[test]
fn gangs_with_an_impossible_member_hold_up_no_pod_of_another_namespace() {
    let nodes: Vec<_> = (0..100).map(|at| gpu_node(&format!("n{at:03}"))).collect();
    let mut machine = Machine::with_gangs(&Config::default(), &nodes);
    let groups = (0..4).map(|gang| {
        let group = json!({"metadata": {"name": format!("gang-{gang}"), "namespace": "greedy"}, "spec": {"minMember": 500}});
        pod_group(PodGroupKind::Volcano, &parsed(&group))
    });
    machine
        .tell(Event::Object(ObjectChange::Listed(Kind::PodGroup(PodGroupKind::Volcano), groups.collect())));
    impossible_gangs(&mut machine, 4, 500);
    machine.settle();
    let (decided, active) = probe(&mut machine);
    assert!(decided, "the probe goes before the gangs, of whose pods {active} are still to be decided");
}

/// 100 ms, in steps: what no pod and no gang may cost another pod.
const MOST: u64 = 100 * PER_MILLISECOND;

/// Its pods make sixteen different requests, and the last pod fits nowhere.
#[test]
fn one_attempt_for_a_gang_is_no_longer_than_a_pod_of_another_namespace_may_wait() {
    let nodes: Vec<_> = (0..200).map(|at| gpu_node(&format!("n{at:03}"))).collect();
    let mut machine = Machine::with_gangs(&Config::default(), &nodes);
    let group = json!({"metadata": {"name": "gang-0", "namespace": "greedy"}, "spec": {"minMember": 500}});
    machine.tell(Event::Object(ObjectChange::Listed(
        Kind::PodGroup(PodGroupKind::Volcano),
        vec![pod_group(PodGroupKind::Volcano, &parsed(&group))],
    )));
    for at in 0..500 {
        let memory = if at == 499 { 90_000 } else { 1000 + at % 16 };
        let mut pod = share("greedy", &format!("g{at}"), memory);
        pod["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": "gang-0"});
        machine.show_pod(&pod);
    }
    machine.take_steps();
    machine.settle();
    let steps = machine.take_steps();
    let longest = steps.into_iter().max().unwrap();
    assert!(longest < MOST, "one attempt takes {longest} of {MOST} steps");
    assert!(longest > MOST / 100, "the attempt is counted: {longest}");
    let (decided, _) = probe(&mut machine);
    assert!(decided);
}

/// 40 pods with the most claims of volumes that a pod may have, among so many volumes. Each pod is too large for every card, so that it is decided
/// in vain.
fn pods_with_many_claims(volumes: usize, volume: impl Fn(usize) -> Value) -> Machine {
    let mut machine = cluster(100);
    let class = json!({"metadata": {"name": "local"}, "provisioner": "example.com/disks", "volumeBindingMode": "WaitForFirstConsumer"});
    machine.tell(Event::Object(ObjectChange::Listed(
        Kind::StorageClass,
        vec![Object::StorageClass(parsed(&class))],
    )));
    let volumes = (0..volumes).map(|at| Object::PersistentVolume(parsed(&volume(at))));
    machine.tell(Event::Object(ObjectChange::Listed(Kind::PersistentVolume, volumes.collect())));
    let claim = |at: usize| {
        let spec = json!({"storageClassName": "local", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        let metadata = json!({"name": format!("c{at}"), "namespace": "greedy", "uid": format!("uid-c{at}"), "resourceVersion": "1"});
        Object::PersistentVolumeClaim(parsed(&json!({"metadata": metadata, "spec": spec})))
    };
    machine
        .tell(Event::Object(ObjectChange::Listed(Kind::PersistentVolumeClaim, (0..32).map(claim).collect())));
    for at in 0..40 {
        let mut pod = share("greedy", &format!("g{at}"), 90_000 + at);
        let volume = |at: usize| json!({"name": format!("v{at}"), "persistentVolumeClaim": {"claimName": format!("c{at}")}});
        pod["spec"]["volumes"] = (0..32).map(volume).collect();
        machine.show_pod(&pod);
    }
    machine.take_steps();
    machine
}

/// A volume that is bound to a claim of another namespace, or to none.
fn volume(at: usize, is_bound: bool) -> Value {
    let taken = json!({"namespace": "third", "name": format!("c{at}"), "uid": format!("uid-{at}")});
    let mut spec = json!({"storageClassName": "local", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}});
    if is_bound {
        spec["claimRef"] = taken;
    }
    let phase = if is_bound { "Bound" } else { "Available" };
    json!({"metadata": {"name": format!("v{at:05}")}, "spec": spec, "status": {"phase": phase}})
}

#[test]
fn pods_with_many_claims_among_many_volumes_hold_up_no_pod_of_another_namespace() {
    let mut machine = pods_with_many_claims(10_000, |at| volume(at, false));
    machine.settle();
    let longest = machine.take_steps().into_iter().max().unwrap();
    assert!(longest < MOST, "a turn takes {longest} of {MOST} steps");
    let (decided, active) = probe(&mut machine);
    assert!(decided, "the probe goes before {active} older pods");
    assert!(active > 10, "most of the others are still to be decided: {active}");
}

#[test]
fn volumes_of_other_claims_cost_a_decision_nothing() {
    let steps = |volumes| {
        let mut machine = pods_with_many_claims(volumes, |at| volume(at, true));
        machine.settle();
        machine.take_steps().into_iter().sum::<u64>()
    };
    assert_eq!(steps(10_000), steps(10));
}

/// They stand in the namespace's own pods' way alone, which wait for them.
#[test]
fn thousands_of_pod_groups_hold_up_no_pod_of_another_namespace() {
    let nodes: Vec<_> = (0..20).map(|at| gpu_node(&format!("n{at:03}"))).collect();
    let mut machine = Machine::with_gangs(&Config::default(), &nodes);
    let groups = (0..3000).map(|gang| {
        let group = json!({"metadata": {"name": format!("gang-{gang}"), "namespace": "greedy"}, "spec": {"minMember": 2 + gang % 7}});
        pod_group(PodGroupKind::Volcano, &parsed(&group))
    });
    machine
        .tell(Event::Object(ObjectChange::Listed(Kind::PodGroup(PodGroupKind::Volcano), groups.collect())));
    for gang in 0..3000 {
        let mut pod = share("greedy", &format!("g{gang}"), 1000);
        pod["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": format!("gang-{gang}")});
        machine.show_pod(&pod);
    }
    machine.settle();
    let (decided, active) = probe(&mut machine);
    assert!(decided, "the probe goes before the gangs, of whose pods {active} are still to be decided");
}

/// A claim of one device of the class, with this selector.
fn claim(namespace: &str, name: &str, selector: &str) -> Event {
    let selectors = json!([{"cel": {"expression": selector}}]);
    let request = json!({"name": "gpu", "exactly": {"deviceClassName": "gpu", "selectors": selectors}});
    let metadata = json!({"name": name, "namespace": namespace, "uid": format!("uid-{namespace}-{name}"), "resourceVersion": "1"});
    let claim = json!({"metadata": metadata, "spec": {"devices": {"requests": [request]}}});
    Event::Object(ObjectChange::Seen(Object::ResourceClaim(parsed(&claim))))
}

fn slice(node: &str, devices: usize) -> Event {
    let capacity = json!({"memory": {"value": "80Gi"}});
    let device = |at: usize| json!({"name": format!("gpu-{at}"), "capacity": capacity});
    let devices: Vec<Value> = (0..devices).map(device).collect();
    let slice = json!({
        "metadata": {"name": format!("{node}-gpu.example.com")},
        "spec": {"driver": "gpu.example.com", "nodeName": node, "devices": devices,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}},
    });
    Event::Object(ObjectChange::Seen(Object::ResourceSlice(parsed(&slice))))
}

/// A selector of which one evaluation takes about a tenth of what one decision may: some milliseconds.
fn dear(sign: &str) -> String {
    let list = format!("[{}]", ["0"; 14].join(","));
    let memory = "device.capacity['gpu.example.com'].memory.compareTo(quantity('1Gi')) > 0";
    format!("{list}.all(x, {list}.all(y, {list}.all(z, x + y + z {sign} 0))) && {memory}")
}

fn user_of(namespace: &str, name: &str, claim: &str) -> Value {
    let mut pod = user(name, claim);
    pod["metadata"]["namespace"] = json!(namespace);
    pod
}

fn with_devices(nodes: usize, devices: usize) -> Machine {
    let mut machine = cluster(nodes);
    listed(&mut machine);
    for at in 0..nodes {
        machine.tell(slice(&format!("n{at:03}"), devices));
    }
    machine
}

fn comparisons(effects: Vec<Effect>) -> Vec<ClaimComparison> {
    let comparison = |effect| match effect {
        Effect::CompareClaims(comparison) => Some(comparison),
        _ => None,
    };
    effects.into_iter().filter_map(comparison).collect()
}

/// Carries out comparisons to their end, and returns how many there were.
fn compare_all(machine: &mut Machine, effects: Vec<Effect>) -> (usize, Vec<Effect>) {
    let (mut count, mut effects) = (0, effects);
    loop {
        let under_way = comparisons(effects.clone());
        if under_way.is_empty() {
            return (count, effects);
        }
        for comparison in under_way {
            count += 1;
            machine.tell(Event::Computed(Computed::Claims(comparison.run(|_| ControlFlow::Continue(())))));
        }
        // While the probe is on its way, the namespace goes on once its share has grown again.
        machine.pass(1);
        effects = machine.settle();
    }
}

#[test]
fn an_expensive_selector_is_evaluated_beside_the_decisions_and_its_owner_waits_for_it_alone() {
    let mut machine = with_devices(4, 8);
    machine.tell(claim("greedy", "c", &dear(">=")));
    machine.show_pod(&user_of("greedy", "p", "c"));
    machine.show_pod(&share("other", "probe", 1000));
    let effects = machine.settle();
    assert!(locks(&effects, "probe"), "{effects:?}");
    assert_eq!(told(&effects, "p"), "", "it says nothing while its claims are compared");
    let under_way = comparisons(effects.clone());
    assert_eq!(under_way.len(), 1);
    let mut evaluations = 0;
    let compared = under_way[0].run(|toll| {
        evaluations += usize::from(matches!(toll, Toll::Evaluation { .. }));
        ControlFlow::Continue(())
    });
    assert!((16..32).contains(&evaluations), "some of the 32 were evaluated in the decision: {evaluations}");
    machine.tell(Event::Computed(Computed::Claims(compared)));
    machine.pass(1);
    let effects = machine.settle();
    assert_eq!(comparisons(effects.clone()), [], "nothing is left to be compared");
    assert_eq!(writes(&effects).len(), 1, "{effects:?}");
}

#[test]
fn a_comparison_that_is_cut_short_goes_on_where_it_ended() {
    let mut machine = with_devices(4, 8);
    machine.tell(claim("greedy", "c", &dear("<")));
    machine.show_pod(&user_of("greedy", "p", "c"));
    let (mut effects, mut rounds, mut evaluations) = (machine.settle(), 0, 0);
    while let Some(comparison) = comparisons(effects).pop() {
        let mut left = 3;
        let compared = comparison.run(|toll| {
            let goes_on = left > 0;
            left -= 1;
            evaluations += usize::from(goes_on && matches!(toll, Toll::Evaluation { .. }));
            if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        machine.tell(Event::Computed(Computed::Claims(compared)));
        effects = machine.settle();
        rounds += 1;
        assert!(rounds < 32, "each round evaluates some");
    }
    assert!(evaluations <= 32, "no device is evaluated twice: {evaluations}");
    machine.show_pod(&share("other", "probe", 1000));
    assert!(locks(&machine.settle(), "probe"));
}

#[test]
fn claims_of_one_namespace_do_not_make_those_of_another_wait() {
    let mut machine = with_devices(4, 8);
    for at in 0..20 {
        let selector = format!("{} && {at} >= 0", dear(">="));
        machine.tell(claim("greedy", &format!("c{at}"), &selector));
        machine.show_pod(&user_of("greedy", &format!("p{at}"), &format!("c{at}")));
    }
    machine.tell(claim("other", "c", "device.driver == 'gpu.example.com'"));
    machine.show_pod(&user_of("other", "probe", "c"));
    let effects = machine.settle();
    assert_eq!(comparisons(effects.clone()).len(), 1, "one comparison of a namespace at a time");
    assert_eq!(writes(&effects).len(), 1, "the other's claim is decided in the turn: {effects:?}");
    let (count, _) = compare_all(&mut machine, effects);
    assert!(count >= 20, "each of the claims is compared in the end: {count}");
    let waiting = machine.scheduler().view().standing(machine.now());
    assert_eq!((waiting.active, waiting.unschedulable), (0, 0), "{waiting:?}");
}

#[test]
fn a_pod_that_is_gone_and_a_node_that_has_changed_do_no_harm_to_a_comparison() {
    let mut machine = with_devices(4, 8);
    machine.tell(claim("greedy", "c", &dear(">=")));
    machine.show_pod(&user_of("greedy", "p", "c"));
    let under_way = comparisons(machine.settle());
    let compared = under_way[0].run(|_| ControlFlow::Continue(()));
    machine.tell(Event::Node(NodeChange::Gone("n003".into())));
    machine.tell(slice("n002", 7));
    machine.tell(Event::Computed(Computed::Claims(compared)));
    let effects = machine.settle();
    let (_, effects) = compare_all(&mut machine, effects);
    assert_eq!(writes(&effects).len(), 1, "{effects:?}");

    machine.tell(claim("greedy", "d", &format!("{} && true", dear(">="))));
    machine.show_pod(&user_of("greedy", "q", "d"));
    let under_way = comparisons(machine.settle());
    machine.tell(Event::Pod(PodChange::Ended("q".into())));
    machine.tell(Event::Computed(Computed::Claims(under_way[0].run(|_| ControlFlow::Continue(())))));
    assert_eq!(comparisons(machine.settle()), []);
}

/// Eight requests for one device each that must all share a value which no two devices share.
fn search(name: &str) -> Event {
    let request = |at: usize| json!({"name": format!("r{at}"), "exactly": {"deviceClassName": "gpu"}});
    let requests: Vec<_> = (0..8).map(request).collect();
    let names: Vec<_> = (0..8).map(|at| format!("r{at}")).collect();
    let constraint = json!({"requests": names, "matchAttribute": "gpu.example.com/group"});
    let metadata =
        json!({"name": name, "namespace": "greedy", "uid": format!("uid-{name}"), "resourceVersion": "1"});
    let claim = json!({"metadata": metadata, "spec": {"devices": {"requests": requests, "constraints": [constraint]}}});
    Event::Object(ObjectChange::Seen(Object::ResourceClaim(parsed(&claim))))
}

/// Devices of which seven share a value, each with a further one of its own so that none is tried for another.
fn grouped_slice(node: &str) -> Event {
    let device = |at: usize| {
        let group = if at < 7 { "a".to_owned() } else { format!("b{at}") };
        json!({"name": format!("gpu-{at}"), "allowMultipleAllocations": true,
            "attributes": {"group": {"string": group}}, "capacity": {"memory": {"value": "80Gi", "requestPolicy": {"default": "80Gi"}}}})
    };
    let devices: Vec<Value> = (0..8).map(device).collect();
    let slice = json!({
        "metadata": {"name": format!("{node}-gpu.example.com")},
        "spec": {"driver": "gpu.example.com", "nodeName": node, "devices": devices,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}},
    });
    Event::Object(ObjectChange::Seen(Object::ResourceSlice(parsed(&slice))))
}

#[test]
fn a_long_search_goes_on_beside_the_decisions() {
    let mut machine = cluster(2);
    listed(&mut machine);
    machine.tell(grouped_slice("n000"));
    machine.tell(search("c"));
    machine.show_pod(&user_of("greedy", "p", "c"));
    machine.show_pod(&share("other", "probe", 1000));
    let effects = machine.settle();
    assert!(locks(&effects, "probe"), "{effects:?}");
    let (count, effects) = compare_all(&mut machine, effects);
    // The probe has changed the node on which it is placed, so that the search there is repeated.
    assert!((1..=2).contains(&count), "{count}");
    assert!(
        told(&effects, "p").starts_with("0/2 nodes are available: 2 cannot allocate all claims"),
        "{effects:?}"
    );
}
