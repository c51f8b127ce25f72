//! What the API server is: its version, the API groups and the feature gates that matter to Berth; and what could not be read of it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::{
    finding::{PreflightFinding, called},
    rules,
    seen::{Gap, GapKind, Seen, text},
};
use crate::{
    app::kubernetes,
    cli::manifests::{self, InstallationSettings, ManifestsArgs, ManifestsError},
    dialect::Dialects,
};

/// Groups whose presence changes what Berth does, or what stands beside it.
const GROUPS: [&str; 6] = [
    "resource.k8s.io",
    "scheduling.k8s.io",
    "scheduling.volcano.sh",
    "batch.volcano.sh",
    "kueue.x-k8s.io",
    "scheduling.koordinator.sh",
];

/// Gates whose state changes how share pods are placed or bound.
pub const GATES: [&str; 7] = [
    "DRAExtendedResource",
    "DynamicResourceAllocation",
    "GangScheduling",
    "GenericWorkload",
    "InPlacePodVerticalScaling",
    "NodeDeclaredFeatures",
    "PodTopologyLabelsAdmission",
];

/// The API server, as the report has it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Kubernetes {
    /// As it writes it, such as `v1.36.3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The oldest that will do.
    pub minimum: String,
    /// The groups that matter, with their versions.
    pub groups: BTreeMap<String, Vec<String>>,
    /// The gates that matter, as far as they could be read.
    pub feature_gates: BTreeMap<String, bool>,
}

impl Kubernetes {
    /// What is known of it.
    pub fn of(seen: &Seen) -> Self {
        let matters = |(group, _): &(&String, &Vec<String>)| GROUPS.contains(&group.as_str());
        let groups =
            seen.groups.iter().filter(matters).map(|(name, versions)| (name.clone(), versions.clone()));
        Self {
            version: seen.info.as_ref().map(|info| info.git_version.clone()),
            minimum: kubernetes::OLDEST.to_string(),
            groups: groups.collect(),
            feature_gates: seen.gates.clone(),
        }
    }
}

/// Whether Berth could run there at all.
pub fn findings(seen: &Seen, dialects: &Dialects) -> Result<Vec<PreflightFinding>, ManifestsError> {
    let mut findings = Vec::new();
    if let Some(Err(error)) = seen.info.as_ref().map(kubernetes::judge) {
        findings.push(PreflightFinding::new(&rules::KUBERNETES_TOO_OLD, "API server", error.to_string()));
    }
    let missing = needed()?.into_iter().filter(|(group, version)| !is_served(seen, group, version));
    for (group, version) in missing {
        let message = format!("{group}/{version} is not served, and the manifests have objects of it");
        findings.push(PreflightFinding::new(&rules::API_NOT_SERVED, "API server", message));
    }
    findings.extend(seen.gaps.iter().map(gap));
    findings.extend(seen.device_classes.iter().filter_map(|class| device_class(class, dialects)));
    Ok(findings)
}

/// Groups and versions of all that `berth manifests` prints.
fn needed() -> Result<BTreeSet<(String, String)>, ManifestsError> {
    let objects = manifests::objects(&ManifestsArgs::default(), &InstallationSettings::default())?;
    let split = |object: &Value| {
        let (group, version) = text(object, "/apiVersion").split_once('/')?;
        Some((group.to_owned(), version.to_owned()))
    };
    Ok(objects.iter().filter_map(split).collect())
}

fn is_served(seen: &Seen, group: &str, version: &str) -> bool {
    let unknown = seen.groups.is_empty();
    unknown || seen.groups.get(group).is_some_and(|versions| versions.iter().any(|served| served == version))
}

fn gap(gap: &Gap) -> PreflightFinding {
    let Gap { what, reason, kind } = gap;
    match kind {
        GapKind::Essential => PreflightFinding::new(
            &rules::CANNOT_LIST_ESSENTIAL,
            what,
            format!("cannot list {what}: {reason}"),
        ),
        GapKind::Part => {
            PreflightFinding::new(&rules::CANNOT_LIST, what, format!("cannot read {what}: {reason}"))
        }
        GapKind::Detail => {
            PreflightFinding::new(&rules::UNKNOWN_DETAIL, what, format!("cannot read {what}: {reason}"))
        }
        GapKind::Object => PreflightFinding::new(&rules::UNREADABLE_OBJECT, what, reason),
        GapKind::Access => {
            let message = format!(
                "whether this account may write assignments is unknown ({reason}); the commands grant it the right"
            );
            PreflightFinding::new(&rules::ACCESS_NOT_ASKED, what, message)
        }
    }
}

/// A class that stands for a resource of ours.
fn device_class(class: &Value, dialects: &Dialects) -> Option<PreflightFinding> {
    let resource = text(class, "/spec/extendedResourceName");
    let mode = dialects.mode_of(resource)?;
    let message = format!(
        "stands for {resource}, which Berth reads as a share (mode {mode}): on nodes without the device plugin, \
         Berth serves such pods by claims of this class"
    );
    Some(PreflightFinding::new(
        &rules::DRA_RESOURCE,
        called("DeviceClass", "", text(class, "/metadata/name")),
        message,
    ))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::version::Info;
    use serde_json::json;

    use super::*;
    use crate::config::Config;

    fn names(seen: &Seen) -> Vec<&'static str> {
        findings(seen, &Config::default().dialects()).unwrap().iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn a_version_that_is_too_old_blocks() {
        let info = |minor: &str| Some(Info { major: "1".into(), minor: minor.into(), ..Info::default() });
        assert_eq!(names(&Seen { info: info("29"), ..Seen::default() }), ["kubernetes-too-old"]);
        assert!(names(&Seen { info: info("30"), ..Seen::default() }).is_empty());
    }

    #[test]
    fn a_version_of_the_manifests_that_is_not_served_blocks() {
        let mut seen = Seen::default();
        for (group, version) in needed().unwrap() {
            seen.groups.entry(group).or_default().push(version);
        }
        assert!(names(&seen).is_empty());
        seen.groups.insert("admissionregistration.k8s.io".into(), vec!["v1beta1".into()]);
        let found = findings(&seen, &Config::default().dialects()).unwrap();
        assert_eq!(
            found[0].message,
            "admissionregistration.k8s.io/v1 is not served, and the manifests have objects of it"
        );
    }

    #[test]
    fn a_device_class_for_a_resource_of_shares_is_found() {
        let mut seen = Seen::default();
        let class = |name: &str, resource: &str| json!({"kind": "DeviceClass", "metadata": {"name": name}, "spec": {"extendedResourceName": resource}});
        seen.take(class("gpu", "nvidia.com/gpu"));
        seen.take(class("nic", "example.com/nic"));
        let found = findings(&seen, &Config::default().dialects()).unwrap();
        assert_eq!(found.iter().map(|one| one.object.as_str()).collect::<Vec<_>>(), ["DeviceClass gpu"]);
    }
}
