//! Pods that name a group whose kind the cluster does not serve: Berth places them as pods without a group.

use super::examination::Examination;
use crate::{
    object::Pod,
    scheduling::model::gang::{GangName, GroupApi, Member},
};

/// The API group of a kind PodGroup, and its versions; empty: any.
fn kind(api: GroupApi) -> (&'static str, &'static [&'static str]) {
    match api {
        GroupApi::Volcano => ("scheduling.volcano.sh", &[]),
        GroupApi::Coscheduling => ("scheduling.x-k8s.io", &[]),
        // The group has PriorityClass in every cluster (k8s.io/api v0.36 and v0.37 `scheduling`).
        GroupApi::Kubernetes | GroupApi::Composite => {
            ("scheduling.k8s.io", &["v1alpha2", "v1alpha3", "v1beta1"])
        }
    }
}

/// What is the case where the pod names such a group; `None`: it names none, its kind is served, or that could not be found out.
pub fn without_kind(examination: &Examination<'_>, pod: &Pod) -> Option<String> {
    let groups = &examination.seen.groups;
    if groups.is_empty() || !examination.config.scheduling.gangs.enabled {
        return None;
    }
    let (info, _) = examination.config.reader().pod(pod);
    let Member { gang: GangName { api, group }, .. } = info.groups.gang()?;
    let (name, versions) = kind(*api);
    let serves = |served: &Vec<String>| {
        versions.is_empty() || served.iter().any(|version| versions.contains(&version.as_str()))
    };
    if groups.get(name).is_some_and(serves) {
        return None;
    }
    Some(format!(
        "belongs to PodGroup {group}, and the cluster serves no PodGroup of {name}: Berth places the pods one by one, as soon as each fits; install \
         that kind, or leave the name of the group out"
    ))
}
