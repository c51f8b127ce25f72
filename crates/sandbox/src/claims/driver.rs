//! What DRA drivers of GPUs publish: one pool of a node in one slice, and the classes that come with the driver.
//!
//! Sources: NVIDIA's driver 0.5 (`cmd/gpu-kubelet-plugin`, `deployments/helm`), HAMi's `k8s-dra-driver` ebeaad97 (`cmd/hami-kubelet-plugin`).

use k8s_openapi::api::resource::v1::{DeviceClass, ResourceSlice};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

/// A driver of GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// NVIDIA's: a card is given as a whole.
    Nvidia,
    /// HAMi's: a card is shared by memory and compute.
    Hami,
}

/// A card, as its driver publishes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// As NVIDIA's library gives it, `GPU-…`.
    pub uuid: String,
    /// Bytes.
    pub memory: u64,
    /// Its PCI root complex.
    pub root: String,
}

impl Driver {
    /// The driver's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nvidia => "gpu.nvidia.com",
            Self::Hami => "hami-core-gpu.project-hami.io",
        }
    }

    /// The class of its GPUs; both drivers name it as themselves.
    pub fn class(self) -> DeviceClass {
        let kind = if self == Self::Nvidia { "gpu" } else { "hami-gpu" };
        let name = self.name();
        let expression = format!("device.driver == '{name}' && device.attributes['{name}'].type == '{kind}'");
        let resource = (self == Self::Nvidia).then_some("nvidia.com/gpu");
        let class = json!({
            "metadata": {"name": name},
            "spec": {"selectors": [{"cel": {"expression": expression}}], "extendedResourceName": resource},
        });
        serde_json::from_value(class).expect("it is a DeviceClass")
    }

    /// The slice of a node with these cards, at this generation of its pool.
    pub fn slice(self, node: &str, cards: &[Gpu], generation: i64) -> ResourceSlice {
        let devices: Vec<Value> =
            cards.iter().enumerate().map(|(minor, card)| self.device(minor, card)).collect();
        let slice = json!({
            "metadata": {"name": format!("{node}-{}", self.name())},
            "spec": {
                "driver": self.name(), "nodeName": node, "devices": devices,
                "pool": {"name": node, "generation": generation, "resourceSliceCount": 1},
            },
        });
        serde_json::from_value(slice).expect("it is a ResourceSlice")
    }

    fn device(self, minor: usize, Gpu { uuid, memory, root }: &Gpu) -> Value {
        let product = json!({"string": "NVIDIA A100-SXM4-80GB"});
        match self {
            Self::Nvidia => json!({
                "name": format!("gpu-{minor}"),
                "attributes": {
                    "type": {"string": "gpu"}, "uuid": {"string": uuid}, "productName": product,
                    "architecture": {"string": "Ampere"}, "cudaComputeCapability": {"version": "8.0.0"},
                    "resource.kubernetes.io/pcieRoot": {"string": root},
                },
                "capacity": {"memory": {"value": memory.to_string()}},
            }),
            Self::Hami => json!({
                "name": format!("hami-gpu-{minor}"),
                "allowMultipleAllocations": true,
                "attributes": {
                    "type": {"string": "hami-gpu"}, "uuid": {"string": uuid}, "productName": product,
                    "minor": {"int": minor}, "resource.kubernetes.io/pcieRoot": {"string": root},
                },
                "capacity": {
                    "cores": {"value": "100", "requestPolicy":
                        {"default": "100", "validRange": {"min": "0", "max": "100", "step": "1"}}},
                    "memory": {"value": memory.to_string(), "requestPolicy":
                        {"default": memory.to_string(), "validRange": {"min": "1Mi", "step": "1Mi"}}},
                },
            }),
        }
    }

    /// Publishes the slice of a node and, if it is missing, the class.
    ///
    /// # Errors
    ///
    /// The API server refused one of them.
    pub async fn publish(
        self,
        client: &Client,
        node: &str,
        cards: &[Gpu],
        generation: i64,
    ) -> kube::Result<()> {
        let classes: Api<DeviceClass> = Api::all(client.clone());
        if classes.get_opt(self.name()).await?.is_none() {
            classes.create(&PostParams::default(), &self.class()).await?;
        }
        let slices: Api<ResourceSlice> = Api::all(client.clone());
        let slice = self.slice(node, cards, generation);
        let name = slice.metadata.name.clone().unwrap_or_default();
        if slices.get_opt(&name).await?.is_none() {
            return slices.create(&PostParams::default(), &slice).await.map(drop);
        }
        let patch = Patch::Merge(json!({"spec": slice.spec}));
        slices.patch(&name, &PatchParams::default(), &patch).await.map(drop)
    }
}

/// Cards of 80 GiB, called `GPU-<node>-<number>`, two on each PCI root.
pub fn cards(node: &str, count: u32) -> Vec<Gpu> {
    let card = |at: u32| Gpu {
        uuid: format!("GPU-{node}-{at}"),
        memory: 80 << 30,
        root: format!("pci0000:{:02x}", 16 * (at / 2)),
    };
    (0..count).map(card).collect()
}
