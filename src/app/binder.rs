//! The binder with the settings in force. New settings restart it, since its state comes from the API server alone.

use std::{future::Future, pin::pin, sync::Arc};

use tokio::sync::watch;

use super::{AppError, Chooser, Options};
use crate::{
    cluster::{self, Binder, Handoff, Metrics},
    config::Config,
};

/// The most writes to the API server at the same time.
const WRITES_AT_ONCE: usize = 64;

/// Binds until `stopped`.
pub(super) async fn run(
    options: Options,
    metrics: Metrics,
    handoff: Handoff,
    mut settings: watch::Receiver<Arc<Config>>,
    stopped: impl Future<Output = ()>,
) -> Result<(), AppError> {
    let mut stopped = pin!(stopped);
    let mut ended = false;
    while !ended {
        let config = settings.borrow_and_update().clone();
        let until = async {
            tokio::select! {
                () = &mut stopped => ended = true,
                Ok(()) = settings.changed() => {}
                else => std::future::pending().await,
            }
        };
        cluster::run(binder(&options, &config, metrics.clone(), handoff.clone()), until).await?;
    }
    Ok(())
}

fn binder(options: &Options, config: &Config, metrics: Metrics, handoff: Handoff) -> Binder {
    let reader = match options.chooser {
        Chooser::Berth => config.reader(),
        Chooser::KubeScheduler => config.reader().judging_cards(),
    };
    Binder {
        client: options.client.clone(),
        reader: Arc::new(reader),
        clock: options.clock,
        metrics,
        settings: config.scheduler_settings(),
        writes_at_once: WRITES_AT_ONCE,
        leadership: options.leadership.clone(),
        handoff,
    }
}
