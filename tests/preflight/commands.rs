//! Every printed command is run: those of `berth` by the program, those of `kubectl` by kubectl where there is one.

use std::{
    path::Path,
    process::{Command, Output},
};

use berth::cli::preflight::commands::{CommandStage, Step, Tool};
use kube::Api;
use serde_json::{Value, json};

use super::{
    hami, report, rights, rules,
    support::{floor::Cluster, objects::create},
};

fn shell(folder: &Path, kubeconfig: &Path, command: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_berth")).parent().unwrap();
    let command = format!("PATH=\"$PROGRAM:$PATH\"\n{command}");
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", &command]).current_dir(folder).env("PROGRAM", program).env_remove("BERTH_CONFIG");
    shell.env("KUBECONFIG", kubeconfig).output().unwrap()
}

fn has_kubectl() -> bool {
    Command::new("kubectl").args(["version", "--client"]).output().is_ok_and(|output| output.status.success())
}

/// The part that `berth` runs of a command; empty: none.
fn of_berth(command: &str) -> &str {
    let alone = command.split(" | kubectl").next().unwrap_or_default();
    if alone.starts_with("berth ") { alone } else { "" }
}

/// As kubectl can run it here: without controllers no Deployment becomes available, and no namespace is finalized.
fn of_kubectl(command: &str) -> String {
    if command.contains("rollout status") {
        return String::new();
    }
    command.replace(" delete --ignore-not-found -f -", " delete --ignore-not-found --wait=false -f -")
}

async fn replicas(cluster: &Cluster) -> Option<i32> {
    use k8s_openapi::api::apps::v1::Deployment;
    let api: Api<Deployment> = Api::namespaced(cluster.client.clone(), "kube-system");
    api.get("hami-scheduler").await.unwrap().spec.replicas
}

async fn webhook_rules(cluster: &Cluster) -> Value {
    use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
    let api: Api<MutatingWebhookConfiguration> = Api::all(cluster.client.clone());
    serde_json::to_value(&api.get("hami-webhook").await.unwrap().webhooks.unwrap()[0].rules).unwrap()
}

/// Runs a command as far as it can be run here; it must succeed.
fn run(folder: &Path, kubeconfig: &Path, command: &str) {
    let command = if has_kubectl() { of_kubectl(command) } else { of_berth(command).to_owned() };
    let output = shell(folder, kubeconfig, &command);
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The steps of the way with kubectl: `tests/serve/take_over_page.rs` goes both.
async fn steps(cluster: &Cluster) -> Vec<Step> {
    let mut steps = report(&cluster.client).await.commands;
    steps.retain(|step| step.with != Some(Tool::Helm));
    steps
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_printed_command_works_and_the_way_back_leads_back() {
    let Some(mut cluster) = rights::cluster().await else { return };
    hami::fill(&cluster.client).await;
    let rules_before = webhook_rules(&cluster).await;
    let kubeconfig = cluster.control_plane().unwrap().kubeconfig("admin");
    let folder = tempfile::tempdir().unwrap();
    let steps = steps(&cluster).await;
    assert!(steps.iter().filter(|step| !of_berth(&step.command).is_empty()).count() >= 4, "{steps:#?}");
    for step in &steps {
        run(folder.path(), &kubeconfig, &step.command);
        if has_kubectl() && step.step == CommandStage::Protect {
            let report = report(&cluster.client).await;
            assert!(report.agents.iter().all(|agent| agent.bound == Some(true)), "{:?}", report.agents);
            assert!(!rules(&report).contains(&"foreign-webhook"), "it is off");
            assert_eq!(replicas(&cluster).await, Some(0));
        }
    }
    if !has_kubectl() {
        return crate::support::controlplane::absent("kubectl, to run its commands", "there is none");
    }
    assert_eq!(webhook_rules(&cluster).await, rules_before);
    assert_eq!(replicas(&cluster).await, Some(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_hami_namespaces_are_labelled_by_the_commands_and_come_in() {
    let Some(mut cluster) = rights::cluster().await else { return };
    for object in hami::tenants() {
        create(&cluster.client, &object).await;
    }
    let kubeconfig = cluster.control_plane().unwrap().kubeconfig("admin");
    let folder = tempfile::tempdir().unwrap();
    let not_covered = async || {
        let findings = report(&cluster.client).await.findings;
        let found = findings.into_iter().filter(|finding| finding.rule == "namespace-not-covered");
        found.map(|finding| finding.object).collect::<Vec<_>>()
    };
    let (team_a, team_b) = ("Namespace team-a".to_owned(), "Namespace team-b".to_owned());
    assert_eq!(not_covered().await, [team_a.clone(), team_b.clone()]);
    let steps = steps(&cluster).await;
    assert!(steps.iter().any(|step| step.step == CommandStage::LetIn), "{steps:#?}");
    for (at, step) in steps.iter().enumerate() {
        run(folder.path(), &kubeconfig, &step.command);
        let is_last = steps.get(at + 1).is_none_or(|next| next.step != CommandStage::LetIn);
        if has_kubectl() && step.step == CommandStage::LetIn && is_last {
            assert_eq!(not_covered().await, std::slice::from_ref(&team_b));
        }
    }
    assert_eq!(not_covered().await, [team_a, team_b]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_prints_the_report_in_each_form_and_exits_by_the_verdict() {
    let Some(mut cluster) = rights::cluster().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let plane = cluster.control_plane().unwrap();
    let (admin, guest) = (plane.kubeconfig("admin"), plane.kubeconfig("guest"));
    let as_json = shell(folder.path(), &admin, "berth preflight -o json");
    assert_eq!(as_json.status.code(), Some(0), "{}", String::from_utf8_lossy(&as_json.stderr));
    let read: Value = serde_json::from_slice(&as_json.stdout).unwrap();
    let keys: Vec<_> = read.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["verdict", "kubernetes", "findings", "agents", "settings", "commands"]);
    assert_eq!(read["verdict"], json!("ready with warnings"));
    let as_yaml = shell(folder.path(), &admin, "berth preflight -o yaml");
    let yaml: Value = serde_saphyr::from_str(std::str::from_utf8(&as_yaml.stdout).unwrap()).unwrap();
    assert_eq!(yaml, read);
    let blocked = shell(folder.path(), &guest, "berth preflight");
    assert_eq!(blocked.status.code(), Some(1), "{}", String::from_utf8_lossy(&blocked.stderr));
    let text = String::from_utf8(blocked.stdout).unwrap();
    assert!(text.contains("Verdict: blocked by 3 finding(s): cannot-list-essential"), "{text}");
}

/// The current context of the kubeconfig is another cluster, which does not answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cluster_is_chosen_as_kubectl_chooses_it_and_the_printed_commands_name_it() {
    let Some(mut cluster) = rights::cluster().await else { return };
    hami::fill(&cluster.client).await;
    let folder = tempfile::tempdir().unwrap();
    let file = cluster.control_plane().unwrap().kubeconfig("admin");
    let mut contexts: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    contexts["current-context"] = "gone".into();
    let gone = [
        ("clusters", json!({"name": "gone", "cluster": {"server": "https://127.0.0.1:1"}})),
        ("contexts", json!({"name": "gone", "context": {"cluster": "gone", "user": "admin"}})),
    ];
    for (list, entry) in gone {
        contexts[list].as_array_mut().unwrap().push(entry);
    }
    std::fs::write(folder.path().join("two clusters"), contexts.to_string()).unwrap();
    let none = Path::new("/none");
    let flags = "--kubeconfig 'two clusters' --context test";
    let output = shell(folder.path(), none, &format!("berth preflight {flags} -o json"));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let commands: Vec<_> = report["commands"].as_array().unwrap().iter().collect();
    assert!(commands.len() > 8, "{commands:#?}");
    for step in commands {
        let command = step["command"].as_str().unwrap();
        let kubectl = command.matches("kubectl").count();
        assert_eq!(command.matches(&format!("kubectl {flags} ")).count(), kubectl, "{command}");
        if command.starts_with("helm") {
            assert!(
                command.starts_with("helm --kubeconfig 'two clusters' --kube-context test "),
                "{command}"
            );
        }
        if kubectl > 0 || command.starts_with("berth") {
            run(folder.path(), none, command);
        }
    }
    let other = shell(folder.path(), none, "berth preflight --kubeconfig 'two clusters'");
    assert_eq!(other.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&other.stderr).contains("127.0.0.1:1"), "{other:?}");
    let unknown = shell(folder.path(), none, "berth preflight --kubeconfig 'two clusters' --context test2");
    assert_eq!(unknown.status.code(), Some(2));
    let said = String::from_utf8(unknown.stderr).unwrap();
    assert_eq!(said, "error: context `test2` does not exist in two clusters; its contexts: test, gone\n");
}
