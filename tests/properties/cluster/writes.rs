//! What comes of the scheduler's writes and reads: they are carried out or not, and answered or not.

use berth::{
    device::{Allocation, Answer},
    scheduling::{
        BindOutcome, Effect, Event, ReadAnswer, ReadRequest, Setback, WriteOutcome, model::pod::Deletion,
    },
};
use jiff::SignedDuration;
use proptest::prelude::*;

use super::{Cluster, Pod, node_name};

/// What comes of a write.
enum How {
    /// It was carried out, and the pod has this version.
    Done(String),
    Refused,
    Lost,
}

fn setback() -> Setback {
    Setback { why: "busy".to_owned(), wait: SignedDuration::ZERO }
}

impl Cluster {
    pub(crate) fn take(&mut self, at: usize) -> Option<Effect> {
        (!self.under_way.is_empty()).then(|| self.under_way.remove(at % self.under_way.len()))
    }

    /// A write is carried out and answered.
    pub(crate) fn carry_out_next(&mut self, at: usize) {
        let Some(effect) = self.take(at) else { return };
        let version = self.carry_out(&effect);
        self.answer(effect, &How::Done(version));
    }

    /// A write is refused: it is not carried out, and its answer is a refusal.
    pub(crate) fn refuse_next(&mut self, at: usize) {
        if let Some(effect) = self.take(at) {
            self.answer(effect, &How::Refused);
        }
    }

    /// A write is carried out, and its answer is lost.
    pub(crate) fn lose_answer(&mut self, at: usize) {
        let Some(effect) = self.take(at) else { return };
        self.carry_out(&effect);
        self.answer(effect, &How::Lost);
    }

    /// Carries a write out, as the API server does; returns the version that the pod has since then.
    pub(super) fn carry_out(&mut self, effect: &Effect) -> String {
        match effect {
            Effect::Bind { pod, node, allocations, .. } => {
                let answered = |one: &Allocation| Allocation { answer: Answer::Succeeded, ..one.clone() };
                let allocations = allocations.iter().map(answered).collect();
                let is_free = |one: &Pod| one.bound.is_none() && !one.is_leaving();
                let there = self.present().any(|at| node_name(at) == *node);
                if there && self.pods.get(&*pod.name).is_some_and(is_free) {
                    let started = self.shape.gangs.is_none();
                    return self.change(&pod.name, |one| {
                        (one.bound, one.started) = (Some((node.clone(), allocations)), started);
                    });
                }
                String::new()
            }
            Effect::Nominate { pod, node, room } => self.change(&pod.name, |one| {
                one.nominated.clone_from(node);
                one.room = room.or(one.room);
            }),
            Effect::Preempt { pod, .. } => self.change(&pod.name, |one| one.deletion = Deletion::Preempted),
            Effect::RollBack { pod, .. } => self.change(&pod.name, |one| one.deletion = Deletion::Requested),
            _ => String::new(),
        }
    }

    /// The answer to a write or a read: of one that was carried out, of one that was refused, or none.
    fn answer(&mut self, effect: Effect, how: &How) {
        let written = |version| match how {
            How::Done(_) => WriteOutcome::Written { resource_version: version },
            How::Refused => WriteOutcome::Refused("no".to_owned()),
            How::Lost => WriteOutcome::Failed(setback()),
        };
        let version = if let How::Done(version) = how { version.clone() } else { String::new() };
        let name = match effect {
            Effect::Bind { pod, node, .. } => {
                let is_bound = self.pods.get(&*pod.name).is_some_and(|one| one.bound.is_some());
                let outcome = match how {
                    How::Done(_) if is_bound => BindOutcome::Bound,
                    How::Lost => BindOutcome::Doubtful(setback()),
                    How::Done(_) | How::Refused => BindOutcome::Refused("no".to_owned()),
                };
                let name = pod.name.clone();
                self.tell(Event::BindAnswered { pod, node, outcome });
                name
            }
            Effect::Nominate { pod, node, room } => {
                let name = pod.name.clone();
                self.tell(Event::Nominated { pod, node, room, outcome: written(version) });
                name
            }
            Effect::Preempt { pod, preemptor, .. } => {
                let name = pod.name.clone();
                self.tell(Event::Preempted { pod, preemptor, outcome: written(version) });
                name
            }
            Effect::Read(ReadRequest::Pod(pod)) => {
                let found = self.pods.get(&*pod.name).map(|one| Box::new(one.info(&pod.name)));
                let name = pod.name.clone();
                self.tell(Event::Read(ReadAnswer::Pod { pod, found }));
                name
            }
            Effect::Read(ReadRequest::Node(node)) => {
                let at = (0..self.shape.nodes).find(|at| node_name(*at) == node).unwrap();
                let here = |pod: &Pod| pod.bound.as_ref().is_some_and(|(bound, _)| *bound == node);
                let pods = self.pods.iter().filter(|(_, pod)| here(pod));
                let pods = pods.map(|(name, pod)| pod.info(name)).collect();
                let found = (!self.absent[at]).then(|| Box::new(self.node(at)));
                return self.tell(Event::Read(ReadAnswer::Node { node, found, pods }));
            }
            Effect::RollBack { pod, .. } => pod.name.clone(),
            _ => return,
        };
        self.show(&name);
    }

    /// Lets time run from deadline to deadline, until there is something to answer; whether all of it has run.
    pub(crate) fn pass(&mut self, seconds: i64) -> bool {
        let end = self.now + SignedDuration::from_secs(seconds);
        let answered = self.under_way.len();
        while self.now < end && self.under_way.len() <= answered {
            let due = self.scheduler.next_deadline().filter(|due| *due > self.now);
            self.now = due.unwrap_or(end).min(end);
            self.tell(Event::Tick);
        }
        self.now >= end
    }

    /// Every write is answered, and every pod that is being deleted ends, until nothing is left to do for three minutes.
    pub(crate) fn come_to_rest(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..200 {
            let idle = self.under_way.is_empty() && self.pass(180) && self.under_way.is_empty();
            while !self.under_way.is_empty() {
                self.carry_out_next(0);
                self.judge_cards()?;
            }
            let leaving = self.leaving();
            for name in &leaving {
                self.remove(name);
            }
            if idle && leaving.is_empty() {
                return Ok(());
            }
        }
        Err(TestCaseError::fail("it does not come to rest"))
    }
}
