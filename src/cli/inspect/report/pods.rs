//! Hours by the pods that there are: each from when it was bound to when it ended, or to now.

use std::sync::Arc;

use anyhow::Result;
use jiff::Timestamp;

use super::{Grouping, UsageReportRow};
use crate::{
    api::usage::rows,
    cli::{
        inspect::cluster::{InspectedArgs, cluster_of},
        output,
    },
    cluster::{
        Reader,
        report::{
            cards::{NodeCards, held_on},
            showback,
        },
    },
    config::Config,
    object::{Pod, selector::LabelValues},
    scheduling::{
        Snapshot,
        model::workload::Workload,
        showback::{UsageAccount, UsageSpan},
    },
};

/// What the pods of a cluster have held within a time.
pub(super) async fn hours(
    cluster: &InspectedArgs,
    config: &Config,
    by: &Grouping,
    (since, until): (Timestamp, Timestamp),
) -> Result<Vec<UsageReportRow>> {
    let documents = cluster.documents().await?;
    let (reader, simulated) = cluster_of(&documents, config, until)?;
    let labels: Vec<Arc<str>> = match by {
        Grouping::Label(key) => vec![key.as_str().into()],
        Grouping::Namespace | Grouping::Owner => Vec::new(),
    };
    let mut spans = Vec::new();
    for document in documents.iter().filter(|document| document.kind() == "Pod") {
        let pod: Pod = document.read()?;
        spans.extend(span(&pod, &reader, simulated.scheduler().snapshot(), &labels, until));
    }
    output::remark("warning: pods that are gone are not counted; --prometheus counts them too");
    let account = UsageAccount::unbounded(since).advance(until, spans, &[]);
    Ok(rows(&account, by))
}

/// For how long a bound pod has held what it holds, or held until it ended.
fn span(
    pod: &Pod,
    reader: &Reader,
    snapshot: &Snapshot,
    labels: &[Arc<str>],
    now: Timestamp,
) -> Option<UsageSpan> {
    let info = reader.pod(pod).0;
    let holding = info.holding.as_ref()?;
    let tenure = holding.tenure.as_ref()?;
    let cards = snapshot.node(&holding.node).map(|node| NodeCards::of(node, reader.dialects()));
    let held = showback::parts(&held_on(cards.as_ref(), &holding.allocations, holding.init));
    let until = if pod.is_terminal() { pod.ended_at().unwrap_or(tenure.since) } else { now };
    Some(UsageSpan {
        pod: info.key.uid.clone(),
        namespace: info.key.namespace.clone(),
        workload: Workload::clone(&tenure.workload),
        labels: showback::values(labels, |label| info.footprint.labels.value(label)),
        held,
        from: tenure.since,
        until,
    })
}
