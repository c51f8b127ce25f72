//! A cluster as HAMi's chart leaves it, with what can be amiss in one; the objects are in the chart's form.

use kube::Client;
use serde_json::{Value, json};

use crate::support::objects::create;

const SELECTOR: &str = "app.kubernetes.io/component";
const REGISTER: &str =
    r#"[{"id":"GPU-a","count":10,"devmem":16384,"devcore":100,"type":"NVIDIA A100","health":true}]"#;
const DEVICE_CONFIG: &str = "\
nvidia:
  resourceCountName: nvidia.com/gpu
  resourceMemoryName: nvidia.com/gpumem
  resourceMemoryPercentageName: nvidia.com/gpumem-percentage
  resourceCoreName: nvidia.com/gpucores
  resourcePriorityName: nvidia.com/priority
  overwriteEnv: false
  defaultMemory: 1024
  defaultCores: 0
  defaultGPUNum: 1
  memoryFactor: 1
  deviceSplitCount: 10
  gpuCorePolicy: default
metax:
  resourceCountName: metax-tech.com/gpu
";
const SCHEDULER_CONFIG: &str = "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: hami-scheduler
extenders:
- urlPrefix: \"https://127.0.0.1:443\"
  filterVerb: filter
  bindVerb: bind
  managedResources:
  - name: nvidia.com/gpu
    ignoredByScheduler: true
";

fn workload(kind: &str, component: &str, containers: Value, volumes: Value) -> Value {
    let labels = json!({SELECTOR: component});
    let name = component;
    let mut workload = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"namespace": "kube-system", "name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"serviceAccountName": name, "containers": containers, "volumes": volumes},
        }},
    });
    if kind == "Deployment" {
        workload["spec"]["replicas"] = 2.into();
    }
    workload
}

fn team_workload(namespace: &str, name: &str, limits: Value, more: Value) -> Value {
    let labels = json!({"app": name});
    let mut spec =
        json!({"containers": [{"name": "main", "image": "train", "resources": {"limits": limits}}]});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": namespace, "name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    })
}

fn pod(namespace: &str, name: &str, node: Option<&str>, assignment: Option<&str>) -> Value {
    let limits = json!({"nvidia.com/gpu": "1"});
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace, "name": name, "annotations": {}},
        "spec": {"schedulerName": "hami-scheduler", "containers": [{"name": "main", "image": "train", "resources": {"limits": limits}}]},
    });
    if let Some(node) = node {
        pod["spec"]["nodeName"] = node.into();
    }
    if let Some(assignment) = assignment {
        pod["metadata"]["annotations"] = json!({
            "hami.io/vgpu-node": node, "hami.io/vgpu-time": "1700000000", "hami.io/bind-phase": "success",
            "hami.io/vgpu-devices-to-allocate": assignment, "hami.io/vgpu-devices-allocated": assignment,
        });
    }
    pod
}

/// What HAMi's chart installs, without roles: the scheduler, its webhook and settings, and the device plugin.
pub(crate) fn chart() -> Vec<Value> {
    let scheduler = json!([
        {"name": "kube-scheduler", "image": "registry.k8s.io/kube-scheduler:v1.36.3", "command": ["kube-scheduler", "--config=/config/config.yaml"]},
        {"name": "vgpu-scheduler-extender", "image": "docker.io/projecthami/hami:v2.10.0", "command": [
            "scheduler", "--http_bind=0.0.0.0:443", "--cert_file=/tls/tls.crt", "--key_file=/tls/tls.key",
            "--scheduler-name=hami-scheduler", "--metrics-bind-address=:9395", "--node-scheduler-policy=spread",
            "--gpu-scheduler-policy=binpack", "--force-overwrite-default-scheduler=true",
            "--device-config-file=/device-config.yaml", "--leader-elect=true", "-v=4"]},
    ]);
    let plugin = json!([
        {"name": "device-plugin", "image": "docker.io/projecthami/hami:v2.10.0",
            "command": ["nvidia-device-plugin", "--config-file=/device-config.yaml"]},
        {"name": "vgpu-monitor", "image": "docker.io/projecthami/hami:v2.10.0", "command": ["vGPUmonitor"]},
    ]);
    let mounts = |names: &[&str]| -> Value {
        names.iter().map(|name| json!({"name": name, "configMap": {"name": name}})).collect()
    };
    let data = |name: &str, key: &str, text: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "kube-system", "name": name}, "data": {key: text}});
    let ignored =
        json!({"matchExpressions": [{"key": "hami.io/webhook", "operator": "NotIn", "values": ["ignore"]}]});
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], "scope": "*"});
    vec![
        workload(
            "Deployment",
            "hami-scheduler",
            scheduler,
            mounts(&["hami-scheduler", "hami-scheduler-device"]),
        ),
        workload("DaemonSet", "hami-device-plugin", plugin, mounts(&["hami-scheduler-device"])),
        data("hami-scheduler", "config.yaml", SCHEDULER_CONFIG),
        data("hami-scheduler-device", "device-config.yaml", DEVICE_CONFIG),
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "hami-webhook"},
            "webhooks": [{
                "name": "vgpu.hami.io", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
                "matchPolicy": "Equivalent", "reinvocationPolicy": "Never", "sideEffects": "None", "timeoutSeconds": 10,
                "clientConfig": {"service": {"namespace": "kube-system", "name": "hami-scheduler", "path": "/webhook", "port": 443}},
                "namespaceSelector": ignored, "objectSelector": ignored, "rules": [rule],
            }],
        }),
    ]
}

/// Nodes, namespaces, workloads and pods, with one of each thing that can be amiss.
pub(crate) fn tenants() -> Vec<Value> {
    let node = |name: &str, annotations: Value| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": annotations},
            "status": {"capacity": {"nvidia.com/gpu": "10", "cpu": "8", "memory": "32Gi", "pods": "110"},
                "allocatable": {"nvidia.com/gpu": "10", "cpu": "8", "memory": "32Gi", "pods": "110"}}})
    };
    let namespace = |name: &str, labels: Value| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    let share = || json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"});
    vec![
        node("gpu-1", json!({"hami.io/node-nvidia-register": REGISTER})),
        node("gpu-2", json!({"hami.io/node-nvidia-register": "[{"})),
        node("gpu-3", json!({})),
        namespace("team-a", json!({})),
        namespace("team-b", json!({"hami.io/webhook": "ignore"})),
        team_workload("team-a", "good", share(), json!({})),
        team_workload(
            "team-a",
            "mixed",
            json!({"nvidia.com/gpu": "1", "volcano.sh/vgpu-number": "1"}),
            json!({}),
        ),
        team_workload("team-a", "elsewhere", share(), json!({"schedulerName": "unheard-of"})),
        team_workload("team-b", "kept-out", share(), json!({})),
        pod("team-a", "reads-well", Some("gpu-1"), Some("GPU-a,NVIDIA,9000,30:;")),
        pod("team-a", "too-much", Some("gpu-1"), Some("GPU-a,NVIDIA,9000,30:;")),
        pod("team-a", "unreadable", Some("gpu-1"), Some("GPU-a,NVIDIA,many,30:;")),
        pod("team-a", "without", Some("gpu-1"), None),
        pod("team-a", "waits", None, None),
    ]
}

/// A cluster with both.
pub(crate) async fn fill(client: &Client) {
    for object in chart().into_iter().chain(tenants()) {
        create(client, &object).await;
    }
}
