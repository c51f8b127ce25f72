//! What pods carry: an assignment is read or refused, keeps its shares when it is written again, and never upsets the books.

use std::collections::BTreeMap;

use berth::{
    cluster::Reader,
    device::{Assignment, InitPhase, Role, Share, Usage},
    dialect::{Dialect, Dialects, Problem, hami, volcano},
    object::Pod,
    scheduling::{
        Claim, NodeInfo, Snapshot,
        plugin::filter::filter,
        world::ledger::{Charge, Commitment},
    },
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::world;

/// The roles of pods, in starting order.
const PODS: [&str; 5] = ["A", "AA", "IA", "ISAA", ""];

/// The devices that a pod carries, and what stands beside them: slices and times, parted by a line break.
pub fn run(data: &[u8]) {
    let Some(text) = super::text(data) else { return };
    let (devices, beside) = text.split_once('\n').unwrap_or((text, ""));
    let keys = [
        (hami::names::ALLOCATED, devices),
        (volcano::names::IDS, devices),
        (volcano::names::GPU_INDEX, devices),
        (volcano::names::TIME, beside),
        (volcano::names::PREDICATE_TIME, beside),
    ];
    let mut annotations: BTreeMap<_, _> =
        keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    if !beside.is_empty() {
        annotations.insert(hami::names::MIG.to_owned(), beside.to_owned());
    }
    for dialect in world::DIALECTS.iter().flat_map(Dialects::iter) {
        for roles in PODS {
            carried(dialect.as_ref(), roles, &annotations);
        }
    }
    for (reader, node) in world::READERS.iter() {
        for dialect in reader.dialects().iter() {
            books((reader, node), dialect.as_ref(), &annotations);
        }
    }
}

/// No card is given beyond what it has beside a pod that carries this; where a card of it can't be told, the pod may have what it asks for of each.
fn books(
    (reader, node): (&Reader, &NodeInfo),
    dialect: &dyn Dialect,
    annotations: &BTreeMap<String, String>,
) {
    let mut bound = pod(dialect, "A", annotations);
    bound.spec.node_name = Some("node".to_owned());
    let (info, troubles) = reader.pod(&bound);
    let holding = info.holding.expect("it is bound");
    let unread = dialect.assignment(&bound);
    let unread = unread.map_or_else(|trouble| vec![trouble], |carried| carried.unwrap_or_default().unread);
    assert!(unread.iter().all(|trouble| troubles.contains(trouble)), "{unread:?} is told");
    if unread.is_empty() && holding.allocations.is_empty() {
        return;
    }
    let untold = unread.iter().any(|trouble| trouble.problem == Problem::Card);
    let counts = holding.allocations.iter().any(|held| held.unread.is_some() && held.unknown.is_some());
    assert!(!untold || counts, "what the pod asks for counts");
    let mut snapshot = Snapshot::default();
    snapshot.set_node(node.clone());
    let charge = Charge {
        node: holding.node,
        pod: info.key.clone(),
        allocations: holding.allocations,
        init: holding.init,
        footprint: info.footprint,
        steps: Vec::new().into(),
        importance: berth::scheduling::Importance::default(),
        placer: berth::scheduling::model::pod::Placer::Berth,
        commitment: Commitment::Bound,
        stage: info.stage,
        since: Timestamp::UNIX_EPOCH,
        tenure: None,
    };
    snapshot.charge(info.key.uid, charge);
    let state = snapshot.node("node").expect("it was set");
    let mut next = pod(dialect, "A", &BTreeMap::new());
    next.spec.scheduler_name = Some(reader.scheduler_name().to_owned());
    let Claim::Place(ask) = reader.pod(&next).0.claim else { panic!("it asks for a place") };
    let Ok(given) = filter(&ask, state, &reader.device_resources(), &[]) else { return };
    let inventory = state.info.devices.offer(dialect.name()).and_then(|offer| offer.inventory.as_deref());
    let cards = inventory.expect("cards were given of it").cards();
    for share in given.iter().flat_map(|held| held.assignment.shares()) {
        let card = cards.iter().find(|card| card.id == share.card).expect("it is one of the node's");
        let used = state.usage.card(&card.id).with(share);
        assert!(used.slots <= card.slots && used.memory <= card.memory, "{used:?} of {card:?}");
    }
}

/// A pod in which every container asks, or only the first app container where the plugin serves no more.
fn pod(dialect: &dyn Dialect, roles: &str, annotations: &BTreeMap<String, String>) -> Pod {
    let ask: Value = dialect.resources().first().map_or_else(|| json!({}), |name| json!({ *name: "1" }));
    let first = roles.find('A');
    let asks = |(at, role): (usize, char)| {
        let served = dialect.name().as_str() == hami::Hami::NAME || Some(at) == first;
        (role, if served { ask.clone() } else { json!({}) })
    };
    world::pod(&roles.char_indices().map(asks).collect::<Vec<_>>(), annotations)
}

pub(super) fn carried(dialect: &dyn Dialect, roles: &str, annotations: &BTreeMap<String, String>) {
    let read = match dialect.assignment(&pod(dialect, roles, annotations)) {
        Ok(Some(carried)) => carried.assignment,
        Ok(None) => return,
        Err(unreadable) => {
            assert!(!unreadable.field.is_empty() && !unreadable.message.is_empty());
            return;
        }
    };
    let usage = Usage::of([(&read, InitPhase::Ahead), (&read, InitPhase::Done)]);
    assert!(read.shares().all(|share| usage.card(&share.card).slots > 0), "every share is charged");
    let record = dialect.record(&read, "node", Timestamp::UNIX_EPOCH);
    let again = dialect.assignment(&pod(dialect, roles, &record.annotations));
    let again =
        again.unwrap_or_else(|error| panic!("{error} in {record:?}")).map(|carried| carried.assignment);
    compare(dialect, roles, &read, &again.unwrap_or_default());
}

/// What a plugin of this dialect is told by a record: Volcano's of app containers only.
fn compare(dialect: &dyn Dialect, roles: &str, read: &Assignment, again: &Assignment) {
    let told = |role: Role| dialect.name().as_str() == hami::Hami::NAME || role == Role::App;
    let kept = |assignment: &Assignment| -> Vec<_> {
        let containers = assignment.containers.iter().filter(|container| told(container.role));
        containers.filter(|container| !container.shares.is_empty()).cloned().collect()
    };
    if read.containers.len() == roles.len() {
        assert_eq!(kept(read), kept(again));
        return;
    }
    // More segments than containers: whose a share is may change, what it takes may not.
    let told = kept(read);
    let told = told.iter().flat_map(|container| &container.shares);
    assert_eq!(sorted(told), sorted(again.shares()));
}

fn sorted<'a>(shares: impl Iterator<Item = &'a Share>) -> Vec<String> {
    let mut shares: Vec<_> = shares.map(|share| format!("{share:?}")).collect();
    shares.sort();
    shares
}

/// Each generation of each writer.
pub fn seeds() -> Vec<Vec<u8>> {
    super::owned(&[
        "GPU-1,NVIDIA,3000,30:;",
        "GPU-1,NVIDIA,3000,30:GPU-2,NVIDIA,3000,30:;GPU-1,NVIDIA,500,0:;",
        ";;GPU-1,NVIDIA,3000,30:;GPU-2,NVIDIA,1,0:;",
        "GPU-1,NVIDIA,3000,30:;GPU-1,NVIDIA,3000,30:;GPU-1,NVIDIA,3000,30:;GPU-1,NVIDIA,3000,30:;GPU-1,NVIDIA,3000,30:;",
        "GPU-1[0-3],NVIDIA,4864,14:;",
        "GPU-1[group1-0],NVIDIA,5120,0:\n1700000000",
        "GPU-1,NVIDIA,4864,14:;\n[{\"containerIndex\":0,\"deviceIndex\":0,\"gpuUUID\":\"GPU-1\",\"profile\":\"1g.5gb\",\"placement\":{\"start\":6,\"size\":1}}]",
        "0,1,2\n1700000000000000000",
        "3",
        "",
        ";",
        "gibberish",
        ",NVIDIA,1,1:;",
        "GPU-1,NVIDIA,3000,30:,NVIDIA,1,1:;",
        "0,first",
        "\n18446744073709551615",
    ])
}
