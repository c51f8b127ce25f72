//! `berth serve`: webhook and binder against a real cluster.

use std::{net::SocketAddr, path::PathBuf, pin::pin, time::Duration};

use clap::{ArgAction, Args, ValueEnum};
use futures::FutureExt as _;
use jiff::SignedDuration;
use kube::Client;

use super::connection::{ConnectionArgs, not_reached};
use crate::{
    app::{
        App, CertificateSource, Chooser, MovesAdvice, Options, Parts, Renewal, SecretLocation, kubernetes,
    },
    cluster::{Clock, Leadership, election::candidate},
    config::{Config, duration},
    scheduling::{PodKey, model::kube_scheduler::KubeScheduler},
    webhook::certificate::{mint::ServingNames, registration::WebhookConfigurations},
};

const EXAMPLE: &str = "\
Example: run outside of the cluster, with kubectl's kubeconfig and with certificates from files
  berth serve --config berth.yaml --tls-cert-file certs/tls.crt --tls-private-key-file certs/tls.key";

/// The longest `--shutdown-delay`: API servers stop sending reviews to a removed endpoint much earlier.
const LONGEST_DELAY: Duration = Duration::from_mins(5);

/// A pod that is looked at more often costs a decision each time.
const SHORTEST_SETTLE: Duration = Duration::from_secs(1);
const LONGEST_SETTLE: Duration = Duration::from_hours(24);

/// Run the webhook and the binder.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct ServeArgs {
    /// Run only the webhook
    #[arg(long, conflicts_with = "scheduler_only")]
    pub webhook_only: bool,
    /// Run only the binder; probes and metrics are served too
    #[arg(long)]
    pub scheduler_only: bool,
    /// Whether the leader looks for moves of pods that would free GPUs, and reports them by metrics and one Event a day; nothing is moved
    #[arg(long, value_enum, default_value_t = MovesMode::Off, conflicts_with_all = ["webhook_only", "shadow", "extender"])]
    pub moves: MovesMode,
    /// Beside another scheduler
    #[command(flatten)]
    pub beside: BesideArgs,
    /// The address and port that the webhook listens on
    #[arg(long, default_value = "0.0.0.0:8443")]
    pub listen: SocketAddr,
    /// The namespace that Berth runs in
    #[arg(long, env = "POD_NAMESPACE", default_value = "berth-system")]
    pub namespace: String,
    /// The pod that this process runs in: Events about its settings are written to it
    #[arg(long, env = "POD_NAME", requires = "pod_uid")]
    pub pod_name: Option<String>,
    /// The uid of that pod
    #[arg(long, env = "POD_UID", requires = "pod_name")]
    pub pod_uid: Option<String>,
    /// The Service in front of the webhook
    #[arg(long, default_value = "berth")]
    pub service: String,
    /// The Secret with the authority and the certificate; created if missing
    #[arg(long, default_value = "berth-webhook-tls")]
    pub tls_secret: String,
    /// Read the certificate from this file instead, and again when it changes
    #[arg(long, requires = "tls_private_key_file")]
    pub tls_cert_file: Option<PathBuf>,
    /// The private key of that certificate
    #[arg(long, requires = "tls_cert_file")]
    pub tls_private_key_file: Option<PathBuf>,
    /// Answer reviews only to clients with a certificate of these authorities (PEM; read again when it changes)
    #[arg(long, value_name = "FILE")]
    pub client_ca_file: Option<PathBuf>,
    /// The name of both webhook configurations
    #[arg(long, default_value = "berth")]
    pub webhook_configuration: String,
    /// Which replica binds
    #[command(flatten)]
    pub election: ElectionArgs,
    /// How long to answer reviews after SIGTERM, until API servers stop sending them
    #[arg(long, default_value = "5s", value_name = "DURATION", value_parser = delay)]
    pub shutdown_delay: Duration,
    /// An additional DNS name or IP address of the certificate; may be repeated
    #[arg(long = "tls-san", value_name = "NAME")]
    pub tls_sans: Vec<String>,
    /// Which cluster
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

/// Which of several replicas binds.
#[derive(Args, Clone, Debug)]
pub struct ElectionArgs {
    /// Bind only while holding a Lease, so that only one replica binds at a time
    #[arg(long, default_value_t = true, action = ArgAction::Set, value_name = "BOOL")]
    pub leader_elect: bool,
    /// The Lease's name
    #[arg(long, default_value = "berth")]
    pub leader_elect_resource_name: String,
}

/// What becomes of moves that would free GPUs.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum MovesMode {
    /// The leader says how many there are.
    Advise,
    /// They are not looked for.
    Off,
}

/// How Berth runs beside another scheduler.
#[derive(Args, Clone, Debug)]
pub struct BesideArgs {
    /// Compare the decisions of the cluster's current scheduler with Berth's own, and write nothing
    #[arg(long, conflicts_with_all = ["webhook_only", "scheduler_only"])]
    pub shadow: bool,
    /// With --shadow: how long a pod may be left pending that Berth would place
    #[arg(long, default_value = "30s", requires = "shadow", value_name = "DURATION", value_parser = settle)]
    pub shadow_settle: Duration,
    /// Leave the choice of nodes to kube-scheduler and serve its extender protocol under /extender/v1
    #[arg(long, conflicts_with_all = ["webhook_only", "shadow"])]
    pub extender: bool,
}

/// Runs until SIGTERM or SIGINT.
pub async fn run(args: ServeArgs, config: Config, config_file: Option<PathBuf>) -> anyhow::Result<()> {
    // Set before anything else: as the first process of a container, Berth would ignore a signal without a handler.
    let mut told = pin!(told_to_end());
    let delay = if args.scheduler_only || args.beside.shadow { Duration::ZERO } else { args.shutdown_delay };
    let app = tokio::select! {
        biased;
        _ = &mut told => return Ok(()),
        app = bind(args, config, config_file) => app?,
    };
    tracing::info!(address = %app.local_addr(), "listening");
    let told = told.map(|told| match told {
        EndSignal::Terminate => delay,
        EndSignal::Interrupt => Duration::ZERO,
    });
    app.run(told).await?;
    Ok(())
}

async fn bind(args: ServeArgs, config: Config, config_file: Option<PathBuf>) -> anyhow::Result<App> {
    let (client, cluster) = args.connection.client().await?;
    let version = kubernetes::check(&client).await?;
    let config = config.beside(version.map(|version| KubeScheduler::of_minor(version.minor)));
    let moves = match args.moves {
        MovesMode::Advise => MovesAdvice::Given,
        MovesMode::Off => MovesAdvice::Off,
    };
    let app = App::bind(Options { config_file, ..options(args, config, client) });
    Ok(app.await.map_err(|error| not_reached(error, &cluster))?.advising(moves))
}

fn options(args: ServeArgs, config: Config, client: Client) -> Options {
    let settle = SignedDuration::try_from(args.beside.shadow_settle).unwrap_or(SignedDuration::MAX);
    let parts = match (args.webhook_only, args.scheduler_only) {
        _ if args.beside.shadow => Parts::Shadow { settle },
        (true, _) => Parts::Webhook,
        (_, true) => Parts::Binder,
        _ => Parts::Both,
    };
    let serving =
        ServingNames { service: args.service, namespace: args.namespace.clone(), extra: args.tls_sans };
    let certificates = match (args.tls_cert_file, args.tls_private_key_file, parts) {
        (Some(certificate), Some(key), _) => CertificateSource::Files { certificate, key },
        // For probes and metrics alone: their clients do not verify the certificate, and this process needs no right to a Secret.
        (_, _, Parts::Binder | Parts::Shadow { .. }) => CertificateSource::Minted(serving),
        _ => CertificateSource::Secret(SecretLocation {
            namespace: args.namespace.clone(),
            name: args.tls_secret,
            serving,
            renewal: Renewal::default(),
        }),
    };
    let chooser = if args.beside.extender { Chooser::KubeScheduler } else { Chooser::Berth };
    let leadership = if args.election.leader_elect {
        Leadership::Elected(candidate::ElectionSettings::new(
            &args.namespace,
            &args.election.leader_elect_resource_name,
            &identity(),
        ))
    } else {
        Leadership::Alone
    };
    let registration = WebhookConfigurations {
        mutating: args.webhook_configuration.clone(),
        validating: args.webhook_configuration,
    };
    let own_pod = args.pod_name.zip(args.pod_uid).map(|(name, uid)| PodKey {
        uid: uid.as_str().into(),
        namespace: args.namespace.as_str().into(),
        name: name.as_str().into(),
    });
    Options {
        config,
        config_file: None,
        client,
        clock: Clock::System,
        parts,
        chooser,
        leadership,
        listen: args.listen,
        certificates,
        client_ca_file: args.client_ca_file,
        registration,
        own_pod,
    }
}

/// Parses a duration in Go's form.
fn delay(text: &str) -> Result<Duration, String> {
    let time = duration::parse(text).and_then(|time| Duration::try_from(time).ok());
    let time = time.filter(|time| *time <= LONGEST_DELAY);
    time.ok_or_else(|| format!("not a time from `0s` to `{}s`, such as `5s`", LONGEST_DELAY.as_secs()))
}

/// A time that a pod may be left pending, as Go writes it.
fn settle(text: &str) -> Result<Duration, String> {
    let time = duration::parse(text).and_then(|time| Duration::try_from(time).ok());
    let time = time.filter(|time| (SHORTEST_SETTLE..=LONGEST_SETTLE).contains(time));
    time.ok_or_else(|| "not a time from `1s` to `24h`, such as `30s`".to_owned())
}

/// A name that no other process has, not even this one restarted: host, process and the present.
fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}_{}_{:x}", host.trim(), std::process::id(), Clock::System.now().as_nanosecond())
}

/// The signal that ends the process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum EndSignal {
    /// SIGTERM, as the kubelet sends it.
    Terminate,
    /// SIGINT, from a terminal.
    Interrupt,
}

/// Returns after SIGTERM or SIGINT.
pub(super) async fn told_to_end() -> EndSignal {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).expect("a handler for SIGTERM can be set");
    let mut interrupt = signal(SignalKind::interrupt()).expect("a handler for SIGINT can be set");
    tokio::select! {
        _ = terminate.recv() => EndSignal::Terminate,
        _ = interrupt.recv() => EndSignal::Interrupt,
    }
}
