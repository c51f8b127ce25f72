//! Which pods must go, by cards, quotas, budgets and marks; and what is kept for the pod that they go for.

mod claims;
mod groups;

use std::collections::BTreeSet;

use super::*;
use crate::{
    device::{Answer, Dimension},
    object::{LabelSelector, Labels, pod_disruption_budget::PodDisruptionBudget},
    scheduling::{
        Footprint, PodInfo, QuotaInfo, QuotaKey, WaitingPodStatus,
        decide::class::Classes,
        fixtures::{self, PROFILE, allocation, ask, demand, node, share},
        model::{
            label_set::LabelSet,
            pod::{Claim, Placer, PodKey},
        },
        plugin::score::weights::ScoreWeights,
        world::{object::Object, quota::Bound},
    },
};

/// A pod of a priority that holds so much of a card of a node.
fn held(on: (&str, u32), memory: u64, priority: i32) -> Charge {
    let (node, card) = on;
    let share = share(&format!("GPU-{node}-{card}"), memory, 10);
    let labels = LabelSet::from([("app", "web")]);
    Charge {
        footprint: Arc::new(Footprint { namespace: "default".into(), labels, ..Footprint::default() }),
        importance: Importance { priority, ..Importance::default() },
        ..fixtures::charge(node, vec![allocation(PROFILE, share, Answer::Succeeded)])
    }
}

/// Nodes of two cards of 16,000 MiB, and these pods on them.
fn cluster(nodes: &[&str], pods: &[(&str, Charge)]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for name in nodes {
        snapshot.set_node(node(name, 2, 16_000));
    }
    for (pod, charge) in pods {
        let key = PodKey { name: (*pod).into(), ..charge.pod.clone() };
        snapshot.charge((*pod).into(), Charge { pod: key, ..charge.clone() });
    }
    snapshot
}

fn preemptor(memory: u64) -> Demand {
    Demand { priority: 100, ..demand("preemptor", ask(1, memory, 10)) }
}

fn chosen(
    demand: &Demand,
    snapshot: &mut Snapshot,
    rules: Rules,
) -> Result<(String, Vec<String>, usize), Hopeless> {
    let candidate = choose(demand, snapshot, &mut PodCounts::default(), rules)?;
    let victims = candidate.victims.iter().map(|victim| victim.pod.to_string()).collect();
    Ok((candidate.node.to_string(), victims, candidate.violations))
}

fn victims(demand: &Demand, snapshot: &mut Snapshot) -> Vec<String> {
    chosen(demand, snapshot, Rules::default()).unwrap().1
}

#[test]
fn pods_on_cards_that_do_not_help_stay() {
    let pods = [
        ("important", held(("n1", 0), 12_000, 50)),
        ("large", held(("n1", 1), 8_000, 1)),
        ("small", held(("n1", 1), 8_000, 0)),
    ];
    assert_eq!(victims(&preemptor(10_000), &mut cluster(&["n1"], &pods)), ["large", "small"]);
    assert_eq!(victims(&preemptor(8_000), &mut cluster(&["n1"], &pods)), ["small"]);
    let mut snapshot = cluster(&["n1"], &pods);
    let before = snapshot.node("n1").unwrap().clone();
    victims(&preemptor(8_000), &mut snapshot);
    assert!(Arc::ptr_eq(&before, snapshot.node("n1").unwrap()), "a dry run leaves no trace");
}

#[test]
fn nothing_goes_where_it_would_not_help() {
    let pods = [("equal", held(("n1", 0), 12_000, 100)), ("low", held(("n1", 1), 4_000, 0))];
    let hopeless =
        chosen(&preemptor(17_000), &mut cluster(&["n1", "n2"], &pods), Rules::default()).unwrap_err();
    assert_eq!(
        hopeless.to_string(),
        "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, \
         1 Preemption is not helpful for scheduling."
    );
}

#[test]
fn the_node_with_the_least_harm_is_chosen() {
    let filled = |node: &'static str, priority| held((node, 0), 10_000, priority);
    let other = |node: &'static str, priority| held((node, 1), 10_000, priority);
    let pods =
        [("a", filled("n1", 5)), ("a2", other("n1", 99)), ("b", filled("n2", 3)), ("b2", other("n2", 99))];
    let mut snapshot = cluster(&["n1", "n2"], &pods);
    assert_eq!(chosen(&preemptor(9_000), &mut snapshot, Rules::default()).unwrap().0, "n2");
    let selector = LabelSelector {
        match_labels: Labels::from([("app".to_owned(), "web".to_owned())]),
        ..LabelSelector::default()
    };
    let mut budget = PodDisruptionBudget::default();
    budget.metadata.name = "budget".to_owned();
    budget.metadata.namespace = "default".to_owned();
    budget.spec.selector = Some(selector);
    budget.status.disrupted_pods.insert("a".to_owned(), Timestamp::UNIX_EPOCH);
    snapshot.set_object(Object::PodDisruptionBudget(Arc::new(budget)));
    assert_eq!(
        chosen(&preemptor(9_000), &mut snapshot, Rules::default()).unwrap(),
        ("n1".to_owned(), vec!["a".to_owned()], 0),
        "the disruption of `a` has been granted, that of the others violates the budget"
    );
}

#[test]
fn of_equal_pods_the_preemptable_go_first_if_it_is_so_set() {
    let with = |charge: Charge, preemptable, second| Charge {
        importance: Importance {
            preemptable,
            started: Timestamp::from_second(second).ok(),
            ..charge.importance
        },
        ..charge
    };
    let pods = [
        ("marked", with(held(("n1", 0), 10_000, 0), true, 1)),
        ("young", with(held(("n1", 1), 10_000, 0), false, 2)),
    ];
    let with = |preemptable_first| {
        let rules = Rules { preemptable_first, ..Rules::default() };
        chosen(&preemptor(9_000), &mut cluster(&["n1"], &pods), rules).unwrap().1
    };
    assert_eq!((with(true), with(false)), (vec!["marked".to_owned()], vec!["young".to_owned()]));
}

#[test]
fn pods_of_other_schedulers_stay_if_it_is_so_set() {
    let foreign = Charge { placer: Placer::Another, ..held(("n1", 0), 12_000, 0) };
    let pods = [("foreign", foreign), ("own", held(("n1", 1), 12_000, 5))];
    let with = |other_schedulers| {
        let rules = Rules { other_schedulers, ..Rules::default() };
        chosen(&preemptor(9_000), &mut cluster(&["n1"], &pods), rules).unwrap().1
    };
    assert_eq!((with(true), with(false)), (vec!["foreign".to_owned()], vec!["own".to_owned()]));
}

#[test]
fn room_in_a_quota_is_made_too() {
    let elsewhere = Charge { pod: fixtures::key("other/p"), ..held(("n1", 1), 4_000, 0) };
    let mut snapshot = cluster(&["n1"], &[("own", held(("n1", 0), 4_000, 0)), ("elsewhere", elsewhere)]);
    let bound = Bound {
        profile: PROFILE.into(),
        dimension: Dimension::Memory,
        key: "memory".into(),
        hard: 10_000,
        unit: 1,
    };
    let key = QuotaKey { namespace: "default".into(), name: "quota".into() };
    snapshot.set_quota(QuotaInfo { key, bounds: vec![bound] });
    assert_eq!(victims(&preemptor(8_000), &mut snapshot), ["own"]);
}

fn pod(demand: &Demand) -> PodInfo {
    PodInfo {
        importance: Importance { priority: demand.priority, ..Importance::default() },
        footprint: demand.footprint.clone(),
        ..fixtures::pod(&demand.uid, Claim::Place(demand.ask.clone()))
    }
}

/// Where another pod goes, to which card.
fn goes_to(other: &Demand, snapshot: &Snapshot) -> Option<String> {
    let decided = Classes::new(ScoreWeights::default()).decide(other, snapshot, |_| 0).ok()?;
    decided.allocations[0].assignment.shares().next().map(|share| share.card.to_string())
}

#[test]
fn the_cards_that_become_free_are_kept_for_the_preemptor() {
    let pods = [("low", held(("n1", 0), 12_000, 0)), ("high", held(("n1", 1), 13_000, 100))];
    let mut snapshot = cluster(&["n1"], &pods);
    let preemptor = preemptor(16_000);
    let other = |priority, memory| Demand { priority, ..demand("other", ask(1, memory, 10)) };
    assert_eq!(goes_to(&other(0, 2_000), &snapshot).as_deref(), Some("GPU-n1-0"), "there is more room");
    snapshot.keep_for(&pod(&preemptor), &"n1".into(), BTreeSet::from(["low".into()]), None);
    assert_eq!(goes_to(&other(0, 2_000), &snapshot).as_deref(), Some("GPU-n1-1"));
    assert_eq!(goes_to(&other(0, 3_500), &snapshot), None, "the other card has 3,000 MiB");
    assert_eq!(goes_to(&other(101, 2_000), &snapshot).as_deref(), Some("GPU-n1-0"), "it comes before");
    // A restart knows the victim by its deletion, and the nomination by the pod's status.
    let mut snapshot = cluster(&["n1"], &pods);
    let mut leaving = held(("n1", 0), 12_000, 0);
    leaving.importance.deletion = Deletion::Preempted;
    snapshot.charge("low".into(), leaving);
    snapshot.nominate(&PodInfo {
        status: Arc::new(WaitingPodStatus { nominated: Some("n1".into()), ..WaitingPodStatus::default() }),
        ..pod(&preemptor)
    });
    assert_eq!(goes_to(&other(0, 2_000), &snapshot).as_deref(), Some("GPU-n1-1"));
    snapshot.release(&"low".into());
    assert_eq!(goes_to(&other(0, 2_000), &snapshot).as_deref(), Some("GPU-n1-1"));
    assert_eq!(goes_to(&preemptor, &snapshot).as_deref(), Some("GPU-n1-0"));
    snapshot.end_nomination(&preemptor.uid);
    assert_eq!(goes_to(&other(0, 12_000), &snapshot).as_deref(), Some("GPU-n1-0"));
}

/// If the kept cards of one pod moved with the victims of another, the other would fit until it was placed, and not any more then.
#[test]
fn the_cards_of_a_pod_do_not_move_with_the_victims_of_another() {
    for full in [0, 1] {
        let mut snapshot = cluster(&["n1"], &[("low", held(("n1", full), 12_000, 0))]);
        let first = Demand { uid: "first".into(), ..preemptor(10_000) };
        snapshot.nominate(&PodInfo {
            status: Arc::new(WaitingPodStatus {
                nominated: Some("n1".into()),
                ..WaitingPodStatus::default()
            }),
            ..pod(&first)
        });
        let second = Demand { uid: "second".into(), ..preemptor(10_000) };
        assert_eq!(goes_to(&second, &snapshot), None, "the other card is kept");
        snapshot.keep_for(&pod(&second), &"n1".into(), BTreeSet::from(["low".into()]), None);
        assert_eq!(goes_to(&second, &snapshot), None, "its victim is still there");
        snapshot.release(&"low".into());
        assert!(goes_to(&second, &snapshot).is_some());
    }
}

#[test]
fn a_pod_preempts_once_and_if_it_may() {
    let mut snapshot = cluster(&["n1"], &[("low", held(("n1", 0), 12_000, 0))]);
    let preemptor = preemptor(16_000);
    assert!(is_eligible(&preemptor, &snapshot));
    let never = Demand { preemption_policy: PreemptionPolicy::Never, ..preemptor.clone() };
    assert!(!is_eligible(&never, &snapshot));
    snapshot.nominate(&PodInfo {
        status: Arc::new(WaitingPodStatus { nominated: Some("n1".into()), ..WaitingPodStatus::default() }),
        ..pod(&preemptor)
    });
    let mut leaving = held(("n1", 0), 12_000, 0);
    leaving.importance.deletion = Deletion::Requested;
    snapshot.charge("low".into(), leaving.clone());
    assert!(is_eligible(&preemptor, &snapshot), "it is not deleted for the pod");
    leaving.importance.deletion = Deletion::Preempted;
    snapshot.charge("low".into(), leaving);
    assert!(!is_eligible(&preemptor, &snapshot), "it goes already");
    snapshot.end_nomination(&preemptor.uid);
    let stated = Demand { nominated: Some("n1".into()), ..preemptor.clone() };
    assert!(!is_eligible(&stated, &snapshot), "its status states the node");
    snapshot.nominate(&PodInfo {
        status: Arc::new(WaitingPodStatus { nominated: Some("n1".into()), ..WaitingPodStatus::default() }),
        ..pod(&preemptor)
    });
    let mut cordoned = node("n1", 2, 16_000);
    cordoned.cordoned = true;
    snapshot.set_node(cordoned);
    assert!(is_eligible(&preemptor, &snapshot), "the node is lost for the pod");
}
