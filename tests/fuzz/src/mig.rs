//! MIG: slices beside an assignment, numbers of templates, geometries of settings.

use std::collections::BTreeMap;

use berth::{
    config::Config,
    device::{Geometry, Slice, Slicing},
    dialect::{Dialects, hami, volcano},
};

use serde_json::{Value, json};

use super::{assignment::carried, world};

/// What each container of the pods has been given beside the slices.
const DEVICES: &str = "GPU-1,NVIDIA,4864,14:GPU-1,NVIDIA,4864,14:GPU-2,NVIDIA,1,1:;";

/// The text as each of the three.
pub fn run(data: &[u8]) {
    let Some(text) = super::text(data) else { return };
    let numbered = format!("GPU-1[{text}],NVIDIA,1,1:;");
    let given = [(DEVICES, Some(text)), (numbered.as_str(), None)];
    for dialect in world::DIALECTS.iter().flat_map(Dialects::iter) {
        for (devices, slices) in given {
            let keys = [
                (hami::names::ALLOCATED, Some(devices)),
                (volcano::names::IDS, Some(devices)),
                (hami::names::MIG, slices),
            ];
            let annotations: BTreeMap<_, _> = keys
                .iter()
                .filter_map(|(key, value)| Some(((*key).to_owned(), value.as_ref()?.to_string())))
                .collect();
            carried(dialect.as_ref(), "A", &annotations);
        }
    }
    geometries(text);
}

/// A cut that is let in names slices which the node's plugin can find: `<group>-<number>` reads back as both.
fn geometries(text: &str) {
    let Ok(entry) = serde_json::from_str::<Value>(text) else { return };
    let settings = json!({"dialects": {"volcano": {"knownMigGeometries": [entry]}}}).to_string();
    let Ok((config, _)) = Config::parse(&settings, "settings") else { return };
    for model in entry["models"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let card = format!("GPU-1,1,1,{model},true,mig:");
        let node =
            world::node(&BTreeMap::from([(volcano::names::REGISTER, card.as_str())]), &BTreeMap::new());
        let volcano =
            config.dialects().named(&volcano::Volcano::NAME.into()).cloned().expect("it is on by default");
        let Ok(Some(inventory)) = volcano.inventory(&node) else { continue };
        for card in inventory.cards().iter().filter(|card| &*card.model == model) {
            let Slicing::Geometries(cuts) = &card.slicing else { panic!("the model's cuts are known") };
            cuts.iter().for_each(can_be_found);
        }
    }
}

fn can_be_found(cut: &Geometry) {
    let slice = Slice::Numbered { group: cut.group.clone(), position: 3 }.to_string();
    assert_eq!(slice.split_once('-'), Some((&*cut.group, "3")));
    assert!(!slice.contains([',', ':', ';', '[', ']']), "{slice}");
}

/// Slices, numbers and a geometry.
pub fn seeds() -> Vec<Vec<u8>> {
    super::owned(&[
        r#"[{"containerIndex":0,"deviceIndex":0,"gpuUUID":"GPU-1","profile":"1g.5gb","placement":{"start":6,"size":1}}]"#,
        r#"[{"containerIndex":0,"deviceIndex":1,"gpuUUID":"GPU-1","profile":"2g.10gb","placement":{"size":2},"migUUID":"MIG-1","gpuInstanceID":1,"computeInstanceID":0}]"#,
        r#"[{"containerIndex":3,"deviceIndex":0,"gpuUUID":"GPU-7","profile":"7g.40gb","placement":{"start":0,"size":8}}]"#,
        r#"[{"containerIndex":0,"deviceIndex":0,"gpuUUID":"GPU,1","profile":"1g.5gb","placement":{"size":1}}]"#,
        "[]",
        "0-3",
        "group1-6",
        r#"{"models":["A100"],"allowedGeometries":[{"group":"group1","geometries":[{"name":"1g.5gb","memory":5120,"count":7}]}]}"#,
    ])
}
