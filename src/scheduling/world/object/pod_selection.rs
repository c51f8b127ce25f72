//! Which pods a selector selects: the labels of their namespaces count too.

use super::Objects;
use crate::scheduling::model::{footprint::Footprint, pod_selector::PodSelector};

impl PodSelector {
    /// Whether the pod is one of these.
    pub fn matches(&self, pod: &Footprint, objects: &Objects) -> bool {
        self.labels.as_ref().is_some_and(|labels| labels.matches(&pod.labels))
            && self.admits_namespace(&pod.namespace, objects)
    }

    fn admits_namespace(&self, namespace: &str, objects: &Objects) -> bool {
        self.namespaces.contains(namespace)
            || self
                .namespace_selector
                .as_ref()
                .is_some_and(|selector| selector.matches(objects.namespace_labels(namespace)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        object::Labels,
        scheduling::{
            model::{label_set::LabelSet, pod_selector::PodTerm},
            world::object::Object,
        },
    };

    fn term(json: &str) -> PodTerm {
        let labels = Labels::from([("app".to_owned(), "web".to_owned()), ("rev".to_owned(), "2".to_owned())]);
        PodTerm::read(&serde_json::from_str(json).unwrap(), &"own".into(), &labels)
    }

    fn pod(namespace: &str, labels: &[(&str, &str)]) -> Footprint {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Footprint { namespace: namespace.into(), labels: LabelSet::from(&labels), ..Footprint::default() }
    }

    #[test]
    fn a_term_without_namespaces_is_about_the_pods_own() {
        let namespaces = Objects::default();
        let own = term(r#"{"labelSelector":{"matchLabels":{"app":"web"}},"topologyKey":"zone"}"#);
        assert!(own.pods.matches(&pod("own", &[("app", "web")]), &namespaces));
        assert!(!own.pods.matches(&pod("other", &[("app", "web")]), &namespaces));
        let all = term(r#"{"labelSelector":{},"namespaceSelector":{},"topologyKey":"zone"}"#);
        assert!(all.pods.matches(&pod("other", &[]), &namespaces));
        let none = term(r#"{"namespaceSelector":{},"topologyKey":"zone"}"#);
        assert!(!none.pods.matches(&pod("other", &[]), &namespaces));
    }

    #[test]
    fn namespaces_are_selected_by_their_labels() {
        let mut namespaces = Objects::default();
        let labels = Labels::from([("team".to_owned(), "x".to_owned())]);
        namespaces.set(Object::Namespace("a".into(), Arc::new(labels)));
        let other = term(
            r#"{"labelSelector":{},"topologyKey":"zone",
                "namespaceSelector":{"matchExpressions":[{"key":"team","operator":"NotIn","values":["x"]}]}}"#,
        );
        assert!(!other.pods.matches(&pod("a", &[]), &namespaces));
        assert!(other.pods.matches(&pod("b", &[]), &namespaces));
    }

    #[test]
    fn keys_of_the_pods_own_labels_are_merged_once() {
        let namespaces = Objects::default();
        let same = term(r#"{"labelSelector":{},"matchLabelKeys":["rev","absent"],"topologyKey":"zone"}"#);
        assert!(same.pods.matches(&pod("own", &[("rev", "2")]), &namespaces));
        assert!(!same.pods.matches(&pod("own", &[("rev", "1")]), &namespaces));
        let stored = term(
            r#"{"labelSelector":{"matchExpressions":[{"key":"rev","operator":"In","values":["2"]}]},
                "matchLabelKeys":["rev"],"topologyKey":"zone"}"#,
        );
        assert_eq!(stored, PodTerm { ..same });
        let unlike = term(r#"{"labelSelector":{},"mismatchLabelKeys":["rev"],"topologyKey":"zone"}"#);
        assert!(unlike.pods.matches(&pod("own", &[("rev", "1")]), &namespaces));
        assert!(!unlike.pods.matches(&pod("own", &[("rev", "2")]), &namespaces));
    }
}
