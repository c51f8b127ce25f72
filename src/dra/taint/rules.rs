//! The taints that DeviceTaintRules add to devices (KEP-5055, kubernetes `dynamic-resource-allocation/resourceslice/tracker`).
//!
//! Which rules are about which device is found out when a rule or a slice changes, so that a decision looks at taints alone.

use std::{collections::BTreeMap, sync::Arc};

use super::counts;
use crate::{
    dra::pool::PoolId,
    object::{
        DeviceTaintRule,
        device_taint_rule::{DeviceTaintRuleSpec, DeviceTaintSelector},
        resource_slice::DeviceTaint,
    },
};

/// So many different taints may rules add to a device. A driver may publish 16. One with more is given to no request, whatever this tolerates.
pub const MOST_RULED: usize = 64;

/// The taints that rules add to a device.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(in crate::dra) enum RuledTaints {
    /// These, each once.
    Known(Arc<[DeviceTaint]>),
    /// More than [`MOST_RULED`].
    TooMany,
}

impl Default for RuledTaints {
    fn default() -> Self {
        Self::Known(Arc::default())
    }
}

/// Every rule.
#[derive(Clone, Debug, Default)]
pub(in crate::dra) struct TaintRules {
    rules: BTreeMap<Arc<str>, Arc<DeviceTaintRule>>,
    by_pools: BTreeMap<PoolSelector, RulesOfPools>,
}

/// A driver and a pool; `None`: any.
type PoolSelector = (Option<Arc<str>>, Option<Arc<str>>);

/// What rules add to devices of some pools.
#[derive(Clone, Debug, Default)]
struct RulesOfPools {
    /// To each.
    all: TaintCounts,
    /// To those of a name.
    named: BTreeMap<Arc<str>, TaintCounts>,
}

/// By taint, how many rules add it.
type TaintCounts = BTreeMap<DeviceTaint, usize>;

/// The devices whose taints a rule has changed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::dra) struct TaintedDevices {
    pools: PoolSelector,
    /// `None`: every one of the pools.
    pub(in crate::dra) device: Option<Arc<str>>,
}

impl TaintedDevices {
    /// Whether devices of the pool are among them.
    pub(in crate::dra) fn are_in(&self, (driver, pool): &PoolId) -> bool {
        let (of_driver, of_pool) = &self.pools;
        of_driver.as_ref().is_none_or(|one| one == driver) && of_pool.as_ref().is_none_or(|one| one == pool)
    }
}

/// The rules that are about devices of one pool.
#[derive(Debug)]
pub(in crate::dra) struct PoolTaints<'a> {
    rules: Vec<&'a RulesOfPools>,
    /// What a device has that no rule names.
    unnamed: RuledTaints,
}

impl TaintRules {
    /// Takes in a rule by a name that no other has; `None`: it is gone. Returns the devices that have other taints for it.
    pub(in crate::dra) fn set(
        &mut self,
        name: &Arc<str>,
        rule: Option<Arc<DeviceTaintRule>>,
    ) -> Vec<TaintedDevices> {
        let before = match &rule {
            Some(rule) => self.rules.insert(name.clone(), rule.clone()),
            None => self.rules.remove(name),
        };
        if before.as_ref().map(|rule| &rule.spec) == rule.as_ref().map(|rule| &rule.spec) {
            return Vec::new();
        }
        let left = before.and_then(|rule| {
            self.count(&rule.spec, |taints, taint| {
                let Some(count) = taints.get_mut(taint) else { return };
                *count -= 1;
                if *count == 0 {
                    taints.remove(taint);
                }
            })
        });
        let added = rule.and_then(|rule| {
            self.count(&rule.spec, |taints, taint| *taints.entry(taint.clone()).or_default() += 1)
        });
        left.into_iter().chain(added).collect()
    }

    /// Counts a rule in or out. Returns the devices whose taints change for it.
    fn count(
        &mut self,
        spec: &DeviceTaintRuleSpec,
        change: impl FnOnce(&mut TaintCounts, &DeviceTaint),
    ) -> Option<TaintedDevices> {
        let DeviceTaintRuleSpec { device_selector, taint } = spec;
        let DeviceTaintSelector { driver, pool, device } = device_selector.as_ref()?;
        if !counts(taint) {
            return None;
        }
        let shared = |name: &Option<String>| name.as_deref().map(Arc::<str>::from);
        let (pools, device) = ((shared(driver), shared(pool)), shared(device));
        let rules = self.by_pools.entry(pools.clone()).or_default();
        let taints = match &device {
            Some(device) => rules.named.entry(device.clone()).or_default(),
            None => &mut rules.all,
        };
        let before = taints.len();
        change(taints, taint);
        let after = taints.len();
        if let Some(device) = device.as_ref().filter(|_| after == 0) {
            rules.named.remove(device);
        }
        if rules.all.is_empty() && rules.named.is_empty() {
            self.by_pools.remove(&pools);
        }
        let is_seen = before != after && before.min(after) <= MOST_RULED;
        is_seen.then_some(TaintedDevices { pools, device })
    }

    /// Those that are about devices of a pool.
    pub(in crate::dra) fn of_pool(&self, (driver, pool): &PoolId) -> PoolTaints<'_> {
        let selectors = [
            (Some(driver.clone()), Some(pool.clone())),
            (Some(driver.clone()), None),
            (None, Some(pool.clone())),
            (None, None),
        ];
        let rules: Vec<_> = selectors.iter().filter_map(|selector| self.by_pools.get(selector)).collect();
        let unnamed = together(rules.iter().map(|rules| &rules.all));
        PoolTaints { rules, unnamed }
    }
}

impl PoolTaints<'_> {
    /// What rules add to a device of the pool.
    pub(in crate::dra) fn of(&self, device: &str) -> RuledTaints {
        let named = self.rules.iter().filter_map(|rules| rules.named.get(device));
        let mut named = named.peekable();
        if named.peek().is_none() {
            return self.unnamed.clone();
        }
        together(self.rules.iter().map(|rules| &rules.all).chain(named))
    }
}

/// All of these taints, each once.
fn together<'a>(counted: impl Iterator<Item = &'a TaintCounts>) -> RuledTaints {
    let mut taints: Vec<DeviceTaint> =
        counted.flat_map(|taints| taints.keys().take(MOST_RULED + 1)).cloned().collect();
    taints.sort();
    taints.dedup();
    if taints.len() > MOST_RULED { RuledTaints::TooMany } else { RuledTaints::Known(taints.into()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::dra::{DevicePools, device::PoolDevice};

    /// A rule for the devices that this selector means, `null` included.
    fn rule(selector: &Value, key: &str, effect: &str) -> Arc<DeviceTaintRule> {
        let taint = json!({"key": key, "value": "v", "effect": effect});
        let spec = json!({"deviceSelector": selector, "taint": taint});
        Arc::new(serde_json::from_value(json!({"metadata": {"name": "r"}, "spec": spec})).unwrap())
    }

    /// A pool of these devices.
    fn publish(pools: &mut DevicePools, driver: &str, pool: &str, devices: &[&str]) {
        let devices: Vec<Value> = devices.iter().map(|device| json!({"name": device})).collect();
        let spec = json!({"driver": driver, "allNodes": true, "devices": devices,
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1}});
        let slice = json!({"metadata": {"name": format!("{driver}-{pool}")}, "spec": spec});
        pools.set(Arc::new(serde_json::from_value(slice).unwrap()));
    }

    const POOLS: [(&str, &str); 3] = [("a", "p"), ("a", "q"), ("b", "p")];

    /// By device, the keys of the taints that rules add; `None`: too many.
    fn tainted(pools: &DevicePools) -> BTreeMap<String, Option<Vec<String>>> {
        let ids = POOLS.map(|(driver, pool)| PoolId::from((driver.into(), pool.into())));
        let devices = ids.iter().flat_map(|pool| pools.devices_of(pool));
        let keys = |device: &PoolDevice| match &device.taints.ruled {
            RuledTaints::Known(taints) => Some(taints.iter().map(|taint| taint.key.clone()).collect()),
            RuledTaints::TooMany => None,
        };
        devices.map(|device| (device.id.to_string(), keys(device))).collect()
    }

    #[test]
    fn a_rule_taints_the_devices_that_it_selects_as_long_as_it_is_there() {
        let mut pools = DevicePools::default();
        for (driver, pool) in POOLS {
            publish(&mut pools, driver, pool, &["d0", "d1"]);
        }
        let mut with = |name: &str, rule: Option<Arc<DeviceTaintRule>>| {
            let touched = pools.set_rule(&name.into(), rule).len();
            let tainted = tainted(&pools).into_iter().filter(|(_, keys)| *keys != Some(Vec::new()));
            (touched, tainted.map(|(device, _)| device).collect::<Vec<_>>())
        };
        let all = vec!["a/p/d0", "a/p/d1", "a/q/d0", "a/q/d1", "b/p/d0", "b/p/d1"];
        let named = |devices: &[&str]| devices.iter().map(ToString::to_string).collect::<Vec<_>>();
        for (selector, touched, devices) in [
            (json!({}), 3, &*all),
            (json!({"driver": "a"}), 2, &all[..4]),
            (json!({"pool": "p"}), 2, &["a/p/d0", "a/p/d1", "b/p/d0", "b/p/d1"]),
            (json!({"driver": "a", "pool": "q", "device": "d1"}), 1, &["a/q/d1"]),
            (json!({"device": "d0"}), 3, &["a/p/d0", "a/q/d0", "b/p/d0"]),
            (json!({"driver": "c"}), 0, &[]),
            (json!({"driver": ""}), 0, &[]),
            (Value::Null, 0, &[]),
        ] {
            let found = with("one", Some(rule(&selector, "k", "NoSchedule")));
            assert_eq!(found, (touched, named(devices)), "{selector}");
            assert_eq!(with("one", None), (touched, Vec::new()), "{selector}");
        }
        assert_eq!(with("one", Some(rule(&json!({}), "k", "None"))), (0, Vec::new()), "it is only looked at");
        assert_eq!(with("one", Some(rule(&json!({}), "k", "Other"))), (0, Vec::new()), "it is not known");
        assert_eq!(with("one", Some(rule(&json!({}), "k", "NoExecute"))).0, 3);
        assert_eq!(with("two", Some(rule(&json!({}), "k", "NoExecute"))).0, 0, "the same taint once more");
        assert_eq!(with("one", None), (0, named(&all)), "the other rule is still there");
        assert_eq!(with("two", None), (3, Vec::new()));
    }

    #[test]
    fn many_rules_change_devices_a_bounded_number_of_times_and_keep_them_from_every_request() {
        let mut pools = DevicePools::default();
        publish(&mut pools, "a", "p", &["d0"]);
        let everything = serde_json::from_value(json!({"operator": "Exists"})).unwrap();
        let keeps_away = |pools: &DevicePools| {
            let pool = PoolId::from(("a".into(), "p".into()));
            pools.devices_of(&pool).next().unwrap().taints.keep_away(std::slice::from_ref(&everything))
        };
        let set = |pools: &mut DevicePools, at: usize, there: bool| {
            let rule = there.then(|| rule(&json!({}), &format!("k{at}"), "NoSchedule"));
            pools.set_rule(&format!("rule-{at}").as_str().into(), rule).len()
        };
        let changes: usize = (0..10_000).map(|at| set(&mut pools, at, true)).sum();
        assert_eq!(changes, MOST_RULED + 1);
        assert!(keeps_away(&pools), "whatever it tolerates");
        let changes: usize = (0..10_000 - MOST_RULED).map(|at| set(&mut pools, at, false)).sum();
        assert_eq!(changes, 1);
        assert!(!keeps_away(&pools), "as many as {MOST_RULED} can be tolerated");
    }

    /// Driver, pool and device of a rule, each by its place among the names; `None`: any. And the taint.
    type Ruled = (Option<usize>, Option<usize>, Option<usize>, usize);

    /// What happens to the rules `r0` to `r5`, or to the pools.
    #[derive(Clone, Debug)]
    enum Step {
        Rule(usize, Option<Ruled>),
        Publish(usize, usize),
        Withdraw(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let one = || proptest::option::of(0_usize..2);
        let rule = (one(), one(), one(), 0_usize..3);
        prop_oneof![
            4 => (0_usize..6, proptest::option::weighted(0.7, rule)).prop_map(|(at, rule)| Step::Rule(at, rule)),
            2 => (0_usize..3, 0_usize..3).prop_map(|(pool, devices)| Step::Publish(pool, devices)),
            1 => (0_usize..3).prop_map(Step::Withdraw),
        ]
    }

    proptest! {
        #[test]
        fn the_taints_are_those_of_all_rules_in_whichever_order_rules_and_slices_came(
            steps in proptest::collection::vec(step(), 1..40),
        ) {
            let (mut pools, mut known) = (DevicePools::default(), BTreeMap::new());
            let mut published: BTreeMap<usize, usize> = BTreeMap::new();
            let devices = ["d0", "d1"];
            for step in steps {
                match step {
                    Step::Rule(at, of) => {
                        let selector = |(driver, pool, device, _): Ruled| {
                            let mut selector = json!({});
                            for (field, chosen, names) in
                                [("driver", driver, ["a", "b"]), ("pool", pool, ["p", "q"]), ("device", device, devices)]
                            {
                                if let Some(chosen) = chosen {
                                    selector[field] = json!(names[chosen]);
                                }
                            }
                            selector
                        };
                        let rule = of.map(|of| rule(&selector(of), &format!("k{}", of.3), "NoSchedule"));
                        match &rule {
                            Some(rule) => known.insert(at, rule.clone()),
                            None => known.remove(&at),
                        };
                        pools.set_rule(&format!("r{at}").as_str().into(), rule);
                    }
                    Step::Publish(at, count) => {
                        let (driver, pool) = POOLS[at];
                        publish(&mut pools, driver, pool, &devices[..count.min(2)]);
                        published.insert(at, count.min(2));
                    }
                    Step::Withdraw(at) => {
                        let (driver, pool) = POOLS[at];
                        pools.remove(&format!("{driver}-{pool}"));
                        published.remove(&at);
                    }
                }
                let mut expected = BTreeMap::new();
                for (at, count) in &published {
                    let (driver, pool) = POOLS[*at];
                    for device in &devices[..*count] {
                        let is_about = |rule: &&Arc<DeviceTaintRule>| {
                            let selector = rule.spec.device_selector.as_ref().unwrap();
                            [(&selector.driver, driver), (&selector.pool, pool), (&selector.device, device)]
                                .iter()
                                .all(|(wanted, is)| wanted.as_ref().is_none_or(|wanted| wanted == is))
                        };
                        let mut keys: Vec<_> =
                            known.values().filter(is_about).map(|rule| rule.spec.taint.key.clone()).collect();
                        keys.sort();
                        keys.dedup();
                        expected.insert(format!("{driver}/{pool}/{device}"), Some(keys));
                    }
                }
                prop_assert_eq!(tainted(&pools), expected);
            }
        }
    }
}
