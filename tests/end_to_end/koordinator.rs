//! Koordinator's devices: pods get GPUs and NICs by type, koordlet starts them with these, and what changes on a node is seen.

use berth::config::Config;
use berth_sandbox::agent::{card::Health, node::Node};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    core::Status,
};
use serde_json::{Value, json};

use crate::{
    machines::{hami_node, koordinator_node, npu_node},
    support::floor::Floor,
    world::{World, and_container, annotation, node_of, pod},
};

pub(crate) const ALLOCATED: &str = "scheduling.koordinator.sh/device-allocated";

async fn at_work(floor: Floor, nodes: Vec<Node>) -> Option<World> {
    let mut world = World::with_devices(floor, nodes).await?;
    world.start_berth();
    Some(world)
}

/// A pod with these annotations of Koordinator's, each a JSON value.
fn hinted(name: &str, limits: &Value, hints: &[(&str, Value)]) -> Value {
    let mut pod = pod(name, limits);
    for (key, hint) in hints {
        pod["metadata"]["annotations"][format!("scheduling.koordinator.sh/{key}")] = hint.to_string().into();
    }
    pod
}

fn on_node(mut pod: Value, node: &str) -> Value {
    pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
    pod
}

/// What the pod was given, by the type of device.
fn given(pod: &k8s_openapi::api::core::v1::Pod) -> Value {
    serde_json::from_str(annotation(pod, ALLOCATED)).unwrap()
}

/// The numbers of the devices of a type that the pod was given.
pub(crate) fn minors(pod: &k8s_openapi::api::core::v1::Pod, kind: &str) -> Vec<u64> {
    let given = given(pod);
    let mut minors: Vec<u64> =
        given[kind].as_array().unwrap().iter().map(|device| device["minor"].as_u64().unwrap()).collect();
    minors.sort_unstable();
    minors
}

pub(crate) fn whole() -> Value {
    json!({"koordinator.sh/gpu": "100"})
}

pub(crate) async fn shares_fill_a_card_and_no_more(floor: Floor) {
    let Some(world) = at_work(floor, vec![koordinator_node("gpu-1", 1, 0)]).await else { return };
    let half = json!({"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50"});
    for name in ["first", "second"] {
        world.create(pod(name, &half)).await;
        let given = given(&world.running(name).await);
        let card = &given["gpu"][0];
        assert_eq!((&card["minor"], &card["id"]), (&json!(0), &json!("GPU-gpu-1-0")));
        assert_eq!(card["resources"]["koordinator.sh/gpu-memory"], "40Gi");
    }
    world.create(pod("third", &half)).await;
    world.unschedulable("third").await;
    world.delete_and_await(&["first"]).await;
    world.running("third").await;
    world.agents_are_content();
}

pub(crate) async fn whole_cards_are_given_to_one_pod_each(floor: Floor) {
    let Some(world) = at_work(floor, vec![koordinator_node("gpu-1", 4, 0)]).await else { return };
    let mut cards = Vec::new();
    for (name, percent) in [("three", "300"), ("one", "100")] {
        world.create(pod(name, &json!({"koordinator.sh/gpu": percent}))).await;
        cards.extend(minors(&world.running(name).await, "gpu"));
    }
    cards.sort_unstable();
    assert_eq!(cards, [0, 1, 2, 3]);
    world.agents_are_content();
}

pub(crate) async fn gpus_and_nics_are_chosen_together(floor: Floor) {
    let Some(world) = at_work(floor, vec![koordinator_node("gpu-1", 4, 2)]).await else { return };
    let joint = json!({"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"});
    let together = |name: &str| {
        let limits = json!({"koordinator.sh/gpu": "100", "koordinator.sh/rdma": "100"});
        hinted(name, &limits, &[("device-joint-allocate", joint.clone())])
    };
    world.create(pod("network", &json!({"koordinator.sh/rdma": "100"}))).await;
    let taken = minors(&world.running("network").await, "rdma")[0];
    // Two GPUs of the other root are free, and its NIC.
    let mut asking = together("first");
    asking["metadata"]["annotations"]["berth.dev/nccl"] = "true".into();
    world.create(asking).await;
    let first = world.running("first").await;
    let nic = minors(&first, "rdma")[0];
    let settings = format!("NCCL_IB_HCA==mlx5_{nic}\nNCCL_NET_GDR_LEVEL=PHB\n");
    assert_eq!(annotation(&first, "berth.dev/nccl-conf"), settings);
    assert_eq!((minors(&first, "gpu")[0] / 2, nic), (nic, 1 - taken));
    // GPUs are left, NICs are not.
    world.create(together("second")).await;
    world.unschedulable("second").await;
    world.delete_and_await(&["network"]).await;
    let second = world.running("second").await;
    assert_eq!((minors(&second, "gpu")[0] / 2, minors(&second, "rdma")), (taken, vec![taken]));
    world.agents_are_content();
}

pub(crate) async fn each_pod_gets_a_virtual_function_of_its_own(floor: Floor) {
    let Some(world) = at_work(floor, vec![koordinator_node("gpu-1", 1, 1)]).await else { return };
    let function = |name: &str| {
        let hint = json!({"rdma": {"vfSelector": {}}});
        hinted(name, &json!({"koordinator.sh/rdma": "1"}), &[("device-allocate-hint", hint)])
    };
    let mut functions = Vec::new();
    for name in ["first", "second"] {
        world.create(function(name)).await;
        let given = given(&world.running(name).await);
        functions.push(given["rdma"][0]["extension"]["vfs"][0]["busID"].as_str().unwrap().to_owned());
    }
    functions.sort();
    assert_eq!(functions, ["0000:01:00.2", "0000:01:00.3"]);
    world.create(function("third")).await;
    world.unschedulable("third").await;
    world.agents_are_content();
}

pub(crate) async fn a_pod_that_fits_nowhere_says_why(floor: Floor) {
    let Some(world) = at_work(floor, vec![koordinator_node("gpu-1", 2, 0)]).await else { return };
    world.create(pod("large", &json!({"koordinator.sh/gpu": "300"}))).await;
    assert_eq!(
        world.unschedulable("large").await,
        "0/1 nodes are available: 1 Insufficient koordinator.sh/gpu."
    );
    world.create(pod("fat", &json!({"koordinator.sh/gpu-memory": "90Gi"}))).await;
    assert_eq!(world.unschedulable("fat").await, "0/1 nodes are available: 1 Insufficient GPU Devices.");
    world.create(pod("network", &json!({"koordinator.sh/rdma": "100"}))).await;
    assert_eq!(world.unschedulable("network").await, "0/1 nodes are available: 1 Insufficient rdma devices.");
    world.agents_are_content();
}

pub(crate) async fn a_card_that_becomes_unhealthy_gets_no_further_pod(floor: Floor) {
    let nodes = vec![koordinator_node("gpu-1", 1, 0), koordinator_node("gpu-2", 1, 0)];
    let Some(mut world) = World::with_devices(floor, nodes).await else { return };
    world.fleet.set_health("gpu-2", "GPU-gpu-2-0", Health::Unhealthy).await.unwrap();
    world.start_berth();
    world.create(on_node(pod("probe", &whole()), "gpu-2")).await;
    world.unschedulable("probe").await;
    // Devices are seen in the order in which they change: once the probe runs, the first change is known.
    world.fleet.set_health("gpu-1", "GPU-gpu-1-0", Health::Unhealthy).await.unwrap();
    world.fleet.set_health("gpu-2", "GPU-gpu-2-0", Health::Healthy).await.unwrap();
    world.running("probe").await;
    world.create(pod("late", &whole())).await;
    world.unschedulable("late").await;
    world.fleet.set_health("gpu-1", "GPU-gpu-1-0", Health::Healthy).await.unwrap();
    assert_eq!(node_of(&world.running("late").await), "gpu-1");
    world.agents_are_content();
}

pub(crate) async fn a_device_that_can_not_be_read_costs_its_node_alone(floor: Floor) {
    let nodes = vec![koordinator_node("gpu-1", 1, 0), Node::new("gpu-2")];
    let Some(mut world) = World::with_devices(floor, nodes).await else { return };
    let device = |memory: &str| {
        let resources = json!({"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": memory, "koordinator.sh/gpu-memory-ratio": "100"});
        let device = json!({
            "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device", "metadata": {"name": "gpu-2"},
            "spec": {"devices": [{"type": "gpu", "id": "GPU-x", "minor": 0, "health": true, "resources": resources}]},
        });
        serde_json::from_value::<DynamicObject>(device).unwrap()
    };
    world.devices().create(&PostParams::default(), &device("lots")).await.unwrap();
    world.start_berth();
    world.create(pod("first", &whole())).await;
    assert_eq!(node_of(&world.running("first").await), "gpu-1");
    world.create(pod("second", &whole())).await;
    let unread = "0/2 nodes are available: 1 Insufficient koordinator.sh/gpu, 1 node(s) had an unreadable GPU registration.";
    assert_eq!(world.unschedulable("second").await, unread);
    // Mended, it serves the pod that waits.
    let mended = Patch::Merge(device("80Gi"));
    world.devices().patch("gpu-2", &PatchParams::default(), &mended).await.unwrap();
    assert_eq!(node_of(&world.running("second").await), "gpu-2");
    world.agents_are_content();
}

pub(crate) async fn pods_of_koordinators_scheduler_count(floor: Floor) {
    let Some(world) = at_work(floor, vec![koordinator_node("gpu-1", 2, 0)]).await else { return };
    let mut theirs = pod("theirs", &whole());
    theirs["spec"]["schedulerName"] = "koord-scheduler".into();
    world.create(theirs).await;
    let resources = json!({"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "80Gi", "koordinator.sh/gpu-memory-ratio": "100"});
    let allocated = json!({"gpu": [{"minor": 0, "id": "GPU-gpu-1-0", "resources": resources}]}).to_string();
    let binding = json!({
        "metadata": {"name": "theirs", "annotations": {ALLOCATED: allocated}},
        "target": {"kind": "Node", "name": "gpu-1"},
    });
    let binding: k8s_openapi::api::core::v1::Binding = serde_json::from_value(binding).unwrap();
    let params = PostParams::default();
    world.pods().create_subresource::<_, Status>("binding", "theirs", &params, &binding).await.unwrap();
    world.running("theirs").await;
    world.create(pod("ours", &whole())).await;
    assert_eq!(minors(&world.running("ours").await, "gpu"), [1]);
    world.create(pod("late", &whole())).await;
    world.unschedulable("late").await;
    world.delete_and_await(&["theirs"]).await;
    assert_eq!(minors(&world.running("late").await, "gpu"), [0]);
    world.agents_are_content();
}

pub(crate) async fn a_request_is_completed_and_placed_or_refused(floor: Floor) {
    let Some(mut world) = World::with_webhook(floor, vec![], json!({})).await else { return };
    world.join(floor, vec![koordinator_node("gpu-1", 2, 0)]).await;
    let unnamed = |name: &str, percent: &str| {
        let mut pod = pod(name, &json!({"koordinator.sh/gpu": percent}));
        pod["spec"]["schedulerName"].take();
        pod
    };
    world.create(unnamed("both", "200")).await;
    let both = world.running("both").await;
    let limits =
        both.spec.as_ref().unwrap().containers[0].resources.as_ref().unwrap().limits.clone().unwrap();
    let limits: Vec<_> = limits.iter().map(|(name, amount)| (name.as_str(), amount.0.as_str())).collect();
    let completed = [
        ("koordinator.sh/gpu-core", "200"),
        ("koordinator.sh/gpu-memory-ratio", "200"),
        ("koordinator.sh/gpu.shared", "2"),
    ];
    assert_eq!(limits, completed);
    assert_eq!(minors(&both, "gpu"), [0, 1]);
    let refused = serde_json::from_value(unnamed("more", "150")).unwrap();
    let refusal = world.pods().create(&PostParams::default(), &refused).await.unwrap_err().to_string();
    let why = "spec.containers[0].resources.limits[koordinator.sh/gpu]: 150 is above 100 percent and not a multiple of 100";
    assert!(refusal.contains(why), "{refusal}");
    world.agents_are_content();
}

pub(crate) async fn whole_cards_by_a_vendors_name_are_koordinators_where_the_setting_says_so(floor: Floor) {
    let nodes = vec![koordinator_node("gpu-1", 3, 0), hami_node("gpu-2", 2)];
    let Some(mut world) = World::with_devices(floor, nodes).await else { return };
    let (config, _) = Config::parse("dialects: {koordinator: {wholeCards: true}}", "berth.yaml").unwrap();
    world.start_berth_with(&config);
    world.create(pod("whole", &json!({"nvidia.com/gpu": "2"}))).await;
    let whole = world.running("whole").await;
    assert_eq!((node_of(&whole), minors(&whole, "gpu")), ("gpu-1", vec![0, 1]));
    world.create(pod("share", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"}))).await;
    assert_eq!(node_of(&world.running("share").await), "gpu-2");
    // HAMi's node has two cards with room, which are no whole cards of Koordinator's.
    world.create(pod("more", &json!({"nvidia.com/gpu": "2"}))).await;
    world.unschedulable("more").await;
    world.delete_and_await(&["whole"]).await;
    assert_eq!(minors(&world.running("more").await, "gpu"), [0, 1]);
    world.agents_are_content();
}

/// The ConfigMap with these templates.
fn templates(text: &str) -> ConfigMap {
    let metadata = json!({"namespace": "koordinator-system", "name": "gpu-shared-resource-templates"});
    serde_json::from_value(json!({"metadata": metadata, "data": {"data.yaml": text}})).unwrap()
}

pub(crate) async fn shares_of_ascend_cards_are_templates_of_the_config_map(floor: Floor) {
    let Some(world) = at_work(floor, vec![npu_node("npu-1", 1), koordinator_node("gpu-1", 1, 0)]).await
    else {
        return;
    };
    let share = |name: &str, cores: u32, memory: &str| {
        let limits = json!({
            "koordinator.sh/gpu.shared": "1", "koordinator.sh/gpu-memory": memory,
            "huawei.com/npu-core": cores.to_string(), "huawei.com/npu-cpu": cores.to_string(),
        });
        pod(name, &limits)
    };
    world.create(share("first", 2, "6Gi")).await;
    let message = "0/2 nodes are available: 2 no matched GPU shared resource template.";
    assert_eq!(world.unschedulable("first").await, message);
    let client = world.cluster.client.clone();
    let namespace = json!({"metadata": {"name": "koordinator-system"}});
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &serde_json::from_value(namespace).unwrap()).await.unwrap();
    let config_maps: Api<ConfigMap> = Api::namespaced(client, "koordinator-system");
    let vir02 = "huawei-Ascend-310P3:\n  vir02: {huawei.com/npu-core: 2, huawei.com/npu-cpu: 2, koordinator.sh/gpu-memory: 6Gi}\n";
    config_maps.create(&PostParams::default(), &templates(vir02)).await.unwrap();
    let first = world.running("first").await;
    assert_eq!(given(&first)["gpu"][0]["extension"]["gpuSharedResourceTemplate"], "vir02");
    assert_eq!(annotation(&first, "huawei.com/npu-core"), "0-vir02");
    // A further template is seen, and one that can't be read costs itself alone.
    world.create(share("second", 4, "12Gi")).await;
    world.unschedulable("second").await;
    let more = format!(
        "{vir02}  vir04: {{huawei.com/npu-core: 4, huawei.com/npu-cpu: 4, koordinator.sh/gpu-memory: 12Gi}}\n  vir08: {{huawei.com/npu-core: many}}\n"
    );
    config_maps
        .replace("gpu-shared-resource-templates", &PostParams::default(), &templates(&more))
        .await
        .unwrap();
    assert_eq!(annotation(&world.running("second").await, "huawei.com/npu-core"), "0-vir04");
    // 2 of 8 AI cores are left, and 1 of 7 AI CPUs.
    world.create(share("third", 2, "6Gi")).await;
    world.unschedulable("third").await;
    world.delete_and_await(&["first"]).await;
    world.running("third").await;
}

pub(crate) async fn containers_have_gpus_of_their_own(floor: Floor) {
    let Some(mut world) = World::with_webhook(floor, vec![], json!({})).await else { return };
    world.join(floor, vec![koordinator_node("gpu-1", 3, 0)]).await;
    let gpus = |percent: &str| json!({"koordinator.sh/gpu": percent});
    let mut both = and_container(and_container(pod("both", &gpus("100")), &gpus("50")), &json!({"cpu": "1"}));
    both["metadata"]["annotations"] = json!({"berth.dev/devices-per-container": "true"});
    both["spec"]["schedulerName"].take();
    world.create(both.clone()).await;
    let running = world.running("both").await;
    assert_eq!(minors(&running, "gpu"), [0, 1]);
    let containers = &running.spec.as_ref().unwrap().containers;
    let own: Value = serde_json::from_str(annotation(&running, "berth.dev/device-allocated")).unwrap();
    let second = &own[&containers[1].name]["gpu"][0];
    assert_eq!(
        (&second["minor"], &second["resources"]["koordinator.sh/gpu-core"]),
        (&json!(1), &json!("50"))
    );
    let shown = |at: usize| {
        let variables = containers[at].env.as_ref().unwrap();
        let variable = variables.iter().find(|variable| variable.name == "CUDA_VISIBLE_DEVICES").unwrap();
        let field =
            variable.value_from.as_ref().map(|source| source.field_ref.as_ref().unwrap().field_path.clone());
        (variable.value.clone(), field)
    };
    let key = format!("berth.dev/visible-devices.{}", containers[0].name);
    assert_eq!(annotation(&running, &key), "GPU-gpu-1-0");
    assert_eq!(shown(0).1, Some(format!("metadata.annotations['{key}']")));
    assert_eq!(shown(2), (Some("-1".to_owned()), None));
    // Half a card is left of the second, and the third.
    world.create(pod("half", &gpus("50"))).await;
    world.running("half").await;
    both["metadata"]["name"] = "second".into();
    world.create(both.clone()).await;
    world.unschedulable("second").await;
    both["metadata"]["name"] = "refused".into();
    both["metadata"]["annotations"] = json!({"berth.dev/devices-per-container": "perhaps"});
    let refused = serde_json::from_value(both).unwrap();
    let refusal = world.pods().create(&PostParams::default(), &refused).await.unwrap_err().to_string();
    assert!(
        refusal.contains("metadata.annotations[berth.dev/devices-per-container]: `perhaps` is neither"),
        "{refusal}"
    );
    world.agents_are_content();
}
