//! Cards that are cut into hardware slices: how many fit, and what each of them counts.

use berth::{
    config::Config,
    scheduling::{Event, NodeChange, QuotaChange},
};
use serde_json::{Value, json};

use super::{
    holdings::{hami_node, holding, reported, share, told, volcano_holding},
    machine::{Machine, node, parsed, pod},
};

/// An A100 of 40 GB as HAMi's plugin registers it; compute is rounded up.
fn mig_card(id: &str) -> Value {
    let places: Vec<_> = (0..7).map(|start| json!({"start": start, "size": 1})).collect();
    let profile =
        json!({"name": "1g.5gb", "memoryMB": 4864, "core": 15, "sliceCount": 1, "placements": places});
    json!({"id": id, "count": 7, "devmem": 40960, "devcore": 100, "type": "NVIDIA A100-SXM4-40GB", "mode": "mig",
        "migProfiles": [profile], "health": true})
}

#[test]
fn seven_slices_that_hami_has_placed_are_no_excess() {
    let nodes = [hami_node(&[mig_card("GPU-a")])];
    let slice = |start: u32| {
        let mut pod = holding(&format!("slice-{start}"), "GPU-a,NVIDIA,4864,15:;");
        let entry = json!({"containerIndex": 0, "deviceIndex": 0, "gpuUUID": "GPU-a", "profile": "1g.5gb",
            "placement": {"start": start, "size": 1}});
        pod["metadata"]["annotations"]["hami.io/vgpu-mig-allocations"] = json!(json!([entry]).to_string());
        pod
    };
    let pods: Vec<_> = (0..7).map(slice).collect();
    let mut machine = Machine::new(&Config::default(), &nodes, &pods);
    let (effects, _) = machine.run();
    assert_eq!((told(&effects), reported(&effects)), (vec![], vec![]));
    machine.show_pod(&share("eighth", 4000));
    assert_eq!(machine.run().1, []);
}

/// Cards that Volcano's plugin cuts; each has 3 slices of 10240 MiB and 1 of 5120 MiB by `group2`.
fn volcano_mig_node(cards: &[&str]) -> Value {
    let card = |id: &&str| format!("{id},7,40960,NVIDIA-NVIDIA A100-SXM4-40GB,true,mig:");
    let register: String = cards.iter().map(card).collect();
    node("n1", &json!({"volcano.sh/node-vgpu-register": register}))
}

fn vgpus(name: &str, count: u32, memory: u32) -> Value {
    let limits =
        json!({"volcano.sh/vgpu-number": count.to_string(), "volcano.sh/vgpu-memory": memory.to_string()});
    pod(name, &limits)
}

#[test]
fn a_slice_of_volcanos_own_assignment_counts_with_its_size_in_a_quota() {
    let quota = |machine: &Machine, hard: u32| {
        let hard = json!({"limits.volcano.sh/vgpu-memory": hard.to_string()});
        let quota =
            json!({"metadata": {"name": "q", "namespace": "default", "uid": "q"}, "spec": {"hard": hard}});
        Event::Quota(QuotaChange::Seen(machine.reader().quota(&parsed(&quota)).0))
    };
    // What the pod asked is written; its slice has 10240 MiB, and the next smallest that is free 5120 MiB.
    let held = volcano_holding("held", "GPU-a[group2-0],NVIDIA,6000,0:");
    for (hard, placed) in [(15_359, 0), (15_360, 1)] {
        for nodes in [vec![volcano_mig_node(&["GPU-a"])], Vec::new()] {
            let mut machine = Machine::new(&Config::default(), &nodes, std::slice::from_ref(&held));
            machine.tell(quota(&machine, hard));
            machine.show_node(&volcano_mig_node(&["GPU-a"]));
            machine.show_pod(&vgpus("next", 1, 5000));
            assert_eq!(machine.run().1.len(), placed, "{hard}, nodes listed: {}", nodes.len());
            let usage = &machine.scheduler().snapshot().node("n1").unwrap().usage;
            let used = usage.card(&"GPU-a".into()).memory.get();
            assert_eq!(used, if placed == 1 { 15_360 } else { 10_240 });
        }
    }
}

#[test]
fn a_pod_beyond_its_quota_is_woken_when_what_slices_count_is_less_without_their_node() {
    // The slice counts 10240 MiB by its node's registration, and 6000 MiB without it.
    let held = volcano_holding("held", "GPU-a[group2-0],NVIDIA,6000,0:");
    let card = "GPU-b,7,40960,NVIDIA-NVIDIA A100-SXM4-40GB,true,mig:";
    let other = node("n2", &json!({"volcano.sh/node-vgpu-register": card}));
    let nodes = [volcano_mig_node(&["GPU-a"]), other];
    let mut machine = Machine::new(&Config::default(), &nodes, &[held]);
    let quota = json!({"metadata": {"name": "q", "namespace": "default", "uid": "q"},
        "spec": {"hard": {"limits.volcano.sh/vgpu-memory": "15000"}}});
    let quota = Event::Quota(QuotaChange::Seen(machine.reader().quota(&parsed(&quota)).0));
    machine.tell(quota);
    machine.show_pod(&vgpus("next", 1, 5000));
    assert_eq!(machine.run().1, []);
    machine.tell(Event::Node(NodeChange::Gone("n1".into())));
    assert_eq!(machine.run().1, [("next".to_owned(), "n2".to_owned())]);
}

#[test]
fn a_pod_has_one_slice_of_each_card_that_volcano_cuts() {
    for (cards, placed) in [(vec!["GPU-a"], 0), (vec!["GPU-a", "GPU-b"], 1)] {
        let mut machine = Machine::new(&Config::default(), &[volcano_mig_node(&cards)], &[]);
        machine.show_pod(&vgpus("pair", 2, 5000));
        let bound = machine.run().1.len();
        assert_eq!(u32::try_from(bound), Ok(placed), "{cards:?}");
        let usage = &machine.scheduler().snapshot().node("n1").unwrap().usage;
        assert!(cards.iter().all(|card| usage.card(&(*card).into()).slots == placed), "{cards:?}");
    }
}
