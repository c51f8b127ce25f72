//! The section `metrics`.

use serde::Serialize;

use super::{
    section::{Field, Section},
    trouble::Trouble,
};

/// What `/metrics` shows beside the series that are always there, and to whom.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricsConfig {
    /// Whether the metrics of HAMi's scheduler are exported too, under its names and labels.
    pub hami_names: bool,
    /// Whether there is a series for each pod and card; without, there are those of namespaces.
    pub pods: bool,
    /// So many series of single cards, devices and pods there are at most: of more, only sums are shown to scrapers that ask for no others.
    pub series_limit: u32,
    /// Who may read them.
    pub authentication: Authentication,
    /// The labels of pods by whose values it is counted what was used, beside namespaces and workloads.
    pub usage_labels: Vec<String>,
}

/// So many series are about 40 MB, and take a third of a second.
const SERIES: u32 = 300_000;

/// The highest limit.
pub(super) const SERIES_AT_MOST: i64 = 100_000_000;

/// The most labels.
const LABELS: usize = 8;

/// Who may read `/metrics`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Authentication {
    /// Every client that reaches the port.
    None,
    /// The bearer of a token whose user the API server allows to get the path.
    Token,
}

impl Authentication {
    /// The values of the setting.
    pub(super) const CHOICES: [(&str, Self); 2] = [("none", Self::None), ("token", Self::Token)];
}

/// The section; keys that it lacks keep their defaults.
pub(super) fn read(mut section: Section) -> Result<MetricsConfig, Trouble> {
    let metrics = MetricsConfig {
        hami_names: section.off_unless_on("hamiNames")?,
        pods: section.on_unless_off("pods")?,
        series_limit: section.int("seriesLimit", SERIES, 0..=SERIES_AT_MOST)?,
        authentication: section.choice("authentication", Authentication::None, &Authentication::CHOICES)?,
        usage_labels: match section.take("usageLabels") {
            Some(field) => usage_labels(&field)?,
            None => Vec::new(),
        },
    };
    section.finish()?;
    Ok(metrics)
}

fn usage_labels(field: &Field) -> Result<Vec<String>, Trouble> {
    let labels = field.list()?.iter().map(label).collect::<Result<Vec<_>, _>>()?;
    if labels.len() > LABELS {
        return Err(
            field.trouble(format!("there are {} labels; at most {LABELS} can be counted by", labels.len()))
        );
    }
    Ok(labels)
}

/// The key of a label: a name, with or without a prefix.
fn label(field: &Field) -> Result<String, Trouble> {
    let text = field.text()?;
    let (prefix, name) = text.rsplit_once('/').unwrap_or(("", &text));
    let is_end = |c: char| c.is_ascii_alphanumeric();
    let fits = |c: char| is_end(c) || matches!(c, '-' | '_' | '.');
    let is_name = |part: &str, most| {
        part.chars().all(fits) && part.starts_with(is_end) && part.ends_with(is_end) && part.len() <= most
    };
    if text.len() <= 253 && is_name(name, 63) && (!text.contains('/') || is_name(prefix, 253)) {
        return Ok(text);
    }
    Err(field
        .trouble(format!("`{text}` can't be the key of a label; an example is `team` or `example.com/team`")))
}

#[cfg(test)]
mod tests {
    use crate::config::{Authentication, Config, MetricsConfig, tests::error};

    #[test]
    fn metrics_are_those_that_are_set() {
        let metrics = |text: &str| Config::parse(text, "f").unwrap().0.metrics;
        let default = MetricsConfig {
            hami_names: false,
            pods: true,
            series_limit: 300_000,
            authentication: Authentication::None,
            usage_labels: Vec::new(),
        };
        assert_eq!(metrics(""), default);
        let set = metrics(
            "metrics: {hamiNames: true, pods: false, seriesLimit: 5, authentication: token, usageLabels: [team, example.com/cost_center]}",
        );
        let other = MetricsConfig {
            hami_names: true,
            pods: false,
            series_limit: 5,
            authentication: Authentication::Token,
            usage_labels: vec!["team".to_owned(), "example.com/cost_center".to_owned()],
        };
        assert_eq!(set, other);
        assert_eq!(
            error("metrics:\n  hamiName: true\n"),
            "berth.yaml:2: metrics.hamiName: unknown key; the nearest known one is `hamiNames`"
        );
        assert!(
            error("metrics: {hamiNames: 1}")
                .starts_with("berth.yaml:1: metrics.hamiNames: must be true or false")
        );
        assert!(error("metrics: {seriesLimit: -1}").contains("metrics.seriesLimit: must be"));
        for label in ["''", "-a", "a b", "/a", "a/", "'a\"b'"] {
            let said = error(&format!("metrics: {{usageLabels: [{label}]}}"));
            assert!(said.contains("can't be the key of a label"), "{said}");
        }
        let said = error("metrics: {usageLabels: [a, b, c, d, e, f, g, h, i]}");
        assert_eq!(
            said,
            "berth.yaml:1: metrics.usageLabels: there are 9 labels; at most 8 can be counted by"
        );
        assert!(error("metrics: {authentication: basic}").contains("metrics.authentication: must be"));
    }
}
