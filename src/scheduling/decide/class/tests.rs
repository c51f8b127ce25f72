//! What classes keep: a pod that waits loses nothing, whatever is hinted at and however many classes come and go.

use super::*;
use crate::scheduling::decide::outlook::tests;
use crate::scheduling::fixtures;
use crate::scheduling::plugin::contract::Reach;

fn ask(memory: u64) -> Arc<Ask> {
    Arc::new(fixtures::ask(1, memory, 0))
}

/// One node with a card of 8000 MiB.
fn cluster() -> Snapshot {
    let mut snapshot = Snapshot::default();
    snapshot.set_node(fixtures::node("a", 1, 8_000));
    snapshot
}

fn decide(classes: &mut Classes, ask: &Arc<Ask>, snapshot: &Snapshot) -> Result<NodeName, FitError> {
    let demand = fixtures::demand("pod", Ask::clone(ask));
    classes.decide(&demand, snapshot, |_| 0).map(|decision| decision.node)
}

fn knows(classes: &Classes, ask: &Arc<Ask>) -> Option<ClassOrigin> {
    classes.by_ask.get(ask).filter(|class| class.verdicts.slots() > 0).map(|class| class.known)
}

#[test]
fn a_flood_of_hints_pushes_out_hints_only() {
    let (mut classes, snapshot) = (Classes::default(), cluster());
    let (waits, decided) = (ask(9_000), ask(1));
    decide(&mut classes, &waits, &snapshot).unwrap_err();
    classes.wait(&waits, "pod".into(), Reach::Node);
    decide(&mut classes, &decided, &snapshot).unwrap();
    for memory in 10_000..10_000 + 3 * REMEMBERED as u64 {
        classes.warm(&ask(memory), &snapshot);
    }
    assert_eq!(classes.by_ask.len(), 2 + HINTED);
    assert!(classes.holds(&waits, &"pod".into()));
    assert_eq!(knows(&classes, &decided), Some(ClassOrigin::Decided));
    let mut roomier = tests::node("a", 1, 9_000);
    roomier.generation = 99;
    assert_eq!(
        classes.wake(0, &roomier, &BTreeSet::new(), (HeldChange::Less, jiff::Timestamp::UNIX_EPOCH)),
        ["pod".into()]
    );
}

#[test]
fn a_class_that_was_hinted_at_is_as_any_other_once_a_pod_of_it_came() {
    let (mut classes, snapshot) = (Classes::default(), cluster());
    let (hinted, again) = (ask(1), ask(2));
    for ask in [&hinted, &again] {
        classes.warm(ask, &snapshot);
    }
    decide(&mut classes, &hinted, &snapshot).unwrap();
    classes.warm(&hinted, &snapshot);
    assert_eq!(classes.hinted.iter().collect::<Vec<_>>(), [&again]);
    for memory in 10..10 + HINTED as u64 {
        classes.warm(&ask(memory), &snapshot);
    }
    assert_eq!((knows(&classes, &hinted), knows(&classes, &again)), (Some(ClassOrigin::Decided), None));
}

#[test]
fn many_classes_push_out_those_without_waiting_pods_and_no_hints() {
    let (mut classes, snapshot) = (Classes::default(), cluster());
    let (waits, hinted) = (ask(9_000), ask(1));
    decide(&mut classes, &waits, &snapshot).unwrap_err();
    classes.wait(&waits, "pod".into(), Reach::Node);
    classes.warm(&hinted, &snapshot);
    for memory in 10_000..10_001 + REMEMBERED as u64 {
        decide(&mut classes, &ask(memory), &snapshot).unwrap_err();
    }
    assert_eq!(classes.by_ask.len(), REMEMBERED + 2);
    assert!(classes.holds(&waits, &"pod".into()));
    assert_eq!(knows(&classes, &hinted), Some(ClassOrigin::Hinted));
}

#[test]
fn verdicts_are_kept_while_there_is_memory_for_them() {
    let (mut classes, snapshot) = (Classes::default(), cluster());
    let (waits, hinted) = (ask(9_000), [ask(1), ask(2)]);
    decide(&mut classes, &waits, &snapshot).unwrap_err();
    classes.wait(&waits, "pod".into(), Reach::Node);
    let each = classes.memory.bytes;
    assert!(each > 0);
    classes.memory.most = 4 * each;
    for ask in &hinted {
        classes.warm(ask, &snapshot);
    }
    for memory in 10_000..10_002 {
        decide(&mut classes, &ask(memory), &snapshot).unwrap_err();
    }
    assert_eq!((knows(&classes, &hinted[0]), knows(&classes, &hinted[1])), (None, Some(ClassOrigin::Hinted)));
    for memory in 10_002..10_100 {
        decide(&mut classes, &ask(memory), &snapshot).unwrap_err();
        assert_eq!(
            knows(&classes, &ask(memory)),
            Some(ClassOrigin::Decided),
            "that of the pod itself is kept"
        );
    }
    assert_eq!((classes.hinted.len(), classes.judged.len(), classes.memory.bytes), (0, 4, 4 * each));
    assert!(classes.holds(&waits, &"pod".into()) && knows(&classes, &waits).is_none());
    classes.warm(&hinted[0], &snapshot);
    assert_eq!(
        (classes.judged.len(), classes.memory.bytes),
        (4, 4 * each),
        "a hint pushes out no other class"
    );
    classes.memory.most = 0;
    decide(&mut classes, &waits, &snapshot).unwrap_err();
    assert_eq!((classes.judged.len(), classes.memory.bytes), (1, each));
}

#[test]
fn any_number_of_classes_with_waiting_pods_keep_the_verdicts_of_so_many_and_all_are_woken() {
    let (mut classes, snapshot) = (Classes::default(), cluster());
    let asks: Vec<_> = (0..3 * REMEMBERED as u64).map(|at| ask(9_000 + at)).collect();
    for (at, ask) in asks.iter().enumerate() {
        decide(&mut classes, ask, &snapshot).unwrap_err();
        classes.wait(ask, format!("{at}").as_str().into(), Reach::Node);
    }
    let verdicts =
        |classes: &Classes| classes.by_ask.values().map(|class| class.verdicts.slots()).sum::<usize>();
    assert_eq!((verdicts(&classes), classes.waiting()), (REMEMBERED, asks.len()));
    let mut roomier = tests::node("a", 1, 20_000);
    roomier.generation = 99;
    let woken = classes.wake(0, &roomier, &BTreeSet::new(), (HeldChange::Less, jiff::Timestamp::UNIX_EPOCH));
    assert_eq!(woken.len(), asks.len(), "those without verdicts too");
    for (at, ask) in asks.iter().enumerate() {
        classes.leave(ask, &format!("{at}").as_str().into());
    }
    assert_eq!((classes.by_ask.len(), classes.judged.len()), (REMEMBERED, REMEMBERED));
    decide(&mut classes, &asks[0], &snapshot).unwrap_err();
    decide(&mut classes, &asks[0], &snapshot).unwrap_err();
    assert_eq!((classes.by_ask.len(), classes.judged.len()), (REMEMBERED, REMEMBERED));
}
