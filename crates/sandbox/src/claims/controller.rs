//! Claims from templates, and the end of claims: what kube-controller-manager does for pods that come and go.
//!
//! Source: v1.36 `pkg/controller/resourceclaim/controller.go`. It must not give devices to a claim. What the garbage collector does in a
//! real cluster, deleting the claims of pods that are gone, is done here too, since no cluster of the tests has one.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod, PodResourceClaim};
use k8s_openapi::api::resource::v1::{
    DeviceClass, ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate, ResourceSlice,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{Shared, allocation::FINALIZER, audit, cards};
use crate::controller::{all, at_each_change};

/// Runs until the watches end, which they never do by themselves.
pub(super) async fn run(shared: Arc<Shared>) {
    at_each_change(shared.changes(), || sync(&shared)).await;
}

async fn sync(shared: &Shared) -> kube::Result<()> {
    let client = &shared.client;
    // Pods come first: a claim without devices in a later list had none when the pod was bound.
    let pods: Vec<Pod> = all(client).await?;
    let claims: Vec<ResourceClaim> = all(client).await?;
    let slices: Vec<ResourceSlice> = all(client).await?;
    let nodes: Vec<Node> = all(client).await?;
    let classes: Vec<DeviceClass> = all(client).await?;
    let faults = audit::pods(&pods, &claims, &slices).into_iter().chain(audit::devices(&claims, &slices));
    let faults = faults.chain(audit::unmapped(&pods, (&nodes, &classes), &claims));
    faults.for_each(|fault| shared.violations.note(fault));
    if !cards::given_twice(&pods, &claims, &slices).is_empty() {
        // A pod that is there before and after the claims were read was there meanwhile.
        let later: Vec<Pod> = all(client).await?;
        let stayed = |pod: &&Pod| {
            later.iter().any(|other| other.metadata.uid == pod.metadata.uid && !has_ended(other))
        };
        let stayed: Vec<Pod> = pods.iter().filter(stayed).cloned().collect();
        for fault in cards::given_twice(&stayed, &claims, &slices) {
            shared.violations.note(fault);
        }
    }
    let templates: Vec<ResourceClaimTemplate> = all(client).await?;
    for pod in pods.iter().filter(|pod| !has_ended(pod) && pod.metadata.deletion_timestamp.is_none()) {
        for entry in pod.spec.iter().flat_map(|spec| spec.resource_claims.iter().flatten()) {
            make(client, pod, entry, (&templates, &claims)).await?;
        }
    }
    for claim in &claims {
        release(client, claim, &pods).await?;
    }
    Ok(())
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Makes the claim of an entry that names a template, and notes it in the pod's status.
async fn make(
    client: &Client,
    pod: &Pod,
    entry: &PodResourceClaim,
    (templates, claims): (&[ResourceClaimTemplate], &[ResourceClaim]),
) -> kube::Result<()> {
    let noted = pod.status.iter().flat_map(|status| status.resource_claim_statuses.iter().flatten());
    let Some(template) = entry.resource_claim_template_name.as_deref() else { return Ok(()) };
    if noted.into_iter().any(|noted| noted.name == entry.name) {
        return Ok(());
    }
    let namespace = pod.namespace().unwrap_or_default();
    let own = |one: &&ResourceClaimTemplate| {
        one.namespace().as_ref() == Some(&namespace) && one.name_any() == template
    };
    let Some(template) = templates.iter().find(own) else { return Ok(()) };
    let user = match own_group(pod) {
        None => User::of_pod(pod),
        Some(group) => match self::group(client, &namespace, group).await? {
            // The pod waits for its PodGroup, as upstream has it.
            None => return Ok(()),
            Some(group) if shares(&group, entry) => User::of_group(&group),
            Some(_) => User::of_pod(pod),
        },
    };
    let made_for = |claim: &&ResourceClaim| {
        owner(claim) == Some((user.kind, &user.uid)) && claim.annotations().get(ENTRY) == Some(&entry.name)
    };
    let name = match claims.iter().find(made_for) {
        Some(claim) => claim.name_any(),
        None => create(client, (&user, &namespace), entry, template).await?,
    };
    let status = json!({"status": {"resourceClaimStatuses": [{"name": entry.name, "resourceClaimName": name}]},
        "metadata": {"uid": pod.metadata.uid}});
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    pods.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Strategic(status)).await.map(drop)
}

/// A pod or a PodGroup for which a claim is made.
struct User {
    api_version: String,
    kind: &'static str,
    name: String,
    uid: String,
}

impl User {
    fn of_pod(pod: &Pod) -> Self {
        Self {
            api_version: "v1".to_owned(),
            kind: "Pod",
            name: pod.name_any(),
            uid: pod.uid().unwrap_or_default(),
        }
    }

    fn of_group(group: &DynamicObject) -> Self {
        let api_version = group.types.as_ref().map(|types| types.api_version.clone());
        Self {
            api_version: api_version.unwrap_or_else(|| "scheduling.k8s.io/v1beta1".to_owned()),
            kind: GROUP,
            name: group.name_any(),
            uid: group.uid().unwrap_or_default(),
        }
    }
}

/// The annotation in which a claim says for which entry of a pod or a PodGroup it was made.
const ENTRY: &str = "resource.kubernetes.io/pod-claim-name";

/// The kind of Kubernetes' groups of pods.
const GROUP: &str = "PodGroup";

/// The name of the PodGroup of Kubernetes that the pod is in.
fn own_group(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.scheduling_group.as_ref()?.pod_group_name.as_deref()
}

/// Whether the PodGroup has an entry that is equal in all fields: its pods share the claim then.
fn shares(group: &DynamicObject, entry: &PodResourceClaim) -> bool {
    let entries = group.data["spec"]["resourceClaims"].as_array().into_iter().flatten();
    let own = json!({"name": entry.name, "resourceClaimTemplateName": entry.resource_claim_template_name});
    entries.into_iter().any(|entry| *entry == own)
}

async fn create(
    client: &Client,
    (user, namespace): (&User, &str),
    entry: &PodResourceClaim,
    template: &ResourceClaimTemplate,
) -> kube::Result<String> {
    let owner = json!({"apiVersion": user.api_version, "kind": user.kind, "name": user.name, "uid": user.uid,
        "controller": true, "blockOwnerDeletion": true});
    let claim = json!({
        "metadata": {
            "generateName": format!("{}-{}-", user.name, entry.name), "ownerReferences": [owner],
            "annotations": {ENTRY: entry.name},
        },
        "spec": template.spec.as_ref().map(|template| &template.spec),
    });
    let claim: ResourceClaim = serde_json::from_value(claim).map_err(kube::Error::SerdeError)?;
    let claims: Api<ResourceClaim> = Api::namespaced(client.clone(), namespace);
    Ok(claims.create(&PostParams::default(), &claim).await?.name_any())
}

/// The kind and the uid of the pod or PodGroup for which the claim was made.
fn owner(claim: &ResourceClaim) -> Option<(&str, &str)> {
    controller(claim).map(|owner| (owner.kind.as_str(), owner.uid.as_str()))
}

fn controller(claim: &ResourceClaim) -> Option<&OwnerReference> {
    let mut owners = claim.metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true) && ["Pod", GROUP].contains(&owner.kind.as_str()))
}

/// Takes pods that have ended from the users of a claim, and the devices from one that has no user left.
async fn release(client: &Client, claim: &ResourceClaim, pods: &[Pod]) -> kube::Result<()> {
    let lives =
        |uid: &str| pods.iter().any(|pod| pod.metadata.uid.as_deref() == Some(uid) && !has_ended(pod));
    let users: Vec<_> = claim.status.iter().flat_map(|status| status.reserved_for.iter().flatten()).collect();
    let mut valid = Vec::new();
    for user in users.iter().copied() {
        // A pod that came after the list of pods is there all the same, as upstream has it.
        let stays = if audit::is_group(user) {
            group_lives(client, claim, (&user.name, &user.uid)).await?
        } else {
            lives(&user.uid) || has_come(client, claim, user, pods).await?
        };
        if stays {
            valid.push(user);
        }
    }
    let allocated = claim.status.as_ref().is_some_and(|status| status.allocation.is_some());
    let deleted = claim.metadata.deletion_timestamp.is_some();
    let claims: Api<ResourceClaim> = Api::namespaced(client.clone(), &claim.namespace().unwrap_or_default());
    let (name, params) = (claim.name_any(), PatchParams::default());
    let mut version = claim.metadata.resource_version.clone();
    if valid.len() < users.len() || (deleted && allocated && valid.is_empty()) {
        let allocation = if valid.is_empty() { json!({"allocation": null}) } else { json!({}) };
        let mut status = json!({"reservedFor": if valid.is_empty() { Value::Null } else { json!(valid) }});
        merge(&mut status, allocation);
        let patch = json!({"metadata": {"resourceVersion": version}, "status": status});
        version = claims.patch_status(&name, &params, &Patch::Merge(patch)).await?.metadata.resource_version;
    }
    let kept: Vec<_> = claim.finalizers().iter().filter(|finalizer| *finalizer != FINALIZER).collect();
    let free = valid.is_empty() && (valid.len() < users.len() || deleted);
    if free && kept.len() < claim.finalizers().len() {
        let patch = json!({"metadata": {"resourceVersion": version, "finalizers": kept}});
        claims.patch(&name, &params, &Patch::Merge(patch)).await?;
    }
    let orphan = match controller(claim) {
        Some(owner) if owner.kind == GROUP => !group_lives(client, claim, (&owner.name, &owner.uid)).await?,
        Some(owner) => !pods.iter().any(|pod| pod.metadata.uid.as_ref() == Some(&owner.uid)),
        None => false,
    };
    if orphan && !deleted {
        claims.delete(&name, &DeleteParams::default()).await?;
    }
    Ok(())
}

/// Whether a pod is there that the list of pods does not have.
async fn has_come(
    client: &Client,
    claim: &ResourceClaim,
    user: &ResourceClaimConsumerReference,
    listed: &[Pod],
) -> kube::Result<bool> {
    if listed.iter().any(|pod| pod.metadata.uid.as_ref() == Some(&user.uid)) {
        return Ok(false);
    }
    let pods: Api<Pod> = Api::namespaced(client.clone(), &claim.namespace().unwrap_or_default());
    let pod = pods.get_opt(&user.name).await?;
    Ok(pod.is_some_and(|pod| pod.metadata.uid.as_ref() == Some(&user.uid) && !has_ended(&pod)))
}

/// Whether the PodGroup of this name and uid is there, which uses the claim or for which it was made.
async fn group_lives(
    client: &Client,
    claim: &ResourceClaim,
    (name, uid): (&str, &str),
) -> kube::Result<bool> {
    let found = group(client, &claim.namespace().unwrap_or_default(), name).await?;
    Ok(found.is_some_and(|group| group.metadata.uid.as_deref() == Some(uid)))
}

/// A PodGroup, in a version that the API server serves.
async fn group(client: &Client, namespace: &str, name: &str) -> kube::Result<Option<DynamicObject>> {
    for version in ["v1beta1", "v1alpha2"] {
        let kind = GroupVersionKind::gvk("scheduling.k8s.io", version, GROUP);
        let resource = ApiResource::from_gvk(&kind);
        let groups: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
        if let Some(group) = groups.get_opt(name).await? {
            return Ok(Some(group));
        }
    }
    Ok(None)
}

fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}
