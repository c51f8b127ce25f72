//! One device, as Koordinator writes it: of a node's Device, and as a pod was given it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    CORE, Key, MEMORY, RATIO, RDMA,
    wish::{NicWish, Wish},
};
use crate::record::text;

/// A device that a pod was given.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) id: String,
    pub(super) amounts: BTreeMap<String, u64>,
    pub(super) functions: Vec<String>,
}

/// What a pod was given, as koordlet reads it.
pub(super) fn given(record: &str) -> Result<Vec<(Key, Given)>, String> {
    let read: Value = serde_json::from_str(record).map_err(|error| format!("{record}: {error}"))?;
    let mut all = Vec::new();
    for (kind, devices) in read.as_object().ok_or("no object")? {
        for device in devices.as_array().ok_or("no array")? {
            let minor = device["minor"].as_u64().ok_or("no minor")?;
            let functions = device["extension"]["vfs"].as_array().into_iter().flatten();
            let functions = functions.map(|function| text(function, "/busID").to_owned()).collect();
            let given = Given { id: text(device, "/id").to_owned(), amounts: amounts(device)?, functions };
            all.push(((kind.clone(), minor), given));
        }
    }
    Ok(all)
}

fn amounts(device: &Value) -> Result<BTreeMap<String, u64>, String> {
    let resources = device["resources"].as_object().ok_or("no resources")?;
    let read = |(name, amount): (&String, &Value)| {
        let text = amount.as_str().ok_or_else(|| format!("{name}: {amount} is no text"))?;
        Ok((name.clone(), quantity(text).ok_or_else(|| format!("{name}: {text} is no quantity"))?))
    };
    resources.iter().map(read).collect()
}

pub(crate) fn quantity(text: &str) -> Option<u64> {
    let of = |suffix: &str, shift: u32| Some(text.strip_suffix(suffix)?.parse::<u64>().ok()? << shift);
    of("Gi", 30).or_else(|| of("Mi", 20)).or_else(|| of("Ki", 10)).or_else(|| text.parse().ok())
}

/// A device of a node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct One {
    pub(super) id: String,
    pub(super) healthy: bool,
    pub(super) total: BTreeMap<String, u64>,
    pub(super) pcie: String,
    pub(super) functions: BTreeSet<String>,
}

/// The devices of a node; without a Device there are none.
pub(super) type Machine = BTreeMap<Key, One>;

pub(super) fn read(device: &Value) -> Machine {
    let one = |device: &Value| {
        let functions = device["vfGroups"].as_array().into_iter().flatten();
        let functions = functions.flat_map(|group| group["vfs"].as_array().cloned().unwrap_or_default());
        let one = One {
            id: text(device, "/id").to_owned(),
            healthy: device["health"] == true,
            total: amounts(device).unwrap(),
            pcie: text(device, "/topology/pcieID").to_owned(),
            functions: functions.map(|function| text(&function, "/busID").to_owned()).collect(),
        };
        ((text(device, "/type").to_owned(), device["minor"].as_u64().unwrap()), one)
    };
    device["spec"]["devices"].as_array().unwrap().iter().map(one).collect()
}

impl One {
    /// Whether koordlet could give a pod with this wish so much of it.
    pub(super) fn is_given(&self, wish: &Wish, kind: &str, given: &Given) -> bool {
        let amount = |name: &str| given.amounts.get(name).copied();
        if kind == "gpu" {
            let percent = wish.gpus.map_or(0, |(_, percent)| percent);
            let memory = self.total.get(MEMORY).map(|total| total * percent / 100);
            let right =
                (amount(CORE), amount(RATIO), amount(MEMORY)) == (Some(percent), Some(percent), memory);
            return right && given.id == self.id && given.functions.is_empty();
        }
        match wish.nic {
            Some(NicWish::Whole) => {
                amount(RDMA) == Some(100) && given.id == self.id && given.functions.is_empty()
            }
            Some(NicWish::Function) => {
                let own = given.functions.iter().all(|function| self.functions.contains(function));
                amount(RDMA) == Some(1) && given.functions.len() == 1 && own
            }
            None => false,
        }
    }

    /// Whether enough of it is left for a pod with this wish.
    pub(super) fn has_room(&self, key: &Key, held: &[(Key, Given)], wish: &Wish) -> bool {
        let of: Vec<&Given> = held.iter().filter(|(other, _)| other == key).map(|(_, one)| one).collect();
        let used = |name: &str| of.iter().filter_map(|one| one.amounts.get(name)).sum::<u64>();
        if key.0 == "gpu" {
            let percent = wish.gpus.map_or(0, |(_, percent)| percent);
            let memory = self.total[MEMORY] * percent / 100;
            return used(CORE) + percent <= 100
                && used(RATIO) + percent <= 100
                && used(MEMORY) + memory <= self.total[MEMORY];
        }
        let taken: BTreeSet<&String> = of.iter().flat_map(|one| &one.functions).collect();
        match wish.nic {
            Some(NicWish::Function) => used(RDMA) < 100 && taken.len() < self.functions.len(),
            _ => used(RDMA) == 0,
        }
    }
}
