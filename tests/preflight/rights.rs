//! On a real API server: callers with some rights and with none, accounts in HAMi's form, and the whole report once.

use berth::cli::preflight::{PreflightReport, PreflightVerdict};
use kube::Client;

use super::{
    hami, report, rules,
    support::{
        controlplane::Options,
        floor::{Cluster, Floor},
        identity::Identity,
        objects::{api, grant},
    },
};

/// Lists what `READER` may do.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/preflight.md");
/// May do what docs/preflight.md lists.
const READER: &str = "reader";
/// May do nothing.
const GUEST: &str = "guest";

pub(crate) async fn cluster() -> Option<Cluster> {
    let identities = [READER, GUEST].map(|name| Identity::new(name, &["system:authenticated"]));
    let options = Options { identities: identities.into(), ..Options::default() };
    Cluster::start_with(Floor::Real, options).await
}

fn bound(report: &PreflightReport, account: &str) -> Option<bool> {
    report.agents.iter().find(|agent| agent.account == account).unwrap().bound
}

#[tokio::test]
async fn the_rights_of_the_documentation_suffice_and_nothing_changes() {
    let Some(cluster) = cluster().await else { return };
    hami::fill(&cluster.client).await;
    grant(&cluster.client, PAGE, READER).await;
    let by_admin = report(&cluster.client).await;
    let before = versions(&cluster.client).await;
    let by_reader = report(&cluster.client_of(READER)).await;
    assert_eq!(versions(&cluster.client).await, before);
    let text = |report: &PreflightReport| serde_json::to_string_pretty(report).unwrap();
    assert_eq!(text(&by_reader), text(&by_admin));

    assert_eq!(by_reader.verdict, PreflightVerdict::ReadyWithWarnings, "{}", by_reader.text());
    assert_eq!(by_reader.kubernetes.feature_gates.get("DynamicResourceAllocation"), Some(&true));
    assert!(by_reader.kubernetes.groups.contains_key("resource.k8s.io"));
    let found = rules(&by_reader);
    for rule in
        ["agent-not-bound", "node-writer", "foreign-webhook", "unreadable-assignment", "workload-denied"]
    {
        assert!(found.contains(&rule), "{rule} is not among {found:?}");
    }
    for rule in ["cannot-list", "access-not-asked", "unknown-detail"] {
        assert!(!found.contains(&rule), "{}", by_reader.text());
    }
    assert_eq!(bound(&by_reader, "kube-system/hami-device-plugin"), Some(false));
}

/// The version of each object that the test has made, and of others of those kinds.
async fn versions(client: &Client) -> Vec<(String, Option<String>)> {
    let mut versions = Vec::new();
    for object in hami::chart().into_iter().chain(hami::tenants()) {
        let name = object["metadata"]["name"].as_str().unwrap();
        let read = api(client, &object).get(name).await.unwrap();
        versions.push((format!("{} {name}", object["kind"]), read.metadata.resource_version));
    }
    versions
}

#[tokio::test]
async fn a_caller_without_rights_is_told_each_list_that_was_refused() {
    let Some(cluster) = cluster().await else { return };
    let report = report(&cluster.client_of(GUEST)).await;
    assert_eq!(report.verdict, PreflightVerdict::Blocked);
    assert_eq!(rules(&report), ["cannot-list-essential", "cannot-list", "unknown-detail"]);
    let messages: Vec<_> = report.findings.iter().map(|finding| finding.message.as_str()).collect();
    for kind in ["namespaces", "nodes", "pods"] {
        let expected =
            format!("cannot list {kind}: {kind} is forbidden: User \"guest\" cannot list resource");
        assert!(messages.iter().any(|message| message.starts_with(&expected)), "{expected}: {messages:#?}");
    }
    assert!(
        report.text().as_str().ends_with("resolve them before running the commands\n"),
        "{}",
        report.text()
    );
}
