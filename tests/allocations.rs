//! How often one review asks for memory. A number that grows is a copy too many somewhere; one that shrinks is written down here.
#![expect(clippy::unwrap_used, reason = "what fails in a test ends the test")]

#[path = "../benches/review/asked.rs"]
mod asked;

use berth::{admission::AdmissionStage, object::Workloads, webhook::answer};

/// The most allocations that a review of a pod of 2.6 KB may take.
const MOST: u64 = 151;

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
