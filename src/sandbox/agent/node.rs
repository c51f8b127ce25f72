//! What a simulated node is: its Node object, its cards, and how its device plugin registers them.
//!
//! It must not talk to the API server.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use super::mig::{Cut, Profile};
use super::{gpushare, hami, volcano};

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

/// The device plugin that a node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plugin {
    /// HAMi's own, by its release.
    Hami(hami::Release),
    /// volcano-vgpu-device-plugin.
    Volcano,
    /// Hygon's DCU plugin for HAMi.
    Hygon,
    /// Huawei's Ascend plugin for HAMi, on cards 910B3 that it cuts by templates.
    Ascend,
    /// volcano-sh/devices, by what it counts.
    GpuShare(gpushare::Strategy),
}

/// A node to simulate.
#[derive(Clone, Debug)]
pub struct Node {
    pub(super) name: String,
    pub(super) cards: Vec<Card>,
    pub(super) plugin: Option<Plugin>,
    labels: BTreeMap<String, String>,
    links: BTreeMap<String, BTreeMap<String, i64>>,
    plain: BTreeMap<String, String>,
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

    /// With a HAMi device plugin.
    #[must_use]
    pub fn hami(mut self, release: hami::Release) -> Self {
        self.plugin = Some(Plugin::Hami(release));
        self
    }

    /// With a Volcano vGPU device plugin.
    #[must_use]
    pub fn volcano(mut self) -> Self {
        self.plugin = Some(Plugin::Volcano);
        self
    }

    /// With Hygon's DCU plugin for HAMi.
    #[must_use]
    pub fn hygon(mut self) -> Self {
        self.plugin = Some(Plugin::Hygon);
        self
    }

    /// With Huawei's Ascend plugin for HAMi.
    #[must_use]
    pub fn ascend(mut self) -> Self {
        self.plugin = Some(Plugin::Ascend);
        self
    }

    /// With Volcano's older device plugin.
    #[must_use]
    pub fn gpushare(mut self, strategy: gpushare::Strategy) -> Self {
        self.plugin = Some(Plugin::GpuShare(strategy));
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
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": self.name, "labels": self.labels, "annotations": self.annotations()},
            "status": {
                "capacity": amounts, "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            },
        })
    }

    /// `status.allocatable`: a card's shares count only while it is healthy.
    pub fn amounts(&self) -> BTreeMap<String, String> {
        let healthy = || self.cards.iter().filter(|card| card.health == Health::Healthy);
        let slots: u64 = healthy().map(|card| card.slots).sum();
        let memory: u64 = healthy().map(|card| card.memory).sum();
        let cores: u64 = healthy().map(|card| card.cores).sum();
        let count = u64::try_from(self.cards.len()).unwrap_or(u64::MAX);
        let devices = match self.plugin {
            None => vec![],
            Some(plugin @ (Plugin::Hami(_) | Plugin::Hygon | Plugin::Ascend)) => {
                vec![(plugin.names().count, slots)]
            }
            Some(Plugin::Volcano) => vec![
                (volcano::NAMES.count, slots),
                (volcano::NAMES.memory, memory),
                (volcano::NAMES.cores, cores),
            ],
            Some(Plugin::GpuShare(gpushare::Strategy::Cards)) => vec![(gpushare::CARDS.count, count)],
            Some(Plugin::GpuShare(gpushare::Strategy::Memory)) => {
                // Every card is taken to be as large as the first.
                let each = self.cards.first().map_or(0, |card| card.memory);
                vec![(gpushare::MEMORY.count, count * each), (gpushare::CARDS.count, count)]
            }
        };
        let devices = devices.into_iter().map(|(name, amount)| (name.to_owned(), amount.to_string()));
        self.plain.clone().into_iter().chain(devices).collect()
    }

    /// What the plugin writes on the Node.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        let (key, value) = match self.plugin {
            None => return BTreeMap::new(),
            Some(Plugin::Hami(release)) => (hami::NVIDIA.register, self.hami_register(release)),
            Some(Plugin::Hygon) => (hami::HYGON.register, self.hami_fields(fields_of_nine)),
            Some(Plugin::Ascend) => (hami::ASCEND.register, self.hami_json()),
            Some(Plugin::Volcano) => (volcano::REGISTER, self.volcano_register()),
            Some(Plugin::GpuShare(_)) => (gpushare::UNHEALTHY, self.unhealthy()),
        };
        let links = (!self.links.is_empty()).then(|| (hami::LINKS, self.hami_links()));
        let mode = (self.plugin == Some(Plugin::Ascend)).then_some(("hami-vnpu-core", "false".to_owned()));
        let written = [(key, value)].into_iter().chain(links).chain(mode);
        written.map(|(key, value)| (key.to_owned(), value)).collect()
    }

    fn unhealthy(&self) -> String {
        let unhealthy = self.cards.iter().filter(|card| card.health == Health::Unhealthy);
        unhealthy.map(|card| card.index.to_string()).collect::<Vec<_>>().join(",")
    }

    fn hami_links(&self) -> String {
        let entry = |(card, scores)| json!({"uuid": card, "score": scores});
        Value::Array(self.links.iter().map(entry).collect()).to_string()
    }

    fn hami_register(&self, release: hami::Release) -> String {
        match release {
            hami::Release::V2_4 => self.hami_fields(|_| String::new()),
            hami::Release::V2_7 => self.hami_fields(fields_of_nine),
            _ => self.hami_json(),
        }
    }

    fn hami_json(&self) -> String {
        let cards = self.cards.iter().map(|card| Registered::of(card, self.kind(card)));
        serde_json::to_string(&cards.collect::<Vec<_>>()).expect("strings and numbers are always JSON")
    }

    /// HAMi's NVIDIA plugin puts `NVIDIA-` before a product name that does not begin with `NVIDIA`.
    fn kind(&self, card: &Card) -> String {
        let own = !matches!(self.plugin, Some(Plugin::Hami(_))) || card.product.starts_with("NVIDIA");
        if own { card.product.clone() } else { format!("NVIDIA-{}", card.product) }
    }

    fn hami_fields(&self, rest: impl Fn(&Card) -> String) -> String {
        self.cards.iter().fold(String::new(), |mut text, card| {
            let Card { uuid, slots, memory, cores, numa, .. } = card;
            let health = card.health == Health::Healthy;
            let kind = self.kind(card);
            write!(text, "{uuid},{slots},{memory},{cores},{kind},{numa},{health}{}:", rest(card))
                .expect("a String takes any text");
            text
        })
    }

    fn volcano_register(&self) -> String {
        self.cards.iter().fold(String::new(), |mut text, card| {
            let Card { uuid, slots, memory, product, mode, .. } = card;
            let health = card.health == Health::Healthy;
            write!(text, "{uuid},{slots},{memory},NVIDIA-{product},{health},{mode}:")
                .expect("a String takes any text");
            text
        })
    }
}

/// The two fields that plugins since v2.5 add.
fn fields_of_nine(card: &Card) -> String {
    format!(",{},{}", card.index, card.mode)
}

/// A card in the JSON register: Go's `omitempty` leaves out zeros and `false`.
#[derive(Serialize)]
struct Registered<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    index: u64,
    #[serde(skip_serializing_if = "is_zero")]
    count: u64,
    #[serde(skip_serializing_if = "is_zero")]
    devmem: u64,
    #[serde(skip_serializing_if = "is_zero")]
    devcore: u64,
    r#type: String,
    #[serde(skip_serializing_if = "is_zero")]
    numa: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    mode: &'a str,
    #[serde(rename = "migProfiles", skip_serializing_if = "<[_]>::is_empty")]
    profiles: &'a [Profile],
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<bool>,
}

impl<'a> Registered<'a> {
    fn of(card: &'a Card, kind: String) -> Self {
        Self {
            id: &card.uuid,
            index: card.index.into(),
            count: card.slots,
            devmem: card.memory,
            devcore: card.cores,
            r#type: kind,
            numa: card.numa.into(),
            mode: &card.mode,
            profiles: if let Cut::Placed(profiles) = &card.cut { profiles } else { &[] },
            health: (card.health == Health::Healthy).then_some(true),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::super::hami::Release;
    use super::*;

    fn node() -> Node {
        let sick =
            Card { health: Health::Unhealthy, ..Card::new("GPU-b", 1, 8192).numa(1).product("Tesla T4") };
        Node::new("n").card(Card::new("GPU-a", 0, 16384)).card(sick)
    }

    fn register(node: &Node) -> String {
        node.annotations().into_values().next().unwrap()
    }

    #[test]
    fn the_json_register_leaves_out_zeros_and_false() {
        let expected = concat!(
            r#"[{"id":"GPU-a","count":10,"devmem":16384,"devcore":100,"type":"NVIDIA A100-SXM4-40GB","#,
            r#""mode":"hami-core","health":true},{"id":"GPU-b","index":1,"count":10,"devmem":8192,"#,
            r#""devcore":100,"type":"NVIDIA-Tesla T4","numa":1,"mode":"hami-core"}]"#
        );
        assert_eq!(register(&node().hami(Release::V2_10)), expected);
    }

    #[test]
    fn old_registers_are_fields_that_end_in_a_colon() {
        let seven =
            "GPU-a,10,16384,100,NVIDIA A100-SXM4-40GB,0,true:GPU-b,10,8192,100,NVIDIA-Tesla T4,1,false:";
        assert_eq!(register(&node().hami(Release::V2_4)), seven);
        assert!(register(&node().hami(Release::V2_7)).ends_with(",false,1,hami-core:"));
        let volcano = "GPU-a,10,16384,NVIDIA-NVIDIA A100-SXM4-40GB,true,hami-core:\
                       GPU-b,10,8192,NVIDIA-Tesla T4,false,hami-core:";
        assert_eq!(register(&node().volcano()), volcano);
    }

    #[test]
    fn only_healthy_cards_are_allocatable() {
        assert_eq!(node().hami(Release::V2_10).amounts()["nvidia.com/gpu"], "10");
        let volcano = node().volcano().amounts();
        assert_eq!(volcano["volcano.sh/vgpu-memory"], "16384");
        assert_eq!(volcano["volcano.sh/vgpu-cores"], "100");
    }
}
