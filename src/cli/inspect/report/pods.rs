//! Hours by the pods that there are: each from when it was bound to when it ended, or to now.

use std::sync::Arc;

use anyhow::Result;
use jiff::Timestamp;

use super::{Grouping, HeldHours, UsageReportRow, six_decimals};
use crate::{
    cli::{
        inspect::cluster::{InspectedArgs, cluster_of},
        output,
    },
    cluster::{
        Reader,
        cards::{NodeCards, held_on},
        showback,
    },
    config::Config,
    object::Pod,
    scheduling::{
        Snapshot,
        showback::{HeldSeconds, UsageAccount, UsageRow, UsageSpan},
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
    output::remark("pods that are gone are not counted; with --prometheus they are");
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
        workload: tenure.workload.clone(),
        labels: showback::values(labels, |label| info.footprint.labels.get(label).map(String::as_str)),
        held,
        from: tenure.since,
        until,
    })
}

fn rows(account: &UsageAccount, by: &Grouping) -> Vec<UsageReportRow> {
    let row = |row: &UsageRow| UsageReportRow { hours: of(row.held), ..UsageReportRow::default() };
    let text = |name: &Arc<str>| Some(name.to_string());
    match by {
        Grouping::Namespace => {
            let rows = account.namespaces.iter();
            rows.map(|([namespace], held)| UsageReportRow { namespace: text(namespace), ..row(held) })
                .collect()
        }
        Grouping::Owner => {
            let rows = account.workloads.iter().map(|([namespace, kind, name], held)| UsageReportRow {
                namespace: text(namespace),
                owner_kind: text(kind),
                owner_name: text(name),
                ..row(held)
            });
            rows.collect()
        }
        Grouping::Label(_) => {
            let rows = account.labels.iter();
            rows.map(|([_, value], held)| UsageReportRow { value: text(value), ..row(held) }).collect()
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "hours are printed with six decimals")]
fn of(held: HeldSeconds) -> HeldHours {
    HeldHours {
        gpus: six_decimals(held.gpus as f64 / 1000.0 / 3600.0),
        memory: six_decimals(held.memory as f64 / 1024.0 / 3600.0),
        cores: six_decimals(held.cores as f64 / 100.0 / 3600.0),
    }
}
