//! What was used, as counters: shown as it is stored, so that a restart or another leader goes on from the values that were shown.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet},
    metrics::MetricType,
    registry::Registry,
};

use crate::scheduling::showback::{HeldSeconds, UsageAccount, UsageRows};

/// Name and help of a counter, and its value.
type Column = (&'static str, &'static str, fn(HeldSeconds) -> f64);

const NAMESPACES: [Column; 3] = [
    (
        "berth_usage_gpu_seconds",
        "GPUs that pods of a namespace have held, times seconds: of each card the larger part of its memory and compute",
        gpus,
    ),
    (
        "berth_usage_gpu_memory_byte_seconds",
        "Memory of cards that pods of a namespace have held, times seconds",
        memory,
    ),
    (
        "berth_usage_gpu_core_seconds",
        "Compute of cards that pods of a namespace have held, times seconds; 1 is one whole card",
        cores,
    ),
];

const OWNERS: [Column; 3] = [
    (
        "berth_usage_owner_gpu_seconds",
        "GPUs that pods of a workload have held, times seconds: of each card the larger part of its memory and compute",
        gpus,
    ),
    (
        "berth_usage_owner_gpu_memory_byte_seconds",
        "Memory of cards that pods of a workload have held, times seconds",
        memory,
    ),
    (
        "berth_usage_owner_gpu_core_seconds",
        "Compute of cards that pods of a workload have held, times seconds; 1 is one whole card",
        cores,
    ),
];

const LABELS: [Column; 3] = [
    (
        "berth_usage_label_gpu_seconds",
        "GPUs that pods with a value of a label have held, times seconds: of each card the larger part of its memory and compute",
        gpus,
    ),
    (
        "berth_usage_label_gpu_memory_byte_seconds",
        "Memory of cards that pods with a value of a label have held, times seconds",
        memory,
    ),
    (
        "berth_usage_label_gpu_core_seconds",
        "Compute of cards that pods with a value of a label have held, times seconds; 1 is one whole card",
        cores,
    ),
];

const STRANDED: [Column; 1] = [(
    "berth_usage_stranded_gpu_seconds",
    "GPUs that were free and could be given to none of the pods that may come, times seconds, by what was lacking first",
    gpus,
)];

/// The counters; clones share them.
#[derive(Clone, Debug, Default)]
pub(in crate::cluster) struct UsageMetrics(Arc<Mutex<Option<ShownAccounts>>>);

/// Two accounts in succession. A row of the newer one is shown with its value in the older one, or with 0: Prometheus computes a rate from the value
/// before the first growth, so what a row begins with must be seen too.
#[derive(Debug)]
struct ShownAccounts {
    before: UsageAccount,
    stored: UsageAccount,
}

impl UsageMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }

    /// A term begins with this account, which is stored.
    pub(in crate::cluster) fn begin(&self, stored: &UsageAccount) {
        self.show(Some(ShownAccounts { before: stored.clone(), stored: stored.clone() }));
    }

    /// This account is stored now.
    pub(in crate::cluster) fn count(&self, stored: &UsageAccount) {
        let before = self.shown().take().map_or_else(|| stored.clone(), |shown| shown.stored);
        self.show(Some(ShownAccounts { before, stored: stored.clone() }));
    }

    /// Another replica leads: this one shows nothing.
    pub(super) fn clear(&self) {
        self.show(None);
    }

    fn show(&self, shown: Option<ShownAccounts>) {
        *self.shown() = shown;
    }

    fn shown(&self) -> std::sync::MutexGuard<'_, Option<ShownAccounts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for UsageMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let shown = self.shown();
        let shown = shown.as_ref();
        counters(
            &mut encoder,
            &NAMESPACES,
            shown,
            |account| &account.namespaces,
            |[namespace]| [("namespace", &**namespace)],
        )?;
        counters(
            &mut encoder,
            &OWNERS,
            shown,
            |account| &account.workloads,
            |[namespace, kind, name]| {
                [("namespace", &**namespace), ("owner_kind", &**kind), ("owner_name", &**name)]
            },
        )?;
        counters(
            &mut encoder,
            &LABELS,
            shown,
            |account| &account.labels,
            |[label, value]| [("label", &**label), ("value", &**value)],
        )?;
        counters(
            &mut encoder,
            &STRANDED,
            shown,
            |account| &account.stranded,
            |[model, reason]| [("model", &**model), ("reason", &**reason)],
        )?;
        let help = "Until when usage is counted and stored, in seconds since 1970";
        let name = "berth_usage_counted_until_timestamp_seconds";
        let mut gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        match shown {
            Some(shown) => gauge.encode_gauge(&shown.stored.counted_until.as_second()),
            None => Ok(()),
        }
    }
}

/// Writes these counters of each row.
fn counters<'a, const N: usize, L: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder<'_>,
    columns: &[Column],
    shown: Option<&'a ShownAccounts>,
    rows: fn(&UsageAccount) -> &UsageRows<N>,
    labels: fn(&'a [Arc<str>; N]) -> L,
) -> fmt::Result {
    for (name, help, value) in columns {
        let mut counter = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        if let Some(ShownAccounts { before, stored }) = shown {
            for (names, _) in rows(stored).iter() {
                let held = rows(before).get(names).map(|row| row.held).unwrap_or_default();
                let labels = labels(names);
                let mut row = counter.encode_family(&labels)?;
                row.encode_counter::<NoLabelSet, f64, f64>(&value(held), None)?;
            }
        }
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a counter of Prometheus is a floating point number")]
fn gpus(held: HeldSeconds) -> f64 {
    held.gpus as f64 / 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "a counter of Prometheus is a floating point number")]
fn memory(held: HeldSeconds) -> f64 {
    held.memory as f64 * 1_048_576.0
}

#[expect(clippy::cast_precision_loss, reason = "a counter of Prometheus is a floating point number")]
fn cores(held: HeldSeconds) -> f64 {
    held.cores as f64 / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    use crate::scheduling::{
        model::workload::Workload,
        showback::{HeldParts, UsageSpan},
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn page(metrics: &UsageMetrics) -> Vec<String> {
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
        let shown =
            |line: &&str| line.starts_with("berth_usage_gpu") || line.starts_with("berth_usage_owner_gpu_s");
        page.lines().filter(shown).map(str::to_owned).collect()
    }

    #[test]
    fn a_row_begins_with_zero_and_shows_what_was_stored_before() {
        let span = UsageSpan {
            pod: "p".into(),
            namespace: "team-a".into(),
            workload: Workload { kind: "Job".into(), name: "train".into() },
            labels: Vec::new(),
            held: HeldParts { memory: 1, cores: 50, gpus: 500 },
            from: at(0),
            until: at(1000),
        };
        let metrics = UsageMetrics::default();
        assert_eq!(page(&metrics), Vec::<String>::new(), "another replica leads");
        let first = UsageAccount::begin(at(0));
        metrics.begin(&first);
        let second = first.advance(at(60), vec![span.clone()], &[]);
        metrics.count(&second);
        let shown = |gpus: &str, memory: &str, cores: &str| {
            vec![
                format!("berth_usage_gpu_seconds_total{{namespace=\"team-a\"}} {gpus}"),
                format!("berth_usage_gpu_memory_byte_seconds_total{{namespace=\"team-a\"}} {memory}"),
                format!("berth_usage_gpu_core_seconds_total{{namespace=\"team-a\"}} {cores}"),
                format!(
                    "berth_usage_owner_gpu_seconds_total{{namespace=\"team-a\",owner_kind=\"Job\",owner_name=\"train\"}} {gpus}"
                ),
            ]
        };
        assert_eq!(page(&metrics), shown("0.0", "0.0", "0.0"));
        let third = second.advance(at(120), vec![span], &[]);
        metrics.count(&third);
        assert_eq!(page(&metrics), shown("30.0", "62914560.0", "30.0"));
        metrics.begin(&third);
        assert_eq!(
            page(&metrics),
            shown("60.0", "125829120.0", "60.0"),
            "the next leader goes on from what is stored"
        );
    }
}
