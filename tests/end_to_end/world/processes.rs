//! How Berth is started in a world, in whole or in part, and ended.

use std::sync::Arc;

use berth::{
    app::{App, CertificateSource, Chooser, Options, Parts},
    cli::demo::register,
    cluster::{self, Binder, Clock, Handoff, Leadership, report::advice::Advisor},
    config::Config,
    scheduling::PodKey,
    webhook::{
        ServerReadiness,
        certificate::{mint::ServingNames, registration::WebhookConfigurations},
    },
};

use prometheus_client::{encoding::text::encode, registry::Registry};

use super::{LIMIT, World};

/// Whether the API server asks a webhook.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Asked {
    Yes,
    No,
}

impl World {
    pub(crate) fn start_berth(&mut self) {
        self.start_berth_with(&Config::default());
    }

    pub(crate) fn start_berth_with(&mut self, config: &Config) {
        self.start_binder(self.cluster.client.clone(), config);
    }

    /// Starts Berth with another way to the API server.
    pub(crate) fn start_berth_through(&mut self, client: kube::Client) {
        self.start_binder(client, &Config::default());
    }

    pub(crate) fn start_binder(&mut self, client: kube::Client, config: &Config) {
        self.start_binder_with(client, config, Handoff::default());
    }

    /// These settings, beside the release of the API server, which `berth serve` asks for.
    fn beside(&self, config: Config) -> Config {
        config.beside(Some(self.release))
    }

    fn start_binder_with(&mut self, client: kube::Client, config: &Config, handoff: Handoff) {
        let config = self.beside(config.clone());
        let reader = Arc::new(config.reader());
        let binder = Binder {
            client,
            settings: config.scheduler_settings(),
            details: config.messages.details,
            reader,
            clock: Clock::System,
            metrics: self.metrics.clone(),
            writes_at_once: 64,
            leadership: Leadership::Alone,
            usage: None,
            handoff,
        };
        self.berth.spawn(async move { cluster::run(binder, std::future::pending()).await.unwrap() });
    }

    /// Starts Berth, and what says each 100 ms what moving pods would win; its Events are about this pod.
    pub(crate) fn start_advising(&mut self, own_pod: PodKey) {
        let config = self.beside(Config::default());
        let (client, handoff) = (self.cluster.client.clone(), Handoff::default());
        let advisor = Advisor {
            client: client.clone(),
            clock: Clock::System,
            views: handoff.views(),
            questions: handoff.questions().clone(),
            metrics: self.metrics.clone(),
            controller: config.scheduler_name.clone(),
            own_pod: Some(own_pod),
        };
        self.berth.spawn(advisor.advise(std::time::Duration::from_millis(100)));
        self.start_binder_with(client, &config, handoff);
    }

    /// The metrics of the binders, as they are scraped.
    pub(crate) fn counts(&self) -> String {
        let mut registry = Registry::default();
        self.metrics.register(&mut registry);
        let mut page = String::new();
        encode(&mut page, &registry).unwrap();
        page
    }

    /// Ends Berth as `kill -9` does.
    pub(crate) async fn kill_berth(&mut self) {
        self.berth.shutdown().await;
    }

    /// Starts all of Berth with these settings; the API server does not ask its webhook.
    pub(crate) async fn start_app_with(&mut self, settings: &str) {
        install_crypto();
        let (config, _) = Config::parse(settings, "berth.yaml").expect("the settings are good");
        self.start_app_of(config, Leadership::Alone, Asked::No).await;
    }

    /// Starts all of Berth; the API server asks its webhook, or not.
    pub(super) async fn start_app(&mut self, leadership: Leadership, asked: Asked) {
        self.start_app_of(Config::default(), leadership, asked).await;
    }

    async fn start_app_of(&mut self, config: Config, leadership: Leadership, asked: Asked) {
        let client = self.cluster.client.clone();
        let app = App::bind(options(self.beside(config), client.clone(), leadership, asked)).await.unwrap();
        if asked == Asked::Yes {
            register(&client, app.local_addr()).await.unwrap();
        }
        let mut readiness = app.readiness();
        self.berth.spawn(async move { app.run(std::future::pending()).await.unwrap() });
        if asked == Asked::Yes {
            // An installed webhook gets no review before: what rules read, such as hints, may be missing.
            let ready = readiness.wait_for(|readiness| *readiness == ServerReadiness::Ready);
            tokio::time::timeout(LIMIT, ready).await.expect("the webhook is ready in time").unwrap();
        }
    }

    /// Starts the binder of a process, for which something else may choose the nodes; returns where it listens, at this address where one
    /// is given.
    pub(crate) async fn start_beside(
        &mut self,
        chooser: Chooser,
        leadership: Leadership,
        listen: Option<std::net::SocketAddr>,
    ) -> std::net::SocketAddr {
        install_crypto();
        let options =
            options(self.beside(Config::default()), self.cluster.client.clone(), leadership, Asked::No);
        let listen = listen.unwrap_or(options.listen);
        let app = App::bind(Options { parts: Parts::Binder, chooser, listen, ..options }).await.unwrap();
        let address = app.local_addr();
        self.berth.spawn(async move { app.run(std::future::pending()).await.unwrap() });
        address
    }

    /// Starts a shadow with this way to the API server; returns where it listens. A pod is left pending after a second.
    pub(crate) async fn start_shadow(&mut self, client: kube::Client) -> std::net::SocketAddr {
        install_crypto();
        let parts = Parts::Shadow { settle: jiff::SignedDuration::from_secs(1) };
        let config = self.beside(Config::default());
        let options = Options { parts, ..options(config, client, Leadership::Alone, Asked::No) };
        let app = App::bind(options).await.unwrap();
        let address = app.local_addr();
        self.berth.spawn(async move { app.run(std::future::pending()).await.unwrap() });
        address
    }
}

pub(super) fn install_crypto() {
    // An error says that another case of this process has installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn options(config: Config, client: kube::Client, leadership: Leadership, asked: Asked) -> Options {
    let serving = ServingNames {
        service: "berth".to_owned(),
        namespace: "berth-system".to_owned(),
        extra: vec!["127.0.0.1".to_owned()],
    };
    // Each has an authority of its own here: only that of the webhook that is asked is published.
    let registered = if asked == Asked::Yes { "berth" } else { "nowhere" };
    Options {
        own_pod: None,
        config,
        config_file: None,
        client,
        clock: Clock::System,
        parts: Parts::Both,
        chooser: Chooser::Berth,
        leadership,
        listen: "127.0.0.1:0".parse().unwrap(),
        certificates: CertificateSource::Minted(serving),
        client_ca_file: None,
        registration: WebhookConfigurations {
            mutating: registered.to_owned(),
            validating: registered.to_owned(),
        },
    }
}
