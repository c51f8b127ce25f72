//! Pods of one container that ask for a share of one card.

use std::{num::NonZeroU32, sync::Arc};

use jiff::Timestamp;

use super::hami;
use crate::{
    device::{
        Blend, CardPolicy, ContainerRequest, CoreBudget, CoreRequest, DeviceRequest, MemoryRequest, MiB,
        NodePolicy, PodRequest, Profile, Role, Selection, ShareRequest, SlicesOfCard, Tie,
    },
    scheduling::{
        Ask, Claim, Constraints, Footprint, Importance, Lifetime, PodGroups, PodInfo, PodKey, PodStatus,
        ResourceAmounts, Stage, model::pod::Placer,
    },
};

pub(super) fn key(name: &str) -> PodKey {
    PodKey { uid: name.into(), namespace: "default".into(), name: name.into() }
}

/// A pod that asks for so many MiB.
pub(in super::super) fn pod(name: &str, memory: u64, created: Timestamp) -> PodInfo {
    let share = ShareRequest {
        cards: NonZeroU32::MIN,
        memory: MemoryRequest::Exact(MiB::new(memory)),
        cores: CoreRequest::NONE,
    };
    let request = PodRequest {
        containers: vec![ContainerRequest { role: Role::App, share: Some(share) }],
        selection: Selection::default(),
        choice: CardPolicy::Spread.into(),
        node_policy: NodePolicy::Binpack,
        marks: std::collections::BTreeSet::new(),
        shuns: std::collections::BTreeSet::new(),
    };
    let profile = Profile {
        name: hami(),
        blend: Blend::Even,
        tie: Tie::Highest,
        core_budget: CoreBudget::Registered,
        slices: SlicesOfCard::Several,
    };
    let ask = Ask {
        devices: vec![DeviceRequest { profile, request, joint: None, by_class: None }],
        resources: ResourceAmounts::default(),
        constraints: Constraints::default(),
    };
    PodInfo {
        key: key(name),
        resource_version: "1".to_owned(),
        importance: Importance::default(),
        lifetime: Lifetime { created, leaving: None },
        status: PodStatus::default(),
        placer: Placer::Berth,
        stage: Stage::Pending,
        claim: Claim::Place(Arc::new(ask)),
        holding: None,
        footprint: Arc::new(Footprint { namespace: "default".into(), ..Footprint::default() }),
        origin: None,
        groups: PodGroups::default(),
    }
}
