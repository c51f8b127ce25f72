//! The pages beside `docs/install.md` and `docs/take-over.md` as readers follow them: the commands of their console blocks in their order, by a shell, on a real API
//! server.
//!
//! Commands that need no cluster are run by `tests/docs.rs`; [`ONLY_PARSED`] lists what no test runs, with the reason.

use std::{collections::BTreeSet, path::Path};

use super::reader::Reader;
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

/// What a line has that no test runs, and why. Its words are checked nevertheless (`tests/docs.rs`), except for those of other programs.
const ONLY_PARSED: [(&str, &str); 11] = [
    ("docker ", "there is no container runtime"),
    ("rollout status", "no controller starts the pods of a Deployment here"),
    ("port-forward", "no kubelet runs a pod to forward to"),
    ("curl ", "it asks a pod through port-forward"),
    ("berth demo --keep", "it runs until it is interrupted; tests/cli.rs runs it"),
    ("--kubeconfig demo.kubeconfig", "it asks the demo that is left out"),
    ("berth serve ", "it runs until it is interrupted; most tests of this file run it"),
    ("--cert-manager", "cert-manager's kinds are not served here; tests/chart.rs compares what is printed"),
    ("cargo ", "it builds and tests the repository itself"),
    ("cosign ", "it needs a published release"),
    ("sha256sum ", "it needs a published release"),
];

/// Whether no test runs the line.
pub(crate) fn is_only_parsed(line: &str) -> bool {
    ONLY_PARSED.iter().any(|(part, _)| line.contains(part))
}

/// A page, and what a reader has done before a line that starts like this, which the page leaves to its readers.
struct Page {
    path: &'static str,
    before: &'static [(&'static str, &'static str)],
}

const fn page(path: &'static str) -> Page {
    Page { path, before: &[] }
}

/// Pages on installations by kubectl, in an order in which each finds what it needs.
const WITH_KUBECTL: [Page; 8] = [
    Page {
        path: "README.md",
        before: &[
            ("kubectl apply --dry-run=server", "berth manifests | kubectl apply -f -"),
            ("kubectl apply --dry-run=server", "kubectl label namespace team-a berth.dev/admission=enabled"),
        ],
    },
    page("docs/metrics.md"),
    page("docs/shadow.md"),
    page("webhook-config/README.md"),
    page("docs/extender.md"),
    page("certs/README.md"),
    Page {
        path: "docs/troubleshooting.md",
        before: &[
            ("kubectl -n team-a describe pod train", "kubectl -n team-a run train --image=train"),
            (
                "kubectl delete mutatingwebhookconfiguration",
                "berth manifests | kubectl apply -f - && kubectl label --overwrite namespace team-a berth.dev/admission=enabled",
            ),
        ],
    },
    page("docs/packing.md"),
];

/// Pages on installations by Helm.
const WITH_HELM: [Page; 2] = [
    Page {
        path: "docs/helm.md",
        before: &[
            (
                "helm install berth deploy/helm/berth --namespace berth-system --take-ownership",
                "helm uninstall berth --namespace berth-system && berth manifests | kubectl apply -f -",
            ),
            (
                "helm upgrade berth deploy/helm/berth --namespace berth-system --reset-then-reuse-values --set-file",
                "helm uninstall berth --namespace berth-system && helm install berth deploy/helm/berth --namespace berth-system",
            ),
            (
                "helm install berth deploy/helm/berth --namespace berth-system --create-namespace --set extender=true",
                "helm uninstall berth --namespace berth-system",
            ),
        ],
    },
    Page {
        path: "docs/upgrade.md",
        before: &[(
            "helm upgrade berth",
            "helm uninstall berth --namespace berth-system && helm install berth deploy/helm/berth --namespace berth-system --take-ownership --force-conflicts",
        )],
    },
];

fn read(path: &str) -> Vec<(String, Call)> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    block::lines(&text).into_iter().zip(block::calls(&text)).collect()
}

/// Whether `tests/docs.rs` runs the whole line.
fn is_run_without_a_cluster(line: &str, call: &Call) -> bool {
    call.words[0] == "berth" && call.needs_no_cluster() && !line.contains("| kubectl")
}

/// Whether the line's output is Berth's, for which a replica must run.
fn needs_berth(line: &str) -> bool {
    line.contains("get lease berth") || line.contains("--dry-run=server")
}

/// Follows the pages on one API server.
async fn follow(pages: &[Page]) {
    let clients = build::kubectl().and_then(|kubectl| Ok([kubectl, build::helm()?]));
    let clients = match clients {
        Ok(clients) => clients,
        Err(reason) => return absent("kubectl and helm, which Go builds", &reason),
    };
    let Some(plane) = ControlPlane::start(installed::options()).await else { return };
    let address = free_address();
    let reader = Reader::new(&plane, &clients.each_ref().map(std::path::PathBuf::as_path), address);
    let prepare = |line: &str| {
        let output = reader.run(line);
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let files = ["namespace", "nodes", "pods"].map(|name| format!("-f examples/cluster/{name}.yaml"));
    prepare(&format!("kubectl apply {}", files.join(" ")));
    let mut faults = Vec::new();
    for Page { path, before } in pages {
        // A page may take the rights of a replica that runs.
        let mut replica = None;
        let mut due: Vec<_> = before.iter().collect();
        let lines = read(path);
        let here =
            |(line, call): &&(String, Call)| !is_only_parsed(line) && !is_run_without_a_cluster(line, call);
        for (line, call) in lines.iter().filter(here) {
            for (_, step) in due.extract_if(.., |(start, _)| line.starts_with(start)) {
                prepare(step);
            }
            if needs_berth(line) {
                replica.get_or_insert_with(|| Replica::start_as(&plane, ACCOUNT, "berth", address, &[]));
                let done = async || reader.fault(line, call).inspect(|fault| println!("{fault}")).is_none();
                until(line, async || done().await.then_some(())).await;
            } else {
                faults.extend(reader.fault(line, call).map(|fault| format!("{path}: {fault}")));
            }
        }
        assert!(due.is_empty(), "{path} has no line for {due:?}");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_of_the_pages_on_kubectl_do_what_they_show() {
    follow(&WITH_KUBECTL).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_of_the_pages_on_helm_do_what_they_show() {
    follow(&WITH_HELM).await;
}

/// Every Markdown file with console blocks, from the root.
fn every_page() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut waiting: Vec<_> =
        ["docs", "certs", "webhook-config", "tests/fuzz"].map(|name| root.join(name)).into();
    let mut pages = BTreeSet::new();
    let mut add = |path: &Path| {
        let name = path.strip_prefix(root).unwrap().display().to_string();
        let is_page = path.extension().is_some_and(|extension| extension == "md");
        if is_page && !read(&name).is_empty() {
            pages.insert(name);
        }
    };
    for entry in std::fs::read_dir(root).unwrap() {
        add(&entry.unwrap().path());
    }
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { waiting.push(path) } else { add(&path) }
        }
    }
    pages
}

#[test]
fn every_command_of_the_documentation_is_run_or_has_a_reason_not_to_be() {
    let followed: BTreeSet<&str> = WITH_KUBECTL
        .iter()
        .chain(&WITH_HELM)
        .map(|page| page.path)
        .chain(["docs/install.md", "docs/take-over.md"])
        .collect();
    let (mut unused, mut not_run): (Vec<_>, _) = (ONLY_PARSED.to_vec(), Vec::new());
    for path in every_page() {
        for (line, call) in read(&path) {
            unused.retain(|(part, _)| !line.contains(part));
            let is_run = followed.contains(path.as_str()) || is_run_without_a_cluster(&line, &call);
            if !is_run && !is_only_parsed(&line) {
                not_run.push(format!("{path}: {line}"));
            }
        }
    }
    assert!(not_run.is_empty(), "run by no test:\n{}", not_run.join("\n"));
    assert!(unused.is_empty(), "on no page: {unused:?}");
}
