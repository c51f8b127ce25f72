//! Upstream's Go structs as Berth's values, and the dialects with upstream's default settings.

use std::{collections::BTreeMap, num::NonZeroU32};

use berth::{
    config::Config,
    device::{
        Assignment, Card, CardPolicy, CardUsage, ContainerRequest, ContainerShares, CoreRequest, Cores,
        Health, LockNeed, MemoryRequest, MiB, Mode, NodePolicy, Percent, Role, Share, ShareRequest, Slice,
        SlicePlacement, SliceProfile, Slicing, Usage, Users,
    },
    dialect::{LockForm, LockSpec, hami, volcano},
    object::{Node, Pod},
};
use jiff::SignedDuration;
use serde_json::{Value, json};

/// HAMi's settings by default, with its own policies.
pub(crate) fn hami_settings() -> hami::HamiSettings {
    hami::HamiSettings {
        node_policy: NodePolicy::Binpack,
        card_policies: vec![CardPolicy::Spread],
        ..Config::default().dialects.hami.settings()
    }
}

/// HAMi's dialect by default.
pub(crate) fn hami() -> hami::Hami {
    hami::Hami::new(hami_settings())
}

/// Volcano's settings by default, with a weight, so that nodes are told apart.
pub(crate) fn volcano_settings() -> volcano::VolcanoSettings {
    volcano::VolcanoSettings {
        node_policy: NodePolicy::Binpack,
        card_policy: CardPolicy::Binpack,
        ..Config::default().dialects.volcano.settings()
    }
}

/// A lock of five minutes.
pub(crate) fn lock(key: &str, form: LockForm) -> LockSpec {
    LockSpec { key: key.to_owned(), form, expiry: SignedDuration::from_mins(5), need: LockNeed::Always }
}

/// A node with these annotations.
pub(crate) fn node(annotations: &Value) -> Node {
    serde_json::from_value(json!({"metadata": {"name": "node", "annotations": annotations}})).unwrap()
}

/// A pod as its JSON has it; none: an empty one.
pub(crate) fn pod(value: &Value) -> Pod {
    if value.is_null() { Pod::default() } else { serde_json::from_value(value.clone()).unwrap() }
}

/// A pod with these annotations whose only container has these limits.
pub(crate) fn pod_of(annotations: &Value, limits: &Value) -> Pod {
    pod(&json!({
        "metadata": {"name": "pod", "namespace": "default", "annotations": annotations},
        "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]},
    }))
}

/// A field that Go leaves out where it is zero.
pub(crate) fn number(object: &Value, field: &str) -> u32 {
    let number = object[field].as_i64().unwrap_or(0);
    u32::try_from(number).unwrap_or_else(|_| panic!("{field} {number} in {object}"))
}

/// Likewise of text.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}

/// The elements of a list; none of nothing.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A `DeviceInfo` (`Devmem`, `Devcore`) or `DeviceUsage` (`Totalmem`, `Totalcore`).
pub(crate) fn card(device: &Value) -> Card {
    let memory = number(device, "Devmem").max(number(device, "Totalmem"));
    Card {
        id: text(device, "ID").into(),
        index: number(device, "Index"),
        slots: number(device, "Count"),
        memory: MiB::new(memory.into()),
        cores: Cores::new(number(device, "Devcore").max(number(device, "Totalcore"))),
        model: text(device, "Type").into(),
        numa: number(device, "Numa"),
        mode: match text(device, "Mode") {
            "mig" => Mode::Mig,
            "mps" => Mode::Mps,
            _ => Mode::Soft,
        },
        slicing: slicing(&device["MigProfiles"]),
        health: if device["Health"] == json!(true) { Health::Healthy } else { Health::Unhealthy },
    }
}

fn slicing(profiles: &Value) -> Slicing {
    let profiles: Vec<_> = list(profiles).iter().map(profile).collect();
    if profiles.is_empty() { Slicing::Unknown } else { Slicing::Placements(profiles) }
}

fn profile(profile: &Value) -> SliceProfile {
    SliceProfile {
        name: text(profile, "Name").into(),
        memory: MiB::new(number(profile, "MemoryMB").into()),
        cores: Cores::new(number(profile, "Core")),
        slices: number(profile, "SliceCount"),
        placements: list(&profile["Placements"]).iter().map(placement).collect(),
    }
}

/// A placement; its fields in either case.
pub(crate) fn placement(place: &Value) -> SlicePlacement {
    let field = |upper, lower| number(place, upper).max(number(place, lower));
    SlicePlacement { start: field("Start", "start"), size: field("Size", "size") }
}

/// What is in use of these `DeviceUsage`s.
pub(crate) fn usage(devices: &[Value]) -> Usage {
    let users = |device: &Value| {
        let slice = |held: &Value| Slice::Placed {
            profile: text(held, "Profile").into(),
            placement: placement(&held["Placement"]),
        };
        let amounts = CardUsage {
            slots: number(device, "Used"),
            memory: MiB::new(number(device, "Usedmem").into()),
            cores: Cores::new(number(device, "Usedcores")),
        };
        let slices = list(&device["MigAllocationsInUse"]).iter().map(slice).collect();
        (text(device, "ID").into(), Users { amounts, slices, ..Users::default() })
    };
    devices.iter().map(users).collect()
}

/// A `ContainerDeviceRequest`; `None` where it asks for no card.
pub(crate) fn request(request: &Value) -> Option<ShareRequest> {
    let percent = request["MemPercentagereq"].as_i64().unwrap_or(0);
    let memory = match (number(request, "Memreq"), percent) {
        (0, 101) => MemoryRequest::Exact(MiB::default()),
        (0, percent) => MemoryRequest::Part(Percent::new(u32::try_from(percent).unwrap())),
        (memory, _) => MemoryRequest::Exact(MiB::new(memory.into())),
    };
    // Upstream caps compute within the fit; Berth refuses more than 100 when it reads the pod.
    let cores = CoreRequest::Exact(Cores::new(number(request, "Coresreq").min(100)));
    let cards = NonZeroU32::new(number(request, "Nums"))?;
    Some(ShareRequest { cards, memory, cores })
}

/// A container that asks this.
pub(crate) fn container(role: Role, share: Option<ShareRequest>) -> ContainerRequest {
    ContainerRequest { role, share }
}

/// A `ContainerDevice`.
pub(crate) fn share(device: &Value) -> Share {
    Share {
        card: text(device, "UUID").into(),
        memory: MiB::new(number(device, "Usedmem").into()),
        cores: Cores::new(number(device, "Usedcores")),
        slice: device["profile"].as_str().map(|profile| {
            Box::new(Slice::Placed { profile: profile.into(), placement: placement(&device["placement"]) })
        }),
    }
}

/// `PodSingleDevice`: for each container its devices; the first so many are init containers.
pub(crate) fn assignment(containers: &Value, init: usize) -> Assignment {
    let role = |at| if at < init { Role::Init } else { Role::App };
    let container = |(at, devices): (usize, &Value)| ContainerShares {
        role: role(at),
        shares: list(devices).iter().map(share).collect(),
    };
    let containers = list(containers).iter().enumerate().map(container).collect();
    Assignment { containers, ..Assignment::default() }
}

/// The shares of each container, without the empty ones at the end.
pub(crate) fn shares(assignment: &Assignment) -> Vec<Vec<Share>> {
    let mut shares: Vec<_> = assignment.containers.iter().map(|container| container.shares.clone()).collect();
    while shares.last().is_some_and(Vec::is_empty) {
        shares.pop();
    }
    shares
}

/// Annotations as a pod's JSON has them.
pub(crate) fn annotations(record: &BTreeMap<String, String>) -> Value {
    serde_json::to_value(record).unwrap()
}
