//! Joins the adapters: the webhook in front of admission, the binder in front of scheduling, and what they share.
//!
//! It decides nothing. It watches every task: the first one that ends unexpectedly ends the process.

mod access;
mod api;
mod binder;
pub mod build_info;
mod certificates;
pub mod entrance;
mod extender;
mod facts;
mod inventory;
pub mod kubernetes;
mod leader;
mod ledger;
mod moves;
mod onward;
mod release;
mod scrape;
pub mod settings;
mod shadow;
mod tasks;

use std::{future::Future, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use axum::Router;
use futures::FutureExt as _;
use jiff::SignedDuration;
use kube::Client;
use prometheus_client::registry::Registry;
use tokio::{sync::watch, task::JoinError};

use tasks::Tasks;

pub use certificates::{CertificateSource, Renewal, SecretLocation};
pub use moves::MovesAdvice;

use crate::{
    api::Api,
    cluster::{self, Clock, ClusterError, Handoff, Leadership, shadow::report::Board},
    config::Config,
    scheduling::PodKey,
    webhook::{
        self, BoundServer, ClientAuthority, Limits, Listener, TlsSettings,
        certificate::{
            mint::MintError, registration::WebhookConfigurations, secret::SecretError, tls::CertificateError,
        },
        page::debug::Debug,
        router::{Health, ServerReadiness, Webhook},
        server::serve::ListenError,
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
    /// A shadow of the cluster's current scheduler: it compares and writes nothing.
    Shadow {
        /// How long another scheduler may leave a pod pending that Berth would place.
        settle: SignedDuration,
    },
}

/// What chooses the nodes of pods.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Chooser {
    /// Berth.
    #[default]
    Berth,
    /// kube-scheduler, which asks Berth as its extender; Berth chooses the cards and binds.
    KubeScheduler,
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
    /// What chooses the nodes of pods.
    pub chooser: Chooser,
    /// How the binder knows that it is the only one.
    pub leadership: Leadership,
    /// The address that the webhook listens on.
    pub listen: SocketAddr,
    /// The source of the webhook's certificate.
    pub certificates: CertificateSource,
    /// The file with the authority (PEM) of the clients whose reviews are answered, read again when it changes; `None`: all clients.
    pub client_ca_file: Option<PathBuf>,
    /// The webhook configurations in which the authority is published.
    pub registration: WebhookConfigurations,
    /// The pod that this process runs in, which Events about its settings are about; `None`: it runs in none.
    pub own_pod: Option<PodKey>,
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
    bound: BoundServer,
    serving: certificates::Serving,
    clients: Option<ClientAuthority>,
    ready: watch::Sender<ServerReadiness>,
    handoff: Handoff,
    facts: facts::Shared,
    moves: MovesAdvice,
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
        let ready = watch::Sender::new(ServerReadiness::Starting);
        let handoff = hand_off(options.chooser);
        let facts = facts::Shared::new(&options.config);
        Ok(Self { options, bound, serving, clients, ready, handoff, facts, moves: MovesAdvice::Off })
    }

    /// The same process, which says what moving pods would win, or does not.
    #[must_use]
    pub fn advising(self, moves: MovesAdvice) -> Self {
        Self { moves, ..self }
    }

    /// The API without a token, for somebody who may see every pod, such as the owner of a demonstration.
    pub fn open_api(&self) -> Arc<Api> {
        api::open(&self.options, &self.facts, &self.handoff, self.ready.subscribe())
    }

    /// The state that `/readyz` reports.
    pub fn readiness(&self) -> watch::Receiver<ServerReadiness> {
        self.ready.subscribe()
    }

    /// The address that the webhook listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.bound.local_addr()
    }

    /// Runs until `shutdown`, or until a task ends unexpectedly. `shutdown` returns for how long reviews are still answered, until the
    /// API servers stop sending them. The binder stops at once.
    pub async fn run(self, shutdown: impl Future<Output = Duration>) -> Result<(), AppError> {
        let Self { options, bound, serving, clients, ready, handoff, facts, moves } = self;
        let mut registry = Registry::default();
        let reviews = crate::webhook::WebhookMetrics::register(&mut registry);
        let bindings = cluster::Metrics::default();
        let board = counted(&options, &bindings, &mut registry);
        build_info::register(&mut registry);
        let reloads = settings::Reloads::register(&mut registry, options.clock);
        let readiness = ready.subscribe();
        let (config, settings) = watch::channel(Arc::new(options.config.clone()));
        let mut tasks = Tasks::default();
        let answers_dry_runs = options.parts == Parts::Both && options.chooser == Chooser::Berth;
        let onward = answers_dry_runs.then(|| {
            let (onward, prepared) = onward::onward(&handoff, settings.clone());
            tasks.follow("preparing for dry runs", prepared);
            onward
        });
        let webhook = Webhook {
            judge: facts.judge(),
            workloads: Arc::new(options.config.workloads()),
            onward,
            metrics: reviews.clone(),
            registry: Arc::new(registry),
            scrape: (options.parts != Parts::Webhook)
                .then(|| scrape::scrape(handoff.questions().clone(), settings.clone())),
            scraper: access::to_metrics(&options, settings.clone()),
            readiness,
            health: health(&handoff),
        };

        let stopped = tasks.stopped();
        let gone = async { tokio::time::sleep(stopped.await).await };
        let debug = ledger::debug(&options, handoff.questions().clone());
        let (router, tls) = match &clients {
            Some(clients) => (webhook::verified_router(webhook), clients.settings().into()),
            None => (webhook::router(webhook), TlsSettings::from(serving.certificates.server_config())),
        };
        let router = with_extender(router, &options, &handoff);
        let router = with_debug(router, &options, board.as_ref(), debug);
        let router = with_api(router, (&options, &facts), &handoff, ready.subscribe());
        let router = webhook::closing(router, ready.subscribe());
        tasks.work(async move {
            bound.serve(router, tls, gone).await;
            Ok(())
        });
        if let Some(clients) = clients {
            tasks.follow("following the client authority", clients.follow(certificates::FILE_PERIOD));
        }
        tasks.follow("following the certificate", certificates::follow(serving, reviews, &options));
        if options.parts != Parts::Webhook {
            tasks.follow(
                "following the API server's release",
                release::follow(options.client.clone(), config.clone()),
            );
        }
        let file = options.config_file.clone();
        tasks.follow(
            "following the settings file",
            settings::follow(file, config, reloads, settings::Reporter::of(&options)),
        );
        tasks.follow("following the settings", facts::follow_settings(facts.clone(), settings.clone()));
        let served = (options.parts, options.config.scheduling.claims.served());
        tasks.follow(
            "following the namespaces",
            facts::follow(facts, options.client.clone(), ready.clone(), served, handoff.clone()),
        );
        if moves == MovesAdvice::Given && matches!(options.parts, Parts::Both | Parts::Binder) {
            tasks.follow("looking for moves", moves::follow(&options, bindings.clone(), &handoff));
        }
        follow_pods(&mut tasks, options, (bindings, board), handoff, settings);
        let drain = || {
            ready.send_replace(ServerReadiness::Draining);
        };
        tasks.run(shutdown, drain).await
    }
}

/// Has pods bound, or another scheduler's decisions compared, where this process is to do either.
fn follow_pods(
    tasks: &mut Tasks,
    options: Options,
    (bindings, board): (cluster::Metrics, Option<Board>),
    handoff: Handoff,
    settings: watch::Receiver<Arc<Config>>,
) {
    let stopped = tasks.stopped().map(drop);
    match (options.parts, board) {
        (Parts::Webhook, _) => {}
        (Parts::Shadow { settle }, Some(board)) => {
            tasks.work(shadow::run(options, settle, board, settings, stopped));
        }
        _ => tasks.work(binder::run(options, bindings, handoff, settings, stopped)),
    }
}

/// Fails while the binder's loop stands still.
fn health(handoff: &Handoff) -> Health {
    let pulse = handoff.pulse().clone();
    Arc::new(move || pulse.has_stopped().then_some("the binder's loop has not gone on for 5 seconds"))
}

/// Enters what this process's part counts; the report of a shadow.
fn counted(options: &Options, bindings: &cluster::Metrics, registry: &mut Registry) -> Option<Board> {
    match options.parts {
        Parts::Shadow { .. } => Some(shadow::board(registry, options.clock)),
        Parts::Both | Parts::Webhook | Parts::Binder => {
            bindings.register(registry);
            None
        }
    }
}

/// What passes between the binder and the rest of the process.
fn hand_off(chooser: Chooser) -> Handoff {
    match chooser {
        Chooser::Berth => Handoff::default(),
        Chooser::KubeScheduler => Handoff::for_extender(),
    }
}

/// With the extender's verbs, where kube-scheduler chooses the nodes.
fn with_extender(router: Router, options: &Options, handoff: &Handoff) -> Router {
    match handoff.extender() {
        None => router,
        Some(desk) => {
            let verbs = crate::extender::router(extender::extender(options, desk, handoff));
            router.merge(webhook::trusted(verbs))
        }
    }
}

/// With the paths and the page for those who look at the cluster, where a binder follows it.
fn with_api(
    router: Router,
    (options, facts): (&Options, &facts::Shared),
    handoff: &Handoff,
    readiness: watch::Receiver<ServerReadiness>,
) -> Router {
    match options.parts {
        Parts::Both | Parts::Binder => {
            let answers = crate::api::router(api::api(options, facts, handoff, readiness));
            router.merge(answers).merge(crate::api::page::router())
        }
        Parts::Webhook | Parts::Shadow { .. } => router,
    }
}

/// With the ledger or the report. A process that does not bind has no ledger, and no rights to find out whose token asks for one.
fn with_debug(router: Router, options: &Options, board: Option<&Board>, ledger: Debug) -> Router {
    match (options.parts, board) {
        (Parts::Both | Parts::Binder, _) => router.merge(webhook::page::debug::router(ledger)),
        (Parts::Shadow { .. }, Some(board)) => {
            router.merge(webhook::page::shadow::router(shadow::page(board, options.clock)))
        }
        _ => router,
    }
}
