//! What each case of these tests makes the scheduler say of a pod is looked at as it is told with `messages.details: own`: it must not
//! name a node, a card, what is free of it, or a pod of another namespace.

use berth::{
    device::Inventory,
    scheduling::{Concern, Details, Effect, Finding, PodKey, Scheduler},
};

/// Expects that none of these effects tells the users of a namespace more than that.
pub(crate) fn check(scheduler: &Scheduler, effects: &[Effect]) {
    for effect in effects {
        let Some((pod, message)) = told(effect) else { continue };
        // A text that can't be read is quoted from the pod's own annotations.
        let cards = if matches!(effect, Effect::ReportFinding { finding: Finding::Unread(_), .. }) {
            Vec::new()
        } else {
            cards(scheduler)
        };
        let forbidden = nodes(scheduler).into_iter().chain(cards).chain(["MiB".to_owned()]);
        for word in forbidden {
            assert!(!words(&message).any(|one| one == word), "{pod} is told of {word}: {message}");
        }
        let others = scheduler.view().keys().filter(|other| other.namespace != pod.namespace);
        for other in others {
            assert!(!message.contains(&other.to_string()), "{pod} is told of {other}: {message}");
        }
    }
}

/// The names of nodes that are no words.
fn nodes(scheduler: &Scheduler) -> Vec<String> {
    let names = scheduler.snapshot().nodes().map(|state| state.info.name.to_string());
    names.filter(|name| name.contains(|c: char| c.is_ascii_digit() || c == '-')).collect()
}

fn cards(scheduler: &Scheduler) -> Vec<String> {
    let offers = scheduler.snapshot().nodes().flat_map(|state| &state.info.devices.offers);
    let cards = offers.filter_map(|offer| offer.inventory.as_deref()).flat_map(Inventory::cards);
    cards.map(|card| card.id.to_string()).filter(|id| id.contains('-')).collect()
}

/// What an Event or a condition would say of the pod.
fn told(effect: &Effect) -> Option<(&PodKey, String)> {
    let (pod, message) = match effect {
        Effect::TellUnschedulable { pod, reason, .. } => (pod, reason.message()),
        Effect::TellWaiting { pod, wait } => (pod, wait.message()),
        Effect::TellEvictionPostponed { postponed } => (&postponed.eviction.pod, postponed.message()),
        Effect::ReportFinding { of: Concern::Pod(pod), finding } => (pod, finding.message()),
        _ => return None,
    };
    Some((pod, message.told(Details::Own).0))
}

fn words(message: &str) -> impl Iterator<Item = &str> {
    message.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_')))
}
