//! Pods, and the claims that they would have.

use serde_json::{Value, json};

use super::*;
use crate::dialect::{
    MissingCount,
    hami::{Hami, HamiSettings, names},
};

const DRIVER: &str = HAMI_DRIVER;

fn hami() -> Hami {
    Hami::new(HamiSettings::upstream())
}

fn translated(pod: Value, card_memory: Option<u64>) -> Translation {
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let dialect = hami();
    let request = dialect.request(&pod, MissingCount::Default).unwrap().unwrap();
    let target = Target { class: "shares", driver: Some(DRIVER), card_memory: card_memory.map(MiB::new) };
    translate(&dialect, &pod, &request, &target)
}

/// A pod of one container with these limits and annotations.
fn lone(limits: &Value, annotations: &Value) -> Value {
    let container = json!({"name": "main", "resources": {"limits": limits}});
    json!({"metadata": {"annotations": annotations}, "spec": {"containers": [container]}})
}

fn selectors(translation: &Translation) -> Vec<&str> {
    let spec = translation.spec.as_ref().unwrap_or_else(|| panic!("{:?}", translation.unexpressed));
    let requests = spec.devices.requests.iter().filter_map(|request| request.exactly.as_ref());
    let selectors = requests.flat_map(|devices| &devices.selectors);
    selectors.filter_map(|selector| selector.cel.as_ref()).map(|cel| cel.expression.as_str()).collect()
}

fn fields(translation: &Translation) -> Vec<&str> {
    translation.unexpressed.iter().map(|unexpressed| unexpressed.field.as_str()).collect()
}

#[test]
fn a_request_stands_for_each_container_that_asks_and_is_named_by_its_place() {
    let share = |more: Value| {
        let mut limits = json!({"cpu": "1", "nvidia.com/gpu": 1, "nvidia.com/gpumem": 2000});
        limits.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"resources": {"limits": limits}})
    };
    let pod = json!({"spec": {
        "initContainers": [share(json!({})), {"name": "waits"}],
        "containers": [{"name": "plain"}, share(json!({"nvidia.com/gpucores": 30, "memory": "1Gi"}))],
    }});
    let translation = translated(pod, None);
    let request = |name: &str, cores: &str| {
        json!({"name": name, "exactly": {
            "deviceClassName": "shares",
            "selectors": [{"cel": {"expression": "device.allowMultipleAllocations"}}],
            "allocationMode": "ExactCount",
            "count": 1,
            "capacity": {"requests": {"memory": "2000Mi", "cores": cores}},
        }})
    };
    // Before `nvidia.com/gpu` stand `cpu`, and `memory` in the second one.
    let requests = [request("container-0-request-1", "0"), request("container-3-request-2", "30")];
    assert_eq!(serde_json::to_value(&translation.spec).unwrap(), json!({"devices": {"requests": requests}}));
    assert_eq!(translation.unexpressed, []);
}

#[test]
fn whole_cards_are_asked_for_without_amounts_so_that_any_driver_can_give_them() {
    for limits in [
        json!({"nvidia.com/gpu": 2}),
        json!({"nvidia.com/gpu": 2, "nvidia.com/gpumem-percentage": 100, "nvidia.com/gpucores": 100}),
    ] {
        let translation = translated(lone(&limits, &json!({})), None);
        let exactly = json!({"deviceClassName": "shares", "allocationMode": "ExactCount", "count": 2});
        let requests = json!([{"name": "container-0-request-0", "exactly": exactly}]);
        assert_eq!(
            serde_json::to_value(&translation.spec).unwrap(),
            json!({"devices": {"requests": requests}})
        );
        assert_eq!(translation.unexpressed, []);
    }
}

#[test]
fn a_percentage_is_of_the_cards_that_may_serve_and_refused_where_they_have_no_one_size() {
    let pod = || lone(&json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 33}), &json!({}));
    let spec = translated(pod(), Some(40960)).spec.unwrap();
    let capacity = spec.devices.requests[0].exactly.as_ref().unwrap().capacity.clone().unwrap();
    assert_eq!(capacity.requests["memory"], "13516Mi".into());
    let unknown = translated(pod(), None);
    assert_eq!(unknown.spec, None);
    assert_eq!(fields(&unknown), ["spec.containers[0].resources.limits[nvidia.com/gpumem-percentage]"]);
}

#[test]
fn hints_are_selectors_and_their_texts_stay_texts() {
    let hints = json!({
        names::USE_MODEL: "A100, NVIDIA-NVIDIA H\"100\\",
        names::NO_USE_MODEL: "40GB",
        names::USE_ID: "GPU-1,GPU-\"2",
        names::NO_USE_ID: "GPU-3",
    });
    let translation = translated(lone(&json!({"nvidia.com/gpu": 1}), &hints), None);
    let model = format!("device.attributes[\"{DRIVER}\"].productName.lowerAscii()");
    let id = format!("device.attributes[\"{DRIVER}\"].uuid");
    let expected = [
        format!(r#"{model}.contains("a100") || ("nvidia-" + {model}).contains("nvidia-nvidia h\"100\\")"#),
        format!(r#"!({model}.contains("40gb"))"#),
        format!(r#"{id} in ["GPU-1", "GPU-\"2"]"#),
        format!(r#"!({id} in ["GPU-3"])"#),
    ];
    assert_eq!(selectors(&translation), expected);
}

#[test]
fn what_decides_on_the_card_and_cant_be_said_leaves_no_claim() {
    let one = || json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 1000});
    let uuids: Vec<String> = (0..300).map(|at| format!("GPU-{at:036}")).collect();
    for (annotation, value) in
        [(names::MODE, "mig"), (names::USE_MODEL, "\u{e4}MD"), (names::USE_ID, &uuids.join(","))]
    {
        let translation = translated(lone(&one(), &json!({annotation: value})), None);
        assert_eq!(translation.spec, None, "{annotation}");
        assert_eq!(fields(&translation), [format!("metadata.annotations[{annotation}]")]);
    }
    let either = translated(lone(&one(), &json!({names::MODE: "hami-core,mig"})), None);
    assert_eq!(either.unexpressed, []);
    let container = json!({"resources": {"limits": one()}});
    let many = translated(json!({"spec": {"containers": vec![container; 33]}}), None);
    assert_eq!((many.spec.is_none(), fields(&many)), (true, vec!["spec.containers"]));
}

#[test]
fn what_only_ranks_or_guards_cards_is_left_out_and_told() {
    let policies = json!({names::CARD_POLICY: "mutex,topology-aware", names::NUMA_BIND: "true"});
    let limits = json!({"nvidia.com/gpu": 2, "nvidia.com/gpumem": 1000, "nvidia.com/gpucores": 100, names::PRIORITY: 1});
    let translation = translated(lone(&limits, &policies), None);
    assert!(translation.spec.is_some());
    let policy = format!("metadata.annotations[{}]", names::CARD_POLICY);
    let container = "spec.containers[0].resources.limits";
    assert_eq!(
        fields(&translation),
        [
            policy.clone(),
            policy,
            format!("metadata.annotations[{}]", names::NUMA_BIND),
            format!("{container}[{}]", names::CORES),
            format!("{container}[{}]", names::PRIORITY),
        ]
    );
}
