//! Templates of shares: cards of some models can be divided in fixed ways only, which a ConfigMap lists.
//!
//! Source: koordinator `pkg/scheduler/plugins/deviceshare/gpu_shared_resource_templates_cache.go`, names by default
//! `pkg/scheduler/apis/config/v1/defaults.go`. A template that can't be read costs itself alone; upstream then keeps what it read before.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::{
    dimension::{amounts, dimension},
    names,
};
use crate::{
    device::{Amounts, ModelTemplates, ShareTemplates},
    dialect::{Problem, Unreadable},
    object::{ConfigMap, Metadata, container::ResourceMap},
};

/// The ConfigMap's namespace.
pub const NAMESPACE: &str = "koordinator-system";
/// Its name.
pub const NAME: &str = "gpu-shared-resource-templates";
/// What selects it among all ConfigMaps. A role can be restricted to the name.
pub const FIELDS: &str = "metadata.name=gpu-shared-resource-templates,metadata.namespace=koordinator-system";
/// The key of its data: YAML, from vendor and model to template to resources.
const KEY: &str = "data.yaml";

/// Whether a share of so much must be a template.
pub fn are_needed(each: &Amounts) -> bool {
    each.get(&dimension(names::NPU_CORE)).is_some()
}

/// Whether these are the namespace and the name of the ConfigMap.
pub fn are_in(config_map: &Metadata) -> bool {
    (config_map.namespace.as_str(), config_map.name.as_str()) == (NAMESPACE, NAME)
}

/// The templates that the ConfigMap lists, and what of it can't be read.
pub fn read(config_map: &ConfigMap) -> (ModelTemplates, Vec<Unreadable>) {
    let Some(text) = config_map.data.get(KEY) else {
        let message = "is missing: it lists the templates of shares";
        return (ModelTemplates::new(), vec![unreadable(&[], message)]);
    };
    let models = match serde_saphyr::from_str::<Option<BTreeMap<String, Value>>>(text) {
        Ok(models) => models.unwrap_or_default(),
        Err(error) => return (ModelTemplates::new(), vec![unreadable(&[], error.to_string())]),
    };
    let mut troubles = Vec::new();
    let mut read = ModelTemplates::new();
    for (model, templates) in models {
        read.insert(model.clone(), Arc::new(of_model(&model, templates, &mut troubles)));
    }
    (read, troubles)
}

fn of_model(model: &str, templates: Value, troubles: &mut Vec<Unreadable>) -> ShareTemplates {
    let templates = match templates {
        Value::Null => serde_json::Map::new(),
        Value::Object(templates) => templates,
        _ => {
            troubles.push(unreadable(&[model], "is no mapping from templates to resources"));
            return ShareTemplates::new();
        }
    };
    let mut read = ShareTemplates::new();
    for (name, resources) in templates {
        let resources: Result<ResourceMap, _> = serde_json::from_value(resources);
        let amounts =
            resources.map_err(|error| unreadable(&[model, &name], error.to_string())).and_then(|resources| {
                amounts(&resources).map_err(|(of, reason)| unreadable(&[model, &name, &of], reason))
            });
        match amounts {
            Ok(amounts) => drop(read.insert(name, amounts)),
            Err(trouble) => troubles.push(trouble),
        }
    }
    read
}

fn unreadable(path: &[&str], message: impl Into<String>) -> Unreadable {
    let path = std::iter::once(&KEY).chain(path).copied().collect::<Vec<_>>().join("][");
    Unreadable::new(Problem::Registration, format!("data[{path}]"), message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config_map(text: &str) -> ConfigMap {
        serde_json::from_value(json!({"metadata": {"name": NAME}, "data": {KEY: text}})).unwrap()
    }

    fn faults(text: &str) -> Vec<String> {
        read(&config_map(text)).1.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn templates_are_read_by_model_and_name() {
        let text = "huawei-Ascend-310P:\n  vir01:\n    huawei.com/npu-core: 1\n    koordinator.sh/gpu-memory: 3Gi\n  vir02: {huawei.com/npu-core: \"2\"}\nempty-model:\n";
        let (templates, troubles) = read(&config_map(text));
        assert_eq!(troubles, []);
        let of_model = &templates["huawei-Ascend-310P"];
        let bytes = of_model["vir01"].get(&dimension(names::GPU_MEMORY));
        assert_eq!((bytes, of_model["vir02"].get(&dimension(names::NPU_CORE))), (Some(3 << 30), Some(2)));
        assert!(templates["empty-model"].is_empty());
        assert_eq!(read(&config_map("")), (ModelTemplates::new(), Vec::new()));
    }

    #[test]
    fn a_template_that_can_not_be_read_is_named_and_costs_itself_alone() {
        let text = "a: {one: {huawei.com/npu-core: half}, two: {huawei.com/npu-core: 2}, three: [1]}\nb: 3\n";
        let told = faults(text);
        assert_eq!(told[0], "data[data.yaml][a][one][huawei.com/npu-core]: `half` is not a quantity");
        assert!(told[1].starts_with("data[data.yaml][a][three]: invalid type: sequence"), "{told:?}");
        assert_eq!(told[2], "data[data.yaml][b]: is no mapping from templates to resources");
        assert_eq!(read(&config_map(text)).0["a"].keys().collect::<Vec<_>>(), ["two"]);
    }

    #[test]
    fn the_config_map_is_selected_by_its_name_and_namespace() {
        assert_eq!(FIELDS, format!("metadata.name={NAME},metadata.namespace={NAMESPACE}"));
    }

    #[test]
    fn text_that_is_no_mapping_and_a_config_map_without_it_list_nothing() {
        for text in ["[a", "- a", "just text", "a: 1\na: 2"] {
            let told = faults(text);
            assert!(told.len() == 1 && told[0].starts_with("data[data.yaml]: "), "{text}: {told:?}");
        }
        let (templates, troubles) = read(&ConfigMap::default());
        assert_eq!((templates.len(), troubles.len()), (0, 1));
    }
}
