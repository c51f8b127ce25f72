//! Gangs of which some pods are bound and others are not.

use super::*;

/// Of three pods of a gang two are bound, and another scheduler's pod has taken the place of `b`.
fn half() -> Play {
    let mut play = of(3);
    for name in ["a", "b", "c"] {
        create(&mut play, name, 3_000);
    }
    carry_through(&mut play, "a", 3_000);
    play.foreign("other", 3_000);
    play.lock_taken("b");
    play.unlocked();
    carry_through(&mut play, "c", 3_000);
    assert!(play.is_charged("a", Commitment::Bound) && play.is_charged("c", Commitment::Bound));
    play.sent();
    play
}

#[test]
fn a_gang_that_is_bound_in_part_is_completed_before_all_other_pods() {
    let mut play = half();
    assert!(!play.is_charged("b", Commitment::Assumed));
    let mut urgent = pod("urgent", 3_000, play.now);
    urgent.importance.priority = 50;
    urgent.importance.preemption_policy = PreemptionPolicy::Never;
    play.happens(Event::Pod(PodChange::Seen(Box::new(urgent))));
    play.gone("other");
    play.wait(seconds(15));
    assert!(play.is_charged("b", Commitment::Assumed) || play.is_charged("b", Commitment::Bound));
    assert!(!play.is_charged("urgent", Commitment::Assumed));
}

#[test]
fn a_gang_that_is_not_completed_in_time_is_rolled_back_and_decided_anew_once_its_pods_are_gone() {
    let mut play = half();
    play.wait(SignedDuration::from_mins(11));
    let sent = play.sent();
    assert!(sent.contains(&Sent::RollBack("a")) && sent.contains(&Sent::RollBack("c")), "{sent:?}");
    assert!(reason(&play, "b").contains("its bound pods are being evicted"), "{}", reason(&play, "b"));
    for name in ["a", "c"] {
        play.gone(name);
    }
    play.gone("other");
    for name in ["d", "e"] {
        create(&mut play, name, 3_000);
    }
    play.wait(seconds(15));
    for name in ["b", "d", "e"] {
        assert!(play.is_charged(name, Commitment::Assumed), "{name}: {}", reason(&play, name));
    }
}

#[test]
fn pods_that_wait_while_their_gang_is_rolled_back_wait_rightly() {
    let mut play = half();
    play.wait(SignedDuration::from_mins(9));
    create(&mut play, "large", 9_000);
    assert!(reason(&play, "large").contains("this one does not"), "{}", reason(&play, "large"));
    play.gone("other");
    create(&mut play, "other", 9_900);
    play.wait(SignedDuration::from_mins(4));
    let sent = play.sent();
    assert!(sent.contains(&Sent::RollBack("a")) && !sent.contains(&Sent::Drift), "{sent:?}");
}

#[test]
fn a_gang_that_was_whole_is_not_rolled_back_when_one_of_its_pods_ends() {
    let mut play = of(2);
    for name in ["a", "b"] {
        create(&mut play, name, 3_000);
    }
    carry_through(&mut play, "a", 3_000);
    carry_through(&mut play, "b", 3_000);
    play.ended("b");
    play.foreign("other", 6_000);
    create(&mut play, "c", 3_000);
    play.wait(SignedDuration::from_mins(30));
    let sent = play.sent();
    assert!(!sent.iter().any(|sent| matches!(sent, Sent::RollBack(_))), "{sent:?}");
    assert!(reason(&play, "c").starts_with("PodGroup default/g: 1 of 2 pods fit"), "{}", reason(&play, "c"));
}

#[test]
fn after_a_restart_pods_that_have_started_are_not_rolled_back() {
    for (stage, expected) in [(Stage::Running, false), (Stage::Pending, true)] {
        let mut before = of(2);
        for name in ["a", "b"] {
            create(&mut before, name, 3_000);
        }
        carry_through(&mut before, "a", 3_000);
        let bound = PodInfo { stage, ..bound(&before, "a", 3_000, Answer::Succeeded) };
        let mut play = Play::new();
        play.happens(Event::Object(ObjectChange::Seen(group(least(2)))));
        play.foreign("other", 6_000);
        play.happens(Event::Pod(PodChange::Seen(Box::new(bound))));
        create(&mut play, "b", 3_000);
        play.wait(SignedDuration::from_mins(11));
        let sent = play.sent();
        assert_eq!(sent.contains(&Sent::RollBack("a")), expected, "{stage:?}: {sent:?}");
    }
}

#[test]
fn after_a_restart_a_gang_that_is_bound_in_part_comes_first_too() {
    for stage in [Stage::Pending, Stage::Running] {
        completed_first(stage);
    }
}

/// A gang of which a bound pod is at this stage when a scheduler begins.
fn completed_first(stage: Stage) {
    let mut play = Play::before_lists();
    let held = play.foreign_pod("a", 6_000);
    let bound = PodInfo { holding: held.holding, claim: held.claim, stage, ..member(&play, "a", 6_000) };
    let mut urgent = pod("urgent", 4_000, play.now);
    urgent.importance.priority = 50;
    urgent.importance.preemption_policy = PreemptionPolicy::Never;
    let waiting = member(&play, "b", 4_000);
    for pod in [urgent, waiting, bound] {
        play.happens(Event::Pod(PodChange::Seen(Box::new(pod))));
    }
    for kind in Kind::POD_GROUPS {
        let groups =
            if *kind == Kind::PodGroup(PodGroupKind::Volcano) { vec![group(least(2))] } else { Vec::new() };
        play.happens(Event::Object(ObjectChange::Listed(*kind, groups)));
    }
    assert!(play.is_charged("b", Commitment::Assumed), "{stage:?}: {}", reason(&play, "b"));
    assert!(!play.is_charged("urgent", Commitment::Assumed), "{stage:?}");
}

#[test]
fn after_a_restart_a_gang_that_may_have_been_whole_comes_first_for_so_long_as_one_has_time() {
    let mut play = Play::new();
    play.happens(Event::Object(ObjectChange::Seen(group(least(2)))));
    let held = play.foreign_pod("a", 6_000);
    let started = PodInfo { stage: Stage::Running, ..member(&play, "a", 6_000) };
    play.happens(Event::Pod(PodChange::Seen(Box::new(PodInfo {
        holding: held.holding,
        claim: held.claim,
        ..started
    }))));
    play.foreign("other", 4_000);
    create(&mut play, "b", 4_000);
    play.wait(SignedDuration::from_mins(11));
    let mut urgent = pod("urgent", 4_000, play.now);
    urgent.importance.priority = 50;
    play.happens(Event::Pod(PodChange::Seen(Box::new(urgent))));
    play.gone("other");
    play.wait(seconds(15));
    assert!(play.is_charged("urgent", Commitment::Assumed), "{}", reason(&play, "urgent"));
    assert!(!play.is_charged("b", Commitment::Assumed));
}
