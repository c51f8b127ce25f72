//! The devices of nodes as a tree in the terminal: what hangs below each PCIe root, how much of it is in use, and the pods on it.

use std::collections::{BTreeMap, BTreeSet};

use kube::{Api, api::ListParams};

use super::{picture::bar, stage::DemoStage};
use crate::{
    cluster::{informer::wire::Watched, read::devices},
    device::{Amounts, DeviceType, DevicesUsed, Minor, NodeDevice},
    object::{Device, Pod},
    scheduling::{PodInfo, Stage as PodStage},
};

const WIDTH: usize = 8;

/// What is in use of the devices of a node, and the pods on each.
struct DevicesInUse {
    devices: DevicesUsed,
    pods: BTreeMap<(DeviceType, Minor), BTreeSet<String>>,
}

/// Draws the devices of every node that has a Device.
pub(super) async fn draw(stage: &DemoStage) -> anyhow::Result<()> {
    let reader = stage.config.reader();
    let everything = ListParams::default();
    let nodes = Api::<Watched<Device>>::all(stage.client.clone()).list(&everything).await?;
    let pods = Api::<Watched<Pod>>::all(stage.client.clone()).list(&everything).await?;
    let pods: Vec<_> = pods.items.iter().map(|pod| reader.pod(&pod.object).0).collect();
    for node in &nodes.items {
        let (offer, _) = devices(&node.object);
        let name = &node.object.metadata.name;
        let Some(inventory) = &offer.inventory else { continue };
        stage.say(format_args!("  {name} ({})", offer.profile))?;
        let used = in_use(&pods, name);
        let mut roots: BTreeMap<&str, Vec<(DeviceType, Minor, &NodeDevice)>> = BTreeMap::new();
        for kind in DeviceType::ALL {
            for (minor, device) in inventory.devices().of(kind) {
                let root = device.pcie().map_or("", |pcie| pcie);
                roots.entry(root).or_default().push((kind, minor, device));
            }
        }
        for (root, below) in roots {
            stage.say(format_args!("    {root}"))?;
            for (at, (kind, minor, device)) in below.iter().enumerate() {
                let branch = if at + 1 == below.len() { "└" } else { "├" };
                let line = line(*kind, *minor, device, &used);
                stage.say(format_args!("    {branch}─ {line}"))?;
            }
        }
    }
    Ok(())
}

fn in_use(pods: &[PodInfo], node: &str) -> DevicesInUse {
    let holding = pods.iter().filter(|pod| pod.stage != PodStage::Ended).filter_map(|pod| {
        let holding = pod.holding.as_ref().filter(|holding| *holding.node == *node)?;
        Some((pod, holding.allocations.iter().map(|one| &one.assignment.devices)))
    });
    let devices = DevicesUsed::of(holding.clone().flat_map(|(_, held)| held));
    let mut pods: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for (pod, held) in holding {
        for (kind, minor, _) in DevicesUsed::of(held).iter() {
            pods.entry((kind, minor)).or_default().insert(pod.key.name.to_string());
        }
    }
    DevicesInUse { devices, pods }
}

fn line(kind: DeviceType, minor: Minor, device: &NodeDevice, used: &DevicesInUse) -> String {
    let pods: Vec<&str> = used.pods.get(&(kind, minor)).into_iter().flatten().map(String::as_str).collect();
    let used = used.devices.get(kind, minor).map_or(0, |used| percent(&used.amounts, &device.total));
    let name = format!("{kind} {minor}");
    let line =
        format!("{name:<7} {} {used:>3} %  {:<20} {}", bar(used, 100, WIDTH), device.id, pods.join(" "));
    line.trim_end().to_owned()
}

/// How much is in use of what most is in use of, in percent.
fn percent(used: &Amounts, total: &Amounts) -> u64 {
    let of = |(dimension, total): (_, u64)| {
        used.get(dimension).map_or(0, |used| (used * 100).div_ceil(total.max(1)))
    };
    total.iter().map(of).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{NamedDimension, Unit};

    #[test]
    fn a_device_is_in_use_as_much_as_what_is_scarcest_of_it() {
        let amounts = |core, memory| {
            let mut amounts = Amounts::default();
            amounts.set(NamedDimension::new("core", Unit::Count), core);
            amounts.set(NamedDimension::new("memory", Unit::Count), memory);
            amounts
        };
        assert_eq!(percent(&Amounts::default(), &amounts(100, 80)), 0);
        assert_eq!(percent(&amounts(30, 40), &amounts(100, 80)), 50);
        assert_eq!(percent(&amounts(1, 0), &amounts(1000, 80)), 1);
    }
}
