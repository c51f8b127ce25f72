//! One namespace: its pods with shares, those that wait, and its quotas.

use serde::Serialize;

use super::{
    ApiError,
    bound::BoundRow,
    fleet::CountedFleet,
    pod::{PodPage, pods},
    viewer::Viewer,
};

/// A namespace.
#[derive(Debug, Serialize)]
pub(super) struct NamespacePage<'a> {
    namespace: String,
    pods: Vec<PodPage<'a>>,
    quotas: Vec<BoundRow>,
}

/// A namespace whose pods the viewer may see.
pub(super) fn page<'a>(
    fleet: &'a CountedFleet,
    namespace: &str,
    viewer: &Viewer,
) -> Result<NamespacePage<'a>, ApiError> {
    viewer.check(namespace)?;
    let quotas = fleet.overview.view.outlook.world().quotas();
    let bounds = quotas.standings().filter(|bound| bound.namespace == namespace);
    Ok(NamespacePage {
        namespace: namespace.to_owned(),
        pods: pods(fleet, namespace),
        quotas: bounds.map(BoundRow::from).collect(),
    })
}
