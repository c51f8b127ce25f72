//! What a pod holds may be long; what is told of it is short, and told once.

use berth::{
    cluster::write::tell::condition_text,
    config::Config,
    excerpt,
    scheduling::{Details, Effect},
};
use serde_json::{Value, json};

use super::machine::{Machine, node, pod};

/// Why the pod waits, as often as that is to be written: a condition that says just this is not.
fn told(machine: &mut Machine) -> Vec<String> {
    let written = machine.settle().into_iter().filter_map(|effect| {
        let Effect::TellUnschedulable { told, reason, .. } = effect else { return None };
        let message = condition_text(&reason, Details::Full).0;
        (told.as_ref() != Some(&message)).then_some(message)
    });
    written.collect()
}

#[test]
fn a_pod_full_of_unreadable_amounts_gets_one_short_condition() {
    let mut pod = pod("p", &json!({}));
    let container = |at: u32| json!({"name": format!("c{at}"), "resources": {"limits": {"nvidia.com/gpu": "x".repeat(1000)}}});
    pod["spec"]["containers"] = (0..1000).map(container).collect::<Vec<Value>>().into();
    let mut machine = Machine::new(&Config::default(), &[node("n1", &json!({}))], &[pod.clone()]);
    let [message] = &told(&mut machine)[..] else { panic!("one condition") };
    assert!(message.len() <= excerpt::SUMMARY + excerpt::NOTE, "{} bytes", message.len());
    assert!(
        message.starts_with("Pod's GPU request can't be read: ") && message.ends_with(" more characters)")
    );
    let mut restarted = pod;
    restarted["status"]["conditions"] =
        json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]);
    let mut machine = Machine::new(&Config::default(), &[node("n1", &json!({}))], &[restarted]);
    assert_eq!(told(&mut machine), [""; 0], "the condition says just that");
}
