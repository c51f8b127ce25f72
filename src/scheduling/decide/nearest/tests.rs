//! Which node comes closest, and how what it lacks is said.

use std::{collections::BTreeMap, ops::ControlFlow};

use serde_json::{Value, json};

use super::*;
use crate::{
    device::{InitPhase, Usage},
    object::Quantity,
    scheduling::{
        ResourceAmounts,
        decide::outlook::tests::{node, outlook, tainted},
        fixtures::{ask, assignment, demand, share},
        plugin::{
            dynamic_resources::ClaimRejection, node_volume_limits::VolumeLimit,
            taint_toleration::UntoleratedTaint, tdm::ZoneReason, volume_restrictions::VolumeInUse,
        },
    },
};

fn nearest_of(nodes: Vec<NodeState>, ask: &Ask) -> Nearest {
    let placed = outlook(nodes, &[]).place(&demand("pod", ask.clone()), || ControlFlow::Continue(()));
    let error = placed.expect("it is not stopped").expect_err("no node has room");
    error.nearest().expect("there is a node").clone()
}

/// So much of the node's first card is in use.
fn used(mut node: NodeState, memory: u64, cores: u32) -> NodeState {
    let assignment = assignment(share(&format!("GPU-{}-0", node.info.name), memory, cores));
    node.usage = Usage::of([(&assignment, InitPhase::Done)]);
    node
}

fn roomless(mut node: NodeState) -> NodeState {
    Arc::make_mut(&mut node.info).allocatable = amounts(&json!({"cpu": "1", "pods": "10"}));
    node
}

fn amounts(resources: &Value) -> ResourceAmounts {
    let quantities: BTreeMap<String, Quantity> = serde_json::from_value(resources.clone()).unwrap();
    ResourceAmounts::read(&quantities).unwrap()
}

#[test]
fn the_nearest_node_lacks_the_smallest_part_of_what_is_asked() {
    let nodes = || vec![node("a", 1, 4_096), used(node("b", 2, 16_384), 10_240, 0), node("c", 1, 6_144)];
    let nearest = nearest_of(nodes(), &ask(1, 20_480, 0));
    assert_eq!(nearest.to_string(), "b lacks 4096 MiB on GPU-b-1; fits with at most 16384 MiB per card");
    let lack = &nearest.lacks[..];
    let row = lack.iter().map(|lack| (lack.reason(), lack.card().map(ToString::to_string), lack.by()));
    assert_eq!(
        row.collect::<Vec<_>>(),
        [("CardInsufficientMemory".to_owned(), Some("GPU-b-1".to_owned()), Some(4_096))]
    );
    let both = nearest_of(nodes(), &ask(2, 8_192, 0));
    assert_eq!(
        both.to_string(),
        "b lacks 2048 MiB on GPU-b-0; fits with at most 6144 MiB per card",
        "the second card has room"
    );
}

#[test]
fn cards_that_are_not_there_are_farther_than_cards_with_too_little() {
    let nodes = vec![node("a", 1, 32_768), node("b", 2, 4_096)];
    let nearest = nearest_of(nodes, &ask(2, 8_192, 0));
    assert_eq!(
        nearest.to_string(),
        "b lacks 4096 MiB on GPU-b-0, 4096 MiB on GPU-b-1; fits with at most 4096 MiB per card"
    );
    let alone = nearest_of(vec![node("a", 1, 32_768)], &ask(3, 8_192, 0));
    assert_eq!(alone.to_string(), "a lacks 2 GPU(s); fits with at most 1 card(s) per container");
    assert_eq!((alone.lacks[0].reason().as_str(), alone.lacks[0].by()), ("NodeInsufficientDevice", Some(2)));
}

#[test]
fn a_node_that_stops_at_an_earlier_filter_is_farther() {
    let nodes = vec![tainted(node("a", 1, 32_768)), node("b", 1, 1_024)];
    let nearest = nearest_of(nodes, &ask(1, 20_480, 0));
    assert_eq!(&*nearest.node, "b");
    let tainted = nearest_of(vec![tainted(node("a", 1, 32_768))], &ask(1, 20_480, 0));
    assert_eq!(tainted.to_string(), "a: had untolerated taint(s)");
}

#[test]
fn a_node_whose_zone_closes_too_soon_has_passed_the_cards() {
    let too_soon = ZoneReason::ClosesTooSoon { zone: "z".into(), until: None };
    let in_order = [
        Reason::TaintToleration(UntoleratedTaint),
        Reason::Tdm(ZoneReason::NotPermitted),
        Reason::Devices(DeviceReason::TooFewCards),
        Reason::VolumeRestrictions(VolumeInUse::Claim),
        Reason::Tdm(too_soon),
        Reason::NodeVolumeLimits(VolumeLimit),
        Reason::DynamicResources(ClaimRejection::Unallocatable),
        Reason::Devices(DeviceReason::Card { reason: CardReason::ResourceQuotaNotFit, count: 1, of: 1 }),
    ];
    assert!(in_order.iter().is_sorted_by(|one, other| one.passed() < other.passed()), "{in_order:?}");
}

#[test]
fn a_node_without_cards_of_the_kind_is_farthest() {
    let mut plain = node("a", 1, 1_024);
    Arc::make_mut(&mut plain.info).devices.offers.clear();
    let nodes = vec![plain, tainted(node("b", 1, 32_768))];
    assert_eq!(&*nearest_of(nodes, &ask(1, 20_480, 0)).node, "b");
}

#[test]
fn compute_and_other_resources_are_said_in_their_units() {
    let nearest = nearest_of(vec![used(node("a", 1, 16_384), 0, 80)], &ask(1, 1_024, 30));
    assert_eq!(
        nearest.to_string(),
        "a lacks 10 % compute on GPU-a-0; fits with at most 20% of a card's compute"
    );
    let mut wants = ask(1, 1_024, 0);
    wants.resources = Arc::new(amounts(&json!({"cpu": "1500m"})));
    let nearest = nearest_of(vec![roomless(node("a", 1, 16_384))], &wants);
    assert_eq!(nearest.to_string(), "a lacks 500m cpu");
    assert_eq!((nearest.lacks[0].reason().as_str(), nearest.lacks[0].by()), ("Insufficient cpu", Some(500)));
}

#[test]
fn amounts_of_cpu_are_written_as_people_read_them() {
    let written = [500, 2_000, 108_100, 1_005].map(cpu);
    assert_eq!(written, ["500m cpu", "2 cpu", "108.1 cpu", "1.005 cpu"]);
}

#[test]
fn a_card_that_is_not_of_the_kind_is_described_in_words() {
    let words = of_card(CardReason::CardTypeMismatch, &"GPU-a");
    assert_eq!(words, "GPU-a is of another type");
    assert_eq!(of_card(CardReason::CardNotHealth, &"GPU-a"), "GPU-a is unhealthy");
}

#[test]
fn of_equals_the_first_by_name_is_nearest() {
    let nodes = vec![node("a", 1, 4_096), node("b", 1, 4_096)];
    assert_eq!(&*nearest_of(nodes, &ask(1, 8_192, 0)).node, "a");
}
