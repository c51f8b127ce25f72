//! A reader of the documentation: a shell in a folder with the examples, with `berth`, `kubectl` and `helm` on its path.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::{serve::block::Call, support::controlplane::ControlPlane};

pub(crate) struct Reader {
    folder: tempfile::TempDir,
    programs: String,
    kubeconfig: PathBuf,
    webhook: SocketAddr,
}

impl Reader {
    /// Of pages about this API server; `clients` are the programs that Go has built.
    pub(crate) fn new(plane: &ControlPlane, clients: &[&Path], webhook: SocketAddr) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for shown in ["examples", "deploy"] {
            std::os::unix::fs::symlink(root.join(shown), folder.path().join(shown)).unwrap();
        }
        let programs = std::iter::once(Path::new(env!("CARGO_BIN_EXE_berth"))).chain(clients.iter().copied());
        let folders: Vec<_> = programs.map(|file| file.parent().unwrap().display().to_string()).collect();
        Self { folder, programs: folders.join(":"), kubeconfig: plane.kubeconfig("admin"), webhook }
    }

    /// Shows a folder of the machine under a name in the reader's own.
    pub(crate) fn show(&self, folder: &Path, name: &str) {
        std::os::unix::fs::symlink(folder, self.folder.path().join(name)).unwrap();
    }

    /// Runs a line of a page. No job of HAMi's chart would end, since nothing runs here. The API server reaches the webhook by its URL, since no Service has an address here; and no namespace is ever
    /// gone, since none is finalized.
    pub(crate) fn run(&self, line: &str) -> Output {
        let by_url = format!("berth manifests --webhook-url https://{}", self.webhook);
        let takes_url = !["--shadow", "--cert-manager"].iter().any(|flag| line.contains(flag));
        let installs = line.starts_with("berth manifests") && line.contains("| kubectl") && takes_url;
        let line = if installs { line.replacen("berth manifests", &by_url, 1) } else { line.to_owned() };
        let line = line.replace("kubectl delete ", "kubectl delete --wait=false ");
        let line = line.replace("helm upgrade hami ", "helm upgrade hami --no-hooks ");
        let script = format!("set -o pipefail; PATH=\"{}:$PATH\"\n{line}", self.programs);
        let mut shell = Command::new("bash");
        shell.args(["-c", &script]).current_dir(self.folder.path()).env("KUBECONFIG", &self.kubeconfig);
        for variable in ["HOME", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            shell.env(variable, self.folder.path());
        }
        shell.env_remove("BERTH_CONFIG").env("NO_COLOR", "1").output().unwrap()
    }

    /// What is wrong with how a line ended or what it printed.
    pub(crate) fn fault(&self, line: &str, call: &Call) -> Option<String> {
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
