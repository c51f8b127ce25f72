//! The API for those who look at the cluster, on a real API server with its authentication and RBAC.

use std::{net::SocketAddr, time::Duration};

use berth::cli::manifests::ManifestsArgs;
use http_body_util::BodyExt as _;
use k8s_openapi::api::{
    core::v1 as core,
    rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{LIMIT, cluster, share, try_ask, until};
use crate::support::{
    controlplane::{ControlPlane, Options},
    identity::Identity,
    installed::{ACCOUNT, NAMESPACE, Replica, apply_manifests, free_address},
};

/// May list the pods of team-a.
pub(super) const ADA: &str = "ada";
/// May nothing.
pub(super) const EVE: &str = "eve";
/// May list all pods.
pub(super) const OPS: &str = "ops";

pub(super) fn token(user: &str) -> String {
    Identity::new(user, &[]).token()
}

/// Makes both namespaces, and lets the users list what they may.
pub(super) async fn teams(client: &Client) {
    let namespaces: Api<core::Namespace> = Api::all(client.clone());
    for team in ["team-a", "team-b"] {
        let labels = json!({"berth.dev/admission": "enabled"});
        let namespace =
            serde_json::from_value(json!({"metadata": {"name": team, "labels": labels}})).unwrap();
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    }
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]);
    let role = serde_json::from_value(json!({"metadata": {"name": "looks"}, "rules": rules})).unwrap();
    let granted: Api<ClusterRole> = Api::all(client.clone());
    granted.create(&PostParams::default(), &role).await.unwrap();
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "looks"});
    let binding = |user: &str| {
        let user = json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user});
        json!({"metadata": {"name": "looks"}, "roleRef": role, "subjects": [user]})
    };
    let in_team: Api<RoleBinding> = Api::namespaced(client.clone(), "team-a");
    in_team.create(&PostParams::default(), &serde_json::from_value(binding(ADA)).unwrap()).await.unwrap();
    let everywhere: Api<ClusterRoleBinding> = Api::all(client.clone());
    everywhere.create(&PostParams::default(), &serde_json::from_value(binding(OPS)).unwrap()).await.unwrap();
}

pub(super) async fn create(client: &Client, namespace: &str, name: &str, memory: &str) {
    let mut pod = share(name);
    let limits = &mut pod.spec.as_mut().unwrap().containers[0].resources.as_mut().unwrap().limits;
    let memory = serde_json::from_value(json!(memory)).unwrap();
    limits.as_mut().unwrap().insert("nvidia.com/gpumem".to_owned(), memory);
    let pods: Api<core::Pod> = Api::namespaced(client.clone(), namespace);
    until("the webhook answers", async || pods.create(&PostParams::default(), &pod).await.ok()).await;
}

/// Whether pods `one` and `two` are bound, which hold their shares before.
pub(super) async fn both_are_bound(address: SocketAddr) -> Option<()> {
    for pod in ["team-a/pods/one", "team-b/pods/two"] {
        let path = format!("/api/v1/namespaces/{pod}");
        let (_, told) = try_ask(address, &path, Some(token(OPS))).await.ok()?;
        if told["outcome"] != "Bound" {
            return None;
        }
    }
    Some(())
}

#[tokio::test]
async fn whoever_looks_sees_all_amounts_and_pods_of_her_namespaces_by_name() {
    let account = Identity::service_account(NAMESPACE, "berth");
    let users = [ADA, EVE, OPS].map(|user| Identity::new(user, &[]));
    let identities = std::iter::once(account).chain(users).collect();
    let Some(plane) = ControlPlane::start(Options { identities, ..Options::default() }).await else { return };
    let client = plane.admin();
    let address = free_address();
    apply_manifests(&client, address, ManifestsArgs::default()).await;
    let fleet = cluster(&client).await;
    teams(&client).await;
    let replica = Replica::start_as(&plane, ACCOUNT, "first", address, &[]);
    let get = async |user: &str, path: &str| {
        try_ask(address, &format!("/api/v1{path}"), Some(token(user))).await.unwrap()
    };
    create(&client, "team-a", "one", "1000").await;
    create(&client, "team-b", "two", "3000").await;
    create(&client, "team-a", "large", "20000").await;
    create(&client, "team-b", "larger", "30000").await;
    let settled = async || {
        both_are_bound(address).await?;
        let (status, fleet) = get(OPS, "/fleet").await;
        let told = fleet["waiting"]["reasons"] == json!([{"reason": "CardInsufficientMemory", "pods": 2}]);
        (status == 200 && told).then_some(fleet)
    };
    let seen = until("two pods are bound, and two wait", settled).await;
    assert_eq!(seen["viewer"], json!({"user": OPS, "sees": "all"}));
    assert_eq!(seen["leads"], true);
    let card = &seen["nodes"][0]["cards"][0];
    let (one, two) = (
        json!({"namespace": "team-a", "pod": "one", "memory": 1000, "cores": 0}),
        json!({"namespace": "team-b", "pod": "two", "memory": 3000, "cores": 0}),
    );
    assert_eq!(unstarted(card), json!([one, two]));
    assert_eq!((&card["memoryUsed"], &card["memory"]), (&json!(4000), &json!(16384)));
    assert_eq!(seen["models"][0]["fits"][0]["cards"], 1);

    let theirs = json!({"others": 1, "memory": 3000, "cores": 0});
    let (_, shown) = get(ADA, "/fleet").await;
    assert_eq!(unstarted(&shown["nodes"][0]["cards"][0]), json!([one, theirs]));
    assert_eq!(shown["viewer"], json!({"user": ADA, "sees": "some"}));
    let (_, hidden) = get(EVE, "/fleet").await;
    let both = json!([{"others": 2, "memory": 4000, "cores": 0}]);
    assert_eq!(hidden["nodes"][0]["cards"][0]["shares"], both);
    assert_eq!(hidden["models"], seen["models"]);
    for path in ["/fleet", "/queue", "/nodes/gpu-1", "/cards/GPU-gpu-1-0", "/fits", "/top", "/moves"] {
        let page = get(EVE, path).await.1.to_string();
        assert!(!page.contains("team-") && !page.contains("large"), "{path}: {page}");
    }
    the_pages_are_of_her_namespaces(&get).await;
    moves_and_usage_are_told_by_rights(&get).await;
    strangers_are_told_nothing(address).await;
    a_change_is_told(&client, address).await;

    let beside = free_address();
    let second = Replica::start_as(&plane, ACCOUNT, "second", beside, &[]);
    let follows = async || {
        let (status, fleet) = try_ask(beside, "/api/v1/fleet", Some(token(OPS))).await.ok()?;
        (status == 200).then_some(fleet)
    };
    let followed = until("the second replica answers", follows).await;
    assert_eq!(
        (&followed["leads"], &followed["nodes"]),
        (&json!(false), &get(OPS, "/fleet").await.1["nodes"])
    );
    let stored = try_ask(beside, "/api/v1/usage", Some(token(OPS))).await.unwrap();
    assert_eq!(stored.0, 200, "a replica that stands by tells what is stored: {}", stored.1);
    let moves = try_ask(beside, "/api/v1/moves", Some(token(OPS))).await.unwrap();
    assert_eq!((moves.0, &moves.1["frees"]["wholeGpus"]), (200, &json!(0)), "{}", moves.1);
    assert!(second.stop().await.success());
    assert!(replica.stop().await.success());
    assert_eq!(fleet.violations(), []);
}

/// The shares of a card, without when their pods were started.
fn unstarted(card: &Value) -> Value {
    let mut shares = card["shares"].clone();
    for share in shares.as_array_mut().unwrap() {
        share.as_object_mut().unwrap().remove("since");
    }
    shares
}

/// Of pods that wait, and of what else there is to see.
async fn the_pages_are_of_her_namespaces(get: &impl AsyncFn(&str, &str) -> (u16, Value)) {
    let (status, large) = get(ADA, "/namespaces/team-a/pods/large").await;
    assert_eq!((status, &large["outcome"]), (200, &json!("Waiting")), "{large}");
    assert_eq!(large["queue"], json!({"position": 1, "of": 2}));
    assert_eq!(large["asks"], "1 x 20000 MiB, 0 %");
    assert_eq!(large["nodes"][0]["reasons"], json!([{"reason": "CardInsufficientMemory", "by": 7616}]));
    assert_eq!((&large["fitting"], &large["nearest"]["node"]), (&json!(0), &json!("gpu-1")));
    assert!(large["message"].as_str().unwrap().starts_with("0/1 nodes are available"), "{large}");
    let (status, found) = get(ADA, "/namespaces/team-a/pods/large/change").await;
    let change: Vec<_> = ["limits", "requests"]
        .map(|part| format!("spec.containers[0].resources.{part}[nvidia.com/gpumem]"))
        .map(|field| json!({"field": field, "from": "20k", "to": "12384"}))
        .into();
    assert_eq!((status, &found["change"]), (200, &json!(change)), "{found}");
    assert_eq!(large["history"][0]["reasons"], json!(["CardInsufficientMemory"]), "{large}");
    for (path, status) in [
        ("/top?namespace=team-a", 200),
        ("/top?namespace=team-b", 403),
        ("/namespaces/team-a/pods/one/change", 404),
        ("/namespaces/team-a/pods/large%2Flog/change", 404),
        ("/namespaces/team-b/pods/larger/change", 403),
    ] {
        assert_eq!(get(ADA, path).await.0, status, "{path}");
    }
    let (_, held) = get(ADA, "/namespaces/team-a/pods/one").await;
    assert_eq!((&held["outcome"], &held["node"]), (&json!("Bound"), &json!("gpu-1")), "{held}");
    assert_eq!(held["holds"][0]["card"], "GPU-gpu-1-0");
    let (status, refused) = get(ADA, "/namespaces/team-b/pods/two").await;
    let message = "pods is forbidden: User \"ada\" cannot list resource \"pods\" in API group \"\" in the namespace \"team-b\"";
    assert_eq!((status, &refused["message"]), (403, &json!(message)));
    // Whether there is such a namespace is not told either.
    for path in ["/namespaces/team-b", "/namespaces/nowhere", "/namespaces/nowhere/pods/none"] {
        assert_eq!(get(ADA, path).await.0, 403, "{path}");
    }
    assert_eq!(get(ADA, "/namespaces/team-a/pods/none").await.0, 404);
    let (_, team) = get(ADA, "/namespaces/team-a").await;
    let names: Vec<_> = team["pods"].as_array().unwrap().iter().map(|pod| &pod["name"]).collect();
    assert_eq!(names, ["large", "one"]);
    let (_, queue) = get(ADA, "/queue").await;
    assert_eq!((&queue["of"], &queue["pods"][0]["pod"]), (&json!(2), &json!("large")), "{queue}");
    assert_eq!(
        (&queue["pods"][1]["pod"], &queue["pods"][1]["asks"]),
        (&Value::Null, &json!("1 x 30000 MiB, 0 %"))
    );
    let (_, node) = get(EVE, "/nodes/gpu-1").await;
    assert_eq!(node["cards"][0]["id"], "GPU-gpu-1-0");
    let cpu = node["resources"].as_array().unwrap().iter().find(|row| row["resource"] == "cpu");
    assert_eq!(cpu.unwrap()["allocatable"], "8");
    assert_eq!(get(EVE, "/nodes/none").await.0, 404);
    assert_eq!(get(EVE, "/cards/GPU-gpu-1-0").await.1["node"], "gpu-1");
    let (_, fits) = get(EVE, "/fits").await;
    let half = fits["sizes"].as_array().unwrap().iter().find(|size| size["request"]["memoryPercent"] == 50.0);
    assert_eq!(half.unwrap()["fits"], 1, "{fits}");
}

/// Which pods to move, and what was used: amounts for all, and names of her own namespaces.
async fn moves_and_usage_are_told_by_rights(get: &impl AsyncFn(&str, &str) -> (u16, Value)) {
    for user in [ADA, EVE, OPS] {
        let (status, moves) = get(user, "/moves").await;
        let kept: u64 = moves["unmovable"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
        assert_eq!((status, &moves["moves"], kept), (200, &json!([]), 2), "{user}: {moves}");
    }
    for (path, status) in
        [("/moves?free=0", 400), ("/moves?apply=1", 400), ("/moves?node=none", 404), ("/usage?by=pod", 400)]
    {
        assert_eq!(get(ADA, path).await.0, status, "{path}");
    }
    let stored = async || {
        let (status, usage) = get(OPS, "/usage").await;
        (status == 200 && usage["usage"].as_array()?.len() == 2).then_some(usage)
    };
    let stored = async {
        let mut again = tokio::time::interval(Duration::from_millis(500));
        loop {
            again.tick().await;
            if let Some(usage) = stored().await {
                return usage;
            }
        }
    };
    // The leader counts once a minute.
    let all = tokio::time::timeout(2 * LIMIT, stored).await.expect("what both pods have used is stored");
    assert_eq!(all["by"], "namespace");
    let (_, some) = get(ADA, "/usage").await;
    let rows = some["usage"].as_array().unwrap();
    assert_eq!(
        (rows.len(), &rows[0]["namespace"], &rows[1]["others"]),
        (2, &json!("team-a"), &json!(1)),
        "{some}"
    );
    let (_, owners) = get(ADA, "/usage?by=owner").await;
    assert_eq!(
        (&owners["usage"][0]["ownerName"], &owners["usage"][1]["others"]),
        (&json!("one"), &json!(1)),
        "{owners}"
    );
    let (_, none) = get(EVE, "/usage").await;
    assert_eq!(none["usage"][0]["others"], 2, "{none}");
    assert!(!none.to_string().contains("team-"), "{none}");
    assert_eq!(get(OPS, "/usage?by=label=rack").await.0, 404);
}

async fn strangers_are_told_nothing(address: SocketAddr) {
    for path in ["/api/v1/fleet", "/api/v1/changes", "/api/v1/namespaces/team-a/pods/one"] {
        assert_eq!(try_ask(address, path, None).await.unwrap().0, 401, "{path}");
        let wrong = Some("no-such-token".to_owned());
        assert_eq!(try_ask(address, path, wrong).await.unwrap().0, 401, "{path}");
    }
}

/// By the stream; and what has changed is asked for by its version. The token comes as a proxy lets it through.
async fn a_change_is_told(client: &Client, address: SocketAddr) {
    let mut config = kube::Config::new(format!("https://{address}").parse().unwrap());
    config.accept_invalid_certs = true;
    let asks = Client::try_from(config).unwrap();
    let request = |path: &str| {
        let request = http::Request::get(path).header("X-Berth-Token", token(OPS));
        request.body(kube::client::Body::empty()).unwrap()
    };
    let mut stream = asks.send(request("/api/v1/changes")).await.unwrap();
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let mut next = async || {
        let frame = tokio::time::timeout(LIMIT, stream.frame()).await.expect("an event comes in time");
        let text = String::from_utf8(frame.unwrap().unwrap().into_data().unwrap().to_vec()).unwrap();
        let data = text.strip_prefix("event: change\ndata: ").unwrap_or_else(|| panic!("{text}"));
        serde_json::from_str::<Value>(data).unwrap()["version"].as_str().unwrap().to_owned()
    };
    let version = next().await;
    let since = format!("/api/v1/fleet?since={version}");
    let asked = async |path: &str| {
        let body = asks.send(request(path)).await.unwrap().into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice::<Value>(&body).unwrap()
    };
    let unchanged = asked(&since).await;
    assert_eq!((&unchanged["nodes"], &unchanged["nodesInAll"]), (&json!([]), &json!(1)), "{unchanged}");
    let nodes: Api<core::Node> = Api::all(client.clone());
    let cordon = Patch::Merge(json!({"spec": {"unschedulable": true}}));
    nodes.patch("gpu-1", &PatchParams::default(), &cordon).await.unwrap();
    let mut cordoned = async || {
        next().await;
        let changed = asked(&since).await;
        (changed["nodes"][0]["closed"] == json!(["cordoned"])).then_some(changed)
    };
    tokio::time::timeout(LIMIT, async { while cordoned().await.is_none() {} }).await.expect("it is told");
    // A version of another process means nothing here.
    let whole = asked("/api/v1/fleet?since=another-1").await;
    assert_eq!((whole["nodes"].as_array().unwrap().len(), &whole["nodesInAll"]), (1, &Value::Null));
}
