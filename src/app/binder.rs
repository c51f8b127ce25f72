//! The binder as the settings want it.

use std::sync::Arc;

use super::Options;
use crate::cluster::{Metrics, event_loop::Binder};

/// Writes to the API server that may be under way at once.
const WRITES_AT_ONCE: usize = 64;

/// The binder that these options describe.
pub(super) fn binder(options: &Options, metrics: Metrics) -> Binder {
    Binder {
        client: options.client.clone(),
        reader: Arc::new(options.config.reader()),
        clock: options.clock,
        metrics,
        settings: options.config.scheduler_settings(),
        writes_at_once: WRITES_AT_ONCE,
    }
}
