//! Whatever hints a pod has: the claim that its share would be is given exactly those cards that the hints admit, as HAMi's driver publishes
//! them, and no share is given twice.

use berth::{
    device::{MiB, PodRequest},
    dialect::{
        Dialect, MissingCount,
        claim::{HAMI_DRIVER, Target, Translation, translate},
        hami::names,
    },
    dra::{CompiledClasses, DevicePools, HeldDevices, TargetNode, WaitingClaim, allocate},
    object::{DeviceClass, Labels, Pod, ResourceClaim, ResourceSlice, resource_claim::AllocationResult},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::records::hami;

pub(crate) const PRODUCTS: [&str; 4] =
    ["NVIDIA A100-SXM4-80GB", "NVIDIA A100-PCIE-40GB", "Tesla V100-SXM2-32GB", "NVIDIA H100 PCIe"];

/// The class that the driver's chart brings.
fn classes() -> CompiledClasses {
    let expression =
        format!("device.driver == '{HAMI_DRIVER}' && device.attributes['{HAMI_DRIVER}'].type == 'hami-gpu'");
    let class = json!({
        "metadata": {"name": "shares"},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    });
    let class: DeviceClass = serde_json::from_value(class).unwrap();
    CompiledClasses::new([&class])
}

/// A card of 80 GiB as k8s-dra-driver ebeaad9 publishes it (`cmd/hami-kubelet-plugin/hami_core.go`, `GetDevice`).
fn published(minor: usize, product: &str, shareable: bool) -> Value {
    json!({
        "name": format!("hami-gpu-{minor}"),
        "allowMultipleAllocations": shareable,
        "attributes": {
            "type": {"string": "hami-gpu"},
            "uuid": {"string": format!("GPU-{minor}")},
            "minor": {"int": minor},
            "productName": {"string": product},
            "brand": {"string": "Nvidia"},
            "architecture": {"string": "Ampere"},
            "cudaComputeCapability": {"version": "8.0.0"},
            "driverVersion": {"version": "550.54.15"},
            "cudaDriverVersion": {"version": "12.4.0"},
            "pcieBusID": {"string": format!("0000:{minor:02x}:00.0")},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
        },
        "capacity": {
            "cores": {"value": "100", "requestPolicy": {
                "default": "100", "validRange": {"min": "0", "max": "100", "step": "1"},
            }},
            "memory": {"value": "80Gi", "requestPolicy": {
                "default": "80Gi", "validRange": {"min": "1Mi", "max": "80Gi", "step": "1Mi"},
            }},
        },
    })
}

fn inventory(devices: impl IntoIterator<Item = Value>) -> DevicePools {
    let devices: Vec<Value> = devices.into_iter().collect();
    let slice: ResourceSlice = serde_json::from_value(json!({
        "metadata": {"name": "a"},
        "spec": {
            "driver": HAMI_DRIVER,
            "nodeName": "a",
            "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }))
    .unwrap();
    DevicePools::new([&slice])
}

fn translated(pod: Value, driver: Option<&str>) -> (PodRequest, Translation) {
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let dialect = hami();
    let request = dialect.request(&pod, MissingCount::Default).unwrap().unwrap();
    let target = Target { class: "shares", driver, card_memory: Some(MiB::new(81920)) };
    let translation = translate(&dialect, &pod, &request, &target);
    (request, translation)
}

/// What the claims of these pods are given together; the text of an error where an expression can't be evaluated.
fn given(pods: &[Value], inventory: &DevicePools) -> Result<Option<Vec<AllocationResult>>, String> {
    given_of(Some(HAMI_DRIVER), pods, inventory)
}

/// The same by claims that ask for devices of this driver, or of any.
fn given_of(
    driver: Option<&str>,
    pods: &[Value],
    inventory: &DevicePools,
) -> Result<Option<Vec<AllocationResult>>, String> {
    let classes = classes();
    let claims = pods.iter().map(|pod| {
        let spec = translated(pod.clone(), driver).1.spec.expect("a claim");
        let claim = ResourceClaim { spec, ..ResourceClaim::default() };
        WaitingClaim::read(&claim, &classes).map_err(|error| error.to_string())
    });
    let claims: Vec<WaitingClaim> = claims.collect::<Result<_, _>>()?;
    let labels = Labels::default();
    let node = TargetNode::plain("a", &labels);
    let claims: Vec<&WaitingClaim> = claims.iter().collect();
    let allocation = allocate(&claims, node, inventory, &HeldDevices::default());
    allocation.map(|found| found.map(|found| found.results)).map_err(|error| error.to_string())
}

fn devices(results: &[AllocationResult]) -> Vec<(String, Option<String>, Option<String>)> {
    let results = results.iter().flat_map(|result| &result.devices.results);
    let amount = |result: &berth::object::resource_claim::AllocatedDevice, name: &str| {
        result.consumed_capacity.get(name).map(ToString::to_string)
    };
    results.map(|one| (one.device.clone(), amount(one, "memory"), amount(one, "cores"))).collect()
}

fn share(limits: &Value) -> Value {
    json!({"resources": {"limits": limits}})
}

fn pod(containers: &[Value], annotations: &Value) -> Value {
    json!({"metadata": {"annotations": annotations}, "spec": {"containers": containers}})
}

/// Parts of lists of hints, and of what would end a text in CEL.
fn hint() -> impl Strategy<Value = String> {
    let element = prop_oneof![
        prop::sample::select(vec![
            "A100",
            "a100-sxm4",
            "V100",
            "nvidia",
            "NVIDIA-NVIDIA A100",
            "NVIDIA-Tesla",
            "NVIDIA-A100",
            "40gb",
            "GPU-0",
            "GPU-1",
            "\"",
            "\\",
            "\") || true || (\"",
            "\t",
            "$",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,6}",
    ];
    prop::collection::vec(element, 0..4).prop_map(|elements| elements.join(","))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_claim_takes_exactly_the_cards_that_the_hints_admit(
        hints in prop::array::uniform4(prop::option::of(hint())),
    ) {
        let keys = [names::USE_MODEL, names::NO_USE_MODEL, names::USE_ID, names::NO_USE_ID];
        let hints = keys.into_iter().zip(hints).filter_map(|(key, hint)| Some((key, hint?)));
        let annotations = json!(hints.collect::<std::collections::BTreeMap<_, _>>());
        let pod = pod(&[share(&json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 1000}))], &annotations);
        let selection = translated(pod.clone(), None).0.selection;
        for (minor, product) in PRODUCTS.into_iter().enumerate() {
            let inventory = inventory([published(minor, product, true)]);
            let admitted = selection.models.admits(&format!("NVIDIA-{product}"))
                && selection.ids.admits(&format!("GPU-{minor}").into());
            for driver in [Some(HAMI_DRIVER), None] {
                let found = given_of(driver, std::slice::from_ref(&pod), &inventory);
                let found = found.map_err(TestCaseError::fail)?;
                prop_assert_eq!(found.is_some(), admitted, "{} {}", product, annotations);
            }
        }
    }
}

#[test]
fn shares_of_one_card_are_given_until_its_memory_or_compute_is_used_up() {
    let one = inventory([published(0, PRODUCTS[0], true)]);
    let half =
        share(&json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 50, "nvidia.com/gpucores": 30}));
    let both = pod(&[half.clone(), half.clone()], &json!({}));
    let found = given(std::slice::from_ref(&both), &one).unwrap().expect("two containers share the card");
    let taken = ("hami-gpu-0".to_owned(), Some("40960Mi".to_owned()), Some("30".to_owned()));
    assert_eq!(devices(&found), [taken.clone(), taken]);
    let more = pod(&[share(&json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 1}))], &json!({}));
    assert_eq!(given(&[both, more.clone()], &one), Ok(None), "no memory is left");
    let compute = |cores: u32| {
        pod(
            &[share(&json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 1, "nvidia.com/gpucores": cores}))],
            &json!({}),
        )
    };
    assert_eq!(given(&[compute(70), compute(31)], &one), Ok(None), "no compute is left");
    let beside = given(&[compute(70), compute(30), more], &one).unwrap();
    assert_eq!(beside.map(|found| devices(&found)[2].2.clone()), Some(Some("0".to_owned())));
}

#[test]
fn the_cards_of_one_container_are_different_ones_and_a_whole_card_is_all_of_it() {
    let shares = |count: usize| {
        pod(&[share(&json!({"nvidia.com/gpu": count, "nvidia.com/gpumem": 1000}))], &json!({}))
    };
    let two = inventory([published(0, PRODUCTS[0], true), published(1, PRODUCTS[0], true)]);
    assert_eq!(given(&[shares(3)], &two), Ok(None));
    assert!(given(&[shares(2), shares(2)], &two).unwrap().is_some());
    let whole = pod(&[share(&json!({"nvidia.com/gpu": 1}))], &json!({}));
    let found = given(std::slice::from_ref(&whole), &two).unwrap().expect("a whole card");
    assert_eq!(devices(&found), [("hami-gpu-0".to_owned(), Some("80Gi".to_owned()), Some("100".to_owned()))]);
    assert_eq!(given(&[whole.clone(), shares(2)], &two), Ok(None));
    let unshared = inventory([published(0, PRODUCTS[0], false)]);
    assert!(given(&[whole], &unshared).unwrap().is_some());
    assert_eq!(given(&[shares(1)], &unshared), Ok(None), "a share of a card that can't be shared");
}

#[test]
fn a_long_list_of_hints_is_within_what_an_expression_may_cost() {
    let list = |element: &str, count: usize| vec![element; count].join(",");
    let annotations = json!({
        names::USE_MODEL: list(&"a".repeat(60), 40) + ",A100",
        names::USE_ID: list("GPU-00000000-0000-0000-0000-000000000000", 200) + ",GPU-0",
    });
    let pod = pod(&[share(&json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 1}))], &annotations);
    assert!(given(&[pod], &inventory([published(0, PRODUCTS[0], true)])).unwrap().is_some());
}
