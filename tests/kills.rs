//! Whether Berth ever gives a card away twice or loses a pod while it, the API server and etcd are killed under load.
//!
//! It must not judge by what Berth says: the judge is `tests/checker`, a Go program of the standard library alone. It reads a second API server
//! without a watch cache, and replays every event of pods and nodes by resourceVersion.
//!
//! `BERTH_KILLS_PODS=2000 cargo test --release --test kills -- --nocapture` is the long run; without the variable there are 200 pods.
#![cfg(feature = "sandbox")]
#![allow(clippy::unwrap_used, reason = "a step of a test fails as the test does")]

#[path = "kills/attacked.rs"]
mod attacked;
#[path = "kills/broken.rs"]
mod broken;
#[path = "kills/load.rs"]
mod load;
#[path = "kills/progress.rs"]
mod progress;
#[path = "support/lib.rs"]
mod support;

use std::time::Duration;

use berth::cli::manifests::ManifestsArgs;
use kube::Client;
use progress::Progress;
use serde_json::json;
use support::{
    checker::Checker,
    controlplane::ControlPlane,
    installed::{self, Replica, apply_manifests, free_address, holder},
    server::{pause, say},
};
use tokio::time::Instant;

const PODS: usize = 200;
/// Pods for which there is a node of each family, at least three.
const PODS_A_NODE: usize = 60;

/// What dies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Death {
    /// `kill -9` of the binder that leads, which is started again.
    Leader,
    /// SIGTERM to the binder that leads; another is started.
    LeaderInOrder,
    /// `kill -9` of both binders.
    BothReplicas,
    /// `kill -9` of etcd.
    Etcd,
    /// `kill -9` of kube-apiserver; etcd forgets its history before it is started again.
    ApiServer,
}

/// Two replicas, and what they run against.
struct Stage {
    plane: ControlPlane,
    client: Client,
    replicas: Vec<Replica>,
    started: usize,
}

impl Stage {
    fn start_replica(&mut self) {
        self.started += 1;
        let name = format!("replica-{}", self.started);
        self.replicas.push(Replica::start(&self.plane, &name, &["--scheduler-only"]));
    }

    /// Takes the one that leads out of the replicas, as soon as one does.
    async fn take_leader(&mut self) -> Replica {
        loop {
            let holder = holder(&self.client).await.unwrap().unwrap_or_default();
            if let Some(at) = self.replicas.iter().position(|replica| replica.is_named_by(&holder)) {
                return self.replicas.swap_remove(at);
            }
            pause().await;
        }
    }

    /// Whether any replica has said this so far.
    fn said(&self, text: &str) -> bool {
        let logs =
            (1..=self.started).map(|number| self.plane.directory().join(format!("replica-{number}.log")));
        logs.map(|path| std::fs::read_to_string(path).unwrap()).any(|log| log.contains(text))
    }

    async fn die(&mut self, death: Death) {
        match death {
            Death::Leader => {
                self.take_leader().await.kill();
                self.start_replica();
            }
            Death::LeaderInOrder => {
                let leader = self.take_leader().await;
                leader.terminate();
                assert!(leader.ended().await.success());
                self.start_replica();
            }
            Death::BothReplicas => {
                for replica in std::mem::take(&mut self.replicas) {
                    replica.kill();
                }
                self.start_replica();
                self.start_replica();
            }
            Death::Etcd => {
                self.plane.kill_etcd();
                self.plane.start_etcd().await.unwrap();
            }
            Death::ApiServer => {
                self.plane.kill_apiserver();
                self.plane.compact_etcd().await.unwrap();
                self.plane.start_apiserver().await.unwrap();
            }
        }
    }
}

/// How many pods, and what dies among them.
fn scale() -> (usize, Vec<Death>) {
    use Death::{ApiServer, BothReplicas, Etcd, Leader, LeaderInOrder};
    let told = std::env::var_os("BERTH_KILLS_PODS");
    let told = told.map(|pods| pods.to_str().and_then(|pods| pods.parse().ok()).expect("a number of pods"));
    let once = vec![LeaderInOrder, Etcd, ApiServer, Leader];
    match told {
        None => (PODS, once),
        Some(pods) => {
            let again = [ApiServer, LeaderInOrder, Leader, Etcd, BothReplicas, LeaderInOrder, ApiServer];
            (pods, [once, again.to_vec()].concat())
        }
    }
}

#[test]
fn the_checker_finds_what_is_wrong_in_a_history() {
    let Some(checker) = Checker::find() else { return };
    broken::all_are_found(&checker);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_card_is_given_away_twice_and_no_pod_is_lost_whoever_dies() {
    let mut options = installed::options();
    options.apiserver_flags.push("--etcd-compaction-interval=0".to_owned());
    let Some(checker) = Checker::find() else { return };
    let Some(mut plane) = ControlPlane::start(options).await else { return };
    let witness = plane.start_witness().await.unwrap();
    let history = plane.directory().join("history.jsonl");
    let recording = checker.record(&witness, history).unwrap();
    let client = plane.admin();
    apply_manifests(&client, free_address(), ManifestsArgs::default()).await;
    let (pods, deaths) = scale();
    let of_each = (pods / PODS_A_NODE).max(3);
    let fleet = load::nodes(client.clone(), of_each).await;
    let mut progress = Progress::follow(client.clone());
    let mut stage = Stage { plane, client: client.clone(), replicas: Vec::new(), started: 0 };
    stage.start_replica();
    stage.start_replica();

    let began = Instant::now();
    let users = load::come_and_go(client.clone(), &fleet, of_each, pods);
    let killer = async {
        for (at, death) in deaths.iter().enumerate() {
            progress.bound(pods * (2 * at + 1) / (2 * deaths.len() + 2)).await;
            let bound = progress.count();
            stage.die(*death).await;
            say(&format!("{:?}: {death:?} at {bound} bound pods", began.elapsed()));
        }
    };
    futures::future::join(users, killer).await;
    progress.settled().await;
    say(&format!("{:?}: all {pods} pods are at rest", began.elapsed()));

    let full = async {
        progress.bound(progress.count() + load::cards(of_each)).await;
        stage.die(Death::Leader).await;
    };
    futures::future::join(load::crowd(client.clone(), &fleet, of_each), full).await;
    progress.running(2 * load::cards(of_each)).await;
    say(&format!("{:?}: every card is full", began.elapsed()));

    assert!(stage.said("too old resource version"), "no watch had a gap, though etcd forgot its history");
    let report = recording.judge().unwrap();
    say(&format!("the checker says {report}"));
    assert_eq!((&report["violations"], &report["lost"]), (&json!([]), &json!([])));
    assert_eq!(fleet.violations(), []);
    let excused = |reason: &String| reason.contains("desc = api server: ");
    let failed = report["failedOnNode"].as_object().unwrap();
    assert!(failed.keys().all(excused), "agents refused pods though they could ask: {failed:?}");
}

/// The time that the Deployment gives a replica to end (`terminationGracePeriodSeconds`).
const GRACE: Duration = Duration::from_secs(40);

/// So often the leader renews its Lease beside the attack: for longer than a Lease lasts.
const RENEWALS: usize = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn claims_that_take_long_to_evaluate_take_neither_the_lease_from_the_leader_nor_the_time_to_end() {
    let Some(plane) = ControlPlane::start(installed::options()).await else { return };
    let client = plane.admin();
    apply_manifests(&client, free_address(), ManifestsArgs::default()).await;
    let fleet = load::nodes(client.clone(), 2).await;
    load::live(&fleet, 2, Some(Duration::from_millis(200)));
    attacked::prepare(&client, &["hami-000".to_owned(), "hami-001".to_owned()]).await;
    let mut stage = Stage { plane, client: client.clone(), replicas: Vec::new(), started: 0 };
    stage.start_replica();
    stage.start_replica();
    attacked::probe(&client, "before").await;
    let before = attacked::lease(&client).await;

    attacked::attack(&client).await;
    let (mut probes, mut renewals, mut last) = (0, 0, before.renew_time.clone());
    while renewals < RENEWALS {
        attacked::probe(&client, &format!("beside-{probes}")).await;
        probes += 1;
        let lease = attacked::lease(&client).await;
        let (holder, transitions) = (&lease.holder_identity, lease.lease_transitions);
        assert_eq!((holder, transitions), (&before.holder_identity, before.lease_transitions));
        renewals += usize::from(lease.renew_time != last);
        last = lease.renew_time;
        pause().await;
    }
    say(&format!("{probes} pods of another user were bound in {renewals} renewals beside the attack"));
    assert!(attacked::waits(&client).await, "the attack goes on");

    let leader = stage.take_leader().await;
    let told = Instant::now();
    leader.terminate();
    attacked::probe(&client, "after").await;
    assert!(leader.ended().await.success());
    assert!(told.elapsed() < GRACE, "it ended after {:?}", told.elapsed());
    attacked::probe(&client, "later").await;
    let holder = attacked::lease(&client).await.holder_identity.unwrap();
    assert!(stage.replicas[0].is_named_by(&holder), "{holder} leads, and the other replica is left");
    assert_eq!(fleet.violations(), []);
}
