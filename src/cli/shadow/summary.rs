//! Pages of a shadow added up, and what follows from them.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::{
    cli::{output::Shown, table::Table},
    cluster::shadow::report::{DecisionCount, LEFT_PENDING, Page, WorkloadEntry},
    scheduling::shadow::comparison::Outcome,
};

/// Decisions that are not compared make up one in so many at most; with more of them too little is known.
const SELDOM: u64 = 20;
/// Workloads that the table lists; JSON and YAML have all.
const LISTED: usize = 50;

/// What a shadow has found out, over all its processes.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    /// The beginning of the first page.
    since: Timestamp,
    /// The end of the last page.
    until: Timestamp,
    /// For how many seconds a shadow has run in between.
    observed_seconds: i64,
    /// How many processes of the shadow the pages are of.
    processes: usize,
    /// How many decisions there were.
    decisions: u64,
    /// By outcome and reason.
    outcomes: Vec<OutcomeRow>,
    /// Pods that were left pending although Berth would have placed them.
    left_pending: u64,
    /// The workloads that a switch concerns.
    workloads: Vec<WorkloadEntry>,
    /// Pods of further workloads, which the shadow did not keep apart.
    further_workloads: u64,
    verdict: ShadowVerdict,
    /// What the verdict rests on, sentence by sentence.
    reasons: Vec<String>,
}

/// How many decisions had an outcome for a reason.
#[derive(Clone, Debug, Serialize)]
struct OutcomeRow {
    outcome: String,
    reason: String,
    count: u64,
    /// Their part of all decisions that were compared, in percent; absent: they were not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    percent: Option<f64>,
}

/// Whether Berth can take over.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum ShadowVerdict {
    /// Nothing speaks against it.
    Ready,
    /// Pods would be worse off: look at them first.
    Review,
    /// Too little is known.
    Incomplete,
}

impl ShadowVerdict {
    const fn words(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Review => "review",
            Self::Incomplete => "incomplete",
        }
    }
}

/// What an outcome means, as the table has it.
fn meaning(outcome: &str) -> &'static str {
    match Outcome::ALL.into_iter().find(|known| known.name() == outcome) {
        Some(Outcome::Same) => "the same node and cards",
        Some(Outcome::OtherCards) => "the same node, other cards or amounts",
        Some(Outcome::OtherNode) => "another node, which is feasible too",
        Some(Outcome::Infeasible) => "the chosen node breaks a constraint that Berth keeps",
        Some(Outcome::WouldWait) => "with Berth the pod would have waited",
        Some(Outcome::Unreadable) => "Berth's webhook would have denied the pod",
        Some(Outcome::NotCompared) => "the shadow did not watch at that time",
        None => "",
    }
}

impl Summary {
    /// Adds up pages. Of those that began at the same time, which are of one process, the last one counts.
    pub(super) fn of(pages: Vec<Page>, days: u16) -> Self {
        let mut last: BTreeMap<Timestamp, Page> = BTreeMap::new();
        for page in pages {
            let known = last.entry(page.since).or_insert_with(|| page.clone());
            if known.until < page.until {
                *known = page;
            }
        }
        let mut outcomes: BTreeMap<(String, String), u64> = BTreeMap::new();
        let mut workloads: BTreeMap<[String; 5], WorkloadEntry> = BTreeMap::new();
        for page in last.values() {
            for DecisionCount { outcome, reason, count } in &page.decisions {
                let sum = outcomes.entry((outcome.clone(), reason.clone())).or_default();
                *sum = sum.saturating_add(*count);
            }
            for entry in &page.workloads {
                let WorkloadEntry { namespace, kind, name, outcome, reason, .. } = entry;
                let key = [namespace, kind, name, outcome, reason].map(Clone::clone);
                let known =
                    workloads.entry(key).or_insert_with(|| WorkloadEntry { pods: 0, ..entry.clone() });
                known.pods = known.pods.saturating_add(entry.pods);
                known.last = known.last.max(entry.last);
            }
        }
        let sum = |of: fn(&Page) -> u64| last.values().map(of).fold(0, u64::saturating_add);
        let observed = last.values().map(|page| page.until.duration_since(page.since).as_secs().max(0));
        let mut workloads: Vec<_> = workloads.into_values().collect();
        workloads.sort_by_key(|entry| (order(&entry.outcome), std::cmp::Reverse(entry.pods)));
        let mut summary = Self {
            since: last.values().map(|page| page.since).min().unwrap_or_default(),
            until: last.values().map(|page| page.until).max().unwrap_or_default(),
            observed_seconds: observed.fold(0, i64::saturating_add),
            processes: last.len(),
            decisions: outcomes.values().copied().fold(0, u64::saturating_add),
            outcomes: rows(outcomes),
            left_pending: sum(|page| page.left_pending),
            workloads,
            further_workloads: sum(|page| page.further_workloads),
            verdict: ShadowVerdict::Ready,
            reasons: Vec::new(),
        };
        summary.judge(days);
        summary
    }

    /// Whether nothing speaks against a switch, and enough is known.
    pub(super) fn is_ready(&self) -> bool {
        self.verdict == ShadowVerdict::Ready
    }

    fn count(&self, outcome: Outcome) -> u64 {
        let rows = self.outcomes.iter().filter(|row| row.outcome == outcome.name());
        rows.map(|row| row.count).fold(0, u64::saturating_add)
    }

    /// How many workloads have an entry with one of these outcomes.
    fn concerned(&self, outcomes: &[Outcome]) -> usize {
        let of = |entry: &&WorkloadEntry| outcomes.iter().any(|outcome| outcome.name() == entry.outcome);
        let names =
            self.workloads.iter().filter(of).map(|entry| (&entry.namespace, &entry.kind, &entry.name));
        names.collect::<std::collections::BTreeSet<_>>().len()
    }

    /// Fills in the verdict and what it rests on.
    fn judge(&mut self, days: u16) {
        let breaking = [Outcome::Infeasible, Outcome::WouldWait];
        let broken = breaking.map(|outcome| self.count(outcome)).into_iter().fold(0, u64::saturating_add);
        let unread = self.count(Outcome::Unreadable);
        let mut against = Vec::new();
        if broken > 0 {
            against.push(format!(
                "{} of {} would have had to go elsewhere or to wait",
                counted(broken, "pod"),
                counted(self.concerned(&breaking).try_into().unwrap_or(u64::MAX), "workload"),
            ));
        }
        if unread > 0 {
            let workloads = self.concerned(&[Outcome::Unreadable]).try_into().unwrap_or(u64::MAX);
            against.push(format!(
                "{} of {} would have been denied",
                counted(unread, "pod"),
                counted(workloads, "workload")
            ));
        }
        let mut missing = Vec::new();
        let wanted = i64::from(days) * 24 * 60 * 60;
        if self.observed_seconds < wanted {
            missing.push(format!("{} of {days}d were observed", time(self.observed_seconds)));
        }
        let unseen = self.count(Outcome::NotCompared);
        if self.decisions == unseen {
            missing.push("no decision was compared".to_owned());
        } else if unseen.saturating_mul(SELDOM) > self.decisions {
            missing.push(format!("{unseen} of {} decisions were not compared", self.decisions));
        }
        self.verdict = match (against.is_empty(), missing.is_empty()) {
            (false, _) => ShadowVerdict::Review,
            (true, false) => ShadowVerdict::Incomplete,
            (true, true) => ShadowVerdict::Ready,
        };
        self.reasons = against.into_iter().chain(missing).collect();
        if self.is_ready() {
            self.reasons.push("Berth would have placed every pod that was compared".to_owned());
        }
        if self.left_pending > 0 {
            let pods = counted(self.left_pending, "pod");
            self.reasons.push(format!("{pods} that waited would have been placed by Berth"));
        }
    }

    /// The report for a person.
    pub(super) fn table(&self) -> Shown {
        let mut observed = Table::new(&["OBSERVED", "FROM", "UNTIL", "PROCESSES", "DECISIONS"]);
        observed.row([
            time(self.observed_seconds),
            minute(self.since),
            minute(self.until),
            self.processes.to_string(),
            self.decisions.to_string(),
        ]);
        let mut outcomes = Table::new(&["OUTCOME", "REASON", "PODS", "SHARE", "MEANING"]);
        for OutcomeRow { outcome, reason, count, percent } in &self.outcomes {
            let share = percent.map(|percent| format!("{percent:.1}%")).unwrap_or_default();
            outcomes.row([outcome.as_str(), reason, &count.to_string(), &share, meaning(outcome)]);
        }
        if self.left_pending > 0 {
            let count = self.left_pending.to_string();
            outcomes.row([LEFT_PENDING, "", &count, "", "Berth would have placed the pod that waited"]);
        }
        let verdict = format!("Verdict: {}: {}", self.verdict.words(), self.reasons.join("; "));
        observed
            .render()
            .and(&Shown::line(""))
            .and(&outcomes.render())
            .and(&self.concerned_table())
            .and(&Shown::line(""))
            .and(&Shown::line(verdict))
    }

    fn concerned_table(&self) -> Shown {
        if self.workloads.is_empty() {
            return Shown::default();
        }
        let mut table = Table::new(&["NAMESPACE", "WORKLOAD", "OUTCOME", "REASON", "PODS", "LAST"]);
        for entry in self.workloads.iter().take(LISTED) {
            let WorkloadEntry { namespace, kind, name, outcome, reason, pods, last } = entry;
            let workload = format!("{kind}/{name}");
            table.row([namespace, &workload, outcome, reason, &pods.to_string(), &minute(*last)]);
        }
        let hidden = self.workloads.len().saturating_sub(LISTED);
        let mut shown = Shown::line("").and(&table.render());
        if hidden > 0 {
            shown = shown.and(&Shown::line(format!("{hidden} more: -o json")));
        }
        if self.further_workloads > 0 {
            let pods = counted(self.further_workloads, "pod");
            shown = shown.and(&Shown::line(format!("{pods} of further workloads: see the shadow's log")));
        }
        shown
    }
}

/// The rows in the order in which a reader should look at them, with their part of what was compared.
fn rows(outcomes: BTreeMap<(String, String), u64>) -> Vec<OutcomeRow> {
    let is_compared = |outcome: &str| outcome != Outcome::NotCompared.name();
    let compared = outcomes.iter().filter(|((outcome, _), _)| is_compared(outcome));
    let compared = compared.map(|(_, count)| *count).fold(0, u64::saturating_add);
    let row = |((outcome, reason), count): ((String, String), u64)| {
        let percent = is_compared(&outcome).then(|| percent(count, compared));
        OutcomeRow { outcome, reason, count, percent }
    };
    let mut rows: Vec<_> = outcomes.into_iter().filter(|(_, count)| *count > 0).map(row).collect();
    rows.sort_by_key(|row| (order(&row.outcome), std::cmp::Reverse(row.count)));
    rows
}

/// A part in percent, to a tenth of one, as the table has it.
fn percent(count: u64, of: u64) -> f64 {
    let tenths = count.saturating_mul(1000).saturating_add(of / 2).checked_div(of).unwrap_or_default();
    u32::try_from(tenths).map_or(f64::MAX, f64::from) / 10.0
}

/// What a reader should look at first comes first; an outcome of a newer version comes last.
fn order(outcome: &str) -> usize {
    let first = [
        Outcome::Infeasible.name(),
        Outcome::WouldWait.name(),
        Outcome::Unreadable.name(),
        LEFT_PENDING,
        Outcome::Same.name(),
        Outcome::OtherCards.name(),
        Outcome::OtherNode.name(),
        Outcome::NotCompared.name(),
    ];
    first.iter().position(|known| *known == outcome).unwrap_or(first.len())
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// A time to the minute.
fn minute(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M").to_string()
}

/// A duration in its two largest units, as kubectl shows ages.
fn time(seconds: i64) -> String {
    let minutes = SignedDuration::from_secs(seconds).as_mins();
    let (days, hours, minutes) = (minutes / (24 * 60), minutes / 60 % 24, minutes % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}m"),
        (0, _) => format!("{hours}h{minutes}m"),
        _ => format!("{days}d{hours}h"),
    }
}
