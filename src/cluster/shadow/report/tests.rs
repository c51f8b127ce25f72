//! What of many findings is kept and counted.

use super::*;
use crate::scheduling::{
    plugin::{
        Reason,
        devices::{CardReason, DeviceReason},
        node_resources_fit::ResourceReason,
    },
    shadow::comparison::{Comparison, ComparisonReason},
};

fn insufficient(resource: &str) -> Reason {
    let resource = resource.into();
    Reason::NodeResourcesFit(ResourceReason::Insufficient { resource, requested: 2, free: 1, capacity: 4 })
}

/// An unhealthy card, and beside it what takes many words.
fn unhealthy() -> ComparisonReason {
    let card = DeviceReason::Card { reason: CardReason::CardNotHealth, count: 1, of: 1 };
    ComparisonReason::NodeRejected(vec![Reason::Devices(card), insufficient(&"m".repeat(100_000))])
}

fn decided(name: &str, reason: ComparisonReason) -> ShadowFinding {
    ShadowFinding::Decided(Box::new(Comparison {
        pod: PodKey { uid: name.into(), namespace: "default".into(), name: name.into() },
        workload: Some(Workload { kind: "Job".into(), name: "train".into() }),
        reason,
        chosen: ComparedPlacement { node: "n1".into(), shares: Vec::new() },
        own: None,
        rank: None,
        feasible: 0,
    }))
}

fn board() -> Board {
    Board::new(ShadowMetrics::default(), Timestamp::UNIX_EPOCH)
}

#[test]
fn the_last_divergences_are_kept_and_all_are_counted() {
    let board = board();
    for number in 0..1000 {
        board.note(&decided(&format!("p{number}"), unhealthy()), Timestamp::UNIX_EPOCH);
        board.note(&decided("same", ComparisonReason::Equal), Timestamp::UNIX_EPOCH);
        board.note(&decided("unseen", ComparisonReason::WatchGap), Timestamp::UNIX_EPOCH);
    }
    let page = board.page(Timestamp::UNIX_EPOCH);
    assert_eq!((page.divergences.len(), page.divergences[0].name.as_str()), (KEPT, "p999"));
    assert_eq!(page.divergences[KEPT - 1].name, "p744");
    assert!(page.divergences.iter().all(|divergence| divergence.message.len() < 2 * MESSAGE));
    let counts: Vec<_> = page
        .decisions
        .iter()
        .map(|count| (count.outcome.as_str(), count.reason.as_str(), count.count))
        .collect();
    let expected =
        [("same", "", 1000), ("infeasible", "CardNotHealth", 1000), ("not_compared", "watch_gap", 1000)];
    assert_eq!(counts, expected);
}

#[test]
fn reasons_that_users_make_up_are_counted_together_once_there_are_many() {
    let board = board();
    for number in 0..1000 {
        let reason = ComparisonReason::NodeRejected(vec![insufficient(&format!("example.com/{number}"))]);
        board.note(&decided("p", reason), Timestamp::UNIX_EPOCH);
    }
    let decisions = board.page(Timestamp::UNIX_EPOCH).decisions;
    assert_eq!(decisions.len(), PAIRS + 1);
    let other = decisions.iter().find(|count| count.reason == OTHER).unwrap();
    assert_eq!(other.count, 900);
}

#[test]
fn pods_are_counted_by_workload_and_only_so_many_workloads_are_kept() {
    let board = board();
    let at = |second| Timestamp::from_second(second).unwrap();
    for second in 1..=3 {
        board.note(&decided(&format!("p{second}"), unhealthy()), at(second));
        board.note(&decided("other", ComparisonReason::LowerScore { rank: 2, feasible: 2 }), at(second));
    }
    let page = board.page(at(9));
    let [entry] = &page.workloads[..] else { panic!("{:?}", page.workloads) };
    assert_eq!((entry.kind.as_str(), entry.name.as_str()), ("Job", "train"));
    assert_eq!((entry.outcome.as_str(), entry.pods, entry.last), ("infeasible", 3, at(3)));
    assert_eq!((page.since, page.until), (at(0), at(9)));

    for number in 0..2 * WORKLOADS {
        let ShadowFinding::Decided(mut found) = decided("p", ComparisonReason::NodeUnknown) else {
            unreachable!()
        };
        found.pod.name = format!("p{number}").into();
        found.workload = None;
        board.note(&ShadowFinding::Decided(found), at(10));
    }
    let page = board.page(at(11));
    assert_eq!(page.workloads.len(), WORKLOADS);
    assert_eq!(page.further_workloads, u64::try_from(WORKLOADS + 1).unwrap());
    assert!(page.workloads.iter().any(|entry| (entry.kind.as_str(), entry.name.as_str()) == ("Pod", "p0")));
}
