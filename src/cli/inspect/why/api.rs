//! Why a pod waits, as Berth's API tells it; of a pod that it does not know, what the pod's own object says.

use anyhow::{Result, anyhow};
use serde::Deserialize;

use super::{PodExplanation, PodOutcome, judge};
use crate::{
    api::change::PodChanges,
    cli::inspect::{
        berth_api::{BerthApi, BerthApiError},
        cluster::{InspectedCluster, is_name},
    },
    cluster::Clock,
    config::Config,
};

/// The smallest change, as it is told.
#[derive(Debug, Deserialize)]
struct ToldChange {
    change: PodChanges,
}

/// So often is a pod asked for at most until the replica answers that leads: each time another one may.
const MOST_TRIES: usize = 16;

/// A pod as one replica tells it.
#[derive(Debug, Deserialize)]
struct ToldPod {
    /// Whether it knows of attempts; absent: the pod does not wait.
    leads: Option<bool>,
    #[serde(flatten)]
    explanation: PodExplanation,
}

/// The pod as the replica that leads tells it, or another one where none is found to lead.
async fn told(api: &BerthApi, path: &[&str]) -> Result<PodExplanation, BerthApiError> {
    let mut told = api.get::<ToldPod>(path, "").await?;
    for _ in 1..MOST_TRIES {
        if told.leads != Some(false) {
            return Ok(told.explanation);
        }
        told = api.get(path, "").await?;
    }
    Ok(PodExplanation { attempts: None, ..told.explanation })
}

/// Why the pod waits.
pub(super) async fn explain(
    api: &BerthApi,
    cluster: Option<&InspectedCluster>,
    config: &Config,
    (namespace, name): (&str, &str),
) -> Result<PodExplanation> {
    let none = || anyhow!("pod {name} not found in namespace {namespace}");
    if !is_name(namespace) || !is_name(name) {
        return Err(none());
    }
    let path = ["namespaces", namespace, "pods", name];
    let told = match told(api, &path).await {
        Ok(told) => told,
        Err(error) if error.is_not_found() => {
            let unknown = || anyhow!("pod {name} in namespace {namespace} is not known to Berth");
            let cluster = cluster.ok_or_else(unknown)?;
            let pod = cluster.pod(namespace, name).await?.ok_or_else(none)?;
            let told = judge(&[pod], config, (namespace, name), Clock::System.now())?;
            // Alone it was compared with no cluster, and Berth has not seen it yet.
            let blank = PodExplanation { since: told.since, ..PodExplanation::new(namespace, name) };
            return Ok(if told.outcome == PodOutcome::Waiting { blank } else { told });
        }
        Err(error) => return Err(error.into()),
    };
    if told.outcome != PodOutcome::Waiting || told.explained.fitting != Some(0) {
        return Ok(told);
    }
    let change = match api.get::<ToldChange>(&[&path[..], &["change"]].concat(), "").await {
        Ok(ToldChange { change }) => change,
        // It was bound meanwhile.
        Err(error) if error.is_not_found() => PodChanges::default(),
        Err(error) => return Err(error.into()),
    };
    Ok(PodExplanation { change, ..told })
}
