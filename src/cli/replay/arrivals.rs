//! When each pod of a replay arrives, and how long it runs.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use jiff::{SignedDuration, Timestamp};

use crate::scheduling::{
    PodInfo, Uid,
    model::pod::{Lifetime, PodKey},
};

/// When a table's time 0 is: 1 January 2026.
pub(super) const START: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// How long a pod runs once it is bound, in seconds; absent: it never ends.
pub(super) const RUN_SECONDS: &str = "berth.dev/run-seconds";

/// Between two arrivals in random order: short, so that no pod that waits is tried again for the time that has passed.
const PAUSE: SignedDuration = SignedDuration::from_millis(1);

/// So many pods arrive at most.
const MOST: usize = 10_000_000;

/// In which order pods arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Order {
    /// When they were created.
    Recorded,
    /// In random order, never ending; drawn again until they ask for so many times the cluster's GPUs.
    Shuffled {
        /// What the order follows from.
        seed: u64,
        /// Times the cluster's GPUs; `None`: each pod arrives once.
        ratio: Option<f64>,
    },
    /// At random moments, drawn from the pods again and again, each with the time that it runs.
    Steady {
        /// What moments and pods follow from.
        seed: u64,
        /// How much of the cluster's GPUs they would hold on average if none had to wait; 1 is all.
        load: f64,
        /// For how long pods arrive.
        until: SignedDuration,
        /// Pods that run longer, or never end, run so long; `None`: as long as they do.
        longest: Option<SignedDuration>,
    },
}

/// A pod that arrives.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    /// When.
    pub(super) at: Timestamp,
    /// The pod.
    pub(super) pod: PodInfo,
    /// How long it runs once it is bound; `None`: it never ends.
    pub(super) runs: Option<SignedDuration>,
    /// How many GPUs it asks for, in parts.
    pub(super) gpus: f64,
}

impl Arrival {
    /// The pod once more, under a name of its own.
    fn again(&self, number: usize, at: Timestamp, runs: Option<SignedDuration>) -> Self {
        let name = format!("{}-{number}", self.pod.key.name);
        let uid: Uid = name.as_str().into();
        let key = PodKey { uid, name: Arc::from(name), namespace: self.pod.key.namespace.clone() };
        let lifetime = Lifetime { created: at, leaving: None };
        Self { at, pod: PodInfo { key, lifetime, ..self.pod.clone() }, runs, gpus: self.gpus }
    }
}

/// The arrivals in the order of time. `recorded` are all pods, `capacity` is the number of the cluster's GPUs.
pub(super) fn ordered(mut recorded: Vec<Arrival>, order: Order, capacity: f64) -> Result<Vec<Arrival>> {
    match order {
        Order::Recorded => {
            recorded.sort_by_key(|arrival| arrival.at);
            Ok(recorded)
        }
        Order::Shuffled { seed, ratio } => shuffled(recorded, seed, ratio, capacity),
        Order::Steady { seed, load, until, longest } => {
            for arrival in &mut recorded {
                let runs = arrival.runs.into_iter().chain(longest).min();
                let pod = &arrival.pod.key;
                arrival.runs = Some(runs.with_context(|| {
                    format!(
                        "--load: pod {}/{} never ends; say with --longest-run how long such pods run",
                        pod.namespace, pod.name
                    )
                })?);
            }
            steady(&recorded, seed, load * capacity, until)
        }
    }
}

/// Arrivals at random moments. `gpus` is how many GPUs they hold on average if none has to wait.
fn steady(recorded: &[Arrival], seed: u64, gpus: f64, until: SignedDuration) -> Result<Vec<Arrival>> {
    let runs = |arrival: &Arrival| arrival.runs.map_or(0.0, |runs| runs.as_secs_f64());
    // Of all pods together, in seconds of one GPU.
    let held: f64 = recorded.iter().map(|arrival| arrival.gpus * runs(arrival)).sum();
    ensure!(held > 0.0, "--load: no pod asks for a GPU for any time");
    ensure!(gpus > 0.0, "--load: the cluster has no GPU");
    #[expect(clippy::cast_precision_loss, reason = "there are far fewer than 2^52 pods")]
    let pause = held / recorded.len() as f64 / gpus;
    let start = recorded.iter().map(|arrival| arrival.at).min().unwrap_or(START);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut arrivals = Vec::new();
    let mut seconds = 0.0;
    loop {
        seconds -= (1.0 - random.f64()).ln() * pause;
        let drawn = &recorded[random.usize(..recorded.len())];
        let after = SignedDuration::try_from_secs_f64(seconds)?;
        if after > until {
            return Ok(arrivals);
        }
        ensure!(arrivals.len() < MOST, "--load: more than {MOST} pods arrive until then");
        arrivals.push(drawn.again(arrivals.len(), start.checked_add(after)?, drawn.runs));
    }
}

/// Arrivals in random order, one after the other, that never end.
fn shuffled(
    mut recorded: Vec<Arrival>,
    seed: u64,
    ratio: Option<f64>,
    capacity: f64,
) -> Result<Vec<Arrival>> {
    let mut random = fastrand::Rng::with_seed(seed);
    random.shuffle(&mut recorded);
    let mut at = recorded.iter().map(|arrival| arrival.at).min().unwrap_or(START);
    let mut arrivals: Vec<Arrival> = Vec::new();
    let most = ratio.map(|ratio| ratio * capacity);
    if most.is_some() {
        ensure!(recorded.iter().any(|arrival| arrival.gpus > 0.0), "--ratio: no pod asks for a GPU");
    }
    let mut asked = 0.0;
    for number in 0..MOST {
        let drawn = match (recorded.get(number), most) {
            (Some(next), _) => next,
            (None, Some(_)) => &recorded[random.usize(..recorded.len())],
            (None, None) => break,
        };
        asked += drawn.gpus;
        if most.is_some_and(|most| asked > most) {
            break;
        }
        arrivals.push(drawn.again(number, at, None));
        at = at.checked_add(PAUSE)?;
    }
    Ok(arrivals)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{cluster::Reader, dialect::Dialects, object::Pod};

    fn pod(name: &str) -> PodInfo {
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": name, "uid": name}})).unwrap();
        Reader::new(Dialects::default(), "berth".to_owned()).pod(&pod).0
    }

    fn arrivals(gpus: &[f64]) -> Vec<Arrival> {
        let arrival = |(at, gpus): (i64, &f64)| Arrival {
            at: START.checked_add(SignedDuration::from_secs(100 - at)).unwrap(),
            pod: pod(&format!("p{at}")),
            runs: Some(SignedDuration::from_secs(9)),
            gpus: *gpus,
        };
        (0..).zip(gpus).map(arrival).collect()
    }

    fn names(arrivals: &[Arrival]) -> Vec<String> {
        arrivals.iter().map(|arrival| arrival.pod.key.name.to_string()).collect()
    }

    #[test]
    fn recorded_pods_come_as_they_were_created() {
        let ordered = ordered(arrivals(&[1.0, 1.0, 1.0]), Order::Recorded, 8.0).unwrap();
        assert_eq!(names(&ordered), ["p2", "p1", "p0"]);
    }

    #[test]
    fn drawn_pods_stay_within_the_ratio_follow_from_the_seed_and_never_end() {
        let shuffled = |seed| {
            let order = Order::Shuffled { seed, ratio: Some(1.25) };
            ordered(arrivals(&[1.0, 0.5, 0.0, 2.0]), order, 8.0).unwrap()
        };
        let (first, again) = (shuffled(1), shuffled(1));
        assert_eq!(names(&first), names(&again));
        assert_ne!(names(&first), names(&shuffled(2)));
        let asked: f64 = first.iter().map(|arrival| arrival.gpus).sum();
        assert!((8.0..=10.0).contains(&asked), "{asked}");
        assert!(first.iter().all(|arrival| arrival.runs.is_none()));
    }

    #[test]
    fn a_steady_load_holds_as_many_gpus_as_it_says_and_cuts_run_times() {
        let longest = Some(SignedDuration::from_secs(6));
        let order = Order::Steady { seed: 1, load: 0.5, until: SignedDuration::from_hours(2), longest };
        let drawn = ordered(arrivals(&[1.0, 0.5, 0.0, 2.0]), order, 8.0).unwrap();
        assert!(drawn.iter().all(|arrival| arrival.runs == longest));
        assert!(drawn.is_sorted_by_key(|arrival| arrival.at));
        assert!(drawn.windows(2).all(|pair| pair[0].pod.key.uid != pair[1].pod.key.uid));
        let held: f64 = drawn.iter().map(|arrival| arrival.gpus * 6.0).sum();
        assert!((3.8..=4.2).contains(&(held / 7200.0)), "{held} seconds of one GPU in two hours");
        let again = ordered(arrivals(&[1.0, 0.5, 0.0, 2.0]), order, 8.0).unwrap();
        assert_eq!(names(&drawn), names(&again));
    }

    #[test]
    fn a_steady_load_is_of_pods_that_end_and_ask_for_gpus() {
        let order = Order::Steady { seed: 1, load: 1.0, until: SignedDuration::from_hours(1), longest: None };
        let refused = |arrivals, capacity| ordered(arrivals, order, capacity).unwrap_err().to_string();
        assert_eq!(refused(arrivals(&[0.0]), 8.0), "--load: no pod asks for a GPU for any time");
        assert_eq!(refused(arrivals(&[1.0]), 0.0), "--load: the cluster has no GPU");
        let mut endless = arrivals(&[1.0]);
        endless[0].runs = None;
        assert_eq!(
            refused(endless, 8.0),
            "--load: pod /p0 never ends; say with --longest-run how long such pods run"
        );
    }

    #[test]
    fn pods_without_a_gpu_reach_no_ratio() {
        let order = Order::Shuffled { seed: 1, ratio: Some(1.0) };
        assert_eq!(
            ordered(arrivals(&[0.0]), order, 8.0).unwrap_err().to_string(),
            "--ratio: no pod asks for a GPU"
        );
    }
}
