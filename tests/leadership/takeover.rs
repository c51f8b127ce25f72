//! With what the next leader begins: what it has watched, if that is as new as the cluster, or lists of its own.

use std::time::Duration;

use berth_sandbox::agent::Answer;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::leadership::{
    contest::{Contest, Contestant},
    seconds,
};

/// `a` leads and `b` looks on; what `b` has seen then is an empty cluster of one node, where four pods have room.
async fn followed() -> (Contest, Contestant, Contestant) {
    let contest = Contest::of_nodes(1).await;
    let a = contest.stand("a");
    contest.led_by("a").await;
    let b = contest.stand("b");
    b.views.clone().wait_for(Option::is_some).await.unwrap();
    (contest, a, b)
}

async fn fill(contest: &Contest) {
    for index in 0..4 {
        let name = format!("pod-{index}");
        contest.create(&name).await;
        contest.bound(&name).await;
    }
}

async fn one_more_has_no_room(contest: &Contest, b: &Contestant) {
    contest.create("one-more").await;
    contest.led_by("b").await;
    one_more_waits(contest, b).await;
}

async fn one_more_waits(contest: &Contest, b: &Contestant) {
    sleep(seconds(5)).await;
    assert_eq!(b.metric("pending_pods{queue=\"unschedulable\"}"), 1);
    assert_eq!(b.tried(contest).len(), 0);
    contest.delete("pod-2").await;
    contest.bound("one-more").await;
    contest.agents_are_content();
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_is_up_to_date_begins_with_what_it_knows() {
    let (contest, mut a, b) = followed().await;
    fill(&contest).await;
    a.stop().await;
    contest.led_by("b").await;
    sleep(Duration::from_millis(100)).await;
    assert_eq!((b.metric("synced"), b.link.lists_of_names()), (1, 1), "nothing happens that could tell");
    one_more_has_no_room(&contest, &b).await;
    assert_eq!(b.link.lists(), 1, "the one with which it began to look on");
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_sees_pods_come_lists_nothing() {
    let (contest, mut a, b) = followed().await;
    let (every, count) = (Duration::from_millis(10), 200);
    tokio::join!(contest.keep_creating("pod", every, count), async {
        sleep(seconds(1)).await;
        a.stop().await;
    });
    contest.led_by("b").await;
    assert_eq!((b.metric("synced"), b.link.lists(), b.link.lists_of_names()), (1, 1, 0));
    assert_eq!((a.bindings(&contest).len(), b.tried(&contest).len()), (4, 0));
    contest.delete("pod-0").await;
    sleep(seconds(1)).await;
    assert_eq!(b.bindings(&contest).len(), 1);
    contest.agents_are_content();
}

#[tokio::test(start_paused = true)]
async fn a_follower_whose_watch_is_late_trusts_only_what_came_after_the_lead_was_won() {
    let (contest, mut a, b) = followed().await;
    b.link.silence_watches();
    fill(&contest).await;
    a.stop().await;
    contest.led_by("b").await;
    sleep(Duration::from_millis(20)).await;
    b.link.revive_watches();
    sleep(Duration::from_millis(10)).await;
    assert_eq!(b.metric("synced"), 0, "it may have seen only some of what was bound");
    contest.create("one-more").await;
    sleep(Duration::from_millis(1)).await;
    assert_eq!((b.metric("synced"), b.link.lists_of_names()), (1, 0));
    one_more_waits(&contest, &b).await;
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_is_behind_catches_up_before_it_decides() {
    let (contest, mut a, b) = followed().await;
    b.link.silence_watches();
    fill(&contest).await;
    a.stop().await;
    let stopped = Instant::now();
    contest.create("one-more").await;
    contest.led_by("b").await;
    sleep(Duration::from_millis(300)).await;
    assert_eq!(b.metric("synced"), 0, "it does not trust what it knows");
    b.link.revive_watches();
    sleep(Duration::from_millis(1)).await;
    assert_eq!((b.metric("synced"), b.link.lists()), (1, 1), "{:?}", stopped.elapsed());
    contest.delete("one-more").await;
    one_more_has_no_room(&contest, &b).await;
}

#[tokio::test(start_paused = true)]
async fn a_follower_whose_watches_are_stuck_begins_with_lists() {
    let (contest, mut a, b) = followed().await;
    b.link.silence_watches();
    fill(&contest).await;
    a.stop().await;
    one_more_has_no_room(&contest, &b).await;
    assert_eq!(b.link.lists(), 2);
}

/// A pod that waits has no claim that says on which node it is to be: what its claim was given stands in the claim alone.
#[tokio::test(start_paused = true)]
async fn a_follower_that_has_not_seen_a_claim_change_catches_up_before_it_decides() {
    let (contest, mut a, b) = followed().await;
    let claims: Api<ResourceClaim> = Api::default_namespaced(contest.client.clone());
    let claim = json!({"metadata": {"name": "gpu"}, "spec": {}});
    claims.create(&PostParams::default(), &serde_json::from_value(claim).unwrap()).await.unwrap();
    sleep(seconds(1)).await;
    b.link.silence_watches();
    let given = json!({"status": {"allocation": {"devices": {"results": []}}}});
    claims.patch_status("gpu", &PatchParams::default(), &Patch::Merge(given)).await.unwrap();
    a.stop().await;
    contest.led_by("b").await;
    sleep(Duration::from_millis(300)).await;
    assert_eq!(b.metric("synced"), 0, "it does not trust what it knows");
    b.link.revive_watches();
    sleep(Duration::from_millis(1)).await;
    assert_eq!((b.metric("synced"), b.link.lists()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn who_leaves_while_a_follower_catches_up_is_not_waited_for() {
    let (contest, mut a, b) = followed().await;
    b.link.silence_watches();
    fill(&contest).await;
    a.stop().await;
    contest.led_by("b").await;
    sleep(Duration::from_millis(300)).await;
    contest.delete("pod-0").await;
    contest.create("one-more").await;
    b.link.revive_watches();
    contest.bound("one-more").await;
    assert_eq!(b.link.lists(), 1);
    contest.agents_are_content();
}

#[tokio::test(start_paused = true)]
async fn a_follower_leaves_a_node_alone_of_which_it_has_seen_a_pod_go_while_that_was_being_allocated() {
    let (contest, mut a, b) = followed().await;
    contest.agents(1, &Answer::After(seconds(60)), None);
    contest.create("gone").await;
    contest.bound("gone").await;
    sleep(seconds(1)).await;
    contest.delete("gone").await;
    let deleted = Instant::now();
    a.stop().await;
    contest.create("next").await;
    contest.led_by("b").await;
    contest.bound("next").await;
    assert!(deleted.elapsed() >= seconds(15), "bound after {:?}", deleted.elapsed());
    assert_eq!((b.link.lists(), b.bindings(&contest).len()), (1, 1));
}
