//! What a binder publishes of itself: the cluster as it sees it, and how it reads pods.

use std::sync::Arc;

use crate::{cluster::read::Reader, scheduling::Outlook};

/// The view of a binder, with its reader.
#[derive(Clone, Debug)]
pub struct BinderView {
    /// Reads pods as the binder does.
    pub reader: Arc<Reader>,
    /// The cluster as the binder has published it last.
    pub outlook: Outlook,
}
