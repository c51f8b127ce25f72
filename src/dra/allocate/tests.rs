//! Which devices are given where several would do, and what is told where none are.

use serde_json::{Value, json};

use super::*;
use crate::{
    dra::{CompiledClasses, device::DeviceId, held::DeviceInUse},
    object::{DeviceClass, Labels, ResourceClaim, ResourceSlice},
};

fn slice(pool: &str, devices: &[Value]) -> ResourceSlice {
    let pool = json!({"name": pool, "generation": 1, "resourceSliceCount": 1});
    let spec = json!({"driver": "gpu.example.com", "pool": pool, "nodeName": "n1", "devices": devices});
    serde_json::from_value(json!({"metadata": {"name": "slice"}, "spec": spec})).unwrap()
}

fn claim(devices: &Value) -> ResourceClaim {
    let claim =
        json!({"metadata": {"namespace": "team", "name": "c", "uid": "u"}, "spec": {"devices": devices}});
    serde_json::from_value(claim).unwrap()
}

fn allocated(
    slices: &[ResourceSlice],
    devices: &Value,
    held: &HeldDevices,
) -> Result<Option<ClaimAllocations>, AllocationError> {
    let class: DeviceClass = serde_json::from_value(json!({"metadata": {"name": "gpu"}})).unwrap();
    let claim = WaitingClaim::read(&claim(devices), &CompiledClasses::new([&class]))?;
    let labels = Labels::new();
    allocate(&[&claim], TargetNode::plain("n1", &labels), &DevicePools::new(slices), held)
}

fn names(allocation: &ClaimAllocations) -> Vec<&str> {
    allocation.results[0].devices.results.iter().map(|result| result.device.as_str()).collect()
}

fn exactly(count: u32) -> Value {
    json!({"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": count}}]})
}

fn with_selector(expression: &str, mode: &str) -> Value {
    let selectors = json!([{"cel": {"expression": expression}}]);
    let exactly = json!({"deviceClassName": "gpu", "allocationMode": mode, "selectors": selectors});
    json!({"requests": [{"name": "r", "exactly": exactly}]})
}

#[test]
fn a_device_for_which_a_selector_has_no_value_is_left_out_and_told() {
    let good = json!({"name": "b", "attributes": {"model": {"string": "A100"}}});
    let slices = [slice("p", &[json!({"name": "a"}), good])];
    let selector = r#"device.attributes["gpu.example.com"].model == "A100""#;
    let allocation = allocated(&slices, &with_selector(selector, "ExactCount"), &HeldDevices::default());
    let allocation = allocation.unwrap().unwrap();
    assert_eq!(names(&allocation), ["b"]);
    let told = "claim team/c: spec.devices.requests[0].exactly.selectors[0] on device gpu.example.com/p/a: \
                CEL runtime error: no such key: model";
    assert_eq!(allocation.left_out.iter().map(ToString::to_string).collect::<Vec<_>>(), [told]);

    let all = allocated(&slices, &with_selector(selector, "All"), &HeldDevices::default());
    assert_eq!(all.unwrap_err().to_string(), told, "which devices are all of them is not known");
    let alone = allocated(
        &slices[..1],
        &with_selector("device.attributes['x'].y", "ExactCount"),
        &HeldDevices::default(),
    );
    assert!(alone.unwrap_err().to_string().ends_with("CEL runtime error: no such key: y"));
}

#[test]
fn a_share_goes_where_the_least_stays_free() {
    let memory = |gib: &str| json!({"memory": {"value": gib}});
    let device = |name: &str, gib: &str| json!({"name": name, "allowMultipleAllocations": true, "capacity": memory(gib)});
    let slices = [slice("p", &[device("large", "80Gi"), device("used", "80Gi"), device("full", "80Gi")])];
    let mut held = HeldDevices::default();
    let share = |device: &str, gib: &str| {
        let result = json!({"request": "r", "driver": "gpu.example.com", "pool": "p", "device": device,
            "shareID": "s", "consumedCapacity": {"memory": gib}});
        serde_json::from_value::<AllocationResult>(json!({"devices": {"results": [result]}})).unwrap()
    };
    assert_eq!(held.add(&share("used", "40Gi")), Vec::<String>::new());
    assert_eq!(held.add(&share("full", "75Gi")), Vec::<String>::new());
    let capacity = json!({"requests": {"memory": "20Gi"}});
    let exactly = json!({"deviceClassName": "gpu", "capacity": capacity});
    let asked = json!({"requests": [{"name": "r", "exactly": exactly}]});
    assert_eq!(names(&allocated(&slices, &asked, &held).unwrap().unwrap()), ["used"]);

    let unread = held.add(&share("used", "much"));
    assert_eq!(
        unread,
        ["status.allocation.devices.results[0].consumedCapacity.memory: `much` is not a quantity"]
    );
    let allocation = allocated(&slices, &asked, &held).unwrap().unwrap();
    assert_eq!(names(&allocation), ["large"], "how much of the other is left is not known");
    let again = allocated(&slices, &asked, &held).unwrap().unwrap();
    assert_eq!(allocation, again, "the id of a share does not change");
    let id = allocation.results[0].devices.results[0].share_id.clone().unwrap();
    assert!(id.len() == 36 && id.as_bytes()[14] == b'8' && b"89ab".contains(&id.as_bytes()[19]), "{id}");
}

#[test]
fn devices_are_taken_from_as_few_pcie_roots_as_possible() {
    let device = |name: &str, root: &str| json!({"name": name, "attributes": {"resource.kubernetes.io/pcieRoot": {"string": root}}});
    let slices =
        [slice("p", &[device("a", "pci0"), device("b", "pci1"), device("c", "pci2"), device("d", "pci1")])];
    let allocation = allocated(&slices, &exactly(2), &HeldDevices::default()).unwrap().unwrap();
    assert_eq!(names(&allocation), ["b", "d"]);
}

#[test]
fn a_search_that_takes_too_long_is_an_error_and_not_a_refusal() {
    let device = |at: usize| {
        let attributes = json!({"x": {"int": at}, "y": {"int": at % 7}, "z": {"int": at % 5}});
        json!({"name": format!("d{at:02}"), "attributes": attributes})
    };
    let devices: Vec<_> = (0..40).map(device).collect();
    let requests: Vec<_> =
        (0..8).map(|at| json!({"name": format!("r{at}"), "exactly": {"deviceClassName": "gpu"}})).collect();
    let constraints = json!([
        {"distinctAttribute": "gpu.example.com/x"},
        {"distinctAttribute": "gpu.example.com/y"},
    ]);
    let asked = json!({"requests": requests, "constraints": constraints});
    let result = allocated(&[slice("p", &devices)], &asked, &HeldDevices::default());
    assert_eq!(result, Err(AllocationError::SearchLimit(MOST_STEPS)));
}

#[test]
fn devices_that_are_alike_are_tried_once() {
    // Without that, the search would have to try 31 devices in every order.
    let devices: Vec<_> = (0..31).map(|at| json!({"name": format!("d{at:02}")})).collect();
    let requests: Vec<_> =
        (0..32).map(|at| json!({"name": format!("r{at}"), "exactly": {"deviceClassName": "gpu"}})).collect();
    let asked = json!({ "requests": requests });
    assert_eq!(allocated(&[slice("p", &devices)], &asked, &HeldDevices::default()), Ok(None));
}

/// Which devices are given for two requests, one for each device, with these derived attributes and constraint.
fn derived(
    slices: &[ResourceSlice],
    expressions: [&str; 2],
    constraint: &Value,
) -> Result<Vec<String>, String> {
    let request = |(at, expression): (usize, &&str)| {
        let derived = json!([{"name": "derived/place", "expression": expression}]);
        json!({"name": format!("r{at}"), "exactly": {"deviceClassName": "gpu", "derivedAttributes": derived}})
    };
    let requests: Vec<_> = expressions.iter().enumerate().map(request).collect();
    let devices = json!({"requests": requests, "constraints": [constraint]});
    let given = allocated(slices, &devices, &HeldDevices::default()).map_err(|error| error.to_string())?;
    Ok(given.iter().flat_map(names).map(str::to_owned).collect())
}

#[test]
fn attributes_that_a_claim_computes_are_compared_in_place_of_those_that_devices_have() {
    let device = |name: &str, place: &str, number: i64| {
        let attributes = json!({"place": {"string": place}, "number": {"int": number}});
        json!({"name": name, "attributes": attributes})
    };
    let slices =
        [slice("p", &[device("a", "numa-0", 1), device("b", "numa-1", 0), device("c", "numa-1", 1)])];
    let own = "device.attributes['gpu.example.com']";
    let (place, number) = (format!("{own}.place"), format!("'numa-' + string({own}.number)"));
    let same = json!({"matchAttribute": "derived/place"});
    assert_eq!(derived(&slices, [&place, &place], &same).unwrap(), ["b", "c"]);
    assert_eq!(derived(&slices, [&place, &number], &same).unwrap(), ["a", "b"]);
    let apart = json!({"distinctAttribute": "derived/place"});
    assert_eq!(derived(&slices, [&place, &place], &apart).unwrap(), ["a", "b"]);
    let both = format!("[{own}.number, 1 - {own}.number]");
    assert_eq!(derived(&slices, [&both, &both], &apart).unwrap(), Vec::<String>::new(), "lists are sets");
    assert_eq!(derived(&slices, ["'x'", "1"], &same).unwrap(), Vec::<String>::new(), "of different types");
    let hides = json!({"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2, "derivedAttributes": [
        {"name": "gpu.example.com/place", "expression": "true"}]}});
    let hidden = json!({"requests": [hides], "constraints": [{"matchAttribute": "gpu.example.com/place"}]});
    assert_eq!(names(&allocated(&slices, &hidden, &HeldDevices::default()).unwrap().unwrap()), ["a", "b"]);
}

#[test]
fn a_device_of_which_an_attribute_can_not_be_computed_is_left_out() {
    let slices = [slice(
        "p",
        &[
            json!({"name": "a"}),
            json!({"name": "b", "attributes": {"x": {"int": 1}}}),
            json!({"name": "c", "attributes": {"x": {"int": 1}}}),
        ],
    )];
    let own = "device.attributes['gpu.example.com'].x";
    let same = json!({"matchAttribute": "derived/place"});
    assert_eq!(derived(&slices, [own, own], &same).unwrap(), ["b", "c"]);
    let field = "claim team/c: spec.devices.requests[0].exactly.derivedAttributes[0] on device gpu.example.com/p/a: \
                 CEL runtime error";
    for (expression, reason) in [
        (
            "{}",
            "the result is of type map, and must be a bool, an int, a string, a version, or a list of one of these",
        ),
        (
            "[1, 'x']",
            "the result is of type list of different types, and must be a bool, an int, a string, a version, or a list of one of these",
        ),
    ] {
        assert_eq!(derived(&slices, [expression, own], &same), Err(format!("{field}: {reason}")));
    }
    let unused = json!({"matchAttribute": "gpu.example.com/x"});
    assert_eq!(
        derived(&slices, ["{}", "{}"], &unused).unwrap(),
        ["b", "c"],
        "what nothing compares is not computed"
    );
}

#[test]
fn what_a_claim_asks_for_and_nothing_serves_is_told_with_its_field() {
    let error = |devices: &Value| allocated(&[], devices, &HeldDevices::default()).unwrap_err().to_string();
    let request = |exactly: Value| json!({"requests": [{"name": "r", "exactly": exactly}]});
    assert_eq!(
        error(&request(json!({"deviceClassName": "gpu", "capacity": {"requests": {"memory": "much"}}}))),
        "claim team/c: spec.devices.requests[0].exactly.capacity.requests.memory: `much` is not a quantity"
    );
    assert_eq!(
        error(&request(json!({"deviceClassName": "gpu", "count": 0}))),
        "claim team/c, request r: count must be greater than 0"
    );
    let derived = |of: Value| {
        let alternative = json!({"name": "one", "deviceClassName": "gpu", "derivedAttributes": of});
        error(&json!({"requests": [{"name": "r", "firstAvailable": [alternative]}]}))
    };
    let field = "claim team/c: spec.devices.requests[0].firstAvailable[0].derivedAttributes";
    let one = |name: &str, expression: &str| json!({"name": name, "expression": expression});
    assert_eq!(
        derived(json!([one("derived/numa", "none")])),
        format!("{field}[0]: CEL compile error: undeclared reference to 'none'")
    );
    assert_eq!(
        derived(json!([one("derived/a", "1"), one("derived/a", "2")])),
        format!("{field}[1].name: \"derived/a\" is empty or the name of another")
    );
    let many: Vec<_> = (0..33).map(|at| one(&format!("derived/a{at}"), "1")).collect();
    assert_eq!(derived(json!(many)), format!("{field}: there are 33, and 32 are allowed"));
    let costly = "lists.range(300).all(a, lists.range(300).all(b, a == b))";
    let many: Vec<_> = (0..32).map(|at| one(&format!("derived/a{at}"), costly)).collect();
    let refused = derived(json!(many));
    let words = "claim team/c: spec.devices.requests: its derived attributes could cost up to ";
    assert!(refused.starts_with(words) && refused.ends_with(" in all, and 4000000 is allowed"), "{refused}");
    assert_eq!(
        error(&with_selector("device.", "ExactCount")),
        "claim team/c: spec.devices.requests[0].exactly.selectors[0]: CEL compile error: at line 1, \
         column 8: expected identifier after '.'"
    );
    assert_eq!(
        error(&request(json!({"deviceClassName": "none"}))),
        "claim team/c, request r: could not retrieve device class none"
    );
}

#[test]
fn a_claim_may_have_so_much_text_of_selectors_and_no_more() {
    let slice = slice("p", &[json!({"name": "d"})]);
    let asked = |selectors: usize| {
        // Each is as long as the API admits.
        let text = format!("true{}", " ".repeat(10 * 1024 - 4));
        let selectors = vec![json!({"cel": {"expression": text}}); selectors];
        json!({"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "selectors": selectors}}]})
    };
    let served =
        |selectors| allocated(std::slice::from_ref(&slice), &asked(selectors), &HeldDevices::default());
    assert!(matches!(served(12), Ok(Some(_))), "{:?}", served(12));
    assert_eq!(
        served(13).unwrap_err().to_string(),
        "claim team/c: spec.devices.requests: its selectors have 133120 bytes, more than 131072 in all"
    );
}

#[test]
fn hardware_that_others_use_is_not_given_and_takes_no_counters() {
    let device = |name: &str, counters: &str| {
        let taken = json!([{"counterSet": counters, "counters": {"c": {"value": "1"}}}]);
        json!({"name": name, "consumesCounters": taken})
    };
    let devices = [device("a-0", "a"), device("a-1", "a"), device("b-0", "b")];
    let sets = json!([{"name": "a", "counters": {"c": {"value": "1"}}}, {"name": "b", "counters": {"c": {"value": "1"}}}]);
    let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 2});
    let slice = |name: &str, field: &str, of: Value| -> ResourceSlice {
        let mut spec = json!({"driver": "gpu.example.com", "pool": pool, "nodeName": "n1"});
        spec[field] = of;
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
    };
    let slices = [slice("devices", "devices", json!(devices)), slice("counters", "sharedCounters", sets)];
    let mut held = HeldDevices::default();
    for name in ["a-0", "a-1"] {
        let whole = DeviceInUse { whole: true, ..DeviceInUse::default() };
        held.add_unclaimed(&DeviceId::new("gpu.example.com", "p", name), Some(whole), None);
    }
    assert_eq!(names(&allocated(&slices, &exactly(1), &held).unwrap().unwrap()), ["b-0"]);
    assert_eq!(allocated(&slices, &exactly(2), &held), Ok(None));
}

/// A pool whose devices take 1 of the counter of the set `s`, which has 8, each with these groups.
fn grouped(devices: &[(&str, &[&str])]) -> [ResourceSlice; 2] {
    let device = |(name, groups): &(&str, &[&str])| {
        let taken =
            json!([{"counterSet": "s", "counters": {"c": {"value": "1"}}, "compatibilityGroups": groups}]);
        json!({"name": name, "consumesCounters": taken})
    };
    let devices: Vec<Value> = devices.iter().map(device).collect();
    let sets = json!([{"name": "s", "counters": {"c": {"value": "8"}}}]);
    let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 2});
    let slice = |name: &str, field: &str, of: Value| -> ResourceSlice {
        let mut spec = json!({"driver": "gpu.example.com", "pool": pool, "nodeName": "n1"});
        spec[field] = of;
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
    };
    [slice("devices", "devices", json!(devices)), slice("counters", "sharedCounters", sets)]
}

#[test]
fn devices_that_take_of_one_counter_set_have_a_group_in_common() {
    let slices = grouped(&[("a", &["mig"]), ("b", &["vgpu", "both"]), ("c", &["both", "mig"]), ("d", &[])]);
    let given = |count: u32, held: &HeldDevices| {
        let given = allocated(&slices, &exactly(count), held).unwrap();
        given.map(|given| names(&given).into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    let nothing = HeldDevices::default();
    assert_eq!(given(2, &nothing).unwrap(), ["a", "c"], "a and b have no group in common");
    assert_eq!(given(3, &nothing), None, "each two of a, b and c may have one, and no three do");
    let held_by_another = |device: &str| {
        let result = json!({"request": "r", "driver": "gpu.example.com", "pool": "p", "device": device});
        let mut held = HeldDevices::default();
        held.add(&serde_json::from_value(json!({"devices": {"results": [result]}})).unwrap());
        held
    };
    assert_eq!(given(1, &held_by_another("b")).unwrap(), ["c"]);
    assert_eq!(given(1, &held_by_another("d")), None, "one without groups goes with none that has some");
    let ungrouped = grouped(&[("a", &["mig"]), ("d", &[]), ("e", &[])]);
    let given = allocated(&ungrouped, &exactly(2), &nothing).unwrap().unwrap();
    assert_eq!(names(&given), ["d", "e"], "what was taken on the way is given back");
}

#[test]
fn a_device_with_a_field_that_is_not_served_is_not_given_and_costs_no_other() {
    let mut first = json!({"name": "a", "attributes": {"model": {"string": "A100"}}});
    first["nodeAllocatableResourceMappings"] = json!({"cpu": {"allocationMultiplier": "2"}});
    let both = [slice("p", &[first.clone(), json!({"name": "b"})])];
    let nothing = HeldDevices::default();
    let message = "device gpu.example.com/p/a: nodeAllocatableResourceMappings is not served";
    let given = allocated(&both, &exactly(1), &nothing).unwrap().unwrap();
    assert_eq!(names(&given), ["b"]);
    assert_eq!(given.left_out.iter().map(ToString::to_string).collect::<Vec<_>>(), [message]);
    let alone = allocated(&[slice("p", &[first])], &exactly(1), &nothing).unwrap_err();
    assert_eq!(alone.to_string(), message);
    assert_eq!(alone.without_devices().unwrap(), "nodeAllocatableResourceMappings of a device is not served");
    let all = |selector: &str| allocated(&both, &with_selector(selector, "All"), &nothing);
    assert_eq!(all("true").unwrap_err().to_string(), message, "all cannot be given");
    let others = all("!('model' in device.attributes['gpu.example.com'])").unwrap().unwrap();
    assert_eq!(names(&others), ["b"], "it is not one of those that are asked for");
}

#[test]
fn a_device_whose_driver_need_not_act_is_for_nodes_whose_kubelet_knows_of_that() {
    let mut skipping = slice("p", &[json!({"name": "a"})]);
    skipping.spec.skip_node_operations = vec!["*".to_owned()];
    let plain = json!({"name": "b"});
    let mut other = slice("q", &[plain]);
    other.metadata.name = "other".to_owned();
    let slices = [skipping, other];
    let class: DeviceClass = serde_json::from_value(json!({"metadata": {"name": "gpu"}})).unwrap();
    let given = |features: &[&str], devices: &Value| {
        let claim = WaitingClaim::read(&claim(devices), &CompiledClasses::new([&class])).unwrap();
        let features = features.iter().map(|feature| (*feature).to_owned()).collect();
        let labels = Labels::new();
        let node = TargetNode { name: "n1", labels: &labels, features: Some(&features) };
        let pools = DevicePools::new(&slices);
        let found = allocate(&[&claim], node, &pools, &HeldDevices::default()).unwrap();
        let usable = found.as_ref().map(|found| node.can_use(&found.results[0]));
        assert!(usable.is_none_or(|usable| usable), "{devices}");
        found.map(|found| names(&found).into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    let knows = ["DRAOptionalNodeOperations"];
    let both = || Some(vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(given(&[], &exactly(1)), Some(vec!["b".to_owned()]));
    assert_eq!((given(&[], &exactly(2)), given(&knows, &exactly(2))), (None, both()));
    let all = with_selector("true", "All");
    assert_eq!((given(&[], &all), given(&knows, &all)), (None, both()), "all cannot be given");
    let labels = Labels::new();
    let found = allocate(
        &[&WaitingClaim::read(&claim(&exactly(2)), &CompiledClasses::new([&class])).unwrap()],
        TargetNode { name: "n1", labels: &labels, features: Some(&knows.map(str::to_owned).into()) },
        &DevicePools::new(&slices),
        &HeldDevices::default(),
    );
    let allocation = found.unwrap().unwrap().results.remove(0);
    let skips = allocation.devices.results.iter().map(|device| device.skip_node_operations.clone());
    assert_eq!(skips.collect::<Vec<_>>(), [vec!["*".to_owned()], Vec::new()]);
    assert!(!TargetNode::plain("n1", &labels).can_use(&allocation));
}

#[test]
fn as_many_shares_are_given_as_are_left() {
    let capacity = json!({"memory": {"value": "80Gi", "requestPolicy": {"default": "1Gi"}}});
    let device = json!({"name": "d", "allowMultipleAllocations": true, "capacity": capacity});
    let request = |name: &str| json!({"name": name, "exactly": {"deviceClassName": "gpu"}});
    let asked = json!({"requests": [request("a"), request("b")]});
    let given = |left: Option<u32>| {
        let mut held = HeldDevices::default();
        held.add_unclaimed(&DeviceId::new("gpu.example.com", "p", "d"), None, left);
        allocated(&[slice("p", std::slice::from_ref(&device))], &asked, &held).unwrap().is_some()
    };
    assert_eq!([None, Some(2), Some(1), Some(0)].map(given), [true, true, false, false]);
}

/// Whether a device is given for a claim with this selector, where the slices were published one after the other.
fn given_of(published: &[ResourceSlice], selector: &str) -> Vec<bool> {
    let class: DeviceClass = serde_json::from_value(json!({"metadata": {"name": "gpu"}})).unwrap();
    let claim =
        WaitingClaim::read(&claim(&with_selector(selector, "ExactCount")), &CompiledClasses::new([&class]))
            .unwrap();
    let labels = Labels::new();
    let (mut inventory, held) = (DevicePools::default(), HeldDevices::default());
    let mut selected = Selected::default();
    let mut given = |slice: &ResourceSlice| {
        inventory.set(std::sync::Arc::new(slice.clone()));
        let node = TargetNode::plain("n1", &labels);
        let mut go_on = |_| ControlFlow::Continue(());
        allocate_again(&[&claim], node, (&inventory, &held), &mut selected, &mut go_on).unwrap().is_some()
    };
    published.iter().map(&mut given).collect()
}

#[test]
fn a_device_that_is_published_anew_is_selected_anew() {
    let model = |model: &str| slice("p", &[json!({"name": "a", "attributes": {"model": {"string": model}}})]);
    let published = [model("A100"), model("A100"), model("H100"), model("A100")];
    let selector = r#"device.attributes["gpu.example.com"].model == "A100""#;
    assert_eq!(given_of(&published, selector), [true, true, false, true]);
}

#[test]
fn a_search_can_be_ended_and_an_earlier_solution_is_repeated_as_long_as_it_holds() {
    let class: DeviceClass = serde_json::from_value(json!({"metadata": {"name": "gpu"}})).unwrap();
    let of_claim =
        claim(&json!({"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}]}));
    let claim = WaitingClaim::read(&of_claim, &CompiledClasses::new([&class])).unwrap();
    let (labels, mut inventory, mut held) = (Labels::new(), DevicePools::default(), HeldDevices::default());
    let publish = |inventory: &mut DevicePools, count: usize| {
        let devices: Vec<_> = (0..count).map(|at| json!({"name": format!("gpu-{at}")})).collect();
        inventory.set(std::sync::Arc::new(slice("n1", &devices)));
    };
    publish(&mut inventory, 4);
    let mut selected = Selected::default();
    let mut attempt = |inventory: &DevicePools, held: &HeldDevices, goes_on: bool| {
        let node = TargetNode::plain("n1", &labels);
        let mut go_on = |_| if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        let found = allocate_again(&[&claim], node, (inventory, held), &mut selected, &mut go_on)?;
        let devices = found
            .map(|found| found.results[0].devices.results.iter().map(|one| one.device.clone()).collect());
        Ok::<Option<Vec<_>>, AllocationError>(devices)
    };
    assert_eq!(
        attempt(&inventory, &held, false),
        Err(AllocationError::Interrupted),
        "nothing was found before"
    );
    let first = Some(vec!["gpu-0".to_owned(), "gpu-1".to_owned()]);
    assert_eq!(attempt(&inventory, &held, true), Ok(first.clone()));
    assert_eq!(attempt(&inventory, &held, false), Ok(first));
    held.insert(
        DeviceId::new("gpu.example.com", "n1", "gpu-1"),
        DeviceInUse { whole: true, ..DeviceInUse::default() },
    );
    assert_eq!(
        attempt(&inventory, &held, false),
        Err(AllocationError::Interrupted),
        "another has one of them"
    );
    assert!(attempt(&inventory, &held, true).unwrap().is_some());
    publish(&mut inventory, 4);
    assert_eq!(
        attempt(&inventory, &held, false),
        Err(AllocationError::Interrupted),
        "they are published anew"
    );
}
