//! Whether kubelet has room for a pod: its own fit check over the pods that it runs.
//!
//! It must not look at cards: kubelet counts resources only.

use std::collections::BTreeMap;

use super::view::{Container, Pod, milli};

/// What the pods of one node use, by uid; amounts in thousandths.
#[derive(Debug, Default)]
pub(super) struct Used {
    pods: BTreeMap<String, BTreeMap<String, i128>>,
}

/// Why a pod has no room, in kubelet's words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lack {
    pub(super) reason: String,
    pub(super) message: String,
}

impl Used {
    /// Takes the room, or says what is missing. A resource that the node does not have is not counted, as kubelet
    /// leaves out what only the cluster knows.
    pub(super) fn admit(&mut self, pod: &Pod, allocatable: &BTreeMap<String, String>) -> Result<(), Lack> {
        let requests = requests(pod);
        for (resource, capacity) in allocatable {
            let Some(&requested) = requests.get(resource) else {
                continue;
            };
            let used: i128 = self.pods.values().filter_map(|pod| pod.get(resource)).sum();
            let capacity = milli(&capacity.as_str().into()).unwrap_or_default();
            if used + requested > capacity {
                let (requested, used, capacity) = (requested / 1000, used / 1000, capacity / 1000);
                return Err(Lack {
                    reason: format!("OutOf{resource}"),
                    message: format!(
                        "Pod was rejected: Node didn't have enough resource: {resource}, \
                         requested: {requested}, used: {used}, capacity: {capacity}"
                    ),
                });
            }
        }
        self.keep(pod);
        Ok(())
    }

    /// Counts a pod that runs already.
    pub(super) fn keep(&mut self, pod: &Pod) {
        self.pods.insert(pod.uid().to_owned(), requests(pod));
    }

    pub(super) fn release(&mut self, uid: &str) {
        self.pods.remove(uid);
    }
}

/// The greater of what all app containers and what any init container needs, sidecars beside both.
fn requests(pod: &Pod) -> BTreeMap<String, i128> {
    let (mut running, mut peak) = (BTreeMap::new(), BTreeMap::new());
    for container in &pod.spec.init_containers {
        let mut now = running.clone();
        add(&mut now, container);
        raise(&mut peak, &now);
        if container.is_sidecar() {
            running = now;
        }
    }
    pod.spec.containers.iter().for_each(|container| add(&mut running, container));
    raise(&mut peak, &running);
    peak.insert("pods".to_owned(), 1000);
    peak
}

fn add(to: &mut BTreeMap<String, i128>, container: &Container) {
    let resources = &container.resources;
    let only_limits = resources.limits.iter().filter(|(name, _)| !resources.requests.contains_key(*name));
    for (name, value) in resources.requests.iter().chain(only_limits) {
        *to.entry(name.clone()).or_default() += milli(value).unwrap_or_default();
    }
}

fn raise(peak: &mut BTreeMap<String, i128>, now: &BTreeMap<String, i128>) {
    for (name, &amount) in now {
        let top = peak.entry(name.clone()).or_default();
        *top = amount.max(*top);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(uid: &str, spec: &serde_json::Value) -> Pod {
        serde_json::from_value(serde_json::json!({"metadata": {"uid": uid}, "spec": spec})).unwrap()
    }

    fn container(cpu: &str) -> serde_json::Value {
        serde_json::json!({"name": "c", "resources": {"requests": {"cpu": cpu, "example.com/unknown": "9"}}})
    }

    #[test]
    fn the_second_pod_lacks_what_the_first_took_until_it_goes() {
        let allocatable = BTreeMap::from([("cpu".to_owned(), "2".to_owned())]);
        let mut used = Used::default();
        let first = pod("a", &serde_json::json!({"containers": [container("1500m")]}));
        let second = pod("b", &serde_json::json!({"containers": [container("1")]}));
        assert_eq!(used.admit(&first, &allocatable), Ok(()));
        assert_eq!(used.admit(&second, &allocatable).unwrap_err().reason, "OutOfcpu");
        used.release("a");
        assert_eq!(used.admit(&second, &allocatable), Ok(()));
    }

    #[test]
    fn init_containers_count_by_their_peak() {
        let spec = serde_json::json!({
            "initContainers": [container("3"), container("2")], "containers": [container("1"), container("1")],
        });
        assert_eq!(requests(&pod("a", &spec))["cpu"], 3000);
    }
}
