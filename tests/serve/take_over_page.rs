//! `docs/take-over.md` as a reader follows it: the commands of its console blocks in their order, by a shell, on a real API server, once with Helm
//! and once with kubectl; and they are what preflight prints for that cluster.
//!
//! HAMi is a release of Helm's: of its own chart, where `BERTH_HAMI_CHARTS` names the folder that holds it, else of one in its form
//! (`tests/serve/hami-charts`). Nothing of it runs.

use std::{collections::BTreeSet, path::PathBuf};

use serde_json::Value;

use super::{pages, reader::Reader};
use crate::{
    serve::{
        block::{self, Call},
        until,
    },
    support::{
        build,
        controlplane::{ControlPlane, absent},
        installed::{self, ACCOUNT, Replica, free_address},
    },
};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Tool {
    Helm,
    Kubectl,
}

/// A command of the page; `with` is the tool that the page names above its block.
struct Line {
    text: String,
    call: Call,
    with: Option<Tool>,
}

/// What stands above a block says whose it is: `With Helm:`.
fn tool(above: &str) -> Option<Tool> {
    if above.contains("With Helm") {
        Some(Tool::Helm)
    } else if above.contains("With kubectl") {
        Some(Tool::Kubectl)
    } else {
        None
    }
}

/// The commands of one of the two ways, in order.
fn lines(with: Tool) -> Vec<Line> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/take-over.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (mut lines, mut above) = (Vec::new(), "");
    let mut parts = page.split("```");
    while let Some(text) = parts.next() {
        above = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or(above);
        let Some(block) = parts.next() else { break };
        let block = format!("```{block}```\n");
        let read = block::lines(&block).into_iter().zip(block::calls(&block));
        lines.extend(read.map(|(text, call)| Line { text, call, with: tool(above) }));
    }
    lines.retain(|line| line.with.is_none_or(|of| of == with));
    lines
}

/// A team whose workload asks for a share, and a namespace that HAMi leaves alone.
const CLUSTER: &str = r#"kubectl label namespace team-a berth.dev/admission- && kubectl -n team-a delete pods --all &&
kubectl create namespace left-alone && kubectl label namespace left-alone hami.io/webhook=ignore &&
kubectl -n team-a create deployment train --image=train -o json --dry-run=client |
jq '.spec.template.spec.containers[0].resources = {limits: {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"}}' |
kubectl apply -f - && helm install hami hami-charts/hami --namespace kube-system --no-hooks"#;

/// A share pod of a namespace that HAMi leaves alone names kube-scheduler.
const LEFT_ALONE: &str = r#"kubectl -n left-alone run train --image=train --dry-run=server --overrides='{"spec": {"containers": [{"name": "train", "image": "train", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}' 2>&1"#;

/// Someone upgrades HAMi, without a thought of Berth.
const UPGRADE: &str =
    "helm upgrade hami hami-charts/hami --version 2.10.0 --namespace kube-system --reuse-values";

const REPLICAS: &str = "kubectl -n kube-system get deployment hami-scheduler -o jsonpath={.spec.replicas}";
const RULES: &str = "kubectl get mutatingwebhookconfiguration hami-webhook --ignore-not-found -o jsonpath={.webhooks[0].rules[*].resources}";
const BERTHS: &str = "kubectl get clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations,\
    validatingadmissionpolicies,validatingadmissionpolicybindings -l app.kubernetes.io/name=berth -o name";
const LABELLED: &str = "kubectl get namespaces -l berth.dev/admission -o name";

/// What a command prints; it must succeed.
fn printed(reader: &Reader, line: &str) -> String {
    let output = reader.run(line);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The commands that preflight prints, with one of the two tools.
fn of_preflight(reader: &Reader, with: Tool) -> Vec<String> {
    let report = printed(reader, "berth preflight --image registry.example/berth:0.1.0 -o json");
    let report: Value = serde_json::from_str(&report).unwrap();
    let other = if with == Tool::Helm { "kubectl" } else { "helm" };
    let steps = report["commands"].as_array().unwrap().iter().filter(|step| step["with"] != other);
    steps.map(|step| step["command"].as_str().unwrap().to_owned()).collect()
}

/// A cluster with HAMi, and a reader of the page in front of it.
async fn begun() -> Option<(ControlPlane, Reader, std::net::SocketAddr)> {
    let clients = match build::kubectl().and_then(|kubectl| Ok([kubectl, build::helm()?])) {
        Ok(clients) => clients,
        Err(reason) => {
            absent("kubectl and helm, which Go builds", &reason);
            return None;
        }
    };
    let plane = ControlPlane::start(installed::options()).await?;
    let address = free_address();
    let reader = Reader::new(&plane, &clients.each_ref().map(PathBuf::as_path), address);
    let charts = std::env::var_os("BERTH_HAMI_CHARTS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/serve/hami-charts")),
        PathBuf::from,
    );
    reader.show(&charts, "hami-charts");
    printed(&reader, "kubectl apply -f examples/cluster/namespace.yaml -f examples/cluster/nodes.yaml");
    printed(&reader, CLUSTER);
    Some((plane, reader, address))
}

async fn follow(with: Tool) {
    let Some((plane, reader, address)) = begun().await else { return };
    let lines = lines(with);
    let expected = of_preflight(&reader, with);
    let known: BTreeSet<&String> = expected.iter().collect();
    let shown: Vec<_> =
        lines.iter().map(|line| line.text.clone()).filter(|line| known.contains(line)).collect();
    assert_eq!(shown, expected, "the page shows what preflight prints");
    let mut berth = None;
    for Line { text, call, .. } in lines.iter().filter(|line| !pages::is_only_parsed(&line.text)) {
        if text.contains("--dry-run=server") {
            // Only the manifests can name a webhook that runs here.
            if with == Tool::Kubectl {
                berth.get_or_insert_with(|| Replica::start_as(&plane, ACCOUNT, "berth", address, &[]));
                until(text, async || reader.fault(text, call).is_none().then_some(())).await;
            }
            continue;
        }
        if text.contains("jq '.items[] | del(") {
            let waits = r#"kubectl -n team-a run waits --image=train --overrides='{"spec": {"schedulerName": "berth"}}'"#;
            printed(&reader, waits);
        }
        assert_eq!(reader.fault(text, call), None);
        if text.contains("spec.schedulerName=hami-scheduler") {
            has_taken_over(&reader, with).await;
        }
    }
    assert_eq!(printed(&reader, REPLICAS), "1");
    assert!(printed(&reader, RULES).contains("pods"), "HAMi's webhook is asked about pods again");
    assert_eq!(printed(&reader, BERTHS), "");
    assert_eq!(printed(&reader, LABELLED), "");
}

/// HAMi's scheduler and webhook are stopped, and stay so where Helm has stopped them; pods of namespaces that HAMi leaves alone are
/// admitted with a warning.
async fn has_taken_over(reader: &Reader, with: Tool) {
    let stopped = || {
        assert_eq!(printed(reader, REPLICAS), "0");
        assert_eq!(printed(reader, RULES), "");
    };
    stopped();
    if with == Tool::Helm {
        printed(reader, UPGRADE);
        stopped();
    }
    let warned = async || {
        let output = reader.run(LEFT_ALONE);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}");
        said.contains("Warning").then_some(())
    };
    until("a share pod of a namespace that HAMi leaves alone is warned of", warned).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_take_over_page_leads_to_berth_and_back_with_helm() {
    follow(Tool::Helm).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_take_over_page_leads_to_berth_and_back_with_kubectl() {
    follow(Tool::Kubectl).await;
}
