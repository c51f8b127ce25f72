//! Which pods a term of affinity, anti-affinity or spreading is about.

use std::{collections::BTreeSet, sync::Arc};

use crate::object::{LabelSelector, Labels, Requirement, affinity::PodAffinityTerm};

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
