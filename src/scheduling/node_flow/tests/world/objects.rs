//! The objects of the world: pods that ask for one share, and what they hold.

use std::{collections::BTreeSet, num::NonZeroU32, sync::Arc};

use jiff::Timestamp;

use super::NODE;
use crate::{
    device::{
        Allocation, Answer, Assignment, Blend, CardPolicy, ContainerRequest, ContainerShares, CoreBudget,
        CoreRequest, Cores, DeviceRequest, InitPhase, LockName, MemoryRequest, MiB, NodePolicy, PodRequest,
        Profile, ProfileName, Role, Selection, Share, ShareRequest, SlicesOfCard, Tie,
    },
    scheduling::{
        model::{
            pod::{Ask, Binding, Constraints, Holding, PodInfo, PodKey},
            resources::ResourceAmounts,
        },
        world::ledger::{Charge, Commitment},
    },
};

pub(super) fn profile() -> ProfileName {
    "test".into()
}

pub(super) fn lock_name() -> LockName {
    LockName { profile: profile(), key: "lock".into() }
}

pub(super) fn key(name: &str) -> PodKey {
    let (namespace, short) = name.split_once('/').unwrap_or(("default", name));
    PodKey { uid: name.into(), namespace: namespace.into(), name: short.into() }
}

pub(super) fn ask() -> Ask {
    let share = ShareRequest {
        cards: NonZeroU32::MIN,
        memory: MemoryRequest::Exact(MiB::new(1)),
        cores: CoreRequest::NONE,
    };
    let request = PodRequest {
        containers: vec![ContainerRequest { role: Role::App, share: Some(share) }],
        selection: Selection::default(),
        choice: CardPolicy::Spread.into(),
        node_policy: NodePolicy::Binpack,
        marks: BTreeSet::new(),
        shuns: BTreeSet::new(),
    };
    let profile = Profile {
        name: profile(),
        blend: Blend::Even,
        tie: Tie::Highest,
        core_budget: CoreBudget::Registered,
        slices: SlicesOfCard::Several,
    };
    Ask {
        devices: vec![DeviceRequest { profile, request, joint: None, by_class: None }],
        resources: ResourceAmounts::default(),
        constraints: Constraints::default(),
    }
}

pub(super) fn holding(answer: Answer) -> Holding {
    let share = Share { card: "GPU-0".into(), memory: MiB::new(1), cores: Cores::NONE, slice: None };
    let shares = ContainerShares { role: Role::App, shares: vec![share] };
    let assignment = Assignment { containers: vec![shares], ..Assignment::default() };
    Holding {
        node: NODE.into(),
        allocations: vec![Allocation::new(profile(), Arc::new(assignment), answer)],
        unassigned: Vec::new(),
        init: InitPhase::Done,
        takeable: Vec::new(),
        binding: Binding::Bound,
    }
}

pub(super) fn charge(pod: &PodInfo, commitment: Commitment, since: Timestamp) -> Charge {
    let allocations = match &pod.holding {
        Some(holding) => holding.allocations.clone(),
        None => holding(Answer::Awaited).allocations,
    };
    Charge {
        node: NODE.into(),
        namespace: pod.key.namespace.clone(),
        allocations,
        init: InitPhase::Done,
        footprint: pod.footprint.clone(),
        steps: Vec::new(),
        importance: pod.importance,
        placer: pod.placer,
        commitment,
        stage: pod.stage,
        since,
    }
}

pub(super) fn is_awaited(pod: &PodInfo) -> bool {
    let holding = pod.holding.as_ref();
    holding.is_some_and(|holding| holding.allocations.iter().any(|one| one.answer == Answer::Awaited))
}
