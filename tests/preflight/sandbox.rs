//! On the API server in the process: the whole report as recorded, what is asked for, and large clusters.

use berth::cli::preflight::PreflightVerdict;
use berth_sandbox::{Options, Sandbox, Verb};
use serde_json::json;

use super::{hami, report, rules, support::objects::create};

#[tokio::test]
async fn the_report_on_a_cluster_of_hamis_is_as_recorded() {
    let sandbox = Sandbox::new(Options::default());
    hami::fill(&sandbox.client()).await;
    let report = report(&sandbox.client()).await;
    insta::assert_snapshot!("hami_table", report.text());
    insta::assert_json_snapshot!("hami_json", report);
}

#[tokio::test]
async fn nothing_is_changed_and_only_gets_lists_and_access_reviews_are_sent() {
    let sandbox = Sandbox::new(Options::default());
    hami::fill(&sandbox.client()).await;
    let (before, asked_before) = (sandbox.resource_version(), sandbox.requests());
    report(&sandbox.client()).await;
    assert_eq!(sandbox.resource_version(), before, "no object has another version");
    let asked = sandbox.requests();
    let new: Vec<_> = asked
        .iter()
        .filter(|(key, count)| asked_before.get(key) != Some(count))
        .map(|(key, _)| key)
        .collect();
    assert!(new.len() > 10, "{new:?}");
    let reads = |verb: Verb| matches!(verb, Verb::Get | Verb::List);
    let writes: Vec<_> = new.iter().filter(|key| !reads(key.verb)).map(|key| key.resource.as_str()).collect();
    assert_eq!(writes, ["subjectaccessreviews.authorization.k8s.io"], "which is not stored");
}

#[tokio::test]
async fn an_empty_cluster_has_no_cards_and_no_commands_for_what_is_not_there() {
    let sandbox = Sandbox::new(Options::default());
    let report = report(&sandbox.client()).await;
    assert_eq!(report.verdict, PreflightVerdict::ReadyWithWarnings);
    assert_eq!(rules(&report), ["no-cards", "unknown-detail"]);
    assert!(report.agents.is_empty());
    let commands: Vec<_> = report.commands.iter().map(|step| step.command.as_str()).collect();
    assert!(commands.contains(&"berth manifests --config berth.yaml | kubectl apply -f -"), "{commands:?}");
    assert!(
        !commands.iter().any(|command| command.contains("hami") || command.contains("label")),
        "{commands:?}"
    );
}

#[tokio::test]
async fn thousands_of_pods_are_read_page_by_page_and_summed_up_in_the_table() {
    const PODS: usize = 2100;
    let sandbox = Sandbox::new(Options::default());
    let client = sandbox.client();
    create(&client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})).await;
    for at in 0..PODS {
        let container = json!({"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}});
        let spec = json!({"nodeName": "n1", "schedulerName": "default-scheduler", "containers": [container]});
        create(&client, &json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "team", "name": format!("p{at}")}, "spec": spec})).await;
    }
    let asked_before = sandbox.requests();
    let report = report(&client).await;
    let lists = |requests: std::collections::BTreeMap<berth_sandbox::RequestKey, u64>| {
        let of_pods =
            requests.into_iter().filter(|(key, _)| key.verb == Verb::List && key.resource == "pods");
        of_pods.map(|(_, count)| count).sum::<u64>()
    };
    assert_eq!(lists(sandbox.requests()) - lists(asked_before), 5, "500 in a page");
    let without = report.findings.iter().filter(|finding| finding.rule == "share-without-assignment").count();
    assert_eq!(without, PODS);
    let text = report.text();
    let text = text.as_str();
    assert!(text.contains(&format!("{} more; -o json lists all", PODS - 10)), "{text}");
    assert!(text.lines().count() < 100, "{}", text.lines().count());
}
