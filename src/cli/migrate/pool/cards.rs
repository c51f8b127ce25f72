//! The devices of one driver on a node: as published, or as they would be.

use serde::Serialize;

use super::PoolClass;
use crate::{
    device::{Card, MiB},
    dialect::{CardNaming, Dialects, Registered, SharingMode, claim::published::Driver},
    dra::{self, device::DeviceId},
    object::{Labels, Node, ResourceSlice, resource_slice::SliceDevice},
};

/// From what the devices of a node are known.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::cli::migrate) enum CardSource {
    /// The driver has published them.
    Slices,
    /// A device plugin has registered them as cards.
    Registration,
    /// There are none.
    Nothing,
}

/// A device of the driver.
#[derive(Debug)]
pub(in crate::cli::migrate) struct PoolCard {
    pub(in crate::cli::migrate) id: DeviceId,
    pub(in crate::cli::migrate) uuid: String,
    pub(in crate::cli::migrate) product: String,
    pub(in crate::cli::migrate) memory: Option<MiB>,
    pub(in crate::cli::migrate) shareable: bool,
}

/// From what the node's devices are known, and the slice that its driver would publish.
pub(super) fn source(
    node: &Node,
    labels: &Labels,
    (dialects, class, slices): (&Dialects, PoolClass<'_>, &[ResourceSlice]),
    notices: &mut Vec<String>,
) -> (CardSource, Option<ResourceSlice>) {
    let name = node.metadata.name.as_str();
    let reached = dra::TargetNode::plain(name, labels);
    if slices.iter().any(|slice| slice.spec.driver == class.driver && reaches(slice, reached)) {
        return (CardSource::Slices, None);
    }
    let Some(cards) = registered(node, dialects, notices) else { return (CardSource::Nothing, None) };
    if let Some(driver) = Driver::named(class.driver) {
        return (CardSource::Registration, Some(driver.slice(name, &cards)));
    }
    let driver = class.driver;
    let message = format!("driver {driver} has published no cards there, and how it would is not known");
    notices.push(format!("Node {name}: {message}"));
    (CardSource::Nothing, None)
}

/// Whether the node can reach devices of the slice.
fn reaches(slice: &ResourceSlice, node: dra::TargetNode<'_>) -> bool {
    let spec = &slice.spec;
    let selected = || spec.node_selector.as_ref().is_some_and(|selector| node.matches(selector));
    spec.all_nodes || spec.node_name.as_deref() == Some(node.name) || selected()
}

/// NVIDIA's cards that a plugin has registered, if possible one that knows them by uuid.
fn registered(node: &Node, dialects: &Dialects, notices: &mut Vec<String>) -> Option<Vec<Card>> {
    let mut plugins = Registered::read(dialects, node).plugins;
    plugins.retain(|plugin| !matches!(plugin.mode, SharingMode::Vendor(_)));
    plugins.sort_by_key(|plugin| plugin.naming != CardNaming::Uuid);
    for plugin in plugins {
        match plugin.inventory {
            Ok(inventory) => return Some(inventory.cards().to_vec()),
            Err(trouble) => notices.push(format!("Node {}: {trouble}", node.metadata.name)),
        }
    }
    None
}

/// The driver's devices that the node can reach, of the newest generation of each pool.
pub(super) fn cards(node: dra::TargetNode<'_>, driver: &str, slices: &[ResourceSlice]) -> Vec<PoolCard> {
    let of_driver = || slices.iter().filter(|slice| slice.spec.driver == driver);
    let newest = |slice: &&ResourceSlice| {
        let pool = &slice.spec.pool;
        let same = of_driver().filter(|other| other.spec.pool.name == pool.name);
        same.map(|other| other.spec.pool.generation).max() == Some(pool.generation)
    };
    let reached = of_driver().filter(|slice| reaches(slice, node)).filter(newest);
    reached.flat_map(|slice| slice.spec.devices.iter().map(|device| card(slice, device))).collect()
}

fn card(slice: &ResourceSlice, device: &SliceDevice) -> PoolCard {
    let text = |name: &str| {
        let qualified = format!("{}/{name}", slice.spec.driver);
        let value = device.attributes.get(name).or_else(|| device.attributes.get(&qualified));
        value.and_then(|value| value.string.clone()).unwrap_or_default()
    };
    let memory = device.capacity.get("memory").and_then(|capacity| capacity.value.amount().ok());
    let mebibytes = |bytes: i128| u64::try_from(bytes >> 20).ok().map(MiB::new);
    PoolCard {
        id: DeviceId::new(&slice.spec.driver, &slice.spec.pool.name, &device.name),
        uuid: text("uuid"),
        product: text("productName"),
        memory: memory.and_then(|amount| mebibytes(amount.whole()?)),
        shareable: device.allow_multiple_allocations,
    }
}
