//! Claims that wait for their first pod: what the binder writes, what the volume controller and a provisioner make of it, where the
//! pod goes, and what is taken back.

use berth_sandbox::{
    agent::node::Node,
    storage::{Conduct, PROVISIONER, Storage},
};
use k8s_openapi::api::storage::v1::{CSIDriver, CSIStorageCapacity};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    deaths::{Moment, Write},
    machines::hami_node,
    storage::{BY_HAND, MADE, bound, claim, claim_spec, claim_uid, node_of_volume, selected, share, volume},
    support::floor::Floor,
    world::{World, node_of, phase, pod},
};

fn nodes() -> Vec<Node> {
    vec![hami_node("gpu-1", 2), hami_node("gpu-2", 2)]
}

/// Two nodes, both classes, volume controller and provisioner; Berth is yet to start.
async fn without_berth(floor: Floor) -> Option<(World, Storage)> {
    let world = World::without_berth(floor, nodes()).await?;
    world.create_classes().await;
    let storage = Storage::start(world.cluster.client.clone());
    Some((world, storage))
}

async fn start(floor: Floor) -> Option<(World, Storage)> {
    let (mut world, storage) = without_berth(floor).await?;
    world.start_berth();
    Some((world, storage))
}

/// Nodes, volume controller and provisioner saw nothing that a scheduler must not do.
fn all_are_content(world: &World, storage: &Storage) {
    world.agents_are_content();
    assert_eq!(storage.violations(), Vec::<String>::new());
}

pub(crate) async fn a_volume_is_made_on_the_pods_node_before_the_pod_is_bound(floor: Floor) {
    let Some((world, storage)) = start(floor).await else { return };
    storage.behave(Conduct::Hold);
    world.create(share("train", "data")).await;
    let missing = "0/2 nodes are available: persistentvolumeclaim \"data\" not found.";
    world.unschedulable_with("train", missing).await;
    world.create_claim(claim("data", MADE)).await;
    let node = world.selected("data").await;
    assert_eq!(node_of(&world.pods().get("train").await.unwrap()), "", "its volume is not there yet");
    storage.behave(Conduct::Provide);
    let pod = world.running("train").await;
    let volume = world.volume_of("data").await;
    assert_eq!((node_of(&pod), node_of_volume(&volume)), (node.as_str(), node.as_str()));
    all_are_content(&world, &storage);
}

pub(crate) async fn a_pod_goes_to_the_node_of_the_volume_that_its_claim_is_given(floor: Floor) {
    let Some((world, storage)) = start(floor).await else { return };
    world.create_claim(claim("data", BY_HAND)).await;
    world.create(share("train", "data")).await;
    let none = "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind.";
    world.unschedulable_with("train", none).await;
    world.create_volume(volume("disk-2", "gpu-2")).await;
    assert_eq!(node_of(&world.running("train").await), "gpu-2");
    let disk = world.volume_of("data").await;
    assert_eq!(disk.metadata.name.as_deref(), Some("disk-2"));
    let claim = world.claims().get("data").await.unwrap();
    assert_eq!(selected(&claim), None, "no volume had to be made");
    all_are_content(&world, &storage);
}

/// Tells how much storage the provisioner has left on the node.
async fn publish_capacity(world: &World, node: &str) {
    let capacities: Api<CSIStorageCapacity> = Api::default_namespaced(world.cluster.client.clone());
    let capacity = json!({
        "metadata": {"name": node}, "storageClassName": MADE, "capacity": "10Gi",
        "nodeTopology": {"matchLabels": {"kubernetes.io/hostname": node}},
    });
    capacities.create(&PostParams::default(), &serde_json::from_value(capacity).unwrap()).await.unwrap();
}

pub(crate) async fn a_provisioner_that_gives_up_sends_the_pod_to_another_node(floor: Floor) {
    let Some((mut world, storage)) = without_berth(floor).await else { return };
    storage.behave(Conduct::Hold);
    let drivers: Api<CSIDriver> = Api::all(world.cluster.client.clone());
    let driver = json!({"metadata": {"name": PROVISIONER}, "spec": {"storageCapacity": true}});
    drivers.create(&PostParams::default(), &serde_json::from_value(driver).unwrap()).await.unwrap();
    for node in ["gpu-1", "gpu-2"] {
        publish_capacity(&world, node).await;
    }
    world.start_berth();
    world.create_claim(claim("data", MADE)).await;
    world.create(share("train", "data")).await;
    let first = world.selected("data").await;
    let capacities: Api<CSIStorageCapacity> = Api::default_namespaced(world.cluster.client.clone());
    capacities.delete(&first, &DeleteParams::default()).await.unwrap();
    storage.behave(Conduct::GiveUpOn(first.clone()));
    let failed = format!("provisioning failed for PVC \"data\" on node \"{first}\"");
    world.unschedulable_with("train", &failed).await;
    let pod = world.running("train").await;
    assert_ne!(node_of(&pod), first);
    assert_eq!(node_of_volume(&world.volume_of("data").await), node_of(&pod));
    all_are_content(&world, &storage);
}

pub(crate) async fn two_pods_that_share_a_claim_go_to_one_node(floor: Floor) {
    let Some((world, storage)) = start(floor).await else { return };
    storage.behave(Conduct::Hold);
    world.create_claim(claim("data", MADE)).await;
    for name in ["one", "two"] {
        let mut pod = share(name, "data");
        // Together they do not fit one card, and spreading would part them.
        pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"] = json!("9000");
        pod["metadata"]["annotations"] = json!({"hami.io/node-scheduler-policy": "spread"});
        world.create(pod).await;
    }
    let node = world.selected("data").await;
    storage.behave(Conduct::Provide);
    for name in ["one", "two"] {
        assert_eq!(node_of(&world.running(name).await), node);
    }
    // A later pod goes where the volume is.
    world.create(share("three", "data")).await;
    assert_eq!(node_of(&world.running("three").await), node);
    world.patch_node(&node, json!({"spec": {"unschedulable": true}})).await;
    world.create(share("four", "data")).await;
    let elsewhere = "0/2 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, \
                     1 node(s) were unschedulable.";
    world.unschedulable_with("four", elsewhere).await;
    world.patch_node(&node, json!({"spec": {"unschedulable": null}})).await;
    world.running("four").await;
    all_are_content(&world, &storage);
}

/// The claim that the ephemeral volume controller makes for a pod's volume `scratch`.
fn ephemeral_claim(pod: &str, uid: Option<&str>) -> Value {
    let mut claim = claim(&format!("{pod}-scratch"), MADE);
    if let Some(uid) = uid {
        claim["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Pod", "name": pod,
            "uid": uid, "controller": true, "blockOwnerDeletion": true}]);
    }
    claim
}

pub(crate) async fn a_volume_that_lives_as_long_as_its_pod_is_waited_for(floor: Floor) {
    let Some((world, storage)) = start(floor).await else { return };
    let template = json!({"spec": claim_spec(MADE, "ReadWriteOnce")});
    let ephemeral = |name: &str| {
        let mut pod = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}));
        pod["spec"]["volumes"] = json!([{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]);
        pod
    };
    let train = world.create(ephemeral("train")).await;
    let waits = "0/2 nodes are available: waiting for ephemeral volume controller to create the \
                 persistentvolumeclaim \"train-scratch\".";
    world.unschedulable_with("train", waits).await;
    world.create_claim(ephemeral_claim("train", train.metadata.uid.as_deref())).await;
    let pod = world.running("train").await;
    assert_eq!(node_of_volume(&world.volume_of("train-scratch").await), node_of(&pod));
    world.create_claim(ephemeral_claim("other", None)).await;
    world.create(ephemeral("other")).await;
    let foreign =
        "0/2 nodes are available: persistentvolumeclaim \"other-scratch\" was not created for the pod.";
    world.unschedulable_with("other", foreign).await;
    all_are_content(&world, &storage);
}

pub(crate) async fn a_claim_is_free_again_when_its_pod_is_deleted(floor: Floor) {
    let Some((world, storage)) = start(floor).await else { return };
    storage.behave(Conduct::Hold);
    world.create_claim(claim("data", MADE)).await;
    world.create(share("train", "data")).await;
    let first = world.selected("data").await;
    world.delete("train").await;
    world.claim_when("data", |claim| selected(claim).is_none()).await;
    // So the next pod is free to go elsewhere.
    world.patch_node(&first, json!({"spec": {"unschedulable": true}})).await;
    world.create(share("next", "data")).await;
    assert_ne!(world.selected("data").await, first);
    storage.behave(Conduct::Provide);
    assert_ne!(node_of(&world.running("next").await), first);
    all_are_content(&world, &storage);
}

/// No volume controller runs, so that the claim is never bound.
pub(crate) async fn a_volume_is_free_again_when_its_pod_is_deleted(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, nodes()).await else { return };
    world.create_classes().await;
    let mut reserved = volume("reserved", "gpu-2");
    reserved["spec"]["claimRef"] = json!({"namespace": "default", "name": "mine"});
    for (disk, claimed) in [(volume("disk", "gpu-1"), "data"), (reserved, "mine")] {
        let name = disk["metadata"]["name"].as_str().unwrap().to_owned();
        world.create_volume(disk).await;
        world.make_available(&name).await;
        world.create_claim(claim(claimed, BY_HAND)).await;
    }
    world.start_berth();
    for (claimed, disk) in [("data", "disk"), ("mine", "reserved")] {
        world.create(share(claimed, claimed)).await;
        let uid = world.claims().get(claimed).await.unwrap().metadata.uid;
        world
            .volume_when(disk, |volume| claim_uid(volume).is_some() && claim_uid(volume) == uid.as_deref())
            .await;
        world.delete(claimed).await;
        let volume = world.volume_when(disk, |volume| claim_uid(volume).is_none()).await;
        let reference = volume.spec.unwrap().claim_ref;
        let kept = reference.map(|reference| reference.name.unwrap());
        assert_eq!(kept.as_deref(), (disk == "reserved").then_some("mine"), "a person's choice stays");
        let by_controller = volume.metadata.annotations.unwrap_or_default();
        assert!(!by_controller.contains_key("pv.kubernetes.io/bound-by-controller"), "{by_controller:?}");
    }
    world.agents_are_content();
}

pub(crate) async fn a_claim_of_one_pod_keeps_the_next_one_waiting(floor: Floor) {
    let Some((world, storage)) = start(floor).await else { return };
    let single = json!({"metadata": {"name": "data"}, "spec": claim_spec(MADE, "ReadWriteOncePod")});
    world.create_claim(single).await;
    world.create(share("first", "data")).await;
    let first = world.running("first").await;
    world.create(share("second", "data")).await;
    let in_use = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already \
                  in-use by another pod";
    let told = world.unschedulable("second").await;
    assert!(told.contains(in_use), "{told}");
    world.delete("first").await;
    assert_eq!(node_of(&world.running("second").await), node_of(&first));
    all_are_content(&world, &storage);
}

/// The binder dies before and after each write, and another goes on.
pub(crate) async fn a_binder_that_is_killed_between_any_two_steps_leaves_one_place(floor: Floor) {
    let Some((mut world, storage)) = without_berth(floor).await else { return };
    let deaths = [
        (Write::SelectNode, MADE),
        (Write::BindVolume, BY_HAND),
        (Write::Lock, MADE),
        (Write::Lock, BY_HAND),
        (Write::Binding, MADE),
        (Write::Binding, BY_HAND),
    ];
    let mut pods = 0;
    for (write, class) in deaths {
        for moment in [Moment::Before, Moment::After] {
            let name = format!("{write:?}-{class}-{moment:?}").to_lowercase();
            if class == BY_HAND {
                world.create_volume(volume(&name, "gpu-2")).await;
            }
            world.create_claim(claim(&name, class)).await;
            world.kill_berth_at(write, moment, share(&name, &name)).await;
            if (write, moment) == (Write::SelectNode, Moment::After) {
                world.claim_when(&name, |claim| bound(claim).is_some()).await;
            }
            world.start_berth();
            let pod = world.pod_when(&name, |pod| matches!(phase(pod), "Running" | "Failed")).await;
            assert_eq!(phase(&pod), "Running", "{name}");
            let claim = world.claims().get(&name).await.unwrap();
            assert_eq!(node_of_volume(&world.volume_of(&name).await), node_of(&pod), "{name}");
            let selected_for = (class == MADE).then(|| node_of(&pod));
            assert_eq!(selected(&claim), selected_for, "{name}");
            world.kill_berth().await;
            pods += 1;
        }
    }
    assert_eq!((world.fleet.admitted(), world.fleet.rejected()), (pods, 0));
    all_are_content(&world, &storage);
}
