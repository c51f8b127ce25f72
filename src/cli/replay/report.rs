//! The answer of `berth replay`, as JSON has it and as a table.

use std::{collections::BTreeMap, time::Duration};

use jiff::SignedDuration;
use serde::Serialize;

use super::tally::{Measured, PodSize, SizeWaits};
use crate::cli::{output::Shown, table::Table};

/// What came of a replay.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Replay {
    /// Each policy, in the order of the command line.
    pub(super) policies: Vec<PolicyRow>,
}

/// What came of the pods under one policy.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PolicyRow {
    /// Its name.
    pub(super) name: String,
    pods: PodCount,
    gpus: GpuRow,
    wait: Waits,
    over_time: OverTime,
    wait_by_size: Vec<SizeRow>,
    decision: DecisionRow,
    pub(super) curve: Vec<Point>,
    /// Drawn only; empty where no pod was bound.
    #[serde(skip)]
    pub(super) bound_within: Vec<BoundWithin>,
}

/// How many of the pods that ask for most cards were bound that soon, of those that were bound after the warm-up and those that wait at the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BoundWithin {
    pub(super) minutes: f64,
    pub(super) percent: f64,
}

impl BoundWithin {
    /// So many points at most have a curve.
    const POINTS: usize = 200;

    /// The points of the curve, shortest wait first.
    #[expect(clippy::cast_precision_loss, reason = "a number of pods")]
    fn curve(waits: &SizeWaits) -> Vec<Self> {
        let SizeWaits { bound, waiting } = waits;
        let all = bound.len() + waiting.len();
        let mut bound = bound.clone();
        bound.sort();
        let points = Self::POINTS.min(bound.len());
        let point = |number: usize| {
            let pods = (bound.len() * number).div_ceil(points);
            let minutes = bound[pods - 1].as_secs_f64() / 60.0;
            Self { minutes, percent: 100.0 * pods as f64 / all as f64 }
        };
        (1..=points).map(point).collect()
    }
}

/// Means over the time after the warm-up, in percent of all GPUs.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OverTime {
    allocated_percent: f64,
    /// What pods ask for that wait.
    waiting_percent: f64,
}

/// How long pods of one size waited that were bound after the warm-up, or that wait still.
#[derive(Clone, Debug, Serialize)]
struct SizeRow {
    /// `none`, `share` or the number of cards.
    cards: String,
    bound: usize,
    waiting: usize,
    /// Of both, those that wait with the time until the end.
    mean: String,
    /// Of both.
    longest: String,
}

impl SizeRow {
    fn new(size: PodSize, SizeWaits { bound, waiting }: SizeWaits) -> Self {
        let cards = match size {
            PodSize::NoCard => "none".to_owned(),
            PodSize::Share => "share".to_owned(),
            PodSize::Cards(cards) => cards.to_string(),
        };
        let (was_bound, waits_still) = (bound.len(), waiting.len());
        let both = [bound, waiting].concat();
        let longest = both.iter().max().copied().unwrap_or(SignedDuration::ZERO);
        Self {
            cards,
            bound: was_bound,
            waiting: waits_still,
            mean: stated(mean(&both)),
            longest: stated(longest),
        }
    }
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
    // Sums of what came and went end a little below 0, which would be shown as -0.
    (value * parts).round() / parts + 0.0
}

impl Waits {
    /// Of the pods that were bound.
    pub(super) fn of(mut waits: Vec<SignedDuration>) -> Self {
        waits.sort();
        let quantile = |percent: usize| {
            let place = (waits.len() * percent).div_ceil(100).saturating_sub(1);
            stated(waits.get(place).copied().unwrap_or(SignedDuration::ZERO))
        };
        Self { p50: quantile(50), p90: quantile(90), p99: quantile(99), mean: stated(mean(&waits)) }
    }
}

fn mean(waits: &[SignedDuration]) -> SignedDuration {
    let sum: i128 = waits.iter().map(SignedDuration::as_millis).sum();
    let mean = sum / i128::try_from(waits.len().max(1)).unwrap_or(1);
    SignedDuration::from_millis(i64::try_from(mean).unwrap_or(i64::MAX))
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
    /// What came of so many pods; GPUs: `(capacity, allocated, stranded by reason)`.
    pub(super) fn new(
        name: String,
        arrived: usize,
        (capacity, allocated, stranded): (f64, f64, BTreeMap<&'static str, f64>),
        measured: Measured,
        deciding: Duration,
        curve: &Curve,
    ) -> Self {
        let percent = |gpus: f64| rounded(if capacity > 0.0 { 100.0 * gpus / capacity } else { 0.0 }, 100.0);
        let Measured { waits, by_size, means } = measured;
        let bound = waits.len();
        let largest = by_size.last_key_value().map(|(_, waits)| waits);
        let bound_within = largest.map(BoundWithin::curve).unwrap_or_default();
        let mean = deciding.as_micros() / u128::try_from(arrived.max(1)).unwrap_or(1);
        Self {
            name,
            pods: PodCount { arrived, bound, waiting: arrived.saturating_sub(bound) },
            gpus: GpuRow {
                capacity,
                allocated: rounded(allocated, 10.0),
                allocated_percent: percent(allocated),
                stranded_by_reason: stranded
                    .into_iter()
                    .map(|(why, gpus)| (why, rounded(gpus, 10.0)))
                    .collect(),
            },
            wait: Waits::of(waits),
            over_time: OverTime { allocated_percent: percent(means.0), waiting_percent: percent(means.1) },
            wait_by_size: by_size.into_iter().map(|(size, waits)| SizeRow::new(size, waits)).collect(),
            decision: DecisionRow { mean_micros: u64::try_from(mean).unwrap_or(u64::MAX) },
            curve: curve.points(),
            bound_within,
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

    /// Means over time, and waits by how many cards pods ask for: a row for each policy.
    pub(super) fn steady_table(&self) -> Shown {
        let sizes: Vec<_> = self.policies.iter().flat_map(|policy| &policy.wait_by_size).collect();
        let mut columns: Vec<&str> = Vec::new();
        for SizeRow { cards, .. } in sizes {
            if !columns.contains(&cards.as_str()) {
                columns.push(cards);
            }
        }
        let headings = columns.iter().map(|cards| format!("WAIT {}", cards.to_uppercase()));
        let headings: Vec<_> =
            ["POLICY", "ALLOCATED", "WAITING"].map(str::to_owned).into_iter().chain(headings).collect();
        let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
        let mut table = Table::new(&headings);
        for PolicyRow { name, over_time, wait_by_size, .. } in &self.policies {
            let percent = |value: f64| format!("{value:.2} %");
            let mut cells =
                vec![name.clone(), percent(over_time.allocated_percent), percent(over_time.waiting_percent)];
            for cards in &columns {
                let row = wait_by_size.iter().find(|row| row.cards == *cards);
                cells.push(row.map_or_else(String::new, |row| row.mean.clone()));
            }
            table.row(cells);
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
    fn nothing_is_not_less_than_nothing() {
        assert_eq!(serde_json::to_string(&rounded(-1e-9, 100.0)).unwrap(), "0.0");
    }

    #[test]
    fn pods_that_wait_at_the_end_were_not_bound_within_any_time() {
        let waits = |bound: &[i64], waiting: &[i64]| {
            let minutes =
                |all: &[i64]| all.iter().map(|minutes| SignedDuration::from_mins(*minutes)).collect();
            SizeWaits { bound: minutes(bound), waiting: minutes(waiting) }
        };
        let curve = BoundWithin::curve(&waits(&[5, 0, 1], &[60]));
        let points = curve.iter().map(|point| (point.minutes, point.percent));
        assert_eq!(points.collect::<Vec<_>>(), [(0.0, 25.0), (1.0, 50.0), (5.0, 75.0)]);
        assert_eq!(BoundWithin::curve(&waits(&[], &[1])), []);
        let many: Vec<i64> = (1..=1000).collect();
        let curve = BoundWithin::curve(&waits(&many, &[]));
        assert_eq!((curve.len(), curve[0].minutes, curve[199].minutes), (200, 5.0, 1000.0));
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
