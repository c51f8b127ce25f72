//! What the scheduler does, event by event: doubts, locks that are lost, agents that fail or are silent.

mod dialects;
mod excess;
mod gang;
mod locks;
mod play;
mod preempt;
mod queue;
mod reads;
mod steps;

use jiff::SignedDuration;

use crate::{
    device::Answer,
    scheduling::{
        event::{BindOutcome, LockOutcome, Setback, TellOutcome},
        model::measure::{Attempt, Measure},
        world::ledger::Commitment,
    },
};
use play::{Play, Sent, setback};

fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

#[test]
fn a_pod_is_locked_bound_told_and_served() {
    let mut play = Play::new();
    play.create("a");
    assert_eq!(play.sent(), [Sent::Lock("a")]);
    play.lock_taken("a");
    assert_eq!(play.sent(), [Sent::Bind("a")]);
    play.bind_answered("a", BindOutcome::Bound);
    assert_eq!(play.sent(), [Sent::Told("a")]);
    play.create("b");
    assert_eq!(play.sent(), [], "the agent is at work for a");
    play.served("a", Answer::Succeeded);
    play.unlocked();
    assert_eq!(play.sent(), [Sent::Lock("b")]);
}

/// What comes of a Binding that is answered so, when the pod is then found so; and what it holds at the end.
fn settled(outcome: BindOutcome, found: Option<Found>) -> (bool, bool) {
    let mut play = Play::new();
    play.create("a");
    play.lock_taken("a");
    play.bind_answered("a", outcome);
    for _ in 0..40 {
        if play.is_settled("a") {
            break;
        }
        for sent in play.sent() {
            match (sent, found) {
                (Sent::Read("a"), Some(Found::Bound)) => play.read("a", play.bound_pod("a", Answer::Awaited)),
                (Sent::Read("a"), Some(Found::Unbound)) => play.read("a", play.pod("a")),
                (Sent::Read("a"), None) => play.read_gone("a"),
                (Sent::Bind("a"), _) => play.bind_answered("a", BindOutcome::Refused("no more".to_owned())),
                _ => {}
            }
        }
        if !play.is_settled("a") {
            play.wait(seconds(1));
        }
    }
    assert!(play.is_settled("a"), "neither confirmed nor forgotten");
    (play.is_charged("a", Commitment::Bound), play.is_charged("a", Commitment::Assumed))
}

#[derive(Clone, Copy, Debug)]
enum Found {
    Bound,
    Unbound,
}

#[test]
fn every_answer_to_a_binding_ends_in_confirmed_or_forgotten() {
    let doubtful = |why: &str| BindOutcome::Doubtful(setback(why, 0));
    let confirmed = (true, false);
    let forgotten = (false, false);
    let cases = [
        ("the answer is yes", BindOutcome::Bound, None, confirmed),
        ("404: the pod is gone", doubtful("404"), None, forgotten),
        ("409: bound by us", doubtful("409"), Some(Found::Bound), confirmed),
        ("409: another uid of the name", doubtful("409"), None, forgotten),
        ("409: not bound", doubtful("409"), Some(Found::Unbound), forgotten),
        ("422", BindOutcome::Refused("422".to_owned()), None, forgotten),
        ("429", BindOutcome::Throttled(setback("429", 2)), None, forgotten),
        ("500 after the write", doubtful("500"), Some(Found::Bound), confirmed),
        ("500 before the write", doubtful("500"), Some(Found::Unbound), forgotten),
        ("503 with a wait", BindOutcome::Doubtful(setback("503", 3)), Some(Found::Unbound), forgotten),
        ("late, and written", doubtful("no answer within 8s"), Some(Found::Bound), confirmed),
        ("late, and not written", doubtful("no answer within 8s"), Some(Found::Unbound), forgotten),
        ("lost, and the pod gone", doubtful("connection reset"), None, forgotten),
    ];
    for (case, outcome, found, expected) in cases {
        assert_eq!(settled(outcome, found), expected, "{case}");
    }
}

#[test]
fn a_binding_is_not_sent_again_before_the_server_allows_it() {
    let throttled = || BindOutcome::Throttled(setback("too many requests", 7));
    for (case, outcome) in [("429", throttled()), ("503", BindOutcome::Doubtful(setback("busy", 7)))] {
        let mut play = Play::new();
        play.create("a");
        play.lock_taken("a");
        play.sent();
        play.bind_answered("a", outcome);
        if play.sent().contains(&Sent::Read("a")) {
            play.read("a", play.pod("a"));
        }
        play.wait(seconds(6));
        assert_eq!(play.sent(), [], "{case}: 6 s after the answer");
        play.wait(seconds(1));
        assert_eq!(play.sent(), [Sent::Bind("a")], "{case}: 7 s after the answer");
    }
}

#[test]
fn a_lock_is_not_asked_for_again_before_the_server_allows_it() {
    let cases = [
        ("429", LockOutcome::Throttled(setback("too many requests", 5))),
        ("500", LockOutcome::Failed(Setback { why: "busy".to_owned(), wait: seconds(5) })),
    ];
    for (case, outcome) in cases {
        let mut play = Play::new();
        play.create("a");
        play.sent();
        play.lock_answered("a", outcome);
        if play.sent().contains(&Sent::ReadNode) {
            play.node_read();
        }
        play.wait(seconds(4));
        assert_eq!(play.sent(), [], "{case}: 4 s after the answer");
        play.wait(seconds(1));
        assert_eq!(play.sent(), [Sent::Lock("a")], "{case}: 5 s after the answer");
    }
}

#[test]
fn a_word_is_not_said_again_before_the_server_allows_it() {
    let mut play = Play::new();
    play.create_large("a");
    assert_eq!(play.sent(), [Sent::Unschedulable("a")]);
    play.told("a", TellOutcome::Failed { wait: seconds(4) });
    play.wait(seconds(3));
    assert_eq!(play.sent(), []);
    play.wait(seconds(1));
    assert_eq!(play.sent(), [Sent::Unschedulable("a")]);
}

#[test]
fn a_failed_allocation_is_said_once_and_its_cards_are_free_once_the_pod_has_ended() {
    let mut play = Play::new();
    play.bind("a");
    play.served("a", Answer::Failed);
    assert_eq!(play.sent(), [Sent::FailedAllocation("a")]);
    play.served("a", Answer::Failed);
    assert_eq!(play.sent(), []);
    play.unlocked();
    // Some plugins still serve a pod that they called failed: until kubelet has ended it, it holds what it was given.
    assert!(play.is_charged("a", Commitment::Bound));
    play.create("b");
    assert_eq!(play.sent(), [Sent::Lock("b")], "the agent is free for the next");
    play.gone("a");
    assert!(!play.is_charged("a", Commitment::Bound));
}

#[test]
fn the_agent_of_a_pod_that_was_taken_away_by_force_is_given_time() {
    let mut play = Play::new();
    play.bind("a");
    play.gone("a");
    play.unlocked();
    play.create("b");
    play.wait(seconds(14));
    assert_eq!(play.take_sent("b"), [], "the agent would take b for a");
    play.wait(seconds(1));
    assert_eq!(play.sent(), [Sent::Lock("b")]);
}

#[test]
fn the_agent_of_a_pod_that_was_perhaps_bound_is_given_time_too() {
    let mut play = Play::new();
    play.create("a");
    play.lock_taken("a");
    play.bind_answered("a", BindOutcome::Doubtful(setback("no answer within 8s", 0)));
    play.gone("a");
    play.unlocked();
    play.create("b");
    play.wait(seconds(14));
    assert_eq!(play.take_sent("b"), []);
    play.wait(seconds(1));
    assert_eq!(play.sent(), [Sent::Lock("b")]);
}

#[test]
fn the_node_of_a_pod_that_has_ended_goes_on_at_once() {
    let mut play = Play::new();
    play.bind("a");
    play.create("b");
    play.ended("a");
    play.unlocked();
    assert_eq!(play.take_sent("b"), [Sent::Lock("next")]);
}

#[test]
fn a_silent_agent_is_tried_again_after_longer_and_longer_pauses_until_it_answers() {
    let mut play = Play::new();
    for (round, pause) in [("one", 30), ("two", 60), ("three", 120)] {
        play.bind(round);
        play.wait(play::EXPIRY);
        assert_eq!(play.sent(), [Sent::Silent(round)]);
        assert_eq!(play.scheduler.view().standing(play.now).silent_agents, 1);
        play.gone(round);
        play.unlocked();
        let next = format!("after-{round}");
        play.create(&next);
        assert_eq!(play.take_sent(&next), [Sent::Unschedulable("next")]);
        play.wait(seconds(pause - 1));
        assert_eq!(play.take_sent(&next), [], "{round}: one second early");
        play.wait(seconds(1));
        assert_eq!(play.take_sent(&next), [Sent::Lock("next")], "{round}");
        play.ended(&next);
        play.sent();
        play.unlocked();
    }
    play.bind("four");
    play.served("four", Answer::Succeeded);
    play.unlocked();
    play.gone("four");
    play.bind("five");
    play.wait(play::EXPIRY);
    play.ended("five");
    play.unlocked();
    play.create("six");
    play.sent();
    play.wait(seconds(30));
    assert_eq!(play.sent(), [Sent::Lock("six")], "an answer ends what was held against it");
}

#[test]
fn a_card_that_another_scheduler_gave_away_twice_is_found_said_once_and_given_to_nobody() {
    let mut play = Play::new();
    play.foreign("one", 6000);
    play.foreign("two", 7000);
    assert_eq!(play.sent(), [Sent::Excess("one"), Sent::Excess("two"), Sent::CountFindings]);
    play.create("a");
    assert_eq!(play.sent(), [Sent::Unschedulable("a")]);
    play.wait(seconds(60));
    assert!(!play.sent().contains(&Sent::Excess("one")));
    play.ended("two");
    assert!(play.sent().contains(&Sent::Lock("a")));
}

#[test]
fn a_card_that_is_only_about_to_be_given_is_not_given_twice() {
    let mut play = Play::new();
    play.create("a");
    play.sent();
    play.foreign("theirs", 9500);
    let sent = play.sent();
    assert!(!sent.contains(&Sent::Excess("theirs")), "{sent:?}");
    play.foreign("theirs-too", 9500);
    assert!(play.sent().contains(&Sent::Excess("theirs")));
}

#[test]
fn who_waits_for_a_lock_is_told_for_whom_and_since_when() {
    let mut play = Play::new();
    let since = play.now;
    play.locked_by("team-b/other");
    play.create("a");
    play.wait(seconds(9));
    play.sent();
    assert_eq!(play.scheduler.view().standing(play.now).longest_lock_wait, seconds(9));
    play.wait(seconds(1));
    let waits = [format!("Waiting for the lock of node n1, held by team-b/other since {since}")];
    assert_eq!(play.waiting(), waits);
    play.wait(seconds(9));
    assert_eq!(play.waiting(), [""; 0]);
    play.wait(seconds(1));
    assert_eq!(play.waiting(), waits, "again after twice as long");
    play.unlocked();
    assert_eq!(play.sent(), [Sent::Lock("a")]);
    assert_eq!(play.scheduler.view().standing(play.now).longest_lock_wait, SignedDuration::ZERO);
}

#[test]
fn who_waits_for_an_agent_is_told_at_work_for_whom() {
    let mut play = Play::new();
    play.bind("a");
    let since = play.now;
    play.create("b");
    play.wait(seconds(10));
    assert_eq!(
        play.waiting(),
        [format!(
            "Waiting for the device plugin of node n1, which has been allocating for default/a since {since}"
        )]
    );
}

#[test]
fn what_is_measured_is_what_happened() {
    let mut play = Play::new();
    play.create("a");
    play.wait(seconds(2));
    play.lock_taken("a");
    play.wait(seconds(3));
    play.bind_answered("a", BindOutcome::Bound);
    play.served("a", Answer::Succeeded);
    play.wait(seconds(4));
    play.unlocked();
    play.create_large("b");
    let expected = [
        Measure::Attempt(Attempt::Scheduled),
        Measure::LockWait(seconds(2)),
        Measure::Bound(seconds(5)),
        Measure::LockHold(seconds(7)),
        Measure::Attempt(Attempt::Unschedulable),
    ];
    let measures = play.scheduler.take_measured().measures;
    let (steps, others): (Vec<Measure>, Vec<Measure>) =
        measures.into_iter().partition(|one| matches!(one, Measure::Steps(_)));
    assert_eq!(others, expected);
    assert_eq!(steps.len(), 2, "a turn for each of the decisions: {steps:?}");
    assert_eq!(play.scheduler.take_measured().measures, []);
}
