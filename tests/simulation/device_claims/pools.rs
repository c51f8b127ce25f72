//! What drivers publish: on each node whole cards, cards that are shared, and a card that can be parted.

use std::collections::BTreeSet;

use berth_sandbox::claims::driver::{Driver, cards};
use serde_json::{Value, json};

use crate::dice::Dice;

/// How the cards of a pool are given.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Kind {
    /// As a whole, as NVIDIA's driver does.
    Whole,
    /// By memory and compute, as HAMi's driver does.
    Shared,
    /// As a whole or by halves, which take from counters that they share.
    Parted,
}

/// The pool of a node and a driver.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    generation: i64,
    /// Cards that are missing at the end.
    fewer: u32,
    tainted: BTreeSet<usize>,
    /// Whether the driver is not installed.
    absent: bool,
    /// Whether the driver says that it has more slices than there are.
    incomplete: bool,
}

/// So many cards has a pool at most.
const CARDS: u32 = 2;

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Whole, Self::Shared, Self::Parted];

    pub(crate) fn driver(self) -> &'static str {
        match self {
            Self::Whole => Driver::Nvidia.name(),
            Self::Shared => Driver::Hami.name(),
            Self::Parted => "part.example.com",
        }
    }

    /// The class of its devices, which is named as the driver.
    pub(crate) fn class(self) -> Value {
        match self {
            Self::Whole => serde_json::to_value(Driver::Nvidia.class()).unwrap(),
            Self::Shared => serde_json::to_value(Driver::Hami.class()).unwrap(),
            Self::Parted => {
                let expression = format!("device.driver == '{}'", self.driver());
                json!({"metadata": {"name": self.driver()}, "spec": {"selectors": [{"cel": {"expression": expression}}]}})
            }
        }
    }

    /// The names of the slices that a node may have.
    pub(crate) fn names(self, node: &str) -> Vec<String> {
        let name = format!("{node}-{}", self.driver());
        if self == Self::Parted { vec![format!("{name}-counters"), name] } else { vec![name] }
    }

    /// The slices of a node, whose pool stands so.
    pub(crate) fn slices(self, node: &str, pool: &Pool) -> Vec<Value> {
        if pool.absent {
            return Vec::new();
        }
        let mut slices = match self {
            Self::Whole | Self::Shared => {
                // Two drivers that publish one card would share its account.
                let (driver, named) = if self == Self::Whole {
                    (Driver::Nvidia, node.to_owned())
                } else {
                    (Driver::Hami, format!("{node}-shared"))
                };
                let slice = driver.slice(node, &cards(&named, CARDS - pool.fewer), pool.generation);
                vec![serde_json::to_value(slice).unwrap()]
            }
            Self::Parted => self.parts(node, pool.generation),
        };
        let count = slices.len() + usize::from(pool.incomplete);
        for slice in &mut slices {
            slice["spec"]["pool"]["resourceSliceCount"] = json!(count);
            for (at, device) in slice["spec"]["devices"].as_array_mut().into_iter().flatten().enumerate() {
                if pool.tainted.contains(&at) {
                    device["taints"] = json!([{"key": "example.com/ill", "effect": "NoSchedule"}]);
                }
            }
        }
        slices
    }

    /// A card of 80 GiB: its counters, and what it can be parted into.
    fn parts(self, node: &str, generation: i64) -> Vec<Value> {
        let device = |name: &str, size: &str, memory: &str| {
            let counters = json!([{"counterSet": "card", "counters": {"memory": {"value": memory}}}]);
            json!({"name": name, "attributes": {"size": {"string": size}}, "consumesCounters": counters})
        };
        let devices = json!([
            device("whole", "whole", "80Gi"),
            device("half-0", "half", "40Gi"),
            device("half-1", "half", "40Gi"),
        ]);
        let counters = json!([{"name": "card", "counters": {"memory": {"value": "80Gi"}}}]);
        let slice = |name: String, field: &str, of: Value| {
            json!({"metadata": {"name": name}, "spec": {"driver": self.driver(), "nodeName": node, field: of,
                "pool": {"name": node, "generation": generation}}})
        };
        let bodies = [("sharedCounters", counters), ("devices", devices)];
        let named = self.names(node).into_iter().zip(bodies);
        named.map(|(name, (field, of))| slice(name, field, of)).collect()
    }
}

impl Pool {
    /// The next generation, as it was.
    pub(crate) fn next(&mut self) {
        self.generation += 1;
    }

    /// The driver goes, with its machine.
    pub(crate) fn leave(&mut self) {
        self.absent = true;
    }

    /// The driver is there, with its machine.
    pub(crate) fn come(&mut self) {
        self.absent = false;
        self.next();
    }

    /// Something changes, at the next generation.
    pub(crate) fn change(&mut self, dice: &mut Dice) {
        self.next();
        match dice.below(6) {
            0 => self.absent = !self.absent,
            1 => self.fewer = u32::try_from(dice.below(u64::from(CARDS) + 1)).unwrap(),
            2 => self.incomplete = !self.incomplete,
            3 => self.tainted.clear(),
            4 => drop(self.tainted.insert(usize::try_from(dice.below(3)).unwrap())),
            _ => (self.absent, self.fewer, self.incomplete) = (false, 0, false),
        }
    }
}
