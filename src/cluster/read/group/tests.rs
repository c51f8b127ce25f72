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

fn composite(spec: &Value) -> Group {
    read_kind(PodGroupKind::Composite, spec)
}

#[test]
fn a_group_of_groups_asks_for_so_many_of_its_groups_and_names_the_one_that_it_is_in() {
    let gang = composite(&json!({"parentCompositePodGroupName": "all",
        "schedulingPolicy": {"gang": {"minGroupCount": 2}},
        "schedulingConstraints": {"topology": [{"key": "zone"}]}, "disruptionMode": {"all": {}}, "priority": 7}));
    let topology = SharedTopology { key: "zone".into(), strictness: Strictness::Required };
    let expected = Gang { min: 2, topology: Some(topology), ..Gang::default() };
    assert_eq!(gang.policy, Policy::Gang(Arc::new(expected)));
    assert_eq!(gang.parent.as_deref(), Some("team-a/all"));
    assert_eq!((gang.preemption.disruption, gang.preemption.priority), (DisruptionMode::All, Some(7)));
    let one = Policy::Gang(Arc::new(Gang { min: 1, ..Gang::default() }));
    let basic = composite(&json!({"schedulingPolicy": {"basic": {}}}));
    assert_eq!((basic.policy, basic.parent), (one.clone(), None), "one of its groups is enough");
    let leaf = |policy: Value| {
        let leaf = kubernetes(&json!({"parentCompositePodGroupName": "all", "schedulingPolicy": policy}));
        (leaf.policy, leaf.parent)
    };
    let parent = Some("team-a/all".into());
    assert_eq!(leaf(json!({"basic": {}})), (one, parent.clone()), "one of its pods is enough");
    let two = Policy::Gang(Arc::new(Gang { min: 2, ..Gang::default() }));
    assert_eq!(leaf(json!({"gang": {"minCount": 2}})), (two, parent));
    let of_volcano = json!({"minMember": 2, "parentCompositePodGroupName": "all"});
    assert_eq!(read_kind(PodGroupKind::Volcano, &of_volcano).parent, None, "it is no field of Volcano's");
}

#[test]
fn what_can_not_be_served_of_a_group_of_groups_is_named() {
    assert_eq!(
        unserved(composite(&json!({"schedulingPolicy": {"gang": {"minGroupCount": 0}}}))),
        "spec.schedulingPolicy.gang.minGroupCount must be above 0"
    );
    let two = json!({"schedulingConstraints": {"topology": [{"key": "zone"}, {"key": "rack"}]}});
    assert_eq!(unserved(composite(&two)), "spec.schedulingConstraints.topology has more than one key");
    let annotated = |kind: PodGroupKind, spec: Value, mark: &str| {
        let metadata = json!({"name": "train", "namespace": "team-a", "annotations": {mark: "1"}});
        let group = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
        let Object::PodGroup(_, _, group) = pod_group(kind, &group) else { panic!("{group:?}") };
        Arc::unwrap_or_clone(group)
    };
    let of_tree = json!({"parentCompositePodGroupName": "all"});
    for mark in ["berth.dev/max-members", "berth.dev/preferred-topology"] {
        let expected = format!(
            "metadata.annotations[{mark}] is not served for CompositePodGroups and the groups in them"
        );
        assert_eq!(unserved(annotated(PodGroupKind::Composite, json!({}), mark)), expected);
        assert_eq!(unserved(annotated(PodGroupKind::Kubernetes, of_tree.clone(), mark)), expected);
        assert_eq!(annotated(PodGroupKind::Kubernetes, json!({}), mark).policy, Policy::Alone);
    }
}

#[test]
fn the_kind_of_a_group_follows_from_its_api_and_its_kind() {
    let of_kubernetes = "scheduling.k8s.io/v1alpha3";
    assert_eq!(kind(of_kubernetes, "CompositePodGroup"), Some(PodGroupKind::Composite));
    assert_eq!(kind(of_kubernetes, "PodGroup"), Some(PodGroupKind::Kubernetes));
    assert_eq!(kind(&format!("{}/v1beta1", marks::GROUPS_API), "CompositePodGroup"), None);
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
    let (new, older) = (PodGroupKind::Kubernetes, PodGroupKind::KubernetesAlpha3);
    let alpha = PodGroupKind::KubernetesAlpha2;
    let (of_new, of_alpha) = ("PodGroupInitiallyScheduled", "PodGroupScheduled");
    assert_eq!(stated(new, of_new, "True", "Scheduled"), Some(GroupOutcome::Scheduled));
    assert_eq!(stated(older, of_new, "True", "Scheduled"), Some(GroupOutcome::Scheduled));
    assert_eq!(stated(older, of_alpha, "True", "Scheduled"), None);
    assert_eq!(stated(alpha, of_alpha, "False", "Unschedulable"), Some(GroupOutcome::Unschedulable));
    assert_eq!(stated(new, of_new, "False", "SchedulerError"), Some(GroupOutcome::Error));
    assert_eq!(stated(new, of_new, "False", "Scheduled"), None);
    assert_eq!(stated(new, of_alpha, "True", "Scheduled"), None);
    assert_eq!(stated(alpha, of_new, "True", "Scheduled"), None);
}
