//! What must hold of time division: which pods may be on a node of a revocable zone, and which of them leave it, how often and how many at a
//! time.
//!
//! Windows and budgets are read and counted here without any of Berth's code.

use std::{collections::BTreeMap, sync::Arc};

use berth::config::Config;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    dice::Dice,
    record::{Pod, annotation},
};

/// The zones.
const ZONES: [&str; 2] = ["rz1", "rz2"];
/// Windows open and close for so many minutes after the start of a run, and stay closed then.
const MINUTES: u64 = 10;
/// So long before its end a window counts as closed.
const GRACE: SignedDuration = SignedDuration::from_secs(20);
/// From one round of evictions to the next.
const PERIOD: SignedDuration = SignedDuration::from_secs(15);
/// What was decided may be carried out so long after it.
const LATE: SignedDuration = SignedDuration::from_secs(10);
/// What a pod does may be seen so long after it.
const UNSEEN: SignedDuration = SignedDuration::from_secs(40);
/// A pod whose zone has been closed for so long has gone, where its budget allows it.
const PATIENCE: SignedDuration = SignedDuration::from_mins(3);

const MIN_AVAILABLE: &str = "volcano.sh/jdb-min-available";
const MAX_UNAVAILABLE: &str = "volcano.sh/jdb-max-unavailable";

/// Where the budget of a job is stated.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stated {
    OnPods,
    OnPodGroup,
}

/// The annotation that states a budget, and its value.
pub(crate) type Budget = (&'static str, &'static str);

/// The jobs: their names, their budgets, and where these are stated. A job without a budget loses one pod in a round.
pub(crate) const JOBS: [(&str, Option<Budget>, Stated); 6] = [
    ("at-most-one-away", Some((MAX_UNAVAILABLE, "1")), Stated::OnPodGroup),
    ("half-away", Some((MAX_UNAVAILABLE, "50%")), Stated::OnPodGroup),
    ("two-stay", Some((MIN_AVAILABLE, "2")), Stated::OnPods),
    ("two-away", Some((MAX_UNAVAILABLE, "2")), Stated::OnPods),
    ("plain", None, Stated::OnPods),
    ("plain-group", None, Stated::OnPodGroup),
];

/// The zone that a node of this name is in.
pub(crate) fn zone_of(node: &str) -> Option<&'static str> {
    match node {
        "hami-0" | "volcano-0" => Some(ZONES[0]),
        "hami-1" | "volcano-1" => Some(ZONES[1]),
        _ => None,
    }
}

/// When windows are open, in minutes after midnight, where every run starts.
#[derive(Clone, Debug)]
pub(crate) struct Windows(BTreeMap<&'static str, Vec<(u64, u64)>>);

impl Windows {
    pub(crate) fn new(dice: &mut Dice) -> Self {
        let mut of_zone = |first: u64| {
            let (mut windows, mut start) = (Vec::new(), first);
            while start < MINUTES {
                let end = start + 1 + dice.below(2);
                windows.push((start, end));
                start = end + 1 + dice.below(2);
            }
            windows
        };
        Self(ZONES.into_iter().zip(0..).map(|(zone, first)| (zone, of_zone(first))).collect())
    }

    /// The settings with these windows.
    pub(crate) fn config(&self) -> Config {
        let mut arguments = json!({"tdm.evict.grace-period": format!("{GRACE:#}"), "tdm.evict.period": format!("{PERIOD:#}")});
        for (zone, windows) in &self.0 {
            let windows: Vec<_> =
                windows.iter().map(|(start, end)| format!("0:{start:02}-0:{end:02}")).collect();
            arguments[format!("tdm.revocable-zone.{zone}")] = json!(windows.join(", "));
        }
        let file = json!({"dialects": {"volcano": {"arguments": arguments}}});
        Config::parse(&file.to_string(), "berth.yaml").unwrap().0
    }
}

/// What a pod says of time division.
#[derive(Clone, Debug, Default)]
pub(crate) struct Member {
    pub(crate) preemptable: bool,
    pub(crate) job: Option<String>,
}

impl Member {
    pub(crate) fn read(object: &Value) -> Self {
        Self {
            preemptable: annotation(object, "volcano.sh/preemptable") == Some("true"),
            job: annotation(object, "scheduling.k8s.io/group-name").map(str::to_owned),
        }
    }
}

/// How long a pod has been what it is.
#[derive(Clone, Copy, Debug)]
struct Course {
    came: Timestamp,
    runs: Option<Timestamp>,
    leaves: Option<Timestamp>,
    /// It has said that it is preemptable. That is not taken back by a pod that is bound.
    preemptable: bool,
}

/// The zones of a run, and what has become of their pods.
#[derive(Debug)]
pub(crate) struct Division {
    /// From when to when a zone takes pods.
    open: BTreeMap<&'static str, Vec<(Timestamp, Timestamp)>>,
    courses: BTreeMap<String, Course>,
    /// The most pods that a job has had.
    most: BTreeMap<String, usize>,
    /// In which round pods of a job without a budget were last evicted, and how many.
    rounds: BTreeMap<String, ((Timestamp, i64), usize)>,
}

impl Division {
    pub(crate) fn new(windows: &Windows, midnight: Timestamp) -> Self {
        let at = |minutes: u64| midnight + SignedDuration::from_mins(minutes.try_into().unwrap());
        let open = |windows: &Vec<(u64, u64)>| {
            windows.iter().map(|(start, end)| (at(*start), at(*end) - GRACE)).collect()
        };
        let open = windows.0.iter().map(|(zone, windows)| (*zone, open(windows))).collect();
        Self { open, courses: BTreeMap::new(), most: BTreeMap::new(), rounds: BTreeMap::new() }
    }

    /// Takes in all pods as they are.
    pub(crate) fn see(&mut self, pods: &[Arc<Pod>], now: Timestamp) {
        for pod in pods {
            let course = self.courses.entry(pod.uid.clone());
            let course = course.or_insert(Course { came: now, runs: None, leaves: None, preemptable: false });
            course.preemptable |= pod.member.preemptable;
            if pod.phase == "Running" {
                course.runs.get_or_insert(now);
            }
            if pod.terminating {
                course.leaves.get_or_insert(now);
            }
        }
        for (job, ..) in JOBS {
            let count = members(job, pods).count();
            let most = self.most.entry(job.to_owned()).or_default();
            *most = count.max(*most);
        }
    }

    fn is_open(&self, zone: &str, at: Timestamp) -> bool {
        self.open[zone].iter().any(|(start, end)| *start <= at && at < *end)
    }

    /// When the zone closed last.
    fn closed(&self, zone: &str, now: Timestamp) -> Option<Timestamp> {
        self.open[zone].iter().map(|(_, end)| *end).filter(|end| *end <= now).max()
    }

    /// Whether the node takes the pod now.
    pub(crate) fn takes(&self, pod: &Pod, node: &str, now: Timestamp) -> bool {
        zone_of(node).is_none_or(|zone| pod.member.preemptable && self.is_open(zone, now))
    }

    /// A pod that has just been bound stands where it may.
    pub(crate) fn judge_bound(&self, pod: &Pod, now: Timestamp) -> Option<String> {
        let right = self.takes(pod, &pod.node, now) || self.takes(pod, &pod.node, now - LATE);
        (!right).then(|| format!("{} was bound to {}, whose zone is closed to it", pod.name, pod.node))
    }

    /// A pod has just been evicted, where the pods were these: it had to go, for the first time, and its budget allowed it.
    pub(crate) fn judge_eviction(&mut self, name: &str, pods: &[Arc<Pod>], now: Timestamp) -> Option<String> {
        let pod = pods.iter().find(|pod| pod.name == name && pod.is_live())?;
        let Course { runs, leaves, preemptable, .. } = self.courses.get(&pod.uid).copied()?;
        if let Some(leaves) = leaves {
            let again = leaves + UNSEEN < now;
            return again
                .then(|| format!("{name} was evicted again, {} after it began to leave", now - leaves));
        }
        let closed = zone_of(&pod.node)
            .is_some_and(|zone| !self.is_open(zone, now) || !self.is_open(zone, now - LATE));
        if !preemptable || !closed {
            return Some(format!("{name} was evicted from {}, and need not go", pod.node));
        }
        // It may not have been seen to run, and what does not run costs no budget.
        if runs.is_none_or(|runs| runs + UNSEEN > now) {
            return None;
        }
        let job = pod.member.job.as_deref()?;
        match JOBS.iter().find(|(name, ..)| *name == job)?.1 {
            Some(budget) => self.judge_budget(job, budget, pods, now),
            None => self.judge_round(job, now),
        }
        .map(|why| format!("{name} of job {job} was evicted beyond its budget: {why}"))
    }

    /// What has just come may not have been seen, nor what has just gone.
    fn judge_budget(
        &self,
        job: &str,
        (key, value): Budget,
        pods: &[Arc<Pod>],
        now: Timestamp,
    ) -> Option<String> {
        let seen = |pod: &&Arc<Pod>| {
            let came = self.courses.get(&pod.uid).map(|course| course.came);
            is_running(pod) || came.is_some_and(|came| came + UNSEEN <= now)
        };
        let total = members(job, pods).filter(seen).count();
        let left = members(job, pods).filter(|pod| is_running(pod)).count().saturating_sub(1);
        let wrong = if key == MIN_AVAILABLE {
            left < quantity(value, total)
        } else {
            total.saturating_sub(left) > quantity(value, self.most[job])
        };
        wrong.then(|| format!("{key} is {value}, and {left} of {total} are left"))
    }

    /// A job without a budget loses one pod in a round. What the last round before a closing has sent may arrive after it.
    fn judge_round(&mut self, job: &str, now: Timestamp) -> Option<String> {
        let began = self.open.keys().filter_map(|zone| self.closed(zone, now)).max()?;
        let since = now.duration_since(began);
        let round = (began, since.as_secs() / PERIOD.as_secs());
        let evicted = self.rounds.entry(job.to_owned()).or_insert((round, 0));
        if evicted.0 != round {
            *evicted = (round, 0);
        }
        evicted.1 += 1;
        let most = if round.1 == 0 { 2 } else { 1 };
        (evicted.1 > most).then(|| format!("it has none, and {} went in one round", evicted.1))
    }

    /// Once faults have stopped and every zone is closed: only pods are left whose budgets do not allow them to go.
    pub(crate) fn judge_the_end(&self, pods: &[Arc<Pod>], now: Timestamp) -> Vec<String> {
        let must_go = |pod: &&Arc<Pod>| {
            let closed = zone_of(&pod.node)
                .filter(|zone| !self.is_open(zone, now))
                .and_then(|zone| self.closed(zone, now));
            self.courses.get(&pod.uid).is_some_and(|course| course.preemptable)
                && is_running(pod)
                && closed.is_some_and(|closed| closed + PATIENCE <= now)
                && pod.member.job.as_deref().is_none_or(|job| spares_one(job, pods))
        };
        let words = |pod: &Arc<Pod>| format!("{} stays on {}, whose zone is closed", pod.name, pod.node);
        pods.iter().filter(must_go).map(words).collect()
    }
}

fn members<'a>(job: &'a str, pods: &'a [Arc<Pod>]) -> impl Iterator<Item = &'a Arc<Pod>> {
    pods.iter().filter(move |pod| pod.is_live() && pod.member.job.as_deref() == Some(job))
}

fn is_running(pod: &Pod) -> bool {
    pod.phase == "Running" && !pod.terminating
}

fn spares_one(job: &str, pods: &[Arc<Pod>]) -> bool {
    let total = members(job, pods).count();
    let running = members(job, pods).filter(|pod| is_running(pod)).count();
    match JOBS.iter().find(|(name, ..)| *name == job).and_then(|(_, budget, _)| *budget) {
        None => true,
        Some((MIN_AVAILABLE, value)) => running > quantity(value, total),
        Some((_, value)) => total - running < quantity(value, total),
    }
}

/// So many, or so many percent of them, rounded up.
fn quantity(text: &str, total: usize) -> usize {
    match text.strip_suffix('%') {
        Some(percent) => (percent.parse::<usize>().unwrap() * total).div_ceil(100),
        None => text.parse().unwrap(),
    }
}
