//! What a pod's resources of one type ask together: which sets of names are a request, and what it takes of how many devices.
//!
//! Source: koordinator `pkg/scheduler/plugins/deviceshare/utils.go`, `devicehandler_gpu.go`, `devicehandler_default.go`. Upstream admits
//! requests for more than 100 percent of one card's compute, which no node can serve; here they are refused.

use std::collections::BTreeMap;

use super::{dimension::dimension, names};
use crate::device::{Amounts, DeviceCount, DevicePortion, DeviceType, Exclusive};

/// Resource to amount, none of them 0.
pub type Requests = BTreeMap<String, u64>;

/// Why resources are no request that can be served.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ShapeRefusal {
    /// A resource that is part of the reason.
    pub resource: String,
    /// The reason.
    pub message: String,
}

/// What is taken of each device, and of how many.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PerDevice {
    /// Of each device.
    pub each: Amounts,
    /// Of how many.
    pub count: DeviceCount,
    /// Whether the devices are taken whole.
    pub portion: DevicePortion,
}

/// How the number of devices of a type is found.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CountStrategy {
    /// By the percentage.
    #[default]
    Percentage,
    /// Every device that the selector admits.
    ApplyForAll,
    /// The amount is the number of devices.
    RequestsAsCount,
}

/// Names that are a request together, the ones of Koordinator and of Ascend's cards.
const COMBINATIONS: [&[&str]; 14] = [
    &[names::GPU],
    &[names::GPU_MEMORY],
    &[names::GPU_MEMORY_RATIO],
    &[names::GPU_CORE, names::GPU_MEMORY],
    &[names::GPU_CORE, names::GPU_MEMORY_RATIO],
    &[names::NPU_CORE, names::GPU_MEMORY_RATIO],
    &[names::GPU_SHARED, names::GPU_MEMORY],
    &[names::GPU_SHARED, names::GPU_MEMORY_RATIO],
    &[names::GPU_SHARED, names::GPU_CORE, names::GPU_MEMORY],
    &[names::GPU_SHARED, names::GPU_CORE, names::GPU_MEMORY_RATIO],
    &[names::GPU_SHARED, names::NPU_CORE, names::NPU_CPU, names::GPU_MEMORY],
    &[names::GPU_SHARED, names::NPU_CORE, names::NPU_CPU, names::NPU_DVPP, names::GPU_MEMORY],
    &[names::RDMA],
    &[names::FPGA],
];

/// The request in Koordinator's own names: whole cards and `koordinator.sh/gpu` become compute and memory in percent.
pub fn converted(requests: &Requests) -> Result<Requests, ShapeRefusal> {
    is_combination(requests)?;
    for (name, &amount) in requests {
        let percentage = [names::GPU, names::RDMA, names::FPGA].contains(&name.as_str());
        if percentage || !requests.contains_key(names::GPU_SHARED) {
            whole_devices(name, amount)?;
        }
    }
    spread(requests)?;
    let percent = |resource: &str, amount: u64| {
        let factor = if resource == names::GPU { 1 } else { 100 };
        let amount = amount.saturating_mul(factor);
        Requests::from([(names::GPU_CORE.to_owned(), amount), (names::GPU_MEMORY_RATIO.to_owned(), amount)])
    };
    let cards = requests
        .iter()
        .find(|(name, _)| name.as_str() == names::GPU || names::WHOLE_CARDS.contains(&name.as_str()));
    Ok(cards.map_or_else(|| requests.clone(), |(name, &amount)| percent(name, amount)))
}

fn is_combination(requests: &Requests) -> Result<(), ShapeRefusal> {
    let is = |combination: &&[&str]| {
        combination.len() == requests.len() && combination.iter().all(|name| requests.contains_key(*name))
    };
    let alone = requests.len() == 1 && names::WHOLE_CARDS.iter().any(|name| requests.contains_key(*name));
    if alone || COMBINATIONS.iter().any(is) {
        return Ok(());
    }
    let named: Vec<&str> = requests.keys().map(String::as_str).collect();
    let message = match named.as_slice() {
        [] => "nothing is requested".to_owned(),
        [one] => format!("`{one}` alone is no request for a device"),
        _ => format!("{} together are no request for a device", named.join(", ")),
    };
    Err(refusal(named.first().copied().unwrap_or_default(), message))
}

/// Above 100 percent only whole devices can be asked for.
fn whole_devices(resource: &str, amount: u64) -> Result<(), ShapeRefusal> {
    let percent = [names::GPU, names::GPU_CORE, names::GPU_MEMORY_RATIO, names::RDMA, names::FPGA];
    if percent.contains(&resource) && amount > 100 && !amount.is_multiple_of(100) {
        let message = format!("{amount} is above 100 percent and not a multiple of 100");
        return Err(refusal(resource, message));
    }
    Ok(())
}

/// What is spread over `gpu.shared` cards must divide evenly, and be no more than a whole card of each.
fn spread(requests: &Requests) -> Result<(), ShapeRefusal> {
    let Some(&cards) = requests.get(names::GPU_SHARED) else { return Ok(()) };
    let npu = requests.contains_key(names::NPU_CORE);
    if npu && cards > 1 {
        return Err(refusal(names::GPU_SHARED, format!("an Ascend share is on one card, not on {cards}")));
    }
    if let Some(dvpp) = requests.get(names::NPU_DVPP).filter(|&&dvpp| dvpp > 100) {
        return Err(refusal(names::NPU_DVPP, format!("{dvpp} is more than 100 percent of one card")));
    }
    for name in [names::GPU_CORE, names::GPU_MEMORY_RATIO] {
        let Some(&amount) = requests.get(name) else { continue };
        if !amount.is_multiple_of(cards) || amount / cards > 100 {
            let message =
                format!("{amount} percent can't be spread evenly over {cards} cards of 100 percent");
            return Err(refusal(name, message));
        }
    }
    Ok(())
}

/// What a converted request takes of each device.
pub fn per_device(
    kind: DeviceType,
    converted: &Requests,
    strategy: CountStrategy,
    exclusive: Option<Exclusive>,
) -> Result<PerDevice, ShapeRefusal> {
    match kind {
        DeviceType::Gpu => per_gpu(converted),
        DeviceType::Rdma => Ok(per_other(names::RDMA, converted, strategy, exclusive)),
        DeviceType::Fpga => Ok(per_other(names::FPGA, converted, strategy, exclusive)),
    }
}

fn per_gpu(converted: &Requests) -> Result<PerDevice, ShapeRefusal> {
    let of = |name: &str| converted.get(name).copied();
    let ratio = of(names::GPU_MEMORY_RATIO);
    let by_ratio = ratio.filter(|ratio| *ratio > 100 && ratio.is_multiple_of(100)).map(|ratio| ratio / 100);
    let cards = of(names::GPU_SHARED).or(by_ratio).unwrap_or(1).max(1);
    let mut each = Amounts::default();
    for (name, amount) in converted {
        let bytes_beside_ratio = name == names::GPU_MEMORY && ratio.is_some();
        if name != names::GPU_SHARED && !bytes_beside_ratio {
            each.set(dimension(name), amount / cards);
        }
    }
    if let Some(core) = each.get(&dimension(names::GPU_CORE)).filter(|core| *core > 100) {
        let message = format!("{core} percent of the compute of one card: no node can serve that");
        return Err(refusal(names::GPU_CORE, message));
    }
    let whole = ratio.is_some_and(|ratio| ratio / cards >= 100);
    let portion = if whole { DevicePortion::Whole } else { DevicePortion::Share };
    Ok(PerDevice { each, count: exactly(cards), portion })
}

fn per_other(
    name: &str,
    converted: &Requests,
    strategy: CountStrategy,
    exclusive: Option<Exclusive>,
) -> PerDevice {
    let amount = converted.get(name).copied().unwrap_or(0);
    let (each, count) = match strategy {
        _ if amount > 100 && amount.is_multiple_of(100) => (100, exactly(amount / 100)),
        CountStrategy::Percentage => (amount, DeviceCount::Exactly(1)),
        CountStrategy::ApplyForAll => (amount, DeviceCount::All),
        CountStrategy::RequestsAsCount if exclusive == Some(Exclusive::Device) => (100, exactly(amount)),
        CountStrategy::RequestsAsCount => (1, exactly(amount)),
    };
    let portion = if each >= 100 { DevicePortion::Whole } else { DevicePortion::Share };
    PerDevice { each: Amounts::from_iter([(dimension(name), each)]), count, portion }
}

/// So many devices; a number that no node can have is the largest there is.
fn exactly(count: u64) -> DeviceCount {
    DeviceCount::Exactly(u32::try_from(count).unwrap_or(u32::MAX))
}

fn refusal(resource: &str, message: impl Into<String>) -> ShapeRefusal {
    ShapeRefusal { resource: resource.to_owned(), message: message.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(of: &[(&str, u64)]) -> Requests {
        of.iter().map(|(name, amount)| ((*name).to_owned(), *amount)).collect()
    }

    #[test]
    fn shapes_that_no_node_can_serve_are_refused_though_koordinator_admits_them() {
        for shape in [
            &[(names::GPU_CORE, 200), (names::GPU_MEMORY, 64 << 30)][..],
            &[(names::GPU_CORE, 200), (names::GPU_MEMORY_RATIO, 50)],
            &[(names::GPU_CORE, 300), (names::GPU_MEMORY_RATIO, 200)],
        ] {
            let refusal = per_gpu(&converted(&requests(shape)).unwrap()).unwrap_err();
            assert_eq!(refusal.resource, names::GPU_CORE, "{refusal:?}");
        }
        assert!(converted(&requests(&[(names::GPU, 150)])).is_err());
    }

    #[test]
    fn cards_are_shared_unless_memory_is_asked_in_whole_percent_of_cards() {
        for (shape, count, portion) in [
            (&[(names::GPU, 100)][..], 1, DevicePortion::Whole),
            (&[(names::GPU, 300)], 3, DevicePortion::Whole),
            (&[(names::GPU, 50)], 1, DevicePortion::Share),
            (&[(names::GPU_CORE, 100), (names::GPU_MEMORY, 80 << 30)], 1, DevicePortion::Share),
            (&[(names::GPU_SHARED, 2), (names::GPU_MEMORY_RATIO, 200)], 2, DevicePortion::Whole),
            (&[(names::GPU_SHARED, 2), (names::GPU_MEMORY_RATIO, 100)], 2, DevicePortion::Share),
        ] {
            let of = per_gpu(&converted(&requests(shape)).unwrap()).unwrap();
            assert_eq!((of.count, of.portion), (DeviceCount::Exactly(count), portion), "{shape:?}");
        }
    }
}
