//! Tables of nodes and pods, as the openb traces of Alibaba's clusters have them, as Kubernetes objects.
//!
//! Source: alibaba/clusterdata `cluster-trace-gpu-v2023`. A GPU has 1000 milli there; here it has 100 MiB for each of ten milli, so that a share is
//! as large as in the trace. A pod of whole GPUs asks for all of their memory and compute.

use std::path::Path;

use anyhow::{Context as _, bail};
use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::{Value, json};

use super::arrivals::{RUN_SECONDS, START};
use crate::cli::documents::{Document, DocumentPlace};

/// A row of a table of nodes.
#[derive(Debug, Deserialize)]
struct NodeRow {
    sn: String,
    cpu_milli: u64,
    memory_mib: u64,
    gpu: u32,
    #[serde(default)]
    model: String,
}

/// A row of a table of pods.
#[derive(Debug, Deserialize)]
struct PodRow {
    name: String,
    cpu_milli: u64,
    memory_mib: u64,
    num_gpu: u32,
    gpu_milli: Option<u32>,
    #[serde(default)]
    gpu_spec: String,
    creation_time: Option<f64>,
    deletion_time: Option<f64>,
}

/// The memory of a card, in MiB, ten for each milli.
const MEMORY: u32 = 10_000;
/// So many pods may share a card.
const SLOTS: u32 = 1000;
/// So many pods a node may have: the traces bound them by cpu and memory alone.
const PODS: u32 = 100_000;

/// The objects that the rows of a table describe; the columns say which kind.
pub(super) fn read(file: &Path) -> anyhow::Result<Vec<Document>> {
    let called = file.display().to_string();
    let mut reader = csv::Reader::from_path(file).with_context(|| called.clone())?;
    let columns = reader.headers().with_context(|| called.clone())?.clone();
    let has = |column: &str| columns.iter().any(|one| one == column);
    let is_of_nodes = match (has("sn") && has("gpu"), has("num_gpu") && has("gpu_milli")) {
        (true, _) => true,
        (false, true) => false,
        (false, false) => bail!(
            "{called}: neither a table of nodes (sn, cpu_milli, memory_mib, gpu, model) nor of pods (name, cpu_milli, memory_mib, num_gpu, \
             gpu_milli, ...)"
        ),
    };
    let mut documents = Vec::new();
    for (row, record) in (1..).zip(reader.records()) {
        let record = record.with_context(|| called.clone())?;
        let at = || format!("{called}: row {row}");
        let value = if is_of_nodes {
            node(&record.deserialize(Some(&columns)).with_context(at)?)
        } else {
            pod(&record.deserialize(Some(&columns)).with_context(at)?).with_context(at)?
        };
        let place = DocumentPlace { file: called.clone(), document: row, item: None };
        documents.push(Document { value, place });
    }
    Ok(documents)
}

/// A node, whose cards HAMi's device plugin has registered.
fn node(row: &NodeRow) -> Value {
    let card = |index: u32| {
        json!({"id": format!("{}-{index}", row.sn), "index": index, "count": SLOTS, "devmem": MEMORY, "devcore": 100,
            "type": format!("NVIDIA-{}", row.model), "numa": 0, "mode": "hami-core", "health": true})
    };
    let cards: Vec<Value> = (0..row.gpu).map(card).collect();
    let annotations = if cards.is_empty() {
        json!({})
    } else {
        json!({"hami.io/node-nvidia-register": Value::from(cards).to_string()})
    };
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": row.sn, "annotations": annotations},
        "status": {"allocatable": {
            "cpu": format!("{}m", row.cpu_milli), "memory": format!("{}Mi", row.memory_mib), "pods": PODS.to_string(),
        }},
    })
}

/// A pod, whichever scheduler places it.
fn pod(row: &PodRow) -> anyhow::Result<Value> {
    let mut requests =
        json!({"cpu": format!("{}m", row.cpu_milli), "memory": format!("{}Mi", row.memory_mib)});
    let milli = row.gpu_milli.filter(|milli| row.num_gpu == 1 && *milli < 1000);
    let mut limits = json!({});
    if row.num_gpu > 0 {
        limits["nvidia.com/gpu"] = json!(row.num_gpu);
        match milli {
            Some(0) => bail!("gpu_milli is 0 for a pod with a GPU"),
            Some(milli) => limits["nvidia.com/gpumem"] = json!(milli * (MEMORY / 1000)),
            None => {
                limits["nvidia.com/gpumem"] = json!(MEMORY);
                limits["nvidia.com/gpucores"] = json!(100);
            }
        }
        for (name, amount) in limits.as_object().into_iter().flatten() {
            requests[name] = amount.clone();
        }
    }
    let mut annotations = json!({});
    if row.num_gpu > 0 && !row.gpu_spec.is_empty() {
        annotations["nvidia.com/use-gputype"] = row.gpu_spec.replace('|', ",").into();
    }
    let arrives = row.creation_time.unwrap_or_default();
    if let Some(ends) = row.deletion_time.filter(|ends| *ends > arrives) {
        annotations[RUN_SECONDS] = (ends - arrives).to_string().into();
    }
    let created = START.checked_add(SignedDuration::try_from_secs_f64(arrives)?)?;
    Ok(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "default", "name": row.name, "uid": row.name, "annotations": annotations,
            "creationTimestamp": created.to_string()},
        "spec": {"containers": [{"name": "main", "resources": {"requests": requests, "limits": limits}}]},
    }))
}
