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
struct Entry {
    models: Vec<String>,
    allowed_geometries: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    group: String,
    geometries: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    name: String,
    /// MiB.
    memory: u32,
    count: u32,
}

impl ModelGeometries {
    /// Reads an entry; the error says what is wrong with it.
    pub fn read(entry: &serde_json::Value) -> Result<Self, String> {
        let Entry { models, allowed_geometries } =
            Entry::deserialize(entry).map_err(|error| error.to_string())?;
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

/// The node's plugin finds a slice by `<group>-<number>`.
fn geometry(Group { group, geometries }: Group) -> Result<Geometry, String> {
    if group.is_empty() || group.contains(['-', '[', ']', ',', ':', ';']) {
        return Err(format!("group `{group}` must be a name without `-` and without separators"));
    }
    let instances = |kind: Kind| Instances {
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
}
