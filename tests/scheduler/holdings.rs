//! What others wrote on pods: charged as far as it can be read, never passed over, and told where it can't be true.

use berth::{config::Config, scheduling::Effect};
use serde_json::{Value, json};

use super::machine::{Machine, bound, node, pod};

const REGISTER: &str = "hami.io/node-nvidia-register";

fn card(id: &str, index: u32) -> Value {
    json!({"id": id, "index": index, "count": 10, "devmem": 16000, "devcore": 100, "type": "NVIDIA A100", "mode": "hami-core", "health": true})
}

fn hami_node(cards: &[Value]) -> Value {
    node("n1", &json!({REGISTER: json!(cards).to_string()}))
}

fn share(name: &str, memory: u32) -> Value {
    pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string()}))
}

fn holding(name: &str, devices: &str) -> Value {
    let annotations = json!({
        "hami.io/vgpu-node": "n1", "hami.io/bind-phase": "success", "hami.io/vgpu-devices-allocated": devices,
    });
    bound(share(name, 1000), "n1", annotations)
}

fn volcano_holding(name: &str, devices: &str) -> Value {
    let annotations = json!({
        "volcano.sh/vgpu-node": "n1", "volcano.sh/bind-phase": "success", "volcano.sh/vgpu-ids-new": devices,
    });
    bound(pod(name, &json!({"volcano.sh/vgpu-number": "1"})), "n1", annotations)
}

fn told(effects: &[Effect]) -> Vec<(&str, &str)> {
    let told = effects.iter().filter_map(|effect| match effect {
        Effect::TellExcess { pod, message, .. } => Some((&*pod.name, message.as_str())),
        _ => None,
    });
    told.collect()
}

fn reported(effects: &[Effect]) -> Vec<usize> {
    let reported = effects.iter().filter_map(|effect| match effect {
        Effect::ReportExcess { cards, .. } => Some(cards.len()),
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
    let words = "more is held of card GPU-a of node n1 than there is: 19000 MiB of 16000 MiB";
    assert_eq!(told(&effects), [("one", words), ("two", words)]);
    assert_eq!(reported(&effects), [1]);
    machine.show_pod(&pods[0]);
    machine.show_pod(&share("waiting", 1000));
    let (effects, placed) = machine.run();
    assert_eq!((told(&effects), reported(&effects), placed), (vec![], vec![], vec![]));
    machine.tell(berth::scheduling::Event::PodGone("one".into()));
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
    machine.tell(berth::scheduling::Event::NodeGone("n1".into()));
    machine.show_node(&hami_node(&[card("GPU-a", 0)]));
    assert_eq!((machine.run().1, used(&machine)), (vec![], 12000));
}

#[test]
fn a_lock_that_nobody_can_read_is_told_and_taken_over() {
    let mut locked = hami_node(&[card("GPU-a", 0)]);
    locked["metadata"]["annotations"]["hami.io/mutex.lock"] = json!("whenever");
    let (_, troubles) = Config::default().reader().node(&serde_json::from_value(locked.clone()).unwrap());
    let told: Vec<_> = troubles.iter().map(ToString::to_string).collect();
    let words = "metadata.annotations[hami.io/mutex.lock]: `whenever` says neither since when nor by whom it is held: it is taken over";
    assert_eq!(told, [words]);
    let mut machine = Machine::new(&Config::default(), &[locked], &[share("next", 1000)]);
    assert_eq!(machine.run().1.len(), 1);
}
