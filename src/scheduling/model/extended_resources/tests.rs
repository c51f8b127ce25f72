//! Claims for extended resources: requests, mappings, names.

use serde_json::{Value, json};

use super::*;

fn requests(spec: &Value) -> ExtendedRequests {
    let metadata = json!({"name": "train", "uid": "u-1"});
    let pod: Pod = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
    ExtendedRequests::of_pod(&pod).unwrap()
}

fn container(name: &str, resources: &Value) -> Value {
    json!({"name": name, "resources": {"requests": resources}})
}

/// Each request with its count, and each mapping as `container resource request`.
fn claim(spec: &Value, resources: &[&str]) -> (Vec<(String, i64)>, Vec<String>) {
    let served: Vec<_> = resources.iter().map(|resource| (*resource, "class")).collect();
    let ExtendedClaim { spec, mappings } = requests(spec).claim_for(&served);
    let count = |request: &crate::object::resource_claim::DeviceRequest| {
        (request.name.clone(), request.exactly.as_ref().unwrap().count.unwrap())
    };
    let word =
        |one: &RequestMapping| format!("{} {} {}", one.container_name, one.resource_name, one.request_name);
    (spec.devices.requests.iter().map(count).collect(), mappings.iter().map(word).collect())
}

fn counts(expected: &[(&str, i64)]) -> Vec<(String, i64)> {
    expected.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[test]
fn each_container_has_a_request_named_by_its_place_and_that_of_the_resource() {
    let spec = json!({
        "initContainers": [{"name": "side", "restartPolicy": "Always", "resources": {"limits": {"a.b/gpu": 1}}}],
        "containers": [
            container("one", &json!({"a.b/gpu": 2, "a.b/nic": 1, "cpu": 1})),
            container("two", &json!({"cpu": 1})),
        ],
    });
    let (requests, mappings) = claim(&spec, &["a.b/gpu", "a.b/nic"]);
    let expected = [("container-0-request-0", 1), ("container-1-request-0", 2), ("container-1-request-1", 1)];
    assert_eq!(requests, counts(&expected));
    let expected = [
        "side a.b/gpu container-0-request-0",
        "one a.b/gpu container-1-request-0",
        "one a.b/nic container-1-request-1",
    ];
    assert_eq!(mappings, expected);
    // What a device plugin provides is not in the claim.
    assert_eq!(claim(&spec, &["a.b/nic"]).0, counts(&[("container-1-request-1", 1)]));
}

#[test]
fn an_init_container_uses_the_devices_of_those_after_it_first() {
    let spec = |init: u32| {
        json!({
            "initContainers": [container("init", &json!({"a.b/gpu": init}))],
            "containers": [container("one", &json!({"a.b/gpu": 1})), container("two", &json!({"a.b/gpu": 2}))],
        })
    };
    let apps = [("container-1-request-0", 1), ("container-2-request-0", 2)];
    let (requests, mappings) = claim(&spec(2), &["a.b/gpu"]);
    assert_eq!(requests, counts(&apps));
    assert_eq!(mappings[2..], ["init a.b/gpu container-1-request-0", "init a.b/gpu container-2-request-0"]);
    let (requests, mappings) = claim(&spec(5), &["a.b/gpu"]);
    assert_eq!(requests, counts(&[("container-0-request-0", 2), apps[0], apps[1]]));
    assert_eq!(mappings.last().unwrap(), "init a.b/gpu container-0-request-0");
}

#[test]
fn init_containers_one_after_the_other_share_the_most_that_one_lacks() {
    let spec = json!({
        "initContainers": [
            container("small", &json!({"a.b/gpu": 1})),
            container("large", &json!({"a.b/gpu": 3})),
            container("other", &json!({"a.b/gpu": 3})),
        ],
        "containers": [container("main", &json!({"cpu": 1}))],
    });
    let (requests, mappings) = claim(&spec, &["a.b/gpu"]);
    assert_eq!(requests, counts(&[("container-1-request-0", 3)]));
    let expected = ["small", "large", "other"].map(|name| format!("{name} a.b/gpu container-1-request-0"));
    assert_eq!(mappings, expected);
}

#[test]
fn a_sidecar_before_an_init_container_keeps_its_devices() {
    let spec = json!({
        "initContainers": [
            {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"a.b/gpu": 1}}},
            container("init", &json!({"a.b/gpu": 1})),
        ],
        "containers": [container("main", &json!({"cpu": 1}))],
    });
    let (requests, _) = claim(&spec, &["a.b/gpu"]);
    assert_eq!(requests, counts(&[("container-0-request-0", 1), ("container-1-request-0", 1)]));
}

#[test]
fn a_pod_without_extended_resources_asks_for_none() {
    let spec = json!({"containers": [container("main", &json!({"cpu": 1, "a.b/gpu": 0}))]});
    let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap();
    assert_eq!(ExtendedRequests::of_pod(&pod), None);
}

#[test]
fn the_claims_name_is_a_pods_own_and_not_too_long() {
    let name = |name: &str, uid: &str| {
        let metadata = Metadata { name: name.to_owned(), uid: uid.to_owned(), ..Metadata::default() };
        claim_name(&metadata).to_string()
    };
    assert!(name("train", "u-1").starts_with("train-extended-resources-"));
    assert_ne!(name("train", "u-1"), name("train", "u-2"));
    let long = name(&"a.".repeat(60), "u-1");
    assert!(long.len() <= LONGEST && !long.contains(".-"), "{long}");
}

#[test]
fn a_share_asks_for_its_capacity_and_only_equal_shares_use_the_same_devices() {
    let share = |memory: &str| -> RequestedDevices {
        let capacity = json!({"requests": {"memory": memory}});
        serde_json::from_value(json!({"deviceClassName": "", "count": 1, "capacity": capacity})).unwrap()
    };
    let spec = json!({
        "initContainers": [container("small", &json!({"a.b/gpu": 1})), container("equal", &json!({"a.b/gpu": 1}))],
        "containers": [container("main", &json!({"a.b/gpu": 1}))],
    });
    let shares = ShareRequests {
        shares: Shares {
            profile: "p".into(),
            by_class: ByClass { resource: "a.b/gpu".into(), otherwise: "shares".into() },
            least: CardUsage::default(),
        },
        containers: vec![(0, share("1Gi")), (1, share("4Gi")), (2, share("4Gi"))],
    };
    let claim = requests(&spec).sharing(shares).unwrap().claim_for(&[("a.b/gpu", "class")]);
    let request = |name: &str, memory: &str| {
        json!({"name": name, "exactly": {"deviceClassName": "class", "allocationMode": "ExactCount", "count": 1,
            "capacity": {"requests": {"memory": memory}}}})
    };
    let expected = [request("container-0-request-0", "1Gi"), request("container-2-request-0", "4Gi")];
    assert_eq!(serde_json::to_value(&claim.spec.devices.requests).unwrap(), json!(expected));
    let used: Vec<_> = claim.mappings.iter().map(|one| (&*one.container_name, &*one.request_name)).collect();
    let expected = [
        ("main", "container-2-request-0"),
        ("small", "container-0-request-0"),
        ("equal", "container-2-request-0"),
    ];
    assert_eq!(used, expected);
}

#[test]
fn an_amount_that_the_api_server_respells_is_the_same() {
    let spec = |memory: &str| -> ResourceClaimSpec {
        let exactly = json!({"deviceClassName": "c", "capacity": {"requests": {"memory": memory}}});
        serde_json::from_value(json!({"devices": {"requests": [{"name": "r", "exactly": exactly}]}})).unwrap()
    };
    assert!(asks_for_same(&spec("4096Mi"), &spec("4Gi")));
    assert!(!asks_for_same(&spec("4096Mi"), &spec("5Gi")));
}

#[test]
fn a_claim_that_the_pods_status_names_is_taken_up_whatever_scheduler_has_made_it() {
    let spec = json!({"containers": [container("main", &json!({"a.b/gpu": 1}))]});
    let named = |status: &Value| {
        let metadata = json!({"name": "train", "uid": "u-1"});
        let pod = json!({"metadata": metadata, "spec": spec, "status": status});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        ExtendedRequests::of_pod(&pod).unwrap().claim.to_string()
    };
    let stated = |name: &str| json!({"extendedResourceClaimStatus": {"resourceClaimName": name, "requestMappings": []}});
    let own = named(&json!({}));
    assert!(own.starts_with("train-extended-resources-"), "{own}");
    assert_eq!(named(&stated(&own)), own);
    assert_eq!(named(&stated("train-extended-resources-x7k2p")), "train-extended-resources-x7k2p");
    assert_eq!(named(&stated("")), own);
}
