//! What the volume controller finds on claims, volumes and pods that no scheduler may leave there.
//!
//! It must not change anything.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::ResourceExt as _;

use super::view;

/// Pods that were bound although a claim of theirs is not; claims must have been read after the pods.
pub(super) fn pods(pods: &[Pod], claims: &[PersistentVolumeClaim]) -> Vec<String> {
    let unbound = |pod: &Pod, name: &str| {
        let own = |claim: &&PersistentVolumeClaim| {
            claim.metadata.namespace == pod.metadata.namespace && claim.name_any() == name
        };
        claims.iter().find(own).is_some_and(|claim| !view::is_bound(claim))
    };
    let mut faults = Vec::new();
    for pod in pods.iter().filter(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())) {
        let names = claim_names(pod).into_iter().filter(|name| unbound(pod, name));
        faults.extend(names.map(|name| format!("pod {} was bound before its claim {name}", pod.name_any())));
    }
    faults
}

/// Volumes that a scheduler has bound in a form that the volume controller takes for something else.
pub(super) fn volumes(volumes: &[PersistentVolume], claims: &[PersistentVolumeClaim]) -> Vec<String> {
    volumes.iter().filter_map(|volume| fault_of(volume, claims)).collect()
}

fn fault_of(volume: &PersistentVolume, claims: &[PersistentVolumeClaim]) -> Option<String> {
    let name = volume.name_any();
    let reference = volume.spec.as_ref()?.claim_ref.as_ref();
    let by_controller = view::annotation(volume, view::BOUND_BY_CONTROLLER).is_some();
    let Some(reference) = reference else {
        return by_controller.then(|| format!("volume {name} is bound by a controller to no claim"));
    };
    if by_controller && reference.uid.is_none() {
        return Some(format!("volume {name} is bound by a controller to a claim without a uid"));
    }
    if reference.kind.as_deref() != Some("PersistentVolumeClaim") && reference.uid.is_some() {
        return Some(format!("volume {name} is bound to something that is not called a claim"));
    }
    let claim = claims.iter().find(|claim| view::bound_to(volume) == claim.metadata.uid.as_deref())?;
    let other = view::is_bound(claim) && view::volume_name(claim) != name;
    other.then(|| {
        format!(
            "volume {name} is bound to claim {}, which has volume {}",
            claim.name_any(),
            view::volume_name(claim)
        )
    })
}

/// The claims that the pod uses, generic ephemeral volumes included.
fn claim_names(pod: &Pod) -> Vec<String> {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref()).into_iter().flatten();
    let name = |volume: &k8s_openapi::api::core::v1::Volume| {
        let ephemeral = volume.ephemeral.as_ref().map(|_| format!("{}-{}", pod.name_any(), volume.name));
        volume.persistent_volume_claim.as_ref().map(|used| used.claim_name.clone()).or(ephemeral)
    };
    volumes.filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object<K: serde::de::DeserializeOwned>(value: Value) -> K {
        serde_json::from_value(value).unwrap()
    }

    fn claim(volume: Option<&str>) -> PersistentVolumeClaim {
        let annotations = volume.map(|_| json!({view::BIND_COMPLETED: "yes"}));
        let metadata = json!({"namespace": "team", "name": "data", "uid": "c", "annotations": annotations});
        object(json!({"metadata": metadata, "spec": {"volumeName": volume}}))
    }

    fn volume(reference: &Value, by_controller: Option<&str>) -> PersistentVolume {
        let annotations = by_controller.map(|value| json!({view::BOUND_BY_CONTROLLER: value}));
        object(
            json!({"metadata": {"name": "pv", "annotations": annotations}, "spec": {"claimRef": reference}}),
        )
    }

    #[test]
    fn a_pod_that_was_bound_before_its_claim_is_found() {
        let pod = |node: Option<&str>, volume: Value| {
            let spec = json!({"nodeName": node, "containers": [], "volumes": [volume]});
            object::<Pod>(json!({"metadata": {"namespace": "team", "name": "p"}, "spec": spec}))
        };
        let used = || json!({"name": "v", "persistentVolumeClaim": {"claimName": "data"}});
        let waiting = pod(None, used());
        assert_eq!(pods(&[waiting], &[claim(None)]), Vec::<String>::new());
        let bound = [pod(Some("n"), used())];
        assert_eq!(pods(&bound, &[claim(None)]), ["pod p was bound before its claim data"]);
        assert_eq!(pods(&bound, &[claim(Some("pv"))]), Vec::<String>::new());
        let mut own = claim(None);
        own.metadata.name = Some("p-v".to_owned());
        let ephemeral = pod(Some("n"), json!({"name": "v", "ephemeral": {}}));
        assert_eq!(pods(&[ephemeral], &[own]), ["pod p was bound before its claim p-v"]);
    }

    #[test]
    fn a_volume_that_is_bound_in_no_form_of_the_volume_controllers_is_found() {
        let reference = |uid: Option<&str>, kind: &str| json!({"kind": kind, "namespace": "team", "name": "data", "uid": uid});
        let claim_ref = "PersistentVolumeClaim";
        let found = |volume: PersistentVolume| volumes(&[volume], &[claim(Some("other"))]);
        assert_eq!(found(volume(&json!(null), None)), Vec::<String>::new());
        assert_eq!(
            found(volume(&json!(null), Some("yes"))),
            ["volume pv is bound by a controller to no claim"]
        );
        assert_eq!(
            found(volume(&reference(None, claim_ref), None)),
            Vec::<String>::new(),
            "a person has reserved it"
        );
        let without_uid = "volume pv is bound by a controller to a claim without a uid";
        assert_eq!(found(volume(&reference(None, claim_ref), Some("yes"))), [without_uid]);
        let unnamed = "volume pv is bound to something that is not called a claim";
        assert_eq!(found(volume(&reference(Some("x"), ""), Some("yes"))), [unnamed]);
        let taken = "volume pv is bound to claim data, which has volume other";
        assert_eq!(found(volume(&reference(Some("c"), claim_ref), Some("yes"))), [taken]);
    }
}
