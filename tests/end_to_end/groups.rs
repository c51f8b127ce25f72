//! Kinds of groups of pods, which are installed where they are not built in.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams, PostParams},
    runtime::{conditions::is_crd_established, wait::await_condition},
};
use serde_json::{Value, json};

use crate::{
    support::{build::Release, floor::Floor},
    world::{LIMIT, World},
};

/// A group and a version.
pub(crate) type GroupVersion = (&'static str, &'static str);

/// Volcano's.
pub(crate) const VOLCANO: GroupVersion = ("scheduling.volcano.sh", "v1beta1");
/// The coscheduling plugin's.
pub(crate) const COSCHEDULING: GroupVersion = ("scheduling.x-k8s.io", "v1alpha1");
/// The group of Kubernetes' own, which a flag of kube-apiserver turns on.
const KUBERNETES: &str = "scheduling.k8s.io";

/// Kubernetes' own, as its release under test serves them.
pub(crate) fn kubernetes() -> GroupVersion {
    match Release::of_tests().unwrap() {
        Release::V1_34 | Release::Usual => (KUBERNETES, "v1alpha2"),
        Release::V1_37 => (KUBERNETES, "v1beta1"),
    }
}

/// Kubernetes' groups of groups, which 1.37 serves with the feature gate `CompositePodGroup`.
pub(crate) const COMPOSITE: GroupVersion = (KUBERNETES, "v1alpha3");

/// The kind of the groups of this API, and its name in paths.
fn kind(api: GroupVersion) -> [&'static str; 2] {
    if api == COMPOSITE { ["CompositePodGroup", "compositepodgroups"] } else { ["PodGroup", "podgroups"] }
}

/// A PodGroup of this spec.
pub(crate) fn pod_group((group, version): GroupVersion, name: &str, spec: &Value) -> DynamicObject {
    let group = json!({
        "apiVersion": format!("{group}/{version}"), "kind": kind((group, version))[0], "metadata": {"name": name}, "spec": spec,
    });
    serde_json::from_value(group).unwrap()
}

impl World {
    /// The PodGroups of this API, which the sandbox has from the start, and which a real API server gets while Berth is at work.
    pub(crate) async fn serve_groups(&self, floor: Floor, api: GroupVersion) -> Api<DynamicObject> {
        let (group, version) = api;
        let [kind, plural] = kind(api);
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: format!("{group}/{version}"),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        let groups: Api<DynamicObject> = Api::default_namespaced_with(self.cluster.client.clone(), &resource);
        if floor == Floor::Real && group != KUBERNETES {
            self.install(api).await;
            // For a moment after its kind is established, kube-apiserver may still answer 404.
            let mut again = tokio::time::interval(Duration::from_millis(20));
            let served = async {
                while groups.list(&ListParams::default()).await.is_err() {
                    again.tick().await;
                }
            };
            tokio::time::timeout(LIMIT, served).await.expect("the kind is served in time");
        }
        groups
    }

    async fn install(&self, (group, version): GroupVersion) {
        let crds: Api<CustomResourceDefinition> = Api::all(self.cluster.client.clone());
        let name = format!("podgroups.{group}");
        let crd = json!({
            "metadata": {"name": name, "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup"},
                "versions": [{"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema":
                    {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
            },
        });
        crds.create(&PostParams::default(), &serde_json::from_value(crd).unwrap()).await.unwrap();
        let established = await_condition(crds, &name, is_crd_established());
        tokio::time::timeout(LIMIT, established).await.expect("the kind is served in time").unwrap();
    }
}
