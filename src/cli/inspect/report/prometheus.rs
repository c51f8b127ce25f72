//! Hours by what Prometheus has scraped: the growth of the counters within a time.

use std::{collections::BTreeMap, path::Path, time::Duration};

use anyhow::{Context as _, Result, bail};
use http::{Request, Uri};
use jiff::Timestamp;
use kube::Client;
use serde::Deserialize;

use super::{Grouping, HeldHours, StrandedRow, UsageReportRow, six_decimals};
use crate::{
    cli::output,
    cluster::write::send::{SendError, send},
};

/// The longest time to wait for the answer to a query.
const PATIENCE: Duration = Duration::from_mins(2);

/// A counter, how many of its units one unit of the report is, and the report's column.
type Column = (&'static str, f64, fn(&mut HeldHours) -> &mut f64);

const COLUMNS: [Column; 3] = [
    ("gpu_seconds", 1.0, |hours| &mut hours.gpus),
    ("gpu_memory_byte_seconds", 1_073_741_824.0, |hours| &mut hours.memory),
    ("gpu_core_seconds", 1.0, |hours| &mut hours.cores),
];

/// The answer to a query.
#[derive(Deserialize)]
struct QueryAnswer {
    data: Vector,
}

#[derive(Deserialize)]
struct Vector {
    result: Vec<Sample>,
}

#[derive(Deserialize)]
struct Sample {
    metric: BTreeMap<String, String>,
    /// The time, and the value as text.
    value: (f64, String),
}

/// Asks one Prometheus about one time.
struct Query<'a> {
    client: Client,
    address: &'a Uri,
    since: Timestamp,
    until: Timestamp,
}

/// The address of a Prometheus.
pub(super) fn address(text: &str) -> Result<Uri> {
    let address: Uri = text.parse()?;
    match address.scheme_str() {
        Some("http" | "https") if address.authority().is_some() => Ok(address),
        _ => bail!("must begin with http:// or https://, as http://localhost:9090"),
    }
}

/// What was held, and what was stranded, within a time.
pub(super) async fn hours(
    address: &Uri,
    token_file: Option<&Path>,
    by: &Grouping,
    (since, until): (Timestamp, Timestamp),
) -> Result<(Vec<UsageReportRow>, Vec<StrandedRow>)> {
    let mut config = kube::Config::new(address.clone());
    config.auth_info.token_file = token_file.map(|file| file.display().to_string());
    config.default_retry = false;
    let client = Client::try_from(config).context("can't create a client for Prometheus")?;
    let query = Query { client, address, since, until };
    let (family, selector) = match by {
        Grouping::Namespace => ("", String::new()),
        Grouping::Owner => ("owner_", String::new()),
        Grouping::Label(key) => ("label_", format!("{{label=\"{key}\"}}")),
    };
    let labels = by.headings().join(", ");
    let mut found: BTreeMap<Vec<String>, HeldHours> = BTreeMap::new();
    for (name, unit, place) in COLUMNS {
        let counter = format!("berth_usage_{family}{name}_total{selector}");
        for (sample, seconds) in query.growth(&counter, &labels).await? {
            let names = by.headings().iter().map(|label| sample.get(*label).cloned().unwrap_or_default());
            *place(found.entry(names.collect()).or_default()) = six_decimals(seconds / unit / 3600.0);
        }
    }
    if found.is_empty() {
        output::remark(&format!(
            "warning: Prometheus at {address} has no series of berth_usage_{family}gpu_seconds_total{selector} for that time"
        ));
    }
    let stranded = query.growth("berth_usage_stranded_gpu_seconds_total", "model, reason").await?;
    let stranded = stranded.into_iter().map(|(sample, seconds)| StrandedRow {
        model: sample.get("model").cloned().unwrap_or_default(),
        reason: sample.get("reason").cloned().unwrap_or_default(),
        gpu_hours: six_decimals(seconds / 3600.0),
    });
    let mut stranded: Vec<_> = stranded.filter(|row| row.gpu_hours > 0.0).collect();
    stranded.sort_by(|one, other| (&one.model, &one.reason).cmp(&(&other.model, &other.reason)));
    let usage = found.into_iter().filter(|(_, hours)| *hours != HeldHours::default());
    Ok((usage.map(|(names, hours)| row(by, names, hours)).collect(), stranded))
}

fn row(by: &Grouping, names: Vec<String>, hours: HeldHours) -> UsageReportRow {
    let mut names = names.into_iter();
    let mut row = UsageReportRow { hours, ..UsageReportRow::default() };
    match by {
        Grouping::Namespace => row.namespace = names.next(),
        Grouping::Owner => {
            (row.namespace, row.owner_kind, row.owner_name) = (names.next(), names.next(), names.next());
        }
        Grouping::Label(_) => row.value = names.next(),
    }
    row
}

impl Query<'_> {
    /// By how much a counter has grown, by these labels. Only the leader shows it, and each leader goes on where the last one was, so the growths of
    /// all replicas add up.
    async fn growth(&self, counter: &str, labels: &str) -> Result<Vec<(BTreeMap<String, String>, f64)>> {
        let seconds = self.until.duration_since(self.since).as_secs();
        let query = format!("sum by ({labels}) (increase({counter}[{seconds}s]))");
        let path = format!("/api/v1/query?query={}&time={}", encoded(&query), self.until.as_second());
        let request = Request::get(path).body(Vec::new()).context("the query can't be sent")?;
        let answer: QueryAnswer =
            send(self.client.clone(), request, PATIENCE).await.map_err(|error: SendError| {
                anyhow::anyhow!("Prometheus at {}: {query}: {error}", self.address)
            })?;
        let samples = answer.data.result.into_iter().filter_map(|sample| {
            let value: f64 = sample.value.1.parse().ok()?;
            value.is_finite().then_some((sample.metric, value))
        });
        Ok(samples.collect())
    }
}

/// As a parameter of a URL.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| {
        if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(byte).collect()
}
