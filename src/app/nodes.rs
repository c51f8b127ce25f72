//! Nodes and their cards for admission: a watch of the webhook's own, so that it needs no binder beside it.
//!
//! Keeps no more of a node than its offer, and tells only of what changed an offer.

use std::{collections::BTreeMap, pin::pin};

use futures::StreamExt as _;
use kube::{
    Api, Client,
    runtime::{WatchStreamExt as _, watcher},
};

use super::facts::Shared;
use crate::{
    admission::{InventorySummary, NodeOffer},
    cluster::wire::Watched,
    dialect::Dialects,
    object::Node,
};

/// Follows the nodes for ever; a review judges by what is known at its time.
pub(super) async fn follow(facts: Shared, client: Client) {
    let events = watcher(Api::<Watched<Node>>::all(client), watcher::Config::default()).default_backoff();
    let mut events = pin!(events);
    let mut nodes = Nodes::default();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                if nodes.take(event, &facts.dialects()) == Taken::Changed {
                    facts.set_inventory(InventorySummary::new(nodes.known.values().cloned()));
                }
            }
            Err(error) => tracing::warn!(kind = "Node", %error, "watch failed, trying again"),
        }
    }
}

/// What an event came to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Taken {
    Changed,
    Unchanged,
}

/// The nodes as far as they are known, and those of a list that is still coming in.
#[derive(Debug, Default)]
struct Nodes {
    known: BTreeMap<String, NodeOffer>,
    listing: BTreeMap<String, NodeOffer>,
}

impl Nodes {
    fn take(&mut self, event: watcher::Event<Watched<Node>>, dialects: &Dialects) -> Taken {
        let read = |watched: &Watched<Node>| NodeOffer::read(&watched.object, dialects);
        match event {
            watcher::Event::Init => self.listing.clear(),
            watcher::Event::InitApply(watched) => {
                let offer = read(&watched);
                self.listing.insert(offer.name.clone(), offer);
            }
            watcher::Event::InitDone => {
                self.known = std::mem::take(&mut self.listing);
                return Taken::Changed;
            }
            watcher::Event::Apply(watched) => {
                let offer = read(&watched);
                if self.known.get(&offer.name) != Some(&offer) {
                    self.known.insert(offer.name.clone(), offer);
                    return Taken::Changed;
                }
            }
            watcher::Event::Delete(watched) => {
                if self.known.remove(&watched.object.metadata.name).is_some() {
                    return Taken::Changed;
                }
            }
        }
        Taken::Unchanged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn node(name: &str, cards: u32, note: &str) -> Watched<Node> {
        let card = |at: u32| serde_json::json!({"id": format!("{name}-{at}"), "devmem": 1000, "count": 1, "health": true});
        let register = (0..cards).map(card).collect::<serde_json::Value>().to_string();
        let annotations = serde_json::json!({"hami.io/node-nvidia-register": register, "note": note});
        let object = serde_json::json!({"metadata": {"name": name, "annotations": annotations}});
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn only_what_changes_an_offer_is_a_change_and_a_list_replaces_what_was_known() {
        use watcher::Event;
        let dialects = Config::default().dialects();
        let mut nodes = Nodes::default();
        let mut take = |event| nodes.take(event, &dialects);
        assert_eq!(take(Event::Init), Taken::Unchanged);
        assert_eq!(take(Event::InitApply(node("a", 1, ""))), Taken::Unchanged, "half a list is no inventory");
        assert_eq!(take(Event::InitDone), Taken::Changed);
        assert_eq!(take(Event::Apply(node("a", 1, "heartbeat"))), Taken::Unchanged);
        assert_eq!(take(Event::Apply(node("a", 2, ""))), Taken::Changed);
        assert_eq!(take(Event::Apply(node("b", 1, ""))), Taken::Changed);
        assert_eq!(take(Event::Delete(node("a", 2, ""))), Taken::Changed);
        assert_eq!(take(Event::Delete(node("a", 2, ""))), Taken::Unchanged);
        assert_eq!(nodes.known.keys().collect::<Vec<_>>(), ["b"]);
        let mut take = |event| nodes.take(event, &dialects);
        take(Event::Init);
        take(Event::InitApply(node("c", 1, "")));
        take(Event::InitDone);
        assert_eq!(nodes.known.keys().collect::<Vec<_>>(), ["c"]);
    }
}
