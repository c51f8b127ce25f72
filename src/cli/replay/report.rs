//! The answer of `berth replay`, as JSON has it and as a table.

use std::{collections::BTreeMap, time::Duration};

use jiff::SignedDuration;
use serde::Serialize;

use crate::cli::{output::Shown, table::Table};

/// What came of a replay.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Replay {
    /// Each policy, in the order of the command line.
    pub(super) policies: Vec<PolicyRow>,
}

/// What came of the pods under one policy.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PolicyRow {
    /// Its name.
    pub(super) name: String,
    pods: PodCount,
    gpus: GpuRow,
    wait: Waits,
    decision: DecisionRow,
    pub(super) curve: Vec<Point>,
}

/// How many pods there were.
#[derive(Clone, Copy, Debug, Serialize)]
struct PodCount {
    arrived: usize,
    bound: usize,
    waiting: usize,
}

/// GPUs at the end, in parts.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct GpuRow {
    capacity: f64,
    allocated: f64,
    allocated_percent: f64,
    stranded_by_reason: BTreeMap<&'static str, f64>,
}

/// How long pods waited that were bound.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Waits {
    p50: String,
    p90: String,
    p99: String,
    mean: String,
}

/// What deciding took on this machine.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DecisionRow {
    mean_micros: u64,
}

/// One percent of demand: the means over all arrivals whose demand rounds to it.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Point {
    #[serde(rename = "demandPercent")]
    pub(super) demand: u32,
    #[serde(rename = "allocatedPercent")]
    pub(super) allocated: f64,
    #[serde(rename = "fragmentationPercent")]
    pub(super) fragmentation: f64,
}

/// Allocated and fragmented GPUs by demand.
#[derive(Debug)]
pub(super) struct Curve {
    capacity: f64,
    /// By percent: how many arrivals, and the sums of what was allocated and fragmented, in GPUs.
    sums: BTreeMap<u32, (u32, f64, f64)>,
}

impl Curve {
    /// Of a cluster with so many GPUs.
    pub(super) fn new(capacity: f64) -> Self {
        Self { capacity, sums: BTreeMap::new() }
    }

    /// Takes in an arrival, all in GPUs.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a percentage, which is no less than 0"
    )]
    pub(super) fn add(&mut self, demand: f64, allocated: f64, fragmented: f64) {
        if self.capacity > 0.0 {
            let percent = (100.0 * demand / self.capacity).round() as u32;
            let (count, sum, fragments) = self.sums.entry(percent).or_default();
            (*count, *sum, *fragments) = (*count + 1, *sum + allocated, *fragments + fragmented);
        }
    }

    fn points(&self) -> Vec<Point> {
        let point = |(percent, (count, allocated, fragmented)): (&u32, &(u32, f64, f64))| {
            let mean = |sum: f64| rounded(100.0 * sum / f64::from(*count) / self.capacity, 100.0);
            Point { demand: *percent, allocated: mean(*allocated), fragmentation: mean(*fragmented) }
        };
        self.sums.iter().map(point).collect()
    }
}

fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

impl Waits {
    /// Of the pods that were bound.
    pub(super) fn of(mut waits: Vec<SignedDuration>) -> Self {
        waits.sort();
        let quantile = |percent: usize| {
            let place = (waits.len() * percent).div_ceil(100).saturating_sub(1);
            stated(waits.get(place).copied().unwrap_or(SignedDuration::ZERO))
        };
        let sum: i128 = waits.iter().map(SignedDuration::as_millis).sum();
        let mean = i64::try_from(sum / i128::try_from(waits.len().max(1)).unwrap_or(1)).unwrap_or(i64::MAX);
        Self {
            p50: quantile(50),
            p90: quantile(90),
            p99: quantile(99),
            mean: stated(SignedDuration::from_millis(mean)),
        }
    }
}

/// As Go's `Duration` is printed, in whole seconds: `1h2m3s`, `12m0s`.
fn stated(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, minutes, seconds) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

impl PolicyRow {
    /// What came of the pods: `(arrived, bound)`; GPUs: `(capacity, allocated, stranded by reason)`.
    pub(super) fn new(
        name: String,
        (arrived, bound): (usize, usize),
        (capacity, allocated, stranded): (f64, f64, BTreeMap<&'static str, f64>),
        wait: Waits,
        deciding: Duration,
        curve: &Curve,
    ) -> Self {
        let percent = if capacity > 0.0 { 100.0 * allocated / capacity } else { 0.0 };
        let mean = deciding.as_micros() / u128::try_from(arrived.max(1)).unwrap_or(1);
        Self {
            name,
            pods: PodCount { arrived, bound, waiting: arrived.saturating_sub(bound) },
            gpus: GpuRow {
                capacity,
                allocated: rounded(allocated, 10.0),
                allocated_percent: rounded(percent, 100.0),
                stranded_by_reason: stranded
                    .into_iter()
                    .map(|(why, gpus)| (why, rounded(gpus, 10.0)))
                    .collect(),
            },
            wait,
            decision: DecisionRow { mean_micros: u64::try_from(mean).unwrap_or(u64::MAX) },
            curve: curve.points(),
        }
    }
}

impl Replay {
    /// A row for each policy.
    pub(super) fn table(&self) -> Shown {
        let headings =
            ["POLICY", "ARRIVED", "BOUND", "WAITING", "ALLOCATED", "STRANDED", "WAIT P50", "P99", "DECISION"];
        let mut table = Table::new(&headings);
        for PolicyRow { name, pods, gpus, wait, decision, .. } in &self.policies {
            let stranded = gpus.stranded_by_reason.iter().map(|(why, gpus)| format!("{why} {gpus:.1}"));
            table.row([
                name.clone(),
                pods.arrived.to_string(),
                pods.bound.to_string(),
                pods.waiting.to_string(),
                format!("{:.1} of {} ({:.2} %)", gpus.allocated, gpus.capacity, gpus.allocated_percent),
                stranded.collect::<Vec<_>>().join(", "),
                wait.p50.clone(),
                wait.p99.clone(),
                format!("{} µs", decision.mean_micros),
            ]);
        }
        table.render()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_stated_as_kubernetes_does() {
        let states = [0, 59, 60, 3600, 3723].map(|seconds| stated(SignedDuration::from_secs(seconds)));
        assert_eq!(states, ["0s", "59s", "1m0s", "1h0m0s", "1h2m3s"]);
    }

    #[test]
    fn quantiles_are_waits_that_there_were() {
        let Waits { p50, p90, p99, mean } = Waits::of((1..=10).map(SignedDuration::from_secs).collect());
        assert_eq!([p50, p90, p99, mean], ["5s", "9s", "10s", "5s"]);
    }

    #[test]
    fn a_point_is_the_mean_of_the_arrivals_that_round_to_it() {
        let mut curve = Curve::new(100.0);
        curve.add(9.6, 8.0, 1.0);
        curve.add(10.4, 10.0, 2.0);
        let [Point { demand, allocated, fragmentation }] = curve.points()[..] else { panic!("{curve:?}") };
        assert_eq!((demand, allocated, fragmentation), (10, 9.0, 1.5));
    }
}
