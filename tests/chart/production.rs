//! What the chart offers beside the options of `berth manifests`: what people set in production.

use serde_json::{Value, json};

use crate::chart::{
    rendered::{Objects, helm},
    root, yaml,
};

/// What the chart renders with these values.
fn render(values: &[&str]) -> Option<Objects> {
    let arguments = ["template", "berth", "deploy/helm/berth", "--namespace", "gpu"];
    helm(&[&arguments[..], values].concat()).map(|outcome| outcome.objects())
}

/// The names of all objects that the second has and the first has not.
fn added<'a>(before: &Objects, after: &'a Objects) -> Vec<&'a str> {
    after.keys().filter(|name| !before.contains_key(*name)).map(String::as_str).collect()
}

#[test]
fn the_switches_of_monitoring_add_the_objects_of_the_folder() {
    let Some(plain) = render(&["--set", "split=false"]) else { return };
    let switches = "split=false,monitoring.monitor.enabled=true,monitoring.rules.enabled=true,monitoring.dashboard.enabled=true,\
                    monitoring.monitor.labels.release=prometheus,monitoring.monitor.endpoint.interval=30s";
    let objects = render(&["--set", switches]).unwrap();
    let expected = ["ConfigMap gpu/berth-dashboard", "PrometheusRule gpu/berth", "ServiceMonitor gpu/berth"];
    assert_eq!(added(&plain, &objects), expected);
    let monitor = &objects["ServiceMonitor gpu/berth"];
    assert_eq!(monitor["metadata"]["labels"]["release"], "prometheus");
    let endpoint = &monitor["spec"]["endpoints"][0];
    assert_eq!(endpoint["tlsConfig"]["serverName"], "berth.gpu.svc");
    assert_eq!((&endpoint["interval"], &endpoint["honorLabels"]), (&json!("30s"), &json!(true)));
    let rules = &objects["PrometheusRule gpu/berth"]["spec"];
    assert_eq!(*rules, yaml("deploy/monitoring/prometheusrule.yaml")["spec"]);
    let dashboard = objects["ConfigMap gpu/berth-dashboard"]["data"]["berth.json"].as_str().unwrap();
    let file = std::fs::read_to_string(root().join("deploy/monitoring/dashboard.json")).unwrap();
    assert_eq!(dashboard, file);
    // A binder stands behind no Service.
    for apart in ["split=true", "extender=true"] {
        let objects = render(&["--set", switches, "--set", apart]).unwrap();
        assert!(
            objects.contains_key("PodMonitor gpu/berth") && !objects.contains_key("ServiceMonitor gpu/berth")
        );
    }
    let shadow = render(&["--set", switches, "--set", "shadow=true"]).unwrap();
    let monitor = &shadow["ServiceMonitor gpu/berth-shadow"]["spec"];
    assert_eq!(monitor["selector"]["matchLabels"]["app.kubernetes.io/name"], "berth-shadow");
    assert_eq!(monitor["endpoints"][0]["port"], "https", "the port of the shadow's Service");
}

#[test]
fn one_value_makes_the_links_of_all_alerts_absolute() {
    let base = "https://docs.example/berth/runbooks";
    let setting = format!("monitoring.rules.enabled=true,monitoring.runbookUrl={base}/");
    let Some(objects) = render(&["--set", &setting]) else { return };
    let rules = objects["PrometheusRule gpu/berth"]["spec"]["groups"][0]["rules"].as_array().unwrap();
    assert!(rules.len() > 10, "{}", rules.len());
    for rule in rules {
        let name = rule["alert"].as_str().unwrap();
        assert_eq!(rule["annotations"]["runbook_url"], format!("{base}/{name}.html"));
        assert!(root().join(format!("docs/runbooks/{name}.md")).is_file(), "the book has the page");
    }
}

#[test]
fn a_network_policy_opens_one_port_to_the_peers_that_are_named() {
    let from = r#"networkPolicy.from=[{"ipBlock": {"cidr": "10.0.0.0/28"}}]"#;
    let Some(objects) = render(&["--set", "networkPolicy.enabled=true", "--set-json", from]) else { return };
    let policy = &objects["NetworkPolicy gpu/berth"]["spec"];
    let ingress = json!([{"ports": [{"port": 8443, "protocol": "TCP"}], "from": [{"ipBlock": {"cidr": "10.0.0.0/28"}}]}]);
    assert_eq!(policy["ingress"], ingress);
    assert_eq!(policy["podSelector"]["matchLabels"]["app.kubernetes.io/name"], "berth");
    let open = render(&["--set", "networkPolicy.enabled=true"]).unwrap();
    assert_eq!(open["NetworkPolicy gpu/berth"]["spec"]["ingress"][0].get("from"), None);
}

/// The rights and the queue of requests go with the account.
#[test]
fn an_account_of_another_name_has_the_rights() {
    let values = "serviceAccount.name=sharer,serviceAccount.annotations.example\\.com/role=gpu";
    for (apart, names) in
        [("split=false", vec!["sharer"]), ("split=true", vec!["sharer-binder", "sharer-webhook"])]
    {
        let Some(objects) = render(&["--set", values, "--set", apart]) else { return };
        let of_kind = |kind: &'static str| objects.values().filter(move |object| object["kind"] == kind);
        let accounts: Vec<_> =
            of_kind("ServiceAccount").map(|account| account["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!(accounts, names);
        assert!(
            of_kind("ServiceAccount")
                .all(|account| account["metadata"]["annotations"]["example.com/role"] == "gpu")
        );
        let subjects = of_kind("ClusterRoleBinding").chain(of_kind("RoleBinding"));
        let named = subjects.map(|binding| binding["subjects"][0]["name"].as_str().unwrap());
        let named: Vec<_> = named
            .chain(
                of_kind("Deployment")
                    .map(|pod| pod["spec"]["template"]["spec"]["serviceAccountName"].as_str().unwrap()),
            )
            .collect();
        assert!(named.len() > 5 && named.iter().all(|name| names.contains(name)), "{named:?}");
        let flow = of_kind("FlowSchema").next().unwrap();
        let subject = flow["spec"]["rules"][0]["subjects"][0]["serviceAccount"]["name"].as_str().unwrap();
        assert!(names.contains(&subject), "{subject}");
    }
}

#[test]
fn webhooks_follow_their_own_values_and_leave_further_namespaces_alone() {
    let overrides = "webhook.overrides.workload\\.berth\\.dev.timeoutSeconds=1,\
                     webhook.overrides.mutate\\.berth\\.dev.failurePolicy=Ignore,webhook.excludedNamespaces={monitoring,storage}";
    let Some(objects) = render(&["--set", overrides]) else { return };
    let excluded = json!(["kube-system", "gpu", "monitoring", "storage"]);
    let leaves_alone = |selector: &Value| {
        let requirements = selector["matchExpressions"].as_array().unwrap();
        requirements
            .iter()
            .any(|one| one["key"] == "kubernetes.io/metadata.name" && one["values"] == excluded)
    };
    let mut webhooks = 0;
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        for webhook in objects[&format!("{kind} /berth")]["webhooks"].as_array().unwrap() {
            webhooks += 1;
            let name = webhook["name"].as_str().unwrap();
            assert!(leaves_alone(&webhook["namespaceSelector"]), "{name}");
            let seconds = match name {
                "workload.berth.dev" => 1,
                "custom-workload.berth.dev" | "adopt.berth.dev" => 2,
                _ => 3,
            };
            assert_eq!(webhook["timeoutSeconds"], seconds, "{name}");
            let ignores = ["mutate.berth.dev", "adopt.berth.dev"].contains(&name)
                || name.ends_with("workload.berth.dev");
            assert_eq!(webhook["failurePolicy"], if ignores { "Ignore" } else { "Fail" }, "{name}");
        }
    }
    assert_eq!(webhooks, 6, "the schema lists each by its name");
    let backstop =
        &objects["ValidatingAdmissionPolicy /berth-backstop.berth.dev"]["spec"]["matchConstraints"];
    assert!(leaves_alone(&backstop["namespaceSelector"]), "{backstop}");
}

#[test]
fn another_issuer_takes_the_place_of_the_charts_own() {
    let values = "certManager.enabled=true,certManager.issuerRef.name=company,certManager.issuerRef.kind=ClusterIssuer";
    let Some(objects) = render(&["--set", values]) else { return };
    let made: Vec<_> =
        objects.keys().filter(|name| name.starts_with("Issuer") || name.starts_with("Certificate")).collect();
    assert_eq!(made, ["Certificate gpu/berth-webhook"]);
    let issuer = json!({"kind": "ClusterIssuer", "name": "company"});
    assert_eq!(objects["Certificate gpu/berth-webhook"]["spec"]["issuerRef"], issuer);
    let objects = render(&["--set", values, "--set", "extender=true"]).unwrap();
    assert_eq!(objects["Certificate gpu/berth-extender"]["spec"]["issuerRef"], issuer);
}

#[test]
fn one_replica_has_no_disruption_budget() {
    for (values, budgets) in [
        ("replicas=2,split=false", 1),
        ("replicas=1", 0),
        ("replicas=2", 2),
        ("podDisruptionBudget.enabled=false", 0),
    ] {
        let Some(objects) = render(&["--set", values]) else { return };
        let found = objects.values().filter(|object| object["kind"] == "PodDisruptionBudget").count();
        assert_eq!(found, budgets, "{values}");
    }
}

/// A folder that is copied has no links that lead out of it.
#[test]
fn a_copy_of_the_charts_folder_renders_the_same() {
    let Some(expected) = render(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let copied = std::process::Command::new("cp")
        .args(["--recursive", "deploy/helm/berth"])
        .arg(folder.path())
        .current_dir(root())
        .status();
    assert!(copied.unwrap().success());
    let chart = folder.path().join("berth").display().to_string();
    let objects = helm(&["template", "berth", &chart, "--namespace", "gpu"]).unwrap().objects();
    assert_eq!(objects, expected);
}

/// The account that the network can reach changes nothing but its own certificate.
#[test]
fn the_webhooks_account_may_write_nothing_of_the_clusters_by_default() {
    let Some(objects) = render(&[]) else { return };
    let subject = |name: &str| objects[&format!("ClusterRoleBinding /{name}")]["subjects"][0]["name"].clone();
    assert_eq!(
        (subject("berth:webhook"), subject("berth:binder")),
        (json!("berth-webhook"), json!("berth-binder"))
    );
    assert_eq!(subject("berth:assignment-writer"), json!("berth-binder"));
    let bound = objects.values().filter(|object| object["kind"] == "ClusterRoleBinding");
    let to_webhook: Vec<_> = bound
        .filter(|binding| binding["subjects"][0]["name"] == "berth-webhook")
        .map(|binding| binding["roleRef"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(to_webhook, ["berth:webhook"]);
    let own = "validatingwebhookconfigurations";
    for rule in objects["ClusterRole /berth:webhook"]["rules"].as_array().unwrap() {
        let writes = rule["verbs"]
            .as_array()
            .unwrap()
            .iter()
            .any(|verb| !matches!(verb.as_str(), Some("get" | "list" | "watch")));
        let of_own = rule["resources"].as_array().unwrap().iter().any(|one| one == own)
            && rule["resourceNames"] == json!(["berth"]);
        assert!(!writes || of_own, "{rule}");
    }
}
