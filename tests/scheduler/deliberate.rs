//! What Berth does otherwise than upstream on purpose; `docs/conformance.md` gives the reasons.

use berth::{
    config::Config,
    device::Allocation,
    object::ResourceQuota,
    scheduling::{Effect, Event, QuotaChange},
};
use serde_json::{Value, json};

use super::machine::{Machine, bound, node, pod};

/// A node on which HAMi's plugin has registered cards of these sizes, in MiB.
fn hami(name: &str, sizes: &[u64]) -> Value {
    let card = |(at, size): (usize, &u64)| {
        json!({"id": format!("GPU-{name}-{at}"), "index": at, "count": 10, "devmem": size, "devcore": 100,
            "type": "NVIDIA A100", "numa": 0, "mode": "hami-core", "health": true})
    };
    let cards: Vec<_> = sizes.iter().enumerate().map(card).collect();
    node(name, &json!({"hami.io/node-nvidia-register": Value::from(cards).to_string()}))
}

/// A node on which Volcano's plugin has registered two cards; it advertises none of the plugin's resources.
fn volcano(name: &str) -> Value {
    let card = |at: u32| format!("GPU-{name}-{at},10,16384,NVIDIA-A100,true,hami-core:");
    let cards = [card(0), card(1)].concat();
    node(name, &json!({"volcano.sh/node-vgpu-register": cards}))
}

/// The cards that the pod would be bound with, once its node's lock is held.
fn cards(config: &Config, nodes: &[Value], pods: &[Value]) -> Vec<String> {
    let mut machine = Machine::new(config, nodes, pods);
    let mut effects = machine.settle();
    if let [Effect::TakeLock { pod, node, locks, .. }] = &effects[..] {
        let outcome = berth::scheduling::LockOutcome::Taken { resource_version: "9".to_owned() };
        let (pod, node, locks) = (pod.clone(), node.clone(), locks.clone());
        machine.tell(Event::LockAnswered { pod, node, locks, outcome });
        effects = machine.settle();
    }
    let [Effect::Bind { allocations, .. }] = &effects[..] else { panic!("{effects:?}") };
    let [Allocation { assignment, .. }] = &allocations[..] else { panic!("{allocations:?}") };
    assignment.shares().map(|share| share.card.to_string()).collect()
}

#[test]
fn the_scores_of_nodes_and_cards_include_the_request() {
    let policies = "dialects: {hami: {nodeSchedulerPolicy: binpack, gpuSchedulerPolicy: spread}}";
    let (config, _) = Config::parse(policies, "berth.yaml").unwrap();
    let share = pod("p", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"}));
    // Before the pod is on one of them, all nodes and all cards are equally empty.
    for nodes in [[hami("a", &[16_384]), hami("b", &[32_768])], [hami("a", &[32_768]), hami("b", &[16_384])]]
    {
        let small = nodes.iter().position(|node| node.to_string().contains("16384")).unwrap();
        let placed = cards(&config, &nodes, std::slice::from_ref(&share));
        assert_eq!(placed, [["GPU-a-0", "GPU-b-0"][small]], "the small node is fuller with the pod: binpack");
    }
    for (sizes, emptiest) in [([16_384, 32_768], "GPU-a-1"), ([32_768, 16_384], "GPU-a-0")] {
        let placed = cards(&config, &[hami("a", &sizes)], std::slice::from_ref(&share));
        assert_eq!(placed, [emptiest], "the large card is emptier with the pod: spread");
    }
}

#[test]
fn an_overdrawn_quota_of_cores_admits_a_pod_that_requests_none() {
    let config = Config::default();
    let device = "GPU-a-0,NVIDIA,1000,60:;";
    let annotations = json!({
        "hami.io/vgpu-node": "a", "hami.io/bind-phase": "success", "hami.io/vgpu-devices-allocated": device,
    });
    let cores = |cores: &str| json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000", "nvidia.com/gpucores": cores});
    let holder = bound(pod("holder", &cores("60")), "a", annotations);
    let hard = json!({"metadata": {"name": "gpus", "namespace": "default"}, "spec": {"hard": {"limits.nvidia.com/gpucores": "50"}}});
    let quota = config.reader().quota(&serde_json::from_value::<ResourceQuota>(hard).unwrap());
    assert_eq!(quota.1, []);
    for (requested, bindings) in [("0", 1), ("1", 0)] {
        let mut machine = Machine::new(&config, &[hami("a", &[16_384])], std::slice::from_ref(&holder));
        machine.tell(Event::Quota(QuotaChange::Seen(quota.0.clone())));
        machine.show_pod(&pod("p", &cores(requested)));
        assert_eq!(machine.run().1.len(), bindings, "60 of 50 percent are used, {requested} more requested");
    }
}

#[test]
fn volcanos_pods_leave_least_of_no_use_where_no_policy_is_set() {
    let config = Config::default();
    let device = "GPU-v-0,NVIDIA,1000,0:";
    let annotations = json!({
        "volcano.sh/vgpu-node": "v", "volcano.sh/bind-phase": "success", "volcano.sh/vgpu-ids-new": device,
    });
    let share = json!({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "1000"});
    let holder = bound(pod("holder", &share), "v", annotations);
    assert_eq!(cards(&config, &[volcano("v")], &[holder, pod("p", &share)]), ["GPU-v-0"]);
}

#[test]
fn a_volcano_node_that_does_not_advertise_cores_is_used() {
    let share = json!({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "1000", "volcano.sh/vgpu-cores": "30"});
    let mut silent = volcano("v");
    silent["status"]["allocatable"]["volcano.sh/vgpu-number"] = json!("20");
    silent["status"]["allocatable"]["volcano.sh/vgpu-memory"] = json!("32768");
    let mut machine = Machine::new(&Config::default(), &[silent], &[pod("p", &share)]);
    assert_eq!(machine.run().1, [("p".to_owned(), "v".to_owned())]);
}
