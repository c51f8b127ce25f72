//! The binder with the settings in force. New settings restart it, since its state comes from the API server alone.
//!
//! It also restarts when a scheduler whose pods are adopted starts or stops: while one runs, its pods are left to it.

use std::{collections::BTreeSet, future::Future, pin::pin, sync::Arc};

use tokio::sync::watch;

use super::{AppError, Chooser, Options};
use crate::{
    cluster::{
        self, Binder, Handoff, Leadership, Metrics, UsageSettings,
        election::candidate::ElectionSettings,
        informer::other_schedulers::{self, Running},
    },
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
    let (publishes, mut running) = watch::channel(Running::default());
    let mut following = pin!(other_schedulers::follow(&options.client, &publishes));
    while !ended {
        let config = settings.borrow_and_update().clone();
        let (names, namespaces) = (config.adopted_names(), &config.scheduler_namespaces);
        let adopted = tokio::select! {
            () = &mut stopped => return Ok(()),
            Ok(()) = settings.changed() => continue,
            adopted = not_running(&names, namespaces, &mut running) => adopted,
            () = &mut following, if !names.is_empty() => return Err(ENDED),
        };
        let until = async {
            tokio::select! {
                () = &mut stopped => ended = true,
                Ok(()) = settings.changed() => {}
                () = other_than(&adopted, (&names, namespaces), &mut running) => {}
                else => std::future::pending().await,
            }
        };
        let binder = binder(&options, &config, adopted.clone(), metrics.clone(), handoff.clone());
        tokio::select! {
            result = cluster::run(binder, until) => result?,
            () = &mut following, if !names.is_empty() => return Err(ENDED),
        }
    }
    Ok(())
}

/// The watch of other schedulers never ends by itself.
const ENDED: AppError = AppError::Ended("following other schedulers");

fn binder(
    options: &Options,
    config: &Config,
    adopted: BTreeSet<String>,
    metrics: Metrics,
    handoff: Handoff,
) -> Binder {
    let reader = match options.chooser {
        Chooser::Berth => config.reader().adopting(adopted),
        // kube-scheduler has one profile for Berth: pods that name another are not its own.
        Chooser::KubeScheduler => config.reader().judging_cards(),
    };
    Binder {
        client: options.client.clone(),
        reader: Arc::new(reader),
        clock: options.clock,
        metrics,
        settings: config.scheduler_settings(),
        details: config.messages.details,
        writes_at_once: WRITES_AT_ONCE,
        leadership: options.leadership.clone(),
        usage: usage(&options.leadership, config),
        handoff,
    }
}

/// The account of what was used stands beside the Lease; without one, nothing says who counts.
pub(super) fn usage(leadership: &Leadership, config: &Config) -> Option<UsageSettings> {
    let Leadership::Elected(ElectionSettings { namespace, name, .. }) = leadership else { return None };
    let labels = config.metrics.usage_labels.iter();
    Some(UsageSettings {
        namespace: namespace.clone(),
        name: format!("{name}-usage"),
        labels: labels.map(|label| label.as_str().into()).collect(),
    })
}

/// Those of the adopted names that no running scheduler serves, once it is known which run.
async fn not_running(
    names: &BTreeSet<String>,
    namespaces: &[String],
    running: &mut watch::Receiver<Running>,
) -> BTreeSet<String> {
    if names.is_empty() {
        return BTreeSet::new();
    }
    loop {
        let found = adopted(names, namespaces, &running.borrow_and_update());
        if let Some(adopted) = found {
            for name in names.difference(&adopted) {
                tracing::warn!(
                    scheduler = name,
                    "it still runs: pods that name it are left to it until it is stopped"
                );
            }
            warn_of_strangers(&adopted, namespaces, &running.borrow());
            return adopted;
        }
        changed(running).await;
    }
}

/// Says which pods look like a scheduler whose pods are adopted, and are not taken for one.
fn warn_of_strangers(adopted: &BTreeSet<String>, namespaces: &[String], running: &Running) {
    for name in adopted {
        for namespace in running.elsewhere(name, namespaces) {
            tracing::warn!(
                scheduler = name,
                namespace,
                "a pod there looks like that scheduler and is not taken for it, since schedulerNamespaces does not list its namespace: if \
                 it is that scheduler, both place the same pods"
            );
        }
    }
}

/// Returns once other names are to be adopted than these.
async fn other_than(
    before: &BTreeSet<String>,
    (names, namespaces): (&BTreeSet<String>, &[String]),
    running: &mut watch::Receiver<Running>,
) {
    while adopted(names, namespaces, &running.borrow_and_update()).is_none_or(|adopted| adopted == *before) {
        changed(running).await;
    }
}

/// Those of the names that no scheduler serves which runs in one of these namespaces; `None` until it is known which run.
fn adopted(names: &BTreeSet<String>, namespaces: &[String], running: &Running) -> Option<BTreeSet<String>> {
    let running = running.names(namespaces)?;
    Some(names.iter().filter(|name| !running.contains(name.as_str())).cloned().collect())
}

/// An error means that the sender is gone, with which the whole run has ended.
async fn changed(running: &mut watch::Receiver<Running>) {
    if running.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}
