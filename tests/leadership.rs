//! Whether one binder leads at a time: hand-over, death, partition, and an orderly stop.
//!
//! It must not look inside the binder: what counts is what the API server carried out, when, and what the nodes' agents saw.
#![cfg(feature = "sandbox")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod contest;
mod give_back;
mod link;
mod takeover;

use std::{collections::BTreeSet, time::Duration};

use berth::{
    cluster::{BinderView, Hinted, Leadership, election::candidate::ElectionSettings},
    device::Inventory,
};
use berth_sandbox::agent::Answer;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::LeaseSpec;
use tokio::time::Instant;

use contest::{Contest, Contestant, node_of};
use link::Cut;

const LEASE: Duration = Duration::from_secs(15);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// When the claim that this Lease stands for has run out: never earlier than the claim itself.
fn expiry(spec: &LeaseSpec) -> Timestamp {
    spec.renew_time.as_ref().unwrap().0 + SignedDuration::from_secs(15)
}

#[tokio::test(start_paused = true)]
async fn one_of_two_leads_and_only_it_binds() {
    let contest = Contest::of_nodes(2).await;
    let a = contest.stand("a");
    let first = contest.led_by("a").await;
    let b = contest.stand("b");
    contest.keep_creating("pod", seconds(10), 8).await;
    for index in 0..8 {
        contest.bound(&format!("pod-{index}")).await;
    }
    assert_eq!((a.bindings(&contest).len(), b.bindings(&contest).len()), (8, 0));
    assert_eq!((a.leads(), b.leads()), ((true, 1), (false, 0)));
    let now = contest.led_by("a").await;
    assert_eq!((now.lease_duration_seconds, now.lease_transitions), (Some(15), Some(0)));
    assert_eq!(now.acquire_time, first.acquire_time);
    let age = contest.sandbox.now().duration_since(now.renew_time.unwrap().0);
    assert!(age <= SignedDuration::from_secs(2), "renewed {age} ago");
    contest.agents_are_content();
}

#[tokio::test(start_paused = true)]
async fn an_orderly_stop_hands_over_at_once() {
    let contest = Contest::of_nodes(2).await;
    let mut a = contest.stand("a");
    contest.led_by("a").await;
    let b = contest.stand("b");
    contest.create("before").await;
    contest.bound("before").await;
    a.stop().await;
    assert_eq!(a.leads(), (false, 2));
    let stopped = Instant::now();
    contest.create("after").await;
    contest.bound("after").await;
    assert!(stopped.elapsed() < Duration::from_millis(100), "took {:?}", stopped.elapsed());
    assert_eq!(b.bindings(&contest).len(), 1);
    assert_eq!(contest.led_by("b").await.lease_transitions, Some(1));
    contest.agents_are_content();
}

/// The memory in use of the nodes' cards as a binder shows it to its process, once it is so much.
async fn shows(contestant: &Contestant, memory: u64) {
    let used = |view: &BinderView| -> u64 {
        let states = view.outlook.world().nodes();
        let cards = states.flat_map(|state| {
            let inventories = state.info.devices.offers.iter().filter_map(|offer| offer.inventory.as_deref());
            let cards = inventories.flat_map(Inventory::cards);
            cards.map(|card| state.usage.card(&card.id).memory.get())
        });
        cards.sum()
    };
    let mut views = contestant.views.clone();
    let shown = views.wait_for(|view| view.as_ref().is_some_and(|view| used(view) == memory));
    let shown = tokio::time::timeout(seconds(30), shown).await.map(drop);
    assert!(shown.is_ok(), "{memory} MiB were never shown");
}

#[tokio::test(start_paused = true)]
async fn a_follower_shows_the_cluster_as_the_leader_does_and_counts_nothing_as_its_own() {
    let contest = Contest::of_nodes(2).await;
    let mut a = contest.stand("a");
    contest.led_by("a").await;
    let b = contest.stand("b");
    contest.create("before").await;
    contest.bound("before").await;
    tokio::join!(shows(&a, 6000), shows(&b, 6000));
    assert_eq!((a.metric("synced"), b.metric("synced")), (1, 1));
    let pods: Vec<_> = (0..8).map(|index| format!("pod-{index}")).collect();
    for pod in &pods {
        contest.create(pod).await;
    }
    tokio::time::sleep(seconds(5)).await;
    let waiting = "pending_pods{queue=\"unschedulable\"}";
    assert_eq!((a.metric(waiting), b.metric(waiting)), (1, 0), "eight of nine fit");
    tokio::join!(shows(&a, 48_000), shows(&b, 48_000));
    assert_eq!(b.tried(&contest).len(), 0);
    assert_eq!(b.link.locks(), 0);

    a.stop().await;
    contest.delete("before").await;
    contest.led_by("b").await;
    for pod in &pods {
        contest.bound(pod).await;
    }
    shows(&b, 48_000).await;
    assert_eq!((b.metric("synced"), b.metric(waiting)), (1, 0));
    contest.agents_are_content();
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_follows_again_shows_the_cluster_and_no_longer_counts() {
    let contest = Contest::of_nodes(1).await;
    let a = contest.stand("a");
    contest.led_by("a").await;
    for index in 0..6 {
        contest.create(&format!("pod-{index}")).await;
    }
    tokio::time::sleep(seconds(5)).await;
    let waiting = "pending_pods{queue=\"unschedulable\"}";
    assert_eq!((a.metric("synced"), a.metric(waiting)), (1, 2), "four of six fit");
    contest.usurp(60).await;
    tokio::time::sleep(seconds(4)).await;
    assert_eq!(a.leads(), (false, 2));
    assert_eq!((a.metric("synced"), a.metric(waiting)), (1, 0), "it has listed the cluster again");
    contest.delete("pod-0").await;
    shows(&a, 18_000).await;
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_hints_costs_no_pod_its_place() {
    let contest = Contest::of_nodes(2).await;
    let a = contest.stand("a");
    contest.led_by("a").await;
    let (mut taken, mut dropped) = (0, 0);
    let flood = async {
        for memory in 1.. {
            match a.handoff.hint(Box::new(contest::hint(memory))) {
                Hinted::Taken => taken += 1,
                Hinted::Dropped => {
                    dropped += 1;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        }
    };
    let bind = async {
        contest.keep_creating("pod", Duration::from_millis(50), 8).await;
        for index in 0..8 {
            contest.bound(&format!("pod-{index}")).await;
        }
    };
    tokio::select! {
        () = flood => {}
        () = bind => {}
    }
    assert!(taken > 1000 && dropped > 0, "{taken} were taken and {dropped} dropped");
    assert_eq!(a.bindings(&contest).len(), 8);
    contest.agents_are_content();
}

#[tokio::test(start_paused = true)]
async fn a_stopped_follower_leaves_the_lease_alone() {
    let contest = Contest::of_nodes(1).await;
    let a = contest.stand("a");
    contest.led_by("a").await;
    let mut b = contest.stand("b");
    tokio::time::sleep(seconds(5)).await;
    b.stop().await;
    tokio::time::sleep(seconds(30)).await;
    assert_eq!((contest.led_by("a").await.lease_transitions, a.leads()), (Some(0), (true, 1)));
}

#[tokio::test(start_paused = true)]
async fn a_dead_leader_is_followed_after_its_lease() {
    let contest = Contest::of_nodes(2).await;
    let mut a = contest.stand("a");
    contest.led_by("a").await;
    let b = contest.stand("b");
    contest.create("before").await;
    contest.bound("before").await;
    tokio::time::sleep(seconds(7)).await;
    a.kill().await;
    let killed = Instant::now();
    let last = contest.led_by("a").await;
    contest.create("after").await;
    let next = contest.led_by("b").await;
    assert!(next.acquire_time.unwrap().0 >= expiry(&last), "b may not lead while a still may");
    contest.bound("after").await;
    assert!(killed.elapsed() < LEASE + Duration::from_millis(100), "took {:?}", killed.elapsed());
    assert_eq!(b.bindings(&contest).len(), 1);
    contest.agents_are_content();
}

/// Pods come and go all the while; the cut binder's Bindings are carried out as late as a server can.
async fn no_binding_outlasts_its_claim(cut: Cut) {
    let contest = Contest::of_nodes(4).await;
    contest.agents(4, &Answer::Promptly, Some(seconds(4)));
    // It gives up so late that only the fence keeps its Bindings inside the claim.
    let settings =
        ElectionSettings { renew_deadline: seconds(14), ..ElectionSettings::new("default", "berth", "a") };
    let a = contest.start("a", Leadership::Elected(settings));
    a.link.bindings_take(Duration::from_millis(4_900));
    contest.led_by("a").await;
    let mut b = contest.stand("b");
    let case = async {
        tokio::time::sleep(seconds(20)).await;
        a.link.cut(cut);
        let last = contest.led_by("a").await;
        let next = contest.led_by("b").await.acquire_time.unwrap().0;
        assert!(next >= expiry(&last));
        tokio::time::sleep(seconds(20)).await;
        a.link.cut(Cut::Nothing);
        (expiry(&last), next)
    };
    let ((expiry, next), ()) =
        tokio::join!(case, contest.keep_creating("pod", Duration::from_millis(400), 150));
    let (of_a, of_b) = (a.bindings(&contest), b.bindings(&contest));
    let latest = a.tried(&contest).iter().map(|carried| carried.at).max().unwrap();
    assert!(latest < expiry, "a binding of a came at {latest}, its claim ended at {expiry}");
    let earliest = b.tried(&contest).iter().map(|carried| carried.at).min().unwrap();
    assert!(earliest >= next, "a binding of b came at {earliest}, it led from {next}");
    assert!(of_a.len() >= 8 && of_b.len() >= 8, "both have bound: {} and {}", of_a.len(), of_b.len());
    assert_eq!((a.leads(), b.leads()), ((false, 2), (true, 1)));
    contest.agents_are_content();

    b.stop().await;
    contest.led_by("a").await;
    contest.create("again").await;
    contest.bound("again").await;
    let of_a = a.bindings(&contest);
    assert!(of_a.iter().any(|carried| carried.path.ends_with("/again/binding")), "a leads again");
    contest.agents_are_content();
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_binding_by_itself() {
    no_binding_outlasts_its_claim(Cut::Leases).await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_binding_by_itself() {
    no_binding_outlasts_its_claim(Cut::Everything).await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_was_taken_from_it_stops_at_once() {
    let contest = Contest::of_nodes(2).await;
    let a = contest.stand("a");
    contest.led_by("a").await;
    contest.usurp(60).await;
    tokio::time::sleep(seconds(3)).await;
    assert_eq!(a.leads(), (false, 2));
    contest.create("pod").await;
    tokio::time::sleep(seconds(50)).await;
    assert_eq!(a.bindings(&contest).len(), 0);
    contest.bound("pod").await;
    assert_eq!(a.leads(), (true, 3));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_lapses_and_leads_again_waits_for_what_it_had_sent() {
    let contest = Contest::of_nodes(4).await;
    contest.agents(4, &Answer::Promptly, Some(seconds(4)));
    let a = contest.stand("a");
    a.link.bindings_take(Duration::from_millis(4_900));
    let case = async {
        tokio::time::sleep(seconds(20)).await;
        a.link.cut(Cut::Leases);
        tokio::time::sleep(seconds(9)).await;
        a.link.cut(Cut::Nothing);
    };
    tokio::join!(case, contest.keep_creating("pod", Duration::from_millis(500), 120));
    assert_eq!(a.leads(), (true, 3), "it led, lapsed and leads again");
    let tried = a.tried(&contest);
    let pods: BTreeSet<_> = tried.iter().map(|carried| &carried.path).collect();
    assert_eq!(pods.len(), tried.len(), "a Binding was sent again while the first was under way");
    contest.agents_are_content();
}

/// The stop comes while the first lock of each node is being taken, and two more pods wait there.
async fn only_what_is_half_done_is_finished(leadership: Leadership, answer: Answer) {
    let contest = Contest::of_nodes(3).await;
    contest.agents(3, &answer, None);
    let mut a = contest.start("a", leadership);
    a.link.locks_take(seconds(1));
    for index in 0..9 {
        contest.create(&format!("pod-{index}")).await;
    }
    a.link.locks_asked(3).await;
    a.stop().await;
    let bound: Vec<_> = contest.all_pods().await.into_iter().filter(|pod| node_of(pod).is_some()).collect();
    let bound: Vec<_> = bound.into_iter().map(|pod| pod.metadata.name.unwrap()).collect();
    assert_eq!(bound.len(), 3, "{bound:?}");
    let locked = contest.locked().await;
    assert!(locked.iter().all(|pod| bound.contains(pod)), "locks of {locked:?}, bound are {bound:?}");
    contest.agents_are_content();
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_stopped_leaves_no_lock_and_begins_nothing() {
    for answer in [Answer::Promptly, Answer::Never] {
        let settings = ElectionSettings::new("default", "berth", "a");
        only_what_is_half_done_is_finished(Leadership::Elected(settings), answer).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_binder_without_others_that_is_stopped_leaves_no_lock_and_begins_nothing() {
    for answer in [Answer::Promptly, Answer::Never] {
        only_what_is_half_done_is_finished(Leadership::Alone, answer).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_taken_for_a_pod_that_is_gone_is_given_back_before_the_stop() {
    let contest = Contest::of_nodes(1).await;
    let mut a = contest.stand("a");
    a.link.locks_take(seconds(1));
    contest.create("pod").await;
    a.link.locks_asked(1).await;
    contest.delete("pod").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    a.stop().await;
    assert_eq!(a.link.locks(), 2, "one was taken and given back");
    assert_eq!(contest.locked().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_given_back_only_after_the_last_binding() {
    let contest = Contest::of_nodes(3).await;
    let mut a = contest.stand("a");
    a.link.bindings_take(seconds(4));
    contest.led_by("a").await;
    for index in 0..3 {
        contest.create(&format!("pod-{index}")).await;
    }
    a.link.locks_asked(1).await;
    let given_back = contest.lease_when(|spec| spec.holder_identity.as_deref() == Some(""));
    let ((), given_back) = tokio::join!(a.stop(), given_back);
    let last = a.bindings(&contest).iter().map(|carried| carried.at).max().unwrap();
    assert!(given_back.renew_time.as_ref().unwrap().0 >= last);
    assert_eq!((given_back.lease_duration_seconds, given_back.lease_transitions), (Some(1), Some(0)));
    contest.agents_are_content();
}
