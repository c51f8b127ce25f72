//! What a node's device plugin tells of its cards: what kubelet counts of them, and the annotations that it registers them by.
//!
//! It must not talk to the API server.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use super::card::{Card, Health};
use super::cut::{Cut, Profile};
use super::gpushare::UNHEALTHY;
use super::hami::LINKS;
use super::keys::{CAMBRICON, CAMBRICON_UNIT, METAX, METAX_SLOTS, VOLCANO, VOLCANO_REGISTER};
use super::koordlet::Koordlet;
use super::node::Node;
use super::plugin::Plugin;
use super::strategy::{CARDS, MEMORY, Strategy};
use super::wire::Release;

const BIREN_HANDSHAKE: &str = "hami.io/node-handshake-biren";

impl Node {
    /// `status.allocatable`: a card's shares count only while it is healthy.
    pub fn amounts(&self) -> BTreeMap<String, String> {
        let healthy = || self.cards.iter().filter(|card| card.health == Health::Healthy);
        let slots: u64 = healthy().map(|card| card.slots).sum();
        let memory: u64 = healthy().map(|card| card.memory).sum();
        let cores: u64 = healthy().map(|card| card.cores).sum();
        let count = u64::try_from(self.cards.len()).unwrap_or(u64::MAX);
        let devices = match self.plugin {
            None => vec![],
            Some(Plugin::Cambricon(_)) => vec![
                (CAMBRICON.cores, cores),
                (CAMBRICON.memory, memory / CAMBRICON_UNIT),
                ("cambricon.com/real-mlu-counts", count),
            ],
            Some(Plugin::Metax) => vec![(METAX.count, METAX_SLOTS * self.healthy_gpus())],
            Some(Plugin::Volcano) => {
                vec![(VOLCANO.count, slots), (VOLCANO.memory, memory), (VOLCANO.cores, cores)]
            }
            Some(Plugin::GpuShare(Strategy::Cards)) => vec![(CARDS.count, count)],
            Some(Plugin::GpuShare(Strategy::Memory)) => {
                // Every card is taken to be as large as the first.
                let each = self.cards.first().map_or(0, |card| card.memory);
                vec![(MEMORY.count, count * each), (CARDS.count, count)]
            }
            Some(plugin) => vec![(plugin.names().count, slots)],
        };
        let devices = devices.into_iter().chain(self.koordlet.iter().flat_map(Koordlet::amounts));
        let devices = devices.map(|(name, amount)| (name.to_owned(), amount.to_string()));
        self.plain.clone().into_iter().chain(devices).collect()
    }

    fn healthy_gpus(&self) -> u64 {
        let gpus = self.koordlet.iter().flat_map(|koordlet| &koordlet.gpus);
        let healthy = gpus.filter(|gpu| gpu.health == Health::Healthy).count();
        u64::try_from(healthy).unwrap_or(u64::MAX)
    }

    /// What the plugin writes on the Node.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        let Some(plugin) = self.plugin else { return BTreeMap::new() };
        let key = plugin.wire().map_or("", |wire| wire.register);
        let cards = match plugin {
            Plugin::Hami(release) => (key, self.hami_register(release)),
            Plugin::Hygon | Plugin::Iluvatar => (key, self.hami_fields(fields_of_nine)),
            Plugin::Ascend | Plugin::Amd | Plugin::Biren => (key, self.hami_json()),
            Plugin::Volcano => (VOLCANO_REGISTER, self.volcano_register()),
            Plugin::GpuShare(_) => (UNHEALTHY, self.unhealthy()),
            // It registers with kubelet alone.
            Plugin::Cambricon(_) | Plugin::Metax => return BTreeMap::new(),
        };
        let links = (!self.links.is_empty()).then(|| (LINKS, self.hami_links()));
        let beside = match plugin {
            Plugin::Ascend => Some(("hami-vnpu-core", "false")),
            // By a layout that Go does not read as a date; nobody asks for it.
            Plugin::Biren => Some((BIREN_HANDSHAKE, "Reported_21126.01.02 15:04:05")),
            _ => None,
        };
        let beside = beside.map(|(key, value)| (key, value.to_owned()));
        let written = [cards].into_iter().chain(links).chain(beside);
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

    fn hami_register(&self, release: Release) -> String {
        match release {
            Release::V2_4 => self.hami_fields(|_| String::new()),
            Release::V2_7 => self.hami_fields(fields_of_nine),
            _ => self.hami_json(),
        }
    }

    fn hami_json(&self) -> String {
        let vendor = (self.plugin == Some(Plugin::Amd)).then_some("amd");
        let cards = self.cards.iter().map(|card| Registered::of(card, self.kind(card), vendor));
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
    #[serde(rename = "devicevendor", skip_serializing_if = "Option::is_none")]
    vendor: Option<&'a str>,
}

impl<'a> Registered<'a> {
    fn of(card: &'a Card, kind: String, vendor: Option<&'a str>) -> Self {
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
            vendor,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
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
