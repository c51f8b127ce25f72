//! What is installed beside Prometheus and Grafana names only what there is.

use std::{collections::BTreeSet, fs, path::Path};

use berth::cluster::shadow;
use prometheus_client::registry::Registry;
use serde_json::Value;

use crate::metrics::{
    promtool::{Promtool, Query},
    world::{Findings, cluster_with_devices, config, page_with},
};

pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&read(path)).unwrap()
}

/// The alert rules, as a file of Prometheus' own has them.
pub(crate) fn rules() -> Value {
    yaml("deploy/monitoring/prometheusrule.yaml")["spec"].clone()
}

/// Each word that could be a metric of ours.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("berth_") && !word.ends_with('_')).collect()
}

/// Every query of the dashboard, with its variables filled in.
fn queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&read("deploy/monitoring/dashboard.json")).unwrap();
    let targets = dashboard["panels"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|panel| panel["targets"].as_array())
        .flatten();
    let fill = |expr: &str| {
        expr.replace("$node", ".*").replace("$namespace", ".*").replace("$__rate_interval", "5m")
    };
    targets.map(|target| fill(target["expr"].as_str().unwrap())).collect()
}

/// What a process with `--shadow` exports instead of what a binder does.
fn of_a_shadow() -> Vec<String> {
    let mut registry = Registry::default();
    shadow::metrics::ShadowMetrics::default().register(&mut registry);
    let mut page = String::new();
    prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let name = |declared: &str| match declared.split_once(' ').unwrap() {
        // OpenMetrics declares a counter without its suffix.
        (name, "counter") => format!("{name}_total"),
        (name, _) => name.to_owned(),
    };
    types.map(name).collect()
}

#[tokio::test]
async fn each_metric_that_is_named_anywhere_is_exported() {
    let config = config("");
    let page = page_with(&cluster_with_devices(&config), &config, "text/plain", Findings::One).await;
    let mut exported: BTreeSet<String> = BTreeSet::new();
    for line in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        exported.insert(name.to_owned());
        if kind == "histogram" {
            exported.extend(["bucket", "sum", "count"].map(|part| format!("{name}_{part}")));
        }
    }
    exported.extend(of_a_shadow());
    let mut files = vec![
        "deploy/monitoring/dashboard.json".to_owned(),
        "deploy/monitoring/prometheusrule.yaml".to_owned(),
        "docs/metrics.md".to_owned(),
    ];
    let runbooks = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/runbooks");
    let runbooks =
        fs::read_dir(runbooks).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    files.extend(runbooks.map(|name| format!("docs/runbooks/{name}")));
    for file in files {
        let text = read(&file);
        let names = named(&text);
        let unknown: Vec<_> = names.iter().filter(|name| !exported.contains(**name)).collect();
        assert!(unknown.is_empty(), "{file} names what is not exported: {unknown:?}");
    }
    assert!(queries().len() > 20);
}

#[test]
fn every_query_of_the_dashboard_can_be_parsed() {
    let Some(promtool) = Promtool::find() else { return };
    let queries =
        queries().into_iter().map(|expr| Query { expr: format!("absent({expr}) == 7"), answer: Vec::new() });
    promtool.evaluate(&[], None, &queries.collect::<Vec<_>>());
}

#[test]
fn the_monitors_scrape_the_port_of_the_deployment_and_keep_our_labels() {
    let deployment = read("webhook-config/40-deployment.yaml");
    for (path, endpoints) in [("servicemonitor", "endpoints"), ("podmonitor", "podMetricsEndpoints")] {
        let monitor = yaml(&format!("deploy/monitoring/{path}.yaml"));
        let endpoint = &monitor["spec"][endpoints][0];
        assert_eq!(
            (endpoint["scheme"].as_str(), endpoint["honorLabels"].as_bool()),
            (Some("https"), Some(true))
        );
        assert!(deployment.contains(&format!("- name: {}\n", endpoint["port"].as_str().unwrap())));
        assert_eq!(monitor["spec"]["selector"]["matchLabels"]["app.kubernetes.io/name"], "berth");
    }
}
