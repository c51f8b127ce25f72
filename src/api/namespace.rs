//! One namespace: its pods with shares, those that wait, and its quotas.

use serde::Serialize;

use super::{
    ApiError,
    fleet::Fleet,
    pod::{PodRow, pods},
    viewer::Viewer,
};
use crate::scheduling::Details;

/// A namespace.
#[derive(Debug, Serialize)]
pub(super) struct NamespacePage<'a> {
    namespace: String,
    pods: Vec<PodRow<'a>>,
    quotas: Vec<QuotaUse<'a>>,
}

/// One bound of a quota and what is used of it, in its own units.
#[derive(Debug, Serialize)]
struct QuotaUse<'a> {
    quota: &'a str,
    resource: &'a str,
    used: u64,
    hard: u64,
}

/// A namespace whose pods the viewer may see.
pub(super) fn page<'a>(
    fleet: &'a Fleet,
    namespace: &str,
    viewer: &Viewer,
    details: Details,
) -> Result<NamespacePage<'a>, ApiError> {
    viewer.check(namespace)?;
    let quotas = fleet.overview.view.outlook.world().quotas();
    let bounds = quotas.standings().filter(|bound| bound.namespace == namespace);
    let bounds = bounds.map(|bound| QuotaUse {
        quota: bound.quota,
        resource: bound.key,
        used: bound.used,
        hard: bound.limit,
    });
    Ok(NamespacePage {
        namespace: namespace.to_owned(),
        pods: pods(fleet, namespace, details),
        quotas: bounds.collect(),
    })
}
