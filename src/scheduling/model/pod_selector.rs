//! Which pods a term of affinity, anti-affinity or spreading is about.

use std::{collections::BTreeSet, sync::Arc};

use super::footprint::Footprint;
use crate::object::{LabelSelector, Labels, Requirement, affinity::PodAffinityTerm};
use crate::scheduling::world::object::Objects;

/// Pods by namespace and labels.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct PodSelector {
    /// Objects by name.
    pub namespaces: BTreeSet<Arc<str>>,
    /// Objects by their labels.
    pub namespace_selector: Option<LabelSelector>,
    /// Pods by their labels; `None` matches no pod.
    pub labels: Option<LabelSelector>,
}

/// A term of affinity or anti-affinity: pods, and the domain that a node shares with them.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct PodTerm {
    /// The pods.
    pub pods: PodSelector,
    /// The node label whose equal values make one domain.
    pub topology_key: Arc<str>,
}

/// A preferred term, and what each matching pod adds to a domain: less than 0 for anti-affinity.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct WeightedTerm {
    /// The term.
    pub term: PodTerm,
    /// The weight, -100 to 100.
    pub weight: i64,
}

impl PodSelector {
    /// How many requirements and values are compared with a pod at most.
    pub fn cost(&self) -> usize {
        let selectors = self.namespace_selector.iter().chain(&self.labels);
        1 + self.namespaces.len() + selectors.map(LabelSelector::requirements).sum::<usize>()
    }

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

impl PodTerm {
    /// The term of a pod in this namespace with these labels.
    ///
    /// The API server merges `matchLabelKeys` and `mismatchLabelKeys` into the selector when it stores a pod; doing it again for a pod
    /// that was read from a file changes nothing of one that was stored.
    pub fn read(term: &PodAffinityTerm, namespace: &Arc<str>, labels: &Labels) -> Self {
        let keys = [(&term.match_label_keys, "In"), (&term.mismatch_label_keys, "NotIn")];
        let merged = keys.into_iter().flat_map(|(keys, operator)| requirements(keys, operator, labels));
        let pods = PodSelector {
            namespaces: if term.namespaces.is_empty() && term.namespace_selector.is_none() {
                BTreeSet::from([namespace.clone()])
            } else {
                term.namespaces.iter().map(|name| name.as_str().into()).collect()
            },
            namespace_selector: term.namespace_selector.clone(),
            labels: term.label_selector.clone().map(|selector| merged.fold(selector, LabelSelector::and)),
        };
        Self { pods, topology_key: term.topology_key.as_str().into() }
    }
}

/// A requirement for each of the keys that is among the pod's own labels, with the pod's value.
pub(in crate::scheduling) fn requirements<'a>(
    keys: &'a [String],
    operator: &'a str,
    labels: &'a Labels,
) -> impl Iterator<Item = Requirement> + 'a {
    keys.iter().filter_map(move |key| {
        let values = vec![labels.get(key)?.clone()];
        Some(Requirement { key: key.clone(), operator: operator.to_owned(), values })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::world::object::Object;

    fn term(json: &str) -> PodTerm {
        let labels = Labels::from([("app".to_owned(), "web".to_owned()), ("rev".to_owned(), "2".to_owned())]);
        PodTerm::read(&serde_json::from_str(json).unwrap(), &"own".into(), &labels)
    }

    fn pod(namespace: &str, labels: &[(&str, &str)]) -> Footprint {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Footprint { namespace: namespace.into(), labels: Arc::new(labels), ..Footprint::default() }
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
