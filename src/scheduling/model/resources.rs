//! Amounts of the resources that Kubernetes itself accounts: cpu, memory, ephemeral storage, extended resources.
//!
//! Source of the arithmetic: v1.36 and v1.37 `k8s.io/component-helpers/resource/helpers.go` (init containers, sidecars, pod-level requests,
//! overhead, pods resized in place).

mod declared;
mod resized;

use std::{collections::BTreeMap, iter};

use compact_str::CompactString;

use super::kube_scheduler::KubeScheduler;
use crate::object::{Amount, Container, Pod, Quantity, UnreadableQuantity, pod::NodeAllocatableClaimStatus};

pub use declared::{DeclaredResources, WholePodBound};

/// How much of each resource: cpu in thousandths, the rest in units. A sum is exact and rounded up once.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct ResourceAmounts {
    /// Of [`ASKED_MOST`], where it is named: these are not looked for among the others.
    asked_most: [Option<i64>; ASKED_MOST.len()],
    /// In order of name: pods have few, and there are many pods.
    others: Vec<(CompactString, i64)>,
    scored: Scored,
}

/// The resources for which nodes are asked most, in order of name.
const ASKED_MOST: [&str; 2] = ["cpu", "memory"];

/// cpu and memory as they count where nodes are compared by what is requested of them: a container that requests none of one counts with
/// [`UNSAID`], or else a node would look empty however many such containers run there.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
struct Scored {
    cpu: i64,
    memory: i64,
}

/// What a container counts with where nodes are compared if it does not say (v1.36 `pkg/scheduler/util/pod_resources.go`).
const UNSAID: [(&str, &str); 2] = [("cpu", "100m"), ("memory", "200Mi")];

/// [`UNSAID`], as amounts.
fn unsaid() -> Result<Amounts, Trouble> {
    let unsaid = UNSAID.map(|(name, quantity)| (name.to_owned(), Quantity::from(quantity)));
    amounts(unsaid.iter().map(|(name, quantity)| (name, quantity)))
}

/// Exact amounts.
type Amounts = BTreeMap<CompactString, Amount>;

/// A resource whose quantity can't be read, and why.
type Trouble = (String, UnreadableQuantity);

/// What the names of huge pages begin with.
const HUGE_PAGES: &str = "hugepages-";

/// Whether a pod may request the resource as a whole.
fn is_of_whole_pod(name: &str) -> bool {
    ["cpu", "memory"].contains(&name) || name.starts_with(HUGE_PAGES)
}

impl ResourceAmounts {
    /// Reads a map of quantities; a quantity that can't be read is an error with the resource's name.
    pub fn read<'a>(
        quantities: impl IntoIterator<Item = (&'a String, &'a Quantity)>,
    ) -> Result<Self, Trouble> {
        amounts(quantities).map(Self::rounded)
    }

    /// What a pod requests: by its spec, and by what its node has set aside for it where it was resized in place, as this release counts that.
    pub fn of_pod(pod: &Pod, followed: KubeScheduler) -> Result<Self, Trouble> {
        let requested = |unsaid: &Amounts| requested(pod, followed, unsaid);
        Ok(Self::of_requests(requested(&Amounts::new())?, requested(&unsaid()?)?))
    }

    /// What is requested, and the same as it counts where nodes are compared.
    fn of_requests(requested: Amounts, scored: Amounts) -> Self {
        let mut requests = Self::rounded(requested);
        requests.asked_most = requests.asked_most.map(|amount| amount.filter(|amount| *amount != 0));
        requests.others.retain(|(_, amount)| *amount != 0);
        requests.others.shrink_to_fit();
        requests.scored = Self::rounded(scored).scored;
        requests
    }

    /// What claims take of a node's own resources, by what a pod's status says of it.
    pub fn of_claims(statuses: &[NodeAllocatableClaimStatus]) -> Result<Self, Trouble> {
        of_claims(statuses).map(Self::rounded)
    }

    fn rounded(amounts: Amounts) -> Self {
        let round = |(name, amount): (CompactString, Amount)| {
            let rounded = if name == "cpu" { amount.millis_rounded_up() } else { amount.units_rounded_up() };
            (name, rounded)
        };
        let mut rounded = Self::default();
        for (name, amount) in amounts.into_iter().map(round) {
            match asked_most(&name) {
                Some(place) => rounded.asked_most[place] = Some(amount),
                None => rounded.others.push((name, amount)),
            }
        }
        rounded.others.shrink_to_fit();
        rounded.scored = Scored { cpu: rounded.get("cpu"), memory: rounded.get("memory") };
        rounded
    }

    /// Where another resource than [`ASKED_MOST`] stands, or would.
    fn place(&self, name: &str) -> Result<usize, usize> {
        self.others.binary_search_by(|(known, _)| known.as_str().cmp(name))
    }

    /// How much of this resource, where it is named.
    fn named(&self, name: &str) -> Option<i64> {
        match asked_most(name) {
            Some(place) => self.asked_most[place],
            None => self.place(name).ok().map(|at| self.others[at].1),
        }
    }

    /// How much of this resource.
    pub fn get(&self, name: &str) -> i64 {
        self.named(name).unwrap_or(0)
    }

    /// How much of this resource counts where nodes are compared: of cpu and memory a container that requests none counts with 100m and 200 MiB.
    pub fn scored(&self, name: &str) -> i64 {
        match name {
            "cpu" => self.scored.cpu,
            "memory" => self.scored.memory,
            _ => self.get(name),
        }
    }

    /// Whether this resource is named at all.
    pub fn names(&self, name: &str) -> bool {
        self.named(name).is_some()
    }

    /// Whether of each resource no more is asked than is left of this capacity once so much of it is requested.
    pub fn fits(&self, capacity: &Self, requested: &Self) -> bool {
        let fits = |asked: i64, capacity: i64, requested: i64| {
            asked <= 0 || asked <= capacity.saturating_sub(requested)
        };
        let amount = |of: &Self, place: usize| of.asked_most[place].unwrap_or(0);
        (0..ASKED_MOST.len()).all(|at| fits(amount(self, at), amount(capacity, at), amount(requested, at)))
            && self.others.iter().all(|(name, asked)| fits(*asked, capacity.get(name), requested.get(name)))
    }

    /// Every resource, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        let own = |at: usize| self.asked_most[at].map(|amount| (ASKED_MOST[at], amount));
        let others = |from: usize, to: usize| {
            self.others[from..to].iter().map(|(name, amount)| (name.as_str(), *amount))
        };
        let [cpu, memory] =
            ASKED_MOST.map(|name| self.others.partition_point(|(other, _)| other.as_str() < name));
        let to_cpu = others(0, cpu).chain(own(0));
        let to_memory = to_cpu.chain(others(cpu, memory)).chain(own(1));
        to_memory.chain(others(memory, self.others.len()))
    }

    /// What is left of these once the other is taken, by the resources of these; nothing where more is taken than there is.
    #[must_use]
    pub fn left(&self, other: &Self) -> Self {
        let rest = |of: i64, taken: i64| of.saturating_sub(taken).max(0);
        let mut left = self.clone();
        for (name, left) in iter::zip(ASKED_MOST, &mut left.asked_most) {
            *left = left.map(|amount| rest(amount, other.get(name)));
        }
        for (name, left) in &mut left.others {
            *left = rest(*left, other.get(name));
        }
        left.scored = Scored {
            cpu: rest(self.scored.cpu, other.scored.cpu),
            memory: rest(self.scored.memory, other.scored.memory),
        };
        left
    }

    /// The amounts without those of the resources whose names match.
    #[must_use]
    pub fn without(mut self, left_out: impl Fn(&str) -> bool) -> Self {
        for (name, amount) in iter::zip(ASKED_MOST, &mut self.asked_most) {
            *amount = amount.filter(|_| !left_out(name));
        }
        self.others.retain(|(name, _)| !left_out(name));
        self
    }

    /// Adds each resource of the other.
    pub fn add(&mut self, other: &Self) {
        self.scored.cpu = self.scored.cpu.saturating_add(other.scored.cpu);
        self.scored.memory = self.scored.memory.saturating_add(other.scored.memory);
        for (sum, amount) in iter::zip(&mut self.asked_most, other.asked_most) {
            *sum = amount.map_or(*sum, |amount| Some(sum.unwrap_or(0).saturating_add(amount)));
        }
        for (name, amount) in &other.others {
            match self.place(name) {
                Ok(at) => self.others[at].1 = self.others[at].1.saturating_add(*amount),
                Err(at) => self.others.insert(at, (name.clone(), *amount)),
            }
        }
    }
}

/// The place of a resource among [`ASKED_MOST`].
fn asked_most(name: &str) -> Option<usize> {
    match name {
        "cpu" => Some(0),
        "memory" => Some(1),
        _ => None,
    }
}

/// What a pod requests; `unsaid` is what a container requests of a resource of which it says nothing.
fn requested(pod: &Pod, followed: KubeScheduler, unsaid: &Amounts) -> Result<Amounts, Trouble> {
    let mut requests = resized::of_containers(pod, followed, unsaid)?;
    requests.extend(resized::of_whole_pod(pod, followed)?);
    add(&mut requests, amounts(pod.spec.overhead.iter().flatten())?);
    Ok(requests)
}

/// What claims take of a node's own resources, by what a pod's status says of it: of a resource that each container takes, as often as containers use
/// the claim.
fn of_claims(statuses: &[NodeAllocatableClaimStatus]) -> Result<Amounts, Trouble> {
    let mut taken = Amounts::new();
    let mut take = |name: &str, quantity: Option<&Quantity>, times: usize| {
        let Some(quantity) = quantity else { return Ok(()) };
        let amount = quantity.amount().map_err(|error| (name.to_owned(), error))?;
        let times = Amount::units(i64::try_from(times).unwrap_or(i64::MAX));
        let sum = taken.entry(name.into()).or_default();
        *sum = sum.plus(amount.times(times));
        Ok(())
    };
    for status in statuses {
        for mapped in &status.mapping {
            take(&mapped.name, mapped.quantity.as_ref(), 1)?;
        }
        for overhead in &status.overhead {
            take(&overhead.name, overhead.per_pod.as_ref(), 1)?;
            take(&overhead.name, overhead.per_container.as_ref(), status.containers.len())?;
        }
    }
    Ok(taken)
}

/// What claims take of the node of a pod that is bound there. While a pod waits, what its status says of it is of an earlier attempt.
fn of_bound_claims(pod: &Pod) -> Result<Amounts, Trouble> {
    let is_bound = pod.spec.node_name.as_ref().is_some_and(|node| !node.is_empty());
    let statuses = &pod.status.node_allocatable_resource_claim_statuses;
    if is_bound { of_claims(statuses) } else { Ok(Amounts::new()) }
}

/// What the containers request together at any moment of the pod's life, where `of` says what each requests.
fn of_containers(
    pod: &Pod,
    unsaid: &Amounts,
    of: impl Fn(&Container) -> Result<Amounts, Trouble>,
) -> Result<Amounts, Trouble> {
    let requests = |container: &Container| {
        let mut requests = of(container)?;
        for (name, amount) in unsaid {
            requests.entry(name.clone()).or_insert(*amount);
        }
        Ok(requests)
    };
    let mut running = Amounts::new();
    for container in &pod.spec.containers {
        add(&mut running, requests(container)?);
    }
    let mut sidecars = Amounts::new();
    let mut peak = Amounts::new();
    for container in &pod.spec.init_containers {
        let mut moment = requests(container)?;
        if container.is_sidecar() {
            add(&mut sidecars, moment);
            moment = sidecars.clone();
        } else {
            add(&mut moment, sidecars.clone());
        }
        raise(&mut peak, moment);
    }
    add(&mut running, sidecars);
    raise(&mut running, peak);
    Ok(running)
}

/// A container's requests by its spec; a limit without a request is one, as the API server defaults it.
fn of_spec(container: &Container) -> Result<Amounts, Trouble> {
    let limits = container.resources.limits.iter().flatten();
    amounts(limits.chain(container.resources.requests.iter().flatten()))
}

fn amounts<'a>(quantities: impl IntoIterator<Item = (&'a String, &'a Quantity)>) -> Result<Amounts, Trouble> {
    let read = |(name, quantity): (&String, &Quantity)| {
        quantity.amount().map(|amount| (name.as_str().into(), amount)).map_err(|error| (name.clone(), error))
    };
    quantities.into_iter().map(read).collect()
}

fn add(total: &mut Amounts, more: Amounts) {
    for (name, amount) in more {
        let sum = total.entry(name).or_default();
        *sum = sum.plus(amount);
    }
}

fn raise(most: &mut Amounts, to: Amounts) {
    for (name, amount) in to {
        let most = most.entry(name).or_insert(amount);
        *most = (*most).max(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pod: &str) -> ResourceAmounts {
        of_release(pod, KubeScheduler::V1_36)
    }

    fn of_release(pod: &str, followed: KubeScheduler) -> ResourceAmounts {
        ResourceAmounts::of_pod(&serde_json::from_str(pod).unwrap(), followed).unwrap()
    }

    fn of_pod(spec: &str) -> ResourceAmounts {
        of(&format!("{{\"spec\":{spec}}}"))
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
    fn resources_come_in_order_of_name_and_are_added_and_taken_one_by_one() {
        let amounts = |amounts: &[(&str, i64)]| {
            let amounts = amounts.iter().map(|(name, amount)| ((*name).into(), Amount::units(*amount)));
            ResourceAmounts::rounded(amounts.collect())
        };
        let all = [("a", 1), ("cpu", 2), ("d", 3), ("memory", 4), ("z", 5)];
        let named = |amounts: &ResourceAmounts| amounts.iter().map(|(_, amount)| amount).collect::<Vec<_>>();
        assert_eq!(named(&amounts(&all)), [1, 2000, 3, 4, 5]);
        let mut some = amounts(&[("memory", 1), ("d", 1), ("x", 7)]);
        assert_eq!(some.iter().collect::<Vec<_>>(), [("d", 1), ("memory", 1), ("x", 7)]);
        assert_eq!(named(&amounts(&all).left(&some)), [1, 2000, 2, 3, 5]);
        some.add(&amounts(&all));
        assert_eq!(named(&some), [1, 2000, 4, 5, 7, 5]);
        assert_eq!(named(&some.without(|name| name < "memory")), [5, 7, 5]);
        assert!(!amounts(&[("a", 0)]).names("cpu") && amounts(&[("cpu", 0)]).names("cpu"));
    }

    #[test]
    fn where_nodes_are_compared_a_container_counts_that_requests_nothing() {
        let amounts = of_pod(
            r#"{"containers":[{},{"resources":{"requests":{"cpu":"0","memory":"1Mi"}}}],
                "initContainers":[{"restartPolicy":"Always"}],"overhead":{"cpu":"50m"}}"#,
        );
        assert_eq!((amounts.get("cpu"), amounts.get("memory")), (50, 1 << 20));
        assert_eq!((amounts.scored("cpu"), amounts.scored("memory")), (250, 401 << 20));
        let mut two = amounts.clone();
        two.add(&amounts);
        assert_eq!((two.scored("cpu"), two.left(&amounts).scored("cpu")), (500, 250));
        let whole = of_pod(r#"{"containers":[{},{}],"resources":{"requests":{"cpu":"1"}}}"#);
        assert_eq!((whole.scored("cpu"), whole.scored("memory")), (1000, 400 << 20));
    }

    #[test]
    fn a_request_for_the_whole_pod_replaces_the_sum() {
        let amounts = of_pod(
            r#"{"resources":{"requests":{"cpu":"1"}},"containers":[{"resources":{"requests":{"cpu":"4","a.b/c":"2"}}}]}"#,
        );
        assert_eq!((amounts.get("cpu"), amounts.get("a.b/c")), (1000, 2));
    }

    #[test]
    fn fractions_are_summed_before_they_are_rounded() {
        let amounts = of_pod(
            r#"{"containers":[{"resources":{"requests":{"cpu":"100500u","memory":"100m"}}},
                              {"resources":{"requests":{"cpu":"100500u","memory":"100m"}}}]}"#,
        );
        assert_eq!((amounts.get("cpu"), amounts.get("memory")), (201, 1));
    }

    #[test]
    fn a_resized_pod_counts_with_the_most_of_wanted_running_and_allocated() {
        let pod = |reason: &str| {
            of(&format!(
                r#"{{"spec":{{"containers":[{{"name":"a","resources":{{"requests":{{"cpu":"4"}}}}}}]}},
                    "status":{{"conditions":[{{"type":"PodResizePending","status":"True","reason":"{reason}"}}],
                      "containerStatuses":[{{"name":"a","resources":{{"requests":{{"cpu":"2"}}}},
                        "allocatedResources":{{"cpu":"3"}}}}]}}}}"#
            ))
        };
        assert_eq!(pod("Deferred").get("cpu"), 4000);
        assert_eq!(pod("Infeasible").get("cpu"), 3000);
    }

    #[test]
    fn an_init_container_that_ends_counts_by_its_spec() {
        let pod = |policy: &str| {
            of(&format!(
                r#"{{"spec":{{"initContainers":[{{"name":"i"{policy},"resources":{{"requests":{{"cpu":"1"}}}}}}]}},
                    "status":{{"initContainerStatuses":[{{"name":"i","resources":{{"requests":{{"cpu":"2"}}}}}}]}}}}"#
            ))
        };
        assert_eq!(pod("").get("cpu"), 1000);
        assert_eq!(pod(r#","restartPolicy":"Always""#).get("cpu"), 2000);
    }

    #[test]
    fn a_pod_that_was_resized_as_a_whole_counts_with_the_most() {
        let pod = |status: &str| {
            of(&format!(r#"{{"spec":{{"resources":{{"requests":{{"cpu":"1"}}}}}},"status":{status}}}"#))
                .get("cpu")
        };
        assert_eq!(pod("{}"), 1000);
        assert_eq!(pod(r#"{"resources":{"requests":{"cpu":"2"}},"allocatedResources":{"cpu":"3"}}"#), 3000);
        // What the node has set aside counts only once it says what is running.
        assert_eq!(pod(r#"{"allocatedResources":{"cpu":"3"}}"#), 1000);
    }

    #[test]
    fn from_1_37_on_the_most_of_all_containers_together_counts() {
        let of = |status: &str| {
            let pod = format!(
                r#"{{"spec":{{"containers":[{{"name":"a","resources":{{"requests":{{"cpu":"1"}}}}}},
                    {{"name":"b","resources":{{"requests":{{"cpu":"2"}}}}}}]}},"status":{status}}}"#
            );
            [KubeScheduler::V1_36, KubeScheduler::V1_37].map(|one| of_release(&pod, one).get("cpu"))
        };
        // One shrinks while the other grows.
        let grows = r#"{"name":"a","resources":{"requests":{"cpu":"3"}},"allocatedResources":{"cpu":"3"}}"#;
        let shrinks = r#"{"name":"b","resources":{"requests":{"cpu":"1"}},"allocatedResources":{"cpu":"1"}}"#;
        assert_eq!(of(&format!(r#"{{"containerStatuses":[{grows},{shrinks}]}}"#)), [5000, 4000]);
        assert_eq!(
            of(r#"{"containerStatuses":[{"name":"a","allocatedResources":{"cpu":"3"}}]}"#),
            [3000, 5000],
            "what is set aside counts although nothing is said of what runs"
        );
        let infeasible = r#""conditions":[{"type":"PodResizePending","reason":"Infeasible"}]"#;
        assert_eq!(
            of(&format!("{{{infeasible}}}")),
            [3000, 0],
            "as upstream has it where a status is missing"
        );
        let whole = r#""resources":{"requests":{"cpu":"4"}},"allocatedResources":{"cpu":"6"}"#;
        assert_eq!(of(&format!("{{{whole}}}")), [3000, 6000], "the node states the sums");
        assert_eq!(of(&format!("{{{infeasible},{whole}}}")), [3000, 6000]);
    }
}
