//! Namespaces that give Berth all their pods: never kube-system, whatever its label says.

use berth::{
    admission::{
        AdmissionStage, Facts, Operation, Request, Verdict,
        namespace_pods::{LABEL, are_given},
        review,
    },
    config::Config,
    object::{Metadata, Pod},
};
use serde_json::json;

#[test]
fn no_pod_of_kube_system_is_given_away() {
    let config = Config::default();
    let facts = Facts::new(config.admission_settings(), config.dialects());
    let pod: Pod = serde_json::from_value(json!({"spec": {"containers": [{"name": "c"}]}})).unwrap();
    let adopt = |namespace| {
        let request =
            Request { stage: AdmissionStage::Adopt, operation: Operation::Create, namespace, pod: &pod };
        review(&request, &facts)
    };
    assert!(matches!(adopt("web"), Verdict::Admitted { patch, .. } if patch.len() == 1));
    assert_eq!(adopt("kube-system"), Verdict::Ignored);
}

#[test]
fn a_namespace_gives_all_its_pods_by_one_value_of_its_label() {
    let gives = |name: &str, value: &str| {
        let namespace = json!({"name": name, "labels": {LABEL: value}});
        are_given(&serde_json::from_value::<Metadata>(namespace).unwrap())
    };
    assert!(gives("web", "all"));
    assert!(!gives("web", "none") && !gives("web", "") && !gives("kube-system", "all"));
}

#[test]
fn a_pod_that_exists_keeps_its_scheduler() {
    let config = Config::default();
    let facts = Facts::new(config.admission_settings(), config.dialects());
    let pod: Pod = serde_json::from_value(json!({"spec": {"containers": [{"name": "c"}]}})).unwrap();
    let operation = Operation::Update(&Pod::default());
    let request = Request { stage: AdmissionStage::Adopt, operation, namespace: "web", pod: &pod };
    assert_eq!(review(&request, &facts), Verdict::Ignored);
}
