//! The section `metrics`.

use serde::Serialize;

use super::section::{Section, Trouble};

/// What `/metrics` shows beside the series that are always there.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricsConfig {
    /// Whether the metrics of HAMi's scheduler are exported too, under its names and labels.
    pub hami_names: bool,
    /// Whether there is a series for each pod and card; without, there are those of namespaces.
    pub pods: bool,
}

/// The section; keys that it lacks keep their defaults.
pub(super) fn read(mut section: Section) -> Result<MetricsConfig, Trouble> {
    let metrics = MetricsConfig {
        hami_names: section.off_unless_on("hamiNames")?,
        pods: section.on_unless_off("pods")?,
    };
    section.finish()?;
    Ok(metrics)
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, MetricsConfig, tests::error};

    #[test]
    fn metrics_are_those_that_are_set() {
        let metrics = |text: &str| Config::parse(text, "f").unwrap().0.metrics;
        assert_eq!(metrics(""), MetricsConfig { hami_names: false, pods: true });
        let set = metrics("metrics: {hamiNames: true, pods: false}");
        assert_eq!(set, MetricsConfig { hami_names: true, pods: false });
        assert_eq!(
            error("metrics:\n  hamiName: true\n"),
            "berth.yaml:2: metrics.hamiName: unknown key; the nearest known one is `hamiNames`"
        );
        assert!(
            error("metrics: {hamiNames: 1}")
                .starts_with("berth.yaml:1: metrics.hamiNames: must be true or false")
        );
    }
}
