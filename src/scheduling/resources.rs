//! Amounts of the resources that Kubernetes itself accounts: cpu, memory, ephemeral storage, extended resources.
//!
//! Source of the arithmetic: `k8s.io/component-helpers/resource/helpers.go` (init containers, sidecars, pod-level requests, overhead).

use std::collections::BTreeMap;

use crate::object::{Container, Pod, Quantity, UnreadableQuantity};

/// How much of each resource: cpu in thousandths, the rest in units, rounded up.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct ResourceAmounts(BTreeMap<String, i64>);

/// The resources that a pod may ask for as a whole.
const POD_LEVEL: [&str; 2] = ["cpu", "memory"];

impl ResourceAmounts {
    /// Reads a map of quantities; a quantity that can't be read is an error with the resource's name.
    pub fn read<'a>(
        quantities: impl IntoIterator<Item = (&'a String, &'a Quantity)>,
    ) -> Result<Self, (String, UnreadableQuantity)> {
        let read = |(name, quantity): (&String, &Quantity)| {
            let amount = quantity.amount().map_err(|error| (name.clone(), error))?;
            let amount = if name == "cpu" { amount.millis_rounded_up() } else { amount.units_rounded_up() };
            Ok((name.clone(), amount))
        };
        quantities.into_iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// What a pod asks for, by its spec.
    pub fn of_pod(pod: &Pod) -> Result<Self, (String, UnreadableQuantity)> {
        let mut apps = Self::default();
        for container in &pod.spec.containers {
            apps.add(&Self::of_container(container)?);
        }
        let mut sidecars = Self::default();
        let mut init = Self::default();
        for container in &pod.spec.init_containers {
            let mut moment = Self::of_container(container)?;
            if container.is_sidecar() {
                sidecars.add(&moment);
                moment = sidecars.clone();
            } else {
                moment.add(&sidecars);
            }
            init.raise_to(&moment);
        }
        apps.add(&sidecars);
        apps.raise_to(&init);
        let whole = Self::read(pod.spec.resources.requests.iter().flatten())?;
        apps.0.extend(
            whole
                .0
                .into_iter()
                .filter(|(name, _)| POD_LEVEL.contains(&name.as_str()) || name.starts_with("hugepages-")),
        );
        apps.add(&Self::read(pod.spec.overhead.iter().flatten())?);
        apps.0.retain(|_, amount| *amount != 0);
        Ok(apps)
    }

    /// A container's requests; a limit without a request is one, as the API server defaults it.
    fn of_container(container: &Container) -> Result<Self, (String, UnreadableQuantity)> {
        let resources = &container.resources;
        let limits = resources.limits.iter().flatten();
        Self::read(limits.chain(resources.requests.iter().flatten()))
    }

    /// How much of this resource.
    pub fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Whether this resource is named at all.
    pub fn names(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Every resource, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// Adds each resource of the other.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let total = self.0.entry(name.clone()).or_default();
            *total = total.saturating_add(*amount);
        }
    }

    fn raise_to(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let most = self.0.entry(name.clone()).or_default();
            *most = (*most).max(*amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_pod(spec: &str) -> ResourceAmounts {
        let pod = serde_json::from_str(&format!("{{\"spec\":{spec}}}")).unwrap();
        ResourceAmounts::of_pod(&pod).unwrap()
    }

    #[test]
    fn init_containers_and_sidecars_count_as_kubernetes_counts_them() {
        let amounts = of_pod(
            r#"{"containers":[{"resources":{"requests":{"cpu":"500m"},"limits":{"cpu":"2","memory":"1Gi"}}}],
                "initContainers":[
                  {"resources":{"requests":{"cpu":"3"}}},
                  {"restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},
                  {"resources":{"requests":{"cpu":"2500m"}}}],
                "overhead":{"cpu":"250m"}}"#,
        );
        assert_eq!((amounts.get("cpu"), amounts.get("memory")), (3750, 1 << 30));
    }

    #[test]
    fn a_request_for_the_whole_pod_replaces_the_sum() {
        let amounts = of_pod(
            r#"{"resources":{"requests":{"cpu":"1"}},"containers":[{"resources":{"requests":{"cpu":"4","a.b/c":"2"}}}]}"#,
        );
        assert_eq!((amounts.get("cpu"), amounts.get("a.b/c")), (1000, 2));
    }
}
