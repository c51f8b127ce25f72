//! Beside each case of these tests a second scheduler sees the same, with `messages.details: own`: whatever a case makes it say of a pod, it must not
//! name a node, a card, what is free of it, or a pod of another namespace.

use berth::{
    config::Config,
    device::Inventory,
    scheduling::{Details, Effect, Event, PodKey, Scheduler, scheduler::Settings},
};
use jiff::Timestamp;
use serde_json::json;

use super::{
    holdings::{hami_node, share},
    machine::Machine,
};

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
            let cards = if matches!(effect, Effect::TellUnread { .. }) { Vec::new() } else { self.cards() };
            let forbidden = self.nodes().into_iter().chain(cards).chain(["MiB".to_owned()]);
            for word in forbidden {
                assert!(!words(message).any(|one| one == word), "{pod} is told of {word}: {message}");
            }
            let others = self.0.keys().filter(|other| other.namespace != pod.namespace);
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
fn told(effect: &Effect) -> Option<(&PodKey, &str)> {
    match effect {
        Effect::TellUnschedulable { pod, message, .. }
        | Effect::TellWaiting { pod, message }
        | Effect::TellExcess { pod, message }
        | Effect::TellUnread { pod, message }
        | Effect::TellUnassigned { pod, message }
        | Effect::TellEvictionPostponed { pod, message } => Some((pod, message)),
        _ => None,
    }
}

fn words(message: &str) -> impl Iterator<Item = &str> {
    message.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_')))
}

/// What users are told, and what is reported to administrators in full.
fn said(details: Details) -> (Vec<String>, Vec<String>) {
    let mut config = Config::default();
    config.messages.details = details;
    let card = json!({"id": "GPU-a", "index": 0, "count": 10, "devmem": 16000, "devcore": 100, "type": "NVIDIA A100", "mode": "hami-core", "health": true});
    let mut machine = Machine::new(&config, &[hami_node(&[card])], &[]);
    machine.show_pod(&share("large", 20_000));
    let (mut told_to_users, mut reported) = (Vec::new(), Vec::new());
    for effect in machine.run().0 {
        told_to_users.extend(told(&effect).map(|(_, message)| message.to_owned()));
        if let Effect::ReportDetails { message, .. } = effect {
            reported.push(message);
        }
    }
    (told_to_users, reported)
}

#[test]
fn what_a_user_is_not_told_is_reported_in_full() {
    let counted = "0/1 nodes are available: 1 Insufficient GPU memory.";
    let (full, nothing) = said(Details::Full);
    assert!(full[0].starts_with(&format!("{counted} nearest: n1 lacks 4000 MiB on GPU-a")), "{full:?}");
    assert_eq!(nothing, Vec::<String>::new());
    assert_eq!(said(Details::Own), (vec![counted.to_owned()], full));
}
