//! The section `metrics`.

use serde::Serialize;

use super::{section::Section, trouble::Trouble};

/// What `/metrics` shows beside the series that are always there, and to whom.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricsConfig {
    /// Whether the metrics of HAMi's scheduler are exported too, under its names and labels.
    pub hami_names: bool,
    /// Whether there is a series for each pod and card; without, there are those of namespaces.
    pub pods: bool,
    /// Who may read them.
    pub authentication: Authentication,
}

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
        authentication: section.choice("authentication", Authentication::None, &Authentication::CHOICES)?,
    };
    section.finish()?;
    Ok(metrics)
}

#[cfg(test)]
mod tests {
    use crate::config::{Authentication, Config, MetricsConfig, tests::error};

    #[test]
    fn metrics_are_those_that_are_set() {
        let metrics = |text: &str| Config::parse(text, "f").unwrap().0.metrics;
        let default = MetricsConfig { hami_names: false, pods: true, authentication: Authentication::None };
        assert_eq!(metrics(""), default);
        let set = metrics("metrics: {hamiNames: true, pods: false, authentication: token}");
        let other = MetricsConfig { hami_names: true, pods: false, authentication: Authentication::Token };
        assert_eq!(set, other);
        assert_eq!(
            error("metrics:\n  hamiName: true\n"),
            "berth.yaml:2: metrics.hamiName: unknown key; the nearest known one is `hamiNames`"
        );
        assert!(
            error("metrics: {hamiNames: 1}")
                .starts_with("berth.yaml:1: metrics.hamiNames: must be true or false")
        );
        assert!(error("metrics: {authentication: basic}").contains("metrics.authentication: must be"));
    }
}
