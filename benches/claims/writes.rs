//! The writes that an API server has answered, as its own metrics count them.

use std::collections::BTreeMap;

use anyhow::Context as _;

use crate::support::controlplane::ControlPlane;

const VERBS: [&str; 4] = ["POST", "PUT", "PATCH", "APPLY"];
/// What a scheduler and the load work on.
const RESOURCES: [&str; 4] = ["pods", "resourceclaims", "events", "nodes"];

/// How many writes of each kind, such as `PUT resourceclaims/status`, were answered.
#[derive(Debug)]
pub(crate) struct Writes(BTreeMap<String, u64>);

impl Writes {
    pub(crate) async fn of(plane: &ControlPlane) -> anyhow::Result<Self> {
        let metrics = plane.metrics().await.context("metrics of the API server")?;
        let mut writes = BTreeMap::new();
        for line in metrics.lines().filter_map(|line| line.strip_prefix("apiserver_request_total{")) {
            let Some((labels, value)) = line.split_once("} ") else { continue };
            let labels: BTreeMap<&str, &str> =
                labels.split(',').filter_map(|label| label.split_once('=')).collect();
            let label = |name| labels.get(name).map_or("", |value| value.trim_matches('"'));
            let (verb, resource, subresource) = (label("verb"), label("resource"), label("subresource"));
            if !VERBS.contains(&verb) || !RESOURCES.contains(&resource) {
                continue;
            }
            let slash = if subresource.is_empty() { "" } else { "/" };
            let refused = if label("code").starts_with('2') { "" } else { label("code") };
            let name = format!("{verb} {resource}{slash}{subresource} {refused}").trim().to_owned();
            *writes.entry(name).or_default() += count(value);
        }
        Ok(Self(writes))
    }

    /// What came since an earlier reading.
    pub(crate) fn since(&self, earlier: &Self) -> BTreeMap<String, u64> {
        let more = self
            .0
            .iter()
            .map(|(name, count)| (name.clone(), count - earlier.0.get(name).copied().unwrap_or_default()));
        more.filter(|(_, more)| *more > 0).collect()
    }
}

/// The exposition format writes counters as floating point numbers, large ones as `1.5e+06`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counters are small and positive"
)]
fn count(value: &str) -> u64 {
    value.trim().parse::<f64>().map_or(0, |value| value as u64)
}
