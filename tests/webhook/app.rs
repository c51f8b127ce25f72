//! The whole process on a real socket, beside an API server in this process: who is answered, and certificates that are renewed.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use berth::{
    app::{App, CertificateSource, Chooser, Options, Parts, Renewal, SecretLocation},
    cli::demo,
    cluster::{Clock, Leadership},
    config::Config,
    webhook::{
        ServerReadiness,
        certificate::{
            mint::{Lifetimes, Pair},
            registration::WebhookConfigurations,
        },
    },
};
use berth_sandbox::Sandbox;
use http::StatusCode;
use jiff::SignedDuration;
use k8s_openapi::api::{
    admissionregistration::v1::MutatingWebhookConfiguration,
    core::v1::{Namespace, Secret},
};
use kube::{
    Api, Client as Kube,
    api::{ListParams, PostParams},
};
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
    time::{Instant, timeout},
};

use super::{
    client::{Client, Protocol, review},
    clients::Authority,
    server::names,
};

pub(super) const LIMIT: Duration = Duration::from_mins(1);

/// Processes that run until this is dropped; a failure of one fails the test that looks.
#[derive(Default)]
pub(super) struct Processes(JoinSet<()>);

impl Processes {
    pub(super) async fn start(
        &mut self,
        client: &Kube,
        source: CertificateSource,
        clients: Option<PathBuf>,
    ) -> SocketAddr {
        // An error says that another test of this process has installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let app = App::bind(options(client, source, clients)).await.unwrap();
        let (address, mut ready) = (app.local_addr(), app.readiness());
        self.0.spawn(async move { app.run(std::future::pending()).await.unwrap() });
        ready.wait_for(|readiness| *readiness == ServerReadiness::Ready).await.unwrap();
        address
    }

    /// As [`Self::start`], until it is told to end: for so long reviews are still taken in then.
    async fn start_until(&mut self, client: &Kube, told: oneshot::Receiver<Duration>) -> SocketAddr {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let source = CertificateSource::Minted(names());
        let app = App::bind(options(client, source, None)).await.unwrap();
        let (address, mut ready) = (app.local_addr(), app.readiness());
        self.0.spawn(async move { app.run(async { told.await.unwrap() }).await.unwrap() });
        ready.wait_for(|readiness| *readiness == ServerReadiness::Ready).await.unwrap();
        address
    }
}

fn options(client: &Kube, certificates: CertificateSource, client_ca_file: Option<PathBuf>) -> Options {
    Options {
        own_pod: None,
        config: Config::default(),
        config_file: None,
        client: client.clone(),
        clock: Clock::System,
        parts: Parts::Webhook,
        chooser: Chooser::Berth,
        leadership: Leadership::Alone,
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        certificates,
        client_ca_file,
        registration: WebhookConfigurations { mutating: "berth".to_owned(), validating: "berth".to_owned() },
    }
}

/// An API server with the webhook configurations and the namespace of the installed program.
pub(super) async fn register(client: &Kube) {
    demo::register(client, SocketAddr::from(([127, 0, 0, 1], 443))).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::json!({"metadata": {"name": "berth-system"}});
    namespaces.create(&PostParams::default(), &serde_json::from_value(namespace).unwrap()).await.unwrap();
}

/// The authority that an API server would trust now; `None` before the first publication.
async fn published(client: &Kube) -> Option<String> {
    let api: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let bundle = api.get("berth").await.unwrap().webhooks.unwrap().remove(0).client_config.ca_bundle?;
    Some(String::from_utf8(bundle.0).unwrap())
}

pub(super) async fn until_published(client: &Kube) -> String {
    let mut again = tokio::time::interval(Duration::from_millis(10));
    let published = async {
        loop {
            again.tick().await;
            if let Some(authority) = published(client).await {
                return authority;
            }
        }
    };
    timeout(LIMIT, published).await.expect("the authority is published in time")
}

async fn status(
    address: SocketAddr,
    authority: &str,
    shown: Option<&Pair>,
    path: &str,
) -> Option<StatusCode> {
    let mut client = Client::connect_to(address, authority, Protocol::Http1, shown).await.ok()?;
    let request = if path == "/mutate" {
        super::client::post(path, "application/json", review("p"))
    } else {
        http::Request::get(path).header("host", "berth").body(axum::body::Body::empty()).unwrap()
    };
    client.send(request).await.ok().map(|answer| answer.status)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_client_ca_file_reviews_are_for_its_clients_and_probes_for_everybody() {
    let sandbox = Sandbox::new(berth_sandbox::Options::default());
    let client = sandbox.client();
    register(&client).await;
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("clients.crt");
    let (ours, stranger) = (Authority::new(), Authority::new());
    std::fs::write(&file, ours.pem()).unwrap();
    let mut processes = Processes::default();
    let address = processes.start(&client, CertificateSource::Minted(names()), Some(file.clone())).await;
    let authority = until_published(&client).await;

    assert_eq!(status(address, &authority, None, "/mutate").await, Some(StatusCode::FORBIDDEN));
    assert_eq!(status(address, &authority, None, "/healthz").await, Some(StatusCode::OK));
    assert_eq!(status(address, &authority, None, "/readyz").await, Some(StatusCode::OK));
    let (known, unknown) = (ours.client(), stranger.client());
    assert_eq!(status(address, &authority, Some(&known), "/mutate").await, Some(StatusCode::OK));
    assert_eq!(status(address, &authority, Some(&unknown), "/mutate").await, None, "the handshake fails");

    // The file changes under the running server.
    std::fs::write(&file, stranger.pem()).unwrap();
    let mut again = tokio::time::interval(Duration::from_millis(100));
    let exchanged = async {
        while status(address, &authority, Some(&unknown), "/mutate").await != Some(StatusCode::OK) {
            again.tick().await;
        }
    };
    timeout(LIMIT, exchanged).await.expect("the new authority is taken in time");
    assert_eq!(
        status(address, &authority, Some(&known), "/mutate").await,
        None,
        "the old one no longer vouches"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_was_told_to_end_answers_until_nobody_finds_it_any_more() {
    let sandbox = Sandbox::new(berth_sandbox::Options::default());
    let client = sandbox.client();
    register(&client).await;
    let (told, ends) = oneshot::channel();
    let mut leaving = Processes::default();
    let address = leaving.start_until(&client, ends).await;
    let authority = until_published(&client).await;
    told.send(Duration::from_hours(1)).unwrap();
    let mut again = tokio::time::interval(Duration::from_millis(10));
    let unready = async {
        while status(address, &authority, None, "/readyz").await != Some(StatusCode::SERVICE_UNAVAILABLE) {
            again.tick().await;
        }
    };
    timeout(LIMIT, unready).await.expect("it says that it is not ready");
    // Each asks on a connection of its own, as an API server does that still has the address.
    assert_eq!(status(address, &authority, None, "/mutate").await, Some(StatusCode::OK));
    assert_eq!(status(address, &authority, None, "/healthz").await, Some(StatusCode::OK));

    let (told, ends) = oneshot::channel();
    let mut gone = Processes::default();
    let address = gone.start_until(&client, ends).await;
    told.send(Duration::ZERO).unwrap();
    timeout(LIMIT, gone.0.join_next()).await.expect("it ends in time").unwrap().unwrap();
    assert_eq!(status(address, &authority, None, "/mutate").await, None);
}

/// The API server does not repeat a POST that meets a connection that is being closed, so none may be open when the process ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_ending_closes_each_connection_after_an_answer() {
    let sandbox = Sandbox::new(berth_sandbox::Options::default());
    let client = sandbox.client();
    register(&client).await;
    let (told, ends) = oneshot::channel();
    let mut leaving = Processes::default();
    let address = leaving.start_until(&client, ends).await;
    let authority = until_published(&client).await;
    let connect = |protocol| Client::connect_to(address, &authority, protocol, None);
    let (mut one, mut two) =
        (connect(Protocol::Http1).await.unwrap(), connect(Protocol::Http2).await.unwrap());
    let ask = || super::client::post("/mutate", "application/json", review("p"));
    for _ in 0..2 {
        assert_eq!(one.send(ask()).await.unwrap().status, StatusCode::OK);
        assert_eq!(two.send(ask()).await.unwrap().status, StatusCode::OK);
    }
    told.send(Duration::from_hours(1)).unwrap();
    let mut again = tokio::time::interval(Duration::from_millis(10));
    let unready = async {
        while status(address, &authority, None, "/readyz").await != Some(StatusCode::SERVICE_UNAVAILABLE) {
            again.tick().await;
        }
    };
    timeout(LIMIT, unready).await.expect("it reports that it is not ready");
    assert_eq!(one.send(ask()).await.unwrap().status, StatusCode::OK);
    assert!(one.send(ask()).await.is_err(), "the answer before was the last one on this connection");
    for _ in 0..2 {
        assert_eq!(two.send(ask()).await.unwrap().status, StatusCode::OK, "HTTP/2 knows a better way");
    }
}

#[tokio::test]
async fn a_client_ca_file_that_holds_no_certificate_ends_the_start() {
    let sandbox = Sandbox::new(berth_sandbox::Options::default());
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("clients.crt");
    for (text, reason) in [
        ("", "clients.crt: not a chain"),
        ("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n", "clients.crt: not a chain"),
    ] {
        std::fs::write(&file, text).unwrap();
        let source = CertificateSource::Minted(names());
        let app = App::bind(options(&sandbox.client(), source, Some(file.clone()))).await;
        let error = app.err().expect("it does not start").to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_that_somebody_wiped_is_published_again() {
    let sandbox = Sandbox::new(berth_sandbox::Options::default());
    let client = sandbox.client();
    register(&client).await;
    let mut processes = Processes::default();
    processes.start(&client, short_lived(), None).await;
    until_published(&client).await;
    let api: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let mut wiped = api.get("berth").await.unwrap();
    for webhook in wiped.webhooks.iter_mut().flatten() {
        webhook.client_config.ca_bundle = None;
    }
    api.replace("berth", &PostParams::default(), &wiped).await.unwrap();
    until_published(&client).await;
}

/// Opens a connection for each review, trusting what an API server trusts that learns of a change this much later.
async fn load(
    address: SocketAddr,
    trusted: watch::Receiver<String>,
    stop: watch::Receiver<bool>,
    done: Arc<AtomicUsize>,
) {
    let first = trusted.borrow().clone();
    let mut kept = Client::connect_to(address, &first, Protocol::Http1, None).await.unwrap();
    while !*stop.borrow() {
        let authority = trusted.borrow().clone();
        let mut fresh = Client::connect_to(address, &authority, Protocol::Http2, None)
            .await
            .expect("what is served is of a published authority");
        for client in [&mut fresh, &mut kept] {
            assert_eq!(client.post("/mutate", review("p")).await.status, StatusCode::OK);
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Passes on what is published, as a watch does that lags behind.
async fn lag(client: Kube, trusted: watch::Sender<String>) {
    const BEHIND: Duration = Duration::from_millis(150);
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    let mut coming: std::collections::VecDeque<(Instant, String)> = std::collections::VecDeque::new();
    loop {
        ticks.tick().await;
        if let Some(now) = published(&client).await
            && coming.back().map_or(&*trusted.borrow(), |(_, last)| last) != &now
        {
            coming.push_back((Instant::now() + BEHIND, now));
        }
        while let Some((_, authority)) = coming.pop_front_if(|(at, _)| *at <= Instant::now()) {
            trusted.send_replace(authority);
        }
    }
}

/// A Secret whose authority and certificate are renewed some seconds after they are made.
fn short_lived() -> CertificateSource {
    // Two thirds of the time, five minutes before the birth included, are over some seconds after it; the rest outlasts the test.
    let lifetime = SignedDuration::from_secs(154);
    CertificateSource::Secret(SecretLocation {
        namespace: "berth-system".to_owned(),
        name: "berth-webhook-tls".to_owned(),
        serving: names(),
        renewal: Renewal {
            lifetimes: Lifetimes { authority: lifetime, serving: lifetime },
            period: Duration::from_millis(50),
            settle: Duration::from_millis(400),
        },
    })
}

/// Returns once none of the servers shows a certificate of this authority.
async fn renewed(addresses: [SocketAddr; 2], authority: &str) {
    let mut again = tokio::time::interval(Duration::from_millis(50));
    for address in addresses {
        while Client::connect_to(address, authority, Protocol::Http1, None).await.is_ok() {
            again.tick().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn two_replicas_renew_their_authority_under_load_and_drop_no_review() {
    let sandbox = Sandbox::new(berth_sandbox::Options::default());
    let client = sandbox.client();
    register(&client).await;
    let source = short_lived();
    let mut processes = Processes::default();
    // Both find no Secret at the same time.
    let mut second = Processes::default();
    let addresses = tokio::join!(
        processes.start(&client, source.clone(), None),
        second.start(&client, source.clone(), None)
    );
    let first = until_published(&client).await;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "berth-system");
    assert_eq!(secrets.list(&ListParams::default()).await.unwrap().items.len(), 1);
    let trusting = watch::Sender::new(first.clone());
    let trusted = trusting.subscribe();
    let mut others = JoinSet::new();
    others.spawn(lag(client.clone(), trusting));
    let (stop, stopping) = watch::channel(false);
    let done = [Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0))];
    let mut clients = JoinSet::new();
    for (address, done) in [addresses.0, addresses.1].into_iter().zip(&done) {
        clients.spawn(load(address, trusted.clone(), stopping.clone(), Arc::clone(done)));
    }

    tokio::select! {
        Some(ended) = clients.join_next() => panic!("a client ended early: {ended:?}"),
        renewed = timeout(LIMIT, renewed(addresses.into(), &first)) => renewed.expect("both replicas renew in time"),
    }
    let after = trusted.borrow().clone();
    assert!(after.matches("BEGIN CERTIFICATE").count() >= 2, "old and new are trusted");
    assert!(after.ends_with(&first[..]), "the first authority still is, for who serves under it");
    stop.send_replace(true);
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    for done in done {
        assert!(done.load(Ordering::Relaxed) > 10);
    }
    assert!(processes.0.try_join_next().is_none() && second.0.try_join_next().is_none(), "nobody has ended");
}
