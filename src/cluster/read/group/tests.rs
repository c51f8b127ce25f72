//! What is read of PodGroups of each API, and which are not served.

use serde_json::{Value, json};

use super::*;
use crate::scheduling::model::claim_use::ResourceClaimUse;

fn read_kind(kind: PodGroupKind, spec: &Value) -> Group {
    let metadata = json!({"name": "train", "namespace": "team-a"});
    let group = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
    match pod_group(kind, &group) {
        Object::PodGroup(_, _, group) => Arc::unwrap_or_clone(group),
        other => panic!("{other:?}"),
    }
}

fn kubernetes(spec: &Value) -> Group {
    read_kind(PodGroupKind::Kubernetes, spec)
}

fn unserved(group: Group) -> String {
    match group.policy {
        Policy::Unserved(why) => why.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_disruption_mode_is_read_in_the_form_of_each_version() {
    let disruption = |mode: Value| kubernetes(&json!({"disruptionMode": mode})).preemption.disruption;
    for single in [json!(null), json!("Pod"), json!({"single": {}})] {
        assert_eq!(disruption(single.clone()), DisruptionMode::Single, "{single}");
    }
    for all in [json!("PodGroup"), json!({"all": {}})] {
        assert_eq!(disruption(all.clone()), DisruptionMode::All, "{all}");
    }
    for other in [json!("Half"), json!({"half": {}}), json!({}), json!({"all": {}, "single": {}})] {
        let group = kubernetes(&json!({"disruptionMode": other}));
        assert_eq!(group.preemption.disruption, DisruptionMode::All, "what can't be read goes as a whole");
        assert!(unserved(group).starts_with("spec.disruptionMode is none of the modes"), "{other}");
    }
    let volcano = read_kind(PodGroupKind::Volcano, &json!({"minMember": 2, "disruptionMode": "PodGroup"}));
    assert_eq!(volcano.preemption, GroupPreemption::default(), "it is no field of Volcano's");
}

#[test]
fn priority_and_preemption_policy_are_those_of_the_spec() {
    let group = kubernetes(&json!({"priority": 7, "preemptionPolicy": "Never", "priorityClassName": "low"}));
    let expected = GroupPreemption {
        priority: Some(7),
        policy: Some(PreemptionPolicy::Never),
        ..GroupPreemption::default()
    };
    assert_eq!((group.preemption, group.policy), (expected, Policy::Alone));
    let other = kubernetes(&json!({"preemptionPolicy": "Sometimes"}));
    assert_eq!(
        unserved(other),
        "spec.preemptionPolicy must be Never or PreemptLowerPriority, but is \"Sometimes\""
    );
}

#[test]
fn a_group_with_a_parent_is_not_served() {
    let parent = json!({"parentCompositePodGroupName": "all", "schedulingPolicy": {"gang": {"minCount": 2}}});
    assert_eq!(
        unserved(kubernetes(&parent)),
        "spec.parentCompositePodGroupName is all, and Berth does not place the pods of CompositePodGroups"
    );
}

#[test]
fn the_claims_of_a_group_are_read_with_what_each_names() {
    let claims = |claims: &Value| json!({"resourceClaims": claims});
    let named = json!({"name": "net", "resourceClaimName": "fabric"});
    let group = kubernetes(&claims(&json!([{"name": "gpu", "resourceClaimTemplateName": "gpus"}, named])));
    let read = |entry: &str, named| GroupClaim { entry: entry.into(), named };
    let expected = [
        read("gpu", ClaimOrTemplate::Template("gpus".into())),
        read("net", ClaimOrTemplate::Claim("fabric".into())),
    ];
    assert_eq!((group.claims.as_slice(), group.policy), (expected.as_slice(), Policy::Alone));
    assert_eq!(
        unserved(kubernetes(&claims(&json!([{"name": "gpu"}])))),
        "spec.resourceClaims[gpu] must name either a ResourceClaim or a ResourceClaimTemplate"
    );
    let all: Vec<_> = (0..5).map(|at| json!({"name": format!("c{at}"), "resourceClaimName": "c"})).collect();
    assert_eq!(kubernetes(&claims(&json!(all[..4]))).claims.len(), 4);
    assert_eq!(
        unserved(kubernetes(&claims(&json!(all)))),
        "spec.resourceClaims must have at most 4 entries, but has 5"
    );
    let volcano = read_kind(PodGroupKind::Volcano, &claims(&json!([named])));
    assert!(volcano.claims.is_empty(), "it is no field of Volcano's");
}

#[test]
fn a_pod_uses_a_claim_of_its_group_by_an_entry_that_is_equal_in_all_fields() {
    let group = kubernetes(&json!({"resourceClaims": [
        {"name": "gpu", "resourceClaimTemplateName": "gpus"}, {"name": "net", "resourceClaimName": "fabric"},
    ]}));
    let uses = |entry: Value| {
        let pod =
            json!({"metadata": {"name": "p", "namespace": "team-a"}, "spec": {"resourceClaims": [entry]}});
        let used = ResourceClaimUse::all(&serde_json::from_value(pod).unwrap()).remove(0);
        group.has_claim(&used)
    };
    assert!(uses(json!({"name": "gpu", "resourceClaimTemplateName": "gpus"})));
    assert!(uses(json!({"name": "net", "resourceClaimName": "fabric"})));
    for other in [
        json!({"name": "other", "resourceClaimTemplateName": "gpus"}),
        json!({"name": "gpu", "resourceClaimTemplateName": "other"}),
        json!({"name": "gpu", "resourceClaimName": "gpus"}),
        json!({"name": "net", "resourceClaimName": "other"}),
    ] {
        assert!(!uses(other.clone()), "{other}");
    }
}

#[test]
fn each_pod_clique_of_a_pod_gang_has_its_own_minimum() {
    let clique = |name: &str, size: u32| {
        let labels = json!({"grove.io/podclique": name});
        json!({"name": name, "labelSelector": {"matchLabels": labels}, "matchLabelKeys": ["grove.io/podclique"],
            "subGroupSize": size, "minSubGroups": 1})
    };
    let volcano =
        |policy: Value| read_kind(PodGroupKind::Volcano, &json!({"minMember": 5, "subGroupPolicy": policy}));
    let tasks = BTreeMap::from([("a-prefill".into(), 3), ("a-decode".into(), 2)]);
    let expected = Gang { min: 5, tasks, ..Gang::default() };
    let read = volcano(json!([clique("a-prefill", 3), clique("a-decode", 2)]));
    assert_eq!(read.policy, Policy::Gang(Arc::new(expected)));
    let changed = |field: &str, value: Value| {
        let mut one = clique("a", 1);
        one[field] = value;
        unserved(volcano(json!([one])))
    };
    let expected = "spec.subGroupPolicy[a] is not served: Berth reads parts that select the pods of one PodClique by the label \
        grove.io/podclique, without HyperNodes";
    for (field, value) in [
        ("labelSelector", json!({"matchLabels": {"app": "a"}})),
        ("matchLabelKeys", json!(["rack"])),
        ("minSubGroups", json!(2)),
        ("networkTopology", json!({"mode": "hard", "highestTierAllowed": 1})),
    ] {
        assert_eq!(changed(field, value), expected, "{field}");
    }
    let pod = json!({"metadata": {"name": "p", "namespace": "team-a",
        "annotations": {"scheduling.k8s.io/group-name": "a"}, "labels": {"grove.io/podclique": "a-decode"}}});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    assert_eq!(member(&pod).unwrap().task.as_deref(), Some("a-decode"));
}

#[test]
fn the_condition_is_read_by_the_name_that_each_version_has_for_it() {
    let stated = |kind: PodGroupKind, name: &str, status: &str, reason: &str| {
        let condition = json!({"type": name, "status": status, "reason": reason, "message": "why",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let group = json!({"metadata": {"name": "train", "namespace": "team-a", "uid": "u"},
            "status": {"conditions": [condition]}});
        let group = pod_group(kind, &serde_json::from_value(group).unwrap());
        let Object::PodGroup(_, _, group) = group else { panic!("{group:?}") };
        group.status.stated.as_ref().map(|(condition, _)| condition.outcome)
    };
    let (new, alpha) = (PodGroupKind::Kubernetes, PodGroupKind::KubernetesAlpha);
    let (of_new, of_alpha) = ("PodGroupInitiallyScheduled", "PodGroupScheduled");
    assert_eq!(stated(new, of_new, "True", "Scheduled"), Some(GroupOutcome::Scheduled));
    assert_eq!(stated(alpha, of_alpha, "False", "Unschedulable"), Some(GroupOutcome::Unschedulable));
    assert_eq!(stated(new, of_new, "False", "SchedulerError"), Some(GroupOutcome::Error));
    assert_eq!(stated(new, of_new, "False", "Scheduled"), None);
    assert_eq!(stated(new, of_alpha, "True", "Scheduled"), None);
    assert_eq!(stated(alpha, of_new, "True", "Scheduled"), None);
}
