//! Gangs: the pods of a PodGroup are placed together or not at all, whichever API the group is of, also when the binder is killed on the way.

use std::collections::BTreeSet;

use berth_sandbox::{
    agent::{Answer, Behaviour, node::Node},
    claims::{
        DeviceClaims,
        driver::{Driver, cards},
    },
};
use k8s_openapi::api::core::v1 as core;
use kube::{
    Api, ResourceExt as _,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
        PostParams,
    },
    runtime::wait::await_condition,
};
use serde_json::{Value, json};

use crate::{
    deaths::{Death, Moment, Write},
    device_claims::{
        all_are_content, claim_of, claims, create_claim, create_template, device_of, machine, of_claim,
        of_template, request,
    },
    groups::{COMPOSITE, COSCHEDULING, GroupVersion, VOLCANO, kubernetes, pod_group},
    machines::hami_node,
    support::{build::Release, controlplane::Options, floor::Floor},
    world::{LIMIT, World, node_of, pod},
};

/// A pod of the group `train` that asks for so many MiB of a card that has 16,384.
fn member(api: GroupVersion, name: &str, memory: u32) -> Value {
    let mut pod = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string()}));
    if api == VOLCANO {
        pod["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": "train"});
    } else if api == COSCHEDULING {
        pod["metadata"]["labels"] = json!({"scheduling.x-k8s.io/pod-group": "train"});
    } else {
        pod["spec"]["schedulingGroup"] = json!({"podGroupName": "train"});
    }
    pod
}

impl World {
    async fn create_members(&self, api: GroupVersion, names: &[&str], memory: u32) {
        for name in names {
            self.create(member(api, name, memory)).await;
        }
    }

    async fn holds_nothing(&self, names: &[&str]) {
        for name in names {
            assert_eq!(node_of(&self.pods().get(name).await.unwrap()), "", "{name}");
        }
    }
}

pub(crate) async fn the_pods_of_a_group_are_placed_together_or_not_at_all(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, vec![hami_node("gpu-1", 2)]).await else { return };
    let groups = world.serve_groups(floor, VOLCANO).await;
    world.start_berth();
    let group = pod_group(VOLCANO, "train", &json!({"minMember": 3}));
    groups.create(&PostParams::default(), &group).await.unwrap();
    world.create_members(VOLCANO, &["a", "b"], 16_000).await;
    let waits = "PodGroup default/train: waiting for more pods: there are 2 (minimum 3)";
    world.unschedulable_with("a", waits).await;
    world.create_members(VOLCANO, &["c"], 16_000).await;
    let short = "0/1 nodes are available: 1 Insufficient GPU memory.";
    world
        .unschedulable_with(
            "a",
            &format!("PodGroup default/train: 2 of 3 pods fit (minimum 3); c does not: {short}"),
        )
        .await;
    world
        .unschedulable_with(
            "c",
            &format!("PodGroup default/train: 2 of 3 pods fit (minimum 3); this one does not: {short}"),
        )
        .await;
    world.holds_nothing(&["a", "b", "c"]).await;
    // A smaller minimum is met by two, and the third waits for room.
    let smaller = Patch::Merge(json!({"spec": {"minMember": 2}}));
    groups.patch("train", &PatchParams::default(), &smaller).await.unwrap();
    for name in ["a", "b"] {
        world.running(name).await;
    }
    world.holds_nothing(&["c"]).await;
    world.delete("a").await;
    world.running("c").await;
    world.agents_are_content();
}

/// The probe is a gang of another user: a PodGroup that can't be read keeps no other gang waiting, in a list as in a watch.
pub(crate) async fn a_pod_group_that_cannot_be_read_keeps_only_its_own_pods_waiting(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, vec![hami_node("gpu-1", 4)]).await else { return };
    let groups = world.serve_groups(floor, VOLCANO).await;
    let create = async |name: &str, spec: Value| {
        groups.create(&PostParams::default(), &pod_group(VOLCANO, name, &spec)).await.unwrap();
    };
    let of = |group: &str, name: &str| {
        let mut pod = member(VOLCANO, name, 8_000);
        pod["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": group});
        pod
    };
    let unread = |group: &str| {
        format!(
            "PodGroup default/{group}: spec.minMember can't be read: invalid type: string \"three\", expected i32"
        )
    };
    create("listed", json!({"minMember": "three", "queue": 7})).await;
    create("before", json!({"minMember": 2})).await;
    world.start_berth();
    world.create(of("listed", "hers")).await;
    world.create(of("before", "a")).await;
    world.create(of("before", "b")).await;
    world.unschedulable_with("hers", &unread("listed")).await;
    world.running("a").await;
    world.running("b").await;
    create("watched", json!({"minMember": "three"})).await;
    create("after", json!({"minMember": 2})).await;
    world.create(of("watched", "hers-too")).await;
    world.create(of("after", "c")).await;
    world.create(of("after", "d")).await;
    world.unschedulable_with("hers-too", &unread("watched")).await;
    world.running("c").await;
    world.running("d").await;
    // Once it can be read, its pods go.
    let mended = Patch::Merge(json!({"spec": {"minMember": 1}}));
    groups.patch("watched", &PatchParams::default(), &mended).await.unwrap();
    world.running("hers-too").await;
    world.holds_nothing(&["hers"]).await;
    world.agents_are_content();
}

pub(crate) async fn a_group_stays_within_one_rack(floor: Floor) {
    let nodes = ["left-1", "right-1", "right-2"].map(|name| hami_node(name, 1)).into();
    let Some(mut world) = World::without_berth(floor, nodes).await else { return };
    for name in ["left-1", "right-1", "right-2"] {
        let rack = name.split('-').next().unwrap();
        world.patch_node(name, json!({"metadata": {"labels": {"example.com/rack": rack}}})).await;
    }
    let groups = world.serve_groups(floor, COSCHEDULING).await;
    world.start_berth();
    let mut group = pod_group(COSCHEDULING, "train", &json!({"minMember": 2}));
    let rack = ("berth.dev/required-topology".to_owned(), "example.com/rack".to_owned());
    group.metadata.annotations = Some([rack].into());
    groups.create(&PostParams::default(), &group).await.unwrap();
    world.create_members(COSCHEDULING, &["a", "b"], 16_000).await;
    for name in ["a", "b"] {
        assert!(node_of(&world.running(name).await).starts_with("right-"), "{name}");
    }
    world.create_members(COSCHEDULING, &["c"], 16_000).await;
    let message = world.unschedulable("c").await;
    assert!(message.starts_with("PodGroup default/train: 2 of 3 pods fit on nodes with one value of example.com/rack, at best right (minimum 2)"), "{message}");
    world.agents_are_content();
}

/// The binder dies before and after the first Binding of a gang, and another goes on: the gang is completed on the room that it had.
pub(crate) async fn a_gang_is_completed_by_another_binder_after_a_kill(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, vec![hami_node("gpu-1", 2)]).await else { return };
    world.create_priority_classes().await;
    let groups = world.serve_groups(floor, VOLCANO).await;
    let group = pod_group(VOLCANO, "train", &json!({"minMember": 2}));
    groups.create(&PostParams::default(), &group).await.unwrap();
    for moment in [Moment::Before, Moment::After] {
        let death = Death::at(world.cluster.client.clone(), Write::Binding, moment);
        world.start_berth_through(death.client());
        world.create_members(VOLCANO, &["a", "b"], 16_000).await;
        death.reached().await;
        world.kill_berth().await;
        let mut rival = pod("rival", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "16000"}));
        if moment == Moment::After {
            // It may start before another binder sees it.
            world.running("a").await;
            // A gang that is bound in part comes first, whatever the priority of others.
            rival["spec"]["priorityClassName"] = json!("polite");
        }
        world.create(rival).await;
        world.start_berth();
        for name in ["a", "b"] {
            world.running(name).await;
        }
        world.delete_and_await(&["rival", "a", "b"]).await;
        world.kill_berth().await;
    }
    world.agents_are_content();
}

/// One pod is bound when the binder dies, and the other can't follow, since the node takes no pods any more. The bound one does not start: pods
/// that have started are not rolled back by a binder that does not know whether their gang was whole.
pub(crate) async fn a_gang_that_is_not_complete_in_time_is_rolled_back_and_placed_anew(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, vec![hami_node("gpu-1", 2)]).await else { return };
    let groups = world.serve_groups(floor, COSCHEDULING).await;
    let spec = json!({"minMember": 2, "scheduleTimeoutSeconds": 2});
    groups.create(&PostParams::default(), &pod_group(COSCHEDULING, "train", &spec)).await.unwrap();
    world.fleet.behave("gpu-1", Behaviour { answer: Answer::Never, ..Behaviour::default() }).unwrap();
    let death = Death::at(world.cluster.client.clone(), Write::Binding, Moment::After);
    world.start_berth_through(death.client());
    world.create_members(COSCHEDULING, &["a", "b"], 16_000).await;
    death.reached().await;
    world.kill_berth().await;
    world.patch_node("gpu-1", json!({"spec": {"unschedulable": true}})).await;
    world.start_berth();
    let a_is_bound = !node_of(&world.pods().get("a").await.unwrap()).is_empty();
    let (bound, other) = if a_is_bound { ("a", "b") } else { ("b", "a") };
    world.pod_when(bound, |pod| pod.metadata.deletion_timestamp.is_some()).await;
    world.event_when(bound, "Evicted").await;

    world.fleet.behave("gpu-1", Behaviour::default()).unwrap();
    let gone = await_condition(world.pods(), bound, |pod: Option<&core::Pod>| pod.is_none());
    tokio::time::timeout(LIMIT, gone).await.expect("the pod is gone in time").unwrap();
    world.holds_nothing(&[other]).await;
    world.patch_node("gpu-1", json!({"spec": {"unschedulable": false}})).await;
    world.create_members(COSCHEDULING, &[bound], 16_000).await;
    for name in ["a", "b"] {
        world.running(name).await;
    }
    world.agents_are_content();
}

impl World {
    /// A world with an API server that serves Kubernetes' own PodGroups, with further feature gates.
    async fn with_groups_of_kubernetes(nodes: &[&str], gates: &str) -> Option<Self> {
        Self::of_nodes(nodes.iter().map(|name| hami_node(name, 2)).collect(), gates).await
    }

    async fn of_nodes(nodes: Vec<Node>, gates: &str) -> Option<Self> {
        let api = kubernetes();
        let served = format!("--runtime-config={}/{}=true", api.0, api.1);
        let flags = vec![served, format!("--feature-gates=GenericWorkload=true{gates}")];
        let options = Options { apiserver_flags: flags, ..Options::default() };
        World::without_berth_on(Floor::Real, nodes, options).await
    }
}

/// A CompositePodGroup of one prefill and one decode PodGroup, which must be on one rack. It is preempted as a whole. An API server of 1.36 drops the
/// field by which a PodGroup is in it.
pub(crate) async fn a_group_of_groups_of_kubernetes_own_api() {
    let api = kubernetes();
    let workload = json!({"workloadName": "llm", "templateName": "shard"});
    let leaf = json!({"parentCompositePodGroupName": "llm", "workloadRef": workload,
        "schedulingPolicy": {"gang": {"minCount": 1}}});
    let of_group = |group: &str, name: &str| {
        let mut pod = member(api, name, 16_000);
        pod["spec"]["schedulingGroup"] = json!({"podGroupName": group});
        pod
    };
    if Release::of_tests().unwrap() <= Release::Usual {
        let Some(mut world) = World::with_groups_of_kubernetes(&["gpu-1"], "").await else { return };
        world.start_berth();
        let groups = world.serve_groups(Floor::Real, api).await;
        let spec =
            json!({"parentCompositePodGroupName": "llm", "schedulingPolicy": {"gang": {"minCount": 1}}});
        let made = groups.create(&PostParams::default(), &pod_group(api, "prefill", &spec)).await.unwrap();
        assert_eq!(made.data["spec"]["parentCompositePodGroupName"], Value::Null);
        world.create(of_group("prefill", "p")).await;
        world.running("p").await;
        return;
    }
    let gates = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true,CompositePodGroup=true";
    let served = format!("--runtime-config={}/{}=true,{}/{}=true", api.0, api.1, COMPOSITE.0, COMPOSITE.1);
    let flags = vec![served, format!("--feature-gates={gates}")];
    let options = Options { apiserver_flags: flags, ..Options::default() };
    let racks = ["left-1", "right-1", "right-2"];
    let nodes = racks.map(|name| hami_node(name, 1)).to_vec();
    let Some(mut world) = World::without_berth_on(Floor::Real, nodes, options).await else { return };
    for name in racks {
        let rack = name.split('-').next().unwrap();
        world.patch_node(name, json!({"metadata": {"labels": {"example.com/rack": rack}}})).await;
    }
    world.create_priority_classes().await;
    world.start_berth();
    let groups = world.serve_groups(Floor::Real, api).await;
    let composites = world.serve_groups(Floor::Real, COMPOSITE).await;
    for name in ["prefill", "decode"] {
        let made = groups.create(&PostParams::default(), &pod_group(api, name, &leaf)).await.unwrap();
        assert_eq!(made.data["spec"]["parentCompositePodGroupName"], "llm", "the API server keeps the field");
    }
    world.create(of_group("prefill", "p")).await;
    let no_parent = "CompositePodGroup default/llm not found, which spec.parentCompositePodGroupName of PodGroup default/prefill names";
    world.unschedulable_with("p", no_parent).await;
    let root = json!({"workloadRef": workload, "schedulingPolicy": {"gang": {"minGroupCount": 2}},
        "schedulingConstraints": {"topology": [{"key": "example.com/rack"}]}, "disruptionMode": {"all": {}}});
    composites.create(&PostParams::default(), &pod_group(COMPOSITE, "llm", &root)).await.unwrap();
    let waits = "CompositePodGroup default/llm: waiting for more pods: 1 of 2 groups have enough (minimum 2 groups); \
        PodGroup default/decode: there are 0 (minimum 1)";
    world.unschedulable_with("p", waits).await;
    world.holds_nothing(&["p"]).await;
    world.create(of_group("decode", "d")).await;
    for name in ["p", "d"] {
        assert!(node_of(&world.running(name).await).starts_with("right-"), "{name}");
    }
    for name in ["prefill", "decode"] {
        assert_eq!(group_condition(&groups, name, "True").await, ("Scheduled".to_owned(), String::new()));
    }
    // It needs two cards of the three, so that one pod of the tree has to go: both go.
    for name in ["urgent-1", "urgent-2"] {
        let mut urgent = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "16000"}));
        urgent["spec"]["priorityClassName"] = json!("high");
        world.create(urgent).await;
    }
    for name in ["p", "d"] {
        let gone = await_condition(world.pods(), name, |pod: Option<&core::Pod>| {
            pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some())
        });
        tokio::time::timeout(LIMIT, gone).await.expect("the pod goes in time").unwrap();
    }
    for name in ["urgent-1", "urgent-2"] {
        world.running(name).await;
    }
    world.agents_are_content();
}

/// Kubernetes 1.37 can serve PodGroups as `v1alpha3` and not as `v1beta1`. 1.36 has neither version, and does not start if it is told to serve one.
pub(crate) async fn groups_of_kubernetes_own_api_that_are_served_in_its_older_version_alone() {
    let version = |version| ApiResource::from_gvk(&GroupVersionKind::gvk(COMPOSITE.0, version, "PodGroup"));
    let served = format!("--runtime-config={}/{}=true", COMPOSITE.0, COMPOSITE.1);
    let flags = vec![served, "--feature-gates=GenericWorkload=true".to_owned()];
    let options = Options { apiserver_flags: flags, ..Options::default() };
    let nodes = vec![hami_node("gpu-1", 2)];
    let Some(mut world) = World::without_berth_on(Floor::Real, nodes, options).await else { return };
    world.start_berth();
    let of = |version_of_it| -> Api<DynamicObject> {
        Api::default_namespaced_with(world.cluster.client.clone(), &version(version_of_it))
    };
    let (groups, newer) = (of(COMPOSITE.1), of("v1beta1"));
    let is_404 = |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.code == 404);
    assert!(newer.list(&ListParams::default()).await.is_err_and(|error| is_404(&error)));
    let spec = json!({"schedulingPolicy": {"gang": {"minCount": 2}}});
    let group = json!({"apiVersion": format!("{}/{}", COMPOSITE.0, COMPOSITE.1), "kind": "PodGroup",
        "metadata": {"name": "train"}, "spec": spec});
    groups.create(&PostParams::default(), &serde_json::from_value(group).unwrap()).await.unwrap();
    world.create_members(COMPOSITE, &["a"], 16_000).await;
    let waits = "PodGroup default/train: waiting for more pods: there are 1 (minimum 2)";
    world.unschedulable_with("a", waits).await;
    world.create_members(COMPOSITE, &["b"], 16_000).await;
    for name in ["a", "b"] {
        world.running(name).await;
    }
    assert_eq!(group_condition(&groups, "train", "True").await, ("Scheduled".to_owned(), String::new()));
    world.agents_are_content();
}

/// The condition of the group that says whether its pods are placed, once it has this status: its reason and its message.
async fn group_condition(groups: &Api<DynamicObject>, name: &str, status: &str) -> (String, String) {
    let kind = match Release::of_tests().unwrap() {
        Release::V1_34 | Release::Usual => "PodGroupScheduled",
        Release::V1_37 => "PodGroupInitiallyScheduled",
    };
    let found = |group: &DynamicObject| -> Option<(String, String)> {
        let conditions = group.data["status"]["conditions"].as_array()?;
        let one = conditions.iter().find(|one| one["type"] == kind && one["status"] == status)?;
        let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
        Some((text("reason"), text("message")))
    };
    let has_it = |group: Option<&DynamicObject>| group.is_some_and(|group| found(group).is_some());
    let group = tokio::time::timeout(LIMIT, await_condition(groups.clone(), name, has_it)).await;
    let group = group.expect("the condition is written in time").unwrap();
    found(&group.expect("the group is there")).expect("the condition was seen")
}

/// Kubernetes' own PodGroups, which kube-apiserver serves where it is told to. Their status says whether the pods are placed.
pub(crate) async fn a_gang_of_kubernetes_own_api() {
    let api = kubernetes();
    let Some(mut world) = World::with_groups_of_kubernetes(&["gpu-1"], "").await else { return };
    world.start_berth();
    let groups = world.serve_groups(Floor::Real, api).await;
    let gang = json!({"schedulingPolicy": {"gang": {"minCount": 2}}});
    world.create_members(api, &["a"], 16_000).await;
    world.unschedulable_with("a", "PodGroup default/train not found").await;
    groups.create(&PostParams::default(), &pod_group(api, "train", &gang)).await.unwrap();
    let waits = "PodGroup default/train: waiting for more pods: there are 1 (minimum 2)";
    world.unschedulable_with("a", waits).await;
    world.patch_node("gpu-1", json!({"spec": {"unschedulable": true}})).await;
    world.create_members(api, &["b"], 16_000).await;
    let short = "PodGroup default/train: 0 of 2 pods fit (minimum 2)";
    assert_eq!(
        group_condition(&groups, "train", "False").await,
        ("Unschedulable".to_owned(), short.to_owned())
    );
    world.patch_node("gpu-1", json!({"spec": {"unschedulable": false}})).await;
    for name in ["a", "b"] {
        world.running(name).await;
    }
    assert_eq!(group_condition(&groups, "train", "True").await, ("Scheduled".to_owned(), String::new()));
    world.agents_are_content();
}

/// Of a PodGroup whose pods are disrupted together, all pods go for one that needs the room of one of them; those on the other node too. A pod with
/// another priority than its PodGroup is not placed.
pub(crate) async fn a_group_of_kubernetes_own_api_that_is_preempted_as_a_whole() {
    let api = kubernetes();
    let (mode, gates) = match Release::of_tests().unwrap() {
        Release::V1_34 | Release::Usual => {
            (json!("PodGroup"), ",GangScheduling=true,WorkloadAwarePreemption=true")
        }
        Release::V1_37 => (json!({"all": {}}), ""),
    };
    let Some(mut world) = World::with_groups_of_kubernetes(&["gpu-1", "gpu-2"], gates).await else { return };
    world.create_priority_classes().await;
    world.start_berth();
    let groups = world.serve_groups(Floor::Real, api).await;
    let spec = json!({"schedulingPolicy": {"gang": {"minCount": 4}}, "disruptionMode": mode});
    groups.create(&PostParams::default(), &pod_group(api, "train", &spec)).await.unwrap();
    let names = ["a", "b", "c", "d"];
    world.create_members(api, &names, 16_000).await;
    let mut nodes = BTreeSet::new();
    for name in names {
        nodes.insert(node_of(&world.running(name).await).to_owned());
    }
    assert_eq!(nodes.len(), 2, "{nodes:?}");
    let mut stranger = member(api, "stranger", 100);
    stranger["spec"]["priorityClassName"] = json!("high");
    world.create(stranger).await;
    let refused =
        "PodGroup default/train: spec.priority is 0, but that of this pod is 1000; both must be equal";
    world.unschedulable_with("stranger", refused).await;
    let mut urgent = pod("urgent", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "16000"}));
    urgent["spec"]["priorityClassName"] = json!("high");
    world.create(urgent).await;
    for name in names {
        let gone = await_condition(world.pods(), name, |pod: Option<&core::Pod>| {
            pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some())
        });
        tokio::time::timeout(LIMIT, gone).await.expect("the pod goes in time").unwrap();
    }
    world.running("urgent").await;
    world.agents_are_content();
}

/// A node with one card of a driver, Berth, and PodGroups of Kubernetes' own API, which may have claims.
async fn with_claims_of_groups() -> Option<(World, DeviceClaims, Api<DynamicObject>)> {
    let gates = ",DRAWorkloadResourceClaims=true";
    let mut world = World::of_nodes(vec![machine("gpu-1")], gates).await?;
    Driver::Nvidia.publish(&world.cluster.client, "gpu-1", &cards("gpu-1", 1), 1).await.unwrap();
    let device_claims = DeviceClaims::start(world.cluster.client.clone());
    world.start_berth();
    let groups = world.serve_groups(Floor::Real, kubernetes()).await;
    Some((world, device_claims, groups))
}

/// Creates the PodGroup `train` of two pods with these claims; how their statuses name it as their user.
async fn create_group(groups: &Api<DynamicObject>, of_group: &Value) -> Value {
    let spec = json!({"schedulingPolicy": {"gang": {"minCount": 2}}, "resourceClaims": of_group});
    let group = pod_group(kubernetes(), "train", &spec);
    let group = groups.create(&PostParams::default(), &group).await.unwrap();
    assert_eq!(group.data["spec"]["resourceClaims"], *of_group, "the API server keeps the field");
    let uid = group.metadata.uid.unwrap();
    json!([{"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": uid}])
}

/// Deletes the PodGroup `train`, none of whose pods is left.
async fn delete_group(world: &World, groups: &Api<DynamicObject>) {
    // kube-controller-manager does that once no pod of the group is left.
    let unprotected = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    groups.patch("train", &PatchParams::default(), &unprotected).await.unwrap();
    groups.delete("train", &DeleteParams::default()).await.unwrap();
    // The controller looks again when a pod comes.
    world.create(pod("late", &json!({"cpu": "1"}))).await;
}

/// Two pods of a PodGroup share a card through the claim of their group, whose user is the PodGroup. It holds the card until the PodGroup is deleted.
pub(crate) async fn the_pods_of_a_group_of_kubernetes_own_api_share_its_claim() {
    let Some((world, device_claims, groups)) = with_claims_of_groups().await else { return };
    let driver = Driver::Nvidia;
    for name in ["shared", "other"] {
        create_claim(&world, name, request(driver, None)).await;
    }
    let of_group = json!([{"name": "gpu", "resourceClaimName": "shared"}]);
    let user = create_group(&groups, &of_group).await;
    for name in ["a", "b"] {
        let mut pod = of_claim(name, "shared");
        pod["spec"]["schedulingGroup"] = json!({"podGroupName": "train"});
        world.create(pod).await;
    }
    for name in ["a", "b"] {
        world.running(name).await;
    }
    let users = || async {
        let claim = claims(&world).get("shared").await.unwrap();
        assert_eq!(device_of(&claim).device, "gpu-0");
        json!(claim.status.unwrap().reserved_for)
    };
    assert_eq!(users().await, user);
    world.delete_and_await(&["a", "b"]).await;
    world.create(of_claim("next", "other")).await;
    world.unschedulable_with("next", "0/1 nodes are available: 1 cannot allocate all claims.").await;
    assert_eq!(users().await, user);
    delete_group(&world, &groups).await;
    world.running("next").await;
    all_are_content(&world, &device_claims);
}

/// A PodGroup has its claim made from a template, and each of its pods has an entry that is equal to the group's: they share that claim, where pods without a
/// group would get one each.
pub(crate) async fn the_pods_of_a_group_of_kubernetes_own_api_share_a_claim_made_from_a_template() {
    let Some((world, device_claims, groups)) = with_claims_of_groups().await else { return };
    let driver = Driver::Nvidia;
    create_template(&world, "gpus", request(driver, None)).await;
    let of_group = json!([{"name": "gpu", "resourceClaimTemplateName": "gpus"}]);
    let user = create_group(&groups, &of_group).await;
    for name in ["a", "b"] {
        let mut pod = of_template(name, "gpus");
        pod["spec"]["schedulingGroup"] = json!({"podGroupName": "train"});
        world.create(pod).await;
        let has_claim = |pod: Option<&core::Pod>| {
            pod.and_then(|pod| pod.status.as_ref()?.resource_claim_statuses.as_ref()).is_some()
        };
        // The controller makes it for the first pod and finds it for the second.
        tokio::time::timeout(LIMIT, await_condition(world.pods(), name, has_claim)).await.unwrap().unwrap();
    }
    let mut shared = Vec::new();
    for name in ["a", "b"] {
        let pod = world.running(name).await;
        shared.push(claim_of(&world, &pod).await);
    }
    assert_eq!(shared[0].uid(), shared[1].uid());
    assert_eq!(device_of(&shared[0]).device, "gpu-0");
    assert_eq!(json!(shared[0].status.as_ref().unwrap().reserved_for), user);
    let made = claims(&world).list(&ListParams::default()).await.unwrap().items;
    assert_eq!(made.len(), 1, "one claim was made for both pods");
    world.delete_and_await(&["a", "b"]).await;
    world.create(of_template("next", "gpus")).await;
    world.unschedulable_with("next", "0/1 nodes are available: 1 cannot allocate all claims.").await;
    delete_group(&world, &groups).await;
    let next = world.running("next").await;
    assert_ne!(claim_of(&world, &next).await.uid(), shared[0].uid());
    all_are_content(&world, &device_claims);
}
