//! Gangs, event by event: all pods of one are decided together, and what follows when one of them loses its place.

mod partly_bound;
mod tree;

use std::sync::Arc;

use jiff::SignedDuration;

use super::{
    play::{Play, Sent, pod},
    seconds,
};
use crate::{
    device::Answer,
    scheduling::{
        Event, Lifetime, NodeChange, ObjectChange, PodChange, PodGroups, PodInfo, PreemptionPolicy,
        WriteOutcome,
        event::BindOutcome,
        model::{
            gang::{
                DisruptionMode, Gang, GangName, Group, GroupApi, GroupPreemption, Member, Policy,
                SharedTopology, Strictness,
            },
            group_condition::{GroupCondition, GroupOutcome, GroupStatus},
            kind::{Kind, PodGroupKind},
            pod::{Deletion, PodKey, Stage},
        },
        world::{ledger::Commitment, object::Object},
    },
};

const NODE: &str = "n1";

fn group(gang: Gang) -> Object {
    let group = Group::of(Policy::Gang(Arc::new(gang)));
    Object::PodGroup(PodGroupKind::Volcano, "default/g".into(), Arc::new(group))
}

fn least(min: usize) -> Gang {
    Gang { min, ..Gang::default() }
}

/// A pod of the group that asks for so many MiB of a card that has 10,000.
fn member(play: &Play, name: &str, memory: u64) -> PodInfo {
    let gang = GangName { api: GroupApi::Volcano, group: "default/g".into() };
    PodInfo { groups: PodGroups::of(Some(Member { gang, task: None }), None), ..pod(name, memory, play.now) }
}

fn create(play: &mut Play, name: &str, memory: u64) {
    let pod = member(play, name, memory);
    play.happens(Event::Pod(PodChange::Seen(Box::new(pod))));
}

/// A member as it is once it is bound.
fn bound(play: &Play, name: &str, memory: u64, answer: Answer) -> PodInfo {
    let seen = play.bound_pod(name, answer);
    PodInfo { claim: seen.claim, holding: seen.holding, ..member(play, name, memory) }
}

/// A scheduler that knows the group of at least so many pods.
fn of(min: usize) -> Play {
    let mut play = Play::new();
    play.happens(Event::Object(ObjectChange::Seen(group(least(min)))));
    play
}

fn reason(play: &Play, name: &str) -> String {
    let reason = play.scheduler.binding.cycle.conditions.reason(name);
    reason.map(|reason| reason.message().full).unwrap_or_default()
}

/// The pod that is being served is bound, its agent answers, and the lock is free again.
fn carry_through(play: &mut Play, name: &str, memory: u64) {
    play.lock_taken(name);
    play.bind_answered(name, BindOutcome::Bound);
    let pod = bound(play, name, memory, Answer::Succeeded);
    play.happens(Event::Pod(PodChange::Seen(Box::new(pod))));
    play.unlocked();
}

#[test]
fn nothing_is_held_until_enough_pods_are_there_and_then_all_of_them_are_placed() {
    let mut play = of(3);
    for name in ["a", "b"] {
        create(&mut play, name, 1000);
    }
    assert_eq!(play.sent(), [Sent::Unschedulable("a"), Sent::Unschedulable("b")]);
    assert_eq!(reason(&play, "a"), "PodGroup default/g: waiting for more pods: there are 2 (minimum 3)");
    assert_eq!(play.scheduler.snapshot().ledger().all().count(), 0);
    create(&mut play, "c", 1000);
    for name in ["a", "b", "c"] {
        assert!(play.is_charged(name, Commitment::Assumed), "{name}");
        carry_through(&mut play, name, 1000);
        assert!(play.is_charged(name, Commitment::Bound), "{name}");
    }
}

#[test]
fn a_gang_that_finds_no_room_together_holds_nothing_and_each_pod_says_what_is_missing() {
    let mut play = of(3);
    for name in ["a", "b", "c"] {
        create(&mut play, name, 4_000);
    }
    assert_eq!(play.scheduler.snapshot().ledger().all().count(), 0);
    let failing = reason(&play, "c");
    let start = "PodGroup default/g: 2 of 3 pods fit (minimum 3); this one does not: 0/1 nodes are available: 1 Insufficient GPU memory.";
    assert!(failing.starts_with(start), "{failing}");
    assert!(reason(&play, "a").starts_with(
        "PodGroup default/g: 2 of 3 pods fit (minimum 3); c does not: 0/1 nodes are available: 1 Insufficient GPU memory."
    ), "{}", reason(&play, "a"));
    // Another pod goes there meanwhile: nothing is kept for a gang that waits.
    play.create("alone");
    assert!(play.is_charged("alone", Commitment::Assumed));
}

#[test]
fn no_further_pod_is_tried_once_the_gang_can_not_be_whole_any_more() {
    let mut play = of(3);
    for name in ["a", "b", "c"] {
        create(&mut play, name, 11_000);
    }
    // They wait as the audit expects it, also once they have been decided again.
    play.wait(SignedDuration::from_mins(6));
    assert!(!play.sent().contains(&Sent::Drift));
    let said = ["a", "b", "c"].map(|name| reason(&play, name));
    assert!(
        said[0].starts_with("PodGroup default/g: 0 of 3 pods fit (minimum 3); this one does not: "),
        "{said:?}"
    );
    for other in &said[1..] {
        assert!(
            other.starts_with("PodGroup default/g: 0 of 3 pods fit (minimum 3); a does not: "),
            "{said:?}"
        );
    }
}

#[test]
fn room_that_comes_for_any_pod_of_a_gang_has_it_decided_again() {
    let mut play = of(2);
    play.foreign("other", 5_000);
    for name in ["a", "b"] {
        create(&mut play, name, 4_000);
    }
    assert!(!play.is_charged("a", Commitment::Assumed));
    play.gone("other");
    play.wait(seconds(2));
    for name in ["a", "b"] {
        assert!(play.is_charged(name, Commitment::Assumed), "{name}");
    }
}

/// Cards of 10,000 MiB: beside a small pod, which came first, there is room for one of three sizes in one order alone.
#[test]
fn pods_that_do_not_fit_in_the_order_of_the_queue_are_tried_by_their_size() {
    let mut play = of(2);
    play.foreign("other", 2_000);
    for (name, memory) in [("large", 9_000), ("middle", 5_000), ("small", 3_000)] {
        create(&mut play, name, memory);
    }
    assert!(!play.is_charged("large", Commitment::Assumed));
    for name in ["middle", "small"] {
        assert!(play.is_charged(name, Commitment::Assumed), "{name}: {}", reason(&play, name));
    }
}

#[test]
fn two_gangs_do_not_hold_halves_against_each_other() {
    let mut play = of(2);
    let other = Group::of(Policy::Gang(Arc::new(least(2))));
    play.happens(Event::Object(ObjectChange::Seen(Object::PodGroup(
        PodGroupKind::Volcano,
        "default/h".into(),
        Arc::new(other),
    ))));
    for name in ["a", "x", "b", "y"] {
        let mut pod = member(&play, name, 4_000);
        if ["x", "y"].contains(&name) {
            let gang = GangName { api: GroupApi::Volcano, group: "default/h".into() };
            pod.groups = PodGroups::of(Some(Member { gang, task: None }), None);
        }
        play.happens(Event::Pod(PodChange::Seen(Box::new(pod))));
    }
    let placed = |name| play.is_charged(name, Commitment::Assumed);
    assert_eq!(["a", "b", "x", "y"].map(placed), [true, true, false, false]);
}

#[test]
fn before_the_first_binding_a_gang_that_loses_a_place_is_decided_anew_as_a_whole() {
    let mut play = of(2);
    for name in ["a", "b"] {
        create(&mut play, name, 4_000);
    }
    // While the lock is being taken for a, a pod of another scheduler takes what b was to have.
    play.sent();
    play.foreign("other", 5_000);
    play.lock_taken("a");
    let sent = play.sent();
    assert!(!sent.contains(&Sent::Bind("a")), "no first pod of a gang is bound that is not whole");
    for name in ["a", "b"] {
        assert!(!play.is_charged(name, Commitment::Assumed), "{name}: {sent:?} {}", reason(&play, name));
    }
    play.gone("other");
    play.unlocked();
    play.wait(seconds(15));
    for name in ["a", "b"] {
        assert!(play.is_charged(name, Commitment::Assumed), "{name}");
    }
}

#[test]
fn a_restart_counts_the_bound_pods_of_a_gang() {
    let mut play = of(2);
    let held = play.foreign_pod("a", 3_000);
    let bound = PodInfo { holding: held.holding, claim: held.claim, ..member(&play, "a", 3_000) };
    play.happens(Event::Pod(PodChange::Seen(Box::new(bound))));
    create(&mut play, "b", 3_000);
    assert!(play.is_charged("b", Commitment::Assumed), "{}", reason(&play, "b"));
}

#[test]
fn pods_beyond_the_maximum_wait_until_another_ends() {
    let mut play = Play::new();
    play.happens(Event::Object(ObjectChange::Seen(group(Gang { min: 1, max: Some(2), ..Gang::default() }))));
    for name in ["a", "b", "c"] {
        create(&mut play, name, 1000);
    }
    assert!(!play.is_charged("c", Commitment::Assumed));
    assert_eq!(reason(&play, "c"), "PodGroup default/g: 2 pods are placed, which is the maximum");
    carry_through(&mut play, "a", 1000);
    play.ended("a");
    assert!(play.is_charged("c", Commitment::Assumed), "{}", reason(&play, "c"));
}

#[test]
fn a_pod_beyond_the_minimum_that_fits_nowhere_waits() {
    let mut play = Play::new();
    let topology = SharedTopology { key: "rack".into(), strictness: Strictness::Required };
    play.happens(Event::Object(ObjectChange::Seen(group(Gang {
        min: 1,
        topology: Some(topology),
        ..Gang::default()
    }))));
    play.racked("left");
    create(&mut play, "a", 6_000);
    assert!(play.is_charged("a", Commitment::Assumed), "{}", reason(&play, "a"));
    create(&mut play, "b", 6_000);
    let start =
        "PodGroup default/g: 1 of 2 pods fit (minimum 1); this one does not: 0/1 nodes are available: ";
    assert!(reason(&play, "b").starts_with(start), "{}", reason(&play, "b"));
}

#[test]
fn a_pod_that_waits_for_its_rack_is_decided_again_once_no_other_pod_ties_it_there() {
    let mut play = Play::new();
    let topology = SharedTopology { key: "rack".into(), strictness: Strictness::Required };
    play.happens(Event::Object(ObjectChange::Seen(group(Gang {
        min: 1,
        topology: Some(topology),
        ..Gang::default()
    }))));
    play.racked("left");
    create(&mut play, "a", 6_000);
    carry_through(&mut play, "a", 6_000);
    play.racked("left");
    play.beside("n2", "right");
    create(&mut play, "b", 6_000);
    assert!(!play.is_charged("b", Commitment::Assumed), "only the other rack has room");
    play.happens(Event::Node(NodeChange::Gone(NODE.into())));
    play.gone("a");
    assert!(play.is_charged("b", Commitment::Assumed), "{}", reason(&play, "b"));
}

#[test]
fn each_task_has_its_own_minimum() {
    let mut play = Play::new();
    let tasks = [("worker".into(), 2), ("master".into(), 1)].into();
    play.happens(Event::Object(ObjectChange::Seen(group(Gang { min: 3, tasks, ..Gang::default() }))));
    for (name, task) in [("a", "worker"), ("b", "worker"), ("c", "worker"), ("d", "master")] {
        let mut pod = member(&play, name, 1000);
        let gang = pod.groups.gang().unwrap().gang.clone();
        pod.groups = PodGroups::of(Some(Member { gang, task: Some(task.into()) }), None);
        play.happens(Event::Pod(PodChange::Seen(Box::new(pod))));
        let placed = play.scheduler.snapshot().ledger().all().count();
        assert_eq!(placed, if name == "d" { 4 } else { 0 }, "{name}");
    }
}

#[test]
fn pods_wait_for_their_podgroup_and_are_placed_alone_where_there_are_none() {
    let mut play = Play::new();
    create(&mut play, "a", 1000);
    assert_eq!(reason(&play, "a"), "PodGroup default/g not found");
    play.happens(Event::Object(ObjectChange::Seen(group(least(1)))));
    assert!(play.is_charged("a", Commitment::Assumed));

    let mut play = Play::new();
    create(&mut play, "a", 1000);
    play.happens(Event::Object(ObjectChange::Unserved(Kind::PodGroup(PodGroupKind::Volcano))));
    assert!(play.is_charged("a", Commitment::Assumed), "the API server serves no such kind");
}

#[test]
fn a_minimum_that_is_lowered_lets_the_pods_go() {
    let mut play = of(3);
    create(&mut play, "a", 1000);
    assert!(!play.is_charged("a", Commitment::Assumed));
    play.happens(Event::Object(ObjectChange::Seen(group(least(1)))));
    assert!(play.is_charged("a", Commitment::Assumed));

    let mut play = of(3);
    for name in ["a", "b", "c"] {
        create(&mut play, name, 4_000);
    }
    assert!(!play.is_charged("a", Commitment::Assumed));
    play.happens(Event::Object(ObjectChange::Seen(group(least(2)))));
    play.wait(seconds(15));
    assert!(play.is_charged("a", Commitment::Assumed), "also where they waited for room");
}

#[test]
fn after_a_start_no_pod_is_placed_before_it_is_known_which_go_together_unless_that_takes_long() {
    let mut play = Play::before_lists();
    play.create("alone");
    assert!(!play.is_charged("alone", Commitment::Assumed));
    for kind in Kind::POD_GROUPS {
        play.happens(Event::Object(ObjectChange::Listed(*kind, Vec::new())));
    }
    assert!(play.is_charged("alone", Commitment::Assumed));

    let mut play = Play::before_lists();
    play.create("alone");
    create(&mut play, "member", 1000);
    play.wait(seconds(5));
    assert!(play.is_charged("alone", Commitment::Assumed), "the lists do not come");
    assert!(reason(&play, "member").starts_with("PodGroup default/g: PodGroups are not listed yet"));
}

#[test]
fn victims_go_for_a_whole_gang_or_not_at_all() {
    let key = |name: &str| PodKey { uid: name.into(), namespace: "default".into(), name: name.into() };
    let urgent = |play: &Play, name: &str, memory: u64| {
        let mut pod = member(play, name, memory);
        pod.importance.priority = 100;
        pod
    };
    let mut play = of(2);
    play.foreign("low", 5_000);
    // 5,000 MiB are free: the first pod fits without a victim, the second needs the room of the low one, and both together fit then.
    for name in ["a", "b"] {
        let pod = urgent(&play, name, 4_500);
        play.happens(Event::Pod(PodChange::Seen(Box::new(pod))));
    }
    let sent = play.sent();
    assert!(
        sent.contains(&Sent::Nominate("a", true)) && sent.contains(&Sent::Nominate("b", true)),
        "{sent:?}"
    );
    for name in ["a", "b"] {
        let outcome = WriteOutcome::Written { resource_version: "7".into() };
        play.happens(Event::Nominated { pod: key(name), node: Some(NODE.into()), room: None, outcome });
    }
    assert!(play.sent().contains(&Sent::Preempt("low")));
    // What is free is kept for the gang.
    let small = pod("small", 2_000, play.now);
    play.happens(Event::Pod(PodChange::Seen(Box::new(small))));
    assert!(!play.is_charged("small", Commitment::Assumed));
    let low = play.foreign_pod("low", 5_000);
    let mut low = PodInfo { lifetime: Lifetime { leaving: Some(Box::new(play.now)), ..low.lifetime }, ..low };
    low.importance.deletion = Deletion::Preempted;
    play.happens(Event::Pod(PodChange::Seen(Box::new(low))));
    play.ended("low");
    play.wait(seconds(15));
    for name in ["a", "b"] {
        assert!(play.is_charged(name, Commitment::Assumed), "{name}: {}", reason(&play, name));
    }

    let mut play = of(2);
    play.foreign("low", 5_000);
    for name in ["a", "b"] {
        let pod = urgent(&play, name, 6_000);
        play.happens(Event::Pod(PodChange::Seen(Box::new(pod))));
    }
    let sent = play.sent();
    assert!(!sent.iter().any(|sent| matches!(sent, Sent::Nominate(..) | Sent::Preempt(_))), "{sent:?}");
}

#[test]
fn a_binding_that_fails_is_tried_again_for_the_same_gang() {
    let mut play = of(2);
    for name in ["a", "b"] {
        create(&mut play, name, 3_000);
    }
    play.lock_taken("a");
    play.bind_answered("a", BindOutcome::Refused("no".to_owned()));
    assert!(!play.is_charged("b", Commitment::Assumed), "none is bound, so the gang holds nothing");
    play.unlocked();
    play.wait(seconds(15));
    for name in ["a", "b"] {
        assert!(play.is_charged(name, Commitment::Assumed), "{name}: {}", reason(&play, name));
    }
}

#[test]
fn a_pod_whose_priority_or_policy_is_not_that_of_its_group_is_not_placed() {
    let of_kubernetes = |play: &Play, name: &str, priority| {
        let gang = GangName { api: GroupApi::Kubernetes, group: "default/k".into() };
        let mut pod = PodInfo {
            groups: PodGroups::of(Some(Member { gang, task: None }), None),
            ..pod(name, 1_000, play.now)
        };
        pod.importance.group = Some("default/k".into());
        pod.importance.priority = priority;
        pod
    };
    let stated = GroupPreemption {
        priority: Some(5),
        policy: Some(PreemptionPolicy::PreemptLowerPriority),
        ..GroupPreemption::default()
    };
    for policy in [Policy::Alone, Policy::Gang(Arc::new(least(1)))] {
        let mut play = Play::new();
        let group = Group { preemption: stated, ..Group::of(policy) };
        let group = Object::PodGroup(PodGroupKind::Kubernetes, "default/k".into(), Arc::new(group));
        play.happens(Event::Object(ObjectChange::Seen(group)));
        let mut other = of_kubernetes(&play, "b", 5);
        other.importance.preemption_policy = PreemptionPolicy::Never;
        for pod in [of_kubernetes(&play, "a", 4), other, of_kubernetes(&play, "c", 5)] {
            play.happens(Event::Pod(PodChange::Seen(Box::new(pod))));
        }
        assert_eq!(
            reason(&play, "a"),
            "PodGroup default/k: spec.priority is 5, but that of this pod is 4; both must be equal"
        );
        assert_eq!(
            reason(&play, "b"),
            "PodGroup default/k: spec.preemptionPolicy is PreemptLowerPriority, but that of this pod is Never; both must be equal"
        );
        assert!(play.is_charged("c", Commitment::Assumed), "{}", reason(&play, "c"));
    }
}

#[test]
fn the_status_of_a_group_says_once_why_its_pods_wait_and_once_that_they_are_placed() {
    let told = |play: &mut Play| -> Vec<GroupOutcome> {
        let outcome = |sent| if let Sent::Group(outcome) = sent { Some(outcome) } else { None };
        play.sent().into_iter().filter_map(outcome).collect()
    };
    let of_kubernetes = |play: &Play, name: &str, memory| {
        let gang = GangName { api: GroupApi::Kubernetes, group: "default/k".into() };
        let member = Member { gang, task: None };
        let mut pod = pod(name, memory, play.now);
        pod.groups = PodGroups::of(Some(member), None);
        pod.importance.group = Some("default/k".into());
        pod
    };
    let seen = |play: &mut Play, status: GroupStatus| {
        let group = Group { status, ..Group::of(Policy::Gang(Arc::new(least(2)))) };
        let group = Object::PodGroup(PodGroupKind::Kubernetes, "default/k".into(), Arc::new(group));
        play.happens(Event::Object(ObjectChange::Seen(group)));
    };
    let status = |stated| GroupStatus { uid: "k".into(), stated };
    let mut play = Play::new();
    seen(&mut play, status(None));
    let first = of_kubernetes(&play, "a", 6_000);
    play.happens(Event::Pod(PodChange::Seen(Box::new(first))));
    assert_eq!(told(&mut play), [], "nothing was tried");
    let second = of_kubernetes(&play, "b", 6_000);
    play.happens(Event::Pod(PodChange::Seen(Box::new(second))));
    assert_eq!(told(&mut play), [GroupOutcome::Unschedulable]);
    // What was written is seen, and the gang is decided again.
    let message = "PodGroup default/k: 1 of 2 pods fit (minimum 2)".to_owned();
    let waits = GroupCondition { outcome: GroupOutcome::Unschedulable, message };
    let since = play.now;
    seen(&mut play, status(Some((waits, since))));
    play.wait(SignedDuration::from_mins(6));
    assert_eq!(told(&mut play), []);
    for name in ["a", "b"] {
        let smaller = PodInfo { resource_version: "9".into(), ..of_kubernetes(&play, name, 1_000) };
        play.happens(Event::Pod(PodChange::Seen(Box::new(smaller))));
    }
    for name in ["a", "b"] {
        assert!(play.is_charged(name, Commitment::Assumed), "{}", reason(&play, name));
        play.lock_taken(name);
        play.bind_answered(name, BindOutcome::Bound);
        let bound = play.bound_pod(name, Answer::Succeeded);
        let known = PodInfo { resource_version: "10".into(), ..of_kubernetes(&play, name, 1_000) };
        let bound = PodInfo { claim: bound.claim, holding: bound.holding, ..known };
        play.happens(Event::Pod(PodChange::Seen(Box::new(bound))));
        play.unlocked();
    }
    assert_eq!(told(&mut play), [GroupOutcome::Scheduled]);
    play.wait(SignedDuration::from_mins(6));
    assert_eq!(told(&mut play), []);
}

#[test]
fn a_scheduler_that_is_started_anew_deletes_what_is_left_of_a_group_that_goes_as_a_whole() {
    let begin = |disruption| {
        let mut play = Play::new();
        let preemption = GroupPreemption { disruption, ..GroupPreemption::default() };
        let group = Group { preemption, ..Group::of(Policy::Alone) };
        let group = Object::PodGroup(PodGroupKind::Kubernetes, "default/k".into(), Arc::new(group));
        play.happens(Event::Object(ObjectChange::Seen(group)));
        let of_group = |name: &str| {
            let gang = GangName { api: GroupApi::Kubernetes, group: "default/k".into() };
            let mut pod = bound(&play, name, 4_000, Answer::Succeeded);
            pod.groups = PodGroups::of(Some(Member { gang, task: None }), None);
            pod.importance.group = Some("default/k".into());
            pod.stage = Stage::Running;
            pod
        };
        let mut going = of_group("a");
        going.importance.deletion = Deletion::Preempted;
        going.lifetime.leaving = Some(Box::new(play.now));
        let mut high = pod("high", 9_000, play.now);
        high.importance.priority = 10;
        Arc::make_mut(&mut high.status).nominated = Some(NODE.into());
        let listed = [going, of_group("b"), high];
        play.happens(Event::Pod(PodChange::Listed(listed.into_iter().collect())));
        play
    };
    let mut play = begin(DisruptionMode::All);
    assert!(play.sent().contains(&Sent::Preempt("b")));
    play.wait(SignedDuration::from_mins(1));
    assert!(!play.sent().contains(&Sent::Preempt("b")), "it was asked for");
    assert!(!begin(DisruptionMode::Single).sent().contains(&Sent::Preempt("b")));
}
