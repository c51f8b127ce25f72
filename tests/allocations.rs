//! How often one review asks for memory, and that a repeated attempt asks for none. A number that grows is a copy too many somewhere; one that shrinks is
//! written down here.
#![expect(clippy::unwrap_used, reason = "what fails in a test ends the test")]

#[path = "../benches/review/asked.rs"]
mod asked;

use std::sync::Arc;

use berth::{
    admission::AdmissionStage, object::Workloads, scheduling::queue::AttemptHistory, webhook::answer,
};
use jiff::Timestamp;

/// The most allocations that a review of a pod of 2.6 KB may take.
const MOST: u64 = 132;

#[test]
fn a_review_asks_for_memory_so_often_at_most() {
    let (body, judge, workloads) = (asked::body(), asked::judge(), Workloads::default());
    assert!((2500..2700).contains(&asked::pod().to_string().len()));
    let counted = allocation_counter::measure(|| {
        let answer = answer(&body, AdmissionStage::Mutate, &judge, &workloads).unwrap();
        assert!(answer.review.response.patch.is_some());
        std::hint::black_box(serde_json::to_vec(&answer.review).unwrap());
    });
    println!("a review takes {} allocations of {} bytes", counted.count_total, counted.bytes_total);
    assert!(counted.count_total <= MOST, "{} allocations", counted.count_total);
}

#[test]
fn an_attempt_that_fails_as_one_before_asks_for_no_memory() {
    let reasons: [Arc<str>; 2] = ["full".into(), "tainted".into()];
    let mut history = AttemptHistory::default();
    let mut fail = |reason: &Arc<str>| history.note(reason, Timestamp::UNIX_EPOCH, PartialEq::eq);
    reasons.iter().for_each(&mut fail);
    let counted = allocation_counter::measure(|| reasons.iter().cycle().take(100).for_each(&mut fail));
    assert_eq!(counted.count_total, 0);
    assert_eq!(history.outcomes().iter().map(|outcome| outcome.count).collect::<Vec<_>>(), [51, 51]);
}
