//! Which pods are Berth's to place, by the scheduler that they name.

use std::collections::BTreeSet;

use berth::{
    cluster::Reader,
    config::Config,
    object::Pod,
    scheduling::{
        Claim,
        model::pod::{Binding, Placer},
    },
};
use serde_json::{Value, json};

const SHARE: &str = "nvidia.com/gpu";

fn reader(settings: &str) -> Reader {
    Config::parse(settings, "berth.yaml").unwrap().0.reader()
}

fn pod(scheduler: &str, limits: &Value) -> Pod {
    let containers = json!([{"name": "main", "resources": {"limits": limits}}]);
    serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"schedulerName": scheduler, "containers": containers},
    }))
    .unwrap()
}

fn is_placed(reader: &Reader, pod: &Pod) -> bool {
    let (info, _) = reader.pod(pod);
    let placed = matches!(info.claim, Claim::Place(_));
    assert_eq!(placed, info.placer == Placer::Berth && info.claim != Claim::None, "{:?}", pod.spec);
    placed
}

#[test]
fn share_pods_of_adopted_schedulers_are_placed_and_no_others_of_them() {
    let adopting = reader("adoptSchedulers: [hami-scheduler, volcano, default-scheduler]");
    let share = json!({SHARE: "1"});
    for (name, placed) in [
        ("berth", true),
        ("hami-scheduler", true),
        ("volcano", true),
        ("default-scheduler", false),
        ("batch", false),
    ] {
        assert_eq!(is_placed(&adopting, &pod(name, &share)), placed, "{name}");
    }
    for limits in [json!({}), json!({SHARE: "0"}), json!({"example.com/fpga": "1"})] {
        let (info, _) = adopting.pod(&pod("volcano", &limits));
        assert_eq!(info.claim, Claim::None, "{limits}: another scheduler's pods are not spoken of");
    }
    assert!(!is_placed(&reader(""), &pod("hami-scheduler", &share)));
    assert!(!is_placed(&adopting.adopting(BTreeSet::new()), &pod("hami-scheduler", &share)));
}

#[test]
fn a_decision_holds_cards_while_its_scheduler_runs_and_is_made_anew_once_it_does_not() {
    let adopting = reader("adoptSchedulers: [hami-scheduler]");
    let mut decided = pod("hami-scheduler", &json!({SHARE: "1"}));
    let devices = "GPU-a,NVIDIA,1000,0:;".to_owned();
    let annotations = [("hami.io/vgpu-node", "n1".to_owned()), ("hami.io/vgpu-devices-allocated", devices)];
    decided.metadata.annotations = Some(annotations.map(|(key, value)| (key.to_owned(), value)).into());
    let (info, _) = adopting.pod(&decided);
    assert!(info.holding.is_none() && matches!(info.claim, Claim::Place(_)), "{info:?}");
    let (info, _) = adopting.adopting(BTreeSet::new()).pod(&decided);
    assert_eq!(info.holding.map(|holding| holding.binding), Some(Binding::Intended));
    assert_eq!(info.claim, Claim::None);
}
