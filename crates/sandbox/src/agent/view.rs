//! The fields of pods and nodes that a node's agents read.
//!
//! It must not hold what only a scheduler reads.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::{Deserialize, Deserializer};

/// A pod as kubelet and the device plugins see it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Pod {
    /// Name, namespace, uid, version, deletion, annotations and labels; nothing else is kept.
    #[serde(deserialize_with = "lean")]
    pub(super) metadata: ObjectMeta,
    /// Containers and node.
    #[serde(default)]
    pub(super) spec: PodSpec,
    /// Phase.
    #[serde(default)]
    pub(super) status: PodStatus,
}

/// The part of a pod's spec that decides its admission on a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodSpec {
    /// Set once, by a Binding.
    pub(super) node_name: Option<String>,
    /// In the order in which kubelet allocates them, before all app containers.
    pub(super) init_containers: Vec<Container>,
    /// The app containers.
    pub(super) containers: Vec<Container>,
}

/// One container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Container {
    /// Unique in the pod.
    pub(super) name: String,
    /// `Always` makes an init container a sidecar.
    pub(super) restart_policy: Option<String>,
    /// Quantities by resource name.
    pub(super) resources: Resources,
    /// Its environment.
    pub(super) env: Vec<Variable>,
}

/// A variable of a container's environment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Variable {
    /// Its name.
    pub(super) name: String,
    /// Its value, where it is stated.
    pub(super) value: Option<String>,
    /// Where its value comes from otherwise.
    pub(super) value_from: Option<Source>,
}

/// What a variable's value comes from.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Source {
    /// A field of the pod.
    pub(super) field_ref: Option<FieldRef>,
}

/// A field of the pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct FieldRef {
    /// As in `metadata.annotations['example.com/key']`.
    pub(super) field_path: String,
}

impl Variable {
    /// Its value in a pod with these annotations, as kubelet finds it: an annotation that is missing is an empty text.
    pub(super) fn value(&self, annotations: &BTreeMap<String, String>) -> String {
        let path = self.value_from.as_ref().and_then(|source| source.field_ref.as_ref());
        let key = path
            .and_then(|field| field.field_path.strip_prefix("metadata.annotations['")?.strip_suffix("']"));
        let annotation = key.and_then(|key| annotations.get(key));
        annotation.or(self.value.as_ref()).cloned().unwrap_or_default()
    }
}

/// Limits and requests, as the API writes quantities.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Resources {
    /// What devices are counted by.
    pub(super) limits: BTreeMap<String, serde_json::Value>,
    /// What cpu and memory are counted by.
    pub(super) requests: BTreeMap<String, serde_json::Value>,
}

/// The part of a pod's status that tells whether it holds resources.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PodStatus {
    /// Pending, Running, Succeeded or Failed; absent means Pending.
    pub(super) phase: Option<String>,
}

/// A node as its device plugin reads it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Node {
    /// Name, version and annotations; nothing else is kept.
    #[serde(deserialize_with = "lean")]
    pub(super) metadata: ObjectMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LeanMeta {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    deletion_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    finalizers: Option<Vec<String>>,
    annotations: Option<BTreeMap<String, String>>,
    labels: Option<BTreeMap<String, String>>,
}

fn lean<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let meta = LeanMeta::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: meta.name,
        namespace: meta.namespace,
        uid: meta.uid,
        resource_version: meta.resource_version,
        deletion_timestamp: meta.deletion_timestamp,
        deletion_grace_period_seconds: meta.deletion_grace_period_seconds,
        finalizers: meta.finalizers,
        annotations: meta.annotations,
        labels: meta.labels,
        ..ObjectMeta::default()
    })
}

impl Pod {
    /// `<namespace>/<name>`.
    pub(super) fn key(&self) -> String {
        format!("{}/{}", self.namespace(), self.name())
    }

    /// Empty where the server sent none.
    pub(super) fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Empty where the server sent none.
    pub(super) fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// Empty where the server sent none.
    pub(super) fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// The value of an annotation.
    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// Succeeded or Failed: it holds nothing any more.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self.status.phase.as_deref(), Some("Succeeded" | "Failed"))
    }

    /// A kubelet could not admit it, or a container of it has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.status.phase.as_deref() == Some("Failed")
    }

    /// Not yet admitted by a kubelet.
    pub(super) fn is_pending(&self) -> bool {
        matches!(self.status.phase.as_deref(), None | Some("Pending" | ""))
    }

    /// Being deleted.
    pub(super) fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// How long its processes may take to end once it is being deleted.
    pub(super) fn grace(&self) -> Duration {
        let seconds = self.metadata.deletion_grace_period_seconds.unwrap_or_default();
        Duration::from_secs(seconds.try_into().unwrap_or_default())
    }

    /// Its object stays after kubelet is done with it.
    pub(super) fn is_kept(&self) -> bool {
        self.metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty())
    }

    /// Init containers, then app containers: the order in which kubelet allocates.
    pub(super) fn in_kubelet_order(&self) -> impl Iterator<Item = &Container> {
        self.spec.init_containers.iter().chain(&self.spec.containers)
    }
}

impl Container {
    /// A whole, positive number of a resource; limits count before requests.
    pub(super) fn amount(&self, resource: &str) -> Option<u64> {
        let value = self.resources.limits.get(resource).or_else(|| self.resources.requests.get(resource))?;
        u64::try_from(milli(value)? / 1000).ok().filter(|&amount| amount > 0)
    }

    /// Whether it is an init container that keeps running.
    pub(super) fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
}

/// A quantity in thousandths; `None` where it is not one.
pub(super) fn milli(value: &serde_json::Value) -> Option<i128> {
    let text = match value {
        serde_json::Value::String(text) => Cow::from(text),
        serde_json::Value::Number(number) => Cow::from(number.to_string()),
        _ => return None,
    };
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let scale: i128 = match suffix {
        "m" => 1,
        "" => 1000,
        _ => 1000 * multiple(suffix)?,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = u32::try_from(fraction.len()).ok()?;
    let whole: i128 = whole.parse().ok()?;
    let fraction: i128 = if digits == 0 { 0 } else { fraction.parse().ok()? };
    Some(whole * scale + fraction * scale / 10_i128.checked_pow(digits)?)
}

fn multiple(suffix: &str) -> Option<i128> {
    let power = |base: i128| {
        let exponent = "kKMGTPE".find(suffix.chars().next()?)?.saturating_sub(1);
        Some(base.pow(u32::try_from(exponent).ok()? + 1))
    };
    match suffix {
        "k" | "M" | "G" | "T" | "P" | "E" => power(1000),
        "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei" => power(1024),
        _ => None,
    }
}

impl kube::Resource for Pod {
    type DynamicType = ();
    type Scope = k8s_openapi::NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Pod".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "pods".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl kube::Resource for Node {
    type DynamicType = ();
    type Scope = k8s_openapi::ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Node".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "nodes".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::milli;

    #[test]
    fn quantities_are_read_in_thousandths() {
        for (text, expected) in [
            ("2", Some(2000)),
            ("1500m", Some(1500)),
            ("0.5", Some(500)),
            ("1k", Some(1_000_000)),
            ("1Ki", Some(1_024_000)),
            ("1.5Gi", Some(1_610_612_736_000)),
            ("1M", Some(1_000_000_000)),
            ("x", None),
            ("1Q", None),
        ] {
            assert_eq!(milli(&serde_json::json!(text)), expected, "{text}");
        }
    }
}
