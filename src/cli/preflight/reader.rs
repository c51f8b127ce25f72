//! Reads a live cluster: gets and lists, page by page, and one SubjectAccessReview for each account, which stores nothing.
//!
//! It must not judge, and it must not end where something can't be read: that is noted.

use std::{collections::BTreeSet, time::Duration};

use futures::{AsyncBufReadExt as _, StreamExt as _};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
};
use serde_json::Value;

use super::{
    agents,
    api::GATES,
    program::{Part, Project},
    seen::{GapKind, Seen},
    trust::TrustedNamespaces,
};
use crate::{
    cluster::informer::list::{self, ListError, ListForm, Strange},
    excerpt::brief,
    object::workload::{WorkloadKind, Workloads},
};

/// Objects in one page of a list.
const PAGE: u32 = 500;

/// How long the first answer may take: without it there is no API server to ask.
const FIRST: Duration = Duration::from_secs(30);

/// How long one list, or one answer, may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// What is listed: path, version and kind of the items, and what it means where it can't be. Volcano's and DRA's are there on some clusters only.
const LISTS: [(&str, &str, &str, GapKind); 15] = [
    ("/api/v1/namespaces", "v1", "Namespace", GapKind::Essential),
    ("/api/v1/nodes", "v1", "Node", GapKind::Essential),
    ("/apis/apps/v1/deployments", "apps/v1", "Deployment", GapKind::Part),
    ("/apis/apps/v1/statefulsets", "apps/v1", "StatefulSet", GapKind::Part),
    ("/apis/apps/v1/daemonsets", "apps/v1", "DaemonSet", GapKind::Part),
    ("/apis/apps/v1/replicasets", "apps/v1", "ReplicaSet", GapKind::Part),
    ("/api/v1/replicationcontrollers", "v1", "ReplicationController", GapKind::Part),
    ("/apis/batch/v1/jobs", "batch/v1", "Job", GapKind::Part),
    ("/apis/batch/v1/cronjobs", "batch/v1", "CronJob", GapKind::Part),
    ("/apis/batch.volcano.sh/v1alpha1/jobs", "batch.volcano.sh/v1alpha1", "Job", GapKind::Part),
    (
        "/apis/scheduling.volcano.sh/v1beta1/podgroups",
        "scheduling.volcano.sh/v1beta1",
        "PodGroup",
        GapKind::Part,
    ),
    ("/apis/resource.k8s.io/v1/deviceclasses", "resource.k8s.io/v1", "DeviceClass", GapKind::Part),
    (
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        GapKind::Part,
    ),
    (
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding",
        GapKind::Part,
    ),
    ("/api/v1/pods", "v1", "Pod", GapKind::Essential),
];

/// Everything that the examinations need. The error is an API server that does not answer, or that does not know the caller.
pub async fn read(client: &Client, kinds: Workloads, trust: TrustedNamespaces) -> kube::Result<Seen> {
    let mut seen = Seen { kinds, trust, ..Seen::default() };
    read_version(client, &mut seen).await?;
    read_groups(client, &mut seen).await;
    for (path, version, kind, gap) in LISTS {
        read_list(client, &mut seen, path, (version, kind), gap).await;
    }
    for ServedKind { path, version, kind } in further_workloads(&seen) {
        read_list(client, &mut seen, &path, (&version, &kind), GapKind::Part).await;
    }
    for namespace in namespaces_of_settings(&seen) {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        read_list(client, &mut seen, &path, ("v1", "ConfigMap"), GapKind::Part).await;
    }
    read_access(client, &mut seen).await;
    read_gates(client, &mut seen).await;
    Ok(seen)
}

async fn read_version(client: &Client, seen: &mut Seen) -> kube::Result<()> {
    let asked = tokio::time::timeout(FIRST, client.apiserver_version()).await;
    let silent = || kube::Error::Service(format!("no answer within {} s", FIRST.as_secs()).into());
    match asked.unwrap_or_else(|_| Err(silent())) {
        Ok(info) => seen.info = Some(info),
        Err(kube::Error::Api(status)) if status.code != 401 => {
            seen.miss("the API server's version", &list::said(&kube::Error::Api(status)), GapKind::Part);
        }
        Err(error @ kube::Error::SerdeError(_)) => {
            seen.miss("the API server's version", &error, GapKind::Part);
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

async fn read_groups(client: &Client, seen: &mut Seen) {
    match in_time(client.list_api_groups()).await {
        Ok(list) => {
            let versions = |versions: Vec<_>| {
                versions
                    .into_iter()
                    .map(|one: k8s_openapi::apimachinery::pkg::apis::meta::v1::GroupVersionForDiscovery| {
                        one.version
                    })
                    .collect()
            };
            seen.groups =
                list.groups.into_iter().map(|group| (group.name, versions(group.versions))).collect();
        }
        Err(reason) => seen.miss("the API groups", &reason, GapKind::Part),
    }
}

/// A kind that is served, and where it is listed.
#[derive(Debug, Eq, PartialEq)]
struct ServedKind {
    path: String,
    version: String,
    kind: String,
}

/// The kinds of workloads beside those of [`LISTS`] whose groups are served, in the first version of each group.
fn further_workloads(seen: &Seen) -> Vec<ServedKind> {
    let served = |kind: &WorkloadKind| {
        let version = seen.groups.get(&kind.group)?.first()?;
        let version = format!("{}/{version}", kind.group);
        let path = format!("/apis/{version}/{}", kind.plural);
        let is_listed = LISTS.iter().any(|(path, of, ..)| {
            of.split_once('/').is_some_and(|(group, _)| group == kind.group)
                && path.ends_with(&format!("/{}", kind.plural))
        });
        (!is_listed).then(|| ServedKind { path, version, kind: kind.kind.clone() })
    };
    seen.kinds.kinds().filter_map(served).collect()
}

async fn read_list(
    client: &Client,
    seen: &mut Seen,
    path: &str,
    (version, kind): (&str, &str),
    gap: GapKind,
) {
    let mut strange = None;
    let take = |object: Result<Value, Strange<'_>>| match object {
        Ok(object) => seen.take(list::stated(object, version, kind)),
        Err(error) => {
            strange.get_or_insert(error.to_string());
        }
    };
    let page = ListParams::default().limit(PAGE);
    let listed = tokio::time::timeout(PATIENCE, list::list(client, path, ListForm::Whole, page, take)).await;
    let what = path.trim_start_matches("/api/v1/").trim_start_matches("/apis/");
    if let Some(error) = strange {
        seen.miss(what, &error, GapKind::Part);
    }
    match listed {
        Ok(Ok(_)) => {}
        Ok(Err(ListError::Request(kube::Error::Api(status))))
            if status.code == 404 && gap != GapKind::Essential => {}
        Ok(Err(error)) => seen.miss(what, &error, gap),
        Err(_) => seen.miss(what, &late(), gap),
    }
}

/// Where the settings of the schedulers that run, and are believed, are kept.
fn namespaces_of_settings(seen: &Seen) -> BTreeSet<String> {
    let schedulers = seen.programs.iter().filter(|program| program.part == Part::Scheduler);
    let mut namespaces: BTreeSet<_> = schedulers.map(|program| program.namespace.clone()).collect();
    if seen.programs.iter().any(|program| program.project == Project::Volcano) {
        namespaces.insert("kube-system".to_owned());
    }
    namespaces
}

/// Asks for each account whether it may write assignments.
async fn read_access(client: &Client, seen: &mut Seen) {
    let accounts: BTreeSet<_> = agents::agents(seen).into_iter().map(|agent| agent.account).collect();
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    for account in accounts {
        let review = SubjectAccessReview { spec: asked_of(&account), ..SubjectAccessReview::default() };
        match in_time(reviews.create(&PostParams::default(), &review)).await {
            Ok(reviewed) => {
                let allowed = reviewed.status.is_some_and(|status| status.allowed);
                seen.access.insert(account, allowed);
            }
            Err(reason) => seen.miss(format!("ServiceAccount {account}"), &reason, GapKind::Access),
        }
    }
}

/// Whether `namespace/name` has the verb that the policies ask for, with the groups that every ServiceAccount has.
fn asked_of(account: &str) -> SubjectAccessReviewSpec {
    let (namespace, name) = account.split_once('/').unwrap_or_default();
    let groups =
        ["system:serviceaccounts", &format!("system:serviceaccounts:{namespace}"), "system:authenticated"];
    SubjectAccessReviewSpec {
        user: Some(format!("system:serviceaccount:{namespace}:{name}")),
        groups: Some(groups.map(str::to_owned).into()),
        resource_attributes: Some(ResourceAttributes {
            group: Some("berth.dev".to_owned()),
            resource: Some("assignments".to_owned()),
            verb: Some("write".to_owned()),
            ..ResourceAttributes::default()
        }),
        ..SubjectAccessReviewSpec::default()
    }
}

/// Reads the gates from the API server's own metrics, line by line: the page may be large.
async fn read_gates(client: &Client, seen: &mut Seen) {
    let page = async {
        let request = http::Request::get("/metrics").body(Vec::new()).map_err(kube::Error::HttpError)?;
        let mut lines = client.request_stream(request).await?.lines();
        let mut gates = Vec::new();
        while let Some(line) = lines.next().await {
            gates.extend(gate(&line.map_err(kube::Error::ReadEvents)?));
        }
        Ok(gates)
    };
    match in_time(page).await {
        Ok(gates) => seen.gates = gates.into_iter().collect(),
        Err(reason) => seen.miss("feature gates (/metrics)", &reason, GapKind::Detail),
    }
}

/// `kubernetes_feature_enabled{name="GangScheduling",stage="ALPHA"} 0`, for the gates that matter.
fn gate(line: &str) -> Option<(String, bool)> {
    let rest = line.strip_prefix("kubernetes_feature_enabled{name=\"")?;
    let (name, rest) = rest.split_once('"')?;
    let (_, value) = rest.rsplit_once(' ')?;
    GATES.contains(&name).then(|| (name.to_owned(), value == "1"))
}

async fn in_time<T>(asked: impl Future<Output = kube::Result<T>>) -> Result<T, String> {
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error @ kube::Error::Api(_))) => Err(list::said(&error)),
        Ok(Err(error)) => Err(brief(&error)),
        Err(_) => Err(late()),
    }
}

fn late() -> String {
    format!("no answer within {} s", PATIENCE.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_of_other_projects_are_listed_where_their_groups_are_served() {
        let groups = [("apps", "v1"), ("batch.volcano.sh", "v1alpha1"), ("jobset.x-k8s.io", "v1alpha2")];
        let groups = groups.map(|(group, version)| (group.to_owned(), vec![version.to_owned()])).into();
        let further = further_workloads(&Seen { groups, ..Seen::default() });
        let jobset = ServedKind {
            path: "/apis/jobset.x-k8s.io/v1alpha2/jobsets".to_owned(),
            version: "jobset.x-k8s.io/v1alpha2".to_owned(),
            kind: "JobSet".to_owned(),
        };
        assert_eq!(further, [jobset]);
    }

    #[test]
    fn a_gate_is_read_from_its_line_and_others_are_passed_over() {
        let line = |name: &str, value: &str| {
            format!("kubernetes_feature_enabled{{name=\"{name}\",stage=\"ALPHA\"}} {value}")
        };
        assert_eq!(gate(&line("GangScheduling", "0")), Some(("GangScheduling".to_owned(), false)));
        assert_eq!(
            gate(&line("DynamicResourceAllocation", "1")),
            Some(("DynamicResourceAllocation".to_owned(), true))
        );
        for other in [
            line("Unheard", "1"),
            "# TYPE kubernetes_feature_enabled gauge".to_owned(),
            "kubernetes_feature_enabled{name=\"".to_owned(),
        ] {
            assert_eq!(gate(&other), None, "{other}");
        }
    }
}
