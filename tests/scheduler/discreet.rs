//! Beside each case of these tests a second scheduler sees the same, with `messages.details: own`: whatever a case makes it say of a pod, it must not
//! name a node, a card, what is free of it, or a pod of another namespace.

use std::borrow::Cow;

use berth::{
    device::Inventory,
    scheduling::{Concern, Details, Effect, Event, Finding, PodKey, Scheduler, scheduler::Settings},
};
use jiff::Timestamp;

/// A scheduler whose messages are looked at, and whose other effects nobody carries out: its answers are those of the first.
pub(crate) struct Discreet(Scheduler);

impl Discreet {
    pub(crate) fn new(settings: Settings) -> Self {
        Self(Scheduler::new(Settings { details: Details::Own, ..settings }))
    }

    pub(crate) fn directed(self) -> Self {
        Self(self.0.directed())
    }

    pub(crate) fn observe(&mut self, event: Event, now: Timestamp) {
        self.0.observe(event, now);
    }

    pub(crate) fn settle(&mut self, now: Timestamp) {
        for effect in self.0.settle(now) {
            let Some((pod, message)) = told(&effect) else { continue };
            // A text that can't be read is quoted from the pod's own annotations.
            let cards = if matches!(effect, Effect::ReportFinding { finding: Finding::Unread(_), .. }) {
                Vec::new()
            } else {
                self.cards()
            };
            let forbidden = self.nodes().into_iter().chain(cards).chain(["MiB".to_owned()]);
            for word in forbidden {
                assert!(!words(&message).any(|one| one == word), "{pod} is told of {word}: {message}");
            }
            let others = self.0.view().keys().filter(|other| other.namespace != pod.namespace);
            for other in others {
                assert!(!message.contains(&other.to_string()), "{pod} is told of {other}: {message}");
            }
        }
    }

    /// The names of nodes that are no words.
    fn nodes(&self) -> Vec<String> {
        let names = self.0.snapshot().nodes().map(|state| state.info.name.to_string());
        names.filter(|name| name.contains(|c: char| c.is_ascii_digit() || c == '-')).collect()
    }

    fn cards(&self) -> Vec<String> {
        let offers = self.0.snapshot().nodes().flat_map(|state| &state.info.offers);
        let cards = offers.filter_map(|offer| offer.inventory.as_ref()).flat_map(Inventory::cards);
        cards.map(|card| card.id.to_string()).filter(|id| id.contains('-')).collect()
    }
}

/// What an Event or a condition would say of the pod.
pub(crate) fn told(effect: &Effect) -> Option<(&PodKey, Cow<'_, str>)> {
    match effect {
        Effect::TellUnschedulable { pod, message, .. } | Effect::TellWaiting { pod, message } => {
            Some((pod, message.into()))
        }
        Effect::TellEvictionPostponed { postponed } => {
            Some((&postponed.eviction.pod, postponed.message().told(Details::Own).0.into()))
        }
        // The finding is typed: what is left out of it is known only where it is told.
        Effect::ReportFinding { of: Concern::Pod(pod), finding } => {
            Some((pod, finding.message().told(Details::Own).0.into()))
        }
        _ => None,
    }
}

fn words(message: &str) -> impl Iterator<Item = &str> {
    message.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_')))
}
