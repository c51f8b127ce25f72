//! The annotations by which a pod says how its devices are to be chosen.
//!
//! Source: koordinator `apis/extension/device_share.go`. A word that upstream does not know has no effect there; here it is refused.

use std::collections::BTreeMap;

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{dimension::whole, names, shape::CountStrategy};
use crate::{
    device::{
        DeviceType, Exclusive, JointScope, LabelFilter, LabelRule, PartitionChoice, PartitionSpec,
        TopologyScope,
    },
    dialect::{Problem, Unreadable, go_bool},
    object::{LabelSelector, Metadata, Quantity},
};

/// Whether a yes-or-no annotation of the pod says yes; a missing one says no. An error: its text is neither true nor false.
pub(super) fn flag(pod: &Metadata, key: &str) -> Result<bool, Unreadable> {
    let Some(text) = pod.annotation(key) else { return Ok(false) };
    go_bool(text).ok_or_else(|| {
        let message = format!("`{text}` is neither true nor false; write `true` or `false`");
        Unreadable::annotation(Problem::Hint, key, message)
    })
}

/// A hint for one type, as it is written.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireHint {
    selector: Option<LabelSelector>,
    vf_selector: Option<LabelSelector>,
    allocate_strategy: String,
    required_topology_scope: String,
    exclusive_policy: String,
}

/// `device-joint-allocate`, as it is written.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireJoint {
    device_types: Vec<String>,
    required_scope: String,
}

/// `gpu-partition-spec`, as it is written.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WirePartition {
    allocate_policy: String,
    ring_bus_bandwidth: Option<Quantity>,
}

/// How the devices of one type are to be chosen.
#[derive(Clone, Debug, Default)]
pub(super) struct Hint {
    pub(super) selector: Option<LabelFilter>,
    pub(super) functions: Option<LabelFilter>,
    pub(super) strategy: CountStrategy,
    pub(super) scope: Option<TopologyScope>,
    pub(super) exclusive: Option<Exclusive>,
}

/// The hints by type; hints for types that pods can't ask for are left out.
pub(super) fn hints(pod: &Metadata) -> Result<BTreeMap<DeviceType, Hint>, Unreadable> {
    let wire: BTreeMap<String, Option<WireHint>> = json(pod, names::HINT)?.unwrap_or_default();
    let mut hints = BTreeMap::new();
    for (kind, hint) in wire {
        if let (Some(kind), Some(hint)) = (DeviceType::named(&kind), hint) {
            let hint = read(hint).map_err(|reason| unreadable(names::HINT, format!("{kind}: {reason}")))?;
            hints.insert(kind, hint);
        }
    }
    Ok(hints)
}

/// What the annotations name beside the types that pods can ask for, each with its annotation; it has no effect.
pub fn unknown_types(pod: &Metadata) -> Vec<(&'static str, String)> {
    let hinted = json::<BTreeMap<String, Value>>(pod, names::HINT).ok().flatten().unwrap_or_default();
    let joined = json::<WireJoint>(pod, names::JOINT).ok().flatten().unwrap_or_default();
    let hinted = hinted.into_keys().map(|name| (names::HINT, name));
    let joined = joined.device_types.into_iter().map(|name| (names::JOINT, name));
    hinted.chain(joined).filter(|(_, name)| DeviceType::named(name).is_none()).collect()
}

fn read(wire: WireHint) -> Result<Hint, String> {
    Ok(Hint {
        selector: wire.selector.map(filter).transpose()?,
        functions: wire.vf_selector.map(filter).transpose()?,
        strategy: match wire.allocate_strategy.as_str() {
            "" => CountStrategy::Percentage,
            "ApplyForAll" => CountStrategy::ApplyForAll,
            "RequestsAsCount" => CountStrategy::RequestsAsCount,
            other => {
                return Err(format!("allocateStrategy `{other}` is neither ApplyForAll nor RequestsAsCount"));
            }
        },
        scope: match wire.required_topology_scope.as_str() {
            "" => None,
            "Node" => Some(TopologyScope::Node),
            "NUMANode" => Some(TopologyScope::NumaNode),
            "PCIe" => Some(TopologyScope::Pcie),
            "Device" => Some(TopologyScope::Device),
            other => {
                return Err(format!(
                    "requiredTopologyScope `{other}` is none of Device, PCIe, NUMANode, Node"
                ));
            }
        },
        exclusive: match wire.exclusive_policy.as_str() {
            "" => None,
            "DeviceLevel" => Some(Exclusive::Device),
            "PCIeLevel" => Some(Exclusive::Pcie),
            other => return Err(format!("exclusivePolicy `{other}` is neither DeviceLevel nor PCIeLevel")),
        },
    })
}

fn filter(selector: LabelSelector) -> Result<LabelFilter, String> {
    let rule = |requirement: crate::object::Requirement| {
        let (key, values) = (requirement.key, requirement.values);
        let rule = match (requirement.operator.as_str(), values.is_empty()) {
            ("In", false) => LabelRule::In(key, values),
            ("NotIn", false) => LabelRule::NotIn(key, values),
            ("Exists", true) => LabelRule::Exists(key),
            ("DoesNotExist", true) => LabelRule::Absent(key),
            ("In" | "NotIn", true) => return Err(format!("a selector for `{key}` has no values")),
            ("Exists" | "DoesNotExist", false) => {
                return Err(format!("a selector for the presence of `{key}` has values"));
            }
            (other, _) => return Err(format!("`{other}` is no operator of a label selector")),
        };
        Ok(rule)
    };
    let rules: Result<_, _> = selector.into_requirements().into_iter().map(rule).collect();
    rules.map(LabelFilter)
}

/// The types that are to be chosen together, in order, and how strictly; `None`: the pod has no such annotation.
pub(super) fn joint(pod: &Metadata) -> Result<Option<(Vec<DeviceType>, JointScope)>, Unreadable> {
    let Some(wire) = json::<WireJoint>(pod, names::JOINT)? else { return Ok(None) };
    let scope = match wire.required_scope.as_str() {
        "" => JointScope::Preferred,
        "SamePCIe" => JointScope::SamePcie,
        other => {
            return Err(unreadable(names::JOINT, format!("requiredScope `{other}` is not SamePCIe")));
        }
    };
    let mut types = Vec::new();
    for kind in wire.device_types.iter().filter_map(|name| DeviceType::named(name)) {
        if !types.contains(&kind) {
            types.push(kind);
        }
    }
    Ok(Some((types, scope)))
}

/// How the pod wants its cards partitioned; `None`: it does not say.
pub fn partition_spec(pod: &Metadata) -> Result<Option<PartitionSpec>, Unreadable> {
    let Some(wire) = json::<WirePartition>(pod, names::PARTITION_SPEC)? else { return Ok(None) };
    let refuse = |reason| unreadable(names::PARTITION_SPEC, reason);
    let choice = match wire.allocate_policy.as_str() {
        "" | "BestEffort" => PartitionChoice::BestEffort,
        "Restricted" => PartitionChoice::Restricted,
        other => {
            return Err(refuse(format!("allocatePolicy `{other}` is neither Restricted nor BestEffort")));
        }
    };
    let ring_bandwidth = wire.ring_bus_bandwidth.as_ref().map(whole).transpose().map_err(refuse)?;
    Ok(Some(PartitionSpec { choice, ring_bandwidth }))
}

/// The JSON of an annotation; `null` is none.
fn json<T: DeserializeOwned>(pod: &Metadata, key: &str) -> Result<Option<T>, Unreadable> {
    let Some(text) = pod.annotation(key) else { return Ok(None) };
    serde_json::from_str(text).map_err(|error| unreadable(key, error.to_string()))
}

fn unreadable(key: &str, reason: String) -> Unreadable {
    Unreadable::annotation(Problem::Hint, key, reason)
}
