//! Cards that are given through claims of devices too: what claims hold counts beside what pods hold by their assignments.

use super::{CardUsage, DevicesUsed, Usage, Users};
use crate::device::{
    Card, CardId, CoreUnit, Cores, DeviceAllocation, DeviceAllocations, DeviceType, Inventory, MiB,
};

/// What claims hold of one card.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Claimed {
    /// Whether it is held as a whole, or a hardware slice of it is, beside which nothing is shared in software.
    pub whole: bool,
    /// Whether a claim holds a device that may be this card.
    pub doubtful: bool,
    /// How many shares of it are held.
    pub shares: u32,
    /// The memory of these, in bytes.
    pub memory: u64,
    /// Their compute, in percent.
    pub cores: u32,
}

impl Claimed {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            whole: self.whole || other.whole,
            doubtful: self.doubtful || other.doubtful,
            shares: self.shares.saturating_add(other.shares),
            memory: self.memory.saturating_add(other.memory),
            cores: self.cores.saturating_add(other.cores),
        }
    }

    /// As it counts on a card: each share takes one of its slots; one that is held as a whole has nothing left, slots included.
    fn of_card(self, unit: CoreUnit, card: &Card) -> CardUsage {
        let cores = match unit {
            CoreUnit::Percent => self.cores,
            CoreUnit::Units => {
                let units = (u64::from(self.cores) * u64::from(card.cores.get())).div_ceil(100);
                u32::try_from(units).unwrap_or(u32::MAX)
            }
        };
        let all = match unit {
            CoreUnit::Percent => card.cores.max(Cores::WHOLE),
            CoreUnit::Units => card.cores,
        };
        let mut used = CardUsage { cores: Cores::new(cores), ..self.shared() };
        if self.whole {
            used = used.and(CardUsage { slots: card.slots, memory: card.memory, cores: all });
        }
        if self.doubtful {
            used = used.and(CardUsage { slots: card.slots, memory: MiB::UNREAD, cores: Cores::UNREAD });
        }
        used
    }

    /// As it counts on a GPU that is given as a device by type.
    fn of_device(self) -> CardUsage {
        if self.whole || self.doubtful {
            return CardUsage { slots: 1, memory: MiB::UNREAD, cores: Cores::UNREAD };
        }
        self.shared()
    }

    /// The shares, with their memory in whole MiB, rounded up.
    fn shared(self) -> CardUsage {
        let memory = MiB::new(self.memory.div_ceil(MiB::BYTES));
        CardUsage { slots: self.shares, memory, cores: Cores::new(self.cores) }
    }
}

impl Usage {
    /// With what claims hold of the card of these names, as these plugins offer it: as a card, and as a device by type.
    #[must_use]
    pub fn with_claimed<'a>(
        mut self,
        names: &[&CardId],
        claimed: Claimed,
        offers: impl Iterator<Item = (CoreUnit, &'a Inventory)> + Clone,
    ) -> Self {
        let cards = offers
            .clone()
            .flat_map(|(unit, inventory)| inventory.cards().iter().map(move |card| (unit, card)));
        let cards = cards.filter(|(_, card)| names.contains(&&card.id));
        if let Some(amounts) = cards.map(|(unit, card)| claimed.of_card(unit, card)).reduce(CardUsage::peak) {
            let cards = names.iter().map(|name| ((*name).clone(), Users::unsliced(amounts)));
            self.cards = self.cards.and(cards);
        }
        for node in offers.map(|(_, inventory)| inventory.devices()) {
            let Some(dimensions) = &node.card else { continue };
            let gpus =
                node.of(DeviceType::Gpu).filter(|(_, gpu)| names.iter().any(|name| name.as_str() == gpu.id));
            let given = gpus.map(|(minor, gpu)| {
                let amounts = dimensions.as_device(claimed.of_device(), gpu);
                DeviceAllocation { minor, amounts, ..DeviceAllocation::default() }
            });
            let given = DeviceAllocations::from([(DeviceType::Gpu, given.collect())]);
            self.devices = self.devices.and(DevicesUsed::of([&given]));
        }
        self
    }

    /// With what claims hold of a card that no plugin offers.
    #[must_use]
    pub fn with_published(mut self, card: &CardId, claimed: Claimed) -> Self {
        if claimed != Claimed::default() {
            self.cards = self.cards.and([(card.clone(), Users::unsliced(claimed.of_device()))]);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Assignment, ContainerShares, Health, InitPhase, Mode, Role, Share, Slicing};

    fn card(id: &str, memory: u64, cores: u32) -> Card {
        Card {
            id: id.into(),
            index: 0,
            slots: 10,
            memory: MiB::new(memory),
            cores: Cores::new(cores),
            model: "A100".into(),
            numa: 0,
            mode: Mode::Soft,
            slicing: Slicing::Unknown,
            health: Health::Healthy,
        }
    }

    fn used(claimed: Claimed, card: Card, unit: CoreUnit) -> (u32, u64, u32) {
        let id = card.id.clone();
        let inventory = Inventory::new(vec![card]);
        let share = Share { card: id.clone(), memory: MiB::new(100), cores: Cores::new(5), slice: None };
        let containers = vec![ContainerShares { role: Role::App, shares: vec![share] }];
        let assignment = Assignment { containers, ..Assignment::default() };
        let usage = Usage::of([(&assignment, InitPhase::Done)]);
        let usage = usage.with_claimed(&[&id], claimed, [(unit, &inventory)].into_iter()).card(&id);
        (usage.slots, usage.memory.get(), usage.cores.get())
    }

    #[test]
    fn shares_of_claims_are_added_to_those_of_pods_and_a_whole_device_leaves_nothing() {
        let shares = Claimed { shares: 2, memory: 300 * MiB::BYTES + 1, cores: 30, ..Claimed::default() };
        assert_eq!(used(shares, card("GPU-1", 1000, 100), CoreUnit::Percent), (3, 401, 35));
        assert_eq!(used(shares, card("GPU-1", 1000, 304), CoreUnit::Units), (3, 401, 97), "92 of 304 units");
        let whole = Claimed { whole: true, ..Claimed::default() };
        assert_eq!(used(whole, card("GPU-1", 1000, 100), CoreUnit::Percent), (11, 1100, 105));
        assert_eq!(used(whole, card("GPU-1", 1000, 200), CoreUnit::Percent), (11, 1100, 205));
        let twice = whole.and(whole);
        assert_eq!(twice, whole, "two slices of one card leave as little as one");
        let doubtful = Claimed { doubtful: true, ..Claimed::default() };
        let (slots, memory, cores) = used(doubtful, card("GPU-1", 1000, 100), CoreUnit::Percent);
        assert_eq!(slots, 11);
        assert!(MiB::new(memory).known().is_none() && Cores::new(cores).known().is_none());
    }

    #[test]
    fn a_card_that_no_plugin_offers_has_no_use() {
        let inventory = Inventory::new(vec![card("GPU-1", 1000, 100)]);
        let other = CardId::from("GPU-2");
        let whole = Claimed { whole: true, ..Claimed::default() };
        let offers = [(CoreUnit::Percent, &inventory)].into_iter();
        assert_eq!(Usage::default().with_claimed(&[&other], whole, offers), Usage::default());
    }
}
