//! From HAMi to Berth and back, while pods come and go: the phases of `docs/take-over.md` on a real API server.
//!
//! HAMi's objects are those of its chart; its webhook, scheduler and device plugins do what its own do. Berth is installed by what `berth
//! manifests` prints and runs as a process. It must not judge by what either of them says, only by what the API server shows.
#![cfg(feature = "sandbox")]
#![allow(clippy::unwrap_used, reason = "a step of a test fails as the test does")]

mod chart;
mod deviceshare;
mod filter;
mod hami;
mod installation;
mod people;
mod seen;
mod volcano;
mod webhook;

use std::sync::Arc;

use berth_sandbox::agent::Fleet;
use installation::Installation;
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams},
};
use people::People;
use seen::Seen;
use serde_json::json;

use crate::support::{
    controlplane::{ControlPlane, Options},
    identity::Identity,
    installed,
    server::say,
};

const LABELLED: &str = "team-a";
const UNLABELLED: &str = "team-b";
/// Admission covers it in no phase; HAMi's webhook does.
const SYSTEM: &str = "kube-system";
const PLUGIN: &str = "system:serviceaccount:kube-system:hami-device-plugin";
const USER: &str = "alice";

/// The settings of the phases of `docs/take-over.md`, as preflight prints them and its commands change them.
const BESIDE: &str = "scope: opt-in\nadoptSchedulers: []\nunmanagedPods: warn\nprotection: warn\n";
const TAKING_OVER: &str =
    "scope: opt-out\nadoptSchedulers: [hami-scheduler]\nunmanagedPods: warn\nprotection: warn\n";
const PROTECTING: &str =
    "scope: opt-out\nadoptSchedulers: [hami-scheduler]\nunmanagedPods: deny\nprotection: deny\n";
const GIVING_BACK: &str = "scope: opt-out\nadoptSchedulers: []\nunmanagedPods: warn\nprotection: warn\n";

/// From when on HAMi's scheduler is to go, until it is back: Berth leaves locks out while it is gone.
const WITHOUT_LOCKS: &str = "dialects: {hami: {nodeLock: auto}}\n";

/// Everything that runs.
struct Stage {
    plane: Arc<ControlPlane>,
    client: Client,
    fleet: Fleet,
    seen: Seen,
    people: People,
}

impl Stage {
    /// The cluster as HAMi's chart leaves it, with pods that HAMi's releases have placed; then the teams begin.
    async fn start() -> Option<(Self, hami::Scheduler, webhook::Webhook)> {
        let accounts = [chart::SCHEDULER, PLUGIN].map(|user| {
            let (space, name) = user.rsplit_once(':').unwrap();
            Identity::service_account(space.rsplit_once(':').unwrap().1, name)
        });
        let user = Identity::new(USER, &["system:authenticated"]);
        let options = installed::options();
        let identities = options.identities.into_iter().chain(accounts).chain([user]).collect();
        let plane = Arc::new(ControlPlane::start(Options { identities, ..options }).await?);
        let client = plane.admin();
        chart::install(&client).await;
        // Before there is a kubelet, which would admit them anew.
        chart::running_pods(&client).await;
        let fleet = Fleet::start(plane.client(PLUGIN), chart::nodes()).await.unwrap();
        let scheduler = hami::Scheduler::start(&plane).await;
        let webhook = webhook::start(&client).await;
        people::until_named(&client, UNLABELLED, "hami-scheduler").await;
        let seen = Seen::follow(client.clone());
        let people = People::start(&client, &seen);
        Some((Self { plane, client, fleet, seen, people }, scheduler, webhook))
    }

    /// Until so many more pods of each team run.
    async fn goes_on(&mut self, phase: &str) {
        self.seen.more_run(&[LABELLED, UNLABELLED, SYSTEM], 4, phase, &self.people).await;
        assert_eq!(self.seen.overcommitted(), Vec::<String>::new(), "{phase}");
        assert_eq!(self.seen.failed(), Vec::<String>::new(), "{phase}");
        assert!(self.fleet.troubles().is_empty(), "{phase}: {:?}", self.fleet.troubles());
        say(&format!("take-over: {phase}: {}", self.people.count()));
    }

    /// Which schedulers the pods of a team name that are created from now on.
    async fn named_from_now_on(&self, team: &str, scheduler: &str) {
        people::until_named(&self.client, team, scheduler).await;
    }

    async fn label(&self, team: &str, value: Option<&str>) {
        let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(self.client.clone());
        let label = Patch::Merge(json!({"metadata": {"labels": {"berth.dev/admission": value}}}));
        namespaces.patch(team, &PatchParams::default(), &label).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pods_are_served_in_every_phase_of_the_way_from_hami_to_berth_and_back() {
    let Some((mut stage, mut scheduler, webhook)) = Stage::start().await else { return };
    stage.goes_on("HAMi alone").await;

    let mut berth = Installation::start(&stage.plane).await;
    stage.label(LABELLED, Some("enabled")).await;
    stage.named_from_now_on(LABELLED, "berth").await;
    stage.goes_on("both").await;

    berth.set(&format!("{TAKING_OVER}{WITHOUT_LOCKS}")).await;
    stage.named_from_now_on(UNLABELLED, "berth").await;
    stage.goes_on("every namespace comes in").await;

    chart::remove_webhook(&stage.client).await;
    scheduler.kill().await;
    stage.goes_on("HAMi's scheduler is gone").await;

    berth.set(&format!("{PROTECTING}{WITHOUT_LOCKS}")).await;
    people::are_refused(&stage.plane, &stage.client).await;
    stage.goes_on("protected").await;

    berth.set(&format!("{GIVING_BACK}{WITHOUT_LOCKS}")).await;
    scheduler = hami::Scheduler::start(&stage.plane).await;
    chart::restore_webhook(&stage.client, &webhook.configuration).await;
    stage.goes_on("HAMi's scheduler and webhook are back").await;

    berth.set(BESIDE).await;
    stage.label(LABELLED, None).await;
    for team in [LABELLED, UNLABELLED] {
        stage.named_from_now_on(team, "hami-scheduler").await;
    }
    stage.goes_on("HAMi again, beside Berth").await;

    people::wait_for_pods_of("berth", &stage.client).await;
    berth.remove().await;
    let forsaken = people::forsaken(&stage.client).await;
    people::create_again(&stage.client, &forsaken).await;
    stage.goes_on("HAMi alone again").await;
    ends_well(stage, scheduler).await;
}

/// Every pod runs, nothing is left behind, and what the agents saw was right.
async fn ends_well(stage: Stage, scheduler: hami::Scheduler) {
    let Stage { client, fleet, mut seen, people, .. } = stage;
    people.stop().await;
    seen.all_run().await;
    scheduler.kill().await;
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(client.clone());
    for node in nodes.list(&ListParams::default()).await.unwrap() {
        let annotations = node.metadata.annotations.unwrap_or_default();
        let left: Vec<_> =
            annotations.keys().filter(|key| key.contains("lock") || key.contains("berth")).collect();
        assert!(left.is_empty(), "{:?} is left with {left:?}", node.metadata.name);
    }
    assert_eq!(seen.overcommitted(), Vec::<String>::new());
    assert_eq!(seen.failed(), Vec::<String>::new());
    assert_eq!(fleet.violations(), []);
    assert!(fleet.troubles().is_empty(), "{:?}", fleet.troubles());
}
