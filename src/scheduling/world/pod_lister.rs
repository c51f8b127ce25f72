//! How the pods that were seen are read by what does not keep them.

use crate::scheduling::model::pod::PodInfo;

/// The pods that were seen.
pub(in crate::scheduling) trait PodLister {
    /// The pod with this uid.
    fn pod(&self, uid: &str) -> Option<&PodInfo>;

    /// The newest pod of this name.
    fn named(&self, namespace: &str, name: &str) -> Option<&PodInfo>;
}
