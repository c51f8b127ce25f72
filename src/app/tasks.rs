//! The tasks of the process: workers, which end in order at the shutdown, and followers, which never end by themselves.

use std::{future::Future, time::Duration};

use tokio::{sync::watch, task::JoinSet};

use super::AppError;

/// How long the shutdown waits for workers after the last of them was asked to stop.
const LONGEST_END: Duration = Duration::from_secs(25);

/// Every task of the process.
pub(super) struct Tasks {
    workers: JoinSet<Result<(), AppError>>,
    followers: JoinSet<&'static str>,
    stop: watch::Sender<Stop>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stop {
    No,
    /// Stop, except for the webhook, which goes on for this time.
    After(Duration),
}

impl Default for Tasks {
    fn default() -> Self {
        Self { workers: JoinSet::new(), followers: JoinSet::new(), stop: watch::Sender::new(Stop::No) }
    }
}

impl Tasks {
    /// Waits for the shutdown; returns for how long the webhook still answers.
    pub(super) fn stopped(&self) -> impl Future<Output = Duration> + Send + use<> {
        let mut stopped = self.stop.subscribe();
        async move {
            // An error means that the sender is gone, which ends the process too.
            match stopped.wait_for(|stop| *stop != Stop::No).await.as_deref() {
                Ok(Stop::After(delay)) => *delay,
                Ok(Stop::No) | Err(_) => Duration::ZERO,
            }
        }
    }

    /// Starts a worker, which must end after [`Self::stopped`] returns, and not before.
    pub(super) fn work(&mut self, worker: impl Future<Output = Result<(), AppError>> + Send + 'static) {
        self.workers.spawn(worker);
    }

    /// Starts a follower, which never ends by itself.
    pub(super) fn follow(&mut self, what: &'static str, follower: impl Future<Output = ()> + Send + 'static) {
        self.followers.spawn(async move {
            follower.await;
            what
        });
    }

    /// Waits for the shutdown, which returns for how long the webhook still answers, or for the first task that ends before it; then
    /// ends the workers in order.
    pub(super) async fn run(
        mut self,
        shutdown: impl Future<Output = Duration>,
        before_the_end: impl FnOnce(),
    ) -> Result<(), AppError> {
        let (delay, outcome) = tokio::select! {
            delay = shutdown => (delay, Ok(())),
            Some(ended) = self.workers.join_next() => {
                let ended = ended.map_err(AppError::Panicked).flatten().and(Err(AppError::Ended("a worker")));
                (Duration::ZERO, ended)
            }
            Some(ended) = self.followers.join_next() => {
                let ended = ended.map_err(AppError::Panicked).and_then(|what| Err(AppError::Ended(what)));
                (Duration::ZERO, ended)
            }
        };
        before_the_end();
        self.stop.send_replace(Stop::After(delay));
        let ended = tokio::time::timeout(delay + LONGEST_END, Self::end(&mut self.workers)).await;
        if ended.is_err() {
            tracing::warn!(workers = self.workers.len(), "gave up waiting for tasks to end");
        }
        outcome.and(ended.unwrap_or(Ok(())))
    }

    async fn end(workers: &mut JoinSet<Result<(), AppError>>) -> Result<(), AppError> {
        while let Some(ended) = workers.join_next().await {
            ended.map_err(AppError::Panicked)??;
        }
        Ok(())
    }
}
