//! What goes wrong, by the dice; and the log of all that happens, which a failure prints.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::body::Bytes;
use berth::cluster::Metrics;
use berth_sandbox::{
    Sandbox,
    fault::{Call, CallFault, EventFault, Plan},
};
use jiff::Timestamp;

use crate::{
    checker::{Checker, Writer},
    dice::Dice,
    lie::Lie,
    story::{self, Slip, Story, Wrong},
    time_division::Windows,
    world::REPLICAS,
};

/// No run says more than that, unless somebody writes without end.
const MOST_LINES: usize = 50_000;

/// For so long a throttled caller is asked to wait.
const RETRY_AFTER: jiff::SignedDuration = jiff::SignedDuration::from_secs(1);

/// What is counted of calls that go wrong, and of events, which are of Kubernetes' PodGroups or CompositePodGroups.
pub(crate) const CALLS_OF_GROUPS: &str = "call of groups";
pub(crate) const EVENTS_OF_GROUPS: &str = "event of groups";

/// How an event says that it is of nothing.
const BOOKMARK: &[u8] = br#"{"type":"BOOKMARK""#;

/// How much goes wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Weather {
    /// Nothing.
    Still,
    /// So many calls and events of a thousand.
    Rough(u64),
    /// Nothing gets through until then.
    Parted(Timestamp),
    /// The process stands still until then: what it was about to send is sent then, what is sent to it is read then.
    Paused(Timestamp),
}

/// What everyone who watches over a run shares.
#[derive(Clone)]
pub(crate) struct Watch {
    inner: Arc<Mutex<Log>>,
}

pub(crate) struct Log {
    sandbox: Sandbox,
    start: Timestamp,
    pub(crate) checker: Checker,
    /// For each replica.
    pub(crate) weather: [Weather; REPLICAS],
    pub(crate) lines: Vec<String>,
    pub(crate) faults: u64,
    /// Until when the API server takes no call.
    pub(crate) down: Timestamp,
    /// How often what was done, by name.
    pub(crate) counts: BTreeMap<String, u64>,
    /// By the name of a pod, how much work was done before its Binding, in steps.
    pub(crate) bound_after: BTreeMap<String, u64>,
    /// What Berth counts, over all its lives.
    metrics: Metrics,
}

impl Watch {
    pub(crate) fn new(sandbox: Sandbox, metrics: Metrics, windows: Option<&Windows>) -> Self {
        let log = Log {
            start: sandbox.now(),
            checker: Checker::new(sandbox.clone(), windows),
            sandbox,
            weather: [Weather::Still; REPLICAS],
            lines: Vec::new(),
            faults: 0,
            down: Timestamp::MIN,
            counts: BTreeMap::new(),
            bound_after: BTreeMap::new(),
            metrics,
        };
        Self { inner: Arc::new(Mutex::new(log)) }
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        self.inner.lock().unwrap()
    }

    pub(crate) fn say(&self, text: &str) {
        self.log().say(text);
    }
}

impl Log {
    pub(crate) fn say(&mut self, text: &str) {
        let at = self.sandbox.now().duration_since(self.start);
        self.lines.push(format!("{:>10.3} {text}", at.as_secs_f64()));
        let tail = self.lines.len().saturating_sub(40);
        assert!(
            self.lines.len() < MOST_LINES,
            "it goes round in circles:\n{}",
            self.lines[tail..].join("\n")
        );
    }

    /// Something was made to go wrong.
    pub(crate) fn fault(&mut self, text: &str) {
        self.faults += 1;
        self.say(text);
    }

    /// Something was done once more.
    pub(crate) fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    fn now(&self) -> Timestamp {
        self.sandbox.now()
    }
}

/// A plan for calls that go well: agents and users.
pub(crate) struct Honest(pub(crate) Watch);

impl Plan for Honest {
    fn call(&mut self, _: &Call) -> CallFault {
        CallFault::None
    }

    fn event(&mut self, _: &Call, _: &[u8]) -> EventFault {
        EventFault::None
    }

    fn served(&mut self, call: &Call, status: u16) {
        served(&self.0, "other", Writer::Other, call, status);
    }
}

fn served(watch: &Watch, who: &str, writer: Writer, call: &Call, status: u16) {
    let mut log = watch.log();
    // Neither says anything of pods or nodes, and both are many.
    let beside = call.path.contains("/leases") || call.path.ends_with("/events");
    if call.is_write() && !beside {
        log.say(&format!("{who} {call}: {status}"));
    }
    if !beside {
        log.checker.look(writer);
    }
}

/// A plan for the calls of one replica in one life.
pub(crate) struct Rough {
    replica: usize,
    /// Its name as a candidate for the lead.
    who: String,
    watch: Watch,
    dice: Dice,
    story: &'static Story,
    lie: Option<Lie>,
    /// Bindings that are not to be sent again before then.
    throttled: BTreeMap<String, Timestamp>,
}

impl Rough {
    pub(crate) fn new(
        replica: usize,
        who: &str,
        watch: Watch,
        dice: Dice,
        story: &'static Story,
        lie: Option<Lie>,
    ) -> Self {
        Self { replica, who: who.to_owned(), watch, dice, story, lie, throttled: BTreeMap::new() }
    }

    fn call_fault(&mut self, call: &Call, log: &mut Log) -> CallFault {
        let (kind, mix) =
            if call.is_write() { ("write", self.story.writes) } else { ("read", self.story.reads) };
        let wrong = match self.dice.pick(mix) {
            // What it would do next is what it does when it is told to end.
            Wrong::CallerDies if call.is_watch() => Wrong::Lost,
            wrong => wrong,
        };
        log.count(&format!("{kind} {wrong:?}"));
        wrong.fault(&mut self.dice)
    }

    fn event_fault(&mut self, line: &[u8], log: &mut Log) -> EventFault {
        let slip = if line.starts_with(BOOKMARK) { Slip::LeftOut } else { self.dice.pick(self.story.events) };
        let fault = slip.fault(&mut self.dice, self.story.lag);
        let name = format!("{fault:?}");
        log.count(&format!("event {}", name.split('(').next().unwrap_or_default()));
        fault
    }

    /// What the server has asked for is kept to.
    fn judge_patience(&mut self, call: &Call, now: Timestamp) -> Option<String> {
        let until = self.throttled.remove(&call.path).filter(|until| now < *until)?;
        Some(format!("{} sends {call} at {now}, and was asked to wait until {until}", self.who))
    }
}

impl Plan for Rough {
    fn call(&mut self, call: &Call) -> CallFault {
        let watch = self.watch.clone();
        let mut log = watch.log();
        let now = log.now();
        log.checker.violations.extend(self.judge_patience(call, now));
        let fault = match log.weather[self.replica] {
            _ if now < log.down => CallFault::Lost,
            Weather::Parted(until) if now < until => parted(&mut self.dice, until.duration_since(now)),
            Weather::Paused(until) if now < until => {
                CallFault::SlowRequest(Duration::try_from(until.duration_since(now)).unwrap_or_default())
            }
            Weather::Rough(rate)
                if self.dice.in_thousand(story::rate(self.story.calls, &call.path, rate)) =>
            {
                self.call_fault(call, &mut log)
            }
            _ => CallFault::None,
        };
        let fault = self.lie.as_mut().and_then(|lie| lie.call(call, fault, &mut self.dice)).unwrap_or(fault);
        if fault == CallFault::Refused(429) && call.path.ends_with("/binding") {
            self.throttled.insert(call.path.clone(), now + RETRY_AFTER);
        }
        if let Some(sky) = sky(log.weather[self.replica], log.down, now) {
            log.count(sky);
        }
        if fault != CallFault::None {
            if is_of_groups(call) {
                log.count(CALLS_OF_GROUPS);
            }
            log.fault(&format!("{} {call}: {fault:?}", self.who));
        }
        fault
    }

    fn event(&mut self, watch: &Call, line: &[u8]) -> EventFault {
        let shared = self.watch.clone();
        let mut log = shared.log();
        let fault = match log.weather[self.replica] {
            Weather::Paused(until) if log.now() < until => {
                EventFault::Slow(Duration::try_from(until.duration_since(log.now())).unwrap_or_default())
            }
            Weather::Parted(until) if log.now() < until => {
                let rest = Duration::try_from(until.duration_since(log.now())).unwrap_or_default();
                if self.dice.in_thousand(500) { EventFault::Slow(rest) } else { EventFault::Broken }
            }
            Weather::Rough(rate) if self.dice.in_thousand(event_rate(self.story, watch, line, rate)) => {
                self.event_fault(line, &mut log)
            }
            _ => EventFault::None,
        };
        if fault != EventFault::None {
            if is_of_groups(watch) {
                log.count(EVENTS_OF_GROUPS);
            }
            log.fault(&format!("{} event of {watch}: {fault:?}", self.who));
        }
        fault
    }

    fn served(&mut self, call: &Call, status: u16) {
        if call.path.ends_with("/eviction") && status < 300 {
            self.watch.log().checker.judge_eviction(call);
        }
        served(&self.watch, &self.who, Writer::Berth, call, status);
        if call.path.ends_with("/binding") && status < 300 {
            let mut log = self.watch.log();
            log.checker.judge_binder(&self.who, call);
            let (pod, steps) = (call.path.rsplit('/').nth(1).unwrap_or_default(), log.metrics.steps());
            log.bound_after.insert(pod.to_owned(), steps);
        }
    }

    fn request(&mut self, call: &Call, body: Bytes) -> Bytes {
        match &mut self.lie {
            Some(lie) => lie.request(call, body),
            None => body,
        }
    }

    fn answer(&mut self, call: &Call, status: u16, body: Bytes) -> (u16, Bytes) {
        match &mut self.lie {
            Some(lie) => lie.answer(call, status, body),
            None => (status, body),
        }
    }
}

fn is_of_groups(call: &Call) -> bool {
    call.path.starts_with("/apis/scheduling.k8s.io/") && call.path.contains("podgroups")
}

/// Bookmarks are few, and each second one is lost.
fn event_rate(story: &Story, watch: &Call, line: &[u8], weather: u64) -> u64 {
    if line.starts_with(BOOKMARK) { 500 } else { story::rate(story.watches, &watch.path, weather) }
}

/// What the weather does to a call now, beyond what the dice do.
fn sky(weather: Weather, down: Timestamp, now: Timestamp) -> Option<&'static str> {
    match weather {
        _ if now < down => Some("the API server is down"),
        Weather::Parted(until) if now < until => Some("Parted"),
        Weather::Paused(until) if now < until => Some("Paused"),
        _ => None,
    }
}

fn parted(dice: &mut Dice, rest: jiff::SignedDuration) -> CallFault {
    let rest = Duration::try_from(rest).unwrap_or_default();
    if dice.in_thousand(500) { CallFault::Lost } else { CallFault::Silence(rest) }
}
