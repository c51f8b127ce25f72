//! Preemption, event by event: the node is kept, the status written, the victims deleted; and what happens in between.

use std::sync::Arc;

use jiff::SignedDuration;

use super::play::{Play, Sent, pod, setback};
use crate::{
    device::Answer,
    scheduling::{
        Event, Lifetime, NodeChange, NodeInfo, PodChange, PodInfo, WaitingPodStatus, WriteOutcome,
        event::BindOutcome, fixtures::key, model::pod::Deletion, world::ledger::Commitment,
    },
};

const NODE: &str = "n1";

fn written(version: &str) -> WriteOutcome {
    WriteOutcome::Written { resource_version: version.to_owned() }
}

/// A pod of high priority that asks for so many MiB of a card that has 10,000.
fn high(play: &Play, memory: u64) -> PodInfo {
    let mut high = pod("high", memory, play.now);
    high.importance.priority = 100;
    high
}

fn seen(play: &mut Play, pod: PodInfo) -> Vec<Sent<'static>> {
    play.happens(Event::Pod(PodChange::Seen(Box::new(pod))));
    play.sent()
}

fn nominated(play: &mut Play, outcome: WriteOutcome) -> Vec<Sent<'static>> {
    play.happens(Event::Nominated { pod: key("high"), node: Some(NODE.into()), room: None, outcome });
    play.sent()
}

/// The nomination of `high` is withdrawn.
fn withdrawn(play: &mut Play, outcome: WriteOutcome) {
    play.happens(Event::Nominated { pod: key("high"), node: None, room: None, outcome });
}

fn leaving(pod: PodInfo, deletion: Deletion, play: &Play) -> PodInfo {
    let mut leaving =
        PodInfo { lifetime: Lifetime { leaving: Some(Box::new(play.now)), ..pod.lifetime }, ..pod };
    leaving.importance.deletion = deletion;
    leaving
}

/// A node that a pod of low priority fills, and a pod of high priority that fits nowhere else.
fn full() -> (Play, PodInfo) {
    let mut play = Play::new();
    play.foreign("low", 8_000);
    let high = high(&play, 9_000);
    play.sent();
    (play, high)
}

#[test]
fn a_victim_is_deleted_once_the_nomination_is_written() {
    let (mut play, high) = full();
    assert_eq!(seen(&mut play, high), [Sent::Nominate("high", true)]);
    assert_eq!(nominated(&mut play, written("7")), [Sent::Preempt("low"), Sent::Unschedulable("high")]);
    play.happens(Event::Preempted { pod: key("low"), preemptor: key("high"), outcome: written("8") });
    let low = play.foreign_pod("low", 8_000);
    let low = leaving(low, Deletion::Preempted, &play);
    assert_eq!(seen(&mut play, low), []);
    play.wait(SignedDuration::from_secs(30));
    assert_eq!(play.sent(), [], "it holds its card until it is gone");
    play.ended("low");
    assert_eq!(play.sent(), [Sent::Lock("high")]);
}

#[test]
fn what_becomes_free_is_given_to_no_pod_of_lower_priority() {
    let (mut play, high) = full();
    seen(&mut play, high);
    nominated(&mut play, written("7"));
    let small = pod("small", 1_500, play.now);
    assert_eq!(seen(&mut play, small), [Sent::Unschedulable("small")], "2,000 MiB are free, and kept");
    play.ended("low");
    assert_eq!(play.sent(), [Sent::Lock("high")]);
    assert!(play.is_charged("high", Commitment::Assumed) && !play.is_charged("small", Commitment::Assumed));
}

#[test]
fn nothing_is_deleted_for_a_pod_that_fits_by_then_or_is_gone() {
    let (mut play, waiting) = full();
    seen(&mut play, waiting);
    play.ended("low");
    assert_eq!(play.sent(), [Sent::Lock("high")]);
    assert_eq!(nominated(&mut play, written("7")), []);

    let (mut play, waiting) = full();
    seen(&mut play, waiting);
    play.gone("high");
    assert_eq!(nominated(&mut play, written("7")), []);
    let small = pod("small", 1_500, play.now);
    assert_eq!(seen(&mut play, small), [Sent::Lock("small")], "the nomination ends with its pod");
}

#[test]
fn a_nomination_that_cannot_be_written_keeps_nothing_and_is_tried_again() {
    let (mut play, high) = full();
    seen(&mut play, high);
    let refused = WriteOutcome::Refused("forbidden".to_owned());
    assert_eq!(nominated(&mut play, refused), [Sent::Nominate("high", false), Sent::Unschedulable("high")]);
    withdrawn(&mut play, written("8"));
    let small = pod("small", 1_500, play.now);
    assert_eq!(seen(&mut play, small), [Sent::Lock("small")]);
    play.wait(SignedDuration::from_secs(3));
    assert!(play.sent().contains(&Sent::Nominate("high", true)));
}

#[test]
fn a_victim_that_cannot_be_deleted_is_tried_again() {
    let (mut play, high) = full();
    seen(&mut play, high);
    nominated(&mut play, written("7"));
    let outcome = WriteOutcome::Failed(setback("busy", 0));
    play.happens(Event::Preempted { pod: key("low"), preemptor: key("high"), outcome });
    assert_eq!(play.sent(), [Sent::Nominate("high", false)]);
    withdrawn(&mut play, written("8"));
    play.wait(SignedDuration::from_secs(3));
    assert_eq!(play.sent(), [Sent::Nominate("high", true)]);
    assert_eq!(nominated(&mut play, written("9")), [Sent::Preempt("low")]);
}

#[test]
fn a_victim_that_is_not_bound_yet_is_decided_anew_instead() {
    let mut play = Play::new();
    play.create("first");
    play.create("second");
    assert_eq!(play.sent(), [Sent::Lock("first")], "the other stands in line");
    let high = high(&play, 9_500);
    assert_eq!(seen(&mut play, high), [Sent::Nominate("high", true)]);
    assert_eq!(nominated(&mut play, written("7")), [Sent::Unschedulable("high")]);
    assert!(play.is_charged("first", Commitment::Assumed) && play.is_settled("second"));
    play.lock_taken("first");
    assert_eq!(play.sent(), [Sent::Unschedulable("first"), Sent::Lock("high")]);
    assert!(play.is_charged("high", Commitment::Assumed) && play.is_settled("first"));
    play.wait(SignedDuration::from_secs(20));
    assert!(play.is_settled("second"), "beside the other there is no room for it");
}

#[test]
fn a_victim_that_is_being_bound_is_deleted_once_it_is() {
    let mut play = Play::new();
    play.create("first");
    play.lock_taken("first");
    assert_eq!(play.sent(), [Sent::Lock("first"), Sent::Bind("first")]);
    let high = high(&play, 9_500);
    assert_eq!(seen(&mut play, high), [Sent::Nominate("high", true)]);
    assert_eq!(nominated(&mut play, written("7")), [Sent::Unschedulable("high")]);
    play.bind_answered("first", BindOutcome::Bound);
    play.served("first", Answer::Awaited);
    assert!(play.sent().contains(&Sent::Preempt("first")));
    play.served("first", Answer::Succeeded);
    assert!(!play.sent().contains(&Sent::Preempt("first")), "once is enough");
    play.ended("first");
    assert!(play.is_charged("high", Commitment::Assumed));
}

#[test]
fn a_victim_that_is_not_bound_after_all_is_not_deleted() {
    let mut play = Play::new();
    play.create("first");
    play.lock_taken("first");
    play.foreign("low", 8_000);
    play.sent();
    let high = high(&play, 9_500);
    seen(&mut play, high);
    assert_eq!(nominated(&mut play, written("7")), [Sent::Preempt("low"), Sent::Unschedulable("high")]);
    play.bind_answered("first", BindOutcome::Refused("no".to_owned()));
    assert!(play.is_settled("first"));
    play.ended("low");
    assert!(play.is_charged("high", Commitment::Assumed));
    play.wait(SignedDuration::from_secs(60));
    assert!(play.is_settled("first") && !play.sent().contains(&Sent::Preempt("first")));
}

#[test]
fn a_new_term_knows_what_was_begun() {
    let (mut play, high) = full();
    let low = leaving(play.foreign_pod("low", 8_000), Deletion::Preempted, &play);
    let high = PodInfo {
        status: Arc::new(WaitingPodStatus { nominated: Some(NODE.into()), ..WaitingPodStatus::default() }),
        ..high
    };
    play.listed(vec![low, high]);
    assert_eq!(play.sent(), [Sent::Unschedulable("high")], "its victim goes already");
    let small = pod("small", 1_500, play.now);
    assert_eq!(seen(&mut play, small), [Sent::Unschedulable("small")]);
    play.gone("low");
    play.wait(SignedDuration::from_secs(60));
    assert!(play.is_charged("high", Commitment::Assumed));
}

#[test]
fn a_nomination_that_was_written_ends_when_the_status_states_none() {
    let (mut play, high) = full();
    seen(&mut play, high.clone());
    nominated(&mut play, written("7"));
    let old = PodInfo { resource_version: "6".into(), ..high.clone() };
    seen(&mut play, old);
    let small = |play: &mut Play| {
        let small = pod("small", 1_500, play.now);
        seen(play, small)
    };
    assert_eq!(small(&mut play), [Sent::Unschedulable("small")], "that was seen before");
    seen(&mut play, PodInfo { resource_version: "9".into(), ..high });
    assert!(play.is_charged("small", Commitment::Assumed));
}

#[test]
fn nominations_of_a_pod_are_written_one_after_the_other() {
    let (mut play, waiting) = full();
    seen(&mut play, waiting);
    let mut urgent = pod("urgent", 9_000, play.now);
    urgent.importance.priority = 200;
    let sent = seen(&mut play, urgent);
    assert_eq!(sent, [Sent::Nominate("urgent", true), Sent::Unschedulable("high")], "one write at a time");
    assert_eq!(nominated(&mut play, written("7")), [Sent::Nominate("high", false)]);
}

#[test]
fn a_status_that_states_a_node_which_is_not_kept_is_cleared_until_it_states_none() {
    let mut play = Play::new();
    let mut equal = play.foreign_pod("equal", 8_000);
    equal.importance.priority = 100;
    seen(&mut play, equal);
    let high = PodInfo {
        status: Arc::new(WaitingPodStatus { nominated: Some(NODE.into()), ..WaitingPodStatus::default() }),
        ..high(&play, 9_000)
    };
    assert_eq!(seen(&mut play, high), [Sent::Nominate("high", false), Sent::Unschedulable("high")]);
    let again = |play: &mut Play, outcome| {
        withdrawn(play, outcome);
        play.wait(SignedDuration::from_secs(60));
        play.sent().iter().filter(|sent| **sent == Sent::Nominate("high", false)).count()
    };
    assert_eq!(again(&mut play, WriteOutcome::Failed(setback("busy", 0))), 1);
    assert_eq!(again(&mut play, written("9")), 0);
}

#[test]
fn pods_of_equal_priority_and_those_that_may_not_preempt_wait() {
    let (mut play, mut high) = full();
    high.importance.priority = 0;
    assert_eq!(seen(&mut play, high.clone()), [Sent::Unschedulable("high")]);
    high.importance.priority = 5;
    high.importance.preemption_policy = crate::scheduling::PreemptionPolicy::Never;
    assert_eq!(seen(&mut play, high), []);
    play.bind("other");
    play.served("other", Answer::Succeeded);
    assert!(!play.sent().iter().any(|sent| matches!(sent, Sent::Preempt(_) | Sent::Nominate(..))));
}

#[test]
fn a_nomination_is_withdrawn_once_its_victims_are_gone_and_others_have_taken_the_room() {
    let (mut play, high) = full();
    seen(&mut play, high);
    nominated(&mut play, written("7"));
    let mut equal = play.foreign_pod("equal", 1_500);
    equal.importance.priority = 100;
    seen(&mut play, equal);
    let low = play.foreign_pod("low", 8_000);
    let low = leaving(low, Deletion::Preempted, &play);
    let sent = seen(&mut play, low);
    assert!(!sent.contains(&Sent::Nominate("high", false)), "its victim is still ending: {sent:?}");
    play.ended("low");
    assert_eq!(play.sent(), [Sent::Nominate("high", false)]);
    withdrawn(&mut play, written("8"));
    let small = pod("small", 1_500, play.now);
    assert_eq!(seen(&mut play, small), [Sent::Lock("small")], "nothing is kept any more");
}

#[test]
fn a_nomination_to_a_node_that_can_never_have_the_pod_is_withdrawn() {
    let (mut play, high) = full();
    let bare = NodeInfo { name: NODE.into(), resource_version: "1000".into(), ..NodeInfo::default() };
    play.happens(Event::Node(NodeChange::Seen(Box::new(bare))));
    play.sent();
    let high = PodInfo {
        status: Arc::new(WaitingPodStatus { nominated: Some(NODE.into()), ..WaitingPodStatus::default() }),
        ..high
    };
    assert_eq!(seen(&mut play, high), [Sent::Nominate("high", false), Sent::Unschedulable("high")]);
}
