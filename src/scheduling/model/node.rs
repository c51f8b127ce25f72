//! A node, as scheduling sees it.

mod devices;
mod locks;

use std::{collections::BTreeSet, sync::Arc};

use super::{images::NodeImages, label_set::LabelSet, name::NodeName, pod::Ask, resources::ResourceAmounts};
use crate::{
    device::{ModelTemplates, ProfileName},
    object::Taint,
};

pub use devices::{Offer, OfferedDevices};
pub use locks::{NodeLock, RequiredLocks, Signature};

/// The label of nodes that are kept for pods with a share of a card. Its value is `true`.
pub const SHARES_ONLY: &str = "berth.dev/shares-only";

/// A node with so many pods in line is passed over for the next best: packing gives way to not waiting.
pub const FULL_LINE: usize = 8;

/// A node.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NodeInfo {
    /// Its name.
    pub name: NodeName,
    /// Its identity.
    pub uid: Arc<str>,
    /// The version that a lock is taken against.
    pub resource_version: String,
    /// Its labels.
    pub labels: LabelSet,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// Whether it is cordoned.
    pub cordoned: bool,
    /// What pods may be given.
    pub allocatable: ResourceAmounts,
    /// The images that it has, where the score of `ImageLocality` counts.
    pub images: NodeImages,
    /// Features that its kubelet declares.
    pub features: BTreeSet<String>,
    /// Its devices.
    pub devices: OfferedDevices,
    /// Its locks.
    pub locks: RequiredLocks,
}

impl NodeInfo {
    /// Takes in what a Device of the node offers, in place of what one offered before, with the templates of shares where there are any.
    pub fn set_devices(&mut self, offer: &Offer, templates: Option<&ModelTemplates>) {
        self.drop_devices(&offer.profile);
        let offer = offer.on(&self.devices.traits, templates);
        let plugin = offer.inventory.as_deref().and_then(|inventory| inventory.devices().plugin.as_ref());
        if let Some(plugin) = plugin {
            self.locks.require(&offer.profile, &plugin.lock);
        }
        self.devices.offers.push(offer);
    }

    /// Takes in that no Device of the node offers anything, and so that no device plugin needs a lock.
    pub fn drop_devices(&mut self, profile: &ProfileName) {
        self.devices.offers.retain(|known| known.profile != *profile);
        self.locks.drop_vendors(profile);
    }

    /// Whether its operator keeps it for pods with a share of a card.
    pub fn is_for_shares_only(&self) -> bool {
        self.labels.get(SHARES_ONLY) == Some("true")
    }

    /// Whether it has a taint for which pods that do not tolerate it prefer others.
    pub fn is_unfavoured(&self) -> bool {
        self.taints.iter().any(|taint| taint.effect == "PreferNoSchedule")
    }

    /// The locks that a pod needs to be given here what it asks for.
    pub fn locks_for<'a>(&'a self, ask: &'a Ask) -> impl Iterator<Item = &'a NodeLock> {
        self.locks_of(ask.served())
    }

    /// The locks that these dialects need; several may have one in common.
    pub fn locks_of<'a>(
        &'a self,
        profiles: impl IntoIterator<Item = &'a ProfileName>,
    ) -> impl Iterator<Item = &'a NodeLock> {
        // Without a plugin there is no lock to take: a claim serves the pod.
        let offered = profiles.into_iter().filter(|profile| self.devices.offer(profile).is_some());
        offered.filter_map(|profile| self.locks.of(profile))
    }

    /// Whether the other differs in nothing that decides what fits.
    pub fn fits_as(&self, other: &Self) -> bool {
        let Self {
            name: _,
            uid,
            resource_version: _,
            labels,
            taints,
            cordoned,
            allocatable,
            images: _,
            features,
            devices,
            locks: _,
        } = self;
        devices.fits_as(&other.devices)
            && (uid, labels, taints, cordoned, allocatable, features)
                == (
                    &other.uid,
                    &other.labels,
                    &other.taints,
                    &other.cordoned,
                    &other.allocatable,
                    &other.features,
                )
    }
}
