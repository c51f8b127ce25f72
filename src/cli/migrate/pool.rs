//! The nodes of a pool and the devices of one driver on them: as published, or as they would be.

use std::collections::BTreeSet;

use anyhow::bail;
use serde::Serialize;

use super::input::Input;
use crate::{
    device::{Card, CardId, MiB, Selection},
    dialect::{CardNaming, Dialects, Registered, SharingMode, claim::published::Driver},
    dra::{self, Classes, HeldDevices, Inventory, device::DeviceId},
    object::{
        DeviceClass, LabelSelector, Labels, Metadata, Node, ResourceSlice,
        device_class::{CelSelector, DeviceClassSpec, DeviceSelector},
        resource_slice::SliceDevice,
    },
};

/// A class of devices and the driver that publishes them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Class<'a> {
    pub(super) name: &'a str,
    pub(super) driver: &'a str,
}

/// The nodes of a pool, and all that decides on claims there.
#[derive(Debug)]
pub(super) struct Pool<'a> {
    pub(super) class: Class<'a>,
    /// By name.
    pub(super) nodes: Vec<PoolNode>,
    pub(super) classes: Classes,
    pub(super) inventory: Inventory,
    /// What allocated claims hold.
    pub(super) held: HeldDevices,
    /// What was assumed, or could not be read.
    pub(super) notices: Vec<String>,
}

/// A node of the pool.
#[derive(Debug)]
pub(super) struct PoolNode {
    pub(super) name: String,
    pub(super) labels: Labels,
    pub(super) source: Source,
    pub(super) cards: Vec<PoolCard>,
}

/// From what the devices of a node are known.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Source {
    /// The driver has published them.
    Slices,
    /// A device plugin has registered them as cards.
    Registration,
    /// There are none.
    Nothing,
}

/// A device of the driver.
#[derive(Debug)]
pub(super) struct PoolCard {
    pub(super) id: DeviceId,
    pub(super) uuid: String,
    pub(super) product: String,
    pub(super) memory: Option<MiB>,
    pub(super) shareable: bool,
}

impl<'a> Pool<'a> {
    /// The pool that the selector selects; without one, every node that has cards.
    pub(super) fn of(
        input: &Input<'_>,
        selector: Option<&LabelSelector>,
        dialects: &Dialects,
        class: Class<'a>,
    ) -> anyhow::Result<Self> {
        let mut notices = Vec::new();
        let mut slices: Vec<ResourceSlice> = input.slices.values().cloned().collect();
        let mut chosen = Vec::new();
        for node in input.nodes.values() {
            let labels = node.metadata.labels.clone().unwrap_or_default();
            if selector.is_some_and(|selector| !selector.matches(&labels)) {
                continue;
            }
            let (source, derived) = source(node, &labels, (dialects, class, &slices), &mut notices);
            slices.extend(derived);
            if selector.is_some() || source != Source::Nothing {
                chosen.push((node.metadata.name.clone(), labels, source));
            }
        }
        if chosen.is_empty() {
            bail!("{}", if selector.is_some() { "--nodes: no node matches" } else { "no node has cards" });
        }
        let nodes = chosen.into_iter().map(|(name, labels, source)| {
            let cards = cards(dra::Node { name: &name, labels: &labels }, class.driver, &slices);
            PoolNode { name, labels, source, cards }
        });
        let nodes = nodes.collect();
        let known = input.classes.values().any(|known| known.metadata.name == class.name);
        let assumed = (!known).then(|| assumed(class));
        if assumed.is_some() {
            let message = format!(
                "DeviceClass {} was not found: it is taken to have all cards of driver {}",
                class.name, class.driver
            );
            notices.push(message);
        }
        Ok(Self {
            class,
            nodes,
            classes: Classes::new(input.classes.values().chain(&assumed)),
            inventory: Inventory::new(&slices),
            held: held(input, &mut notices),
            notices,
        })
    }

    /// The node of this name.
    pub(super) fn node(&self, name: &str) -> Option<&PoolNode> {
        self.nodes.iter().find(|node| node.name == name)
    }
}

impl PoolNode {
    /// The node as the allocator knows it.
    pub(super) fn reached(&self) -> dra::Node<'_> {
        dra::Node { name: &self.name, labels: &self.labels }
    }

    /// The memory of each card that the selection admits, where all have the same.
    pub(super) fn card_memory(&self, selection: &Selection) -> Option<MiB> {
        let admits = |card: &&PoolCard| {
            selection.models.admits(&format!("NVIDIA-{}", card.product))
                && selection.ids.admits(&CardId::from(&card.uuid))
        };
        let sizes: BTreeSet<Option<MiB>> = self.cards.iter().filter(admits).map(|card| card.memory).collect();
        match sizes.into_iter().collect::<Vec<_>>()[..] {
            [one] => one,
            _ => None,
        }
    }
}

/// From what the node's devices are known, and the slice that its driver would publish.
fn source(
    node: &Node,
    labels: &Labels,
    (dialects, class, slices): (&Dialects, Class<'_>, &[ResourceSlice]),
    notices: &mut Vec<String>,
) -> (Source, Option<ResourceSlice>) {
    let name = node.metadata.name.as_str();
    let reached = dra::Node { name, labels };
    if slices.iter().any(|slice| slice.spec.driver == class.driver && reaches(slice, reached)) {
        return (Source::Slices, None);
    }
    let Some(cards) = registered(node, dialects, notices) else { return (Source::Nothing, None) };
    if let Some(driver) = Driver::named(class.driver) {
        return (Source::Registration, Some(driver.slice(name, &cards)));
    }
    let driver = class.driver;
    let message = format!("driver {driver} has published no cards there, and how it would is not known");
    notices.push(format!("Node {name}: {message}"));
    (Source::Nothing, None)
}

/// Whether the node can reach devices of the slice.
fn reaches(slice: &ResourceSlice, node: dra::Node<'_>) -> bool {
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
fn cards(node: dra::Node<'_>, driver: &str, slices: &[ResourceSlice]) -> Vec<PoolCard> {
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

/// The class of all cards of the driver, as the driver's chart makes it where it is known.
fn assumed(class: Class<'_>) -> DeviceClass {
    let driver = class.driver;
    let of_type = Driver::named(driver)
        .map(|known| format!(" && device.attributes['{driver}'].type == '{}'", known.device_type()));
    let expression = format!("device.driver == '{driver}'{}", of_type.unwrap_or_default());
    let selectors = vec![DeviceSelector { cel: Some(CelSelector { expression }) }];
    DeviceClass {
        metadata: Metadata { name: class.name.to_owned(), ..Metadata::default() },
        spec: DeviceClassSpec { selectors, ..DeviceClassSpec::default() },
    }
}

/// What claims hold that are allocated already.
fn held(input: &Input<'_>, notices: &mut Vec<String>) -> HeldDevices {
    let mut held = HeldDevices::default();
    for claim in input.claims.values() {
        for trouble in claim.status.allocation.iter().flat_map(|allocation| held.add(allocation)) {
            let Metadata { namespace, name, .. } = &claim.metadata;
            notices.push(format!("ResourceClaim {namespace}/{name}: {trouble}"));
        }
    }
    held
}
