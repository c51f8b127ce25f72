//! What a node makes of a pod, and why: by node, and card by card.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    dialect::Record,
    scheduling::{
        Reason,
        decide::remedy::Remedy,
        plugin::{
            allocate::explain::CardFailure,
            score::{Scores, weights::ScoreWeights},
        },
    },
};

/// What a node makes of a pod.
#[derive(Clone, Debug, Serialize)]
pub struct SimulatedVerdict {
    /// The node.
    pub name: String,
    /// Whether it would do.
    pub fits: bool,
    /// How well, the weighted sum of `scores`; higher is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// How well by each plugin, 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scores: Option<BTreeMap<&'static str, f64>>,
    /// The annotations of a Binding to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Why it would not do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<ReasonRow>,
    /// Which of its cards fail which test, by number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<CardFailureRow>,
    /// The smallest change of one wish with which it would do.
    #[serde(rename = "wouldFit", skip_serializing_if = "Option::is_none")]
    pub would_fit: Option<String>,
}

/// Why a card would not do.
#[derive(Clone, Debug, Serialize)]
pub struct CardFailureRow {
    /// The card.
    pub uuid: String,
    /// The test that it fails.
    pub reason: String,
    /// What a container needs: MiB, percent of compute, or slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needed: Option<u64>,
    /// What is free of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free: Option<u64>,
}

/// Why a node would not do.
#[derive(Clone, Debug, Serialize)]
pub struct ReasonRow {
    /// The reason's name.
    pub reason: String,
    /// How many cards it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// How many cards there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<usize>,
}

impl SimulatedVerdict {
    pub(in crate::simulation) fn fits(
        name: &str,
        scores: Scores,
        weights: &ScoreWeights,
        record: Record,
    ) -> Self {
        Self {
            name: name.to_owned(),
            fits: true,
            score: Some(scores.total(weights)),
            scores: Some(scores.by_plugin().map(|(plugin, score)| (plugin.name(), score)).collect()),
            annotations: Some(record.annotations),
            reasons: Vec::new(),
            cards: Vec::new(),
            would_fit: None,
        }
    }

    pub(in crate::simulation) fn fails(name: &str, reasons: Vec<ReasonRow>) -> Self {
        Self {
            name: name.to_owned(),
            fits: false,
            score: None,
            scores: None,
            annotations: None,
            reasons,
            cards: Vec::new(),
            would_fit: None,
        }
    }

    pub(in crate::simulation) fn explained(self, failures: Vec<CardFailure>, remedy: Option<Remedy>) -> Self {
        let row = |failure: CardFailure| CardFailureRow {
            uuid: failure.card.to_string(),
            reason: failure.reason.name().to_owned(),
            needed: failure.amounts.map(|amounts| amounts.needed),
            free: failure.amounts.map(|amounts| amounts.free),
        };
        let would_fit = remedy.map(|remedy| remedy.to_string());
        Self { cards: failures.into_iter().map(row).collect(), would_fit, ..self }
    }

    /// What the node makes of the pod, without its name.
    fn words(&self) -> String {
        let reasons: Vec<_> = self.reasons.iter().map(ReasonRow::words).collect();
        let would_fit = self.would_fit.iter().map(|change| format!("; would fit {change}"));
        match self.score {
            Some(score) => format!("fits, score {score:.1}"),
            None => format!("{}{}", reasons.join(", "), would_fit.collect::<String>()),
        }
    }
}

/// Names of alike nodes that a line begins with.
const MOST_NAMES: usize = 4;

/// A line for each group of nodes that make the same of a pod, in the order of the first of each.
pub fn lines<'a>(verdicts: impl Iterator<Item = &'a SimulatedVerdict>) -> Vec<String> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    let mut at: BTreeMap<String, usize> = BTreeMap::new();
    for verdict in verdicts {
        let words = verdict.words();
        let group = *at.entry(words.clone()).or_insert(groups.len());
        if group == groups.len() {
            groups.push((words, Vec::new()));
        }
        groups[group].1.push(&verdict.name);
    }
    groups.into_iter().map(|(words, names)| format!("{}: {words}", listed(&names))).collect()
}

/// The first names, and how many more there are.
fn listed(names: &[&str]) -> String {
    let shown = if names.len() > MOST_NAMES { MOST_NAMES - 1 } else { names.len() };
    match names.len() - shown {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..shown].join(", ")),
    }
}

impl ReasonRow {
    pub(in crate::simulation) fn of(reason: &Reason) -> Self {
        let (count, of) = match reason {
            Reason::Devices(reason) => reason.cards().unzip(),
            _ => (None, None),
        };
        Self { reason: reason.name(), count, of }
    }

    fn words(&self) -> String {
        match (self.count, self.of) {
            (Some(count), Some(of)) => format!("{} ({count} of {of})", self.reason),
            _ => self.reason.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_make_the_same_of_a_pod_share_a_line() {
        let reason = |reason: &str| ReasonRow { reason: reason.to_owned(), count: None, of: None };
        let fails = |name: &str, why: &str| SimulatedVerdict::fails(name, vec![reason(why)]);
        let verdicts = [
            fails("a", "X"),
            fails("b", "Y"),
            fails("c", "X"),
            fails("d", "X"),
            fails("e", "X"),
            fails("f", "X"),
        ];
        assert_eq!(lines(verdicts.iter()), ["a, c, d and 2 more: X", "b: Y"]);
        assert_eq!(lines(verdicts[..5].iter()), ["a, c, d, e: X", "b: Y"]);
    }
}
