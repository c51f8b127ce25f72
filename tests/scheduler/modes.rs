//! One pod, one mode: two would need the locks and the answers of two plugins at once.

use berth::{
    admission::{AdmissionStage, Facts, Operation, Request, Verdict, review, rules},
    config::Config,
    object::Pod,
    scheduling::Effect,
};
use serde_json::{Value, json};

use super::machine::{Machine, counted, node, pod};

/// Every family, under every lock that there is.
const SETTINGS: &str = "dialects:\n  hami: {cambricon: {}, amd: {}, biren: {}, enable-iluvatar: true, enable-ascend: true}\n  \
                        volcano: {arguments: {deviceshare.NodeLockEnable: true}}\n";

/// A card of this resource, with what its plugin wants beside it.
fn one(resource: &str) -> Value {
    if resource == "cambricon.com/vmlu" {
        return json!({resource: "1", "cambricon.com/mlu.smlu.vcore": "10", "cambricon.com/mlu.smlu.vmemory": "8"});
    }
    json!({resource: "1"})
}

/// A pod whose containers ask for a card each, of these resources.
fn asking(resources: [&str; 2]) -> Value {
    let mut both = pod("both", &one(resources[0]));
    let other = json!({"name": "other", "resources": {"limits": one(resources[1])}});
    both["spec"]["containers"].as_array_mut().unwrap().push(other);
    both
}

#[test]
fn a_pod_that_asks_in_two_modes_is_denied_and_where_it_was_not_asked_about_placed_nowhere() {
    let (config, _) = Config::parse(SETTINGS, "berth.yaml").unwrap();
    let (dialects, facts) = (config.dialects(), Facts::new(config.admission_settings(), config.dialects()));
    let counts: Vec<_> = dialects.iter().map(|dialect| dialect.resources()[0].to_owned()).collect();
    let locks: std::collections::BTreeSet<_> =
        dialects.iter().flat_map(|dialect| dialect.locks()).map(|lock| lock.key.clone()).collect();
    assert!(counts.len() > 10 && locks.len() > 2, "{counts:?} {locks:?}");
    let pairs = counts.iter().flat_map(|one| counts.iter().map(move |other| [one.as_str(), other.as_str()]));
    for pair in pairs.filter(|[one, other]| one != other) {
        let both: Pod = serde_json::from_value(asking(pair)).unwrap();
        let (stage, operation) = (AdmissionStage::Validate, Operation::Create);
        let verdict = review(&Request { stage, operation, namespace: "default", pod: &both }, &facts);
        let Verdict::Denied { violations, .. } = &verdict else { panic!("{pair:?}: {verdict:?}") };
        assert!(violations.iter().any(|violation| violation.rule == rules::MODE_CONFLICT), "{violations:?}");
        let refused = dialects.request(&both).map(|_| ()).unwrap_err();
        assert!(refused[0].message.ends_with("a pod may use one mode only"), "{pair:?}: {refused:?}");
    }
}

#[test]
fn a_pod_that_asks_under_two_locks_takes_neither_and_is_told_why() {
    let (config, _) = Config::parse(SETTINGS, "berth.yaml").unwrap();
    let card = json!([{"id": "GPU-a", "count": 10, "devmem": 16000, "devcore": 100, "type": "NVIDIA A100", "health": true}]);
    let mut serving = node("n1", &json!({"hami.io/node-nvidia-register": card.to_string()}));
    let amounts = json!({"cambricon.com/mlu.smlu.vcore": "100", "cambricon.com/mlu.smlu.vmemory": "64"});
    serving["status"]["capacity"] = amounts;
    let alone = ["nvidia.com/gpu", "cambricon.com/vmlu"].map(|name| pod("alone", &one(name)));
    for alone in alone {
        let mut machine = Machine::new(&config, std::slice::from_ref(&serving), &[alone]);
        assert_eq!(machine.run().1.len(), 1, "the node serves either");
    }
    let both = asking(["nvidia.com/gpu", "cambricon.com/vmlu"]);
    let effects = Machine::new(&config, &[serving], &[both]).settle();
    let words = "Pod's GPU request can't be read: spec.containers[1].resources.limits[cambricon.com/mlu.smlu.vcore]: asks in mode hami-mlu beside \
                 mode hami; a pod may use one mode only (unserved)";
    assert!(
        matches!(&effects[..], [Effect::TellUnschedulable { reason, .. }] if counted(reason) == words),
        "{effects:?}"
    );
}

#[test]
fn resources_of_a_vendors_plugin_beside_koordinators_are_one_mode() {
    let (config, _) = Config::parse(SETTINGS, "berth.yaml").unwrap();
    let facts = Facts::new(config.admission_settings(), config.dialects());
    let denied = |plugin: &[(&str, &str)]| {
        let mut limits = json!({"koordinator.sh/gpu-core": "10", "koordinator.sh/gpu-memory": "1Gi"});
        for (name, amount) in plugin {
            limits[*name] = json!(amount);
        }
        let read: Pod = serde_json::from_value(pod("both", &limits)).unwrap();
        let (stage, operation) = (AdmissionStage::Validate, Operation::Create);
        match review(&Request { stage, operation, namespace: "default", pod: &read }, &facts) {
            Verdict::Denied { violations, .. } => {
                Some(violations.iter().map(|one| one.message.as_str()).collect::<Vec<_>>().join("; "))
            }
            _ => None,
        }
    };
    let mlu = [("cambricon.com/mlu.smlu.vcore", "10"), ("cambricon.com/mlu.smlu.vmemory", "4")];
    assert_eq!(denied(&mlu), None);
    assert_eq!(denied(&[("metax-tech.com/sgpu", "1")]), None);
    assert!(denied(&mlu[..1]).unwrap().contains("add `cambricon.com/mlu.smlu.vmemory`"));
    // A count of MLUs is asked of HAMi's dialect.
    let counted = [mlu[0], mlu[1], ("cambricon.com/vmlu", "1")];
    assert!(denied(&counted).unwrap().contains("a pod may use one mode only"));
    assert!(denied(&[("metax-tech.com/vcore", "1")]).unwrap().contains("a pod may use one mode only"));
}
