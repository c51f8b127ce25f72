//! A race for a node's lock that was lost: what is decided then rests on pods no older than the node.

use super::play::{Play, Sent};
use crate::scheduling::event::LockOutcome;

/// The pod `a` has lost the race for the lock.
fn lost() -> Play {
    let mut play = Play::new();
    play.create("a");
    play.lock_answered("a", LockOutcome::Stale);
    assert_eq!(play.sent(), [Sent::Lock("a"), Sent::ReadNode]);
    play
}

#[test]
fn a_pod_that_the_watch_has_not_shown_yet_counts_after_a_lost_race() {
    let mut play = lost();
    play.node_read_with(vec![play.foreign_pod("theirs", 9500)]);
    let sent = play.sent();
    assert!(sent.contains(&Sent::Unschedulable("a")), "{sent:?}");
    assert!(!sent.contains(&Sent::Lock("a")), "{sent:?}");
    play.gone("theirs");
    assert!(play.sent().contains(&Sent::Lock("a")));
}

#[test]
fn a_pod_that_was_seen_to_go_while_it_was_read_stays_gone() {
    let mut play = lost();
    play.foreign("theirs", 9500);
    let theirs = play.foreign_pod("theirs", 9500);
    play.gone("theirs");
    play.sent();
    play.node_read_with(vec![theirs]);
    assert!(play.sent().contains(&Sent::Lock("a")));
}

#[test]
fn what_a_list_of_all_pods_has_overtaken_is_read_again() {
    let mut play = lost();
    play.listed(vec![play.pod("a")]);
    play.node_read_with(vec![play.foreign_pod("long-gone", 9500)]);
    assert_eq!(play.sent(), [Sent::ReadNode]);
    play.node_read();
    assert_eq!(play.sent(), [Sent::Lock("a")]);
}

#[test]
fn what_the_holder_of_a_lock_is_read_to_hold_counts_before_the_watch_shows_it() {
    let mut play = Play::new();
    play.locked_for_nobody("theirs");
    assert_eq!(play.sent(), [Sent::ReadHolder]);
    play.holder_read(Some(play.foreign_pod("theirs", 9500)));
    play.unlocked();
    play.create("a");
    assert_eq!(play.sent(), [Sent::Unschedulable("a")]);
}

#[test]
fn a_holder_that_was_seen_to_go_while_it_was_read_holds_nothing() {
    let mut play = Play::new();
    play.locked_for_nobody("theirs");
    assert_eq!(play.sent(), [Sent::ReadHolder]);
    let theirs = play.foreign_pod("theirs", 9500);
    play.foreign("theirs", 9500);
    play.gone("theirs");
    assert_eq!(play.sent(), [], "it is read once at a time");
    play.holder_read(Some(theirs));
    assert_eq!(play.sent(), [Sent::ReadHolder]);
    play.holder_absent();
    assert_eq!(play.sent(), [Sent::Unlock]);
}

#[test]
fn what_another_scheduler_bound_under_its_lock_counts_before_the_watch_shows_it() {
    let mut play = Play::new();
    play.locked_by("team-b/other");
    play.create("a");
    play.sent();
    // The watch of nodes is ahead of that of pods.
    play.unlocked();
    assert_eq!(play.sent(), [Sent::Lock("a")]);
    play.lock_taken("a");
    assert_eq!(play.sent(), [Sent::ReadNode]);
    play.node_read_with(vec![play.foreign_pod("theirs", 9500)]);
    let sent = play.sent();
    assert!(sent.contains(&Sent::Unschedulable("a")) && !sent.contains(&Sent::Bind("a")), "{sent:?}");
}

#[test]
fn a_node_that_another_scheduler_has_locked_is_read_once() {
    let mut play = Play::new();
    play.locked_by("team-b/other");
    play.create("a");
    play.sent();
    play.unlocked();
    play.lock_taken("a");
    play.sent();
    play.node_read();
    assert_eq!(play.sent(), [Sent::Bind("a")]);
}
