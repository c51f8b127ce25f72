//! Whatever comes and goes: no card beyond its slots, memory, compute and slices.

use std::collections::BTreeMap;

use berth::{
    device::{
        Assignment, Card, CardId, InitPhase, Inventory, LinkChoice, Links, Mode, NumaBinding, PodRequest,
        Profile, Quota, Role, Share, Slice, SlicesOfCard, Slicing, Usage,
    },
    scheduling::plugin::allocate::{allocate, core_budget},
};
use proptest::prelude::*;

use super::worlds::{cards, pod, profile};

/// Something that happens on a node.
#[derive(Clone, Debug)]
enum Step {
    Come(Box<PodRequest>),
    EndInit(usize),
    Go(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => pod().prop_map(|pod| Step::Come(Box::new(pod))),
        2 => any::<usize>().prop_map(Step::EndInit),
        3 => any::<usize>().prop_map(Step::Go),
    ];
    prop::collection::vec(step, 1..30)
}

type Held = Vec<(PodRequest, Assignment, InitPhase)>;

fn usage(held: &Held) -> Usage {
    Usage::of(held.iter().map(|(_, assignment, init)| (assignment, *init)))
}

proptest! {
    #[test]
    fn no_card_is_given_away_twice(cards in cards(), profile in profile(), steps in steps()) {
        let inventory = Inventory::new(cards);
        let mut held: Held = Vec::new();
        for step in steps {
            match step {
                Step::Come(pod) => {
                    if let Ok(given) = allocate(&pod, &inventory, &usage(&held), &profile, Quota::default()) {
                        check_choice(&pod, &given, &inventory, &profile)?;
                        check_company(&pod, &given, &held)?;
                        held.push((*pod, given, InitPhase::Ahead));
                    }
                }
                Step::EndInit(at) if !held.is_empty() => {
                    let at = at % held.len();
                    held[at].2 = InitPhase::Done;
                }
                Step::Go(at) if !held.is_empty() => {
                    held.swap_remove(at % held.len());
                }
                Step::EndInit(_) | Step::Go(_) => {}
            }
            check_cards(&inventory, &profile, &held)?;
        }
    }

    #[test]
    fn equal_input_has_one_answer_whatever_the_order_of_registration(
        (cards, shuffled) in cards().prop_flat_map(|cards| (Just(cards.clone()), Just(cards).prop_shuffle())),
        profile in profile(),
        pods in prop::collection::vec(pod(), 1..6),
    ) {
        let links: Links = cards.windows(2).map(|pair| (pair[0].id.clone(), pair[1].id.clone(), 7)).collect();
        let (one, other) = (Inventory::new(cards).with_links(links.clone()), Inventory::new(shuffled).with_links(links));
        let mut held: Held = Vec::new();
        for pod in pods {
            let given = allocate(&pod, &one, &usage(&held), &profile, Quota::default());
            // The same pods, taken in in the other order.
            held.reverse();
            prop_assert_eq!(&given, &allocate(&pod, &other, &usage(&held), &profile, Quota::default()));
            held.extend(given.map(|given| (pod, given, InitPhase::Ahead)));
        }
    }
}

/// What the pod asked for is what it was given.
fn check_choice(
    pod: &PodRequest,
    given: &Assignment,
    inventory: &Inventory,
    profile: &Profile,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(pod.containers.len(), given.containers.len());
    for (asked, given) in pod.containers.iter().zip(&given.containers) {
        let count = asked.share.map_or(0, |share| share.cards.get() as usize);
        prop_assert_eq!(given.shares.len(), count);
        for (at, share) in given.shares.iter().enumerate() {
            let card = card(inventory, &share.card);
            let again = given.shares[..at].iter().any(|other| other.card == share.card);
            let several = card.mode == Mode::Mig && profile.slices == SlicesOfCard::Several;
            prop_assert!(!again || several, "one container twice on {}", share.card);
            prop_assert_eq!(share.slice.is_some(), card.mode == Mode::Mig);
            prop_assert!(share.memory >= asked.share.unwrap().memory.of(card.memory));
        }
        let numa: Vec<_> = given.shares.iter().map(|share| card(inventory, &share.card).numa).collect();
        let one_node = numa.windows(2).all(|pair| pair[0] == pair[1]);
        prop_assert!(
            pod.choice.numa == NumaBinding::Free || one_node,
            "bound to one NUMA node, but on {numa:?}"
        );
    }
    prop_assert!(pod.choice.links == LinkChoice::Any || given.containers.len() == pod.containers.len());
    Ok(())
}

/// No card with a pod that this one shuns.
fn check_company(pod: &PodRequest, given: &Assignment, held: &Held) -> Result<(), TestCaseError> {
    let shunned = held.iter().filter(|(other, _, _)| pod.shuns.iter().any(|mark| other.marks.contains(mark)));
    for (_, other, init) in shunned {
        let stays = |role| role != Role::Init || *init == InitPhase::Ahead;
        let theirs = other
            .containers
            .iter()
            .filter(|container| stays(container.role))
            .flat_map(|container| &container.shares);
        for share in theirs {
            prop_assert!(
                given.shares().all(|own| own.card != share.card),
                "beside a shunned pod on {}",
                share.card
            );
        }
    }
    Ok(())
}

fn card<'a>(inventory: &'a Inventory, id: &CardId) -> &'a Card {
    inventory.cards().iter().find(|card| card.id == *id).unwrap()
}

fn check_cards(inventory: &Inventory, profile: &Profile, held: &Held) -> Result<(), TestCaseError> {
    let mut totals: BTreeMap<&CardId, (u32, u64, u32)> = BTreeMap::new();
    for (_, assignment, init) in held {
        for (id, most) in life(assignment, *init) {
            let total = totals.entry(id).or_default();
            *total = (total.0 + most.0, total.1 + most.1, total.2 + most.2);
        }
    }
    for (id, (slots, memory, cores)) in totals {
        let card = card(inventory, id);
        prop_assert!(slots <= card.slots, "{slots} of {} slots of {id}", card.slots);
        prop_assert!(memory <= card.memory.get(), "{memory} of {} of {id}", card.memory);
        // What limits placed slices is where they lie: their compute is rounded up.
        let placed = card.mode == Mode::Mig && matches!(card.slicing, Slicing::Placements(_));
        prop_assert!(placed || cores <= core_budget(profile, card).get(), "{cores} % of {id}");
    }
    for card in inventory.cards() {
        check_slices(card, held)?;
    }
    Ok(())
}

/// The most that a pod holds of each card, moment by moment: each init container's turn, then all that stay.
fn life(assignment: &Assignment, init: InitPhase) -> BTreeMap<&CardId, (u32, u64, u32)> {
    let mut most: BTreeMap<&CardId, (u32, u64, u32)> = BTreeMap::new();
    for moment in 0..=assignment.containers.len() {
        let turn = assignment.containers.get(moment);
        if turn.is_some_and(|turn| turn.role != Role::Init || init == InitPhase::Done) {
            continue;
        }
        let before = &assignment.containers[..moment];
        let running = before.iter().filter(|container| container.role != Role::Init).chain(turn);
        let mut now: BTreeMap<&CardId, (u32, u64, u32)> = BTreeMap::new();
        for Share { card, memory, cores, .. } in running.flat_map(|container| &container.shares) {
            let card = now.entry(card).or_default();
            *card = (card.0 + 1, card.1 + memory.get(), card.2 + cores.get());
        }
        for (id, now) in now {
            let most = most.entry(id).or_default();
            *most = (most.0.max(now.0), most.1.max(now.1), most.2.max(now.2));
        }
    }
    most
}

fn check_slices(card: &Card, held: &Held) -> Result<(), TestCaseError> {
    let shares = held.iter().flat_map(|(_, assignment, _)| assignment.shares());
    let slices: Vec<&Slice> =
        shares.filter(|share| share.card == card.id).filter_map(|share| share.slice.as_deref()).collect();
    for (at, one) in slices.iter().enumerate() {
        for other in &slices[..at] {
            let apart = match (one, other) {
                (Slice::Placed { placement: one, .. }, Slice::Placed { placement: other, .. }) => {
                    !one.overlaps(*other)
                }
                (
                    Slice::Numbered { group: one, position: first },
                    Slice::Numbered { group: other, position: second },
                ) => one == other && first != second,
                _ => false,
            };
            prop_assert!(apart, "{one} and {other} on {}", card.id);
        }
    }
    Ok(())
}
