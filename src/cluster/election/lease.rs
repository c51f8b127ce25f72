//! The rules of the leader election: what a candidate concludes from the Lease that it has read, and what it writes into the Lease.
//!
//! Values only. It reads no clock, and does not compare the times in a Lease, which come from other machines, with its own.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};
use tokio::time::Instant;

/// The part of a Lease that changes with each renewal.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sign {
    holder: Option<String>,
    renewed: Option<Timestamp>,
    transitions: Option<i32>,
}

/// The newest renewal, and when this process first saw it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Observed {
    /// By the clock of this process, taken after the answer to the read: the holder sent its renewal before that.
    pub at: Instant,
    /// The renewal.
    pub what: Sign,
}

/// The next step of a candidate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LeaseStep {
    /// Take the Lease.
    Acquire,
    /// Renew the Lease that it holds.
    Renew,
    /// Wait until this time, or until the Lease changes.
    Wait(Instant),
}

impl Sign {
    /// The renewal in this Lease.
    pub fn of(spec: &LeaseSpec) -> Self {
        Self {
            holder: holder(spec).map(str::to_owned),
            renewed: spec.renew_time.as_ref().map(|at| at.0),
            transitions: spec.lease_transitions,
        }
    }
}

impl Observed {
    /// The state after this Lease was read at this time.
    pub fn after(before: Option<Self>, spec: &LeaseSpec, at: Instant) -> Self {
        let what = Sign::of(spec);
        before.filter(|before| before.what == what).unwrap_or(Self { at, what })
    }
}

/// The holder of the Lease.
pub fn holder(spec: &LeaseSpec) -> Option<&str> {
    spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

/// Decides the next step of `me`. The Lease of another holder has ended when no renewal was seen for the whole duration in the Lease
/// (`ours` if it has none), counted from when this process saw the last one.
pub fn decide(spec: &LeaseSpec, me: &str, observed: &Observed, ours: Duration, now: Instant) -> LeaseStep {
    match holder(spec) {
        None => LeaseStep::Acquire,
        Some(holder) if holder == me => LeaseStep::Renew,
        Some(_) => {
            let written = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
            let duration = written.filter(|seconds| *seconds > 0).map_or(ours, Duration::from_secs);
            let over = observed.at + duration;
            if over <= now { LeaseStep::Acquire } else { LeaseStep::Wait(over) }
        }
    }
}

/// The Lease as `me` takes it over from `before`; an absent one is created from the default.
pub fn acquired(before: &LeaseSpec, me: &str, duration: Duration, now: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(me.to_owned()),
        lease_duration_seconds: Some(seconds(duration)),
        acquire_time: Some(MicroTime(now)),
        renew_time: Some(MicroTime(now)),
        lease_transitions: Some(before.lease_transitions.map_or(0, |count| count.saturating_add(1))),
        ..before.clone()
    }
}

/// The Lease as its holder renews it.
pub fn renewed(before: &LeaseSpec, duration: Duration, now: Timestamp) -> LeaseSpec {
    LeaseSpec {
        lease_duration_seconds: Some(seconds(duration)),
        renew_time: Some(MicroTime(now)),
        ..before.clone()
    }
}

/// The Lease as its holder gives it back; the shortest duration is for candidates that do not look at the holder
/// (client-go `tools/leaderelection/leaderelection.go`, `release`).
pub fn released(before: &LeaseSpec, now: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        acquire_time: Some(MicroTime(now)),
        renew_time: Some(MicroTime(now)),
        ..before.clone()
    }
}

/// Whole seconds, rounded up: other candidates may wait longer than the claim lasts, never shorter.
fn seconds(duration: Duration) -> i32 {
    let whole = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    i32::try_from(whole.max(1)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Duration = Duration::from_secs(15);

    fn spec(holder: &str, duration: Option<i32>, renewed: i64) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: duration,
            renew_time: Some(MicroTime(Timestamp::from_second(renewed).unwrap())),
            lease_transitions: Some(3),
            ..LeaseSpec::default()
        }
    }

    #[test]
    fn a_turn_follows_from_holder_duration_and_what_was_seen_when() {
        let seen = Instant::now();
        let at = |seconds: u64| seen + Duration::from_secs(seconds);
        let cases = [
            ("nobody holds it", spec("", Some(1), 0), 0, LeaseStep::Acquire),
            ("it is new", LeaseSpec::default(), 0, LeaseStep::Acquire),
            ("we hold it", spec("me", Some(15), 0), 1, LeaseStep::Renew),
            ("we hold it, and it ran out unseen", spec("me", Some(15), 0), 99, LeaseStep::Renew),
            ("first sight of another's", spec("you", Some(15), 0), 0, LeaseStep::Wait(at(15))),
            ("another's, not yet over", spec("you", Some(15), 0), 14, LeaseStep::Wait(at(15))),
            ("another's, over", spec("you", Some(15), 0), 15, LeaseStep::Acquire),
            ("another's, by its own duration", spec("you", Some(30), 0), 29, LeaseStep::Wait(at(30))),
            ("another's, without a duration", spec("you", None, 0), 14, LeaseStep::Wait(at(15))),
            ("another's, with a senseless duration", spec("you", Some(-1), 0), 14, LeaseStep::Wait(at(15))),
        ];
        for (case, spec, seconds, expected) in cases {
            let observed = Observed::after(None, &spec, seen);
            assert_eq!(decide(&spec, "me", &observed, OURS, at(seconds)), expected, "{case}");
        }
    }

    #[test]
    fn times_of_another_machine_say_nothing() {
        let seen = Instant::now();
        for renewed in [0, 4_000_000_000] {
            let spec = spec("you", Some(15), renewed);
            let observed = Observed::after(None, &spec, seen);
            assert_eq!(decide(&spec, "me", &observed, OURS, seen), LeaseStep::Wait(seen + OURS));
        }
    }

    #[test]
    fn only_a_new_sign_counts_again() {
        let seen = Instant::now();
        let later = seen + Duration::from_secs(9);
        let first = spec("you", Some(15), 100);
        let observed = Observed::after(None, &first, seen);
        let same = Observed::after(Some(observed.clone()), &first, later);
        assert_eq!(same, observed, "the same Lease read again is no sign");
        let other = LeaseSpec { preferred_holder: Some("x".to_owned()), ..first.clone() };
        assert_eq!(Observed::after(Some(observed.clone()), &other, later).at, seen);
        let signs = [
            spec("you", Some(15), 101),
            spec("third", Some(15), 100),
            LeaseSpec { lease_transitions: Some(4), ..first },
        ];
        for sign in signs {
            assert_eq!(Observed::after(Some(observed.clone()), &sign, later).at, later, "{sign:?}");
        }
    }

    #[test]
    fn a_lease_is_written_as_others_read_it() {
        let now: Timestamp = "2026-11-21T09:54:07.000001Z".parse().unwrap();
        let first = acquired(&LeaseSpec::default(), "me", Duration::from_millis(14_500), now);
        let text = serde_json::to_value(&first).unwrap();
        let expected = serde_json::json!({
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-11-21T09:54:07.000001Z",
            "renewTime": "2026-11-21T09:54:07.000001Z",
            "leaseTransitions": 0,
        });
        assert_eq!(text, expected);
        let later = now + Duration::from_secs(2);
        let again = renewed(&first, OURS, later);
        assert_eq!((again.acquire_time, again.renew_time), (Some(MicroTime(now)), Some(MicroTime(later))));
        let back = released(&first, later);
        assert_eq!(
            (holder(&back), back.lease_duration_seconds, back.lease_transitions),
            (None, Some(1), Some(0))
        );
        assert_eq!(acquired(&back, "you", OURS, later).lease_transitions, Some(1));
    }
}
