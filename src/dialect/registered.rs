//! What all plugins of a node have registered, which of their cards are one, and which can be no cards at all.
//!
//! A card that one plugin knows by number is the one that another knows by uuid: both count as the driver does. It must not guess: a
//! number that another plugin gives to several cards says nothing.

use super::{CardNaming, Dialects, SharingMode, Unreadable, segments};
use crate::{
    device::{Card, CardId, Inventory, ProfileName},
    excerpt::{VALUE, excerpt},
    object::Node,
};

/// More cards than any machine has: what a node says of itself must not cost more than itself.
pub const MOST_CARDS: u16 = 1024;

/// The longest id and the longest model of a card, in bytes. Some plugins' ids begin with the node's name, which has 253 at most.
pub const LONGEST_NAME: usize = 320;

/// The cards of a plugin's list; an error names the first that can't be one, and so nothing of the list can be relied on: a plugin
/// that writes such a card does not write what was agreed, and cards may be numbered by their place.
pub(super) fn inventory(cards: Vec<Card>) -> Result<Inventory, String> {
    if cards.len() > usize::from(MOST_CARDS) {
        return Err(format!("lists {} cards; a node may have {MOST_CARDS}", cards.len()));
    }
    for (at, card) in cards.iter().enumerate() {
        let id = card.id.as_str();
        if let Some(fault) = fault_of_id(id) {
            let id = excerpt(id, VALUE);
            return Err(format!(
                "card {at} has the id `{id}`, by which no pod could be given it: it {fault}"
            ));
        }
        if let Some(fault) = fault_of_name(&card.model) {
            return Err(format!("card {at} has the type `{}`, which {fault}", excerpt(&card.model, VALUE)));
        }
    }
    let inventory = Inventory::new(cards);
    match inventory.duplicate() {
        Some(twice) => Err(format!("card {twice} is listed twice")),
        None => Ok(inventory),
    }
}

/// Why no card can have this id: it could not be written in an assignment, or not be found again in it.
fn fault_of_id(id: &str) -> Option<&'static str> {
    if id.is_empty() {
        return Some("is empty");
    }
    let parts = || (!segments::can_name(id)).then_some("has one of `,`, `:`, `;`, `[` and `]`");
    fault_of_name(id).or_else(parts)
}

fn fault_of_name(name: &str) -> Option<&'static str> {
    if name.len() > LONGEST_NAME {
        return Some("is longer than any plugin's");
    }
    name.contains(char::is_control).then_some("has control characters")
}

/// What one plugin has registered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PluginRegistration {
    /// Whose plugin.
    pub profile: ProfileName,
    /// The mode that it serves.
    pub mode: SharingMode,
    /// What it calls its cards by.
    pub naming: CardNaming,
    /// Its cards.
    pub inventory: Result<Inventory, Unreadable>,
}

/// What all plugins of a node have registered.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Registered {
    /// Plugin by plugin; one that does not run there is absent.
    pub plugins: Vec<PluginRegistration>,
    /// Cards with two names: a number and a uuid.
    pub aliases: Vec<(CardId, CardId)>,
}

impl Registered {
    /// What is registered on this node. If another plugin states the sizes of all cards that a plugin knows by number, these count: the
    /// plugin itself states their sum only.
    pub fn read(dialects: &Dialects, node: &Node) -> Self {
        let plugins = dialects.iter().filter_map(|dialect| {
            let inventory = dialect.inventory(node).transpose()?;
            let (profile, mode, naming) = (dialect.name().clone(), dialect.mode().clone(), dialect.naming());
            Some(PluginRegistration { profile, mode, naming, inventory })
        });
        let mut registered = Self { plugins: plugins.collect(), aliases: Vec::new() };
        for at in 0..registered.plugins.len() {
            registered.identify(at);
        }
        registered
    }

    fn identify(&mut self, at: usize) {
        let PluginRegistration { naming: CardNaming::Number, inventory: Ok(inventory), .. } =
            &self.plugins[at]
        else {
            return;
        };
        let known = inventory.cards().iter().map(|card| (card.clone(), self.namesakes(card.index)));
        let known: Vec<(Card, Vec<Card>)> = known.collect();
        if known.iter().all(|(_, others)| !others.is_empty()) {
            let sized = known.iter().map(|(card, others)| {
                let least = others.iter().map(|other| other.memory).min();
                Card { memory: least.unwrap_or(card.memory), ..card.clone() }
            });
            self.plugins[at].inventory = Ok(Inventory::new(sized.collect()));
        }
        let pairs = |(card, others): (Card, Vec<Card>)| {
            others.into_iter().map(move |other| (card.id.clone(), other.id))
        };
        self.aliases.extend(known.into_iter().flat_map(pairs));
    }

    /// The cards of that number that other plugins know by uuid, one for each uuid.
    fn namesakes(&self, index: u32) -> Vec<Card> {
        let mut found: Vec<Card> = Vec::new();
        for plugin in self.plugins.iter().filter(|plugin| plugin.naming == CardNaming::Uuid) {
            let cards = plugin.inventory.iter().flat_map(Inventory::cards);
            let of_number: Vec<_> = cards.filter(|card| card.index == index).collect();
            if let [card] = of_number[..]
                && found.iter().all(|known| known.id != card.id)
            {
                found.push(card.clone());
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        device::{CardPolicy, NodePolicy},
        dialect::{Dialect as _, hami, volcano},
    };

    /// How each plugin would register a card of this id and model; JSON alone can hold every id.
    fn readings(id: &str, model: &str) -> Vec<Result<Option<Inventory>, Unreadable>> {
        let entry = json!([
            {"id": "GPU-good", "count": 10, "devmem": 16384, "devcore": 100, "type": "A100", "health": true},
            {"id": id, "count": 10, "devmem": 16384, "devcore": 100, "type": model, "health": true},
        ]);
        let node = |key: &str, text: &str| -> Node {
            serde_json::from_value(json!({"metadata": {"name": "n", "annotations": {key: text}}})).unwrap()
        };
        let hami =
            |text: &str| hami::register::read(&node(hami::names::REGISTER, text), hami::names::REGISTER);
        let vgpu = volcano::Volcano::new(volcano::VolcanoSettings {
            memory_factor: 1,
            card_policy: CardPolicy::Binpack,
            node_policy: NodePolicy::Indifferent,
            geometries: Vec::new(),
            exclusive_rules: Vec::new(),
            lock: None,
        });
        let mut read = vec![hami(&entry.to_string())];
        if !id.contains([',', ':']) {
            let nine = format!("{id},10,16384,100,{model},0,true,0,hami-core:");
            read.push(hami(&nine));
            let six = format!("{id},10,16384,{model},true,hami-core:");
            read.push(vgpu.inventory(&node(volcano::names::REGISTER, &six)));
        }
        read
    }

    #[test]
    fn a_list_with_a_card_that_no_plugin_could_have_is_unreadable_in_every_form() {
        let long = "x".repeat(150_000);
        let ids = ["", "GPU,1", "GPU:1", "GPU;1", "GPU[1", "GPU]1", "GPU-\n1", "GPU-\0", "\u{85}", &long];
        for id in ids {
            for read in readings(id, "A100") {
                let message = read.unwrap_err().message;
                assert!(message.contains("by which no pod could be given it: it "), "{message}");
                assert!(message.len() < 400, "{} bytes", message.len());
            }
        }
        for model in [&long, "A\n100"] {
            for read in readings("GPU-1", model) {
                let message = read.unwrap_err().message;
                assert!(message.contains("has the type `") && message.len() < 400, "{message}");
            }
        }
    }

    #[test]
    fn the_ids_of_real_plugins_are_cards() {
        let of_long_node = format!("{}-dcu-15", "n".repeat(253));
        for id in [
            "GPU-8dcd427f-483b-b48f-d7e5-75fb19a52b76",
            "MIG-GPU-8dcd427f-483b-b48f-d7e5-75fb19a52b76/1/0",
            "Ascend910B3-7",
            "MLU-20001012-1916-0000-0000-000000000000",
            "A0C02E6-80E0D2B5",
            &of_long_node,
        ] {
            for read in readings(id, "NVIDIA-NVIDIA A100-SXM4-80GB") {
                assert!(read.unwrap().unwrap().cards().iter().any(|card| card.id.as_str() == id), "{id}");
            }
        }
    }

    #[test]
    fn a_node_has_no_more_cards_than_any_machine() {
        let card = |at| format!("GPU-{at},10,16384,100,A100,0,true,{at},hami-core:");
        let list = |count: u16| (0..count).map(card).collect::<Vec<_>>().concat();
        let read = |count| {
            let node =
                json!({"metadata": {"name": "n", "annotations": {hami::names::REGISTER: list(count)}}});
            hami::register::read(&serde_json::from_value(node).unwrap(), hami::names::REGISTER)
        };
        assert_eq!(read(MOST_CARDS).unwrap().unwrap().cards().len(), usize::from(MOST_CARDS));
        let message = read(MOST_CARDS + 1).unwrap_err().message;
        assert_eq!(message, "lists 1025 cards; a node may have 1024");
    }
}
