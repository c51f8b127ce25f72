//! What a simulated node is: its Node object, its cards, its device plugin and how that reports.
//!
//! It must not talk to the API server.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::card::Card;
use super::cut::Cut;
use super::koordlet::Koordlet;
use super::plugin::Plugin;
use super::wire::Release;

/// A node to simulate.
#[derive(Clone, Debug)]
pub struct Node {
    pub(super) name: String,
    pub(super) cards: Vec<Card>,
    pub(super) plugin: Option<Plugin>,
    labels: BTreeMap<String, String>,
    pub(super) links: BTreeMap<String, BTreeMap<String, i64>>,
    pub(super) plain: BTreeMap<String, String>,
    pub(super) handshake: Handshake,
    /// Koordinator's node side, which may run beside a device plugin.
    pub(super) koordlet: Option<Koordlet>,
}

/// How a plugin reports that it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handshake {
    /// So often.
    pub(super) every: Duration,
    /// By a clock that is so far behind.
    pub(super) behind: Duration,
}

impl Default for Handshake {
    fn default() -> Self {
        Self { every: Duration::from_secs(30), behind: Duration::ZERO }
    }
}

impl Node {
    /// 64 cpus, 512 GiB, 110 pods, no cards.
    pub fn new(name: &str) -> Self {
        let plain = [("cpu", "64"), ("memory", "512Gi"), ("pods", "110")];
        Self {
            name: name.to_owned(),
            cards: Vec::new(),
            plugin: None,
            labels: BTreeMap::from([("kubernetes.io/hostname".to_owned(), name.to_owned())]),
            links: BTreeMap::new(),
            plain: plain.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            handshake: Handshake::default(),
            koordlet: None,
        }
    }

    /// With a label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// With this much of `cpu`, `memory`, `pods` or any other plain resource.
    #[must_use]
    pub fn allocatable(mut self, resource: &str, quantity: &str) -> Self {
        self.plain.insert(resource.to_owned(), quantity.to_owned());
        self
    }

    /// With one more card.
    #[must_use]
    pub fn card(mut self, card: Card) -> Self {
        self.cards.push(card);
        self
    }

    /// With two cards whose link the plugin scores like this; the better, the faster.
    #[must_use]
    pub fn link(mut self, one: &str, other: &str, score: i64) -> Self {
        for (from, to) in [(one, other), (other, one)] {
            self.links.entry(from.to_owned()).or_default().insert(to.to_owned(), score);
        }
        self
    }

    /// With this device plugin.
    #[must_use]
    pub fn plugin(mut self, plugin: Plugin) -> Self {
        self.plugin = Some(plugin);
        self
    }

    /// With a HAMi device plugin.
    #[must_use]
    pub fn hami(self, release: Release) -> Self {
        self.plugin(Plugin::Hami(release))
    }

    /// With a Volcano vGPU device plugin.
    #[must_use]
    pub fn volcano(self) -> Self {
        self.plugin(Plugin::Volcano)
    }

    /// With Koordinator's node side.
    #[must_use]
    pub fn koordlet(mut self, koordlet: Koordlet) -> Self {
        self.koordlet = Some(koordlet);
        self
    }

    /// With a plugin that reports its life so often, by a clock that is so far behind; only HAMi's up to v2.7 do.
    #[must_use]
    pub fn reporting(mut self, every: Duration, behind: Duration) -> Self {
        self.handshake = Handshake { every, behind };
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How a card of it may be cut.
    pub(super) fn cut(&self, card: &str) -> Option<&Cut> {
        self.cards.iter().find(|own| own.uuid == card).map(|own| &own.cut)
    }

    /// The Node object as kubelet and the plugin leave it: registered, ready, cards counted.
    pub fn object(&self) -> Value {
        let amounts = self.amounts();
        let mut labels = self.labels.clone();
        labels.extend(
            self.koordlet.iter().flat_map(Koordlet::labels).map(|(key, value)| (key.to_owned(), value)),
        );
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": self.name, "labels": labels, "annotations": self.annotations()},
            "status": {
                "capacity": amounts, "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
                "nodeInfo": {"kubeletVersion": "v1.36.3"},
            },
        })
    }
}
