//! Which release of a Helm chart an object belongs to, by the marks that Helm gives each object and the label of the chart.
//!
//! Sources: Helm v3 `pkg/action/validate.go` (the label and both annotations); HAMi v2.10 `charts/hami/templates/_helpers.tpl` (`helm.sh/chart`).

use serde_json::Value;

/// A release, and its chart where the object names it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Release {
    /// The release's name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Name and version of the chart in one word, such as `hami-2.10.0`; empty: not named.
    pub chart: String,
}

/// The text at this pointer; empty where there is none.
fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

impl Release {
    /// The release of an object; `None`: Helm does not keep it.
    pub fn of(object: &Value) -> Option<Self> {
        let mark = |pointer: &str| Some(text(object, pointer)).filter(|mark| !mark.is_empty());
        mark("/metadata/labels/app.kubernetes.io~1managed-by").filter(|by| *by == "Helm")?;
        Some(Self {
            name: mark("/metadata/annotations/meta.helm.sh~1release-name")?.to_owned(),
            namespace: mark("/metadata/annotations/meta.helm.sh~1release-namespace")?.to_owned(),
            chart: text(object, "/metadata/labels/helm.sh~1chart").to_owned(),
        })
    }

    /// The version of this chart; `None`: the objects do not name it. A label holds `_` where a version has `+`.
    pub fn version(&self, chart: &str) -> Option<String> {
        let version = self.chart.strip_prefix(chart)?.strip_prefix('-')?;
        version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.replace('_', "+"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(by: &str, chart: &str) -> Value {
        json!({"metadata": {
            "labels": {"app.kubernetes.io/managed-by": by, "helm.sh/chart": chart},
            "annotations": {"meta.helm.sh/release-name": "gpu", "meta.helm.sh/release-namespace": "kube-system"},
        }})
    }

    #[test]
    fn a_release_is_known_by_helms_marks_and_its_version_by_the_charts() {
        let release = Release::of(&object("Helm", "hami-2.10.0_1")).unwrap();
        assert_eq!((release.name.as_str(), release.namespace.as_str()), ("gpu", "kube-system"));
        assert_eq!(release.version("hami").as_deref(), Some("2.10.0+1"));
        assert_eq!(Release::of(&object("Helm", "hami-webui-1.0.0")).unwrap().version("hami"), None);
        assert_eq!(Release::of(&object("Helm", "")).unwrap().version("hami"), None);
        assert_eq!(Release::of(&object("kustomize", "hami-2.10.0")), None);
        assert_eq!(
            Release::of(&json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm"}}})),
            None
        );
    }
}
