//! Writes for claims that fail, are refused, are not finished in time or are not wanted any more, and what is taken back.

use berth::scheduling::{Effect, Event, PodChange, Setback, WriteOutcome, effect::PrebindWrite};
use jiff::SignedDuration;
use serde_json::json;

use super::{COMPLETED, SELECTED, answer, claim, said, selected, selecting, volume, write, written};

#[test]
fn a_provisioner_that_gives_up_sends_the_pod_elsewhere() {
    let (mut machine, effects, node) = selecting();
    answer(&mut machine, &effects, &written(2));
    machine.tell(claim(2, &json!({SELECTED: node}), ""));
    assert_eq!(machine.run().1, []);
    machine.tell(claim(3, &json!({}), ""));
    let (effects, bound) = machine.run();
    assert_eq!(said(&effects), [format!("provisioning failed for PVC \"data\" on node \"{node}\"")]);
    assert_eq!(bound, []);
    machine.pass(1);
    assert!(selected(&machine.settle()).is_some(), "it is tried again after its backoff");
}

#[test]
fn what_was_written_is_taken_back_when_the_pod_is_deleted() {
    let (mut machine, effects, node) = selecting();
    machine.tell(Event::Pod(PodChange::Ended("p".into())));
    assert_eq!(machine.settle(), [], "the write is under way");
    answer(&mut machine, &effects, &written(2));
    assert_eq!(machine.settle(), [], "the claim was not seen as it was written yet");
    machine.tell(claim(2, &json!({SELECTED: node}), ""));
    let effects = machine.settle();
    assert_eq!(selected(&effects), None);
    answer(&mut machine, &effects, &written(3));
    machine.tell(claim(3, &json!({}), ""));
    assert_eq!(machine.settle(), []);
    machine.pass(60);
    assert!(machine.settle().iter().all(|effect| !matches!(effect, Effect::Prebind { .. })));
}

#[test]
fn a_claim_that_is_bound_stays_as_it_is_when_the_pod_is_deleted() {
    let (mut machine, effects, node) = selecting();
    answer(&mut machine, &effects, &written(2));
    machine.tell(volume("pv-1", 3, &node, Some("claim")));
    machine.tell(claim(4, &json!({SELECTED: node, COMPLETED: "yes"}), "pv-1"));
    machine.tell(Event::Pod(PodChange::Ended("p".into())));
    assert_eq!(machine.settle(), []);
}

#[test]
fn what_was_written_and_is_not_seen_yet_is_taken_back_once_it_is() {
    let (mut machine, effects, node) = selecting();
    answer(&mut machine, &effects, &written(2));
    machine.tell(Event::Pod(PodChange::Ended("p".into())));
    assert_eq!(machine.settle(), [], "the claim is known as it was before");
    machine.tell(claim(2, &json!({SELECTED: node}), ""));
    assert_eq!(selected(&machine.settle()), None);
}

#[test]
fn what_may_still_arrive_after_a_failure_is_taken_back_once_it_has() {
    let (mut machine, effects, node) = selecting();
    answer(&mut machine, &effects, &WriteOutcome::Failed(Setback::default()));
    machine.tell(Event::Pod(PodChange::Ended("p".into())));
    assert_eq!(machine.settle(), []);
    machine.tell(claim(2, &json!({SELECTED: node}), ""));
    assert_eq!(machine.settle(), [], "it is not known that nothing more arrives");
    machine.pass(9);
    assert_eq!(selected(&machine.settle()), None);
}

#[test]
fn a_write_that_was_refused_leaves_nothing_that_takes_the_next_answer() {
    let (mut machine, effects, node) = selecting();
    answer(&mut machine, &effects, &WriteOutcome::Refused("no".to_owned()));
    assert_eq!(said(&machine.settle()), ["binding volumes was refused: no"]);
    machine.pass(1);
    let effects = machine.settle();
    assert_eq!(selected(&effects), Some(node.clone()));
    answer(&mut machine, &effects, &WriteOutcome::Failed(Setback::default()));
    assert_eq!(machine.settle(), []);
    machine.pass(1);
    assert_eq!(selected(&machine.settle()), Some(node), "it is sent again");
}

#[test]
fn claims_that_are_not_bound_in_time_are_given_up() {
    let (mut machine, effects, node) = selecting();
    answer(&mut machine, &effects, &written(2));
    machine.tell(claim(2, &json!({SELECTED: node}), ""));
    machine.run();
    let deadline = machine.next_deadline().unwrap();
    assert!(deadline <= machine.now() + SignedDuration::from_mins(10));
    machine.pass(600);
    let effects = machine.settle();
    assert_eq!(said(&effects), [format!("binding volumes: timed out on node {node}")]);
    assert_eq!(selected(&effects), None, "the claim is free for another node");
}

#[test]
fn a_write_that_fails_is_sent_again_with_the_version_that_is_known_then() {
    let (mut machine, effects, node) = selecting();
    answer(&mut machine, &effects, &WriteOutcome::Failed(Setback::default()));
    machine.tell(claim(7, &json!({"other": "changed"}), ""));
    assert_eq!(machine.settle(), [], "not at once");
    machine.pass(1);
    let PrebindWrite::SelectNode { claim, node: again } = write(&machine.settle()) else {
        panic!("a volume is bound")
    };
    assert_eq!((claim.metadata.resource_version.as_str(), again.as_deref()), ("7", Some(node.as_str())));
}

#[test]
fn a_write_that_needs_no_second_try_leaves_no_deadline_in_the_past() {
    let (mut machine, effects, node) = selecting();
    answer(&mut machine, &effects, &WriteOutcome::Failed(Setback::default()));
    machine.tell(claim(4, &json!({SELECTED: node, COMPLETED: "yes"}), "pv-1"));
    machine.settle();
    machine.pass(60);
    let effects = machine.settle();
    let is_said = |effect: &Effect| matches!(effect, Effect::TellUnschedulable { .. });
    assert!(effects.iter().all(is_said), "the claim's volume is not seen yet: {effects:?}");
    assert!(machine.next_deadline().unwrap() > machine.now(), "the loop would wake at once, again and again");
    machine.tell(volume("pv-1", 5, &node, Some("claim")));
    assert_eq!(machine.run().1, [("p".to_owned(), node)]);
}
