//! Pods, nodes, cards and charges of scheduling, as small as they can be: a test or a bench changes the fields that it is about.
//!
//! Unit tests, tests and benches include this file. So it calls the crate `berth` and uses only what is public. It must not assert anything.
#![allow(dead_code, reason = "each program uses its own part of the fixtures")]

use std::{collections::BTreeSet, num::NonZeroU32, sync::Arc};

use berth::{
    device::{
        Allocation, Amounts, Answer, Assignment, Blend, Card, CardPolicy, ContainerRequest, ContainerShares,
        CoreBudget, CoreRequest, CoreUnit, Cores, DeviceCount, DevicePortion, Health, InitPhase, Inventory,
        Marks, MemoryRequest, MiB, Mode, NodePolicy, PodRequest, Profile, ProfileRequest, Role, Selection,
        Share, ShareRequest, SlicesOfCard, Slicing, Tie, TypedRequest,
    },
    scheduling::{
        Ask, Claim, Constraints, Demand, Event, Footprint, Holding, Importance, Lifetime, NodeChange,
        NodeInfo, ObjectChange, Offer, PodChange, PodGroups, PodInfo, PodKey, PodList, PreemptionPolicy,
        QuotaChange, ResourceAmounts, Stage, WaitingPodStatus,
        model::{
            claim_use::DeviceClaims,
            kind::Kind,
            node::OfferedDevices,
            plugin_arguments::PluginArguments,
            pod::{Binding, Placer},
            tdm::RevocableZones,
        },
        plugin::score::weights::ScoreWeights,
        scheduler::{Pace, Settings},
        world::ledger::{Charge, Commitment},
    },
};
use jiff::{SignedDuration, Timestamp};

/// The dialect of cards, where a test needs no other.
pub(crate) const PROFILE: &str = "test";

/// A dialect whose cards are shared as HAMi's are.
pub(crate) fn profile(name: &str) -> Profile {
    Profile {
        name: name.into(),
        blend: Blend::Even,
        tie: Tie::Highest,
        core_budget: CoreBudget::Registered,
        slices: SlicesOfCard::Several,
    }
}

/// A whole, healthy card with so many MiB, which ten containers can share.
pub(crate) fn card(id: &str, index: u32, memory: u64) -> Card {
    Card {
        id: id.into(),
        index,
        slots: 10,
        memory: MiB::new(memory),
        cores: Cores::WHOLE,
        model: "NVIDIA A100".into(),
        numa: 0,
        mode: Mode::Soft,
        slicing: Slicing::Unknown,
        health: Health::Healthy,
    }
}

/// These cards, offered by the device plugin of a dialect.
pub(crate) fn offer(profile: &str, cards: Vec<Card>) -> Offer {
    Offer {
        core_unit: CoreUnit::Percent,
        profile: profile.into(),
        inventory: Some(Inventory::new(cards).into()),
    }
}

/// A node with what its device plugins offer; its uid is its name.
pub(crate) fn node_offering(name: &str, offers: Vec<Offer>) -> NodeInfo {
    NodeInfo {
        name: name.into(),
        uid: name.into(),
        resource_version: "1".into(),
        devices: OfferedDevices { offers, ..OfferedDevices::default() },
        ..NodeInfo::default()
    }
}

/// A node with so many cards `GPU-<node>-<index>` of so many MiB each.
pub(crate) fn node(name: &str, cards: u32, memory: u64) -> NodeInfo {
    let card = |index| card(&format!("GPU-{name}-{index}"), index, memory);
    node_offering(name, vec![offer(PROFILE, (0..cards).map(card).collect())])
}

/// So many MiB and percent of the compute of each of so many cards.
pub(crate) fn share_request(cards: u32, memory: u64, cores: u32) -> ShareRequest {
    ShareRequest {
        cards: NonZeroU32::new(cards).expect("a share is one of at least one card"),
        memory: MemoryRequest::Exact(MiB::new(memory)),
        cores: CoreRequest::Exact(Cores::new(cores)),
    }
}

/// So much of each of so many devices of one type, wherever they are.
pub(crate) fn typed_request(each: Amounts, count: DeviceCount, portion: DevicePortion) -> TypedRequest {
    TypedRequest {
        each,
        count,
        portion,
        selector: None,
        functions: None,
        scope: None,
        exclusive: None,
        partition: None,
        by_template: false,
        card: None,
    }
}

/// What a pod with these containers wants of cards, whichever they are.
pub(crate) fn request(containers: Vec<ContainerRequest>) -> PodRequest {
    PodRequest {
        containers,
        selection: Selection::default(),
        choice: CardPolicy::Spread.into(),
        node_policy: NodePolicy::Binpack,
        marks: Marks::default(),
        shuns: Marks::default(),
    }
}

/// The same of a pod with one container.
pub(crate) fn request_of_one(share: ShareRequest) -> PodRequest {
    request(vec![ContainerRequest { role: Role::App, share: Some(share) }])
}

/// Cards of one dialect and nothing else.
pub(crate) fn ask_for(profile: Profile, request: PodRequest) -> Ask {
    Ask {
        devices: vec![ProfileRequest { profile, request, joint: None, by_class: None }],
        resources: Arc::new(ResourceAmounts::default()),
        constraints: Constraints::default(),
        policy: NodePolicy::Indifferent,
    }
}

/// What a pod of one container asks for that wants so many MiB and percent of the compute of each of so many cards.
pub(crate) fn ask(cards: u32, memory: u64, cores: u32) -> Ask {
    ask_for(profile(PROFILE), request_of_one(share_request(cards, memory, cores)))
}

/// A pod of this name; its uid is the name too. The namespace is `default` where the name does not begin with another, as in `team/a`.
pub(crate) fn key(name: &str) -> PodKey {
    let (namespace, short) = name.split_once('/').unwrap_or(("default", name));
    PodKey { uid: name.into(), namespace: namespace.into(), name: short.into() }
}

/// A pod that means nothing to others of its namespace.
pub(crate) fn footprint(namespace: &str) -> Arc<Footprint> {
    Arc::new(Footprint { namespace: namespace.into(), ..Footprint::default() })
}

/// A pod that is not bound and that Berth places, if the claim says so; its key is that of [`key`].
pub(crate) fn pod(name: &str, claim: Claim) -> PodInfo {
    let key = key(name);
    PodInfo {
        footprint: footprint(&key.namespace),
        key,
        resource_version: "1".into(),
        importance: Importance::default(),
        lifetime: Lifetime { created: Timestamp::UNIX_EPOCH, leaving: None },
        placer: Placer::Berth,
        stage: Stage::Pending,
        claim,
        holding: None,
        origin: None,
        status: Arc::new(WaitingPodStatus::default()),
        groups: PodGroups::default(),
    }
}

/// A pod that is to be placed, of priority 0, in the namespace `default`.
pub(crate) fn demand(uid: &str, ask: Ask) -> Demand {
    Demand {
        ask: Arc::new(ask),
        footprint: footprint("default"),
        priority: 0,
        preemption_policy: PreemptionPolicy::default(),
        group: None,
        uid: uid.into(),
        nominated: None,
        origin: None,
        served: None,
        taken: Arc::default(),
    }
}

/// So many MiB and percent of the compute of a card.
pub(crate) fn share(card: &str, memory: u64, cores: u32) -> Share {
    Share { card: card.into(), memory: MiB::new(memory), cores: Cores::new(cores), slice: None }
}

/// What a pod of one container holds that has this share.
pub(crate) fn assignment(share: Share) -> Assignment {
    let containers = vec![ContainerShares { role: Role::App, shares: vec![share] }];
    Assignment { containers, ..Assignment::default() }
}

/// The same with what the device plugin of the dialect has answered.
pub(crate) fn allocation(profile: &str, share: Share, answer: Answer) -> Allocation {
    Allocation::new(profile.into(), Arc::new(assignment(share)), answer)
}

/// What a pod holds that is bound to this node, and whose init containers have ended.
pub(crate) fn holding(node: &str, allocations: Vec<Allocation>) -> Holding {
    Holding {
        node: node.into(),
        allocations: allocations.into(),
        unassigned: Vec::new().into(),
        init: InitPhase::Done,
        takeable: Vec::new().into(),
        binding: Binding::Bound,
        tenure: None,
    }
}

/// The charge of a pod of the namespace `default` that Berth has bound and that runs.
pub(crate) fn charge(node: &str, allocations: Vec<Allocation>) -> Charge {
    Charge {
        node: node.into(),
        pod: key("p"),
        allocations: allocations.into(),
        init: InitPhase::Done,
        footprint: footprint("default"),
        steps: Vec::new().into(),
        importance: Importance::default(),
        placer: Placer::Berth,
        commitment: Commitment::Bound,
        stage: Stage::Running,
        since: Timestamp::UNIX_EPOCH,
        tenure: None,
    }
}

/// A scheduler that places pods one by one, and preempts none.
pub(crate) fn settings() -> Settings {
    Settings {
        device_resources: BTreeSet::new(),
        lock_expiry: SignedDuration::from_mins(5),
        weights: ScoreWeights::default(),
        arguments: PluginArguments::default(),
        preemption: None,
        rooms: None,
        zones: RevocableZones::default(),
        gangs: None,
        held_percent: 50,
        claims: DeviceClaims::Served,
        pace: Pace::Shared,
    }
}

/// All lists of a cluster in which there are only these nodes.
pub(crate) fn lists(nodes: Vec<NodeInfo>) -> impl Iterator<Item = Event> {
    let first = [
        Event::Pod(PodChange::Listed(PodList::default())),
        Event::Node(NodeChange::Listed(nodes)),
        Event::Quota(QuotaChange::Listed(Vec::new())),
    ];
    first
        .into_iter()
        .chain(Kind::ALL.iter().map(|kind| Event::Object(ObjectChange::Listed(*kind, Vec::new()))))
}
