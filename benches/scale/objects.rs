//! The objects of a large cluster, as long as those of real ones: nodes with HAMi's device plugin, and pods that hold shares of their cards.

use serde_json::{Value, json};

/// MiB of each card.
const MEMORY: usize = 81_920;

/// The namespace of the pods; it has opted in.
pub(crate) const NAMESPACE: &str = "train";

fn node_name(number: usize) -> String {
    format!("node-{number:05}")
}

fn uuid(node: usize, card: usize) -> String {
    format!("GPU-{node:08x}-5f2c-4c1e-9a7b-{card:012x}")
}

/// A node of eight cards of 80 GB, ten slots each.
pub(crate) fn node(number: usize) -> Value {
    let card = |index: usize| {
        json!({"id": uuid(number, index), "index": index, "count": 10, "devmem": MEMORY, "devcore": 100,
            "type": "NVIDIA-NVIDIA A100-SXM4-80GB", "numa": index / 4, "mode": "hami-core", "health": true})
    };
    let cards: Vec<_> = (0..8).map(card).collect();
    let image = |at: usize| {
        json!({"names": [format!("registry.example/image-{at}@sha256:{at:064x}"), format!("registry.example/image-{at}:1.0")],
            "sizeBytes": 100_000_000 + at})
    };
    let amounts = json!({"cpu": "96", "memory": format!("{}Ki", 1_056_000_000 - number % 97), "pods": "250",
        "ephemeral-storage": "1800Gi", "nvidia.com/gpu": "80"});
    let kinds = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"];
    let condition = |kind: &str| {
        json!({"type": kind, "status": if kind == "Ready" { "True" } else { "False" }, "reason": "KubeletReports",
            "message": "kubelet reports this condition", "lastHeartbeatTime": "2026-11-21T09:00:00Z",
            "lastTransitionTime": "2026-11-21T09:00:00Z"})
    };
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": node_name(number),
            "labels": {
                "kubernetes.io/hostname": node_name(number), "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                "node.kubernetes.io/instance-type": "gpu-8", "topology.kubernetes.io/region": "region-1",
                "topology.kubernetes.io/zone": format!("zone-{}", number % 16), "gpu": "on",
            },
            "annotations": {
                "hami.io/node-nvidia-register": json!(cards).to_string(),
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
        },
        "spec": {"podCIDR": "10.0.0.0/24", "providerID": format!("cloud://{number}")},
        "status": {
            "capacity": amounts, "allocatable": amounts, "conditions": kinds.map(condition),
            "images": (0..20).map(image).collect::<Vec<_>>(),
            "nodeInfo": {"kubeletVersion": "v1.36.3", "kernelVersion": "6.18.0", "osImage": "Linux"},
        },
    })
}

/// A pod that was bound and allocated long ago, and runs on one of so many nodes. `uneven` shares differ by up to 39 MiB.
pub(crate) fn running(number: usize, nodes: usize, uneven: bool) -> Value {
    let (node, card) = (number % nodes, (number / nodes + number) % 8);
    // Less than a thousandth of a card, in which what is free is counted.
    let more = if uneven { (number / 7 * 31 + number / nodes * 7) % 40 } else { 0 };
    let memory = 1000 + 1000 * (number % 7) + more;
    let name = format!("job-{:05}-{:05}", number / 50, number % 50);
    let limits = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string(), "nvidia.com/gpucores": "5",
        "cpu": "2", "memory": "8Gi"});
    let kinds = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-11-21T09:00:00Z"});
    let fields: Value = ["app", "image", "resources", "volumes", "env", "restartPolicy", "conditions"]
        .iter()
        .map(|field| (format!("f:{field}"), json!({"k:{\"name\":\"main\"}": {".": {}, "f:value": {}}})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    json!({
        "metadata": {
            "name": name, "namespace": NAMESPACE, "generateName": format!("job-{:05}-", number / 50),
            "uid": format!("{number:08x}-7d1c-4b9e-8a55-{node:012x}"), "resourceVersion": (1000 + number).to_string(),
            "creationTimestamp": "2026-11-21T09:00:00Z",
            "labels": {"app": "train", "batch.kubernetes.io/job-name": format!("job-{:05}", number / 50),
                "batch.kubernetes.io/controller-uid": format!("{:08x}-1111-4222-8333-000000000000", number / 50),
                "hami.io/vgpu-node": node_name(node)},
            "annotations": {
                "hami.io/vgpu-node": node_name(node), "hami.io/vgpu-time": "1790000000",
                "hami.io/bind-phase": "success", "hami.io/bind-time": "1790000000",
                "hami.io/vgpu-devices-allocated": format!("{},NVIDIA,{memory},5:;", uuid(node, card)),
                "hami.io/vgpu-devices-to-allocate": ";",
            },
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": format!("job-{:05}", number / 50),
                "uid": format!("{:08x}-1111-4222-8333-000000000000", number / 50), "controller": true}],
            "managedFields": [{"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1",
                "time": "2026-11-21T09:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields}],
        },
        "spec": {
            "schedulerName": "berth", "nodeName": node_name(node), "restartPolicy": "Never", "serviceAccountName": "default",
            "priority": 0, "preemptionPolicy": "PreemptLowerPriority", "terminationGracePeriodSeconds": 30,
            "containers": [{
                "name": "main", "image": "registry.example/train:1.0", "command": ["python3", "train.py"],
                "env": [{"name": "EPOCHS", "value": "40"}, {"name": "DATA", "value": "/data/set-1"}],
                "resources": {"limits": limits, "requests": limits},
                "volumeMounts": [{"name": "kube-api-access", "readOnly": true,
                    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
            }],
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
            "volumes": [{"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]}}],
        },
        "status": {
            "phase": "Running", "hostIP": "10.1.0.1", "podIP": "10.2.0.1", "podIPs": [{"ip": "10.2.0.1"}],
            "startTime": "2026-11-21T09:00:00Z", "qosClass": "Guaranteed", "conditions": kinds.map(condition),
            "containerStatuses": [{
                "name": "main", "ready": true, "started": true, "restartCount": 0,
                "image": "registry.example/train:1.0",
                "imageID": "registry.example/train@sha256:0f1e2d3c4b5a69788796a5b4c3d2e1f0",
                "containerID": "containerd://0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0",
                "state": {"running": {"startedAt": "2026-11-21T09:00:01Z"}},
            }],
        },
    })
}

/// A pod that asks for so much of one card.
pub(crate) fn asking(name: &str, memory: usize) -> Value {
    let limits =
        json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string(), "nvidia.com/gpucores": "5"});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"schedulerName": "berth",
            "containers": [{"name": "main", "image": "none", "resources": {"limits": limits}}]},
    })
}

/// The review of the server-side dry run of a pod.
pub(crate) fn dry_run(pod: &Value) -> Value {
    let kind = json!({"group": "", "version": "v1", "kind": "Pod"});
    let resource = json!({"group": "", "version": "v1", "resource": "pods"});
    json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "0df28fbd-5f5f-11e8-bc74-36e6bb280816", "kind": kind, "resource": resource, "requestKind": kind,
            "requestResource": resource, "namespace": NAMESPACE, "operation": "CREATE",
            "userInfo": {"username": "ada", "groups": ["system:authenticated"]},
            "object": pod, "oldObject": null, "dryRun": true,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    })
}
