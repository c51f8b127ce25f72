//! Which piece of hardware a device is, or is a part of, by the id under which other programs of its node know it.
//!
//! Sources: NVIDIA's driver 0.5 (`cmd/gpu-kubelet-plugin/deviceinfo.go`, `mig.go`), HAMi's `k8s-dra-driver` ebeaad97
//! (`cmd/hami-kubelet-plugin/hami_core.go`). Both publish the id that NVIDIA's library gives a GPU, `GPU-…`, in the driver's own domain.

use std::{collections::BTreeMap, sync::Arc};

use super::AttributeValues;
use crate::dra::node::NodeSelection;

/// The card of which a MIG instance is a part.
pub(super) const PARENT: &str = "parentUUID";

/// The device itself.
const OWN: &str = "uuid";

/// The id of the hardware; `None`: the driver names none, or the device is of no one node.
pub(super) fn of(
    driver: &str,
    attributes: &BTreeMap<String, Option<AttributeValues>>,
    selection: &NodeSelection,
) -> Option<Arc<str>> {
    if !matches!(selection, NodeSelection::Name(_)) {
        return None;
    }
    [PARENT, OWN].into_iter().find_map(|name| match attributes.get(&format!("{driver}/{name}"))? {
        Some(AttributeValues::Texts(texts)) if texts.len() == 1 => {
            texts.first().filter(|id| !id.is_empty()).map(|id| id.as_str().into())
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{
        dra::DevicePools,
        object::{ResourceSlice, resource_slice::ResourceSliceSpec},
    };

    fn hardware(spec: Value, attributes: &Value) -> Option<String> {
        let mut spec = spec;
        spec["driver"] = json!("gpu.example.com");
        spec["pool"] = json!({"name": "p", "generation": 1, "resourceSliceCount": 1});
        spec["devices"] = json!([{"name": "d", "attributes": attributes, "nodeName": "n2"}]);
        let spec: ResourceSliceSpec = serde_json::from_value(spec).unwrap();
        let inventory = DevicePools::new(&[ResourceSlice { spec, ..ResourceSlice::default() }]);
        let pool = ("gpu.example.com".into(), "p".into());
        let device = inventory.devices_of(&pool).next().unwrap();
        device.hardware.as_ref().map(|id| format!("{}: {id}", device.node().unwrap()))
    }

    #[test]
    fn an_instance_is_a_part_of_its_parent_and_a_device_of_many_nodes_is_no_ones() {
        let local = || json!({"nodeName": "n1"});
        let card = json!({"uuid": {"string": "GPU-1"}});
        let instance = json!({"uuid": {"string": "MIG-1"}, "parentUUID": {"string": "GPU-1"}});
        let in_full = json!({"gpu.example.com/uuid": {"string": "GPU-2"}, "uuid": {"string": "GPU-1"}});
        let other = json!({"other.example.com/uuid": {"string": "GPU-1"}, "uuid": {"int": 1}});
        assert_eq!(hardware(local(), &card).as_deref(), Some("n1: GPU-1"));
        assert_eq!(hardware(local(), &instance).as_deref(), Some("n1: GPU-1"));
        assert_eq!(hardware(local(), &in_full).as_deref(), Some("n1: GPU-2"));
        assert_eq!(hardware(local(), &other), None);
        let of_device = json!({"perDeviceNodeSelection": true});
        assert_eq!(hardware(of_device, &card).as_deref(), Some("n2: GPU-1"));
        assert_eq!(hardware(json!({"allNodes": true}), &card), None);
        assert_eq!(hardware(json!({"nodeSelector": {"nodeSelectorTerms": []}}), &card), None);
    }
}
