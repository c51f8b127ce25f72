//! kube-scheduler's scheduling cycle without an API server (`tests/controlplane`, `decide`).

use std::{
    io::{BufWriter, Write as _},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::json;

use super::cluster::Cluster;

/// The profile of kube-scheduler's default configuration.
const SCHEDULER: &str = "default-scheduler";

/// What kube-scheduler says of its decisions.
#[derive(Debug, Deserialize)]
struct Timing {
    seconds: Vec<f64>,
}

/// How long the decision of each pod that waits took, in the order of the list.
pub(crate) fn decide_all(program: &Path, cluster: &Cluster) -> anyhow::Result<Vec<Duration>> {
    let mut command = Command::new(program);
    let command = command.arg("decide").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| program.display().to_string())?;
    let list = json!({"apiVersion": "v1", "kind": "List", "items": cluster.objects(SCHEDULER)});
    let mut input = BufWriter::new(child.stdin.take().context("standard input is a pipe")?);
    serde_json::to_writer(&mut input, &list).context("objects for kube-scheduler")?;
    input.flush().context("objects for kube-scheduler")?;
    drop(input);
    let output = child.wait_with_output().context("kube-scheduler")?;
    ensure!(output.status.success(), "kube-scheduler: {}", output.status);
    let timing: Timing = serde_json::from_slice(&output.stdout).context("the answer of kube-scheduler")?;
    ensure!(timing.seconds.len() == cluster.pods, "kube-scheduler decided {} pods", timing.seconds.len());
    Ok(timing.seconds.into_iter().map(Duration::from_secs_f64).collect())
}
