//! Cards that Volcano's gpushare knows by number: the same cards as those that another plugin of the node knows by uuid.

use berth::{config::Config, scheduling::Effect};
use serde_json::{Value, json};

use super::machine::{Machine, bound, node, pod};

fn config() -> Config {
    let text = "dialects: {volcano: {arguments: {deviceshare.GPUSharingEnable: true}}}";
    Config::parse(text, "berth.yaml").unwrap().0
}

/// Two cards, of 16000 and of 8000 MiB; their plugins tell numbers and sum, and where `register` is there also uuids and sizes.
fn shared_node(register: Option<Value>) -> Value {
    let annotations = register
        .map_or_else(|| json!({}), |cards| json!({"hami.io/node-nvidia-register": cards.to_string()}));
    let mut node = node("n1", &annotations);
    let amounts = json!({"volcano.sh/gpu-memory": "24000", "volcano.sh/gpu-number": "2"});
    node["status"]["capacity"] = amounts.clone();
    for (name, amount) in amounts.as_object().unwrap() {
        node["status"]["allocatable"][name] = amount.clone();
    }
    node
}

fn register() -> Value {
    let card = |id: &str, index: u32, memory: u32| json!({"id": id, "index": index, "count": 10, "devmem": memory, "devcore": 100, "type": "NVIDIA A100", "health": true});
    json!([card("GPU-b", 1, 8000), card("GPU-a", 0, 16000)])
}

fn blocks(name: &str, memory: u32) -> Value {
    pod(name, &json!({"volcano.sh/gpu-memory": memory.to_string()}))
}

fn hami_holding(name: &str, devices: &str) -> Value {
    let annotations = json!({
        "hami.io/vgpu-node": "n1", "hami.io/bind-phase": "success", "hami.io/vgpu-devices-allocated": devices,
    });
    bound(pod(name, &json!({"nvidia.com/gpu": "1"})), "n1", annotations)
}

/// The cards of the pod's Binding.
fn cards_of(machine: &mut Machine) -> Vec<String> {
    let effects = machine.settle();
    let bindings = effects.iter().filter_map(|effect| match effect {
        Effect::Bind { allocations, .. } => {
            Some(allocations[0].assignment.shares().map(|share| share.card.to_string()))
        }
        _ => None,
    });
    bindings.flatten().collect()
}

#[test]
fn where_another_plugin_tells_their_sizes_those_count() {
    let mut machine = Machine::new(&config(), &[shared_node(Some(register()))], &[blocks("large", 15000)]);
    assert_eq!(cards_of(&mut machine), ["0"]);
    let mut machine = Machine::new(&config(), &[shared_node(None)], &[blocks("large", 15000)]);
    assert_eq!(cards_of(&mut machine), [""; 0], "each is taken to have 12000");
}

#[test]
fn pods_of_both_plugins_are_summed_on_one_card() {
    let held = hami_holding("held", "GPU-a,NVIDIA,12000,0:;");
    let mut machine =
        Machine::new(&config(), &[shared_node(Some(register()))], &[held, blocks("next", 5000)]);
    assert_eq!(cards_of(&mut machine), ["1"], "card 0 is GPU-a, of which 4000 are left");
    let served = json!({"volcano.sh/gpu-index": "1", "volcano.sh/predicate-time": "1", "volcano.sh/gpu-assigned": "true"});
    machine.show_pod(&bound(blocks("next", 5000), "n1", served));
    machine.show_pod(&pod("hami", &json!({"nvidia.com/gpu": "2", "nvidia.com/gpumem": "3001"})));
    assert_eq!(machine.run().1, [], "GPU-b is card 1, of which 3000 are left");
    machine.show_pod(&pod("smaller", &json!({"nvidia.com/gpu": "2", "nvidia.com/gpumem": "3000"})));
    assert_eq!(machine.run().1.len(), 1);
}

#[test]
fn a_number_that_stands_for_several_cards_says_nothing() {
    let mut twice = register();
    twice[0]["index"] = json!(0);
    let held = hami_holding("held", "GPU-a,NVIDIA,12000,0:;");
    let mut machine = Machine::new(&config(), &[shared_node(Some(twice))], &[held, blocks("next", 5000)]);
    assert_eq!(cards_of(&mut machine), ["0"]);
}
