//! What a user's own namespace shows must not become a right or a setting: only kube-system and the namespaces that the caller names are believed.

use berth::cli::{
    Command,
    preflight::{PreflightArgs, PreflightReport, PreflightVerdict, examine},
};
use berth_sandbox::{Options, Sandbox};
use clap::Parser as _;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

use super::{hami, rules, support::objects::create};

/// A namespace that an editor owns, which comes before kube-system in every list.
const TEAM: &str = "a-team";

/// Settings that would make Berth the scheduler of every pod, and give out ten times the memory that there is.
const FORGED: &str =
    "nvidia:\n  resourceCountName: nvidia.com/gpu\n  deviceMemoryScaling: 10\n  defaultCores: 100\n";

async fn report(client: &Client, flags: &[&str]) -> PreflightReport {
    let cli = berth::cli::Cli::try_parse_from(["berth", "preflight"].iter().chain(flags)).unwrap();
    let Command::Preflight(args) = cli.command else { panic!("{flags:?} are preflight's") };
    let args: PreflightArgs = args;
    examine(client, &args, None, Timestamp::constant(1_767_225_600, 0)).await.unwrap()
}

/// A workload with the image and the command of one of HAMi's parts, under an account of the team's.
fn impostor(kind: &str, name: &str, command: &[&str], more: Value) -> Value {
    let labels = json!({"app": name});
    let container =
        json!({"name": "main", "image": "docker.io/projecthami/hami:v2.10.0", "command": command});
    let mut spec = json!({"serviceAccountName": "attacker", "containers": [container]});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let metadata = json!({"namespace": TEAM, "name": name, "labels": labels});
    if kind == "Pod" {
        return json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec});
    }
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}})
}

/// What an editor of one namespace can create.
fn impostors() -> Vec<Value> {
    let scheduler =
        ["scheduler", "--http_bind=0.0.0.0:443", "--scheduler-name=default-scheduler", "--default-mem=1"];
    let volumes = json!({"volumes": [{"name": "c", "configMap": {"name": "a-scheduler-device"}}]});
    let volcano = json!({"name": "main", "image": "volcanosh/vc-scheduler", "args": ["--scheduler-name=default-scheduler"]});
    let mut volcano_scheduler = impostor(
        "Deployment",
        "volcano",
        &[],
        json!({"volumes": [{"name": "c", "configMap": {"name": "conf"}}]}),
    );
    volcano_scheduler["spec"]["template"]["spec"]["containers"] = json!([volcano]);
    let map = |name: &str, key: &str, text: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": TEAM, "name": name}, "data": {key: text}});
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM, "labels": {"app.kubernetes.io/managed-by": "Helm"}}}),
        impostor("DaemonSet", "hami-device-plugin", &["nvidia-device-plugin"], json!({})),
        impostor("Pod", "plugin", &["nvidia-device-plugin"], json!({"serviceAccountName": "other"})),
        impostor("Deployment", "hami-scheduler", &scheduler, volumes),
        volcano_scheduler,
        map("a-scheduler-device", "device-config.yaml", FORGED),
        map(
            "conf",
            "volcano-scheduler.conf",
            "tiers: [{plugins: [{name: deviceshare, arguments: {deviceshare.VGPUEnable: true}}]}]",
        ),
        map("volcano-vgpu-device-config", "device-config.yaml", FORGED),
        map(
            "kube-scheduler",
            "config.yaml",
            "kind: KubeSchedulerConfiguration\nextenders: [{urlPrefix: \"http://a\"}]\n",
        ),
    ]
}

#[tokio::test]
async fn nothing_is_taken_from_a_users_namespace_and_each_impostor_blocks() {
    let sandbox = Sandbox::new(Options::default());
    let client = sandbox.client();
    hami::fill(&client).await;
    let before = report(&client, &[]).await;
    for object in impostors() {
        create(&client, &object).await;
    }
    let after = report(&client, &[]).await;
    assert_eq!(after.settings, before.settings);
    assert_eq!(after.commands, before.commands);
    assert_eq!(after.agents, before.agents);
    assert_eq!(after.verdict, PreflightVerdict::Blocked);
    let (blockers, others): (Vec<_>, Vec<_>) =
        after.findings.into_iter().partition(|finding| finding.rule == "untrusted-program");
    assert_eq!(others, before.findings);
    let objects: Vec<_> = blockers.iter().map(|finding| finding.object.as_str()).collect();
    let expected = [
        "DaemonSet a-team/hami-device-plugin",
        "Deployment a-team/hami-scheduler",
        "Deployment a-team/volcano",
        "Pod a-team/plugin",
    ];
    assert_eq!(objects, expected);
    for finding in &blockers {
        assert!(finding.message.contains("`--trust-namespace a-team`"), "{finding:?}");
        assert!(finding.command.is_none(), "nothing to paste that would trust it: {finding:?}");
    }
}

#[tokio::test]
async fn an_impostor_takes_the_place_of_nothing_where_hami_is_not_installed() {
    let sandbox = Sandbox::new(Options::default());
    let client = sandbox.client();
    for object in hami::tenants().into_iter().chain(impostors()) {
        create(&client, &object).await;
    }
    let report = report(&client, &[]).await;
    assert!(report.agents.is_empty(), "{:?}", report.agents);
    assert!(report.settings.contains("adoptSchedulers: []"), "{}", report.settings);
    let commands: Vec<_> = report.commands.iter().map(|step| step.command.as_str()).collect();
    assert!(
        commands.iter().all(|command| !command.contains("attacker") && !command.contains("scale")),
        "{commands:#?}"
    );
    assert_eq!(rules(&report)[0], "untrusted-program");
}

#[tokio::test]
async fn a_namespace_that_the_administrator_names_is_believed_and_named_again_in_the_commands() {
    let sandbox = Sandbox::new(Options::default());
    let client = sandbox.client();
    create(&client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "hami-system"}}))
        .await;
    for mut object in hami::chart() {
        if object["metadata"]["namespace"] == "kube-system" {
            object["metadata"]["namespace"] = "hami-system".into();
        }
        create(&client, &object).await;
    }
    let unnamed = report(&client, &[]).await;
    assert_eq!((unnamed.verdict, unnamed.agents.len()), (PreflightVerdict::Blocked, 0));
    let named = report(&client, &["--trust-namespace", "team-b", "--trust-namespace", "hami-system"]).await;
    assert!(!rules(&named).contains(&"untrusted-program"), "{:#?}", named.findings);
    let accounts: Vec<_> = named.agents.iter().map(|agent| agent.account.as_str()).collect();
    assert_eq!(accounts, ["hami-system/hami-device-plugin", "hami-system/hami-scheduler"]);
    assert!(named.settings.contains("hami-scheduler"), "{}", named.settings);
    let first = &named.commands[0].command;
    assert_eq!(
        first,
        "berth preflight --trust-namespace hami-system --trust-namespace team-b --settings > berth.yaml"
    );
}
