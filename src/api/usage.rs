//! For how many hours namespaces, workloads and values of labels have held how much, as JSON: rows of an account, and the account that the leader
//! keeps, as far as a viewer may see it.

use std::{collections::BTreeSet, fmt, sync::Arc};

use jiff::Timestamp;
use serde::Serialize;

use super::{
    ApiError,
    viewer::{Sees, Viewer},
};
use crate::scheduling::showback::{HeldSeconds, OTHER, UsageAccount, UsageRow, UsageRows};

/// What hours are added up by.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Grouping {
    /// By namespace.
    Namespace,
    /// By the workload that a pod is one of.
    Owner,
    /// By the value of this label.
    Label(String),
}

/// The hours of one namespace, workload or value of a label; a key that does not apply is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageReportRow {
    /// The namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The kind of the workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_kind: Option<String>,
    /// The name of the workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_name: Option<String>,
    /// The label's value; empty: pods without the label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// How many rows this one stands for, which are not shown by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<usize>,
    /// The hours.
    #[serde(flatten)]
    pub hours: HeldHours,
}

/// Hours that were held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HeldHours {
    /// Of GPUs: of each card the larger part of its memory and compute.
    #[serde(rename = "gpuHours")]
    pub gpus: f64,
    /// Of memory of cards, in GiB.
    #[serde(rename = "gpuMemoryGibHours")]
    pub memory: f64,
    /// Of compute of cards; 1 is one whole card.
    #[serde(rename = "gpuCoreHours")]
    pub cores: f64,
}

/// GPUs that were free and could be given to none of the pods that may come.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StrandedRow {
    /// Their model.
    pub model: String,
    /// What was lacking.
    pub reason: String,
    /// The hours.
    pub gpu_hours: f64,
}

/// What the account holds, as one viewer sees it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsagePage {
    /// Until when is counted.
    until: Timestamp,
    /// `namespace`, `owner` or `label=KEY`.
    by: String,
    /// The most GPU-hours first, and what is not shown by name last.
    usage: Vec<UsageReportRow>,
    stranded: Vec<StrandedRow>,
}

impl fmt::Display for Grouping {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Namespace => formatter.write_str("namespace"),
            Self::Owner => formatter.write_str("owner"),
            Self::Label(key) => write!(formatter, "label={key}"),
        }
    }
}

impl Grouping {
    /// The headings of what rows are called, as CSV and Prometheus have them.
    pub fn headings(&self) -> &'static [&'static str] {
        match self {
            Self::Namespace => &["namespace"],
            Self::Owner => &["namespace", "owner_kind", "owner_name"],
            Self::Label(_) => &["value"],
        }
    }
}

/// Reads `namespace`, `owner` or `label=KEY`.
///
/// # Errors
///
/// What it must be instead.
pub fn grouping(text: &str) -> Result<Grouping, String> {
    match text.split_once('=') {
        None if text == "namespace" => Ok(Grouping::Namespace),
        None if text == "owner" => Ok(Grouping::Owner),
        Some(("label", key)) if is_label_key(key) => Ok(Grouping::Label(key.to_owned())),
        Some(("label", key)) => Err(format!("{key:?} can't be the key of a label")),
        _ => Err("must be namespace, owner or label=KEY".to_owned()),
    }
}

/// What a query asks hours to be added up by; by namespace where it says nothing.
///
/// # Errors
///
/// A parameter that can't be read, or is not known.
pub(super) fn asked(query: &[(String, String)]) -> Result<Grouping, ApiError> {
    let mut by = Grouping::Namespace;
    for (key, value) in query {
        if key != "by" {
            return Err(ApiError::BadRequest(format!("{key:?} is no parameter: by is")));
        }
        by = grouping(value).map_err(|why| ApiError::BadRequest(format!("by: {why}")))?;
    }
    Ok(by)
}

fn is_label_key(key: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    !key.is_empty() && key.len() <= 253 && key.chars().all(fits)
}

impl UsageReportRow {
    /// What it is called.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [&self.namespace, &self.owner_kind, &self.owner_name, &self.value]
            .into_iter()
            .flatten()
            .map(|name| &**name)
    }
}

/// Every row of an account by what is named.
pub fn rows(account: &UsageAccount, by: &Grouping) -> Vec<UsageReportRow> {
    split(account, by, |_| true, |_| true).0
}

/// The rows that may be shown, by their namespace or, where they have none, by the label's value; and how many the others are and what they held.
fn split(
    account: &UsageAccount,
    by: &Grouping,
    namespace: impl Fn(&str) -> bool,
    value: impl Fn(&str) -> bool,
) -> (Vec<UsageReportRow>, (usize, HeldSeconds)) {
    let row = |row: &UsageRow| UsageReportRow { hours: hours(row.held), ..UsageReportRow::default() };
    let text = |name: &Arc<str>| Some(name.to_string());
    let (mut shown, mut hidden) = (Vec::new(), (0, HeldSeconds::default()));
    let mut add = |may_be_shown: bool, held: &UsageRow, row: UsageReportRow| {
        if may_be_shown {
            shown.push(row);
        } else {
            hidden = (hidden.0 + 1, hidden.1.and(held.held));
        }
    };
    match by {
        Grouping::Namespace => {
            for ([name], held) in account.namespaces.iter() {
                add(namespace(name), held, UsageReportRow { namespace: text(name), ..row(held) });
            }
        }
        Grouping::Owner => {
            for ([name, kind, owner], held) in account.workloads.iter() {
                let named = UsageReportRow {
                    namespace: text(name),
                    owner_kind: text(kind),
                    owner_name: text(owner),
                    ..row(held)
                };
                add(namespace(name), held, named);
            }
        }
        Grouping::Label(key) => {
            let counts = |label: &str| label == key || label == OTHER;
            for ([_, name], held) in account.labels.iter().filter(|([label, _], _)| counts(label)) {
                add(value(name), held, UsageReportRow { value: text(name), ..row(held) });
            }
        }
    }
    (shown, hidden)
}

/// What the account holds, as the viewer may see it: rows of namespaces whose pods she may list, and one row of all others. Values of labels are of
/// all namespaces.
///
/// # Errors
///
/// The label is not counted.
pub(super) fn page(account: &UsageAccount, by: &Grouping, viewer: &Viewer) -> Result<UsagePage, ApiError> {
    if let Grouping::Label(key) = by
        && !is_counted(&account.labels, key)
    {
        return Err(ApiError::NotFound { kind: "counted labels", name: key.clone() });
    }
    let all = viewer.sees == Sees::All;
    let (mut usage, (others, held)) =
        split(account, by, |namespace| all || namespace != OTHER && viewer.sees(namespace), |_| all);
    usage.sort_by(|one, other| {
        other.hours.gpus.total_cmp(&one.hours.gpus).then_with(|| one.names().cmp(other.names()))
    });
    let hidden = UsageReportRow { others: Some(others), hours: hours(held), ..UsageReportRow::default() };
    usage.extend((others > 0).then_some(hidden));
    let stranded = account.stranded.iter().map(|([model, reason], row)| StrandedRow {
        model: model.to_string(),
        reason: reason.to_string(),
        gpu_hours: hours(row.held).gpus,
    });
    Ok(UsagePage { until: account.counted_until, by: by.to_string(), usage, stranded: stranded.collect() })
}

/// The namespaces of the account.
pub(super) fn namespaces(account: &UsageAccount) -> BTreeSet<Arc<str>> {
    let of_workloads = account.workloads.iter().map(|([namespace, ..], _)| namespace);
    let named = account.namespaces.iter().map(|([namespace], _)| namespace).chain(of_workloads);
    named.filter(|namespace| ***namespace != *OTHER).cloned().collect()
}

fn is_counted(labels: &UsageRows<2>, key: &str) -> bool {
    labels.iter().any(|([label, _], _)| **label == *key)
}

#[expect(clippy::cast_precision_loss, reason = "hours are shown with six decimals")]
fn hours(held: HeldSeconds) -> HeldHours {
    HeldHours {
        gpus: six_decimals(held.gpus as f64 / 1000.0 / 3600.0),
        memory: six_decimals(held.memory as f64 / 1024.0 / 3600.0),
        cores: six_decimals(held.cores as f64 / 100.0 / 3600.0),
    }
}

/// With six decimals at most.
pub fn six_decimals(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::scheduling::{
        model::workload::Workload,
        showback::{HeldParts, UsageSpan},
    };

    fn account() -> UsageAccount {
        let at = |second| Timestamp::from_second(second).unwrap();
        let span = |namespace: &str, name: &str, gpus: u64| UsageSpan {
            pod: name.into(),
            namespace: namespace.into(),
            workload: Workload { kind: "Job".into(), name: name.into() },
            labels: vec![["team".into(), namespace.into()]],
            held: HeldParts { memory: 1024, cores: 100, gpus },
            from: at(0),
            until: at(3600),
        };
        let spans = vec![span("a", "one", 500), span("b", "two", 1000), span("b", "three", 2000)];
        UsageAccount::begin(at(0)).advance(at(3600), spans, &[])
    }

    fn seen(sees: Sees, by: &Grouping) -> Value {
        let viewer = Viewer { user: "ada".to_owned(), sees };
        serde_json::to_value(page(&account(), by, &viewer).unwrap()).unwrap()["usage"].clone()
    }

    fn of_a() -> Sees {
        Sees::Namespaces(["a".into()].into())
    }

    #[test]
    fn rows_of_namespaces_that_the_viewer_may_not_list_are_one_row_of_amounts() {
        let own = json!({"namespace": "a", "gpuHours": 0.5, "gpuMemoryGibHours": 1.0, "gpuCoreHours": 1.0});
        let theirs = json!({"others": 1, "gpuHours": 3.0, "gpuMemoryGibHours": 2.0, "gpuCoreHours": 2.0});
        assert_eq!(seen(of_a(), &Grouping::Namespace), json!([own, theirs]));
        let nothing = Sees::Namespaces([].into());
        let all = json!([{"others": 2, "gpuHours": 3.5, "gpuMemoryGibHours": 3.0, "gpuCoreHours": 3.0}]);
        assert_eq!(seen(nothing, &Grouping::Namespace), all);
        let owners = seen(of_a(), &Grouping::Owner);
        assert_eq!((&owners[0]["ownerName"], &owners[1]["others"]), (&json!("one"), &json!(2)));
        let names: Vec<_> = seen(Sees::All, &Grouping::Namespace)
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["namespace"].clone())
            .collect();
        assert_eq!(names, ["b", "a"], "the most hours first");
    }

    #[test]
    fn values_of_labels_are_named_to_those_who_see_all_namespaces() {
        let team = Grouping::Label("team".to_owned());
        assert_eq!(seen(Sees::All, &team)[0]["value"], "b");
        let some = seen(of_a(), &team);
        assert_eq!((some.as_array().unwrap().len(), &some[0]["others"]), (1, &json!(2)), "{some}");
        let viewer = Viewer { user: "ops".to_owned(), sees: Sees::All };
        let unknown = page(&account(), &Grouping::Label("rack".to_owned()), &viewer).unwrap_err();
        assert_eq!(unknown.to_string(), "counted labels \"rack\" not found");
    }

    #[test]
    fn hours_are_added_up_by_what_is_named() {
        assert_eq!(grouping("namespace").unwrap(), Grouping::Namespace);
        assert_eq!(grouping("owner").unwrap(), Grouping::Owner);
        assert_eq!(
            grouping("label=example.com/team").unwrap(),
            Grouping::Label("example.com/team".to_owned())
        );
        for text in ["pod", "label", "label=", "label=a\"b", "owner=x"] {
            assert!(grouping(text).is_err(), "{text}");
        }
    }
}
