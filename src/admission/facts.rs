//! What the rules may know beside the request: settings and what was read of the cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    dialect::{Dialects, SharingMode},
    object::Namespace,
};

/// What the rules are told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name under which pods ask Berth to place them.
    pub scheduler_name: String,
    /// Schedulers whose share pods become Berth's.
    pub adopt_schedulers: BTreeSet<String>,
    /// What to do with a share pod that names `default-scheduler`.
    pub default_scheduler: DefaultScheduler,
    /// The modes that are served.
    pub modes: BTreeSet<SharingMode>,
}

/// What to do with a share pod that names `default-scheduler`, as the API server fills in where nothing was named.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DefaultScheduler {
    /// It becomes Berth's.
    Overwrite,
    /// It is left alone, with a warning.
    Leave,
}

/// Everything beside the request that an answer depends on.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Settings.
    pub settings: Settings,
    /// The dialects that are spoken.
    pub dialects: Dialects,
    /// Namespaces, by name; one that is not known has no hints.
    pub namespaces: Arc<BTreeMap<String, Namespace>>,
}
