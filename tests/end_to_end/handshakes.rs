//! Nodes whose plugins report their life, as HAMi's up to v2.7 do: they serve for as long as the reports are fresh.

#![allow(clippy::disallowed_methods, reason = "a report says when it was made")]

use std::{collections::BTreeMap, time::Duration};

use berth_sandbox::agent::{handshake::Reports, wire::Release};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as core;
use serde_json::{Value, json};

use crate::{
    machines::{hami_node, old_hami_node},
    support::floor::Floor,
    world::{World, node_of, pod},
};

const HANDSHAKE: &str = "hami.io/node-handshake";
const LOCK: &str = "hami.io/mutex.lock";
const DEAD: &str = "0/2 nodes are available: 2 node(s) had a device plugin that has stopped reporting.";
/// A report is good for 90 s. So far behind is a plugin's clock, and for so long its reports hold.
const BEHIND: Duration = Duration::from_secs(88);
const HOLDS: Duration = Duration::from_secs(2);
const OLD: [(&str, Release); 2] = [("v2-4", Release::V2_4), ("v2-7", Release::V2_7)];

fn share(name: &str) -> Value {
    pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}))
}

fn on(mut pod: Value, node: &str) -> Value {
    pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
    pod
}

/// What the node's plugin has reported, and when.
fn reported(node: &core::Node) -> Option<Timestamp> {
    let annotations: &BTreeMap<String, String> = node.metadata.annotations.as_ref()?;
    let time = annotations.get(HANDSHAKE)?.strip_prefix("Reported ")?;
    let (date, time) = time.split_once(' ')?;
    format!("{date}T{}Z", time.split(' ').next()?).parse().ok()
}

/// The node's plugin dies after its first report.
async fn dies(world: &World, node: &str) {
    world.node_when(node, |node| reported(node).is_some()).await;
    world.fleet.report(node, Reports::Never).unwrap();
}

/// A report of so long ago.
fn report(ago: SignedDuration) -> Value {
    json!(format!("Reported {} +0000 UTC m=+7.5", (Timestamp::now() - ago).strftime("%Y-%m-%d %H:%M:%S%.f")))
}

fn civil(word: &str, layout: &str, ago: SignedDuration) -> Value {
    json!(format!("{word}_{}", (Timestamp::now() - ago).strftime(layout)))
}

/// The plugins' clocks are so far behind that each report holds for a moment only: it is the next ones that keep the nodes.
pub(crate) async fn a_plugin_that_goes_on_reporting_goes_on_serving(floor: Floor) {
    let (every, behind) = (Duration::from_millis(200), BEHIND);
    let nodes = OLD.map(|(name, release)| old_hami_node(name, release).reporting(every, behind)).to_vec();
    let Some(world) = World::start(floor, nodes).await else { return };
    for (node, _) in OLD {
        world.create(on(share(&format!("early-{node}")), node)).await;
    }
    let mut later = Timestamp::UNIX_EPOCH;
    for (node, _) in OLD {
        world.running(&format!("early-{node}")).await;
        let first = reported(&world.node_when(node, |node| reported(node).is_some()).await).unwrap();
        later = later.max(first + HOLDS + Duration::from_secs(1));
    }
    for (node, _) in OLD {
        world.node_when(node, |node| reported(node).is_some_and(|at| at > later)).await;
        world.create(on(share(&format!("late-{node}")), node)).await;
        world.running(&format!("late-{node}")).await;
    }
    // Who stands in line there is sent back when the last report no longer holds.
    let mut theirs = share("theirs");
    theirs["spec"]["schedulerName"] = json!("another");
    world.create(theirs).await;
    let lock = json!(format!("{:.0},default,theirs", Timestamp::now()));
    for (node, _) in OLD {
        world.annotate_node(node, LOCK, lock.clone()).await;
    }
    world.create(share("in-line")).await;
    for (node, _) in OLD {
        world.fleet.report(node, Reports::Never).unwrap();
    }
    assert_eq!(world.unschedulable("in-line").await, DEAD);
    world.create(share("next")).await;
    assert_eq!(world.unschedulable("next").await, DEAD);
    world.annotate_node("v2-7", LOCK, Value::Null).await;
    world.fleet.report("v2-7", Reports::Regularly).unwrap();
    for name in ["in-line", "next"] {
        assert_eq!(node_of(&world.running(name).await), "v2-7");
    }
    world.agents_are_content();
}

/// What is left on a node whose plugin has died: its last report, what HAMi's scheduler has asked it since, or its obituary.
pub(crate) async fn a_plugin_that_died_is_given_nothing_until_it_reports(floor: Floor) {
    let nodes = OLD.map(|(name, release)| old_hami_node(name, release)).to_vec();
    let Some(mut world) = World::without_berth(floor, nodes).await else { return };
    let (seconds, fresh) = (SignedDuration::from_secs, SignedDuration::ZERO);
    let (new, old) = ("%Y-%m-%d %H:%M:%S", "%Y.%m.%d %H:%M:%S");
    let leftovers = [
        [report(seconds(91)), report(seconds(3600))],
        [civil("Requesting", old, seconds(61)), civil("Requesting", new, seconds(61))],
        [civil("Deleted", old, fresh), civil("Deleted", new, fresh)],
    ];
    for (node, _) in OLD {
        dies(&world, node).await;
    }
    for (round, left) in leftovers.into_iter().enumerate() {
        for ((node, _), left) in OLD.iter().zip(left) {
            world.annotate_node(node, HANDSHAKE, left).await;
        }
        world.start_berth();
        let name = format!("train-{round}");
        world.create(share(&name)).await;
        assert_eq!(world.unschedulable(&name).await, DEAD);
        let node = OLD[round % 2].0;
        world.fleet.report(node, Reports::Regularly).unwrap();
        assert_eq!(node_of(&world.running(&name).await), node);
        world.fleet.report(node, Reports::Never).unwrap();
        world.kill_berth().await;
    }
    world.agents_are_content();
}

/// HAMi's scheduler has just asked and the answer is due; and plugins from v2.8 on report nothing, whatever an older one has left.
pub(crate) async fn a_question_and_a_leftover_stop_nothing(floor: Floor) {
    let Some(mut world) =
        World::without_berth(floor, vec![old_hami_node("v2-7", Release::V2_7), hami_node("v2-10", 1)]).await
    else {
        return;
    };
    dies(&world, "v2-7").await;
    let layout = "%Y-%m-%d %H:%M:%S";
    world.annotate_node("v2-7", HANDSHAKE, civil("Requesting", layout, SignedDuration::ZERO)).await;
    let deleted = civil("Deleted", layout, SignedDuration::from_hours(24));
    world.annotate_node("v2-10", HANDSHAKE, deleted.clone()).await;
    world.start_berth();
    for node in ["v2-7", "v2-10"] {
        world.create(on(share(&format!("train-{node}")), node)).await;
        world.running(&format!("train-{node}")).await;
    }
    let annotations = |node: core::Node| node.metadata.annotations.unwrap_or_default();
    let left = annotations(world.nodes().get("v2-10").await.unwrap());
    assert_eq!(json!(left[HANDSHAKE]), deleted, "nobody has written over it");
    assert!(annotations(world.nodes().get("v2-7").await.unwrap())[HANDSHAKE].starts_with("Requesting_"));
    world.agents_are_content();
}
