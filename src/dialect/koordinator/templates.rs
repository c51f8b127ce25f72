//! Templates of shares: some models can be divided in fixed ways only.
//!
//! Source: koordinator `pkg/scheduler/plugins/deviceshare/gpu_shared_resource_templates_cache.go`; upstream keeps them in the ConfigMap
//! `gpu-shared-resource-templates`.

use std::collections::{BTreeMap, BTreeSet};

use super::{dimension::dimension, names};
use crate::device::Amounts;

/// By vendor and model (`huawei-Ascend-310P`), the templates by name.
pub type Templates = BTreeMap<String, BTreeMap<String, Amounts>>;

/// Whether a share of so much must be a template.
pub fn are_needed(each: &Amounts) -> bool {
    each.get(&dimension(names::NPU_CORE)).is_some()
}

/// By vendor and model, the templates that are exactly what is asked of a card.
pub fn matching(templates: &Templates, each: &Amounts) -> BTreeMap<String, BTreeSet<String>> {
    let mut matching = BTreeMap::new();
    for (model, templates) in templates {
        let equal = templates.iter().filter(|(_, amounts)| *amounts == each);
        let names: BTreeSet<_> = equal.map(|(name, _)| name.clone()).collect();
        if !names.is_empty() {
            matching.insert(model.clone(), names);
        }
    }
    matching
}
