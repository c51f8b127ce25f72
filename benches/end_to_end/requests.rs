//! Requests by verb and resource: as the API server counts them, and how a client names its own alike.

use std::collections::BTreeMap;

use http::{Method, Uri};

const WRITES: [&str; 6] = ["POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"];
/// What a binder, the agents and the load work on; the API server's own leases and registrations are left out.
pub(crate) const RESOURCES: &[&str] = &["pods", "nodes", "events"];

/// How many requests of each kind, `PATCH nodes 409`, were answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answered(BTreeMap<String, u64>);

impl Answered {
    /// Reads `apiserver_request_total` of these resources.
    pub(crate) fn read(metrics: &str, resources: &[&str]) -> Self {
        let mut answered = BTreeMap::new();
        for line in metrics.lines().filter_map(|line| line.strip_prefix("apiserver_request_total{")) {
            let Some((labels, value)) = line.split_once("} ") else { continue };
            let labels: BTreeMap<&str, &str> =
                labels.split(',').filter_map(|label| label.split_once('=')).collect();
            let label = |name| labels.get(name).map_or("", |value| value.trim_matches('"'));
            let (verb, resource, subresource) = (label("verb"), label("resource"), label("subresource"));
            if resources.contains(&resource) {
                let slash = if subresource.is_empty() { "" } else { "/" };
                let refused = if label("code").starts_with('2') { "" } else { label("code") };
                let name = format!("{verb} {resource}{slash}{subresource} {refused}");
                *answered.entry(name.trim().to_owned()).or_default() += count(value);
            }
        }
        Self(answered)
    }

    /// What came since an earlier reading.
    pub(crate) fn since(&self, earlier: &Self) -> BTreeMap<String, u64> {
        let more = |(name, count): (&String, &u64)| {
            let more = count - earlier.0.get(name).copied().unwrap_or_default();
            (more > 0).then(|| (name.clone(), more))
        };
        self.0.iter().filter_map(more).collect()
    }

    /// All of them, to see whether they still come.
    pub(crate) fn writes(&self) -> u64 {
        writes(&self.0)
    }
}

/// Whether a request that is named by verb first is a write.
pub(crate) fn is_write(name: &str) -> bool {
    WRITES.contains(&name.split(' ').next().unwrap_or_default())
}

/// The writes among requests that are named by verb first.
pub(crate) fn writes(requests: &BTreeMap<String, u64>) -> u64 {
    requests.iter().filter(|(name, _)| is_write(name)).map(|(_, count)| count).sum()
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

/// A client's request in the API server's words.
pub(crate) fn name(method: &Method, uri: &Uri) -> String {
    let mut path: Vec<&str> = uri.path().split('/').filter(|segment| !segment.is_empty()).collect();
    path.drain(..(if path.first() == Some(&"apis") { 3 } else { 2 }).min(path.len()));
    if path.first() == Some(&"namespaces") && path.len() > 2 {
        path.drain(..2);
    }
    let (resource, subresource) = (path.first().copied().unwrap_or_default(), path.get(2).copied());
    let watches = uri.query().is_some_and(|query| query.contains("watch=true"));
    let verb = match (method, path.len()) {
        (&Method::GET, _) if watches => "WATCH",
        (&Method::GET, 1) => "LIST",
        (method, _) => method.as_str(),
    };
    let slash = if subresource.is_some() { "/" } else { "" };
    format!("{verb} {resource}{slash}{}", subresource.unwrap_or_default())
}
