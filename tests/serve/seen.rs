//! The commands that look at a cluster, for users who may see a part of it: they ask Berth's API behind the API server.

use std::{
    io::{BufRead as _, BufReader},
    net::{IpAddr, SocketAddr, UdpSocket},
    path::Path,
    process::{Child, Command, Stdio},
};

use berth::cli::manifests::ManifestsArgs;
use http::Request;
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1 as core;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    client::Body,
};
use serde_json::{Value, json};
use tokio::runtime::Handle;

#[path = "../page/browser.rs"]
#[allow(dead_code, reason = "the page's own tests use the rest")]
mod browser;

use super::{
    LIMIT,
    api::{ADA, EVE, OPS, both_are_bound, create, teams, token},
    cluster, try_ask, until,
};
use crate::support::{
    build,
    controlplane::{ControlPlane, Options, absent},
    identity::Identity,
    installed::{ACCOUNT, NAMESPACE, Replica, apply_manifests, call, free_address, printed},
    objects,
};

/// An address of this machine by which the API server reaches what it takes for a pod: it refuses loopback addresses.
fn reachable() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent: the route alone is looked up.
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|address| !address.is_loopback())
}

/// What stands in a cluster between the Service and the processes: a pod, and the ports on which they listen.
async fn endpoints(client: &Client, ip: IpAddr, ports: [u16; 2]) {
    let ip = ip.to_string();
    let restricted = json!({
        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": true,
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    let container = json!({"name": "berth", "image": "none", "securityContext": restricted});
    let metadata = |name: &str| json!({"name": name, "namespace": NAMESPACE});
    objects::create(client, &json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata("berth-0"), "spec": {"containers": [container]},
        "status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]},
    }))
    .await;
    let target = json!({"kind": "Pod", "name": "berth-0", "namespace": NAMESPACE});
    let address = json!([{"ip": ip, "targetRef": target}]);
    let subset = |port: u16| json!({"addresses": address, "ports": [{"name": "webhook", "port": port}]});
    objects::create(
        client,
        &json!({
            "apiVersion": "v1", "kind": "Endpoints", "metadata": metadata("berth-api"),
            "subsets": ports.map(subset),
        }),
    )
    .await;
}

/// Lets users ask, by the command of docs/api.md.
async fn viewers(client: &Client, users: &[&str]) {
    let group = "rbac.authorization.k8s.io";
    let user = |name: &&str| json!({"kind": "User", "apiGroup": group, "name": name});
    objects::create(
        client,
        &json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
            "metadata": {"name": "berth-viewers", "namespace": NAMESPACE},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "berth:viewer"},
            "subjects": users.iter().map(user).collect::<Vec<_>>(),
        }),
    )
    .await;
}

/// Runs the program with a kubeconfig.
fn run(kubeconfig: &Path, args: &[&str]) -> std::process::Output {
    call(&[args, &["--kubeconfig", kubeconfig.to_str().unwrap()]].concat())
}

/// The JSON that a call prints.
fn said(kubeconfig: &Path, args: &[&str]) -> Value {
    let output = run(kubeconfig, &[args, &["-o", "json"]].concat());
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    printed(&output)
}

fn table(kubeconfig: &Path, args: &[&str]) -> String {
    let output = run(kubeconfig, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What a call says that can't answer.
fn refused(kubeconfig: &Path, args: &[&str]) -> String {
    let output = run(kubeconfig, args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_with_rights_in_one_namespace_is_told_all_of_her_pods_and_amounts_of_the_rest() {
    let Some(ip) = reachable() else {
        return absent("an address of this machine that is no loopback address", "there is no route");
    };
    let account = Identity::service_account(NAMESPACE, "berth");
    let users = [ADA, EVE, OPS].map(|user| Identity::new(user, &[]));
    let identities = std::iter::once(account).chain(users).collect();
    let Some(plane) = ControlPlane::start(Options { identities, ..Options::default() }).await else { return };
    let client = plane.admin();
    let address = free_address();
    apply_manifests(&client, address, ManifestsArgs::default()).await;
    let fleet = cluster(&client).await;
    teams(&client).await;
    let everywhere = |port: u16| SocketAddr::new("0.0.0.0".parse().unwrap(), port);
    let replica = Replica::start_as(&plane, ACCOUNT, "first", everywhere(address.port()), &[]);
    create(&client, "team-a", "one", "1000").await;
    create(&client, "team-b", "two", "3000").await;
    let other = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other", "namespace": "team-a"},
        "spec": {"schedulerName": "other", "containers": [{"name": "main", "image": "none"}]},
    });
    objects::create(&client, &other).await;
    // A replica that stands by answers too, and knows less.
    let beside = free_address();
    let second = Replica::start_as(&plane, ACCOUNT, "second", everywhere(beside.port()), &[]);
    endpoints(&client, ip, [address.port(), beside.port()]).await;
    viewers(&client, &[ADA, EVE]).await;
    let fleet_of = async |address: SocketAddr| {
        let (status, fleet) = try_ask(address, "/api/v1/fleet", Some(token(OPS))).await.ok()?;
        (status == 200).then_some(fleet)
    };
    let shares =
        |fleet: &Value| fleet["nodes"][0]["cards"][0]["shares"].as_array().cloned().unwrap_or_default();
    until("two pods are bound", async || both_are_bound(address).await).await;
    create(&client, "team-a", "large", "20000").await;
    create(&client, "team-b", "larger", "30000").await;
    let told = async || {
        let reasons = &fleet_of(address).await?["waiting"]["reasons"];
        (*reasons == json!([{"reason": "CardInsufficientMemory", "pods": 2}])).then_some(())
    };
    until("two wait", told).await;
    // As a kubelet does, which the simulated node is not.
    for (namespace, name) in [("team-a", "one"), ("team-b", "two")] {
        let pods: Api<core::Pod> = Api::namespaced(client.clone(), namespace);
        let started = Patch::Merge(json!({"status": {"startTime": "2026-01-01T00:00:00Z"}}));
        pods.patch_status(name, &PatchParams::default(), &started).await.unwrap();
    }
    for replica in [address, beside] {
        let started = async || {
            let shares = shares(&fleet_of(replica).await?);
            (shares.len() == 2 && shares.iter().all(|share| share["since"].is_string())).then_some(())
        };
        until("both are known to have started", started).await;
    }
    let [admin, ada, eve, ops] = ["admin", ADA, EVE, OPS].map(|user| plane.kubeconfig(user));

    a_pod_that_waits_is_explained(&admin, &ada);
    pods_that_do_not_wait_are_told(&ada);
    all_cards_are_told_with_the_pods_that_she_may_see(&admin, &ada, &eve);
    where_pods_would_go_is_told(&plane, &admin, &ada);
    a_token_may_come_from_a_plugin(&plane, &ada);
    the_page_and_the_api_come_through_kubectl_proxy(&ada).await;
    what_is_missing_is_said(&plane, &ops, &ada);

    // At an address of its own, without the API server.
    let server = format!("https://{address}");
    let args =
        ["why", "-n", "team-a", "large", "--berth-server", &server, "--token", &token(ADA), "-o", "json"];
    let output = call(&args);
    assert_eq!(printed(&output)["queue"], json!({"position": 1, "of": 2}));
    the_page_works_in_a_browser_behind_kubectl_proxy(&client, &ada).await;
    assert!(second.stop().await.success());
    assert!(replica.stop().await.success());
    assert_eq!(fleet.violations(), []);
}

/// As from the objects, and with what the replica that leads knows.
fn a_pod_that_waits_is_explained(admin: &Path, ada: &Path) {
    let why = ["why", "-n", "team-a", "large"];
    let told = said(ada, &why);
    assert_eq!(
        (&told["outcome"], &told["queue"]),
        (&json!("Waiting"), &json!({"position": 1, "of": 2})),
        "{told}"
    );
    assert!(told["attempts"].as_u64().is_some_and(|attempts| attempts > 0), "{told}");
    let history = told["history"].as_array().unwrap();
    assert_eq!((history.len(), &history[0]["reasons"]), (1, &json!(["CardInsufficientMemory"])), "{told}");
    assert!(history[0]["message"].as_str().unwrap().starts_with("0/1 nodes are available"), "{told}");
    assert!(history[0]["first"].as_str() <= history[0]["last"].as_str(), "{told}");
    let by_objects = said(admin, &why);
    for key in ["namespace", "name", "since", "queue", "message", "fitting", "nodes", "nearest", "change"] {
        assert_eq!(told[key], by_objects[key], "{key}: {told} {by_objects}");
    }
    for _ in 0..5 {
        assert_eq!(said(ada, &why)["history"].as_array().map(Vec::len), Some(1), "whichever replica answers");
    }
    assert_eq!(by_objects["attempts"], Value::Null);
    let events = by_objects["history"].as_array().unwrap();
    assert_eq!((events.len(), &events[0]["message"]), (1, &history[0]["message"]), "{by_objects}");
    assert_eq!(said(ada, &[&why[..], &["--through", "api"]].concat())["nodes"], told["nodes"]);
    let patch = |kubeconfig| printed(&run(kubeconfig, &[&why[..], &["-o", "patch"]].concat()));
    assert_eq!(patch(ada), patch(admin));
    let shown = table(ada, &why);
    for line in
        ["Queue: 1 of 2, tried ", "CardInsufficientMemory (7616)", "TRIES   FIRST", "It would fit with"]
    {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}

fn pods_that_do_not_wait_are_told(ada: &Path) {
    let bound = said(ada, &["why", "-n", "team-a", "one"]);
    assert_eq!((&bound["outcome"], &bound["node"]), (&json!("Bound"), &json!("gpu-1")), "{bound}");
    assert_eq!(said(ada, &["why", "-n", "team-a", "other"])["outcome"], "NotOurs");
    let none = refused(ada, &["why", "-n", "team-a", "none"]);
    assert!(none.contains("pod none not found in namespace team-a"), "{none}");
    let strange = refused(ada, &["why", "-n", "team-a", "../larger"]);
    assert!(strange.contains("not found"), "{strange}");
    let theirs = refused(ada, &["why", "-n", "team-b", "larger"]);
    assert!(theirs.contains("User \"ada\" cannot list resource \"pods\""), "{theirs}");
}

fn all_cards_are_told_with_the_pods_that_she_may_see(admin: &Path, ada: &Path, eve: &Path) {
    let (all, seen, none) = (said(admin, &["who"]), said(ada, &["who"]), said(eve, &["who"]));
    let holders = |answer: &Value| answer["nodes"][0]["cards"][0]["holders"].clone();
    let (one, others) = (holders(&all)[0].clone(), json!({"others": 1, "memory": 3000, "cores": 0}));
    assert_eq!(one["name"], "one");
    assert_eq!(holders(&seen), json!([one, others]), "{seen}");
    assert_eq!(holders(&none), json!([{"others": 2, "memory": 4000, "cores": 0}]));
    let without = |mut answer: Value| {
        let card = answer["nodes"][0]["cards"][0].as_object_mut().unwrap();
        for key in ["holders", "pods"] {
            card.remove(key);
        }
        answer
    };
    assert_eq!(without(seen), without(all));
    let shown = table(ada, &["who", "GPU-gpu-1-0"]);
    assert!(shown.contains("team-a/one") && shown.contains("(1 other)"), "{shown}");
    for args in [&["fits"][..], &["top"], &["top", "models"]] {
        assert_eq!(said(eve, args), said(admin, args), "{args:?}");
    }
    for args in [&["fits", "-o", "wide"][..], &["top", "-o", "wide"]] {
        assert_eq!(table(eve, args), table(admin, args), "{args:?}");
    }
    let (all, seen) = (said(admin, &["top", "namespaces"]), said(ada, &["top", "namespaces"]));
    let rows = seen["namespaces"].as_array().unwrap();
    assert_eq!(rows[0], all["namespaces"][0], "{seen}");
    assert_eq!(
        (rows.len(), &rows[1]["namespace"], &rows[1]["others"]),
        (2, &Value::Null, &json!(1)),
        "{seen}"
    );
    for key in ["pods", "waiting", "gpus", "memory", "memoryUsed", "slotsUsed"] {
        assert_eq!(rows[1][key], all["namespaces"][1][key], "{key}");
    }
    let own = ["top", "-n", "team-a"];
    assert_eq!(said(ada, &own), said(admin, &own));
    assert!(refused(eve, &own).contains("cannot list resource \"pods\""));
}

fn what_if<'a>(path: &'a str, change: &[&'a str]) -> Vec<&'a str> {
    [&["what-if", "-f", path][..], change].concat()
}

/// As from the objects, with the pods that she may see.
fn where_pods_would_go_is_told(plane: &ControlPlane, admin: &Path, ada: &Path) {
    let file = plane.directory().join("asked.json");
    let pod = |kind: &str, spec: Value| {
        let metadata = json!({"name": "asked", "namespace": "team-a"});
        json!({"apiVersion": if kind == "Pod" { "v1" } else { "batch/v1" }, "kind": kind, "metadata": metadata, "spec": spec})
    };
    let limits = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "14000"});
    let spec = json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "none", "resources": {"limits": limits}}]});
    let path = file.to_str().unwrap();
    for asked in [
        pod("Pod", spec.clone()),
        pod("Job", json!({"completions": 2, "parallelism": 2, "template": {"spec": spec}})),
    ] {
        std::fs::write(&file, asked.to_string()).unwrap();
        for change in [
            &[][..],
            &["--without", "team-a/one"],
            &["--add-nodes", "2", "--like", "gpu-1"],
            &["--cordon", "gpu-1"],
            &["--priority", "1000"],
        ] {
            let args = what_if(path, change);
            let (all, told) = (said(admin, &args), said(ada, &args));
            let pods = |answer: &Value| -> Vec<Value> {
                let pods = answer["pods"].as_array().unwrap().iter();
                let of = |pod: &Value| {
                    json!([
                        pod["namespace"],
                        pod["name"],
                        pod["outcome"],
                        pod["node"],
                        pod["message"],
                        pod["nearest"]
                    ])
                };
                pods.map(of).collect()
            };
            assert_eq!(pods(&told), pods(&all), "{args:?}");
            let cards = |answer: &Value| {
                let mut nodes = answer["nodes"].clone();
                for card in nodes
                    .as_array_mut()
                    .unwrap()
                    .iter_mut()
                    .flat_map(|node| node["cards"].as_array_mut().unwrap())
                {
                    card.as_object_mut()
                        .unwrap()
                        .retain(|key, _| !["pods", "others"].contains(&key.as_str()));
                }
                nodes
            };
            assert_eq!(cards(&told), cards(&all), "{args:?}");
            assert!(!told.to_string().contains("team-b"), "{args:?}: {told}");
        }
    }
    let card = |answer: &Value| answer["nodes"][0]["cards"][0].clone();
    let told = card(&said(ada, &what_if(path, &["--cordon", "gpu-1"])));
    assert_eq!((&told["pods"], &told["others"]), (&json!(["team-a/one"]), &json!(1)), "{told}");
    let shown = table(ada, &what_if(path, &["--add-nodes", "2", "--like", "gpu-1"]));
    assert!(shown.contains("Bound") && shown.contains("gpu-1-added-1"), "{shown}");
    for (without, said) in
        [("team-b/two", "pods \"team-b/two\" not found"), ("team-b/none", "pods \"team-b/none\" not found")]
    {
        let refused = refused(ada, &what_if(path, &["--without", without]));
        assert!(refused.contains(said), "{refused}");
    }
    let daemons = pod("Pod", json!({"containers": []})).to_string().replace("\"Pod\"", "\"ConfigMap\"");
    std::fs::write(&file, daemons).unwrap();
    let none = refused(ada, &what_if(path, &["--through", "api"]));
    assert!(none.contains("there is no pod"), "{none}");
}

/// The user of a kubeconfig may have no token of its own but a program that prints one.
fn a_token_may_come_from_a_plugin(plane: &ControlPlane, ada: &Path) {
    let mut kubeconfig: Value = serde_json::from_str(&std::fs::read_to_string(ada).unwrap()).unwrap();
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": token(ADA)},
    });
    let printed = plane.directory().join("credential.json");
    std::fs::write(&printed, credential.to_string()).unwrap();
    let exec = |arguments: Value| {
        json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "interactiveMode": "Never",
            "args": arguments,
        }})
    };
    let mut told = |user: Value, file: &str| {
        kubeconfig["users"][0]["user"] = user;
        let path = plane.directory().join(file);
        std::fs::write(&path, kubeconfig.to_string()).unwrap();
        path
    };
    let plugged = told(exec(json!(["-c", "cat \"$0\"", printed])), "exec.kubeconfig");
    let args = ["why", "-n", "team-a", "large", "--through", "api"];
    assert_eq!(said(&plugged, &args)["nodes"], said(ada, &args)["nodes"]);
    let broken = told(exec(json!(["-c", "exit 3"])), "broken.kubeconfig");
    let failed = refused(&broken, &args);
    assert!(failed.contains("sh"), "the program is named: {failed}");
}

/// `kubectl proxy`, which ends when it is dropped.
struct Proxy(Child);

impl Proxy {
    /// Starts it, and waits until it says its address.
    fn start(kubectl: &Path, kubeconfig: &Path) -> (Self, String) {
        let args = ["--kubeconfig", kubeconfig.to_str().unwrap(), "proxy", "--port=0"];
        let mut child = Command::new(kubectl).args(args).stdout(Stdio::piped()).spawn().unwrap();
        let (mut said, output) = (String::new(), child.stdout.take().unwrap());
        let proxy = Self(child);
        BufReader::new(output).read_line(&mut said).unwrap();
        let address = said.trim().rsplit(' ').next().unwrap().to_owned();
        (proxy, address)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.0.kill().and_then(|()| self.0.wait()));
    }
}

/// The page, its scripts, the API and the stream of changes, as a browser gets them that talks to `kubectl proxy`.
async fn the_page_and_the_api_come_through_kubectl_proxy(ada: &Path) {
    let kubectl = match build::kubectl() {
        Ok(kubectl) => kubectl,
        Err(why) => return absent("kubectl", &why),
    };
    let (_proxy, address) = tokio::task::spawn_blocking({
        let ada = ada.to_owned();
        move || Proxy::start(&kubectl, &ada)
    })
    .await
    .unwrap();
    let client = Client::try_from(kube::Config::new(format!("http://{address}").parse().unwrap())).unwrap();
    let prefix = format!("/api/v1/namespaces/{NAMESPACE}/services/https:berth-api:443/proxy");
    let ask = async |request: http::request::Builder, body: String| {
        let request = request
            .header("content-type", "application/json")
            .header("X-Berth-Token", token(ADA))
            .body(Body::from(body.into_bytes()))
            .unwrap();
        client.send(request).await.unwrap()
    };
    let text = async |path: &str| {
        let response = ask(Request::get(format!("{prefix}{path}")), String::new()).await;
        assert_eq!(response.status(), 200, "{path}");
        let policy = response.headers().get("content-security-policy").cloned();
        let body = response.into_body().collect_bytes().await.unwrap();
        (policy, String::from_utf8(body.to_vec()).unwrap())
    };
    // What the page names, it names relative to itself, and the proxy leaves it so.
    let (policy, page) = text("/ui/").await;
    assert!(policy.is_some_and(|policy| policy.to_str().unwrap().contains("default-src 'none'")));
    assert_eq!(page, include_str!("../../src/api/page/index.html"));
    assert_eq!(text("/ui/main.js").await.1, include_str!("../../src/api/page/main.js"));
    let moved = ask(Request::get(format!("{prefix}/ui")), String::new()).await;
    assert_eq!(moved.status(), 308);
    let to = moved.headers()["location"].to_str().unwrap();
    assert!(to == "ui/" || to == format!("{prefix}/ui/"), "{to}");
    let fleet: Value = serde_json::from_str(&text("/api/v1/fleet").await.1).unwrap();
    assert_eq!(fleet["viewer"], json!({"user": ADA, "sees": "some"}));
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asked", "namespace": "team-a"},
        "spec": {"containers": [{"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}});
    let question = json!({"pods": [pod]}).to_string();
    let answer = ask(Request::post(format!("{prefix}/api/v1/what-if")), question).await;
    assert_eq!(answer.status(), 200);
    let mut changes = ask(Request::get(format!("{prefix}/api/v1/changes")), String::new()).await.into_body();
    let first = async {
        let mut said = String::new();
        while !said.contains("event: change") {
            let frame = changes.frame().await.expect("the stream goes on").unwrap();
            said.push_str(&String::from_utf8_lossy(&frame.into_data().unwrap_or_default()));
        }
    };
    tokio::time::timeout(LIMIT, first).await.expect("the proxies hold nothing back");
}

/// What the page shows in a browser that talks to `kubectl proxy`, how it follows the cluster, and where its links lead.
async fn the_page_works_in_a_browser_behind_kubectl_proxy(client: &Client, ada: &Path) {
    let Some(program) = browser::find() else {
        println!("NOT RUN: there is no Chromium, neither on the path nor as CHROMIUM names it");
        return;
    };
    let kubectl = match build::kubectl() {
        Ok(kubectl) => kubectl,
        Err(why) => return absent("kubectl", &why),
    };
    let (client, ada, runtime) = (client.clone(), ada.to_owned(), Handle::current());
    let looked = tokio::task::spawn_blocking(move || {
        let (_proxy, address) = Proxy::start(&kubectl, &ada);
        let mut browser = browser::Browser::start(&program);
        let mut page = browser.page();
        let path = format!("/api/v1/namespaces/{NAMESPACE}/services/https:berth-api:443/proxy/ui/");
        page.open(&format!("http://{address}{path}#token={}", token(ADA)));
        page.until("document.getElementById('state')?.dataset.state === 'live'");
        page.until("document.querySelector('.tower')?.ariaLabel.includes('team-a/one')");
        let click = |page: &mut browser::Page<'_>, to: &str| {
            let link = format!(
                "[...document.querySelectorAll('a')].find((link) => link.getAttribute('href') === '{to}')"
            );
            page.until(&format!("{link} !== undefined"));
            page.evaluate(&format!("{link}.click()"));
            page.until(&format!("document.body.dataset.shown === '{to}'"));
        };
        click(&mut page, "#/queue");
        runtime.block_on(create(&client, "team-a", "newcomer", "25000"));
        page.until("document.querySelector('main').innerText.includes('newcomer')");
        click(&mut page, "#/pods/team-a/newcomer");
        page.until("document.querySelector('main').innerText.includes('What would help')");
        assert_eq!(page.evaluate("location.pathname"), path, "no link leaves the prefix");
        let shown = page.evaluate("document.body.innerText");
        assert!(!shown.to_string().contains("team-b"), "{shown}");
        let faults = page.faults(&format!("http://{address}{}", path.trim_end_matches("ui/")));
        assert!(faults.is_empty(), "{faults:#?}");
    });
    looked.await.unwrap();
}

/// Rights, a token, or that the objects are to be read.
fn what_is_missing_is_said(plane: &ControlPlane, ops: &Path, ada: &Path) {
    let alone = refused(ops, &["who"]);
    for words in ["services/proxy", "berth:viewer", "can't ask Berth's API"] {
        assert!(alone.contains(words), "{words}: {alone}");
    }
    let objects = refused(ada, &["who", "--through", "objects"]);
    assert!(objects.contains("nodes is forbidden"), "{objects}");
    let past = refused(ada, &["who", "--at", "2026-01-01T00:00:00Z"]);
    assert!(past.contains("--at can't be given"), "{past}");
    let text = std::fs::read_to_string(ada).unwrap();
    let mut kubeconfig: Value = serde_json::from_str(&text).unwrap();
    kubeconfig["users"][0]["user"] = json!({});
    let nobody = plane.directory().join("nobody.kubeconfig");
    std::fs::write(&nobody, kubeconfig.to_string()).unwrap();
    let told = refused(&nobody, &["who"]);
    assert!(told.contains("nodes is forbidden") && told.contains("kubectl create token"), "{told}");
}
