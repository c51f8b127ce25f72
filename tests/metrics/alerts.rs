//! The alert rules: each can be parsed, fires on what it is for, and is silent on a cluster that is well.

use serde_json::Value;

use crate::metrics::{
    monitoring::{read, rules},
    promtool::{Promtool, Query, steady},
    world::{cluster, config, page, samples},
};

/// For each alert a series and its values, a minute apart, on which it fires after half an hour.
const FIRES: [(&str, &str, &str); 14] = [
    ("BerthNoLeader", r#"berth_scheduler_leader{instance="a"}"#, "0+0x40"),
    ("BerthNotSynced", r#"berth_scheduler_synced{instance="a"}"#, "0+0x40"),
    ("BerthCardOvercommitted", r#"berth_scheduler_overcommitted_cards{node="n1"}"#, "1+0x40"),
    ("BerthDeviceAllocatedTwice", r#"berth_scheduler_doubly_allocated_devices{node="n1"}"#, "1+0x40"),
    ("BerthUnassignedPods", r#"berth_scheduler_unassigned_pods{node="n1"}"#, "1+0x40"),
    ("BerthUnreadableAssignments", r#"berth_scheduler_unreadable_pod_assignments{node="n1"}"#, "1+0x40"),
    ("BerthUnreadableRegistration", r#"berth_scheduler_unreadable_node_registration{node="n1"}"#, "1+0x40"),
    ("BerthSilentDevicePlugin", "berth_scheduler_silent_agents", "1+0x40"),
    ("BerthLongLockWait", "berth_scheduler_longest_lock_wait_seconds", "0+60x40"),
    ("BerthUnplaceablePods", "berth_scheduler_unplaceable_pods", "1+0x40"),
    ("BerthSettingsRejected", r#"berth_config_last_reload_successful{pod="berth-1"}"#, "0+0x40"),
    ("BerthLedgerDrift", "berth_scheduler_drift_total", "0x25 1x15"),
    ("BerthWebhookErrors", r#"berth_admission_reviews_total{path="mutate",outcome="panicked"}"#, "0+1x40"),
    ("BerthCertificateExpires", "berth_webhook_certificate_expiry_seconds", "5000+0x40"),
];

fn firing(alert: &str) -> String {
    format!(r#"count(ALERTS{{alertname="{alert}",alertstate="firing"}})"#)
}

#[test]
fn each_alert_fires_on_what_it_is_for_and_no_other_does() {
    let Some(promtool) = Promtool::find() else { return };
    let rules = rules();
    promtool.check_rules(&rules);
    let names: Vec<&str> = FIRES.iter().map(|(alert, ..)| *alert).collect();
    let defined: Vec<&str> = rules["groups"][0]["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| rule["alert"].as_str().unwrap())
        .collect();
    assert_eq!(names, defined);
    for (alert, series, values) in FIRES {
        let mut samples = vec![(series.to_owned(), values.to_owned())];
        if alert != "BerthNoLeader" {
            samples.push(steady(r#"berth_scheduler_leader{instance="a"}"#, "1"));
        }
        let one = vec![("{}".to_owned(), 1.0)];
        let queries = [
            Query { expr: firing(alert), answer: one.clone() },
            Query { expr: r#"count(ALERTS{alertstate="firing"})"#.to_owned(), answer: one },
        ];
        promtool.evaluate(&samples, Some(&rules), &queries);
    }
}

#[tokio::test]
async fn no_alert_fires_on_a_cluster_that_is_well() {
    let Some(promtool) = Promtool::find() else { return };
    let config = config("");
    let page = page(&cluster(&config), &config, "text/plain").await;
    let samples: Vec<_> = samples(&page).into_iter().map(|(series, value)| steady(series, value)).collect();
    let none = Query { expr: r#"ALERTS{alertstate="firing"}"#.to_owned(), answer: Vec::new() };
    promtool.evaluate(&samples, Some(&rules()), &[none]);
}

#[test]
fn each_alert_has_a_runbook_that_holds_its_expression() {
    for rule in rules()["groups"][0]["rules"].as_array().unwrap() {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let path = text(&rule["annotations"]["runbook_url"]);
        assert_eq!(path, format!("docs/runbooks/{}.md", text(&rule["alert"])));
        let runbook = read(&path);
        for part in [&text(&rule["expr"]), "## Symptom", "## Confirm", "## What to do"] {
            assert!(runbook.contains(part), "{path} lacks `{part}`");
        }
    }
}
