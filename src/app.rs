//! Joins the adapters: the webhook in front of admission, the binder in front of scheduling, and what they share.
//!
//! Decides nothing. Every task is watched here: the first that ends, ends the process.

mod binder;
pub mod build_info;
mod certificates;
mod facts;
mod inventory;
mod ledger;
mod onward;
mod scrape;
pub mod settings;
mod tasks;

use std::{future::Future, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use futures::FutureExt as _;
use kube::Client;
use prometheus_client::registry::Registry;
use tokio::{sync::watch, task::JoinError};

use tasks::Tasks;

pub use certificates::{CertificateSource, Renewal, SecretLocation};

use crate::{
    cluster::{self, Clock, ClusterError, Handoff, Leadership},
    config::Config,
    scheduling::PodKey,
    webhook::{
        self, Bound, ClientAuthority, Limits, Listener, TlsSettings,
        mint::MintError,
        registration::Registration,
        router::{Readiness, Webhook},
        secret::SecretError,
        serve::ListenError,
        tls::CertificateError,
    },
};

/// Which parts run in this process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Parts {
    /// Webhook and binder.
    Both,
    /// The webhook alone.
    Webhook,
    /// The binder alone; metrics and probes are served all the same.
    Binder,
}

/// What the process is told.
pub struct Options {
    /// The settings.
    pub config: Config,
    /// The file that they were read from, to be read again when it changes.
    pub config_file: Option<PathBuf>,
    /// The client; it must not retry by itself, since a Binding that is sent twice is in doubt.
    pub client: Client,
    /// The present.
    pub clock: Clock,
    /// Which parts run.
    pub parts: Parts,
    /// How the binder knows that it is the only one.
    pub leadership: Leadership,
    /// Where the webhook listens.
    pub listen: SocketAddr,
    /// Where its certificate comes from.
    pub certificates: CertificateSource,
    /// The authority of the clients that are answered reviews, PEM, re-read when it changes; without one, all are.
    pub client_ca_file: Option<PathBuf>,
    /// The webhook configurations that are told the authority.
    pub registration: Registration,
    /// The pod that this process runs in, which Events about its settings are about; `None`: it runs in none.
    pub own_pod: Option<PodKey>,
}

/// Why the process can't go on.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The webhook's address can't be had.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Its certificate can't be read.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// Its certificate can't be made.
    #[error(transparent)]
    Mint(#[from] MintError),
    /// Its certificate can't be agreed on.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The binder ended.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A task ended that never should.
    #[error("{0} has ended")]
    Ended(&'static str),
    /// A task panicked.
    #[error("a task panicked")]
    Panicked(#[source] JoinError),
}

/// A process that is about to run.
pub struct App {
    options: Options,
    bound: Bound,
    serving: certificates::Serving,
    clients: Option<ClientAuthority>,
    ready: watch::Sender<Readiness>,
}

impl App {
    /// Binds the webhook's address and gets its certificate; nothing is answered yet.
    pub async fn bind(options: Options) -> Result<Self, AppError> {
        let bound = Listener::new(Limits::default()).bind(options.listen).await?;
        let serving = certificates::load(&options).await?;
        let clients = match &options.client_ca_file {
            Some(file) => Some(ClientAuthority::load(file, Arc::clone(&serving.certificates)).await?),
            None => None,
        };
        Ok(Self { options, bound, serving, clients, ready: watch::Sender::new(Readiness::Starting) })
    }

    /// Whether reviews are answered by what is known of the cluster.
    pub fn readiness(&self) -> watch::Receiver<Readiness> {
        self.ready.subscribe()
    }

    /// Where the webhook listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.bound.local_addr()
    }

    /// Runs until `shutdown`, or until something ends that never should. `shutdown` says for how long reviews are still taken in after
    /// it: until no API server sends any here. The binder stops at once.
    pub async fn run(self, shutdown: impl Future<Output = Duration>) -> Result<(), AppError> {
        let Self { options, bound, serving, clients, ready } = self;
        let mut registry = Registry::default();
        let reviews = crate::webhook::Metrics::register(&mut registry);
        let bindings = cluster::Metrics::default();
        bindings.register(&mut registry);
        build_info::register(&mut registry);
        let reloads = settings::Reloads::register(&mut registry, options.clock);
        let readiness = ready.subscribe();
        let facts = facts::Shared::new(&options.config);
        let (config, settings) = watch::channel(Arc::new(options.config.clone()));
        let handoff = Handoff::default();
        let webhook = Webhook {
            judge: facts.judge(),
            onward: (options.parts == Parts::Both).then(|| onward::onward(&handoff)),
            metrics: reviews.clone(),
            registry: Arc::new(registry),
            scrape: (options.parts != Parts::Webhook)
                .then(|| scrape::scrape(handoff.questions().clone(), settings.clone())),
            readiness,
        };

        let mut tasks = Tasks::default();
        let stopped = tasks.stopped();
        let gone = async { tokio::time::sleep(stopped.await).await };
        let debug = ledger::debug(&options, handoff.questions().clone());
        let (router, tls) = match &clients {
            Some(clients) => (webhook::verified_router(webhook), clients.settings().into()),
            None => (webhook::router(webhook), TlsSettings::from(serving.certificates.server_config())),
        };
        // Who does not bind has no ledger, and no rights to find out who asks for one.
        let router = match options.parts {
            Parts::Webhook => router,
            Parts::Both | Parts::Binder => router.merge(webhook::debug::router(debug)),
        };
        tasks.work(async move {
            bound.serve(router, tls, gone).await;
            Ok(())
        });
        if let Some(clients) = clients {
            tasks.follow("following the client authority", clients.follow(certificates::FILE_PERIOD));
        }
        tasks.follow("following the certificate", certificates::follow(serving, reviews, &options));
        let file = options.config_file.clone();
        tasks.follow(
            "following the settings file",
            settings::follow(file, config, reloads, settings::Reporter::of(&options)),
        );
        tasks.follow("following the settings", facts::follow_settings(facts.clone(), settings.clone()));
        tasks.follow(
            "following the namespaces",
            facts::follow(facts, options.client.clone(), ready.clone(), options.parts, handoff.clone()),
        );
        if options.parts != Parts::Webhook {
            let stopped = tasks.stopped().map(drop);
            tasks.work(binder::run(options, bindings, handoff, settings, stopped));
        }
        let drain = || {
            ready.send_replace(Readiness::Draining);
        };
        tasks.run(shutdown, drain).await
    }
}
