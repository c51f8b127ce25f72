//! Pods that request no share, and shares without a count: what admission and the binder answer, in every dialect.

use berth::{
    admission::{AdmissionStage, Facts, Operation, Request, Verdict, review, rules},
    config::Config,
    device::{Allocation, Dimension},
    dialect::{Dialect, MissingCount},
    object::Pod,
    scheduling::{Effect, Event, ObjectChange, model::kind::Kind},
};
use serde_json::{Map, Value, json};

use super::machine::{Machine, pod};

/// Every family, and each set of Volcano's modes that may be enabled together.
const SETTINGS: [&str; 2] = [
    "dialects:\n  hami: {cambricon: {}, amd: {}, biren: {}, enable-iluvatar: true, enable-ascend: true}\n",
    "dialects:\n  volcano: {arguments: {deviceshare.VGPUEnable: false, deviceshare.GPUSharingEnable: true}}\n",
];

fn config(settings: &str) -> Config {
    Config::parse(settings, "berth.yaml").unwrap().0
}

fn verdict(config: &Config, stage: AdmissionStage, pod: &Value) -> Verdict {
    let facts = Facts::new(config.admission_settings(), config.dialects());
    let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
    review(&Request { stage, operation: Operation::Create, namespace: "default", pod: &pod }, &facts)
}

/// What a binder does first that knows one node without cards and this pod.
fn settled(config: &Config, pod: &Value) -> Vec<Effect> {
    let node = json!({"metadata": {"name": "n1", "uid": "n1", "resourceVersion": "1"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}});
    let mut machine = Machine::new(config, &[node], std::slice::from_ref(pod));
    for kind in Kind::DEVICE_CLAIMS {
        machine.tell(Event::Object(ObjectChange::Listed(*kind, Vec::new())));
    }
    machine.settle()
}

/// What the pod is bound with, without a lock.
fn bound_with(config: &Config, pod: &Value) -> Vec<Allocation> {
    let effects = settled(config, pod);
    let [Effect::Bind { allocations, .. }] = &effects[..] else { panic!("{pod}: {effects:?}") };
    allocations.clone()
}

/// The pod's condition, where the binder places it nowhere.
fn condition(config: &Config, pod: &Value) -> String {
    let effects = settled(config, pod);
    let [Effect::TellUnschedulable { reason, .. }] = &effects[..] else { panic!("{pod}: {effects:?}") };
    reason.message().full
}

fn count(dialect: &dyn Dialect) -> Option<String> {
    let counted = dialect.counted().into_iter().find(|counted| counted.dimension == Dimension::Cards);
    counted.map(|counted| counted.resource.to_owned())
}

/// Limits of one container that come to no share: each resource with 0, all of them, and those that only describe a share with 1.
fn nothing(dialect: &dyn Dialect) -> Vec<Value> {
    let resources = dialect.resources();
    let amount = |resource: &str| if dialect.qualifies(resource) { "1" } else { "0" };
    let one = |resource: &&str| json!({*resource: amount(resource)});
    let all: Map<_, _> =
        resources.iter().map(|resource| ((*resource).to_owned(), amount(resource).into())).collect();
    let spelled = json!({resources[0]: "0Ki"});
    resources.iter().map(one).chain([all.into(), spelled]).collect()
}

#[test]
fn a_pod_whose_amounts_are_all_0_is_left_as_it_is() {
    for config in SETTINGS.map(config) {
        for dialect in config.dialects().iter() {
            for limits in nothing(dialect.as_ref()) {
                let mut ours = pod("none", &limits);
                let mut others = ours.clone();
                others["spec"].as_object_mut().unwrap().remove("schedulerName");
                let mut requested = others.clone();
                requested["spec"]["containers"][0]["resources"] =
                    json!({"limits": limits, "requests": limits});
                let mut init = others.clone();
                init["spec"]["initContainers"] = others["spec"]["containers"].clone();
                init["spec"]["containers"] = json!([{"name": "main"}]);
                for pod in [&ours, &others, &requested, &init] {
                    for stage in [AdmissionStage::Mutate, AdmissionStage::Validate] {
                        assert_eq!(verdict(&config, stage, pod), Verdict::Ignored, "{stage:?} {pod}");
                    }
                    let read: Pod = serde_json::from_value(pod.clone()).unwrap();
                    for missing in [MissingCount::Default, MissingCount::Refuse] {
                        assert_eq!(dialect.request(&read, missing), Ok(None), "{pod}");
                    }
                }
                assert_eq!(bound_with(&config, &ours), [], "{ours}");
                ours["metadata"]["labels"] = json!({"berth.dev/admission": "ignore"});
                assert_eq!(verdict(&config, AdmissionStage::Validate, &ours), Verdict::Ignored);
            }
        }
    }
}

#[test]
fn a_pod_that_names_berth_is_placed_whatever_it_asks() {
    let config = Config::default();
    assert_eq!(bound_with(&config, &pod("plain", &json!({"cpu": "1"}))), []);
    let told = condition(&config, &pod("large", &json!({"cpu": "100"})));
    assert!(told.starts_with("0/1 nodes are available: 1 Insufficient cpu."), "{told}");
}

#[test]
fn a_container_with_0_beside_one_with_a_share_changes_nothing_of_it() {
    let config = Config::default();
    let zero = json!({"name": "log", "resources": {"limits": {"nvidia.com/gpu": "0", "volcano.sh/vgpu-number": "0"}}});
    let mut both = pod("both", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"}));
    both["spec"]["containers"].as_array_mut().unwrap().push(zero);
    let Verdict::Admitted { patch, .. } = verdict(&config, AdmissionStage::Mutate, &both) else {
        panic!("{both}")
    };
    let changed = serde_json::to_value(&patch).unwrap();
    assert!(!changed.to_string().contains("/containers/1/resources"), "{changed}");
    let read: Pod = serde_json::from_value(both).unwrap();
    let (dialects, mode) = (config.dialects(), "hami");
    let (dialect, request) = dialects.request(&read).unwrap().unwrap();
    assert_eq!(dialect.mode().to_string(), mode);
    assert_eq!(request.containers.iter().filter(|container| container.share.is_some()).count(), 1);
}

/// A share of this dialect that states no count.
fn countless(dialect: &dyn Dialect) -> Vec<Value> {
    dialect.share_resources().into_iter().map(|resource| json!({resource: "30"})).collect()
}

#[test]
fn a_stored_pod_without_a_count_is_placed_nowhere_and_told_the_rule() {
    let config = config(SETTINGS[0]);
    for dialect in config.dialects().iter() {
        let Some(count) = count(dialect.as_ref()) else { continue };
        for limits in countless(dialect.as_ref()) {
            let mut bare = pod("bare", &limits);
            let (name, _) = limits.as_object().unwrap().iter().next().unwrap();
            let field = format!("spec.containers[0].resources.limits[{name}]");
            let message = format!("a share without a number of cards; add `{count}: 1`");
            assert_eq!(
                condition(&config, &bare),
                format!("Pod's GPU request can't be read: {field}: {message} (count-missing)")
            );
            bare["metadata"]["labels"] = json!({"berth.dev/admission": "ignore"});
            for stage in [AdmissionStage::Mutate, AdmissionStage::Validate] {
                let refused = verdict(&config, stage, &bare);
                let Verdict::Denied { violations, .. } = refused else { panic!("{bare}: {refused:?}") };
                let told: Vec<_> =
                    violations.iter().map(|found| (found.rule, &*found.field, &*found.message)).collect();
                assert_eq!(told, [(rules::COUNT_MISSING, &*field, &*message)]);
            }
            bare["spec"]["schedulerName"] = json!("volcano");
            let others = verdict(&config, AdmissionStage::Validate, &bare);
            let left_alone = dialect.default_count().is_some();
            assert_eq!(matches!(others, Verdict::Admitted { .. }), left_alone, "{others:?}");
        }
    }
}

#[test]
fn admission_adds_the_count_that_the_binder_then_reads() {
    let config = config(SETTINGS[0]);
    for dialect in config.dialects().iter().filter(|dialect| dialect.default_count().is_some()) {
        for limits in countless(dialect.as_ref()) {
            let mut pod = pod("bare", &limits);
            let admitted = verdict(&config, AdmissionStage::Mutate, &pod);
            let Verdict::Admitted { patch, .. } = admitted else { panic!("{pod}: {admitted:?}") };
            json_patch::patch(&mut pod, &patch).unwrap();
            let read: Pod = serde_json::from_value(pod.clone()).unwrap();
            assert!(config.dialects().request(&read).unwrap().is_some(), "{pod}");
        }
    }
}
