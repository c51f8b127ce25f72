//! Whether a pod can be started with the devices that it was given: those that the node has, each at most once, never more than is there.
//!
//! It must not choose devices: it reads what the scheduler wrote, as koordlet does.

use std::collections::{BTreeMap, BTreeSet};

use super::{Koordlet, hooks};
use crate::agent::{audit::Violation, card::Health, fit::Lack, view::Pod};

/// The GPUs that CUDA shows a program.
const CUDA_DEVICES: &str = "CUDA_VISIBLE_DEVICES";

/// How resources begin that only Koordinator's node side serves.
const RESOURCES: &str = "koordinator.sh/";

/// What a pod holds of a node's devices.
#[derive(Debug, Default)]
struct Held {
    pod: String,
    /// By type and number, and by resource.
    amounts: BTreeMap<(String, i64), BTreeMap<String, i128>>,
    /// Virtual functions, by PCI address.
    functions: BTreeSet<String>,
}

/// What the live pods of one node hold, by pod uid.
#[derive(Debug, Default)]
pub(in crate::agent) struct Books {
    held: BTreeMap<String, Held>,
}

impl Books {
    /// A pod came to the node: charges what it was given, once, and says what is wrong with it.
    pub(in crate::agent) fn charge(&mut self, node: &str, koordlet: &Koordlet, pod: &Pod) -> Vec<Violation> {
        if self.held.contains_key(pod.uid()) {
            return Vec::new();
        }
        let read = hooks::given(&pod.metadata.annotations.clone().unwrap_or_default());
        let given = match read {
            Ok(None) => return Vec::new(),
            Ok(Some(given)) => given,
            Err(reason) => {
                let text = pod.annotation(hooks::ALLOCATED).unwrap_or_default().to_owned();
                return vec![Violation::Undecodable { pod: pod.key(), text, reason }];
            }
        };
        let faults = self.faults(node, koordlet, pod, &given);
        self.held.insert(pod.uid().to_owned(), Held::of(pod, &given));
        faults
    }

    /// A pod ended or is gone.
    pub(in crate::agent) fn release(&mut self, uid: &str) {
        self.held.remove(uid);
    }

    /// What koordlet's hooks and the container runtime make of a pod that is to start; `Err`: its containers can't be created.
    pub(in crate::agent) fn start(&self, node: &str, koordlet: &Koordlet, pod: &Pod) -> Result<(), Lack> {
        let lack = |message| Lack { reason: "CreateContainerError".to_owned(), message };
        let nothing = BTreeMap::new();
        let annotations = pod.metadata.annotations.as_ref().unwrap_or(&nothing);
        let labels = pod.metadata.labels.as_ref().unwrap_or(&nothing);
        let given = hooks::given(annotations).map_err(lack)?;
        let asks = |container: &crate::agent::view::Container| {
            container
                .resources
                .limits
                .keys()
                .any(|name| name.starts_with(RESOURCES) && container.amount(name).is_some())
        };
        let Some(given) = given else {
            let missing = pod.in_kubelet_order().any(asks);
            return if missing { Err(lack(format!("{} is missing", hooks::ALLOCATED))) } else { Ok(()) };
        };
        hooks::environment(annotations, labels).map_err(lack)?;
        koordlet.ascend(annotations, &given).map_err(lack)?;
        for container in pod.in_kubelet_order() {
            for variable in container.env.iter().filter(|variable| variable.name == CUDA_DEVICES) {
                let value = variable.value(annotations);
                let wrong = || lack(format!("container {}: {CUDA_DEVICES} is `{value}`", container.name));
                hooks::shown(&given, &value).ok_or_else(wrong)?;
            }
        }
        match self.faults(node, koordlet, pod, &given).first() {
            Some(fault) => Err(lack(fault.to_string())),
            None => Ok(()),
        }
    }

    fn faults(&self, node: &str, koordlet: &Koordlet, pod: &Pod, given: &hooks::Given) -> Vec<Violation> {
        let mut faults = Vec::new();
        for (kind, devices) in given {
            for device in devices.iter().flatten() {
                faults.extend(koordlet.fault(node, pod, (kind, device)));
            }
        }
        let own = Held::of(pod, given);
        let others = || self.held.iter().filter(|(uid, _)| *uid != pod.uid()).map(|(_, held)| held);
        for function in &own.functions {
            if let Some(other) = others().find(|held| held.functions.contains(function)) {
                let (pod, function, holder) = (pod.key(), function.clone(), other.pod.clone());
                faults.push(Violation::FunctionTaken { pod, function, holder });
            }
        }
        for (device, amounts) in &own.amounts {
            for (resource, amount) in amounts {
                let beside = others().filter_map(|held| held.amounts.get(device)?.get(resource));
                let used = amount + beside.sum::<i128>();
                let Some(limit) = koordlet.total(device, resource) else { continue };
                if used > limit {
                    let device = format!("{} {}", device.0, device.1);
                    let (node, resource, pod) = (node.to_owned(), resource.clone(), pod.key());
                    faults.push(Violation::DeviceOvercommitted { node, device, resource, limit, used, pod });
                }
            }
        }
        faults
    }
}

impl Held {
    fn of(pod: &Pod, given: &hooks::Given) -> Self {
        let mut held = Self { pod: pod.key(), ..Self::default() };
        for (kind, devices) in given {
            for device in devices.iter().flatten() {
                let amounts = held.amounts.entry((kind.clone(), device.minor)).or_default();
                for resource in device.resources.iter().flatten().map(|(resource, _)| resource) {
                    *amounts.entry(resource.clone()).or_default() +=
                        device.amount(resource).unwrap_or_default();
                }
                let functions =
                    device.extension.iter().filter_map(|extension| extension.vfs.as_ref()).flatten();
                held.functions.extend(functions.map(|function| function.bus.clone()));
            }
        }
        held
    }
}

impl Koordlet {
    /// What Ascend's device plugin reads of the pod: the card and the template of a share. It finds the pod by the time.
    fn ascend(&self, annotations: &BTreeMap<String, String>, given: &hooks::Given) -> Result<(), String> {
        if self.npu.is_none() || hooks::of(given, "gpu").is_empty() {
            return Ok(());
        }
        let (written, wanted) = (annotations.get(super::NPU_CORE), hooks::ascend(given));
        if written == Some(&wanted) && annotations.contains_key("predicate-time") {
            return Ok(());
        }
        Err(format!("{} is {written:?}, and {} says `{wanted}`", super::NPU_CORE, hooks::ALLOCATED))
    }

    /// Why the node can't give this device to a container.
    fn fault(&self, node: &str, pod: &Pod, (kind, device): (&str, &hooks::Device)) -> Option<Violation> {
        let found = match kind {
            "gpu" => {
                let gpu = self.gpus.iter().find(|gpu| i64::from(gpu.minor) == device.minor);
                gpu.filter(|gpu| device.id.is_empty() || gpu.uuid == device.id).map(|gpu| gpu.health)
            }
            "rdma" => {
                let nic = self.nics.iter().find(|nic| i64::from(nic.minor) == device.minor);
                let has = |nic: &&super::Nic| {
                    let own = |address: &&str| {
                        nic.bus == *address || nic.functions.iter().any(|own| own == address)
                    };
                    device.addresses().iter().all(own)
                };
                nic.filter(has).map(|nic| nic.health)
            }
            _ => None,
        };
        let (pod, node) = (pod.key(), node.to_owned());
        let card = format!("{kind} {} ({})", device.minor, device.addresses().join(", "));
        match found {
            None => Some(Violation::UnknownCard { pod, node, card }),
            Some(Health::Unhealthy) => Some(Violation::UnhealthyCard { pod, node, card }),
            Some(Health::Healthy) => None,
        }
    }

    /// How much a device has of a resource, whether or not it is healthy; `None`: there is no such device.
    fn total(&self, (kind, minor): &(String, i64), resource: &str) -> Option<i128> {
        if kind == "gpu" {
            let gpu = self.gpus.iter().find(|gpu| i64::from(gpu.minor) == *minor)?;
            return Some(match resource {
                super::CORE | super::RATIO => 100,
                super::MEMORY => gpu.memory.into(),
                _ => {
                    let mut units = self.npu.iter().flat_map(super::Npu::units);
                    units.find(|(name, _)| *name == resource).map_or(0, |(_, units)| units.into())
                }
            });
        }
        self.nics.iter().find(|nic| kind == "rdma" && i64::from(nic.minor) == *minor)?;
        Some(if resource == super::RDMA { 100 } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        super::{Gpu, Nic},
        *,
    };

    fn node() -> Koordlet {
        let (numa, pcie, health) = (0, "pci0000:00".to_owned(), Health::Healthy);
        let gpu = |minor: u32| {
            let (uuid, pcie) = (format!("GPU-{minor}"), pcie.clone());
            Gpu { uuid, minor, memory: 80 << 30, numa, pcie, health }
        };
        let functions = vec!["0000:01:00.2".to_owned(), "0000:01:00.3".to_owned()];
        let nic =
            Nic { bus: "0000:01:00.0".to_owned(), minor: 0, numa, pcie: pcie.clone(), health, functions };
        Koordlet { gpus: vec![gpu(0), gpu(1)], nics: vec![nic], ..Koordlet::default() }
    }

    fn pod(uid: &str, given: &Value) -> Pod {
        let annotations = json!({hooks::ALLOCATED: given.to_string()});
        let pod = json!({
            "metadata": {"uid": uid, "namespace": "default", "name": uid, "annotations": annotations},
            "spec": {"containers": [{"name": "main", "resources": {"limits": {"koordinator.sh/gpu-core": "50"}}}]},
        });
        serde_json::from_value(pod).unwrap()
    }

    fn share(minor: u32, percent: u32) -> Value {
        let resources =
            json!({"koordinator.sh/gpu-core": percent.to_string(), "koordinator.sh/gpu-memory": "8Gi"});
        json!({"gpu": [{"minor": minor, "id": format!("GPU-{minor}"), "resources": resources}]})
    }

    fn function(bus: &str) -> Value {
        json!({"rdma": [{"minor": 0, "id": "0000:01:00.0", "resources": {"koordinator.sh/rdma": "1"}, "extension": {"vfs": [{"minor": -1, "busID": bus}]}}]})
    }

    fn refusal(books: &Books, pod: &Pod) -> String {
        books.start("n", &node(), pod).unwrap_err().message
    }

    #[test]
    fn a_pod_starts_with_what_the_node_has() {
        let mut books = Books::default();
        for pod in [pod("a", &share(0, 50)), pod("b", &share(0, 50)), pod("c", &function("0000:01:00.2"))] {
            assert_eq!(books.charge("n", &node(), &pod), []);
            assert_eq!(books.start("n", &node(), &pod), Ok(()));
        }
    }

    #[test]
    fn a_device_that_is_not_there_or_not_healthy_starts_no_pod() {
        let books = Books::default();
        assert_eq!(
            refusal(&books, &pod("a", &share(7, 50))),
            "pod default/a: node n has no card gpu 7 (GPU-7)"
        );
        let other = json!({"gpu": [{"minor": 0, "id": "GPU-1"}]});
        assert!(refusal(&books, &pod("a", &other)).contains("has no card gpu 0 (GPU-1)"));
        assert!(
            refusal(&books, &pod("a", &function("0000:02:00.2")))
                .contains("has no card rdma 0 (0000:02:00.2)")
        );
        let mut sick = node();
        sick.set_health("GPU-0", Health::Unhealthy).unwrap();
        let lack = books.start("n", &sick, &pod("a", &share(0, 50))).unwrap_err();
        assert_eq!(lack.message, "pod default/a: card gpu 0 (GPU-0) of node n is not healthy");
    }

    #[test]
    fn more_than_a_device_has_and_a_function_given_twice_start_no_pod() {
        let mut books = Books::default();
        books.charge("n", &node(), &pod("a", &share(0, 60)));
        books.charge("n", &node(), &pod("b", &function("0000:01:00.2")));
        let over = pod("c", &share(0, 50));
        let message =
            "node n: device gpu 0 has 100 koordinator.sh/gpu-core and 110 are given away, last to default/c";
        assert_eq!(refusal(&books, &over), message);
        assert_eq!(books.charge("n", &node(), &over).len(), 1);
        let twice = pod("d", &function("0000:01:00.2"));
        assert_eq!(
            refusal(&books, &twice),
            "pod default/d: virtual function 0000:01:00.2 is given to it while default/b holds it"
        );
        books.release("a");
        books.release("b");
        assert_eq!(books.start("n", &node(), &over), Ok(()));
        assert_eq!(books.start("n", &node(), &twice), Ok(()));
    }

    #[test]
    fn a_share_of_an_ascend_card_starts_with_the_annotation_of_its_template_alone() {
        let npu = Some(super::super::Npu { core: 8, cpu: 7 });
        let node = Koordlet { npu, ..node() };
        let mut share = share(1, 0);
        share["gpu"][0]["extension"] = json!({"gpuSharedResourceTemplate": "vir02"});
        let mut pod = pod("a", &share);
        let message = Books::default().start("n", &node, &pod).unwrap_err().message;
        assert!(message.contains("says `1-vir02`"), "{message}");
        let annotations = pod.metadata.annotations.as_mut().unwrap();
        for (key, value) in [("huawei.com/npu-core", "1-vir02"), ("predicate-time", "1")] {
            annotations.insert(key.to_owned(), value.to_owned());
        }
        assert_eq!(Books::default().start("n", &node, &pod), Ok(()));
    }

    #[test]
    fn a_container_that_is_shown_a_gpu_of_another_pod_does_not_start() {
        let shown = |key: &str| {
            let mut pod = pod("a", &share(1, 50));
            let annotations = pod.metadata.annotations.as_mut().unwrap();
            annotations.insert("own".to_owned(), "GPU-1".to_owned());
            annotations.insert("other".to_owned(), "GPU-1,GPU-0".to_owned());
            let path = format!("metadata.annotations['{key}']");
            let variable = json!({"name": CUDA_DEVICES, "valueFrom": {"fieldRef": {"fieldPath": path}}});
            pod.spec.containers[0].env = serde_json::from_value(json!([variable])).unwrap();
            Books::default().start("n", &node(), &pod).map_err(|lack| lack.message)
        };
        assert_eq!(shown("own"), Ok(()));
        let wrong = |value: &str| Err(format!("container main: CUDA_VISIBLE_DEVICES is `{value}`"));
        assert_eq!((shown("other"), shown("missing")), (wrong("GPU-1,GPU-0"), wrong("")));
    }

    #[test]
    fn a_pod_that_asks_for_devices_and_was_given_none_does_not_start() {
        let mut without = pod("a", &json!({}));
        without.metadata.annotations = None;
        assert_eq!(
            refusal(&Books::default(), &without),
            "scheduling.koordinator.sh/device-allocated is missing"
        );
        let broken = pod("a", &json!("x"));
        assert!(
            refusal(&Books::default(), &broken).starts_with("scheduling.koordinator.sh/device-allocated: ")
        );
    }
}
