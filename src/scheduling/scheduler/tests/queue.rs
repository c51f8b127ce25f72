//! When pods that wait are decided again although nothing has happened for them, and what it costs.

use std::sync::Arc;

use super::{
    super::scheduling_cycle::alike::Alike,
    play::{Play, Sent, pod},
    seconds,
};
use crate::device::Answer;
use crate::scheduling::{
    Event, PodChange,
    decide::fit_error::FitError,
    event::{BindOutcome, LockOutcome},
    model::measure::{Attempt, Measure},
    pending::PendingReason,
    plugin::{Reason, node_unschedulable::Cordoned},
    queue::AttemptOutcome,
};

/// How often pods were flushed, and decided in vain, since this was last asked.
fn flushed(play: &mut Play) -> (usize, usize) {
    let measures = play.scheduler.take_measured().measures;
    let count = |measure| measures.iter().filter(|one| **one == measure).count();
    (count(Measure::Flushed), count(Measure::Attempt(Attempt::Unschedulable)))
}

#[test]
fn pods_that_are_decided_one_by_one_come_in_the_order_of_the_queue_each_after_the_one_before_is_bound() {
    let mut play = Play::one_by_one();
    for (name, priority) in [("low", 0), ("high", 9), ("middle", 5)] {
        let mut one = pod(name, 1000, play.now);
        one.importance.priority = priority;
        play.happens(Event::Pod(PodChange::Seen(Box::new(one))));
    }
    // The first was decided as soon as it was seen.
    assert_eq!(play.sent(), [Sent::Lock("low")]);
    assert_eq!(play.scheduler.view().next_pod(), None, "a pod is on its way");
    play.lock_taken("low");
    play.bind_answered("low", BindOutcome::Bound);
    play.served("low", Answer::Succeeded);
    play.unlocked();
    assert!(play.sent().contains(&Sent::Lock("high")), "middle was seen later, and has less priority");
}

#[test]
fn a_pod_that_waits_is_decided_again_after_five_minutes_and_each_five_minutes_after() {
    let mut play = Play::new();
    play.create_large("a");
    assert_eq!(flushed(&mut play), (0, 1));
    for _ in 0..2 {
        play.wait(seconds(299));
        assert_eq!(flushed(&mut play), (0, 0));
        play.wait(seconds(1));
        assert_eq!(flushed(&mut play), (1, 1));
    }
    play.gone("a");
    play.wait(seconds(600));
    assert_eq!(flushed(&mut play), (0, 0));
}

#[test]
fn many_pods_that_have_waited_for_long_are_decided_again_over_several_turns() {
    let mut play = Play::new();
    for number in 0..100 {
        play.create_large(&number.to_string());
    }
    play.wait(seconds(299));
    flushed(&mut play);
    play.now += seconds(1);
    for expected in [64, 36, 0] {
        play.scheduler.settle(play.now);
        assert_eq!(flushed(&mut play), (expected, expected));
    }
}

/// What is said of this pod once it is decided, without the nearest miss.
fn said(play: &mut Play, name: &str) -> Option<String> {
    let message = play.scheduler.binding.cycle.conditions.reason(name)?.message().full;
    message.split(" nearest: ").next().map(str::to_owned)
}

#[test]
fn what_a_pod_is_rejected_for_is_found_once_for_all_pods_like_it_until_something_changes() {
    let mut play = Play::new();
    play.create_large("a");
    let found = said(&mut play, "a");
    let other = FitError::of_pod(1, Reason::NodeUnschedulable(Cordoned));
    let key = Alike::of(&pod("a", 99_000, play.now)).unwrap();
    assert!(play.scheduler.binding.cycle.queue.rejections.errors.insert(key, other.clone()).is_some());
    play.create_large("b");
    assert_eq!(said(&mut play, "b"), Some(other.to_string()), "it is not found again for b");
    play.changed("c", |pod| *pod = super::play::pod("c", 98_000, pod.lifetime.created));
    assert_eq!(said(&mut play, "c"), found, "c asks for something else");
    play.foreign("theirs", 100);
    play.create_large("d");
    assert_eq!(said(&mut play, "d"), found, "the node has changed since");
}

#[test]
fn what_is_found_for_a_pod_with_claims_or_with_a_node_kept_for_it_holds_for_no_other() {
    let play = Play::new();
    let alone = pod("a", 1000, play.now);
    assert!(Alike::of(&alone).is_some());
    let kept = crate::scheduling::PodInfo {
        status: Arc::new(crate::scheduling::WaitingPodStatus {
            nominated: Some("n1".into()),
            ..crate::scheduling::WaitingPodStatus::default()
        }),
        ..alone.clone()
    };
    assert_eq!(Alike::of(&kept), None);
    let mut with_claims = alone;
    let claims = [crate::scheduling::model::footprint::ClaimUse { name: "data".into(), owner: None }];
    std::sync::Arc::make_mut(&mut with_claims.footprint).claims = claims.into();
    assert_eq!(Alike::of(&with_claims), None);
}

#[test]
fn a_pod_of_a_class_that_was_forgotten_is_among_those_that_wait() {
    let mut play = Play::new();
    play.create_large("a");
    play.gone("a");
    // So many other classes that the first is forgotten.
    for size in 0..1100 {
        let name = format!("large-{size}");
        play.changed(&name, |info| *info = pod(&name, 20_000 + size, info.lifetime.created));
        play.gone(&name);
    }
    play.create_large("b");
    play.sent();
    play.wait(seconds(60));
    assert!(!play.sent().contains(&Sent::Drift), "the audit finds it where it ought to be");
}

/// Why the pod's attempts failed: what was said of each outcome first, when, and how often.
fn history(play: &Play, name: &str) -> Vec<(String, i64, i64, u32)> {
    let history = play.scheduler.binding.cycle.queue.history(name);
    let row = |outcome: &AttemptOutcome<PendingReason>| {
        let labels = outcome.reason.blame().labels();
        let (_, reason) = labels.into_iter().next().unwrap();
        (reason, outcome.first.as_second(), outcome.last.as_second(), outcome.count)
    };
    history.into_iter().flat_map(|history| history.outcomes().iter().map(row)).collect()
}

#[test]
fn it_is_known_why_the_attempts_of_a_pod_failed_until_it_is_bound() {
    let mut play = Play::new();
    let start = play.now.as_second();
    play.foreign("theirs", 9000);
    let insufficient =
        |last: i64, count: u32| ("CardInsufficientMemory".to_owned(), start, start + last, count);
    let wants =
        |pod: &mut crate::scheduling::PodInfo| *pod = super::play::pod("a", 5000, pod.lifetime.created);
    play.changed("a", wants);
    assert_eq!(history(&play, "a"), [insufficient(0, 1)]);
    play.wait(seconds(300));
    assert_eq!(history(&play, "a"), [insufficient(300, 2)]);
    let pending = play.scheduler.view().pending();
    play.gone("theirs");
    play.lock_answered("a", LockOutcome::Refused("no".to_owned()));
    let refused = ("NodeLockRefused".to_owned(), start + 300, start + 300, 1);
    assert_eq!(history(&play, "a"), [insufficient(300, 2), refused]);
    assert_eq!(
        pending[0].history.as_ref().unwrap().outcomes().len(),
        1,
        "what was given out stays as it was"
    );
    play.wait(seconds(1));
    play.lock_taken("a");
    play.bind_answered("a", BindOutcome::Bound);
    assert_eq!(history(&play, "a"), []);
}
