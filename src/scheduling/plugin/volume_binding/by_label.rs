//! Candidates of which a node must have one of some values of a label, found by the labels of the node: a node costs about as much as
//! the candidates that its labels lead to.
//!
//! A label is a necessary condition and no more: whether a candidate will do is for the caller to say.

use std::collections::{BTreeMap, HashMap};

use crate::{object::Labels, scheduling::model::needed_label::NeededLabel};

/// Candidates in an order.
#[derive(Debug)]
pub(super) struct ByLabel<'a, T> {
    all: Vec<&'a T>,
    /// By label and value, the positions of those that need it. A candidate that needs more than one label is found by one of them.
    needing: BTreeMap<&'a str, HashMap<&'a str, Vec<usize>>>,
    /// The positions of those that need no label.
    free: Vec<usize>,
}

/// Each value with the label.
fn each<'a>(label: &NeededLabel<'a>) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
    let NeededLabel { key, values } = *label;
    values.iter().map(move |value| (key, value.as_str()))
}

impl<T> Default for ByLabel<'_, T> {
    fn default() -> Self {
        Self { all: Vec::new(), needing: BTreeMap::new(), free: Vec::new() }
    }
}

impl<'a, T> ByLabel<'a, T> {
    /// These candidates in this order, each with the labels that it needs: it is found by that which the fewest of all need.
    pub(super) fn of(candidates: Vec<(&'a T, Vec<NeededLabel<'a>>)>) -> Self {
        let mut needing: HashMap<(&str, &str), usize> = HashMap::new();
        for label in candidates.iter().flat_map(|(_, needed)| needed).flat_map(each) {
            *needing.entry(label).or_default() += 1;
        }
        let mut by_label = Self::default();
        for (candidate, needed) in candidates {
            let shared = |label: &NeededLabel<'_>| -> usize { each(label).map(|one| needing[&one]).sum() };
            by_label.push(candidate, needed.into_iter().min_by_key(shared));
        }
        by_label
    }

    fn push(&mut self, candidate: &'a T, needed: Option<NeededLabel<'a>>) {
        let at = self.all.len();
        self.all.push(candidate);
        let Some(needed) = needed else {
            self.free.push(at);
            return;
        };
        let by_value = self.needing.entry(needed.key).or_default();
        for value in needed.values {
            by_value.entry(value).or_default().push(at);
        }
    }

    /// The first candidate that will do, of those that the labels of a node lead to.
    pub(super) fn first(&self, labels: &Labels, will_do: impl Fn(&T) -> bool) -> Option<&'a T> {
        let first = |some: &Vec<usize>| some.iter().copied().find(|at| will_do(self.all[*at]));
        let needing =
            self.needing.iter().filter_map(|(key, by_value)| by_value.get(labels.get(*key)?.as_str()));
        needing.chain([&self.free]).filter_map(first).min().map(|at| self.all[at])
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn labels(labels: &[(&str, &str)]) -> Labels {
        labels.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    fn values(values: &[&str]) -> Vec<String> {
        values.iter().map(|&value| value.to_owned()).collect()
    }

    /// The candidates that are asked on a node with these labels, where none will do.
    fn asked(candidates: &ByLabel<'_, &'static str>, on: &[(&str, &str)]) -> Vec<&'static str> {
        let asked = RefCell::new(Vec::new());
        let refuse = |candidate: &&'static str| {
            asked.borrow_mut().push(*candidate);
            false
        };
        assert_eq!(candidates.first(&labels(on), refuse), None);
        asked.into_inner()
    }

    #[test]
    fn a_node_is_led_to_the_candidates_that_need_its_labels_and_to_those_that_need_none() {
        let (x, y, both) = (values(&["x"]), values(&["y"]), values(&["x", "y"]));
        let needs = |key, values| vec![NeededLabel { key, values }];
        let candidates = ByLabel::of(vec![
            (&"in zone y", needs("zone", &y)),
            (&"in either zone", needs("zone", &both)),
            (&"in rack x", needs("rack", &x)),
            (&"anywhere", Vec::new()),
        ]);
        assert_eq!(asked(&candidates, &[]), ["anywhere"]);
        assert_eq!(asked(&candidates, &[("zone", "x")]), ["in either zone", "anywhere"]);
        assert_eq!(asked(&candidates, &[("zone", "z"), ("rack", "x")]), ["in rack x", "anywhere"]);
        let first = |on: &[(&str, &str)]| candidates.first(&labels(on), |_| true).copied();
        assert_eq!(first(&[("zone", "y")]), Some("in zone y"));
        assert_eq!(first(&[("rack", "x"), ("zone", "x")]), Some("in either zone"), "that stands first");
        assert_eq!(first(&[("rack", "z")]), Some("anywhere"));
    }

    #[test]
    fn a_candidate_is_found_by_the_label_that_the_fewest_need() {
        let (region, a, b) = (values(&["r"]), values(&["a"]), values(&["b"]));
        let needs = |host| {
            vec![NeededLabel { key: "region", values: &region }, NeededLabel { key: "host", values: host }]
        };
        let candidates = ByLabel::of(vec![(&"on a", needs(&a)), (&"on b", needs(&b))]);
        assert_eq!(asked(&candidates, &[("region", "r"), ("host", "b")]), ["on b"]);
    }
}
