//! The shadow as the settings want it: new settings begin it anew, and what was counted so far stays.

use std::{future::Future, pin::pin, sync::Arc};

use jiff::SignedDuration;
use prometheus_client::registry::Registry;
use tokio::sync::watch;

use super::{AppError, Options};
use crate::{
    cluster::{
        Clock,
        shadow::{self, Shadowing, metrics::ShadowMetrics, report::Board},
    },
    config::Config,
    webhook::page::shadow::Page,
};

/// An empty report, whose counts are entered into the registry.
pub(super) fn board(registry: &mut Registry, clock: Clock) -> Board {
    let metrics = ShadowMetrics::default();
    metrics.register(registry);
    Board::new(metrics, clock.now())
}

/// The report as it is served.
pub(super) fn page(board: &Board, clock: Clock) -> Page {
    let board = board.clone();
    Arc::new(move || serde_json::to_vec(&board.page(clock.now())).expect("a report has string keys only"))
}

/// Compares until `stopped`.
pub(super) async fn run(
    options: Options,
    settle: SignedDuration,
    board: Board,
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
        let shadowing = Shadowing {
            client: options.client.clone(),
            reader: Arc::new(config.reader().shadowing()),
            clock: options.clock,
            settings: config.scheduler_settings(),
            settle,
            board: board.clone(),
        };
        shadow::run(shadowing, until).await?;
    }
    Ok(())
}
