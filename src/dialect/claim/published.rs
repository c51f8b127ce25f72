//! The cards of a node as a driver of Dynamic Resource Allocation would publish them, out of what a device plugin has registered.
//!
//! Sources: Project-HAMi/k8s-dra-driver ebeaad9 `cmd/hami-kubelet-plugin/hami_core.go` and NVIDIA/k8s-dra-driver-gpu
//! `cmd/gpu-kubelet-plugin/deviceinfo.go` (`GetDevice`). What a registration does not state, such as the version of the driver, is left out.

use std::collections::BTreeMap;

use super::{CORES, HAMI_DRIVER, MEMORY, selectors::PREFIX};
use crate::{
    device::{Card, Health, MiB, Mode},
    object::{
        Metadata, Quantity, ResourceSlice,
        resource_slice::{
            CapacityRange, CapacityRequestPolicy, DeviceAttribute, DeviceCapacity, ResourcePool,
            ResourceSliceSpec, SliceDevice,
        },
    },
};

/// The name of NVIDIA's driver, and of its class of whole cards.
pub const NVIDIA_DRIVER: &str = "gpu.nvidia.com";

/// How a driver publishes cards.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Driver {
    /// HAMi's: each card can be shared, by memory and compute.
    Hami,
    /// NVIDIA's: each card is given as a whole.
    Nvidia,
}

impl Driver {
    /// The driver of this name; `None`: how it publishes cards is not known.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            HAMI_DRIVER => Some(Self::Hami),
            NVIDIA_DRIVER => Some(Self::Nvidia),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Hami => HAMI_DRIVER,
            Self::Nvidia => NVIDIA_DRIVER,
        }
    }

    /// The value of the attribute `type`, by which the class of whole cards knows its devices.
    pub fn device_type(self) -> &'static str {
        match self {
            Self::Hami => "hami-gpu",
            Self::Nvidia => "gpu",
        }
    }

    /// The pool of the node. A card that its plugin reports as unhealthy, that is cordoned, or that is sliced in hardware is not published:
    /// no new share would be given of it.
    pub fn slice(self, node: &str, cards: &[Card]) -> ResourceSlice {
        let usable = |card: &&Card| card.health == Health::Healthy && card.mode == Mode::Soft;
        let name = format!("{node}-{}", self.name());
        let spec = ResourceSliceSpec {
            driver: self.name().to_owned(),
            pool: ResourcePool { name: node.to_owned(), generation: 1, resource_slice_count: 1 },
            node_name: Some(node.to_owned()),
            devices: cards.iter().filter(usable).map(|card| self.device(card)).collect(),
            ..ResourceSliceSpec::default()
        };
        ResourceSlice { metadata: Metadata { name, ..Metadata::default() }, spec }
    }

    fn device(self, card: &Card) -> SliceDevice {
        let text =
            |text: &str| DeviceAttribute { string: Some(text.to_owned()), ..DeviceAttribute::default() };
        let attributes = [
            ("type", text(self.device_type())),
            ("uuid", text(card.id.as_str())),
            ("productName", text(product(&card.model))),
        ];
        let attributes = attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let (prefix, capacity) = match self {
            Self::Hami => ("hami-gpu", shared(card.memory)),
            Self::Nvidia => ("gpu", whole(card.memory)),
        };
        SliceDevice {
            name: format!("{prefix}-{}", card.index),
            attributes,
            capacity,
            allow_multiple_allocations: self == Self::Hami,
            ..SliceDevice::default()
        }
    }
}

/// The product's name of a registered type.
fn product(model: &str) -> &str {
    match model.split_at_checked(PREFIX.len()) {
        Some((prefix, product)) if prefix.eq_ignore_ascii_case(PREFIX) => product,
        _ => model,
    }
}

fn mebibytes(memory: MiB) -> Quantity {
    format!("{}Mi", memory.get()).into()
}

fn whole(memory: MiB) -> BTreeMap<String, DeviceCapacity> {
    let memory = DeviceCapacity { value: mebibytes(memory), request_policy: None };
    BTreeMap::from([(MEMORY.to_owned(), memory)])
}

fn shared(memory: MiB) -> BTreeMap<String, DeviceCapacity> {
    let capacity = |whole: Quantity, least: &str, step: &str| DeviceCapacity {
        value: whole.clone(),
        request_policy: Some(CapacityRequestPolicy {
            default: Some(whole.clone()),
            valid_values: None,
            valid_range: Some(CapacityRange {
                min: Some(least.into()),
                max: Some(whole),
                step: Some(step.into()),
            }),
        }),
    };
    let cores = capacity("100".into(), "0", "1");
    BTreeMap::from([
        (MEMORY.to_owned(), capacity(mebibytes(memory), "1Mi", "1Mi")),
        (CORES.to_owned(), cores),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Cores, Slicing};

    fn card(index: u32, model: &str, health: Health, mode: Mode) -> Card {
        Card {
            id: format!("GPU-{index}").into(),
            index,
            slots: 10,
            memory: MiB::new(24576),
            cores: Cores::WHOLE,
            model: model.into(),
            numa: 0,
            mode,
            slicing: Slicing::Unknown,
            health,
        }
    }

    #[test]
    fn cards_that_can_be_given_are_devices_by_their_products_names() {
        let cards = [
            card(0, "NVIDIA-NVIDIA A10", Health::Healthy, Mode::Soft),
            card(1, "NVIDIA-Tesla V100", Health::Healthy, Mode::Soft),
            card(2, "NVIDIA A10", Health::Healthy, Mode::Soft),
            card(3, "NVIDIA A10", Health::Unhealthy, Mode::Soft),
            card(4, "NVIDIA A10", Health::Cordoned, Mode::Soft),
            card(5, "NVIDIA A100", Health::Healthy, Mode::Mig),
        ];
        let told = |driver: Driver| -> Vec<(String, String, bool)> {
            let device = |device: SliceDevice| {
                let product = device.attributes["productName"].string.clone().unwrap();
                (device.name, product, device.allow_multiple_allocations)
            };
            driver.slice("a", &cards).spec.devices.into_iter().map(device).collect()
        };
        let device = |name: &str, product: &str, shared: bool| (name.to_owned(), product.to_owned(), shared);
        let hami = [("hami-gpu-0", "NVIDIA A10"), ("hami-gpu-1", "Tesla V100"), ("hami-gpu-2", "NVIDIA A10")];
        assert_eq!(told(Driver::Hami), hami.map(|(name, product)| device(name, product, true)));
        let nvidia = [("gpu-0", "NVIDIA A10"), ("gpu-1", "Tesla V100"), ("gpu-2", "NVIDIA A10")];
        assert_eq!(told(Driver::Nvidia), nvidia.map(|(name, product)| device(name, product, false)));
    }
}
