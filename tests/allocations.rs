//! How often one review asks for memory, and that a repeated attempt asks for none. A number that grows is a copy too many somewhere; one that shrinks is
//! written down here.
#![expect(clippy::unwrap_used, reason = "what fails in a test ends the test")]

#[path = "../benches/review/asked.rs"]
mod asked;

use std::sync::Arc;

use berth::{
    admission::AdmissionStage,
    object::Workloads,
    scheduling::{
        CardReason, DeviceReason, FitError, PendingReason, PodKey, Reason,
        queue::{AttemptHistories, AttemptHistory, MOST_EARLIER_OUTCOMES, MOST_OUTCOMES},
    },
    webhook::answer,
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

/// Pods that wait, as many as a large cluster has.
const WAITING: usize = 100_000;

/// The most bytes that the history of a pod takes whose attempts all fail alike, as those of most pods do.
const MOST_BYTES: i64 = 320;

/// The most bytes that the histories take where every pod's attempts fail in ten ways.
const MOST_BYTES_IN_ALL: i64 = 128 << 20;

/// No node would have the pod, for these tests that cards of nodes fail.
fn refusal(cards: &[CardReason]) -> PendingReason {
    let reason =
        |reason: &CardReason| Reason::Devices(DeviceReason::Card { reason: *reason, count: 8, of: 8 });
    let nodes: Vec<_> = cards.iter().map(|card| vec![reason(card)]).collect();
    PendingReason::from(FitError::of_nodes(&nodes))
}

#[test]
fn the_histories_of_a_hundred_thousand_pods_take_so_much_memory_at_most() {
    use CardReason::{
        CardInsufficientCore, CardInsufficientMemory, CardNotHealth, CardTimeSlicingExhausted,
        CardTypeMismatch,
    };
    let cards = [
        CardInsufficientMemory,
        CardInsufficientCore,
        CardNotHealth,
        CardTimeSlicingExhausted,
        CardTypeMismatch,
    ];
    let pod = |number: usize| {
        let name = format!("pod-{number}");
        PodKey { uid: name.as_str().into(), namespace: "team".into(), name: name.into() }
    };
    let pods: Vec<_> = (0..WAITING).map(pod).collect();
    // What a pod waits for now is kept anyway; its history shares it.
    let now = refusal(&cards[..2]);
    let mut histories = AttemptHistories::default();
    let alike = allocation_counter::measure(|| {
        for pod in &pods {
            for _ in 0..3 {
                histories.note(pod, &now, Timestamp::UNIX_EPOCH, PendingReason::is_alike);
            }
        }
    });
    // Of outcomes that are over, a history alone keeps why.
    let others = allocation_counter::measure(|| {
        for pod in &pods {
            for few in 1..=u32::try_from(MOST_OUTCOMES).unwrap() {
                let chosen: Vec<_> =
                    (0..cards.len()).filter(|at| few >> at & 1 == 1).map(|at| cards[at]).collect();
                histories.note(pod, &refusal(&chosen), Timestamp::UNIX_EPOCH, PendingReason::is_alike);
            }
        }
    });
    let outcomes = |pod: &PodKey| histories.of(&pod.uid).map_or(0, |history| history.outcomes().len());
    assert_eq!(pods.iter().map(outcomes).sum::<usize>(), WAITING + MOST_EARLIER_OUTCOMES);
    let each = alike.bytes_current / i64::try_from(WAITING).unwrap();
    let all = alike.bytes_current + others.bytes_current;
    println!(
        "a history takes {each} bytes; those of {WAITING} pods that fail in {MOST_OUTCOMES} ways take {} MB",
        all / 1_000_000
    );
    assert!(each <= MOST_BYTES, "{each} bytes");
    assert!(all <= MOST_BYTES_IN_ALL, "{all} bytes");
}
