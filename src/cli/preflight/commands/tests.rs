//! The commands for clusters in the form of HAMi's chart, as Helm installs it and as someone else does.

use serde_json::{Value, json};

use super::*;
use crate::{
    cli::preflight::{agents, examination::Examination, seen::Seen, webhooks},
    config::Config,
};

const TARGET: &str =
    "scope: opt-out\nadoptSchedulers: [hami-scheduler]\nunmanagedPods: warn\nprotection: warn\n";

fn with_marks(mut object: Value, release: Option<&str>) -> Value {
    if let Some(release) = release {
        object["metadata"]["labels"] =
            json!({"app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "hami-2.10.0"});
        object["metadata"]["annotations"] =
            json!({"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": "kube-system"});
    }
    object
}

fn hami(release: Option<&str>, elects: bool) -> Seen {
    let args = json!([
        "--http_bind=0.0.0.0:443",
        "--scheduler-name=hami-scheduler",
        format!("--leader-elect={elects}")
    ]);
    let container = json!({"image": "projecthami/hami:v2.10.0", "command": ["scheduler"], "args": args});
    let scheduler = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "kube-system", "name": "hami-scheduler"},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [container]}}}});
    let webhook = json!({"kind": "MutatingWebhookConfiguration", "metadata": {"name": "hami-webhook"}, "webhooks": [
        {"name": "vgpu.hami.io", "failurePolicy": "Ignore", "rules": [{"resources": ["pods"]}]}]});
    let mut seen = Seen::default();
    for object in [scheduler, webhook] {
        seen.take(with_marks(object, release));
    }
    for (name, labels) in [("team-a", json!({})), ("left", json!({"hami.io/webhook": "ignore"}))] {
        seen.take(json!({"kind": "Namespace", "metadata": {"name": name, "labels": labels}}));
    }
    seen
}

/// The commands of one of the two ways.
fn way(seen: &Seen, with: Tool) -> Vec<(CommandStage, String)> {
    let config = Config::parse(TARGET, "f").unwrap().0;
    let examination = Examination::new(seen, &config, "berth-system", jiff::Timestamp::UNIX_EPOCH);
    let first = Phases::to(&config).beside.applied(TARGET);
    let installation = Installation {
        config: None,
        settings: &first,
        takes_over: true,
        image: None,
        default_namespace: "berth-system",
    };
    let (agents, webhooks) = (agents::agents(seen), webhooks::webhooks(seen));
    let steps = commands(&examination, &installation, &agents, &webhooks, &["team-a".to_owned()]);
    let steps = steps.into_iter().filter(|step| step.with.is_none_or(|of| of == with));
    steps.map(|step| (step.step, step.command)).collect()
}

fn of(way: &[(CommandStage, String)], stage: CommandStage) -> Vec<&str> {
    way.iter().filter(|(step, _)| *step == stage).map(|(_, command)| command.as_str()).collect()
}

const APPLY: &str = "berth manifests --config berth.yaml --agent kube-system/default | kubectl apply -f -";
const UPGRADE: &str = "helm upgrade berth deploy/helm/berth --namespace berth-system --reset-then-reuse-values --set-file config=berth.yaml";
const RESTART: &str = "kubectl -n berth-system rollout restart deployment -l app.kubernetes.io/name=berth";
const WAIT: &str = "kubectl -n berth-system rollout status deployment -l app.kubernetes.io/name=berth";

#[test]
fn a_release_of_helms_is_stopped_and_started_by_the_values_of_its_chart() {
    let helm = way(&hami(Some("gpu"), true), Tool::Helm);
    let expected = [
        "sed -e 's/^scope: .*/scope: opt-out/' -e 's/^adoptSchedulers: .*/adoptSchedulers: [hami-scheduler]/' berth.yaml > berth.yaml.new && mv berth.yaml.new berth.yaml",
        UPGRADE,
        RESTART,
        WAIT,
        "helm upgrade gpu hami-charts/hami --version 2.10.0 --namespace kube-system --reuse-values --set scheduler.replicas=0,scheduler.admissionWebhook.enabled=false",
    ];
    assert_eq!(of(&helm, CommandStage::Switch), expected);
    let back = of(&helm, CommandStage::BackFromSwitch);
    assert!(
        back[4].ends_with("--set scheduler.replicas=2,scheduler.admissionWebhook.enabled=true"),
        "{back:?}"
    );
    assert!(
        !helm.iter().any(|(_, command)| command.contains("scale") || command.contains("apply -f")),
        "{helm:#?}"
    );
}

#[test]
fn the_same_release_can_be_stopped_with_kubectl_alone() {
    let kubectl = way(&hami(Some("gpu"), true), Tool::Kubectl);
    let switch = of(&kubectl, CommandStage::Switch);
    assert_eq!(switch[1..4], [APPLY, RESTART, WAIT]);
    assert!(
        switch[4].starts_with("kubectl patch mutatingwebhookconfiguration hami-webhook"),
        "the webhook goes first"
    );
    assert_eq!(switch[5], "kubectl -n kube-system scale deployment/hami-scheduler --replicas=0");
    assert!(!kubectl.iter().any(|(_, command)| command.starts_with("helm")), "{kubectl:#?}");
}

#[test]
fn what_helm_does_not_keep_is_stopped_with_kubectl_on_both_ways() {
    let seen = hami(None, true);
    let hamis = |tool| {
        let way = way(&seen, tool);
        way.into_iter()
            .filter(|(_, command)| command.contains("hami-webhook") || command.contains("scale"))
            .collect::<Vec<_>>()
    };
    assert_eq!(hamis(Tool::Helm).len(), 4);
    assert_eq!(hamis(Tool::Helm), hamis(Tool::Kubectl));
}

/// Without leader election the chart makes one replica, whatever its value says.
#[test]
fn a_release_without_leader_election_is_stopped_all_the_same() {
    let helm = way(&hami(Some("gpu"), false), Tool::Helm);
    let values = |stage| of(&helm, stage)[4].rsplit_once(" --set ").map(|(_, values)| values.to_owned());
    assert_eq!(
        values(CommandStage::Switch).as_deref(),
        Some("scheduler.replicas=0,scheduler.leaderElect=true,scheduler.admissionWebhook.enabled=false")
    );
    assert_eq!(
        values(CommandStage::BackFromSwitch).as_deref(),
        Some("scheduler.replicas=2,scheduler.leaderElect=false,scheduler.admissionWebhook.enabled=true")
    );
}

#[test]
fn what_hami_leaves_alone_is_kept_out_before_the_switch_and_every_label_is_taken_back() {
    let helm = way(&hami(Some("gpu"), true), Tool::Helm);
    assert_eq!(
        of(&helm, CommandStage::KeepOut),
        [
            "kubectl label namespaces -l 'hami.io/webhook=ignore,!berth.dev/admission' berth.dev/admission=ignore"
        ]
    );
    let at = |stage| helm.iter().position(|(step, _)| *step == stage).unwrap();
    assert!(
        at(CommandStage::LetIn) < at(CommandStage::KeepOut)
            && at(CommandStage::KeepOut) < at(CommandStage::Switch)
    );
    let back = of(&helm, CommandStage::BackFromSwitch);
    assert_eq!(
        *back.last().unwrap(),
        "kubectl label namespaces -l hami.io/webhook=ignore,berth.dev/admission=ignore berth.dev/admission-"
    );
    assert_eq!(
        of(&helm, CommandStage::BackFromLetIn),
        ["kubectl label namespace team-a berth.dev/admission-"]
    );
    assert_eq!(
        of(&helm, CommandStage::BackFromInstall)[1..],
        ["helm uninstall berth --namespace berth-system"]
    );
}
