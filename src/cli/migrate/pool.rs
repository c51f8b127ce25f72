//! The nodes of a pool, and all that decides on claims there.

mod cards;

use std::{collections::BTreeSet, sync::Arc};

use anyhow::bail;

use super::input::MigrationInput;
use crate::{
    device::{CardId, MiB, Selection},
    dialect::{Dialects, claim::published::Driver},
    dra,
    object::{
        DeviceClass, LabelSelector, Labels, Metadata, ResourceClaim, ResourceSlice,
        device_class::{CelSelector, DeviceClassSpec, DeviceSelector},
    },
    scheduling::world::resource_claims::unreadable,
};

pub(super) use cards::{CardSource, PoolCard};

/// A class of devices and the driver that publishes them.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolClass<'a> {
    pub(super) name: &'a str,
    pub(super) driver: &'a str,
}

/// The nodes of a pool, and all that decides on claims there.
#[derive(Debug)]
pub(super) struct MigrationPool<'a> {
    pub(super) class: PoolClass<'a>,
    /// By name.
    pub(super) nodes: Vec<PoolNode>,
    pub(super) classes: Vec<Arc<DeviceClass>>,
    /// What drivers have published, and what they would for cards that are registered.
    pub(super) slices: Vec<Arc<ResourceSlice>>,
    /// The claims that are allocated.
    pub(super) claims: Vec<Arc<ResourceClaim>>,
    /// What was assumed, or could not be read.
    pub(super) notices: Vec<String>,
}

/// A node of the pool.
#[derive(Debug)]
pub(super) struct PoolNode {
    pub(super) name: String,
    pub(super) labels: Labels,
    pub(super) source: CardSource,
    pub(super) cards: Vec<PoolCard>,
}

impl<'a> MigrationPool<'a> {
    /// The pool that the selector selects; without one, every node that has cards.
    pub(super) fn of(
        input: &MigrationInput<'_>,
        selector: Option<&LabelSelector>,
        dialects: &Dialects,
        class: PoolClass<'a>,
    ) -> anyhow::Result<Self> {
        let mut notices = Vec::new();
        let mut slices: Vec<ResourceSlice> = input.slices.values().cloned().collect();
        let mut chosen = Vec::new();
        for node in input.nodes.values() {
            let labels = node.metadata.labels.clone().unwrap_or_default();
            if selector.is_some_and(|selector| !selector.matches(&labels)) {
                continue;
            }
            let (source, derived) = cards::source(node, &labels, (dialects, class, &slices), &mut notices);
            slices.extend(derived);
            if selector.is_some() || source != CardSource::Nothing {
                chosen.push((node.metadata.name.clone(), labels, source));
            }
        }
        if chosen.is_empty() {
            bail!("{}", if selector.is_some() { "--nodes: no node matches" } else { "no node has cards" });
        }
        let nodes = chosen.into_iter().map(|(name, labels, source)| {
            let cards = cards::cards(dra::TargetNode::plain(&name, &labels), class.driver, &slices);
            PoolNode { name, labels, source, cards }
        });
        let nodes = nodes.collect();
        let known = input.classes.values().any(|known| known.metadata.name == class.name);
        let assumed = (!known).then(|| assumed(class));
        if assumed.is_some() {
            let message = format!(
                "DeviceClass {} was not found: the plan assumes that it admits all cards of driver {}",
                class.name, class.driver
            );
            notices.push(message);
        }
        Ok(Self {
            class,
            nodes,
            classes: input.classes.values().cloned().chain(assumed).map(Arc::new).collect(),
            slices: slices.into_iter().map(Arc::new).collect(),
            claims: allocated(input, &mut notices),
            notices,
        })
    }

    /// The node of this name.
    pub(super) fn node(&self, name: &str) -> Option<&PoolNode> {
        self.nodes.iter().find(|node| node.name == name)
    }
}

impl PoolNode {
    /// The node as selectors of nodes and of devices see it.
    pub(super) fn reached(&self) -> dra::TargetNode<'_> {
        dra::TargetNode::plain(&self.name, &self.labels)
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

/// The class of all cards of the driver, as the driver's chart makes it where it is known.
fn assumed(class: PoolClass<'_>) -> DeviceClass {
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

/// The claims that are allocated already.
fn allocated(input: &MigrationInput<'_>, notices: &mut Vec<String>) -> Vec<Arc<ResourceClaim>> {
    let mut claims = Vec::new();
    for claim in input.claims.values() {
        let Some(allocation) = &claim.status.allocation else { continue };
        let Metadata { namespace, name, .. } = &claim.metadata;
        let troubles = unreadable(allocation).into_iter();
        notices.extend(troubles.map(|trouble| format!("ResourceClaim {namespace}/{name}: {trouble}")));
        claims.push(Arc::new(claim.clone()));
    }
    claims
}
