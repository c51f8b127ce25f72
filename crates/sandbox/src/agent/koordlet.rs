//! Koordinator's node side on one node: the `Device` object that koordlet writes, and what koord-manager makes of it on the Node.
//!
//! It must not talk to the API server. Source: koordinator a7a1b76 `pkg/koordlet/statesinformer/impl/states_device_linux.go`,
//! `pkg/slo-controller/noderesource/plugins/{gpudeviceresource,rdmadevicereource}`.

pub(super) mod books;
pub mod hooks;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::card::Health;

pub(super) const CORE: &str = "koordinator.sh/gpu-core";
pub(super) const MEMORY: &str = "koordinator.sh/gpu-memory";
const RATIO: &str = "koordinator.sh/gpu-memory-ratio";
const NPU_CORE: &str = "huawei.com/npu-core";
const NPU_CPU: &str = "huawei.com/npu-cpu";
const RDMA: &str = "koordinator.sh/rdma";
const VENDOR: &str = "node.koordinator.sh/gpu-vendor";
const MODEL: &str = "node.koordinator.sh/gpu-model";
const PARTITIONS: &str = "scheduling.koordinator.sh/gpu-partitions";

/// A GPU as koordlet finds it by the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// As the driver gives it, `GPU-…`.
    pub uuid: String,
    /// Its number on the node.
    pub minor: u32,
    /// Bytes.
    pub memory: u64,
    /// The NUMA node it hangs on.
    pub numa: i32,
    /// Its PCI root complex, `pciDDDD:BB`.
    pub pcie: String,
    /// What the driver says of it.
    pub health: Health,
}

/// An RDMA NIC as koordlet finds it in sysfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nic {
    /// Its PCI address.
    pub bus: String,
    /// Its number on the node.
    pub minor: u32,
    /// The NUMA node it hangs on.
    pub numa: i32,
    /// Its PCI root complex, `pciDDDD:BB`.
    pub pcie: String,
    /// Whether its link is up.
    pub health: Health,
    /// The PCI addresses of its virtual functions.
    pub functions: Vec<String>,
}

/// The units of an Ascend card, which its shares are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Npu {
    /// AI cores.
    pub core: u64,
    /// AI CPUs.
    pub cpu: u64,
}

/// The devices of a node, as koordlet publishes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Koordlet {
    /// The GPUs, all of one vendor's.
    pub gpus: Vec<Gpu>,
    /// What each of them has beside, where they are Ascend cards.
    pub npu: Option<Npu>,
    /// The vendor of the GPUs, as Koordinator's label spells it; none: NVIDIA, or Huawei for Ascend cards.
    pub vendor: Option<&'static str>,
    /// The NICs.
    pub nics: Vec<Nic>,
    /// The model of the GPUs, as Koordinator's label spells it.
    pub model: String,
    /// The table of partitions, as JSON; none: there is none on the node.
    pub partitions: Option<Value>,
}

impl Koordlet {
    /// A100s of 80 GiB, called `GPU-<node>-<number>`, and NICs without virtual functions. The GPUs are spread evenly over as many PCI roots as there
    /// are NICs, one NIC on each; without any, all GPUs are on one root.
    pub fn new(node: &str, gpus: u32, nics: u32) -> Self {
        let root = |at: u32| format!("pci0000:{:02x}", 16 * at);
        let gpu = |minor: u32| Gpu {
            uuid: format!("GPU-{node}-{minor}"),
            minor,
            memory: 80 << 30,
            numa: 0,
            pcie: root(minor * nics / gpus.max(1)),
            health: Health::Healthy,
        };
        let nic = |minor: u32| Nic {
            bus: address(minor, 0),
            minor,
            numa: 0,
            pcie: root(minor),
            health: Health::Healthy,
            functions: Vec::new(),
        };
        let (gpus, nics) = ((0..gpus).map(gpu).collect(), (0..nics).map(nic).collect());
        Self { gpus, nics, model: "A100-SXM4-80GB".to_owned(), ..Self::default() }
    }

    /// The same devices, where each NIC has two virtual functions.
    #[must_use]
    pub fn with_functions(mut self) -> Self {
        for nic in &mut self.nics {
            nic.functions = [2, 3].map(|function| address(nic.minor, function)).into();
        }
        self
    }

    /// The `Device` object of the node of this name.
    pub fn object(&self, node: &str) -> Value {
        let gpus = self.gpus.iter().map(|gpu| gpu.entry(self.npu));
        let devices: Vec<Value> = gpus.chain(self.nics.iter().map(Nic::entry)).collect();
        let partitions = self.partitions.as_ref().map(|table| (PARTITIONS, table.to_string()));
        json!({
            "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device",
            "metadata": {
                "name": node, "labels": self.labels(),
                "annotations": partitions.into_iter().collect::<BTreeMap<_, _>>(),
            },
            "spec": {"devices": devices},
        })
    }

    /// What koordlet writes on the Device, and koord-manager on the Node.
    pub(super) fn labels(&self) -> BTreeMap<&'static str, String> {
        if self.gpus.is_empty() {
            return BTreeMap::new();
        }
        let vendor = self.vendor.unwrap_or(if self.npu.is_some() { "huawei" } else { "nvidia" });
        [(VENDOR, vendor.to_owned()), (MODEL, self.model.clone())].into()
    }

    /// What koord-manager adds to the Node's allocatable: the sum over healthy devices; of a type without any, nothing.
    pub(super) fn amounts(&self) -> Vec<(&'static str, u64)> {
        let gpus: Vec<&Gpu> = self.gpus.iter().filter(|gpu| gpu.health == Health::Healthy).collect();
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX) * 100;
        let percent = count(gpus.len());
        let nics = count(self.nics.iter().filter(|nic| nic.health == Health::Healthy).count());
        let memory = gpus.iter().map(|gpu| gpu.memory).sum();
        let healthy = u64::try_from(gpus.len()).unwrap_or(u64::MAX);
        let units = self.npu.iter().flat_map(Npu::units).map(|(name, units)| (name, units * healthy));
        let all = [
            ("koordinator.sh/gpu", percent),
            (CORE, percent),
            (RATIO, percent),
            (MEMORY, memory),
            (RDMA, nics),
        ];
        all.into_iter().chain(units).filter(|(_, amount)| *amount > 0).collect()
    }

    /// Changes the health of the device of this uuid or PCI address; `None`: there is none.
    pub(super) fn set_health(&mut self, device: &str, health: Health) -> Option<()> {
        let gpu = self.gpus.iter_mut().find(|gpu| gpu.uuid == device).map(|gpu| &mut gpu.health);
        let nic = self.nics.iter_mut().find(|nic| nic.bus == device).map(|nic| &mut nic.health);
        *gpu.or(nic)? = health;
        Some(())
    }
}

/// The PCI address of a function of the NIC with this number.
fn address(nic: u32, function: u32) -> String {
    format!("0000:{:02x}:00.{function}", 16 * nic + 1)
}

impl Npu {
    /// By resource.
    fn units(&self) -> [(&'static str, u64); 2] {
        [(NPU_CORE, self.core), (NPU_CPU, self.cpu)]
    }
}

impl Gpu {
    fn entry(&self, npu: Option<Npu>) -> Value {
        let mut entry = json!({
            "type": "gpu", "id": self.uuid, "minor": self.minor, "health": self.health == Health::Healthy,
            "resources": {CORE: "100", RATIO: "100", MEMORY: self.memory.to_string()},
            "topology": topology(self.numa, &self.pcie, ""),
        });
        for (name, units) in npu.iter().flat_map(Npu::units) {
            entry["resources"][name] = units.to_string().into();
        }
        entry
    }
}

impl Nic {
    fn entry(&self) -> Value {
        let functions = self.functions.iter();
        // koordlet numbers no function.
        let functions: Vec<Value> = functions.map(|bus| json!({"minor": -1, "busID": bus})).collect();
        let mut entry = json!({
            "type": "rdma", "id": self.bus, "minor": self.minor, "health": self.health == Health::Healthy,
            "resources": {RDMA: "100"}, "topology": topology(self.numa, &self.pcie, &self.bus),
        });
        if !functions.is_empty() {
            entry["vfGroups"] = json!([{"vfs": functions}]);
        }
        entry
    }
}

/// koordlet finds out no socket.
fn topology(numa: i32, pcie: &str, bus: &str) -> Value {
    json!({"socketID": -1, "nodeID": numa, "pcieID": pcie, "busID": bus})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(minor: u32, health: Health) -> Gpu {
        let uuid = format!("GPU-{minor}");
        Gpu { uuid, minor, memory: 80 << 30, numa: 0, pcie: "pci0000:00".into(), health }
    }

    #[test]
    fn only_healthy_devices_are_allocatable() {
        let nic = Nic {
            bus: "0000:01:00.0".into(),
            minor: 0,
            numa: 0,
            pcie: "pci0000:00".into(),
            health: Health::Unhealthy,
            functions: vec!["0000:01:00.2".into()],
        };
        let gpus = vec![gpu(0, Health::Healthy), gpu(1, Health::Unhealthy)];
        let mut node = Koordlet { gpus, nics: vec![nic], ..Koordlet::default() };
        let of_one = [("koordinator.sh/gpu", 100), (CORE, 100), (RATIO, 100), (MEMORY, 80 << 30)];
        assert_eq!(node.amounts(), of_one);
        node.set_health("0000:01:00.0", Health::Healthy).unwrap();
        assert!(node.amounts().contains(&(RDMA, 100)));
        assert_eq!(node.set_health("GPU-9", Health::Healthy), None);
        let devices = node.object("n")["spec"]["devices"].clone();
        assert_eq!(devices[1]["health"], false);
        assert_eq!(devices[2]["vfGroups"][0]["vfs"][0], json!({"minor": -1, "busID": "0000:01:00.2"}));
    }
}
