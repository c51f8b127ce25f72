//! What users of the simulation ask for.
//!
//! It must not know what becomes of it.

use serde_json::{Value, json};

use crate::{
    device_claims, devices,
    dice::Dice,
    story::Crowd,
    time_division::{JOBS, Stated},
};

/// The class of pods that preempt others.
pub(crate) const URGENT: &str = "urgent";
/// The label `app` of pods that a PodDisruptionBudget covers, and its name.
pub(crate) const GUARDED: &str = "guarded";

/// A pod of some request, now and then a wrong one.
pub(crate) fn of(dice: &mut Dice, crowd: &Crowd, name: &str) -> Value {
    let hami = dice.in_thousand(crowd.hami);
    let limits = |dice: &mut Dice| {
        let count = if dice.in_thousand(800) { "1" } else { "2" };
        let memory = dice.one_of(crowd.memory);
        let cores = dice.one_of(crowd.cores);
        if hami {
            json!({"nvidia.com/gpu": count, "nvidia.com/gpumem": memory, "nvidia.com/gpucores": cores})
        } else {
            json!({"volcano.sh/vgpu-number": count, "volcano.sh/vgpu-memory": memory, "volcano.sh/vgpu-cores": cores})
        }
    };
    let container =
        |name: &str, limits: Value| json!({"name": name, "image": "i", "resources": {"limits": limits}});
    let mut containers = vec![container("main", limits(dice))];
    let mut spec =
        json!({"schedulerName": "berth", "terminationGracePeriodSeconds": dice.one_of(crowd.grace)});
    match dice.below(20) {
        form if form >= crowd.odd => {}
        0 => {
            containers[0]["resources"]["limits"]
                [if hami { "nvidia.com/gpumem" } else { "volcano.sh/vgpu-memory" }] = json!("16Gi");
        }
        1 => spec["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
        2 | 3 if hami => containers.push(container("second", limits(dice))),
        4 | 5 if hami => spec["initContainers"] = json!([container("first", limits(dice))]),
        6 => {
            spec["tolerations"] = json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]);
        }
        _ => {}
    }
    spec["containers"] = json!(containers);
    let mut pod = json!({"metadata": {"name": name}, "spec": spec});
    devices::ask(dice, crowd.devices, &mut pod);
    device_claims::ask(dice, crowd, &mut pod);
    if crowd.claims > 0 && dice.in_thousand(crowd.claims) {
        let used = json!({"claimName": format!("claim-{name}")});
        pod["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": used}]);
    }
    if crowd.apart > 0 && dice.in_thousand(crowd.apart) {
        pod["metadata"]["labels"] = json!({"app": "apart"});
        let term = json!([{"labelSelector": {"matchLabels": {"app": "apart"}}, "topologyKey": "kubernetes.io/hostname"}]);
        pod["spec"]["affinity"] =
            json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}});
    }
    if crowd.spread > 0 && dice.in_thousand(crowd.spread) {
        pod["metadata"]["labels"] = json!({"app": "spread"});
        pod["spec"]["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "spread"}}}]);
    }
    if crowd.urgent > 0 && dice.in_thousand(crowd.urgent) {
        pod["spec"]["priorityClassName"] = json!(URGENT);
    }
    may_go(dice, crowd, &mut pod);
    pod
}

/// So many of a thousand pods are preemptable, most of them in jobs.
fn may_go(dice: &mut Dice, crowd: &Crowd, pod: &mut Value) {
    if crowd.preemptable == 0 || !dice.in_thousand(crowd.preemptable) {
        return;
    }
    pod["metadata"]["annotations"] = json!({"volcano.sh/preemptable": "true"});
    if dice.in_thousand(700) {
        join(pod, dice);
    } else if dice.in_thousand(500) {
        pod["metadata"]["labels"] = json!({"app": GUARDED});
    }
}

/// The pod is one of some job.
fn join(pod: &mut Value, dice: &mut Dice) {
    let (job, budget, stated) = dice.one_of(&JOBS);
    let annotations = &mut pod["metadata"]["annotations"];
    annotations["scheduling.k8s.io/group-name"] = json!(job);
    if let Some((key, value)) = budget.filter(|_| stated == Stated::OnPods) {
        annotations[key] = json!(value);
    }
}
