//! That the documentation lists what there is: rules, findings of preflight, metrics.

use std::{collections::BTreeMap, fs};

use berth::{
    cluster::{Clock, report::scrape::Holdings},
    config::Config,
    object::Node,
    scheduling::{
        Event, EvictionOutcome, FindingCounts, NodeChange, ObjectChange, PodChange, PodList, QuotaChange,
        Scheduler, model::kind::Kind, world::object::Object,
    },
};
use jiff::Timestamp;
use prometheus_client::{encoding::text::encode, registry::Registry};
use serde_json::json;

use super::{none, root};

#[test]
fn the_documentation_lists_every_rule() {
    let rules = fs::read_to_string(root().join("docs/rules.md")).expect("docs/rules.md can be read");
    for (rule, meaning) in berth::admission::rules::ALL {
        let row = format!("| `{}` | {meaning} |", rule.0);
        assert!(rules.contains(&row), "docs/rules.md lacks the row\n{row}");
    }
}

#[test]
fn the_documentation_lists_every_finding_of_preflight() {
    let page = fs::read_to_string(root().join("docs/preflight.md")).expect("docs/preflight.md can be read");
    let rows = berth::cli::preflight::rules::ALL
        .iter()
        .map(|rule| format!("| `{}` | {} | {} |", rule.name, rule.severity, rule.meaning));
    let rows: Vec<_> = rows.collect();
    let missing: Vec<_> = rows.iter().filter(|row| !page.contains(*row)).cloned().collect();
    none("findings that docs/preflight.md lacks", &missing);
    let (_, table) = page.split_once("## Findings").expect("the section is there");
    let (table, _) = table.split_once("\n## ").expect("another one follows");
    assert_eq!(
        table.lines().filter(|line| line.starts_with("| `")).count(),
        rows.len(),
        "findings that there are not"
    );
}

/// What a scrape of an empty cluster declares.
fn scraped() -> Registry {
    let config = Config::default();
    let mut scheduler = Scheduler::new(config.scheduler_settings());
    let empty = [
        Event::Node(NodeChange::Listed(Vec::new())),
        Event::Quota(QuotaChange::Listed(Vec::new())),
        Event::Object(ObjectChange::Listed(Kind::Namespace, Vec::new())),
        Event::Pod(PodChange::Listed(PodList::default())),
    ];
    for event in empty {
        scheduler.observe(event, Timestamp::UNIX_EPOCH);
    }
    let holdings = Holdings::of(&scheduler, &config.dialects()).expect("everything is listed");
    holdings.registry(config.shown())
}

/// A Device whose node side wrote rubbish.
fn unreadable_device() -> berth::object::Device {
    let share = json!({"type": "gpu", "minor": -1});
    serde_json::from_value(json!({"metadata": {"name": "some-node"}, "spec": {"devices": [share]}}))
        .expect("a Device")
}

/// Every metric, as a row of docs/metrics.md; a counter's name is the one under which it is scraped.
fn metric_rows() -> Vec<String> {
    let mut registry = Registry::default();
    berth::webhook::WebhookMetrics::register(&mut registry);
    let binder = berth::cluster::Metrics::default();
    binder.register(&mut registry);
    berth::app::build_info::register(&mut registry);
    berth::cluster::shadow::metrics::ShadowMetrics::default().register(&mut registry);
    let broken = json!({"metadata": {"name": "n", "annotations": {"hami.io/node-nvidia-register": "[{"}}});
    let broken: Node = serde_json::from_value(broken).expect("a node");
    binder
        .registrations(&Event::Node(NodeChange::Seen(Box::new(Config::default().reader().node(&broken).0))));
    let offer = berth::cluster::read::devices(&unreadable_device()).0;
    binder.registrations(&Event::Object(ObjectChange::Seen(Object::Device(
        "some-node".into(),
        std::sync::Arc::new(offer),
    ))));
    binder.findings(
        "some-node",
        FindingCounts { overcommitted: 1, double_allocations: 1, unread: 1, unassigned: 1 },
    );
    binder.unread_objects.add("PodGroup", 1);
    binder.eviction("some-zone", &EvictionOutcome::Granted);
    berth::app::settings::Reloads::register(&mut registry, Clock::System);
    let mut page = String::new();
    for registry in [&registry, &scraped()] {
        encode(&mut page, registry).expect("a String takes any text");
    }
    let said = |word: &str| -> BTreeMap<String, String> {
        let lines = page.lines().filter_map(|line| line.strip_prefix(word)?.split_once(' '));
        lines.map(|(name, rest)| (name.to_owned(), rest.trim_end_matches('.').to_owned())).collect()
    };
    let kinds = said("# TYPE ");
    let row = |(name, help): (String, String)| {
        let kind = kinds.get(&name).map(String::as_str).unwrap_or_default();
        let total = if kind == "counter" { "_total" } else { "" };
        format!("| `{name}{total}` | {kind} | {help} |")
    };
    said("# HELP ").into_iter().map(row).collect()
}

#[test]
fn the_documentation_lists_every_metric() {
    let page = fs::read_to_string(root().join("docs/metrics.md")).expect("docs/metrics.md can be read");
    let rows = metric_rows();
    assert!(rows.len() > 20, "{rows:#?}");
    let missing: Vec<_> = rows.iter().filter(|row| !page.contains(*row)).cloned().collect();
    none("metrics that docs/metrics.md lacks", &missing);
    let listed = page.lines().filter(|line| line.starts_with("| `berth_")).map(str::to_owned);
    let gone: Vec<_> = listed.filter(|line| !rows.contains(line)).collect();
    none("metrics of docs/metrics.md that there are not", &gone);
}
