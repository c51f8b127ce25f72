//! Shares of cards that a node without a device plugin of the dialect may serve by a claim.

use std::collections::BTreeSet;

use super::{ReadPurpose, Reader};
use crate::{
    device::{ByClass, ProfileRequest},
    dialect::{
        Dialect, Dialects, SharingMode,
        claim::{HAMI_DRIVER, Target, class_resource, translate},
    },
    object::Pod,
    scheduling::model::{
        extended_resources::{ExtendedResources, ShareRequests, Shares},
        footprint::Footprint,
    },
};

/// The modes whose shares one of these classes of devices may serve.
pub fn modes_by_class(dialects: &Dialects, classes: &ExtendedResources) -> BTreeSet<SharingMode> {
    let is_served = |resource: &str| classes.class_or(resource, HAMI_DRIVER).is_some();
    let served = dialects.iter().filter(|dialect| class_resource(&***dialect).is_some_and(is_served));
    served.map(|dialect| dialect.mode().clone()).collect()
}

impl Reader {
    /// What the pod asks of a class of devices in place of shares of the dialect's cards; `None`: a claim can't say it.
    pub(super) fn by_class(
        &self,
        dialect: &dyn Dialect,
        pod: &Pod,
        asked: &ProfileRequest,
    ) -> Option<ShareRequests> {
        let resource = class_resource(dialect).filter(|_| self.judged != ReadPurpose::Cards)?;
        // The class is the node's to decide, and with it the driver.
        let target = Target { class: "", driver: None, card_memory: None };
        let spec = translate(dialect, pod, &asked.request, &target).spec?;
        let containers = asked.request.containers.iter().enumerate();
        let containers = containers.filter(|(_, container)| container.share.is_some()).map(|(at, _)| at);
        let devices = spec.devices.requests.into_iter().filter_map(|request| request.exactly);
        Some(ShareRequests {
            shares: Shares {
                profile: asked.profile.name.clone(),
                by_class: ByClass { resource: resource.into(), otherwise: HAMI_DRIVER.into() },
                least: asked.request.least(),
            },
            containers: containers.zip(devices).collect(),
        })
    }

    /// The footprint of a pod that is on a node: shares that a claim serves there count in the quotas of their dialect.
    pub(super) fn bound(&self, pod: &Pod, footprint: Footprint) -> Footprint {
        let Some(served) = &pod.status.extended_resource_claim_status else { return footprint.bound(None) };
        let shares = self.asked(pod).ok().flatten().and_then(|(_, shares)| shares);
        footprint.sharing(shares).0.bound(Some(served))
    }
}
