//! A binder in a process of its own, so that its memory and time are its own.
//!
//! It says `ready` once it has listed the cluster, ends with its standard input, and then says what it asked of the API server.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, Write as _},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, bail};
use berth::{
    cluster::{self, Binder, Clock, Handoff, Leadership, Metrics, Reader},
    config::NodeLockPolicy,
    dialect::{Dialects, hami::Hami},
    scheduling::{plugin::score, scheduler},
};
use http::Request;
use jiff::SignedDuration;
use kube::{
    Client, Config,
    client::{Body, ClientBuilder},
    config::{KubeConfigOptions, Kubeconfig},
};
use prometheus_client::registry::Registry;
use tokio::task::JoinSet;
use tower::util::MapRequestLayer;

use super::{blind::Blind, load::SCHEDULER, requests};

/// What is said once the cluster has been listed.
pub(crate) const READY: &str = "ready";

const LOCK_EXPIRY: SignedDuration = SignedDuration::from_mins(5);

/// Which binder.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// The one that is measured.
    Berth,
    /// The one that it is measured by.
    Blind,
    /// kube-scheduler, with pods without a GPU.
    #[value(skip)]
    KubeScheduler,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    kind: Kind,
    /// How to reach the API server.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Berth: writes under way; blind: pods in flight.
    #[arg(long)]
    at_once: usize,
    /// When Berth takes node locks.
    #[arg(long)]
    node_lock: LockPolicy,
}

/// When Berth takes node locks: `dialects.hami.nodeLock`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LockPolicy {
    Always,
    Auto,
}

/// Requests by verb and resource.
type Counts = Arc<Mutex<BTreeMap<String, u64>>>;

/// Runs until standard input ends.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_writer(std::io::stderr).init();
    let counts = Counts::default();
    let client = client(args, counts.clone()).await?;
    let mut hami = berth::config::Config::default().dialects.hami;
    hami.node_locks.policy = match args.node_lock {
        LockPolicy::Always => NodeLockPolicy::Always,
        LockPolicy::Auto => NodeLockPolicy::Auto,
    };
    let dialects = Dialects::new(vec![Arc::new(Hami::new(hami.settings()))]);
    let reader = Arc::new(Reader::new(dialects, SCHEDULER.to_owned()));
    match args.kind {
        Kind::Berth => berth(client, reader, args.at_once).await?,
        Kind::Blind => Blind::new(client, reader, args.at_once).run(end_of_input(), || say(READY)).await?,
        Kind::KubeScheduler => bail!("kube-scheduler is a program of its own"),
    }
    let counts = counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
    say(&serde_json::to_string(&counts).context("counts")?);
    Ok(())
}

async fn berth(client: Client, reader: Arc<Reader>, writes_at_once: usize) -> anyhow::Result<()> {
    let metrics = Metrics::default();
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let settings = scheduler::Settings {
        device_resources: reader.device_resources(),
        lock_expiry: LOCK_EXPIRY,
        weights: score::weights::ScoreWeights::default(),
        arguments: berth::scheduling::model::plugin_arguments::PluginArguments::default(),
        preemption: None,
        rooms: None,
        zones: berth::scheduling::model::tdm::RevocableZones::default(),
        gangs: None,
        held_percent: 50,
        claims: berth::scheduling::model::claim_use::DeviceClaims::Served,
        pace: scheduler::Pace::Shared,
    };
    let (leadership, handoff) = (Leadership::Alone, Handoff::default());
    let binder = Binder {
        client,
        reader,
        clock: Clock::System,
        metrics,
        settings,
        details: berth::scheduling::Details::Full,
        writes_at_once,
        leadership,
        usage: None,
        handoff,
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(cluster::run(binder, end_of_input()));
    announce(&registry).await?;
    let ended = tasks.join_next().await.expect("one task was spawned");
    Ok(ended??)
}

/// Says that the scheduler has listed the cluster, as its own metric tells.
async fn announce(registry: &Registry) -> anyhow::Result<()> {
    loop {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, registry).context("metrics")?;
        if text.lines().any(|line| line == "berth_scheduler_synced 1") {
            say(READY);
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("the parent reads until the end");
}

async fn end_of_input() {
    let lines = tokio::task::spawn_blocking(|| std::io::stdin().lock().lines().count());
    lines.await.expect("reading lines does not panic");
}

async fn client(args: &Args, counts: Counts) -> anyhow::Result<Client> {
    let kubeconfig = Kubeconfig::read_from(&args.kubeconfig).context("kubeconfig")?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.context("kubeconfig")?;
    config.default_retry = false;
    let count = MapRequestLayer::new(move |request: Request<Body>| {
        let what = requests::name(request.method(), request.uri());
        *counts.lock().unwrap_or_else(PoisonError::into_inner).entry(what).or_default() += 1;
        request
    });
    Ok(ClientBuilder::try_from(config)?.with_layer(&count).build())
}
