//! What others wrote on pods: charged as far as it can be read, never passed over, and told where it can't be true.

use berth::{
    config::Config,
    scheduling::{Concern, Effect, Event, Finding, NodeChange, PodChange},
};
use serde_json::{Value, json};

use super::machine::{Machine, bound, counted, node, pod, without_nearest};

const REGISTER: &str = "hami.io/node-nvidia-register";

fn card(id: &str, index: u32) -> Value {
    json!({"id": id, "index": index, "count": 10, "devmem": 16000, "devcore": 100, "type": "NVIDIA A100", "mode": "hami-core", "health": true})
}

pub(crate) fn hami_node(cards: &[Value]) -> Value {
    node("n1", &json!({REGISTER: json!(cards).to_string()}))
}

pub(crate) fn share(name: &str, memory: u32) -> Value {
    pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string()}))
}

pub(crate) fn holding(name: &str, devices: &str) -> Value {
    let annotations = json!({
        "hami.io/vgpu-node": "n1", "hami.io/bind-phase": "success", "hami.io/vgpu-devices-allocated": devices,
    });
    bound(share(name, 1000), "n1", annotations)
}

pub(crate) fn volcano_holding(name: &str, devices: &str) -> Value {
    let annotations = json!({
        "volcano.sh/vgpu-node": "n1", "volcano.sh/bind-phase": "success", "volcano.sh/vgpu-ids-new": devices,
    });
    bound(pod(name, &json!({"volcano.sh/vgpu-number": "1"})), "n1", annotations)
}

pub(crate) fn told(effects: &[Effect]) -> Vec<(&str, String)> {
    let told = effects.iter().filter_map(|effect| match effect {
        Effect::ReportFinding { of: Concern::Pod(pod), finding: Finding::Overcommitted(found) } => {
            Some((&*pod.name, found.to_string()))
        }
        _ => None,
    });
    told.collect()
}

pub(crate) fn reported(effects: &[Effect]) -> Vec<usize> {
    let reported = effects.iter().filter_map(|effect| match effect {
        Effect::CountFindings { findings, .. } => Some(findings.overcommitted.len()),
        _ => None,
    });
    reported.collect()
}

#[test]
fn more_than_a_card_has_is_told_once_and_taken_back_when_it_ends() {
    let nodes = [hami_node(&[card("GPU-a", 0)])];
    let pods = [holding("one", "GPU-a,NVIDIA,10000,0:;"), holding("two", "GPU-a,NVIDIA,9000,0:;")];
    let mut machine = Machine::new(&Config::default(), &nodes, &pods);
    let effects = machine.run().0;
    let words = "Pods hold more of card GPU-a on node n1 than it has: 19000 MiB of 16000 MiB";
    assert_eq!(told(&effects), [("one", words.to_owned()), ("two", words.to_owned())]);
    assert_eq!(reported(&effects), [1]);
    machine.show_pod(&pods[0]);
    machine.show_pod(&share("waiting", 1000));
    let (effects, placed) = machine.run();
    assert_eq!((told(&effects), reported(&effects), placed), (vec![], vec![], vec![]));
    machine.tell(Event::Pod(PodChange::Gone("one".into())));
    let (effects, placed) = machine.run();
    assert_eq!((reported(&effects), placed.len()), (vec![0], 1));
}

#[test]
fn pods_of_two_dialects_on_one_card_are_summed() {
    let mut both = hami_node(&[card("GPU-a", 0)]);
    both["metadata"]["annotations"]["volcano.sh/node-vgpu-register"] =
        json!("GPU-a,10,16000,NVIDIA-NVIDIA A100,true,hami-core:");
    let pods = [holding("one", "GPU-a,NVIDIA,8000,0:;"), volcano_holding("two", "GPU-a,NVIDIA,7000,0:")];
    let mut machine = Machine::new(&Config::default(), &[both], &pods);
    machine.run();
    machine.show_pod(&share("large", 1001));
    assert_eq!(machine.run().1, []);
    machine.show_pod(&share("small", 1000));
    assert_eq!(machine.run().1.len(), 1);
}

#[test]
fn a_share_of_which_only_the_card_can_be_read_holds_all_of_it() {
    for holding in [
        holding("broken", "GPU-a,NVIDIA,much,0:;"),
        volcano_holding("broken", "GPU-a,NVIDIA,-1,0:"),
        volcano_holding("broken", "GPU-a,NVIDIA:GPU-b,NVIDIA,9000,0:"),
    ] {
        let nodes = [hami_node(&[card("GPU-a", 0), card("GPU-b", 1)])];
        let mut machine = Machine::new(&Config::default(), &nodes, std::slice::from_ref(&holding));
        assert_eq!(reported(&machine.run().0), [1], "{holding}");
        machine.show_pod(&pod("both", &json!({"nvidia.com/gpu": "2", "nvidia.com/gpumem": "1"})));
        assert_eq!(machine.run().1, [], "{holding}");
        machine.show_pod(&share("one", 7000));
        assert_eq!(machine.run().1.len(), 1, "the other card is free: {holding}");
        let state = machine.scheduler().snapshot().node("n1").unwrap().clone();
        assert_eq!(state.usage.card(&"GPU-a".into()).slots, 1, "{holding}");
    }
}

/// What a pod is told whose cards nobody can tell.
fn said_of_unread(effect: &Effect) -> Option<String> {
    match effect {
        Effect::ReportFinding { finding: finding @ Finding::Unread(_), .. } => Some(finding.message().full),
        _ => None,
    }
}

/// Which pods are told that nobody can tell their cards, and for how many a node is listed.
fn unread(effects: &[Effect]) -> (Vec<&str>, Vec<usize>) {
    let told = effects.iter().filter_map(|effect| match effect {
        Effect::ReportFinding { of: Concern::Pod(pod), finding: Finding::Unread(_) } => Some(&*pod.name),
        _ => None,
    });
    let listed = effects.iter().filter_map(|effect| match effect {
        Effect::CountFindings { findings, .. } => Some(findings.unread.len()),
        _ => None,
    });
    (told.collect(), listed.collect())
}

const NO_MEMORY: &str = "0/1 nodes are available: 1 Insufficient GPU memory.";

fn refusals(effects: &[Effect]) -> Vec<String> {
    let refused = effects.iter().filter_map(|effect| match effect {
        Effect::TellUnschedulable { reason, .. } => Some(counted(reason)),
        _ => None,
    });
    refused.collect()
}

#[test]
fn a_card_that_nobody_can_tell_counts_as_the_pod_asks_on_each_card_of_its_node_until_it_can() {
    let words = "metadata.annotations[hami.io/vgpu-devices-allocated]: share `,NVIDIA,1,0` names no card: Berth can't read which \
                 GPUs of node n1 the Pod holds, and counts what the Pod asks for on each of them until this is repaired or the Pod ends";
    for devices in [",NVIDIA,1,0:;", "GPU-a,NVIDIA,1,0:,NVIDIA,1,0:;"] {
        let broken = holding("broken", devices);
        let nodes = [hami_node(&[card("GPU-a", 0), card("GPU-b", 1)])];
        let mut machine = Machine::new(&Config::default(), &nodes, std::slice::from_ref(&broken));
        let effects = machine.run().0;
        let said: Vec<_> = effects
            .iter()
            .filter(|effect| said_of_unread(effect).is_some_and(|said| without_nearest(&said) == words))
            .collect();
        assert_eq!((unread(&effects), said.len()), ((vec!["broken"], vec![1]), 1), "{devices}");
        // It asks for 1000 MiB of the 16000 of a card.
        machine.show_pod(&broken);
        machine.show_pod(&share("large", 15001));
        let (effects, placed) = machine.run();
        assert_eq!(
            (unread(&effects), placed, refusals(&effects)),
            ((vec![], vec![]), vec![], vec![NO_MEMORY.to_owned()]),
            "said once"
        );
        machine.show_pod(&share("next", 14999));
        assert_eq!(machine.run().1.len(), 1, "{devices}");
        machine.show_pod(&holding("broken", "GPU-b,NVIDIA,16000,0:;"));
        assert_eq!(unread(&machine.run().0), (vec![], vec![0]), "mended: {devices}");
    }
}

#[test]
fn an_assignment_that_was_known_counts_as_before_when_it_can_be_read_no_more() {
    let nodes = [hami_node(&[card("GPU-a", 0), card("GPU-b", 1)])];
    let known = holding("known", "GPU-a,NVIDIA,16000,0:;");
    let mut machine = Machine::new(&Config::default(), &nodes, std::slice::from_ref(&known));
    machine.run();
    for _ in 0..2 {
        machine.show_pod(&holding("known", "gibberish"));
    }
    let effects = machine.run().0;
    assert_eq!(unread(&effects), (vec!["known"], vec![1]));
    let said = effects
        .iter()
        .filter_map(said_of_unread)
        .any(|said| said.ends_with("goes by what it could read before"));
    assert!(said, "{effects:?}");
    machine.show_pod(&share("whole", 16000));
    assert_eq!(machine.run().1.len(), 1, "GPU-b is free");
    machine.show_pod(&share("another", 1));
    assert_eq!(machine.run().1, [], "GPU-a is full, and the plugin is at work for the other");
}

#[test]
fn what_an_annotation_says_can_not_make_a_pod_count_for_more_than_its_spec_asks() {
    // The request could not be read either with this annotation.
    let mut broken = holding("broken", "gibberish");
    broken["metadata"]["annotations"]["nvidia.com/numa-bind"] = json!("perhaps");
    broken["metadata"]["annotations"]["hami.io/gpu-scheduler-policy"] = json!("none that there is");
    let nodes = [hami_node(&[card("GPU-a", 0)])];
    let mut machine = Machine::new(&Config::default(), &nodes, &[broken]);
    assert_eq!(unread(&machine.run().0), (vec!["broken"], vec![1]));
    machine.show_pod(&share("next", 15000));
    assert_eq!(machine.run().1.len(), 1);
}

#[test]
fn cards_that_nobody_can_tell_are_of_every_plugin_that_names_them_and_of_no_other() {
    let mut both = hami_node(&[card("GPU-a", 0)]);
    let dcu =
        json!([{"id": "DCU-a", "count": 4, "devmem": 16000, "devcore": 100, "type": "DCU", "health": true}]);
    both["metadata"]["annotations"]["hami.io/node-dcu-register"] = json!(dcu.to_string());
    both["metadata"]["annotations"]["volcano.sh/node-vgpu-register"] =
        json!("GPU-a,10,16000,NVIDIA-NVIDIA A100,true,hami-core:");
    let of_hygon =
        |memory: &str| pod("of-hygon", &json!({"hygon.com/dcunum": "1", "hygon.com/dcumem": memory}));
    for broken in [holding("broken", "gibberish"), volcano_holding("broken", ",NVIDIA,1,0:")] {
        let mut machine =
            Machine::new(&Config::default(), std::slice::from_ref(&both), std::slice::from_ref(&broken));
        machine.run();
        for same in [share("of-hami", 16000), pod("of-volcano", &json!({"volcano.sh/vgpu-number": "1"}))] {
            machine.show_pod(&same);
            let (effects, placed) = machine.run();
            assert_eq!(
                (placed, refusals(&effects)),
                (vec![], vec![NO_MEMORY.to_owned()]),
                "{same} beside {broken}"
            );
        }
        machine.show_pod(&of_hygon("16000"));
        assert_eq!(machine.run().1.len(), 1, "{broken}");
        // What its plugin names no longer may be any card.
        let mut silent = both.clone();
        silent["metadata"]["annotations"]
            .as_object_mut()
            .unwrap()
            .retain(|key, _| key.ends_with("dcu-register"));
        let mut machine = Machine::new(&Config::default(), &[silent], &[broken]);
        machine.show_pod(&of_hygon("16000"));
        assert_eq!(machine.run().1, []);
    }
}

#[test]
fn numbers_and_uuids_of_the_same_cards_count_together() {
    let text = "dialects: {volcano: {arguments: {deviceshare.GPUSharingEnable: true}}}";
    let config = Config::parse(text, "berth.yaml").unwrap().0;
    let mut node = hami_node(&[card("GPU-a", 0), card("GPU-b", 1)]);
    node["status"]["capacity"] = json!({"volcano.sh/gpu-memory": "32000", "volcano.sh/gpu-number": "2"});
    let by_number = |memory: &str| pod("by-number", &json!({"volcano.sh/gpu-memory": memory}));
    let numbered = bound(by_number("1000"), "n1", json!({"volcano.sh/gpu-index": "first"}));
    for (broken, next) in
        [(numbered, share("next", 15001)), (holding("broken", ",NVIDIA,1,0:;"), by_number("15001"))]
    {
        let mut machine = Machine::new(&config, std::slice::from_ref(&node), std::slice::from_ref(&broken));
        machine.run();
        machine.show_pod(&next);
        let (effects, placed) = machine.run();
        assert_eq!(
            (placed, refusals(&effects)),
            (vec![], vec![NO_MEMORY.to_owned()]),
            "{next} beside {broken}"
        );
    }
}

#[test]
fn what_holds_no_card_keeps_nobody_from_a_node() {
    let native = bound(share("native", 1000), "n1", json!({}));
    let empty = holding("empty", ";");
    let asks_for_none = {
        let annotations = json!({"hami.io/vgpu-devices-allocated": "gibberish"});
        bound(pod("asks-for-none", &json!({"cpu": "1"})), "n1", annotations)
    };
    let unbound = {
        let mut unbound = share("unbound", 1000);
        unbound["spec"]["schedulerName"] = json!("hami-scheduler");
        unbound["metadata"]["annotations"] = json!({
            "hami.io/vgpu-node": "n1", "hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,1,0:gibberish;",
        });
        unbound
    };
    let ended = {
        let mut ended = holding("ended", "gibberish");
        ended["status"]["phase"] = json!("Failed");
        ended
    };
    for held in [native, empty, asks_for_none, unbound, ended] {
        let nodes = [hami_node(&[card("GPU-a", 0)])];
        let mut machine = Machine::new(&Config::default(), &nodes, std::slice::from_ref(&held));
        let effects = machine.run().0;
        let (told, listed) = unread(&effects);
        assert!(told.is_empty() && listed.iter().all(|pods| *pods == 0), "{held}: {effects:?}");
        machine.show_pod(&share("next", 1000));
        assert_eq!(machine.run().1.len(), 1, "{held}");
    }
}

#[test]
fn cards_that_a_node_no_longer_names_stay_charged_until_it_names_them_again() {
    let pods = [holding("old", "GPU-a,NVIDIA,12000,0:;")];
    let mut machine = Machine::new(&Config::default(), &[hami_node(&[card("GPU-a", 0)])], &pods);
    machine.run();
    machine.show_node(&hami_node(&[card("GPU-b", 0)]));
    machine.show_pod(&share("whole", 16000));
    assert_eq!(machine.run().1.len(), 1, "the new card is free");
    let used = |machine: &Machine| {
        let state = machine.scheduler().snapshot().node("n1").unwrap().clone();
        state.usage.card(&"GPU-a".into()).memory.get()
    };
    assert_eq!(used(&machine), 12000);
    machine.show_node(&hami_node(&[card("GPU-a", 0)]));
    machine.show_pod(&share("more", 5000));
    assert_eq!(machine.run().1, []);
    machine.tell(Event::Node(NodeChange::Gone("n1".into())));
    machine.show_node(&hami_node(&[card("GPU-a", 0)]));
    assert_eq!((machine.run().1, used(&machine)), (vec![], 12000));
}

#[test]
fn a_lock_that_nobody_can_read_is_told_and_taken_over() {
    let mut locked = hami_node(&[card("GPU-a", 0)]);
    locked["metadata"]["annotations"]["hami.io/mutex.lock"] = json!("whenever");
    let (_, troubles) = Config::default().reader().node(&serde_json::from_value(locked.clone()).unwrap());
    let told: Vec<_> = troubles.iter().map(ToString::to_string).collect();
    let words = "metadata.annotations[hami.io/mutex.lock]: `whenever` has neither a time nor a holder that can be read; Berth takes the lock over";
    assert_eq!(told, [words]);
    let mut machine = Machine::new(&Config::default(), &[locked], &[share("next", 1000)]);
    assert_eq!(machine.run().1.len(), 1);
}

#[test]
fn a_pod_with_a_blank_share_of_an_older_hami_leaves_its_node_to_others() {
    let nodes = [hami_node(&[card("GPU-a", 0)])];
    let pods = [holding("old", "GPU-a,NVIDIA,3000,30:;,,0,0:;")];
    let mut machine = Machine::new(&Config::default(), &nodes, &pods);
    let (effects, _) = machine.run();
    assert_eq!(unread(&effects), (vec![], vec![]));
    machine.show_pod(&share("large", 13_001));
    assert_eq!(machine.run().1, []);
    machine.show_pod(&share("small", 13_000));
    assert_eq!(machine.run().1.len(), 1);
}
