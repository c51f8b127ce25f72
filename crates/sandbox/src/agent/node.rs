//! What a simulated node is: its Node object, its cards and its device plugin.
//!
//! It must not talk to the API server.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::hami;
use super::handshake::Handshake;
use super::koordlet::Koordlet;
use super::mig::Cut;
pub use super::plugin::Plugin;

/// One physical GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// As the driver gives it, `GPU-…`.
    pub uuid: String,
    /// The driver's order of cards on the node.
    pub index: u32,
    /// Into how many shares the plugin cuts it.
    pub slots: u64,
    /// MiB.
    pub memory: u64,
    /// Percent of its multiprocessors, 100 unless the plugin scales cores.
    pub cores: u64,
    /// The driver's product name, as `NVIDIA A100-SXM4-40GB`.
    pub product: String,
    /// The NUMA node it hangs on.
    pub numa: u32,
    /// The plugin's operating mode of the card.
    pub mode: String,
    /// How it may be cut in MIG mode.
    pub cut: Cut,
    /// What the plugin's health check says.
    pub health: Health,
}

/// What a plugin's health check says of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It may be used.
    Healthy,
    /// It may not, until the plugin restarts.
    Unhealthy,
}

impl Card {
    /// A healthy card of ten shares in HAMi-core mode; `memory` in MiB.
    pub fn new(uuid: &str, index: u32, memory: u64) -> Self {
        Self {
            uuid: uuid.to_owned(),
            index,
            slots: 10,
            memory,
            cores: 100,
            product: "NVIDIA A100-SXM4-40GB".to_owned(),
            numa: 0,
            mode: "hami-core".to_owned(),
            cut: Cut::Whole,
            health: Health::Healthy,
        }
    }

    /// Cut into this many shares.
    #[must_use]
    pub fn slots(mut self, slots: u64) -> Self {
        self.slots = slots;
        self
    }

    /// Of this product.
    #[must_use]
    pub fn product(mut self, product: &str) -> Self {
        product.clone_into(&mut self.product);
        self
    }

    /// On this NUMA node.
    #[must_use]
    pub fn numa(mut self, numa: u32) -> Self {
        self.numa = numa;
        self
    }
}

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
    pub fn hami(self, release: hami::Release) -> Self {
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
