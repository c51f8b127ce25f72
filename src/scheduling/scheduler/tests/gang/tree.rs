//! Trees of groups: CompositePodGroups, whose PodGroups are placed together.

use super::*;

fn composite(name: &str, parent: Option<&str>, min: usize) -> Object {
    object(PodGroupKind::Composite, name, parent, least(min))
}

fn leaf(name: &str, parent: &str, min: usize) -> Object {
    object(PodGroupKind::Kubernetes, name, Some(parent), least(min))
}

fn object(kind: PodGroupKind, name: &str, parent: Option<&str>, gang: Gang) -> Object {
    let parent = parent.map(|parent| format!("default/{parent}").into());
    let status = GroupStatus { uid: name.into(), stated: None };
    let group = Group { parent, status, ..Group::of(Policy::Gang(Arc::new(gang))) };
    Object::PodGroup(kind, format!("default/{name}").into(), Arc::new(group))
}

fn racked(object: Object, key: &str) -> Object {
    let Object::PodGroup(kind, name, group) = object else { panic!("{object:?}") };
    let Policy::Gang(gang) = &group.policy else { panic!("{group:?}") };
    let topology = Some(SharedTopology { key: key.into(), strictness: Strictness::Required });
    let policy = Policy::Gang(Arc::new(Gang { topology, ..(**gang).clone() }));
    Object::PodGroup(kind, name, Arc::new(Group { policy, ..(*group).clone() }))
}

fn seen(play: &mut Play, objects: impl IntoIterator<Item = Object>) {
    for object in objects {
        play.happens(Event::Object(ObjectChange::Seen(object)));
    }
}

fn pod_of(play: &Play, group: &str, name: &str, memory: u64) -> PodInfo {
    let full: Arc<str> = format!("default/{group}").into();
    let gang = GangName { api: GroupApi::Kubernetes, group: full.clone() };
    let mut pod = pod(name, memory, play.now);
    pod.groups = PodGroups::of(Some(Member { gang, task: None }), None);
    pod.importance.group = Some(full);
    pod
}

/// A pod of this PodGroup that asks for so many MiB of a card that has 10,000.
fn create_in(play: &mut Play, group: &str, name: &str, memory: u64) {
    let pod = pod_of(play, group, name, memory);
    play.happens(Event::Pod(PodChange::Seen(Box::new(pod))));
}

fn carry(play: &mut Play, group: &str, name: &str, memory: u64) {
    play.lock_taken(name);
    play.bind_answered(name, BindOutcome::Bound);
    let seen = play.bound_pod(name, Answer::Succeeded);
    let bound = PodInfo { claim: seen.claim, holding: seen.holding, ..pod_of(play, group, name, memory) };
    play.happens(Event::Pod(PodChange::Seen(Box::new(bound))));
    play.unlocked();
}

fn is_placed(play: &Play, name: &str) -> bool {
    play.is_charged(name, Commitment::Assumed) || play.is_charged(name, Commitment::Bound)
}

/// `llm` of at least so many of its groups: `prefill` with one pod, and `decode` with two.
fn llm(min: usize) -> Play {
    let mut play = Play::new();
    seen(&mut play, [composite("llm", None, min), leaf("prefill", "llm", 1), leaf("decode", "llm", 2)]);
    play
}

#[test]
fn no_pod_of_a_tree_is_placed_before_as_many_groups_as_it_asks_for_have_their_pods() {
    let mut play = llm(2);
    create_in(&mut play, "prefill", "p", 1_000);
    create_in(&mut play, "decode", "d0", 1_000);
    let waits = "CompositePodGroup default/llm: waiting for more pods: 1 of 2 groups have enough (minimum 2 groups); \
        PodGroup default/decode: there are 1 (minimum 2)";
    assert_eq!((reason(&play, "p"), reason(&play, "d0")), (waits.to_owned(), waits.to_owned()));
    assert_eq!(play.scheduler.snapshot().ledger().all().count(), 0);
    create_in(&mut play, "decode", "d1", 1_000);
    for name in ["p", "d0", "d1"] {
        assert!(is_placed(&play, name), "{name}: {}", reason(&play, name));
    }
}

#[test]
fn of_two_groups_one_is_enough_where_the_tree_asks_for_one_and_the_other_comes_as_a_whole() {
    let mut play = llm(1);
    create_in(&mut play, "decode", "d0", 1_000);
    assert!(reason(&play, "d0").contains("0 of 2 groups have enough"), "{}", reason(&play, "d0"));
    create_in(&mut play, "prefill", "p", 1_000);
    assert!(is_placed(&play, "p") && !is_placed(&play, "d0"));
    assert_eq!(
        reason(&play, "d0"),
        "PodGroup default/decode: waiting for more pods: there are 1 (minimum 2)",
        "what its own group lacks"
    );
    create_in(&mut play, "decode", "d1", 9_500);
    assert!(!is_placed(&play, "d0") && !is_placed(&play, "d1"), "beside p there is no room for both");
    let waits = reason(&play, "d0");
    assert!(
        waits.starts_with("PodGroup default/decode: 1 of 2 pods fit (minimum 2); d1 does not: "),
        "{waits}"
    );
    create_in(&mut play, "decode", "d2", 1_000);
    play.wait(seconds(15));
    assert!(is_placed(&play, "d0") && is_placed(&play, "d2"), "{}", reason(&play, "d2"));
    assert!(!is_placed(&play, "d1"));
}

#[test]
fn a_tree_that_finds_no_room_holds_nothing_and_says_how_many_groups_fit() {
    let mut play = llm(2);
    create_in(&mut play, "prefill", "p", 4_000);
    create_in(&mut play, "decode", "d0", 4_000);
    play.sent();
    create_in(&mut play, "decode", "d1", 4_000);
    assert_eq!(play.scheduler.snapshot().ledger().all().count(), 0);
    let waits = reason(&play, "p");
    let start = "CompositePodGroup default/llm: 1 of 2 groups fit (minimum 2 groups); d1 does not: 0/1 nodes are available: ";
    assert!(waits.starts_with(start), "{waits}");
    let outcomes = play.sent().into_iter().filter(|sent| matches!(sent, Sent::Group(_))).collect::<Vec<_>>();
    let refused = Sent::Group(GroupOutcome::Unschedulable);
    assert_eq!(outcomes, [refused, refused], "each PodGroup of the tree says it");
}

#[test]
fn the_status_of_each_group_says_that_it_is_placed_once_the_whole_tree_is() {
    let mut play = llm(2);
    for (group, name) in [("prefill", "p"), ("decode", "d0"), ("decode", "d1")] {
        create_in(&mut play, group, name, 1_000);
    }
    let told =
        |play: &mut Play| play.sent().into_iter().filter(|sent| matches!(sent, Sent::Group(_))).count();
    told(&mut play);
    carry(&mut play, "prefill", "p", 1_000);
    carry(&mut play, "decode", "d0", 1_000);
    assert_eq!(told(&mut play), 0, "prefill is bound, but the tree is not whole");
    carry(&mut play, "decode", "d1", 1_000);
    assert_eq!(told(&mut play), 2);
}

#[test]
fn pods_wait_for_the_groups_above_them_and_a_circle_concerns_those_below_it_alone() {
    let mut play = Play::new();
    seen(&mut play, [leaf("prefill", "llm", 1), leaf("lost", "x", 1)]);
    create_in(&mut play, "prefill", "p", 1_000);
    create_in(&mut play, "lost", "l", 1_000);
    assert_eq!(
        reason(&play, "p"),
        "CompositePodGroup default/llm not found, which spec.parentCompositePodGroupName of PodGroup default/prefill names"
    );
    seen(&mut play, [composite("x", Some("y"), 1), composite("y", Some("x"), 1)]);
    assert_eq!(
        reason(&play, "l"),
        "PodGroup default/lost: spec.parentCompositePodGroupName is x, and the groups above that form a circle"
    );
    seen(&mut play, [composite("llm", Some("all"), 1)]);
    assert_eq!(
        reason(&play, "p"),
        "CompositePodGroup default/all not found, which spec.parentCompositePodGroupName of CompositePodGroup default/llm names"
    );
    seen(&mut play, [composite("all", None, 1)]);
    assert!(is_placed(&play, "p") && !is_placed(&play, "l"), "{}", reason(&play, "p"));
}

#[test]
fn a_tree_that_loses_a_place_before_a_binding_gives_up_all_and_is_placed_again() {
    let mut play = llm(2);
    for (group, name) in [("prefill", "p"), ("decode", "d0"), ("decode", "d1")] {
        create_in(&mut play, group, name, 3_000);
    }
    play.lock_taken("p");
    play.bind_answered("p", BindOutcome::Refused("no".to_owned()));
    for name in ["p", "d0", "d1"] {
        assert!(!is_placed(&play, name), "{name}: none is bound, so the tree holds nothing");
    }
    play.unlocked();
    play.wait(seconds(15));
    for name in ["p", "d0", "d1"] {
        assert!(is_placed(&play, name), "{name}: {}", reason(&play, name));
    }
}

#[test]
fn a_tree_that_is_not_completed_in_time_is_rolled_back_as_a_whole() {
    let mut play = llm(2);
    for (group, name) in [("prefill", "p"), ("decode", "d0"), ("decode", "d1")] {
        create_in(&mut play, group, name, 3_000);
    }
    carry(&mut play, "prefill", "p", 3_000);
    play.foreign("other", 4_000);
    play.lock_taken("d0");
    play.unlocked();
    play.sent();
    play.wait(SignedDuration::from_secs(605));
    let sent = play.sent();
    assert_eq!(sent.iter().filter(|sent| **sent == Sent::RollBack("p")).count(), 1, "{sent:?}");
    assert!(reason(&play, "d0").contains("its bound pods are being evicted"), "{}", reason(&play, "d0"));
    play.gone("p");
    play.gone("other");
    create_in(&mut play, "prefill", "p2", 3_000);
    play.wait(seconds(15));
    for name in ["p2", "d0", "d1"] {
        assert!(is_placed(&play, name), "{name}: {}", reason(&play, name));
    }
}

#[test]
fn a_group_that_is_bound_in_part_goes_once_with_the_tree_that_is_not_complete_either() {
    let mut play = llm(2);
    for (group, name) in [("decode", "d0"), ("decode", "d1"), ("prefill", "p")] {
        create_in(&mut play, group, name, 3_000);
    }
    carry(&mut play, "decode", "d0", 3_000);
    play.foreign("other", 4_000);
    play.lock_taken("d1");
    play.unlocked();
    play.sent();
    play.wait(SignedDuration::from_secs(605));
    let sent = play.sent();
    assert_eq!(sent.iter().filter(|sent| **sent == Sent::RollBack("d0")).count(), 1, "{sent:?}");
    assert!(!sent.contains(&Sent::RollBack("p")), "it is not bound: {sent:?}");
}

#[test]
fn a_group_beyond_the_minimum_that_loses_a_place_before_a_binding_gives_up_the_others() {
    let mut play = llm(1);
    create_in(&mut play, "prefill", "p", 2_000);
    carry(&mut play, "prefill", "p", 2_000);
    create_in(&mut play, "decode", "d0", 3_000);
    create_in(&mut play, "decode", "d1", 3_000);
    assert!(is_placed(&play, "d0") && is_placed(&play, "d1"));
    play.lock_taken("d0");
    play.bind_answered("d0", BindOutcome::Refused("no".to_owned()));
    assert!(!is_placed(&play, "d1"), "its group holds nothing");
    assert!(is_placed(&play, "p"));
    play.unlocked();
    play.wait(seconds(15));
    assert!(is_placed(&play, "d0") && is_placed(&play, "d1"), "{}", reason(&play, "d0"));
}

#[test]
fn a_group_beyond_the_minimum_is_rolled_back_by_itself() {
    let mut play = llm(1);
    create_in(&mut play, "prefill", "p", 2_000);
    carry(&mut play, "prefill", "p", 2_000);
    create_in(&mut play, "decode", "d0", 3_000);
    create_in(&mut play, "decode", "d1", 3_000);
    carry(&mut play, "decode", "d0", 3_000);
    play.foreign("other", 4_000);
    play.lock_taken("d1");
    play.unlocked();
    play.sent();
    play.wait(SignedDuration::from_mins(11));
    let sent = play.sent();
    assert!(sent.contains(&Sent::RollBack("d0")) && !sent.contains(&Sent::RollBack("p")), "{sent:?}");
}

#[test]
fn each_level_has_its_own_label() {
    let mut play = Play::new();
    play.racked("left");
    play.beside("n2", "right");
    seen(
        &mut play,
        [
            composite("llm", None, 2),
            racked(leaf("prefill", "llm", 2), "rack"),
            racked(leaf("decode", "llm", 2), "rack"),
        ],
    );
    for (group, name) in [("prefill", "p0"), ("prefill", "p1"), ("decode", "d0"), ("decode", "d1")] {
        create_in(&mut play, group, name, 5_000);
    }
    let node =
        |name: &str| play.scheduler.snapshot().ledger().get(&name.into()).map(|charge| charge.node.clone());
    assert!(node("p0").is_some() && node("p0") == node("p1"), "{}", reason(&play, "p0"));
    assert!(node("d0").is_some() && node("d0") == node("d1") && node("d0") != node("p0"));
    let mut play = Play::new();
    play.racked("left");
    play.beside("n2", "right");
    let root = racked(composite("llm", None, 2), "rack");
    seen(&mut play, [root, leaf("prefill", "llm", 2), leaf("decode", "llm", 2)]);
    for (group, name) in [("prefill", "p0"), ("prefill", "p1"), ("decode", "d0"), ("decode", "d1")] {
        create_in(&mut play, group, name, 5_000);
    }
    let waits = reason(&play, "p0");
    assert!(
        waits.starts_with(
            "CompositePodGroup default/llm: 1 of 2 groups fit on nodes with one value of rack, at best left"
        ),
        "{waits}"
    );
}

#[test]
fn the_pods_of_a_tree_have_the_priority_of_its_root() {
    let mut play = Play::new();
    let Object::PodGroup(kind, name, group) = composite("llm", None, 1) else { panic!() };
    let preemption = GroupPreemption { priority: Some(5), ..GroupPreemption::default() };
    let root = Object::PodGroup(kind, name, Arc::new(Group { preemption, ..(*group).clone() }));
    seen(&mut play, [root, leaf("prefill", "llm", 1)]);
    create_in(&mut play, "prefill", "p", 1_000);
    assert_eq!(
        reason(&play, "p"),
        "CompositePodGroup default/llm: spec.priority is 5, but that of this pod is 0; both must be equal"
    );
}

#[test]
fn nothing_is_remembered_of_a_tree_whose_pods_are_gone() {
    let mut play = llm(2);
    for (group, name) in [("prefill", "p"), ("decode", "d0"), ("decode", "d1")] {
        create_in(&mut play, group, name, 1_000);
    }
    for (group, name) in [("prefill", "p"), ("decode", "d0"), ("decode", "d1")] {
        carry(&mut play, group, name, 1_000);
    }
    play.happens(Event::Object(ObjectChange::Gone(
        Kind::PodGroup(PodGroupKind::Composite),
        "default/llm".into(),
    )));
    for name in ["p", "d0", "d1"] {
        play.gone(name);
    }
    let gangs = format!("{:?}", play.scheduler.binding.cycle.gangs);
    assert!(!gangs.contains("default/"), "{gangs}");
}

#[test]
fn what_is_left_below_a_group_that_goes_as_a_whole_is_deleted_by_a_scheduler_that_is_started_anew() {
    let begin = |disruption| {
        let mut play = Play::new();
        let Object::PodGroup(kind, name, group) = composite("llm", None, 1) else { panic!() };
        let preemption = GroupPreemption { disruption, ..GroupPreemption::default() };
        let root = Object::PodGroup(kind, name, Arc::new(Group { preemption, ..(*group).clone() }));
        seen(&mut play, [root, leaf("prefill", "llm", 1), leaf("decode", "llm", 1)]);
        let bound_in = |group: &str, name: &str| {
            let bound = play.bound_pod(name, Answer::Succeeded);
            PodInfo { claim: bound.claim, holding: bound.holding, ..pod_of(&play, group, name, 1_000) }
        };
        let mut going = bound_in("prefill", "p");
        going.importance.deletion = Deletion::Preempted;
        going.lifetime.leaving = Some(Box::new(play.now));
        let mut high = pod("high", 9_900, play.now);
        high.importance.priority = 10;
        Arc::make_mut(&mut high.status).nominated = Some(NODE.into());
        let listed = [going, bound_in("decode", "d"), high];
        play.happens(Event::Pod(PodChange::Listed(listed.into_iter().collect())));
        play.sent()
    };
    assert!(begin(DisruptionMode::All).contains(&Sent::Preempt("d")));
    assert!(!begin(DisruptionMode::Single).contains(&Sent::Preempt("d")));
}
