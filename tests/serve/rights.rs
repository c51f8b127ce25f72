//! Parts of Berth that run alone, each with the rights of its own account.

use std::time::Duration;

use berth::cli::manifests::ManifestsArgs;
use k8s_openapi::api::core::v1 as core;
use kube::{
    Api,
    api::{ListParams, PostParams},
};

use super::{LIMIT, cluster, holder, runs, share, try_ask};
use crate::support::{
    controlplane::{ControlPlane, Options},
    identity::Identity,
    installed::{NAMESPACE, Replica, apply_manifests, free_address, may},
};

/// The two halves are installed into another namespace.
const APART: &str = "sharing";
const WEBHOOK: &str = "system:serviceaccount:sharing:berth-webhook";
const SHADOW: &str = "system:serviceaccount:berth-system:berth-shadow";
const BINDER: &str = "system:serviceaccount:sharing:berth-binder";

#[tokio::test]
async fn webhook_and_binder_apart_run_with_the_rights_of_their_own_accounts() {
    let accounts = ["berth-webhook", "berth-binder"].map(|name| Identity::service_account(APART, name));
    let options = Options { identities: accounts.into(), ..Options::default() };
    let Some(plane) = ControlPlane::start(options).await else { return };
    let client = plane.admin();
    let address = free_address();
    let args = ManifestsArgs { namespace: APART.to_owned(), split: true, ..ManifestsArgs::default() };
    apply_manifests(&client, address, args).await;
    let fleet = cluster(&client).await;
    let flags = ["--webhook-only", "--namespace", APART];
    let webhook = Replica::start_as(&plane, WEBHOOK, "webhook", address, &flags);
    let flags = ["--scheduler-only", "--namespace", APART];
    let binder = Replica::start_as(&plane, BINDER, "binder", free_address(), &flags);
    runs(&client, "one").await;
    assert!(holder(&client, APART).await.is_some(), "the binder holds the lease");

    let cases = [
        ("list /nodes", true, true),
        ("watch /namespaces", true, true),
        ("get /secrets:berth-webhook-tls", true, false),
        ("get /secrets:another", false, false),
        ("patch admissionregistration.k8s.io/mutatingwebhookconfigurations:berth", true, false),
        ("patch admissionregistration.k8s.io/validatingwebhookconfigurations:another", false, false),
        ("list /pods", false, true),
        ("create /pods/binding", false, true),
        ("create /pods/eviction", false, true),
        ("patch /pods/status", false, true),
        ("patch /nodes", false, true),
        ("create events.k8s.io/events", true, true),
        ("patch events.k8s.io/events", false, true),
        ("update coordination.k8s.io/leases:berth", false, true),
        ("write berth.dev/assignments", false, true),
        ("create authentication.k8s.io/tokenreviews", false, true),
        ("create authorization.k8s.io/subjectaccessreviews", false, true),
        ("delete /pods", false, true),
        ("patch resource.k8s.io/resourceclaims/status", false, true),
        ("patch resource.k8s.io/resourceclaims/binding", false, true),
        ("watch /configmaps:gpu-shared-resource-templates", false, true),
        ("list /configmaps", false, false),
        ("update /configmaps:berth-usage", false, true),
        ("update /configmaps:berth", false, false),
        ("patch /pods", false, false),
        ("create /pods", false, false),
    ];
    for (what, by_webhook, by_binder) in cases {
        assert_eq!(may(&client, APART, WEBHOOK, what).await, by_webhook, "webhook: {what}");
        assert_eq!(may(&client, APART, BINDER, what).await, by_binder, "binder: {what}");
    }
    // The role names one ConfigMap: a list is allowed as the binder asks for it, and no other.
    let config_maps: Api<core::ConfigMap> = Api::all(plane.client(BINDER));
    let only = ListParams::default().fields(berth::dialect::koordinator::templates::FIELDS);
    assert_eq!(config_maps.list(&only).await.unwrap().items.len(), 0);
    assert!(config_maps.list(&ListParams::default()).await.is_err());
    assert!(webhook.stop().await.success());
    assert!(binder.stop().await.success());
    assert_eq!(fleet.violations(), []);
}

#[tokio::test]
async fn a_shadow_runs_with_rights_to_read_alone() {
    let account = Identity::service_account(NAMESPACE, "berth-shadow");
    let Some(plane) = ControlPlane::start(Options { identities: vec![account], ..Options::default() }).await
    else {
        return;
    };
    let client = plane.admin();
    let args = ManifestsArgs { shadow: true, ..ManifestsArgs::default() };
    apply_manifests(&client, free_address(), args).await;
    let fleet = cluster(&client).await;
    let address = free_address();
    let shadow = Replica::start_as(&plane, SHADOW, "shadow", address, &["--shadow", "--shadow-settle", "1s"]);
    let mut waiting = share("one");
    waiting.spec.as_mut().unwrap().scheduler_name = Some("hami-scheduler".to_owned());
    let pods: Api<core::Pod> = Api::default_namespaced(client.clone());
    pods.create(&PostParams::default(), &waiting).await.unwrap();
    let reported = async {
        let mut again = tokio::time::interval(Duration::from_millis(100));
        loop {
            again.tick().await;
            // It does not listen yet at first.
            if let Ok((200, page)) = try_ask(address, "/debug/shadow", None).await
                && page["leftPending"] == 1
            {
                return page;
            }
        }
    };
    let page = tokio::time::timeout(LIMIT, reported).await.expect("the pod is told in time");
    assert_eq!(page["divergences"][0]["berth"]["node"], "gpu-1");
    for what in ["list /pods", "watch /nodes", "list /resourcequotas", "list /persistentvolumeclaims"] {
        assert!(may(&client, APART, SHADOW, what).await, "{what}");
    }
    for what in [
        "create /pods/binding",
        "create /pods/eviction",
        "patch /pods/status",
        "patch /nodes",
        "patch /persistentvolumes",
        "create events.k8s.io/events",
        "create coordination.k8s.io/leases",
        "create authentication.k8s.io/tokenreviews",
        "create /secrets",
        "write berth.dev/assignments",
    ] {
        assert!(!may(&client, APART, SHADOW, what).await, "{what}");
    }
    let pod = pods.get("one").await.unwrap();
    assert_eq!(pod.status.unwrap().conditions, None, "nothing is written to the pod");
    assert!(shadow.stop().await.success());
    assert_eq!(fleet.violations(), []);
}
