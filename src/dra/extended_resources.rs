//! For which extended resources classes stand (KEP-5004).
//!
//! Source: v1.36 `staging/src/k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache`.

use std::{cmp::Reverse, collections::BTreeMap};

use jiff::Timestamp;

use crate::object::DeviceClass;

/// What an extended resource begins with that names its class (kubernetes `api/resource/v1`, `ResourceDeviceClassPrefix`).
const OF_CLASS: &str = "deviceclass.resource.kubernetes.io/";

/// What is known of one class.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct KnownClass {
    created: Timestamp,
    stands_for: Option<String>,
}

/// The classes that stand for extended resources.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct ExtendedResources {
    classes: BTreeMap<String, KnownClass>,
    /// By resource, the class that stands for it: of several the newest, and of equals the first by name.
    stated: BTreeMap<String, String>,
}

impl ExtendedResources {
    /// Takes in a class, new or changed.
    pub fn set(&mut self, class: &DeviceClass) {
        let created = class.metadata.creation_timestamp.unwrap_or(Timestamp::UNIX_EPOCH);
        let stands_for = class.spec.extended_resource_name.clone().filter(|name| is_extended(name));
        self.classes.insert(class.metadata.name.clone(), KnownClass { created, stands_for });
        self.find_out();
    }

    /// Takes a class out.
    pub fn remove(&mut self, class: &str) {
        self.classes.remove(class);
        self.find_out();
    }

    fn find_out(&mut self) {
        self.stated.clear();
        let mut newest_first: Vec<_> = self.classes.iter().collect();
        newest_first.sort_by_key(|(name, known)| (Reverse(known.created), *name));
        for (name, known) in newest_first {
            if let Some(resource) = &known.stands_for {
                self.stated.entry(resource.clone()).or_insert_with(|| name.clone());
            }
        }
    }

    /// The class that stands for the resource; `None`: none does.
    pub fn class(&self, resource: &str) -> Option<&str> {
        if let Some(class) = resource.strip_prefix(OF_CLASS) {
            return self.named(class);
        }
        self.stated.get(resource).map(String::as_str)
    }

    /// The class that stands for the resource, or else the one of this name; `None`: there is neither.
    pub fn class_or(&self, resource: &str, otherwise: &str) -> Option<&str> {
        self.class(resource).or_else(|| self.named(otherwise))
    }

    /// The class of this name, if it exists.
    fn named(&self, class: &str) -> Option<&str> {
        self.classes.get_key_value(class).map(|(name, _)| name.as_str())
    }

    /// Whether there is no class.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }
}

/// Whether a class may stand for a resource of this name (v1.36 `pkg/scheduler/util/utils.go`, `IsDRAExtendedResourceName`): names with a
/// domain that is not Kubernetes' own, and those that name a class.
pub fn is_extended(resource: &str) -> bool {
    let native = !resource.contains('/') || resource.contains("kubernetes.io/");
    resource.starts_with(OF_CLASS) || !(native || resource.starts_with("requests."))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn class(name: &str, created: &str, resource: Option<&str>) -> DeviceClass {
        let metadata = json!({"name": name, "creationTimestamp": created});
        serde_json::from_value(json!({"metadata": metadata, "spec": {"extendedResourceName": resource}}))
            .unwrap()
    }

    const OLD: &str = "2026-01-01T00:00:00Z";
    const NEW: &str = "2026-02-01T00:00:00Z";

    #[test]
    fn of_several_classes_the_newest_stands_for_a_resource_and_of_equals_the_first_by_name() {
        let mut resources = ExtendedResources::default();
        resources.set(&class("b", OLD, Some("example.com/gpu")));
        resources.set(&class("c", OLD, Some("example.com/gpu")));
        assert_eq!(resources.class("example.com/gpu"), Some("b"));
        resources.set(&class("d", NEW, Some("example.com/gpu")));
        assert_eq!(resources.class("example.com/gpu"), Some("d"));
        resources.set(&class("d", NEW, Some("example.com/other")));
        assert_eq!(resources.class("example.com/gpu"), Some("b"));
        resources.remove("b");
        assert_eq!(resources.class("example.com/gpu"), Some("c"));
    }

    #[test]
    fn every_class_stands_for_the_resource_that_names_it() {
        let mut resources = ExtendedResources::default();
        resources.set(&class("gpu.example.com", OLD, None));
        assert_eq!(
            resources.class("deviceclass.resource.kubernetes.io/gpu.example.com"),
            Some("gpu.example.com")
        );
        assert_eq!(resources.class("deviceclass.resource.kubernetes.io/other"), None);
    }

    #[test]
    fn names_of_kubernetes_itself_are_not_extended() {
        for (name, extended) in [
            ("cpu", false),
            ("hugepages-2Mi", false),
            ("kubernetes.io/x", false),
            ("requests.example.com/gpu", false),
            ("example.com/gpu", true),
            ("deviceclass.resource.kubernetes.io/gpu", true),
        ] {
            assert_eq!(is_extended(name), extended, "{name}");
        }
    }
}
