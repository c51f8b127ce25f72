//! How the cards of a model are cut into MIG slices, as Volcano's device configuration lists it.
//!
//! Source: Volcano `pkg/scheduler/api/devices/config` (`knownMigGeometries`). A model that no entry names is not cut by guess: its
//! cards take no pods; upstream shares them whole.

use serde::Deserialize;

use crate::device::{Geometry, Instances, MiB, Slicing};

/// The geometries of some models: the first entry of which a model's name contains a word counts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ModelGeometries {
    models: Vec<String>,
    geometries: Vec<Geometry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeometryEntry {
    models: Vec<String>,
    allowed_geometries: Vec<GeometryGroup>,
}

#[derive(Deserialize)]
struct GeometryGroup {
    group: String,
    geometries: Vec<GeometrySlice>,
}

#[derive(Deserialize)]
struct GeometrySlice {
    name: String,
    /// MiB.
    memory: u32,
    count: u32,
}

/// Words of a model's name; for each group its kinds of slices with memory in MiB and their number.
type Known = (&'static [&'static str], [&'static [(&'static str, u32, u32)]; 4]);

/// What the plugin's own manifest configures (volcano-vgpu-device-plugin v1.12.0 `deployments/static/volcano-vgpu-device-plugin.yml`):
/// `group1` and so on, in this order. Volcano's documentation states more memory for the A100 of 80 GB than its slices have.
const KNOWN: [Known; 3] = [
    (&["A30"], [&[("1g.6gb", 6144, 4)], &[("2g.12gb", 12_288, 2)], &[("4g.24gb", 24_576, 1)], &[]]),
    (
        &["A100-SXM4-40GB", "A100-40GB-PCIe", "A100-PCIE-40GB"],
        [
            &[("1g.5gb", 5120, 7)],
            &[("2g.10gb", 10_240, 3), ("1g.5gb", 5120, 1)],
            &[("3g.20gb", 20_480, 2)],
            &[("7g.40gb", 40_960, 1)],
        ],
    ),
    (
        &["A100-SXM4-80GB", "A100-80GB-PCIe", "A100-PCIE-80GB"],
        [
            &[("1g.10gb", 9728, 7)],
            &[("2g.20gb", 19_968, 3), ("1g.10gb", 9728, 1)],
            &[("3g.40gb", 40_192, 2)],
            &[("7g.80gb", 80_896, 1)],
        ],
    ),
];

impl ModelGeometries {
    /// The models that the plugin knows by default.
    pub fn built_in() -> Vec<Self> {
        KNOWN.iter().map(Self::known).collect()
    }

    fn known((models, groups): &Known) -> Self {
        let instances = |&(name, memory, count): &(&str, u32, u32)| Instances {
            name: name.into(),
            memory: MiB::new(memory.into()),
            count,
        };
        let geometry = |(kinds, number): (&&[(&str, u32, u32)], u32)| Geometry {
            group: format!("group{number}").into(),
            instances: kinds.iter().map(instances).collect(),
        };
        let groups = groups.iter().filter(|kinds| !kinds.is_empty());
        Self {
            models: models.iter().map(|&model| model.to_owned()).collect(),
            geometries: groups.zip(1..).map(geometry).collect(),
        }
    }

    /// Reads an entry; the error says what is wrong with it.
    pub fn read(entry: &serde_json::Value) -> Result<Self, String> {
        let GeometryEntry { models, allowed_geometries } =
            GeometryEntry::deserialize(entry).map_err(|error| error.to_string())?;
        if models.is_empty() || models.iter().any(String::is_empty) {
            return Err("names no model".to_owned());
        }
        let geometries = allowed_geometries.into_iter().map(geometry).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { models, geometries })
    }

    /// How a card of this model may be cut.
    pub(super) fn slicing(known: &[Self], model: &str) -> Slicing {
        let named = |entry: &&Self| entry.models.iter().any(|word| model.contains(word.as_str()));
        let entry = known.iter().find(named);
        entry.map_or(Slicing::Unknown, |entry| Slicing::Geometries(entry.geometries.clone()))
    }
}

/// A card is cut into seven slices at most; with a far greater number, each slice would be examined for each pod.
const MOST_SLICES: u32 = 64;

/// The node's plugin finds a slice by `<group>-<number>`.
fn geometry(GeometryGroup { group, geometries }: GeometryGroup) -> Result<Geometry, String> {
    if group.is_empty() || group.contains(['-', '[', ']', ',', ':', ';']) {
        return Err(format!("group `{group}` must be a name without `-` and without separators"));
    }
    let slices = geometries.iter().fold(0_u32, |slices, kind| slices.saturating_add(kind.count));
    if slices > MOST_SLICES {
        return Err(format!("group `{group}` cuts a card into {slices} slices, more than {MOST_SLICES}"));
    }
    let instances = |kind: GeometrySlice| Instances {
        name: kind.name.into(),
        memory: MiB::new(kind.memory.into()),
        count: kind.count,
    };
    Ok(Geometry { group: group.into(), instances: geometries.into_iter().map(instances).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugins_own_models_are_known() {
        let known = ModelGeometries::built_in();
        let groups = |model: &str| match ModelGeometries::slicing(&known, model) {
            Slicing::Geometries(found) => found.iter().map(|cut| cut.slices().count()).collect(),
            _ => Vec::new(),
        };
        assert_eq!(groups("NVIDIA-NVIDIA A30"), [4, 2, 1]);
        assert_eq!(groups("NVIDIA-NVIDIA A100-SXM4-40GB"), [7, 4, 2, 1]);
        assert_eq!(groups("NVIDIA-NVIDIA A100-PCIE-80GB"), [7, 4, 2, 1]);
        assert_eq!(groups("NVIDIA-NVIDIA H100 PCIe"), [0; 0]);
    }

    #[test]
    fn the_first_entry_that_names_the_model_counts() {
        let entry = |model: &str, group: &str| {
            ModelGeometries::read(&serde_json::json!({
                "models": [model],
                "allowedGeometries": [{"group": group, "geometries": [{"name": "1g.5gb", "memory": 5120, "count": 7}]}],
            }))
        };
        let known = [entry("A100", "group1").unwrap(), entry("A100-SXM4", "group2").unwrap()];
        let Slicing::Geometries(found) = ModelGeometries::slicing(&known, "NVIDIA-A100-SXM4-40GB") else {
            panic!("the model is known");
        };
        assert_eq!(&*found[0].group, "group1");
        assert_eq!(ModelGeometries::slicing(&known, "NVIDIA-H100"), Slicing::Unknown);
        assert!(entry("A100", "group-1").is_err(), "the plugin parts group and number at the `-`");
        assert!(entry("", "group1").is_err());
    }

    #[test]
    fn a_cut_into_more_slices_than_a_card_has_is_refused() {
        let too_many = serde_json::json!({
            "models": ["A100"],
            "allowedGeometries": [{"group": "g", "geometries": [{"name": "1g.5gb", "memory": 1, "count": u32::MAX}]}],
        });
        let message = "group `g` cuts a card into 4294967295 slices, more than 64";
        assert_eq!(ModelGeometries::read(&too_many), Err(message.to_owned()));
    }
}
