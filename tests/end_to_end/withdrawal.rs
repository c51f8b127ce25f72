//! Pods that die before Volcano's plugin has served them: the next pod of the node gets its own cards all the same.
//!
//! The plugin looks at neither phase nor deletion, and so does its stand-in here: without the withdrawal each case ends in a pod that
//! was served with another's assignment.

use berth::sandbox::agent::{Answer, Behaviour};
use serde_json::{Value, json};

use crate::{
    machines::volcano_node,
    support::floor::Floor,
    world::{World, annotation, node_of, phase, pod},
};

const NEVER: &str = "18446744073709551615";

fn share(name: &str) -> Value {
    pod(name, &json!({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "1000"}))
}

fn answering(answer: Answer) -> Behaviour {
    Behaviour { answer, ..Behaviour::default() }
}

fn is_withdrawn(pod: &k8s_openapi::api::core::v1::Pod) -> bool {
    annotation(pod, "volcano.sh/vgpu-time") == NEVER
        && annotation(pod, "volcano.sh/devices-to-allocate").is_empty()
}

pub(crate) async fn a_pod_deleted_before_its_allocation_is_withdrawn(floor: Floor) {
    let Some(world) = World::start(floor, vec![volcano_node("volcano-1", 1)]).await else { return };
    world.fleet.behave("volcano-1", answering(Answer::Never)).unwrap();
    let mut dying = share("dying");
    dying["metadata"]["finalizers"] = json!(["example.com/kept"]);
    world.create(dying).await;
    world.pod_when("dying", |pod| node_of(pod) == "volcano-1").await;
    world.create(share("next")).await;
    world.delete("dying").await;
    let dying = world.pod_when("dying", is_withdrawn).await;
    assert_eq!(
        annotation(&dying, "volcano.sh/vgpu-ids-new"),
        "GPU-volcano-1-0,NVIDIA,1000,0:",
        "the record stays"
    );
    world.fleet.behave("volcano-1", answering(Answer::Promptly)).unwrap();
    let next = world.running("next").await;
    assert_eq!(annotation(&next, "volcano.sh/bind-phase"), "success");
    assert_eq!(phase(&world.pods().get("dying").await.unwrap()), "Failed");
    world.agents_are_content();
}

pub(crate) async fn a_failed_pod_that_another_scheduler_left_is_withdrawn(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, vec![volcano_node("volcano-1", 2)]).await else {
        return;
    };
    world.fleet.behave("volcano-1", answering(Answer::Never)).unwrap();
    let mut left = share("left");
    left["spec"]["schedulerName"] = json!("volcano");
    left["spec"]["nodeName"] = json!("volcano-1");
    left["metadata"]["annotations"] = json!({
        "volcano.sh/vgpu-node": "volcano-1", "volcano.sh/vgpu-time": "1700000000", "volcano.sh/bind-time": "1700000000",
        "volcano.sh/bind-phase": "allocating",
        "volcano.sh/vgpu-ids-new": "GPU-volcano-1-1,NVIDIA,1000,0:",
        "volcano.sh/devices-to-allocate": "GPU-volcano-1-1,NVIDIA,1000,0:",
    });
    world.create(left).await;
    world.fail("left", "OutOfcpu").await;
    world.start_berth();
    world.create(share("next")).await;
    world.pod_when("left", is_withdrawn).await;
    world.fleet.behave("volcano-1", answering(Answer::Promptly)).unwrap();
    let next = world.running("next").await;
    assert_eq!(annotation(&next, "volcano.sh/bind-phase"), "success");
    world.agents_are_content();
}
