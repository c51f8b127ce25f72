//! A binder's process, seen from the one that measures it.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use clap::ValueEnum as _;

use super::binder::{Kind, LockPolicy, READY};

const START_LIMIT: Duration = Duration::from_mins(1);

/// A running binder; killed on drop.
pub(crate) struct Binder {
    child: Child,
    out: Option<BufReader<ChildStdout>>,
}

impl Binder {
    /// Starts this program as a binder; returns once it has listed the cluster.
    pub(crate) async fn start(
        (kind, at_once): (Kind, usize),
        node_lock: LockPolicy,
        kubeconfig: &Path,
    ) -> anyhow::Result<Self> {
        let kind = kind.to_possible_value().expect("no binder is hidden");
        let node_lock = node_lock.to_possible_value().expect("no policy is hidden");
        let child = Command::new(std::env::current_exe().context("this program")?)
            .args(["binder", kind.get_name(), "--at-once", &at_once.to_string()])
            .args(["--node-lock", node_lock.get_name(), "--kubeconfig"])
            .arg(kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.context("starting a binder")?;
        let out = child.stdout.take().map(BufReader::new);
        let mut binder = Self { child, out };
        let line =
            tokio::time::timeout(START_LIMIT, binder.line()).await.context("a binder is not ready")??;
        ensure!(line == READY, "a binder said `{line}` instead of {READY}");
        Ok(binder)
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it, and returns what it asked of the API server.
    pub(crate) async fn stop(mut self) -> anyhow::Result<BTreeMap<String, u64>> {
        drop(self.child.stdin.take());
        let counts = self.line().await?;
        let status = self.child.wait().context("waiting for a binder")?;
        ensure!(status.success(), "a binder ended with {status}");
        serde_json::from_str(&counts).with_context(|| format!("a binder said `{counts}`"))
    }

    async fn line(&mut self) -> anyhow::Result<String> {
        let Some(mut out) = self.out.take() else { bail!("a binder is being read already") };
        let read = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            out.read_line(&mut line).map(|_| (out, line))
        });
        let (out, line) = read.await?.context("reading from a binder")?;
        self.out = Some(out);
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Binder {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let killed = self.child.kill().and_then(|()| self.child.wait());
            if let Err(error) = killed {
                eprintln!("a binder could not be ended: {error}");
            }
        }
    }
}
