//! When each pod of a replay arrives, and how long it runs.

use std::sync::Arc;

use anyhow::{Result, ensure};
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

/// The arrivals in the order of time. `recorded` are all pods, `capacity` is the number of the cluster's GPUs.
pub(super) fn ordered(mut recorded: Vec<Arrival>, order: Order, capacity: f64) -> Result<Vec<Arrival>> {
    let Order::Shuffled { seed, ratio } = order else {
        recorded.sort_by_key(|arrival| arrival.at);
        return Ok(recorded);
    };
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
        let name = format!("{}-{number}", drawn.pod.key.name);
        let uid: Uid = name.as_str().into();
        let key = PodKey { uid, name: Arc::from(name), namespace: drawn.pod.key.namespace.clone() };
        let lifetime = Lifetime { created: at, leaving: None };
        arrivals.push(Arrival {
            at,
            pod: PodInfo { key, lifetime, ..drawn.pod.clone() },
            runs: None,
            gpus: drawn.gpus,
        });
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
    fn pods_without_a_gpu_reach_no_ratio() {
        let order = Order::Shuffled { seed: 1, ratio: Some(1.0) };
        assert_eq!(
            ordered(arrivals(&[0.0]), order, 8.0).unwrap_err().to_string(),
            "--ratio: no pod asks for a GPU"
        );
    }
}
