//! The order of pods, the times of their turns, and what is taken early.

use super::*;
use crate::scheduling::{
    fixtures,
    model::pod::{Claim, Importance, Lifetime},
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn pod(name: &str, priority: i32) -> PodInfo {
    PodInfo {
        importance: Importance { priority, ..Importance::default() },
        ..fixtures::pod(name, Claim::None)
    }
}

/// The pods that are active then, in order.
fn popped(queue: &mut Queue, second: i64) -> Vec<Uid> {
    queue.end_backoffs(at(second));
    std::iter::from_fn(|| queue.pop(|_| false)).collect()
}

fn uids(names: &[&str]) -> Vec<Uid> {
    names.iter().map(|name| (*name).into()).collect()
}

#[test]
fn a_wait_doubles_up_to_ten_seconds() {
    let waits: Vec<_> = (1..=6).map(|failures| backoff(failures).as_secs()).collect();
    assert_eq!(waits, [1, 2, 4, 8, 10, 10]);
}

#[test]
fn backoffs_end_at_whole_seconds_and_long_waits_at_whole_half_minutes() {
    let half_past = at(100) + SignedDuration::from_millis(500);
    assert_eq!(backoff_end(at(100), 1), at(101));
    assert_eq!(backoff_end(half_past, 1), at(102));
    assert_eq!(backoff_end(half_past, 9), at(111));
    assert_eq!(flush_time(at(90)), at(390));
    assert_eq!(flush_time(at(91)), at(420));
    assert_eq!(flush_time(half_past), at(420));
}

#[test]
fn pods_whose_backoffs_end_within_one_second_go_by_priority() {
    let mut queue = Queue::default();
    queue.back_off(&pod("soon", 1), 1, at(10));
    queue.back_off(&pod("low", 1), 2, at(11));
    queue.wait_out(&pod("high", 5), 3, at(11));
    queue.back_off(&pod("later", 9), 4, at(12));
    assert_eq!(popped(&mut queue, 9), uids(&[]));
    assert_eq!(popped(&mut queue, 11), uids(&["high", "soon", "low"]), "what has ended is one queue");
    assert_eq!(queue.next_deadline(), Some(at(12)));
}

#[test]
fn a_pod_is_taken_early_by_its_backoff_and_never_after_a_failure() {
    let mut queue = Queue::default();
    queue.wait_out(&pod("failed", 9), 1, at(10));
    queue.back_off(&pod("high", 9), 2, at(12));
    queue.back_off(&pod("low", 1), 3, at(11));
    let early: Vec<_> = std::iter::from_fn(|| queue.pop_early(|_| false)).collect();
    assert_eq!(early, uids(&["low", "high"]));
    assert!(queue.contains(&"failed".into()));
}

#[test]
fn a_pod_stands_in_one_place_only() {
    let mut queue = Queue::default();
    let one = pod("one", 1);
    queue.push(&one, 1);
    queue.back_off(&one, 1, at(10));
    queue.wait_out(&one, 1, at(10));
    queue.set_aside(&one, 1, at(10));
    assert_eq!((queue.len(), queue.backing_off(), queue.contains(&"one".into())), (0, 0, false));
    assert_eq!(queue.overdue(at(9), 5), uids(&[]));
    assert_eq!(queue.overdue(at(10), 5), uids(&["one"]));
    queue.push(&one, 1);
    assert_eq!(queue.next_deadline(), None);
    queue.remove(&"one".into());
    assert_eq!(popped(&mut queue, 20), uids(&[]));
}

#[test]
fn of_the_overdue_the_longest_waiting_come_first() {
    let mut queue = Queue::default();
    queue.set_aside(&pod("second", 9), 1, at(20));
    queue.set_aside(&pod("first", 1), 2, at(10));
    assert_eq!(queue.overdue(at(30), 1), uids(&["first"]));
    assert_eq!(queue.overdue(at(30), 2), uids(&["first", "second"]));
}

#[test]
fn a_pod_that_has_lost_a_place_comes_after_those_that_were_created_before_that() {
    let mut queue = Queue::default();
    let created = |name: &str, second: i64| PodInfo {
        lifetime: Lifetime { created: at(second), ..Lifetime::default() },
        ..pod(name, 0)
    };
    queue.put_behind(&"old".into(), at(50));
    let pods = [created("old", 0), created("middle", 10), created("new", 60), pod("high", 1)];
    for (seen, pod) in (0..).zip(&pods) {
        queue.push(pod, seen);
    }
    assert_eq!(popped(&mut queue, 100), uids(&["high", "middle", "old", "new"]));
    queue.end_behind(&"old".into());
    queue.push(&pods[1], 1);
    queue.push(&pods[0], 0);
    assert_eq!(
        popped(&mut queue, 100),
        uids(&["old", "middle"]),
        "once it is bound, nothing is left of that"
    );
}
