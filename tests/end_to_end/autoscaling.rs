//! What cluster autoscalers make of share pods, as Berth leaves them: Karpenter's own simulation, and the plugin of kube-scheduler by
//! which Cluster Autoscaler decides.
//!
//! The templates are those of `docs/autoscaling.md`.

use std::{
    collections::BTreeMap,
    io::Write as _,
    process::{Command, Stdio},
};

use k8s_openapi::api::core::v1 as core;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    machines::hami_node,
    support::{build, controlplane::absent, floor::Floor},
    world::{World, node_of, pod},
};

/// The machine of the documented template, as its cloud describes it.
const MACHINE: &str = "g5.12xlarge";

/// What `tests/karpenter` answers; its Go types say what the fields mean.
#[derive(Debug, Deserialize)]
struct Answer {
    pending: Vec<String>,
    #[serde(default)]
    overlays: BTreeMap<String, bool>,
    #[serde(default)]
    unregistered: BTreeMap<String, String>,
    #[serde(flatten)]
    placement: Placement,
    #[serde(default)]
    removed: BTreeMap<String, Removal>,
}

#[derive(Debug, Default, Deserialize)]
struct Placement {
    #[serde(default)]
    new: Vec<Launch>,
    #[serde(default)]
    existing: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    errors: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Launch {
    instance_types: Vec<String>,
    pods: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Removal {
    #[serde(default)]
    refused: String,
    #[serde(flatten)]
    placement: Placement,
}

impl Placement {
    /// How many pods each launched node is for, the fullest first.
    fn launched(&self) -> Vec<usize> {
        let mut pods: Vec<_> = self.new.iter().map(|launch| launch.pods.len()).collect();
        pods.sort_by(|one, other| other.cmp(one));
        pods
    }
}

/// Karpenter's answer about these objects and a NodePool, and about the removal of these nodes; `None`, said aloud, without Go.
fn karpenter(objects: Vec<Value>, remove: &[&str]) -> Option<Answer> {
    let program = build::karpenter().map_err(|reason| absent("Karpenter, which Go builds", &reason)).ok()?;
    let machine = json!({"cpu": "48", "memory": "192Gi", "pods": "110", "nvidia.com/gpu": "4"});
    let objects: Vec<_> = std::iter::once(pool()).chain(objects).collect();
    let scenario = json!({"instanceTypes": {MACHINE: machine}, "objects": objects, "remove": remove});
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let written = std::thread::spawn(move || input.write_all(scenario.to_string().as_bytes()));
    let output = child.wait_with_output().unwrap();
    written.join().unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    Some(serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}")))
}

fn class() -> Value {
    json!({"group": "karpenter.test.sh", "kind": "TestNodeClass", "name": "default"})
}

fn pool() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpu"},
        "spec": {"template": {"spec": {"nodeClassRef": class(), "requirements": []}}},
    })
}

/// The document of this kind among the YAML blocks of the page.
fn documented(kind: &str) -> Value {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/autoscaling.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    let mut read = blocks.map(|text| serde_saphyr::from_str::<Value>(text).unwrap());
    read.find(|document| document["kind"] == kind).unwrap()
}

/// The documented overlay, where a node has this many shares.
fn overlay(shares: u32) -> Value {
    let mut overlay = documented("NodeOverlay");
    overlay["spec"]["capacity"]["nvidia.com/gpu"] = shares.to_string().into();
    overlay
}

/// The pod as the API server has it, with its kind.
async fn stored(world: &World, name: &str) -> Value {
    let pod = world.pods().get(name).await.unwrap();
    let mut pod = serde_json::to_value(pod).unwrap();
    (pod["apiVersion"], pod["kind"]) = ("v1".into(), "Pod".into());
    pod
}

/// Share pods of this much memory as Berth leaves them where no card has room.
async fn waiting(world: &World, pods: u32, memory: u32) -> Vec<Value> {
    let mut left = Vec::new();
    for number in 0..pods {
        let name = format!("waiting-{memory}-{number}");
        world.create(share(&name, memory)).await;
        world.why_it_waits(&name).await;
        left.push(stored(world, &name).await);
    }
    left
}

fn share(name: &str, memory: u32) -> Value {
    pod(
        name,
        &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string(), "nvidia.com/gpucores": "10"}),
    )
}

/// The node as the API server has it, and as Karpenter would have launched it for a share by the documented overlay. Its resources
/// are those that its device plugin advertises, and `more`.
async fn launched(world: &World, name: &str, more: Value) -> [Value; 2] {
    let mut node = serde_json::to_value(world.nodes().get(name).await.unwrap()).unwrap();
    let advertises_all = more != json!({});
    (node["apiVersion"], node["kind"]) = ("v1".into(), "Node".into());
    node["spec"]["providerID"] = format!("fake:///{name}").into();
    let ready = json!({"type": "Ready", "status": "True"});
    node["status"]["conditions"] = json!([ready]);
    merge(&mut node["status"]["allocatable"], &more);
    let labels = json!({
        "karpenter.sh/nodepool": "gpu", "karpenter.sh/registered": "true", "kubernetes.io/hostname": name,
        "node.kubernetes.io/instance-type": MACHINE, "karpenter.sh/capacity-type": "on-demand",
        "topology.kubernetes.io/zone": "test-zone-1", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
    });
    merge(&mut node["metadata"]["labels"], &labels);
    if advertises_all {
        node["metadata"]["labels"]["karpenter.sh/initialized"] = "true".into();
    }
    let mut capacity = node["status"]["allocatable"].clone();
    merge(&mut capacity, &documented("NodeOverlay")["spec"]["capacity"]);
    let requests = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000", "nvidia.com/gpucores": "10"});
    let claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": name, "labels": node["metadata"]["labels"]},
        "spec": {"nodeClassRef": class(), "requirements": [], "resources": {"requests": requests}},
        "status": {"nodeName": name, "providerID": format!("fake:///{name}"), "capacity": capacity, "allocatable": capacity},
    });
    [node, claim]
}

fn merge(into: &mut Value, more: &Value) {
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in more.as_object().unwrap() {
        into[key] = value.clone();
    }
}

pub(crate) async fn karpenter_launches_no_node_for_a_share_by_a_clouds_own_capacity(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, vec![hami_node("gpu-1", 1)]).await else { return };
    world.create(share("early", 20_000)).await;
    let unjudged = stored(&world, "early").await;
    world.start_berth();
    world.why_it_waits("early").await;
    let judged = stored(&world, "early").await;
    let Some(before) = karpenter(vec![unjudged], &[]) else { return };
    assert_eq!(before.pending, [""; 0], "a pod that no scheduler has judged is not Karpenter's");
    let after = karpenter(vec![judged], &[]).unwrap();
    assert_eq!(after.pending, ["default/early"], "its schedulerName does not matter");
    assert_eq!(after.placement.launched(), [0; 0]);
    let error = &after.placement.errors["default/early"];
    assert!(error.starts_with("no instance type has enough resources"), "{error}");
}

/// Four cards of 23028 MiB, ten shares each.
pub(crate) async fn karpenter_launches_nodes_for_shares_by_the_documented_overlay(floor: Floor) {
    let Some(world) = World::start(floor, vec![hami_node("gpu-1", 1)]).await else { return };
    let halves = waiting(&world, 6, 18_000).await;
    let thirds = waiting(&world, 6, 17_000).await;
    let with = |overlay: Value, pods: &[Value]| karpenter([&[overlay], pods].concat(), &[]);
    let Some(answer) = with(overlay(40), &halves[..5]) else { return };
    assert!(answer.overlays["g5-12xlarge-shares"], "Karpenter takes the overlay");
    assert_eq!(answer.placement.launched(), [5], "by the sum five shares fit, although there are four cards");
    assert_eq!(answer.placement.new[0].instance_types, [MACHINE]);
    assert!(answer.placement.errors.is_empty(), "{:?}", answer.placement.errors);
    let both = [halves, thirds].concat();
    let answer = with(overlay(40), &both).unwrap();
    assert_eq!(answer.placement.launched().iter().sum::<usize>(), 12, "{:?}", answer.placement);
    let answer = with(overlay(4), &both).unwrap();
    assert_eq!(answer.placement.launched(), [4, 4, 4], "with a share for each card the sum is right");
}

/// The node advertises `nvidia.com/gpu` alone, as HAMi's plugin does.
pub(crate) async fn karpenter_counts_on_a_node_of_hamis_plugin_and_does_not_remove_it(floor: Floor) {
    let Some(world) = World::start(floor, vec![hami_node("gpu-1", 1)]).await else { return };
    world.create(share("bound", 10_000)).await;
    world.running("bound").await;
    let bound = stored(&world, "bound").await;
    let waiting = waiting(&world, 1, 12_000).await;
    let node = launched(&world, "gpu-1", json!({})).await;
    assert_eq!(
        node[0]["status"]["allocatable"].get("nvidia.com/gpumem"),
        None,
        "HAMi's plugin does not advertise it"
    );
    let objects = [&[overlay(40), bound], &node[..], &waiting].concat();
    let Some(answer) = karpenter(objects, &["gpu-1"]) else { return };
    let missing = answer.unregistered["gpu-1"].as_str();
    assert!(["nvidia.com/gpumem", "nvidia.com/gpucores"].contains(&missing), "{missing}");
    assert_eq!(answer.removed["gpu-1"].refused, "node isn't initialized");
    // By the overlay there are 82112 MiB left: Karpenter expects the pod on the node, on whose only card it does not fit.
    assert_eq!(answer.placement.existing["gpu-1"], ["default/waiting-12000-0"]);
    assert_eq!(answer.placement.launched(), [0; 0]);
}

pub(crate) async fn karpenter_moves_shares_as_if_a_node_were_one_card(floor: Floor) {
    let nodes = vec![hami_node("gpu-1", 2), hami_node("gpu-2", 2)];
    let Some(world) = World::start(floor, nodes).await else { return };
    for (name, memory) in [("p0", 10_000), ("p1", 10_000), ("p2", 10_000)] {
        world.create(share(name, memory)).await;
        world.running(name).await;
    }
    let mut pods = Vec::new();
    for name in ["p0", "p1", "p2"] {
        pods.push(stored(&world, name).await);
    }
    let alone: core::Pod = serde_json::from_value(pods[2].clone()).unwrap();
    let (removed, other) = if node_of(&alone) == "gpu-1" { ("gpu-1", "gpu-2") } else { ("gpu-2", "gpu-1") };
    let all = json!({"nvidia.com/gpumem": "32768", "nvidia.com/gpucores": "200"});
    let mut objects = vec![overlay(40)];
    for name in ["gpu-1", "gpu-2"] {
        objects.extend(launched(&world, name, all.clone()).await);
    }
    let kept = {
        let mut kept = pods.clone();
        kept[2]["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] = "true".into();
        [objects.clone(), kept].concat()
    };
    let Some(answer) = karpenter([objects, pods].concat(), &[removed]) else { return };
    assert!(answer.unregistered.is_empty(), "{:?}", answer.unregistered);
    let removal = &answer.removed[removed];
    assert_eq!(removal.refused, "");
    // 20000 of 32768 MiB are held, and each of the two cards has 6384 left.
    assert_eq!(removal.placement.existing[other], ["default/p2"], "the sum fits, no card does");
    let answer = karpenter(kept, &[removed]).unwrap();
    let refused = &answer.removed[removed].refused;
    assert!(refused.starts_with("pod has \"karpenter.sh/do-not-disrupt\" annotation"), "{refused}");
}

/// The same plugin with and without the documented settings, in a real kube-scheduler.
pub(crate) async fn the_settings_for_cluster_autoscaler_let_a_share_fit() {
    let Some(mut world) = World::without_berth(Floor::Real, vec![hami_node("gpu-1", 1)]).await else {
        return;
    };
    let mut settings = documented("KubeSchedulerConfiguration");
    let plane = world.cluster.control_plane().expect("the real floor has processes");
    settings["clientConnection"] = json!({"kubeconfig": plane.kubeconfig("admin")});
    settings["leaderElection"] = json!({"leaderElect": false});
    settings["profiles"][0]["schedulerName"] = "documented".into();
    settings["profiles"].as_array_mut().unwrap().push(json!({"schedulerName": "plain"}));
    plane.start_scheduler(&settings.to_string()).unwrap();
    for scheduler in ["plain", "documented"] {
        let mut pod = share(scheduler, 4000);
        pod["spec"]["schedulerName"] = scheduler.into();
        world.create(pod).await;
    }
    let why = world.why_it_waits("plain").await;
    assert!(why.contains("Insufficient nvidia.com/gpumem"), "{why}");
    world.pod_when("documented", |pod| node_of(pod) == "gpu-1").await;
}
