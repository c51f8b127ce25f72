//! A webhook on a loopback port, with certificates minted for it.
#![expect(clippy::disallowed_methods, reason = "TLS clients judge certificates by the clock on the wall")]

use std::{net::SocketAddr, sync::Arc};

use axum::Router;
use berth::{
    admission::Verdict,
    webhook::{
        Certificates, Judge, Limits, Listener, ServerReadiness, Webhook, WebhookMetrics,
        certificate::mint::{self, Bundle, Lifetimes, Pair, ServingNames},
        router, verified_router,
    },
};
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
};

/// A webhook that serves until it is dropped or stopped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) authority: String,
    pub(crate) readiness: watch::Sender<ServerReadiness>,
    stop: oneshot::Sender<()>,
    task: JoinSet<()>,
}

pub(crate) fn names() -> ServingNames {
    ServingNames { service: "berth".to_owned(), namespace: "berth-system".to_owned(), extra: Vec::new() }
}

pub(crate) fn bundle() -> Bundle {
    mint::bundle(&names(), Lifetimes::default(), Timestamp::now()).unwrap()
}

/// Another serving certificate under the same authority.
pub(crate) fn another(authority: &Pair) -> Pair {
    mint::serving(authority, &names(), Lifetimes::default().serving, Timestamp::now()).unwrap()
}

pub(crate) fn ignoring() -> Judge {
    Arc::new(|_| Verdict::Ignored)
}

impl Server {
    pub(crate) async fn start(judge: Judge) -> Self {
        Self::limited(judge, Limits::default()).await
    }

    pub(crate) async fn limited(judge: Judge, limits: Limits) -> Self {
        let Bundle { authority, serving } = bundle();
        let certificates = Certificates::from_pair(&serving).unwrap();
        Self::with(judge, limits, &certificates, authority.certificate).await
    }

    /// Answers reviews only to clients with a certificate of `clients`.
    pub(crate) async fn verifying(clients: &str) -> Self {
        let Bundle { authority, serving } = bundle();
        let certificates = Certificates::from_pair(&serving).unwrap();
        let tls = certificates.server_config_for(clients, "the clients").unwrap();
        Self::bound(
            ignoring(),
            Limits::default(),
            &certificates,
            authority.certificate,
            (verified_router, tls),
        )
        .await
    }

    pub(crate) async fn with(
        judge: Judge,
        limits: Limits,
        certificates: &Arc<Certificates>,
        authority: String,
    ) -> Self {
        let how: (fn(Webhook) -> Router, _) = (router, certificates.server_config());
        Self::bound(judge, limits, certificates, authority, how).await
    }

    async fn bound(
        judge: Judge,
        limits: Limits,
        certificates: &Arc<Certificates>,
        authority: String,
        (router, tls): (fn(Webhook) -> Router, Arc<rustls::ServerConfig>),
    ) -> Self {
        let mut registry = Registry::default();
        let metrics = WebhookMetrics::register(&mut registry);
        metrics.certificate_ends(*certificates.not_after().borrow());
        let (readiness, ready) = watch::channel(ServerReadiness::Starting);
        let router = router(Webhook::new(judge, metrics, Arc::new(registry), ready));
        let bound = Listener::new(limits).bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let address = bound.local_addr();
        let (stop, stopped) = oneshot::channel();
        let mut task = JoinSet::new();
        let shutdown = async move { stopped.await.unwrap_or_default() };
        task.spawn(bound.serve(router, tls, shutdown));
        Self { address, authority, readiness, stop, task }
    }

    /// Asks the server to end; what is returned ends when it has.
    pub(crate) fn stop(self) -> JoinSet<()> {
        self.stop.send(()).unwrap();
        self.task
    }
}
