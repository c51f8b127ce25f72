//! The Lease is given back while a renewal is on its way, or somebody takes it.

use std::time::Duration;

use berth::cluster::{
    Clock, Metrics,
    binder::pulse::Pulse,
    election::candidate::{ElectionSettings, LeaseCandidate},
};
use tokio::{sync::watch, task::JoinSet, time::Instant};

use crate::leadership::{
    contest::{Contest, Contestant},
    seconds,
};

/// The stop cuts off a renewal that is on its way, and what is read of the Lease after that is older than it.
async fn stopped_during_a_renewal(contest: &Contest) -> Contestant {
    let a = contest.stand("a");
    contest.led_by("a").await;
    a.link.lease_writes_take(seconds(1));
    a.link.next_lease_write().await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    a
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_lands_while_the_lease_is_given_back_keeps_nobody_waiting() {
    let contest = Contest::of_nodes(1).await;
    let mut a = stopped_during_a_renewal(&contest).await;
    let b = contest.stand("b");
    let stopped = Instant::now();
    a.stop().await;
    assert_eq!(a.link.lease_conflicts(), 1, "the renewal came between the read and the write");
    contest.led_by("b").await;
    assert!(stopped.elapsed() < seconds(3), "took {:?}", stopped.elapsed());
    contest.create("after").await;
    contest.bound("after").await;
    assert_eq!(b.bindings(&contest).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_taken_while_it_is_given_back_stays_who_has_taken_it() {
    let contest = Contest::of_nodes(1).await;
    let mut a = stopped_during_a_renewal(&contest).await;
    let usurp = async {
        // The renewal has landed, the Lease has been read again and is being written.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        contest.usurp(60).await;
    };
    tokio::join!(a.stop(), usurp);
    assert_eq!(a.link.lease_conflicts(), 2, "it was taken between the second read and the second write");
    let usurped = contest.led_by("somebody").await;
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(contest.led_by("somebody").await, usurped);
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_stands_still_loses_the_lead_before_its_lease_expires() {
    let contest = Contest::of_nodes(1).await;
    let (pulse, clock) = (Pulse::default(), Clock::starting_at(contest.sandbox.now()));
    let (claims, mut claimed) = watch::channel(None);
    let settings = ElectionSettings::new("default", "berth", "a");
    let candidate = LeaseCandidate::new(
        settings,
        contest.client.clone(),
        clock,
        Metrics::default(),
        claims,
        pulse.clone(),
    );
    let mut running = JoinSet::new();
    running.spawn(candidate.run(std::future::pending()));
    contest.led_by("a").await;
    let b = contest.stand("b");
    let (_turn, began) = (pulse.begin(), Instant::now());
    claimed.wait_for(Option::is_none).await.unwrap();
    let lost = began.elapsed();
    assert!((seconds(5)..=seconds(7)).contains(&lost), "no write is sent after {lost:?}");
    contest.led_by("b").await;
    let followed = began.elapsed();
    assert!(followed >= lost + seconds(6), "a write that was under way could still arrive: {followed:?}");
    assert!(followed < seconds(16), "the Lease would have expired after 20 s: {followed:?}");
    contest.create("after").await;
    contest.bound("after").await;
    assert_eq!(b.bindings(&contest).len(), 1);
}
