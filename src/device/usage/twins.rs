//! Cards that one plugin registers as cards and another as devices by type: what is held of one is held of the other.

use super::{CardUsage, DevicesUsed, Usage, Users};
use crate::device::{
    Amounts, CardId, Cores, DeviceAllocation, DeviceAllocations, DeviceType, MiB, NodeDevice, NodeDevices,
    node_devices::CardDimensions,
};

impl Usage {
    /// With each GPU of these devices counted together with the card that has its id, under both.
    #[must_use]
    pub fn with_twins(mut self, node: &NodeDevices) -> Self {
        let Some(dimensions) = &node.card else { return self };
        let (mut cards, mut given) = (Vec::new(), Vec::new());
        for (minor, device) in node.of(DeviceType::Gpu).filter(|(_, device)| !device.id.is_empty()) {
            let id = CardId::from(&device.id);
            if let Some(held) = self.devices.get(DeviceType::Gpu, minor) {
                cards.push((id.clone(), dimensions.as_card(&held.amounts)));
            }
            if let Some(users) = self.users(&id).filter(|users| users.amounts.slots > 0) {
                let amounts = dimensions.as_device(users.amounts, device);
                given.push(DeviceAllocation { minor, amounts, ..DeviceAllocation::default() });
            }
        }
        self.devices =
            self.devices.and(DevicesUsed::of([&DeviceAllocations::from([(DeviceType::Gpu, given)])]));
        self.cards = self.cards.and(cards.into_iter().map(|(id, amounts)| (id, Users::unsliced(amounts))));
        self
    }
}

impl CardDimensions {
    /// What is held of a device as it counts on a card, in whole MiB, rounded up.
    fn as_card(&self, held: &Amounts) -> CardUsage {
        let whole = held.get(&self.memory.percent).is_some_and(|percent| percent >= 100);
        let cores = held.get(&self.cores).and_then(|cores| u32::try_from(cores).ok()).unwrap_or(0);
        CardUsage {
            slots: 1,
            memory: MiB::new(held.get(&self.memory.amount).unwrap_or(0).div_ceil(MiB::BYTES)),
            cores: if whole { Cores::WHOLE } else { Cores::new(cores) },
        }
    }

    /// What is held of a card as it counts on a device; an amount that can't be read is all of it.
    pub(super) fn as_device(&self, held: CardUsage, device: &NodeDevice) -> Amounts {
        let mut amounts = Amounts::default();
        if let Some(total) = device.total.get(&self.memory.amount).filter(|total| *total > 0) {
            let bytes = held.memory.known().map_or(total, |memory| memory.get().saturating_mul(MiB::BYTES));
            let percent = (u128::from(bytes) * 100).div_ceil(u128::from(total));
            amounts.set(self.memory.amount.clone(), bytes);
            amounts.set(self.memory.percent.clone(), u64::try_from(percent).unwrap_or(u64::MAX));
        }
        let cores = held.cores.known().unwrap_or(Cores::WHOLE);
        amounts.set(self.cores.clone(), cores.get().into());
        amounts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{
        Assignment, ContainerShares, Health, InitPhase, NamedDimension, Proportion, Role, Share, Unit,
    };

    fn dimensions() -> CardDimensions {
        CardDimensions {
            memory: Proportion {
                amount: NamedDimension::new("memory", Unit::Bytes),
                percent: NamedDimension::new("ratio", Unit::Percent),
            },
            cores: NamedDimension::new("core", Unit::Percent),
        }
    }

    fn amounts(bytes: u64, percent: u64, cores: u64) -> Amounts {
        let CardDimensions { memory, cores: core } = dimensions();
        Amounts::from_iter([(memory.amount, bytes), (memory.percent, percent), (core, cores)])
    }

    fn node() -> NodeDevices {
        let device = |id: &str| NodeDevice {
            id: id.to_owned(),
            health: Health::Healthy,
            labels: [].into(),
            total: amounts(1000 * MiB::BYTES, 100, 100),
            topology: None,
            functions: Vec::new(),
        };
        let gpus = [(0, device("GPU-a")), (1, device("GPU-b"))].into();
        NodeDevices {
            devices: [(DeviceType::Gpu, gpus)].into(),
            card: Some(dimensions()),
            ..NodeDevices::default()
        }
    }

    #[test]
    fn what_is_held_of_a_card_is_held_of_the_device_and_the_other_way_round() {
        let share = Share { card: "GPU-a".into(), memory: MiB::new(301), cores: Cores::new(30), slice: None };
        let containers = vec![ContainerShares { role: Role::App, shares: vec![share] }];
        let of_cards = Assignment { containers, ..Assignment::default() };
        let one = |minor, amounts| DeviceAllocation { minor, amounts, ..DeviceAllocation::default() };
        let given =
            vec![one(0, amounts(500 * MiB::BYTES + 1, 50, 20)), one(1, amounts(1000 * MiB::BYTES, 100, 0))];
        let of_devices = Assignment { devices: [(DeviceType::Gpu, given)].into(), ..Assignment::default() };
        let pods = [(&of_cards, InitPhase::Done), (&of_devices, InitPhase::Done)];
        let usage = Usage::of(pods).with_twins(&node());
        let device = |minor| usage.devices().get(DeviceType::Gpu, minor).unwrap().amounts.clone();
        assert_eq!(device(0), amounts(801 * MiB::BYTES + 1, 81, 50));
        assert_eq!(device(1), amounts(1000 * MiB::BYTES, 100, 0));
        let card = |id: &str| usage.card(&id.into());
        let held =
            |slots, memory, cores| CardUsage { slots, memory: MiB::new(memory), cores: Cores::new(cores) };
        assert_eq!([card("GPU-a"), card("GPU-b")], [held(2, 802, 50), held(1, 1000, 100)]);
    }
}
