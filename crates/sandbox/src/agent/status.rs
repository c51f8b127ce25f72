//! What a kubelet reports of a pod's containers. It knows no init containers: who reads a pod's status here waits for none.

use serde_json::{Value, json};

use super::view::Pod;

/// All containers run and are ready.
pub(super) fn running(pod: &Pod) -> Value {
    let state = json!({"running": {}});
    json!({
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": containers(pod, &state, &json!(true)),
    })
}

/// All containers ended well.
pub(super) fn succeeded(pod: &Pod) -> Value {
    let state = json!({"terminated": {"exitCode": 0, "reason": "Completed"}});
    json!({
        "phase": "Succeeded",
        "conditions": [{"type": "Ready", "status": "False", "reason": "PodCompleted"}],
        "containerStatuses": containers(pod, &state, &json!(false)),
    })
}

fn containers(pod: &Pod, state: &Value, ready: &Value) -> Value {
    let status = |name: &str| json!({"name": name, "image": "", "imageID": "", "restartCount": 0, "ready": ready, "state": state});
    pod.spec.containers.iter().map(|container| status(&container.name)).collect()
}
