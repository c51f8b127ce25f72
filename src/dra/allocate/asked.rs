//! How many devices of which kinds a claim asks for, whatever nodes there are and whatever is in use.

use std::{collections::BTreeMap, sync::Arc};

use super::{options::fits_beside, selected::selected, toll::GoOn};
use crate::{
    dra::{
        AllocationError, WaitingClaim,
        capacity::percent,
        claim::{Alternative, CountMode},
        device::{CORES, DeviceKind, MEMORY, PoolDevice},
        error::MOST_RESULTS,
    },
    object::Amount,
};

/// What one request of a claim asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AskedDevices {
    /// How many devices; 1 where it asks for all of a node, whose number differs from node to node.
    pub count: u32,
    /// What it takes of each, by the kinds that serve it: at least one.
    pub takes: BTreeMap<Arc<DeviceKind>, Taken>,
}

/// What a request takes of one device.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Taken {
    /// Whether it is given as a whole.
    pub whole: bool,
    /// Of one that is shared: memory, in bytes.
    pub memory: u64,
    /// Of one that is shared: compute, in percent.
    pub cores: u32,
}

/// A kind of devices, with one such device.
#[derive(Clone, Debug)]
pub struct KnownKind {
    kind: Arc<DeviceKind>,
    device: PoolDevice,
}

impl KnownKind {
    /// Of this kind.
    pub fn of(kind: &Arc<DeviceKind>) -> Self {
        Self { kind: kind.clone(), device: kind.device() }
    }
}

/// What the requests of a claim ask for of devices of these kinds; requests that none of them serves, and those of administrators, are left out.
/// Of a prioritized list the first alternative counts that one of them serves. A selector without a value for a kind does not admit it. `go_on` is
/// asked before each evaluation of a selector; when it says no, the error is [`AllocationError::Interrupted`]. More devices than a claim can be given are an
/// error.
pub fn asked(
    claim: &WaitingClaim,
    kinds: &[KnownKind],
    go_on: GoOn<'_>,
) -> Result<Vec<AskedDevices>, AllocationError> {
    let mut asked = Vec::new();
    for request in &claim.requests {
        for alternative in request.alternatives.iter().filter(|alternative| !alternative.is_admin()) {
            let takes = takes(alternative, kinds, go_on)?;
            if takes.is_empty() {
                continue;
            }
            let count = match alternative.mode {
                CountMode::Exactly(count) => u32::try_from(count).unwrap_or(u32::MAX),
                CountMode::All => 1,
            };
            asked.push(AskedDevices { count, takes });
            break;
        }
    }
    let count = asked.iter().map(|one| one.count as usize).fold(0, usize::saturating_add);
    if count > MOST_RESULTS {
        return Err(AllocationError::TooManyDevices { claim: claim.name.clone(), count });
    }
    Ok(asked)
}

fn takes(
    alternative: &Alternative,
    kinds: &[KnownKind],
    go_on: GoOn<'_>,
) -> Result<BTreeMap<Arc<DeviceKind>, Taken>, AllocationError> {
    let mut takes = BTreeMap::new();
    for KnownKind { kind, device } in kinds {
        let admits = match selected(alternative, device, go_on) {
            Err(AllocationError::Interrupted) => return Err(AllocationError::Interrupted),
            admits => admits.unwrap_or(false),
        };
        if admits && fits_beside(alternative, device, |_| Amount::default()) {
            takes.insert(kind.clone(), taken(alternative, device));
        }
    }
    Ok(takes)
}

fn taken(alternative: &Alternative, device: &PoolDevice) -> Taken {
    let taken = |name: &str| {
        let (spelled, all) = device.capacity(name)?;
        let taken = device.capacity.get(spelled)?.taken(alternative.capacity.get(spelled)).amount;
        Some((taken.units_rounded_up(), all.units_rounded_up()))
    };
    if !device.shareable {
        return Taken { whole: true, memory: 0, cores: 0 };
    }
    let memory = taken(MEMORY).map_or(0, |(memory, _)| u64::try_from(memory).unwrap_or(0));
    let cores = taken(CORES).map_or(0, |(cores, all)| percent(cores, all));
    Taken { whole: false, memory, cores }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use serde_json::{Value, json};

    use super::*;
    use crate::dra::{CompiledClasses, DevicePools, PoolId, Toll};

    /// The kinds of cards among these devices of a node.
    fn kinds(devices: &Value) -> Vec<Arc<DeviceKind>> {
        let spec = json!({"driver": "gpu.example.com", "nodeName": "n1", "devices": devices,
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}});
        let slice = serde_json::from_value(json!({"metadata": {"name": "s"}, "spec": spec})).unwrap();
        let pools = DevicePools::new(&[slice]);
        let pool: PoolId = ("gpu.example.com".into(), "p".into());
        let mut kinds: Vec<_> =
            pools.devices_of(&pool).filter_map(PoolDevice::as_card).map(Arc::new).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }

    /// A device with these attributes and so much memory.
    fn device(name: &str, attributes: &Value, memory: &str) -> Value {
        json!({"name": name, "attributes": attributes, "capacity": {"memory": {"value": memory}}})
    }

    fn card(name: &str, product: &str, memory: &str) -> Value {
        device(name, &json!({"uuid": {"string": name}, "productName": {"string": product}}), memory)
    }

    fn shared(name: &str) -> Value {
        let mut card = card(name, "S", "16Gi");
        card["allowMultipleAllocations"] = json!(true);
        card["capacity"]["cores"] = json!({"value": "200", "requestPolicy": {"default": "200"}});
        card
    }

    type Asked = Vec<(u32, Vec<(String, Taken)>)>;

    fn of_requests(requests: &Value, devices: &Value, allowed: usize) -> Result<Asked, AllocationError> {
        let classes = ["gpu", "nic"].map(|name| {
            let selector = if name == "nic" { "device.driver == 'nic.example.com'" } else { "true" };
            let selectors = json!([{"cel": {"expression": selector}}]);
            let class = json!({"metadata": {"name": name}, "spec": {"selectors": selectors}});
            serde_json::from_value(class).unwrap()
        });
        let claim = json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}});
        let claim = serde_json::from_value(claim).unwrap();
        let claim = WaitingClaim::read(&claim, &CompiledClasses::new(&classes)).unwrap();
        let known: Vec<_> = kinds(devices).iter().map(KnownKind::of).collect();
        let mut left = allowed;
        let asked = asked(&claim, &known, &mut |_: Toll| {
            let goes_on = left > 0;
            left = left.saturating_sub(1);
            if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        let named = |asked: AskedDevices| {
            let takes = asked.takes.into_iter().map(|(kind, taken)| (kind.model().to_owned(), taken));
            (asked.count, takes.collect())
        };
        Ok(asked.into_iter().map(named).collect())
    }

    const WHOLE: Taken = Taken { whole: true, memory: 0, cores: 0 };

    #[test]
    fn cards_are_whole_pieces_of_hardware_with_memory_and_alike_where_the_driver_says_so() {
        let mut tainted = card("GPU-t", "T", "16Gi");
        tainted["taints"] = json!([{"key": "broken", "effect": "NoSchedule"}]);
        let devices = json!([
            card("GPU-0", "A", "16Gi"),
            card("GPU-1", "A", "16Gi"),
            card("GPU-2", "A", "32Gi"),
            card("GPU-3", "B", "16Gi"),
            card("GPU-4", "C", "0"),
            tainted,
            device("mig", &json!({"uuid": {"string": "M"}, "parentUUID": {"string": "GPU-0"}}), "4Gi"),
            device("nameless", &json!({"productName": {"string": "N"}}), "16Gi"),
            json!({"name": "nic", "attributes": {"uuid": {"string": "N"}}}),
        ]);
        let mut found: Vec<_> =
            kinds(&devices).iter().map(|kind| (kind.model().to_owned(), kind.memory() >> 30)).collect();
        found.sort();
        let expected = [("A", 16), ("A", 32), ("B", 16)];
        assert_eq!(found, expected.map(|(model, memory)| (model.to_owned(), memory)));
    }

    #[test]
    fn each_request_counts_that_a_card_serves_and_of_alternatives_the_first() {
        let devices = json!([card("GPU-0", "A", "16Gi"), card("GPU-1", "B", "16Gi")]);
        let of_model = |model: &str, count: u32| {
            let selector = format!("device.attributes['gpu.example.com'].productName == '{model}'");
            let selectors = json!([{"cel": {"expression": selector}}]);
            json!({"name": model, "deviceClassName": "gpu", "selectors": selectors, "count": count})
        };
        let requests = json!([
            {"name": "nic", "exactly": {"deviceClassName": "nic"}},
            {"name": "watched", "exactly": {"deviceClassName": "gpu", "adminAccess": true}},
            {"name": "all", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
            {"name": "either", "firstAvailable": [of_model("X", 1), of_model("B", 2), of_model("A", 3)]},
        ]);
        let whole = |model: &str| (model.to_owned(), WHOLE);
        let expected = vec![(1, vec![whole("A"), whole("B")]), (2, vec![whole("B")])];
        assert_eq!(of_requests(&requests, &devices, 100).unwrap(), expected);
        assert_eq!(of_requests(&requests, &devices, 3), Err(AllocationError::Interrupted));
        let many = json!([{"name": "many", "exactly": {"deviceClassName": "gpu", "count": 33}}]);
        let refused = of_requests(&many, &devices, 100);
        assert!(matches!(refused, Err(AllocationError::TooManyDevices { count: 33, .. })), "{refused:?}");
    }

    #[test]
    fn a_share_takes_what_is_asked_of_it_or_else_what_the_policy_says() {
        let asked = |capacity: Value| {
            let requests =
                json!([{"name": "r", "exactly": {"deviceClassName": "gpu", "capacity": capacity}}]);
            let asked = of_requests(&requests, &json!([shared("GPU-0")]), 100).unwrap();
            asked.first().map(|(_, takes)| takes[0].1)
        };
        let part = |memory: u64, cores| Some(Taken { whole: false, memory: memory << 30, cores });
        assert_eq!(asked(json!({"requests": {"memory": "4Gi", "cores": "50"}})), part(4, 25));
        assert_eq!(asked(json!({"requests": {"memory": "4Gi"}})), part(4, 100));
        assert_eq!(asked(json!({})), part(16, 100));
        assert_eq!(asked(json!({"requests": {"memory": "17Gi"}})), None, "no such card has as much");
        assert_eq!(asked(json!({"requests": {"cpu": "1"}})), None, "no such card has any");
    }
}
