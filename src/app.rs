//! Joins the adapters: the webhook in front of admission, the binder in front of scheduling, and what they share.
//!
//! It decides nothing. It watches every task: the first one that ends unexpectedly ends the process.

mod binder;
pub mod build_info;
mod certificates;
mod facts;
mod inventory;
mod ledger;
mod onward;
mod settings;
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
    /// Only the webhook.
    Webhook,
    /// Only the binder; metrics and probes are served too.
    Binder,
}

/// The options of the process.
pub struct Options {
    /// The settings.
    pub config: Config,
    /// The file of the settings, which is read again when it changes.
    pub config_file: Option<PathBuf>,
    /// The client; it must not retry by itself, since a Binding that is sent twice is in doubt.
    pub client: Client,
    /// The clock.
    pub clock: Clock,
    /// Which parts run.
    pub parts: Parts,
    /// How the binder knows that it is the only one.
    pub leadership: Leadership,
    /// The address that the webhook listens on.
    pub listen: SocketAddr,
    /// The source of the webhook's certificate.
    pub certificates: CertificateSource,
    /// The file with the authority (PEM) of the clients whose reviews are answered, read again when it changes; `None`: all clients.
    pub client_ca_file: Option<PathBuf>,
    /// The webhook configurations in which the authority is published.
    pub registration: Registration,
}

/// Why the process ends with an error.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The webhook can't listen on its address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The webhook's certificate can't be read.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The webhook's certificate can't be created.
    #[error(transparent)]
    Mint(#[from] MintError),
    /// There is no certificate from the Secret.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The binder ended.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A task ended that must run as long as the process.
    #[error("{0} has ended")]
    Ended(&'static str),
    /// A task panicked.
    #[error("a task panicked")]
    Panicked(#[source] JoinError),
}

/// The process, ready to run.
pub struct App {
    options: Options,
    bound: Bound,
    serving: certificates::Serving,
    clients: Option<ClientAuthority>,
    ready: watch::Sender<Readiness>,
}

impl App {
    /// Listens on the webhook's address and loads its certificate; no request is answered yet.
    pub async fn bind(options: Options) -> Result<Self, AppError> {
        let bound = Listener::new(Limits::default()).bind(options.listen).await?;
        let serving = certificates::load(&options).await?;
        let clients = match &options.client_ca_file {
            Some(file) => Some(ClientAuthority::load(file, Arc::clone(&serving.certificates)).await?),
            None => None,
        };
        Ok(Self { options, bound, serving, clients, ready: watch::Sender::new(Readiness::Starting) })
    }

    /// The state that `/readyz` reports.
    pub fn readiness(&self) -> watch::Receiver<Readiness> {
        self.ready.subscribe()
    }

    /// The address that the webhook listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.bound.local_addr()
    }

    /// Runs until `shutdown`, or until a task ends unexpectedly. `shutdown` returns for how long reviews are still answered, until the
    /// API servers stop sending them. The binder stops at once.
    pub async fn run(self, shutdown: impl Future<Output = Duration>) -> Result<(), AppError> {
        let Self { options, bound, serving, clients, ready } = self;
        let mut registry = Registry::default();
        let reviews = crate::webhook::Metrics::register(&mut registry);
        let bindings = cluster::Metrics::default();
        bindings.register(&mut registry);
        build_info::register(&mut registry);
        let readiness = ready.subscribe();
        let facts = facts::Shared::new(&options.config);
        let (config, settings) = watch::channel(Arc::new(options.config.clone()));
        let handoff = Handoff::default();
        let webhook = Webhook {
            judge: facts.judge(),
            onward: (options.parts == Parts::Both).then(|| onward::onward(&handoff)),
            metrics: reviews.clone(),
            registry: Arc::new(registry),
            readiness,
        };

        let mut tasks = Tasks::default();
        let stopped = tasks.stopped();
        let gone = async { tokio::time::sleep(stopped.await).await };
        let debug = ledger::debug(options.client.clone(), handoff.questions().clone());
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
        tasks.follow("following the settings file", settings::follow(file, config));
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
