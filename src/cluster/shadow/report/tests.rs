//! What of many findings is kept and counted.

use super::*;
use crate::scheduling::shadow::comparison::Comparison;

fn decided(name: &str, outcome: Outcome, reason: &str) -> Finding {
    Finding::Decided(Box::new(Comparison {
        pod: PodKey { uid: name.into(), namespace: "default".into(), name: name.into() },
        outcome,
        reason: reason.to_owned(),
        message: "m".repeat(100_000),
        chosen: Placement { node: "n1".into(), shares: Vec::new() },
        own: None,
        rank: None,
        feasible: 0,
    }))
}

fn board() -> Board {
    Board::new(Metrics::default(), Timestamp::UNIX_EPOCH)
}

#[test]
fn the_last_divergences_are_kept_and_all_are_counted() {
    let board = board();
    for number in 0..1000 {
        board.note(
            &decided(&format!("p{number}"), Outcome::Infeasible, "CardNotHealth"),
            Timestamp::UNIX_EPOCH,
        );
        board.note(&decided("same", Outcome::Same, ""), Timestamp::UNIX_EPOCH);
        board.note(&decided("unseen", Outcome::NotCompared, "watch_gap"), Timestamp::UNIX_EPOCH);
    }
    let page = board.page();
    assert_eq!((page.divergences.len(), page.divergences[0].name.as_str()), (KEPT, "p999"));
    assert_eq!(page.divergences[KEPT - 1].name, "p744");
    assert!(page.divergences.iter().all(|divergence| divergence.message.len() < 2 * MESSAGE));
    let counts: Vec<_> =
        page.decisions.iter().map(|count| (count.outcome, count.reason.as_str(), count.count)).collect();
    let expected =
        [("same", "", 1000), ("infeasible", "CardNotHealth", 1000), ("not_compared", "watch_gap", 1000)];
    assert_eq!(counts, expected);
}

#[test]
fn reasons_that_users_make_up_are_counted_together_once_there_are_many() {
    let board = board();
    for number in 0..1000 {
        let reason = format!("Insufficient example.com/{number}");
        board.note(&decided("p", Outcome::Infeasible, &reason), Timestamp::UNIX_EPOCH);
    }
    let decisions = board.page().decisions;
    assert_eq!(decisions.len(), PAIRS + 1);
    let other = decisions.iter().find(|count| count.reason == OTHER).unwrap();
    assert_eq!(other.count, 900);
}
