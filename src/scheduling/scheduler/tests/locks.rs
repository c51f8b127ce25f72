//! Locks that are lost, given back, or name nobody.

use jiff::Timestamp;

use super::{
    play::{Play, Sent, setback},
    seconds,
};
use crate::{
    device::Answer,
    scheduling::{
        Event, ObjectChange, Scheduler,
        event::{BindOutcome, LockOutcome},
        fixtures,
        model::{node::Signature, other_schedulers::OtherSchedulers},
    },
};

#[test]
fn nothing_is_due_before_all_is_listed() {
    let now = Timestamp::UNIX_EPOCH;
    let until = now + seconds(6);
    let mut scheduler = Scheduler::new(fixtures::settings());
    let none = Event::Object(ObjectChange::OtherSchedulers(OtherSchedulers::NoneUntil(until)));
    scheduler.observe(none, now);
    scheduler.settle(now);
    assert_eq!(scheduler.next_deadline(), None);
    scheduler.settle(until);
    assert_eq!(scheduler.next_deadline(), None, "it would be due again and again");
}

#[test]
fn a_lock_that_is_lost_before_the_binding_is_taken_again() {
    let mut play = Play::new();
    play.create("a");
    play.sent();
    // The agent was asked for another pod, took this one for it, failed it and freed the node; and that is seen first.
    play.lock_taken_and_lost("a");
    assert_eq!(play.sent(), [Sent::Lock("a")]);
    play.lock_taken("a");
    assert_eq!(play.sent(), [Sent::Bind("a")]);
}

#[test]
fn a_lock_that_is_lost_while_a_binding_waits_is_taken_again_once_nothing_can_arrive() {
    let mut play = Play::new();
    play.create("a");
    play.lock_taken("a");
    play.sent();
    play.bind_answered("a", BindOutcome::Doubtful(setback("500", 0)));
    play.unlocked();
    play.read("a", play.pod("a"));
    play.sent();
    play.wait(seconds(5));
    assert_eq!(play.sent(), [], "the first Binding can still arrive");
    play.wait(seconds(1));
    assert_eq!(play.sent(), [Sent::Read("a")]);
    play.read("a", play.pod("a"));
    play.wait(seconds(1));
    assert_eq!(play.sent(), [Sent::Lock("a")]);
}

#[test]
fn a_lock_that_names_nobody_is_known_by_its_time() {
    let mut play = Play::new();
    play.create("a");
    play.sent();
    play.bare_lock_seen_and_taken("a");
    assert_eq!(play.sent(), [Sent::Bind("a")]);
    play.bind_answered("a", BindOutcome::Bound);
    play.served("a", Answer::Awaited);
    play.sent();
    // Its agent says nothing and frees nothing; kubelet ends it.
    play.ended("a");
    assert_eq!(play.sent(), [Sent::ReadHolder]);
    play.locked_by_somebody();
    assert_eq!(play.sent(), [], "it is asked for once");
    play.holder_of_bare_lock_absent("a");
    assert_eq!(play.sent(), [Sent::Unlock]);
}

#[test]
fn a_lock_whose_taking_was_not_answered_is_known_by_its_time_too() {
    let mut play = Play::new();
    play.create("a");
    play.sent();
    play.lock_answered("a", LockOutcome::Failed(setback("500", 0)));
    assert_eq!(play.sent(), [Sent::ReadNode]);
    play.node_read_locked_by_somebody();
    assert_eq!(play.sent(), [Sent::Bind("a")]);
}

#[test]
fn a_lock_that_names_nobody_is_not_taken_for_one_that_would_name_its_pod() {
    let mut play = Play::of_locks(Signature::Pod);
    play.create("a");
    play.sent();
    // Another scheduler has locked the node in the same second.
    play.lock_answered("a", LockOutcome::Stale);
    assert_eq!(play.sent(), [Sent::ReadNode]);
    play.node_read_locked_by_somebody();
    assert_eq!(play.sent(), []);
}

#[test]
fn a_lock_of_somebody_is_respected_until_it_expires() {
    let mut play = Play::new();
    play.locked_by_somebody();
    play.wait(seconds(1));
    play.create("a");
    play.wait(seconds(298));
    assert!(!play.sent().contains(&Sent::Lock("a")));
    play.wait(seconds(1));
    assert!(play.sent().contains(&Sent::Lock("a")));
}

#[test]
fn a_lock_that_was_given_back_is_not_given_back_again_before_the_node_is_seen() {
    let mut play = Play::new();
    play.locked_for_nobody("gone-long-ago");
    assert_eq!(play.sent(), [Sent::ReadHolder]);
    play.holder_absent();
    assert_eq!(play.sent(), [Sent::Unlock]);
    // Done is also what is answered where the node is gone, and the watch may lag.
    for _ in 0..3 {
        play.released();
        assert_eq!(play.sent(), []);
    }
    play.wait(seconds(1));
    assert_eq!(play.sent(), [Sent::Unlock], "it is looked at again, not too soon");
}

#[test]
fn a_node_older_than_the_lock_says_nothing_of_it() {
    let mut play = Play::new();
    play.create("a");
    play.sent();
    play.lock_taken_unseen("a");
    play.old_node();
    assert_eq!(play.sent(), [Sent::Bind("a")]);
}
