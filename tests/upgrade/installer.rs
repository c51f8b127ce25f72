//! The programs with which operators install, upgrade and remove Berth.
//!
//! It must not know what is right: a test states that.

use std::{
    fs,
    io::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use berth::cli::manifests::{InstallationSettings, ManifestsArgs, objects};
use serde_json::{Value, json};

use crate::support::{build, controlplane::absent};

/// The manifests of an earlier version: `webhook-config` of commit 17fe4a9, without comments. The binary of a release must be able to run with
/// the rights of the release before it, so that its manifests belong here once there is one.
const OLD: &str = "tests/upgrade/old";
const FILES: [&str; 8] = [
    "10-namespace.yaml",
    "15-priority.yaml",
    "20-rbac.yaml",
    "30-config.yaml",
    "40-deployment.yaml",
    "50-webhooks.yaml",
    "60-policies.yaml",
    "70-flow.yaml",
];

/// Settings that change webhooks and policies.
pub(crate) const NEW_SETTINGS: &str = "\
scope: opt-out
unmanagedPods: deny
workloads:
- {apiGroup: example.com, kind: Run, templates: [{path: spec.template}]}
dialects:
  hami: {nodeSchedulerPolicy: spread}
";

/// Which manifests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Version {
    Old,
    New,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The objects of a version, with the webhook at this address.
fn manifests(version: Version, webhook: SocketAddr) -> Vec<Value> {
    if version == Version::New {
        let args =
            ManifestsArgs { webhook_url: Some(format!("https://{webhook}")), ..ManifestsArgs::default() };
        return objects(
            &args,
            &InstallationSettings::parse(NEW_SETTINGS.to_owned(), "berth.yaml").unwrap().0,
        )
        .unwrap();
    }
    let read = |file: &str| fs::read_to_string(root().join(OLD).join(file)).unwrap();
    let documents = FILES.iter().flat_map(|file| serde_saphyr::from_multiple::<Value>(&read(file)).unwrap());
    let mut documents: Vec<_> = documents.collect();
    for webhook_of in documents.iter_mut().filter_map(|object| object.get_mut("webhooks")?.as_array_mut()) {
        for one in webhook_of {
            let path = one["clientConfig"]["service"]["path"].as_str().unwrap();
            one["clientConfig"] = json!({"url": format!("https://{webhook}{path}")});
        }
    }
    documents
}

/// kubectl against one API server.
pub(crate) struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    home: tempfile::TempDir,
}

impl Kubectl {
    /// `None`, said aloud, where it can't be built.
    pub(crate) fn find(kubeconfig: PathBuf) -> Option<Self> {
        let program = build::kubectl().map_err(|reason| absent("kubectl", &reason)).ok()?;
        Some(Self { program, kubeconfig, home: tempfile::tempdir().unwrap() })
    }

    /// What it prints; the test fails where it does.
    pub(crate) fn run(&self, arguments: &[&str], input: &[Value]) -> String {
        let mut command = Command::new(&self.program);
        command.arg("--kubeconfig").arg(&self.kubeconfig).env("HOME", self.home.path());
        let list = json!({"apiVersion": "v1", "kind": "List", "items": input});
        output(command.args(arguments), &list.to_string())
    }

    /// `kubectl apply` of a version.
    pub(crate) fn apply(&self, version: Version, webhook: SocketAddr) {
        self.run(&["apply", "-f", "-"], &manifests(version, webhook));
    }

    /// The steps of the documentation, in its order.
    pub(crate) fn uninstall(&self, webhook: SocketAddr) {
        self.run(&["delete", "mutatingwebhookconfiguration,validatingwebhookconfiguration", "berth"], &[]);
        // No controller removes a namespace here, so that waiting for its end would not end.
        let arguments = ["delete", "--ignore-not-found", "--wait=false", "-f", "-"];
        self.run(&arguments, &manifests(Version::New, webhook));
    }
}

/// Helm against one API server.
pub(crate) struct Helm {
    program: PathBuf,
    kubeconfig: PathBuf,
    /// Its settings, and the charts.
    folder: tempfile::TempDir,
}

impl Helm {
    /// `None`, said aloud, where it can't be built.
    pub(crate) fn find(kubeconfig: PathBuf) -> Option<Self> {
        let program = build::helm().map_err(|reason| absent("helm", &reason)).ok()?;
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("berth.yaml"), NEW_SETTINGS).unwrap();
        for version in [Version::Old, Version::New] {
            chart(version, &folder.path().join(format!("{version:?}")));
        }
        Some(Self { program, kubeconfig, folder })
    }

    /// What it prints; the test fails where it does.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.program);
        for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(variable, self.folder.path());
        }
        command.current_dir(self.folder.path()).arg("--kubeconfig").arg(&self.kubeconfig);
        output(command.args(["--namespace", "berth-system"]).args(arguments), "")
    }

    pub(crate) fn install(&self, version: Version, webhook: SocketAddr) {
        // One Deployment, as the replicas of the test are.
        let url = format!("webhook.url=https://{webhook},split=false");
        let chart = format!("{version:?}");
        self.run(&["install", "berth", &chart, "--create-namespace", "--set", &url]);
    }

    /// Installs this version's chart over the objects that kubectl has applied.
    pub(crate) fn take_over(&self, webhook: SocketAddr) {
        let url = format!("webhook.url=https://{webhook},split=false");
        let values = ["--set", &url, "--set-file", "config=berth.yaml"];
        self.run(
            &[&["install", "berth", "New", "--take-ownership", "--force-conflicts"], &values[..]].concat(),
        );
    }

    pub(crate) fn upgrade(&self, version: Version) {
        let chart = format!("{version:?}");
        self.run(&[
            "upgrade",
            "berth",
            &chart,
            "--reset-then-reuse-values",
            "--set-file",
            "config=berth.yaml",
        ]);
    }
}

/// The chart with the manifests of a version.
fn chart(version: Version, to: &Path) {
    let source = root().join("deploy/helm/berth");
    copy(&source, to);
    let manifests = match version {
        Version::Old => root().join(OLD),
        Version::New => return,
    };
    fs::remove_dir_all(to.join("manifests")).unwrap();
    copy(&manifests, &to.join("manifests"));
}

/// Copies a folder, files instead of links.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (entry, target) = (entry.as_ref().unwrap().path(), to.join(entry.as_ref().unwrap().file_name()));
        if entry.is_dir() {
            copy(&entry, &target);
        } else {
            fs::copy(entry, target).unwrap();
        }
    }
}

fn output(command: &mut Command, input: &str) -> String {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let written = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    // A program that does not read its input closes it.
    let _ = written.join().unwrap();
    let [printed, errors] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{command:?}: {printed}\n{errors}");
    printed
}
