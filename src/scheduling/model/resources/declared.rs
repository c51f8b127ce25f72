//! What a pod with claims of devices declares of resources, exactly: what its devices take of the node's own is added to it before a sum is rounded.
//!
//! Source: v1.37 `pkg/scheduler/framework/plugins/dynamicresources/nodeallocatabledynamicresources.go`,
//! `getPodNodeAllocatableResourceFootprint` and `validatePodLevelResourcesCoverDRA`.

use compact_str::CompactString;

use super::{
    Amounts, HUGE_PAGES, ResourceAmounts, Trouble, add, amounts, is_of_whole_pod, of_claims, of_containers,
    of_spec, unsaid,
};
use crate::object::{
    Amount, Container, Pod,
    pod::{NodeAllocatableClaimStatus, NodeAllocatableMapped, NodeAllocatableOverhead},
};

/// What a pod declares of resources.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct DeclaredResources {
    /// What its containers request together.
    requests: Amounts,
    /// The same as it counts where nodes are compared.
    scored: Amounts,
    /// What it requests as a whole, in place of the sum.
    whole: Amounts,
    /// What the runtime class adds.
    overhead: Amounts,
    /// Its limits as a whole.
    whole_limits: Amounts,
    /// The limits of its containers together.
    limits: Amounts,
    /// Init containers, then the others.
    containers: Vec<DeclaredContainer>,
}

/// What one container declares.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct DeclaredContainer {
    name: CompactString,
    /// The entries of the pod's claims that it uses.
    entries: Vec<CompactString>,
    /// Its limits; none are kept of an init container.
    limits: Amounts,
}

/// What bounds a pod as a whole, and is less than its containers and its claims take together.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum WholePodBound {
    /// Its request.
    Request,
    /// Its limit.
    Limit,
}

impl DeclaredResources {
    /// What a pod declares; `None`: it has no claims. A quantity that can't be read is an error with the resource's name.
    pub fn of_pod(pod: &Pod) -> Result<Option<Self>, Trouble> {
        if pod.spec.resource_claims.is_empty() {
            return Ok(None);
        }
        let nothing = Amounts::new();
        let limits = |container: &Container| amounts(container.resources.limits.iter().flatten());
        let init = pod.spec.init_containers.iter();
        let init = init.map(|container| Ok(DeclaredContainer::of(container, Amounts::new())));
        let apps = pod.spec.containers.iter();
        let apps = apps.map(|container| Ok(DeclaredContainer::of(container, limits(container)?)));
        let mut whole = amounts(pod.spec.resources.requests.iter().flatten())?;
        whole.retain(|name, _| is_of_whole_pod(name));
        Ok(Some(Self {
            requests: of_containers(pod, &nothing, of_spec)?,
            scored: of_containers(pod, &unsaid()?, of_spec)?,
            whole,
            overhead: amounts(pod.spec.overhead.iter().flatten())?,
            whole_limits: amounts(pod.spec.resources.limits.iter().flatten())?,
            limits: of_containers(pod, &nothing, limits)?,
            containers: init.chain(apps).collect::<Result<_, Trouble>>()?,
        }))
    }

    /// The containers that use a claim by one of these entries, each once.
    pub fn users<'a>(&'a self, entries: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
        let uses = |container: &&DeclaredContainer| {
            container.entries.iter().any(|entry| entries.contains(&entry.as_str()))
        };
        self.containers.iter().filter(uses).map(|container| container.name.as_str())
    }

    /// What the pod requests of a node where its claims take this much: what it requests as a whole replaces both.
    pub fn beside(&self, statuses: &[NodeAllocatableClaimStatus]) -> Result<ResourceAmounts, Trouble> {
        let taken = of_claims(statuses)?;
        let sum = |of_containers: &Amounts| {
            let mut sum = of_containers.clone();
            add(&mut sum, taken.clone());
            sum.extend(self.whole.clone());
            add(&mut sum, self.overhead.clone());
            sum
        };
        Ok(ResourceAmounts::of_requests(sum(&self.requests), sum(&self.scored)))
    }

    /// What bounds the pod as a whole and is less than its containers and its claims take, with the resource; `None`: nothing is.
    pub fn exceeded(
        &self,
        statuses: &[NodeAllocatableClaimStatus],
    ) -> Result<Option<(CompactString, WholePodBound)>, Trouble> {
        let taken = of_claims(statuses)?;
        let with = |of: &Amounts, taken: &Amounts, name: &str| {
            let amount = |of: &Amounts| of.get(name).copied().unwrap_or_default();
            amount(of).plus(amount(taken))
        };
        let mut requests = self.whole.iter();
        let request = requests.find(|(name, whole)| with(&self.requests, &taken, name) > **whole);
        if let Some((name, _)) = request {
            return Ok(Some((name.clone(), WholePodBound::Request)));
        }
        for (name, whole) in &self.whole_limits {
            let exceeded = if name.starts_with(HUGE_PAGES) {
                with(&self.limits, &taken, name) > *whole
            } else {
                self.containers.iter().try_fold(false, |exceeded, container| {
                    let limit = container.limits.get(name).copied();
                    let Some(limit) = limit.filter(|_| !exceeded) else { return Ok(exceeded) };
                    Ok(limit.plus(of_container(statuses, &container.name, name)?) > *whole)
                })?
            };
            if exceeded {
                return Ok(Some((name.clone(), WholePodBound::Limit)));
            }
        }
        Ok(None)
    }
}

impl DeclaredContainer {
    fn of(container: &Container, limits: Amounts) -> Self {
        let entries = container.resources.claims.iter().map(|claim| claim.name.clone()).collect();
        Self { name: container.name.clone(), entries, limits }
    }
}

/// What claims let one container use of a resource: all that the claims which it uses take for the pod, and for one container.
fn of_container(
    statuses: &[NodeAllocatableClaimStatus],
    container: &str,
    resource: &str,
) -> Result<Amount, Trouble> {
    let mut used = Amount::default();
    let used_by =
        |status: &&NodeAllocatableClaimStatus| status.containers.iter().any(|name| name == container);
    for status in statuses.iter().filter(used_by) {
        let mapped = status.mapping.iter().filter(|mapped: &&NodeAllocatableMapped| mapped.name == resource);
        let mapped = mapped.filter_map(|mapped| mapped.quantity.as_ref());
        let besides = status.overhead.iter().filter(|one: &&NodeAllocatableOverhead| one.name == resource);
        let besides = besides.flat_map(|one| one.per_pod.iter().chain(&one.per_container));
        for quantity in mapped.chain(besides) {
            used = used.plus(quantity.amount().map_err(|error| (resource.to_owned(), error))?);
        }
    }
    Ok(used)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(spec: Value) -> DeclaredResources {
        let mut spec = spec;
        spec["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": "c"}]);
        let pod = serde_json::from_value(json!({"spec": spec})).unwrap();
        DeclaredResources::of_pod(&pod).unwrap().unwrap()
    }

    fn statuses(of: Value) -> Vec<NodeAllocatableClaimStatus> {
        serde_json::from_value(of).unwrap()
    }

    /// A claim that takes so much cpu, and 10 MiB for each of two containers.
    fn taken(cpu: &str) -> Vec<NodeAllocatableClaimStatus> {
        statuses(json!([{"resourceClaimName": "c", "containers": ["a", "b"],
            "mapping": [{"name": "cpu", "quantity": cpu}],
            "overhead": [{"name": "memory", "perPod": "1Mi", "perContainer": "10Mi"}]}]))
    }

    #[test]
    fn what_claims_take_is_added_before_the_sum_is_rounded() {
        let declared =
            pod(json!({"containers": [{"name": "a", "resources": {"requests": {"cpu": "100500u"}}}],
            "overhead": {"cpu": "1m"}}));
        let requested = declared.beside(&taken("500u")).unwrap();
        assert_eq!((requested.get("cpu"), requested.get("memory")), (102, 21 << 20));
        assert_eq!(
            requested.scored("memory"),
            221 << 20,
            "a container that requests none counts with 200 MiB"
        );
    }

    #[test]
    fn what_a_pod_requests_as_a_whole_covers_its_claims() {
        let declared = pod(json!({"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}],
            "resources": {"requests": {"cpu": "2"}}}));
        assert_eq!(declared.beside(&taken("1")).unwrap().get("cpu"), 2000);
        assert_eq!(declared.exceeded(&taken("1")).unwrap(), None);
        let more = declared.exceeded(&taken("1001m")).unwrap();
        assert_eq!(more, Some(("cpu".into(), WholePodBound::Request)));
    }

    #[test]
    fn the_limit_of_the_pod_covers_each_container_with_its_claims_and_the_sum_of_huge_pages() {
        let limits = |pod: &str, container: &str| {
            let container = |name: &str| json!({"name": name, "resources": {"limits": {"cpu": container}}});
            super::tests::pod(json!({"containers": [container("a"), container("other")],
                "resources": {"limits": {"cpu": pod, "hugepages-2Mi": "8Mi"}}}))
        };
        assert_eq!(limits("3", "2").exceeded(&taken("1")).unwrap(), None);
        let more = limits("3", "2").exceeded(&taken("1100m")).unwrap();
        assert_eq!(more, Some(("cpu".into(), WholePodBound::Limit)));
        let pages = |amount: &str| {
            statuses(
                json!([{"resourceClaimName": "c", "overhead": [{"name": "hugepages-2Mi", "perPod": amount}]}]),
            )
        };
        assert_eq!(limits("3", "2").exceeded(&pages("8Mi")).unwrap(), None);
        let more = limits("3", "2").exceeded(&pages("10Mi")).unwrap();
        assert_eq!(more, Some(("hugepages-2Mi".into(), WholePodBound::Limit)));
    }

    #[test]
    fn a_container_uses_a_claim_once_by_whichever_entry() {
        let uses = |name: &str, entries: &[&str]| {
            let claims: Vec<_> = entries.iter().map(|entry| json!({"name": entry})).collect();
            json!({"name": name, "resources": {"claims": claims}})
        };
        let declared = pod(json!({"initContainers": [uses("i", &["x"])],
            "containers": [uses("a", &["x", "y", "x"]), uses("b", &["z"])]}));
        assert_eq!(declared.users(&["x", "y"]).collect::<Vec<_>>(), ["i", "a"]);
    }
}
