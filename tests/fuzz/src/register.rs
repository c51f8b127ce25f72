//! What node plugins register: cards are read or refused, never twice the same, and read alike in every form of one list.

use std::collections::BTreeMap;

use berth::{
    admission::{InventorySummary, NodeOffer},
    device::{Card, Health, Inventory, Mode, Slicing},
    dialect::{Dialect, Dialects, hami, volcano},
    object::Node,
};
use serde_json::{Value, json};

use super::world;

/// Where the plugins of other vendors' cards register them.
const OTHER_VENDORS: [&str; 4] = [
    "hami.io/node-amd-register",
    "hami.io/node-biren-register",
    "hami.io/node-dcu-register",
    "hami.io/node-register-Ascend910B3",
];

/// The annotations in which cards are registered, and the capacity of a node, parted by a line break.
pub fn run(data: &[u8]) {
    let Some(text) = super::text(data) else { return };
    let (cards, beside) = text.split_once('\n').unwrap_or((text, ""));
    let (number, memory) = beside.split_once(';').unwrap_or((beside, ""));
    let mut annotations = BTreeMap::from([
        (hami::names::REGISTER, cards),
        (hami::names::CORDON, "GPU-2,"),
        (volcano::names::REGISTER, cards),
        (volcano::names::GPU_UNHEALTHY, beside),
    ]);
    annotations.extend(OTHER_VENDORS.map(|key| (key, cards)));
    let capacity =
        BTreeMap::from([(volcano::names::GPU_NUMBER, number), (volcano::names::GPU_MEMORY, memory)]);
    let node = world::node(&annotations, &capacity);
    for dialects in world::DIALECTS.iter() {
        judge(&node, dialects);
    }
    links(cards);
}

fn judge(node: &Node, dialects: &Dialects) {
    for dialect in dialects.iter() {
        match dialect.inventory(node) {
            Ok(None) => {}
            Ok(Some(inventory)) => {
                assert!(inventory.duplicate().is_none());
                assert!(inventory.cards().iter().all(|card| !card.id.as_str().is_empty()));
                assert_eq!(
                    dialect.inventory(node).as_ref(),
                    Ok(&Some(inventory.clone())),
                    "equal input, equal answer"
                );
                again(dialect.as_ref(), &inventory);
            }
            Err(unreadable) => assert!(!unreadable.field.is_empty() && !unreadable.message.is_empty()),
        }
    }
    let offer = NodeOffer::read(node, dialects);
    let summary = InventorySummary::new([offer.clone()]);
    assert_eq!(summary.node("node"), Some(&offer));
}

/// The same cards in each form that this dialect reads.
fn again(dialect: &dyn Dialect, inventory: &Inventory) {
    let cards = inventory.cards();
    let whole = |card: &Card| card.slicing == Slicing::Unknown;
    let plain = cards.iter().all(|card| whole(card) && parts_nothing(card)) && !cards.is_empty();
    if dialect.name().as_str() == hami::Hami::NAME {
        reads_as(
            dialect,
            hami::names::REGISTER,
            &Value::Array(cards.iter().map(entry).collect()).to_string(),
            cards,
        );
        if plain {
            reads_as(
                dialect,
                hami::names::REGISTER,
                &cards.iter().map(nine_fields).collect::<String>(),
                cards,
            );
        }
    } else if dialect.name().as_str() == volcano::Volcano::NAME && plain {
        reads_as(dialect, volcano::names::REGISTER, &cards.iter().map(six_fields).collect::<String>(), cards);
    }
}

fn reads_as(dialect: &dyn Dialect, key: &str, text: &str, cards: &[Card]) {
    let cordoned: Vec<_> = cards.iter().filter(|card| card.health == Health::Cordoned).collect();
    let cordon = cordoned.iter().map(|card| card.id.as_str()).collect::<Vec<_>>().join(",");
    let annotations = BTreeMap::from([(key, text), (hami::names::CORDON, cordon.as_str())]);
    let read = dialect.inventory(&world::node(&annotations, &BTreeMap::new()));
    let read = read.unwrap_or_else(|error| panic!("{error}: {text}")).expect("cards are registered");
    let numbered = |cards: &[Card]| -> Vec<Card> {
        // Volcano's cards are numbered by their place.
        let by_place = key == volcano::names::REGISTER;
        (0..)
            .zip(cards)
            .map(|(at, card)| Card { index: if by_place { at } else { card.index }, ..card.clone() })
            .collect()
    };
    assert_eq!(numbered(read.cards()), numbered(cards), "{text}");
}

/// Whether the card can be written in fields; its id can.
fn parts_nothing(card: &Card) -> bool {
    !card.model.contains([',', ':'])
}

fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Soft => "hami-core",
        Mode::Mig => "mig",
        Mode::Mps => "mps",
        Mode::Templates => panic!("no card of NVIDIA's is cut by templates"),
    }
}

fn entry(card: &Card) -> Value {
    let profiles: Vec<_> = match &card.slicing {
        Slicing::Placements(profiles) => profiles
            .iter()
            .map(|profile| {
                let places: Vec<_> =
                    profile.placements.iter().map(|at| json!({"start": at.start, "size": at.size})).collect();
                json!({"name": &*profile.name, "memoryMB": profile.memory.get(), "core": profile.cores.get(),
                "sliceCount": profile.slices, "placements": places})
            })
            .collect(),
        Slicing::Unknown | Slicing::Geometries(_) => Vec::new(),
    };
    json!({"id": card.id.as_str(), "index": card.index, "count": card.slots, "devmem": card.memory.get(),
        "devcore": card.cores.get(), "type": &*card.model, "numa": card.numa, "mode": word(card.mode),
        "health": card.health != Health::Unhealthy, "migProfiles": profiles})
}

fn nine_fields(card: &Card) -> String {
    let Card { id, index, slots, memory, cores, model, numa, mode, health, .. } = card;
    let (memory, cores, mode) = (memory.get(), cores.get(), word(*mode));
    format!("{id},{slots},{memory},{cores},{model},{numa},{},{index},{mode}:", *health != Health::Unhealthy)
}

fn six_fields(card: &Card) -> String {
    let Card { id, slots, memory, model, mode, health, .. } = card;
    format!("{id},{slots},{},{model},{},{}:", memory.get(), *health == Health::Healthy, word(*mode))
}

/// The same text as scores of links, beside a list of cards that can be read.
fn links(text: &str) {
    let annotations = BTreeMap::from([(hami::names::REGISTER, "[]"), (hami::names::LINKS, text)]);
    let node = world::node(&annotations, &BTreeMap::new());
    for dialect in world::DIALECTS.iter().flat_map(Dialects::iter) {
        if let Err(unreadable) = dialect.inventory(&node) {
            assert!(!unreadable.message.is_empty());
        }
    }
}

/// Each generation of each plugin.
pub fn seeds() -> Vec<Vec<u8>> {
    super::owned(&[
        r#"[{"id":"GPU-1","index":1,"count":10,"devmem":40960,"devcore":100,"type":"NVIDIA-NVIDIA A100","numa":1,"mode":"mig","health":true,"migProfiles":[{"name":"1g.5gb","memoryMB":4864,"core":14,"sliceCount":1,"placements":[{"size":1},{"start":1,"size":1}]}]}]"#,
        r#"[{"id":"GPU-2","count":4,"devmem":81920,"devcore":150,"type":"H100","numa":-1,"mode":"mps"},{"id":"GPU-3"}]"#,
        r#"[{"id":"GPU,1","count":1,"devmem":1,"devcore":100,"type":"T4","health":true}]"#,
        r#"[{"id":"n1","count":1,"devmem":1,"devcore":100,"type":"T4","health":true}]"#,
        "null",
        "GPU-1,10,40960,100,NVIDIA-A100,0,true:GPU-2,10,40960,100,NVIDIA-A100,1,false:",
        "GPU-1,10,40960,100,NVIDIA-A100,0,true,0,hami-core:GPU-2,10,40960,100,NVIDIA-A100,-1,T,1,mps:",
        "GPU-1,10,32768,NVIDIA-A100,true:GPU-2,10,32768,NVIDIA-A100,false:\n4;32k",
        "GPU-1,10,32768,NVIDIA-A100,true,mig:GPU-2,10,32768,NVIDIA-A100,true,mig,more,fields:\n2;20000",
        r#"[{"uuid":"GPU-a","score":{"GPU-b":200}},{"uuid":"GPU-b","score":null}]"#,
        "\n8;0",
        "\n4294967295;1",
    ])
}
