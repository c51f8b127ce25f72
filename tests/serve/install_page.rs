//! `docs/install.md` as a reader follows it: the commands of its console blocks in their order, by a shell, on a real API server.
//!
//! Left out is what there is nothing for here: a container runtime, and the controllers that `rollout status` waits for.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::{
    block::{self, Call},
    support::{
        build,
        controlplane::{ControlPlane, absent},
        installed::{self, ACCOUNT, Replica, free_address},
    },
    until,
};

/// A shell in a folder with the examples, with `berth` and `kubectl` on its path.
struct Reader {
    folder: tempfile::TempDir,
    programs: String,
    kubeconfig: PathBuf,
    webhook: SocketAddr,
}

impl Reader {
    fn new(plane: &ControlPlane, kubectl: &Path, webhook: SocketAddr) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        std::os::unix::fs::symlink(examples, folder.path().join("examples")).unwrap();
        let folders = [Path::new(env!("CARGO_BIN_EXE_berth")), kubectl].map(|file| file.parent().unwrap());
        let programs = folders.map(|folder| folder.display().to_string()).join(":");
        Self { folder, programs, kubeconfig: plane.kubeconfig("admin"), webhook }
    }

    /// Runs a line of the page. The API server reaches the webhook by its URL, since no Service has an address here; and no namespace is ever
    /// gone, since none is finalized.
    fn run(&self, line: &str) -> Output {
        let by_url = format!("berth manifests --webhook-url https://{}", self.webhook);
        let installs = line.starts_with("berth manifests") && line.contains("| kubectl");
        let line = if installs { line.replacen("berth manifests", &by_url, 1) } else { line.to_owned() };
        let line = line.replace("kubectl delete ", "kubectl delete --wait=false ");
        let script = format!("set -o pipefail; PATH=\"{}:$PATH\"\n{line}", self.programs);
        let mut shell = Command::new("bash");
        shell.args(["-c", &script]).current_dir(self.folder.path()).env("KUBECONFIG", &self.kubeconfig);
        shell.env_remove("BERTH_CONFIG").env("NO_COLOR", "1").output().unwrap()
    }

    /// What is wrong with how a line ended or what it printed.
    fn fault(&self, line: &str, call: &Call) -> Option<String> {
        let output = self.run(line);
        let printed =
            [&output.stderr, &output.stdout].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let printed = printed.concat();
        if !output.status.success() {
            return Some(format!("{line}: {}\n{printed}", output.status));
        }
        call.lacking(&printed).map(|lacks| format!("{line}: did not print `{lacks}` but\n{printed}"))
    }
}

/// Needs what there is not here, or never ends.
fn is_left_out(line: &str) -> bool {
    line.starts_with("docker ") || line.contains("rollout status") || line.starts_with("berth serve ")
}

/// Waits for Berth, which the lines before have just installed.
fn needs_berth(line: &str) -> bool {
    line.contains("get lease") || line.contains("--dry-run=server")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_of_the_install_page_do_what_it_shows_in_their_order() {
    let kubectl = match build::kubectl() {
        Ok(program) => program,
        Err(reason) => return absent("kubectl, which Go builds", &reason),
    };
    let Some(plane) = ControlPlane::start(installed::options()).await else { return };
    let address = free_address();
    let reader = Reader::new(&plane, &kubectl, address);
    let files =
        ["namespace", "nodes", "pods"].map(|name| format!("-f examples/cluster/{name}.yaml")).join(" ");
    let output = reader.run(&format!("kubectl apply {files}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/install.md");
    let page = std::fs::read_to_string(page).unwrap();
    let lines: Vec<_> = block::lines(&page).into_iter().zip(block::calls(&page)).collect();
    let mut berth = None;
    let mut ran = 0;
    for (line, call) in lines.iter().filter(|(line, _)| !is_left_out(line)) {
        if needs_berth(line) {
            berth.get_or_insert_with(|| Replica::start_as(&plane, ACCOUNT, "berth", address, &[]));
            until(line, async || reader.fault(line, call).is_none().then_some(())).await;
        } else {
            assert_eq!(reader.fault(line, call), None);
        }
        ran += 1;
    }
    assert!(ran > 15, "only {ran} commands were run");
}
