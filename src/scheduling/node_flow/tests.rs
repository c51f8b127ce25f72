//! A node's flow alone: what it requests of a scheduler that decides no more than whether a pod fits.

mod walk;
mod world;

use jiff::SignedDuration;

use crate::{
    device::{Answer, LockNeed},
    scheduling::{
        model::outcome::{BindOutcome, LockOutcome, REACH},
        world::node_state::Agent,
    },
};
use world::{Outcome, World, setback};

fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

/// A world with these pods in the line of the node, all seen.
fn with(pods: &[&str]) -> World {
    lined_up(World::new(), pods)
}

/// The world with these pods in the line of the node, all seen.
fn lined_up(mut world: World, pods: &[&str]) -> World {
    for pod in pods {
        world.create(pod);
    }
    world.show_all();
    world.schedule();
    world
}

#[test]
fn a_pod_is_locked_decided_once_more_and_bound_and_the_next_waits_for_the_device_plugin() {
    let mut world = with(&["a", "b"]);
    assert_eq!(world.sent(), ["lock a"]);
    world.answer_all(Outcome::Done);
    assert_eq!(world.sent(), ["bind a"]);
    world.answer_all(Outcome::Done);
    world.show_all();
    assert_eq!(world.sent(), [""; 0], "the device plugin is at work for a");
    world.serve("a", Answer::Succeeded);
    world.free_lock();
    world.show_all();
    assert_eq!(world.sent(), ["lock b"]);
}

#[test]
fn namespaces_take_turns_in_a_line() {
    let world = with(&["one/a", "one/b", "one/c", "two/a"]);
    assert_eq!(world.line(), ["one/a", "two/a", "one/b", "one/c"]);
}

#[test]
fn a_binding_without_an_answer_is_settled_by_reading_before_the_pod_is_given_up() {
    let mut world = with(&["a"]);
    world.answer_all(Outcome::Done);
    assert_eq!(world.sent(), ["bind a"]);
    world.answer_all(Outcome::Delayed);
    assert_eq!(world.sent(), ["read a"]);
    world.full = true;
    world.answer_all(Outcome::Done);
    world.pass(seconds(1));
    assert_eq!(world.sent(), [""; 0], "the Binding may still arrive");
    assert!(world.stands_in_line("a"));
    world.carry_out_delayed();
    world.pass(REACH);
    assert_eq!(world.sent(), ["read a"]);
    world.answer_all(Outcome::Done);
    assert!(world.is_charged_as_bound("a") && !world.stands_in_line("a"));
}

/// The Binding is carried out after the pod was read, and the next one is refused: the first read says nothing of that.
#[test]
fn a_pod_is_read_again_before_it_is_given_up_after_a_binding_that_could_arrive_later_than_the_first_read() {
    let mut world = with(&["a"]);
    world.answer_all(Outcome::Done);
    world.answer_all(Outcome::Delayed);
    assert_eq!(world.sent(), ["read a"]);
    world.carry_out(0, Outcome::Done);
    world.carry_out_delayed();
    world.hear(0, false);
    world.pass(REACH);
    assert_eq!(world.sent(), ["bind a"]);
    world.answer_all(Outcome::Refused);
    assert_eq!(world.sent(), ["read a"]);
    world.answer_all(Outcome::Done);
    assert_eq!(world.faults, [""; 0]);
    assert!(world.is_charged_as_bound("a") && !world.stands_in_line("a"));
}

#[test]
fn a_lock_that_was_taken_for_a_pod_that_is_gone_is_given_back() {
    let mut world = with(&["a"]);
    world.kill("a");
    world.show_all();
    assert_eq!(world.sent(), ["lock a"]);
    world.answer_all(Outcome::Done);
    assert_eq!(world.sent(), ["unlock"]);
    world.answer_all(Outcome::Done);
    world.show_all();
    world.pass(seconds(2));
    assert!(world.is_unlocked());
    assert_eq!(world.sent(), [""; 0]);
}

/// Carries this request out so, and hears the answer.
fn answer(world: &mut World, request: &str, outcome: Outcome) {
    let at = world.sent().iter().position(|sent| sent == request).expect(request);
    world.carry_out(at, outcome);
    world.hear(world.to_hear() - 1, false);
}

/// Has the lock of `a`, which the node bears, taken in doubt, and the node read.
fn lock_in_doubt(world: &mut World) {
    world.schedule();
    answer(world, "lock a", Outcome::Delayed);
    while world.sent().iter().any(|sent| sent == "read node") {
        answer(world, "read node", Outcome::Done);
    }
}

#[test]
fn a_lock_is_no_pods_while_a_request_to_give_it_back_may_arrive_whatever_becomes_of_another() {
    let mut world = with(&["x"]);
    // The answer to this comes last.
    world.carry_out(0, Outcome::Done);
    world.kill("x");
    world.show_all();
    answer(&mut world, "read holder x", Outcome::Done);
    answer(&mut world, "unlock", Outcome::Done);
    world.create("a");
    world.show_all();
    world.schedule();
    answer(&mut world, "lock a", Outcome::Lost);
    world.full = true;
    answer(&mut world, "read node", Outcome::Done);
    world.pass(seconds(1));
    assert_eq!(world.sent(), ["unlock"], "a is not served, and has the lock");
    world.hear(0, true);
    assert_eq!(world.sent(), ["unlock", "unlock"], "x had the lock, and is gone");
    world.carry_out(1, Outcome::Done);
    world.hear(0, true);
    world.full = false;
    lock_in_doubt(&mut world);
    assert_eq!(world.sent(), ["unlock", "lock a"], "a is not bound under a lock that it is about to lose");
    world.come_to_rest();
    assert_eq!(world.faults, [""; 0]);
    assert!(world.is_charged_as_bound("a"));
}

#[test]
fn a_lock_is_no_pods_before_a_request_to_give_it_back_is_answered_however_late_it_is_sent() {
    let mut world = with(&["a"]);
    world.answer_all(Outcome::Done);
    world.restart(0);
    assert_eq!(world.sent(), ["unlock"], "a is not served, and has the lock");
    world.pass(REACH + REACH);
    lock_in_doubt(&mut world);
    assert_eq!(world.sent(), ["unlock", "lock a"], "a is not bound under a lock that it is about to lose");
    world.pass(REACH);
    answer(&mut world, "unlock", Outcome::Delayed);
    lock_in_doubt(&mut world);
    assert!(!world.sent().contains(&"bind a".to_owned()), "it may still arrive: {:?}", world.sent());
    world.carry_out_delayed();
    world.come_to_rest();
    assert_eq!(world.faults, [""; 0]);
    assert!(world.is_charged_as_bound("a") && world.is_idle());
}

/// The lock was taken for a pod that is gone, and names the pod that has come after it.
#[test]
fn a_lock_that_a_pod_has_by_a_read_is_not_given_back_when_it_is_known_to_have_been_taken_for_another() {
    let mut world = with(&["a"]);
    world.carry_out(0, Outcome::Done);
    world.kill("a");
    world.show_pod();
    world.create("a");
    world.show_pod();
    world.schedule();
    answer(&mut world, "lock a", Outcome::Done);
    answer(&mut world, "read node", Outcome::Done);
    answer(&mut world, "bind a", Outcome::Done);
    world.show_all();
    assert!(world.is_charged_as_bound("a"));
    world.hear(0, false);
    assert_eq!(world.sent(), [""; 0], "a is being served under it");
}

#[test]
fn what_a_flow_remembers_ends_with_what_goes_on() {
    let mut world = with(&["a"]);
    assert!(!world.is_idle());
    world.come_to_rest();
    assert!(world.is_charged_as_bound("a"));
    assert!(world.is_idle(), "{:?}", world.flows);
}

#[test]
fn a_device_plugin_that_leaves_a_pod_without_an_answer_is_noted_as_silent_and_pods_that_wait_go_back() {
    let mut world = with(&["a", "b"]);
    world.answer_all(Outcome::Done);
    world.answer_all(Outcome::Done);
    world.show_all();
    world.hold_queue = true;
    world.pass(world::EXPIRY);
    assert_eq!(world.agent, Agent::Silent);
    assert_eq!(world.line(), [""; 0]);
    world.serve("a", Answer::Succeeded);
    world.show_all();
    assert_eq!(world.agent, Agent::Answering);
}

#[test]
fn a_head_that_waits_for_longer_than_usual_makes_the_node_the_last() {
    let mut world = with(&["a", "b"]);
    world.answer_all(Outcome::Done);
    world.answer_all(Outcome::Done);
    world.show_all();
    assert_eq!(world.flows.rank(world::NODE), 0);
    world.pass(seconds(10));
    assert!(world.flows.is_held_up(world::NODE));
    assert_eq!(world.told.last().map(String::as_str), Some("waits b"));
    world.serve("a", Answer::Succeeded);
    world.free_lock();
    world.show_all();
    assert!(!world.flows.is_held_up(world::NODE), "it serves again");
}

#[test]
fn an_answer_that_comes_twice_changes_nothing() {
    let mut world = with(&["a"]);
    world.answer_all(Outcome::Done);
    world.answer_all(Outcome::Done);
    let told = world.told.clone();
    world.answer_lock_again("a", LockOutcome::Stale);
    world.answer_binding_again("a", BindOutcome::Doubtful(setback(0)));
    assert_eq!((world.sent(), &world.told), (Vec::new(), &told));
    assert!(world.is_charged_as_bound("a"));
}

/// A world where the lock can be left out and no other scheduler runs, with these pods in the line of the node.
fn uncontested(pods: &[&str]) -> World {
    let mut world = World::needing(LockNeed::WhereContested);
    world.report();
    lined_up(world, pods)
}

#[test]
fn without_another_scheduler_a_pod_is_bound_without_a_lock_unless_the_plugin_could_take_another_for_it() {
    let mut world = uncontested(&["a", "b"]);
    assert_eq!(world.sent(), ["bind a"]);
    world.answer_all(Outcome::Done);
    world.show_all();
    assert_eq!(world.sent(), [""; 0], "the device plugin is at work for a");
    world.serve("a", Answer::Succeeded);
    world.show_all();
    assert_eq!(world.sent(), ["lock b"], "a has not started");
    world.answer_all(Outcome::Done);
    world.answer_all(Outcome::Done);
    world.show_all();
    world.serve("b", Answer::Succeeded);
    world.free_lock();
    world.start("a");
    world.start("b");
    world.create("c");
    world.show_all();
    world.report();
    world.schedule();
    assert_eq!(world.sent(), ["bind c"], "nothing on the node could be taken for c");
    assert_eq!(world.faults, [""; 0]);
}

#[test]
fn a_node_is_locked_for_a_pod_that_was_bound_without_a_lock_as_soon_as_another_scheduler_appears() {
    let mut world = uncontested(&["a", "b"]);
    world.answer_all(Outcome::Done);
    world.show_all();
    world.rival_comes();
    world.report();
    assert_eq!(world.sent(), ["read node"]);
    world.answer_all(Outcome::Done);
    assert_eq!(world.sent(), ["lock a"]);
    world.answer_all(Outcome::Done);
    world.show_all();
    assert!(!world.is_unlocked());
    world.serve("a", Answer::Succeeded);
    world.free_lock();
    world.show_all();
    assert_eq!(world.sent(), ["lock b"]);
    assert_eq!(world.faults, [""; 0]);
}

#[test]
fn a_binding_under_way_without_a_lock_is_given_one_too() {
    let mut world = uncontested(&["a"]);
    assert_eq!(world.sent(), ["bind a"]);
    world.rival_comes();
    world.report();
    assert_eq!(world.sent(), ["bind a", "read node"]);
    answer(&mut world, "read node", Outcome::Done);
    answer(&mut world, "lock a", Outcome::Done);
    answer(&mut world, "bind a", Outcome::Refused);
    world.show_all();
    assert_eq!(world.sent(), ["unlock"], "a goes elsewhere");
    world.come_to_rest();
    assert_eq!(world.faults, [""; 0]);
    assert!(world.is_charged_as_bound("a"));
}

#[test]
fn a_restart_does_not_forget_that_a_pod_was_bound_without_a_lock() {
    let mut world = uncontested(&["a"]);
    world.answer_all(Outcome::Done);
    world.rival_comes();
    world.restart(0);
    assert_eq!(world.sent(), ["read node"]);
    world.answer_all(Outcome::Done);
    assert_eq!(world.sent(), ["lock a"]);
}

#[test]
fn a_report_that_is_too_old_counts_as_none() {
    let mut world = uncontested(&["a"]);
    world.answer_all(Outcome::Done);
    world.show_all();
    world.serve("a", Answer::Succeeded);
    world.start("a");
    world.show_all();
    world.pass(seconds(7));
    world.create("b");
    world.show_all();
    world.schedule();
    assert_eq!(world.sent(), ["lock b"]);
}

#[test]
fn a_lock_of_an_unknown_scheduler_counts_for_as_long_as_it_is_respected() {
    let mut world = uncontested(&[]);
    world.lock_for_another();
    world.show_all();
    world.come_to_rest();
    world.create("a");
    world.show_all();
    world.report();
    world.schedule();
    assert_eq!(world.sent(), ["lock a"]);
    world.come_to_rest();
    world.start("a");
    world.pass(world::EXPIRY);
    world.create("b");
    world.show_all();
    world.report();
    world.schedule();
    assert_eq!(world.sent(), ["bind b"]);
}

#[test]
fn a_lock_that_came_after_the_plugins_answer_is_given_back() {
    let mut world = uncontested(&["a"]);
    world.answer_all(Outcome::Done);
    world.show_all();
    world.rival_comes();
    world.report();
    world.answer_all(Outcome::Done);
    world.serve("a", Answer::Succeeded);
    world.answer_all(Outcome::Done);
    world.show_all();
    assert!(!world.is_unlocked());
    world.pass(seconds(16));
    assert_eq!(world.sent(), ["unlock"]);
    world.come_to_rest();
    assert!(world.is_unlocked() && world.is_idle(), "{:?}", world.flows);
}
