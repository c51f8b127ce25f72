//! Nodes that their operator keeps for shares (`berth.dev/shares-only: "true"`): a pod without a share goes elsewhere, or waits.

use berth::{
    config::Config,
    scheduling::{Event, ObjectChange, model::kind::Kind, world::object::Object},
};
use serde_json::{Value, json};

use super::{
    device_claims::slice,
    machine::{Machine, node, parsed, pod, told},
};

const REGISTER: &str = "GPU-a,10,16000,100,NVIDIA A100,0,true,0,hami-core:";

/// A node with a card and an FPGA, and with this value of the label.
fn labelled(name: &str, shares_only: &str) -> Value {
    let mut node = node(name, &json!({"hami.io/node-nvidia-register": REGISTER}));
    node["metadata"]["labels"] = json!({"berth.dev/shares-only": shares_only});
    node["status"]["allocatable"]["example.com/fpga"] = json!("4");
    node
}

fn begin(nodes: &[Value]) -> Machine {
    let mut machine = Machine::new(&Config::default(), nodes, &[]);
    for kind in Kind::DEVICE_CLAIMS {
        machine.tell(Event::Object(ObjectChange::Listed(*kind, Vec::new())));
    }
    machine
}

fn without_a_share() -> Value {
    pod("plain", &json!({"example.com/fpga": "1"}))
}

#[test]
fn a_pod_without_a_share_goes_to_no_node_that_is_kept_for_shares() {
    let mut machine = begin(&[labelled("n1", "true"), labelled("n2", "false")]);
    machine.show_pod(&without_a_share());
    assert_eq!(machine.run().1, [("plain".to_owned(), "n2".to_owned())]);

    let mut machine = begin(&[labelled("n1", "true")]);
    machine.show_pod(&pod("share", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"})));
    assert_eq!(machine.run().1, [("share".to_owned(), "n1".to_owned())]);
}

#[test]
fn it_waits_until_the_label_is_gone() {
    let mut machine = begin(&[labelled("n1", "true")]);
    machine.show_pod(&without_a_share());
    let (effects, bound) = machine.run();
    assert_eq!(bound, []);
    let words = "0/1 nodes are available: 1 node(s) were reserved for Pods with a GPU share.";
    assert_eq!(told(&effects, "plain"), words);
    machine.show_node(&labelled("n1", "false"));
    assert_eq!(machine.run().1, [("plain".to_owned(), "n1".to_owned())]);
}

#[test]
fn devices_by_claim_are_a_share() {
    let mut machine = begin(&[labelled("n1", "true")]);
    let class = json!({"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}});
    machine.tell(Event::Object(ObjectChange::Seen(Object::DeviceClass(parsed(&class)))));
    machine.tell(slice("n1", 1));
    machine.show_pod(&pod("claiming", &json!({"example.com/gpu": "1"})));
    let (effects, _) = machine.run();
    assert_eq!(told(&effects, "claiming"), "", "it is being placed");
}
