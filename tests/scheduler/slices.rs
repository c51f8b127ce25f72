//! Cards that are cut into hardware slices: how many fit, and what each of them counts.

use berth::config::Config;
use serde_json::{Value, json};

use super::{
    holdings::{hami_node, holding, reported, share, told},
    machine::Machine,
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
