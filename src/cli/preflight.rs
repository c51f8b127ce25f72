//! `berth preflight`: what installing Berth in a live cluster would do, and the commands to run.
//!
//! It changes nothing: it gets and lists, and asks the API server what accounts may do. Each family of findings is a file below, a
//! pure function of what was read.

pub mod agents;
pub mod api;
pub mod commands;
pub mod examination;
pub mod finding;
pub mod gangs;
pub mod namespaces;
pub mod phases;
pub mod pods;
pub mod program;
pub mod reader;
pub mod release;
pub mod report;
pub mod rules;
pub mod seen;
pub mod settings;
pub mod shell;
pub mod trust;
pub mod webhooks;
pub mod workloads;

use std::path::Path;

use clap::Args;
use jiff::Timestamp;
use kube::Client;

use super::{
    CommandAnswer,
    connection::{ConnectionArgs, not_reached},
    manifests::{NAMESPACE, image, namespace},
    output::{self, Format},
};
use crate::{
    cluster::Clock,
    config::{self, Config, ConfigError},
};

pub use report::{Given, InstallationPlace, PreflightReport, PreflightVerdict};
pub use trust::TrustedNamespaces;

const EXAMPLE: &str = "\
Example: what would happen in the cluster that kubectl reaches, and in another one
  berth preflight
  berth preflight --context staging
  berth preflight --settings > berth.yaml";

/// Arguments of `berth preflight`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct PreflightArgs {
    /// The namespace that Berth is, or will be, installed into
    #[arg(long, default_value = NAMESPACE, value_parser = namespace)]
    pub namespace: String,
    /// A namespace whose schedulers, device plugins and settings are to be believed, beside kube-system; may be given several times
    #[arg(long, value_name = "NAMESPACE", value_parser = namespace)]
    pub trust_namespace: Vec<String>,
    /// The image that the printed commands install [default: this version's]
    #[arg(long, value_parser = image)]
    pub image: Option<String>,
    /// Print the settings alone: those of HAMi and Volcano as a berth.yaml
    #[arg(long, conflicts_with = "output")]
    pub settings: bool,
    /// How to print the report
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub output: Format,
    /// Which cluster
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

/// Examines the cluster of the caller's kubeconfig and prints the report.
pub async fn run(args: PreflightArgs, config: Option<&Path>) -> anyhow::Result<CommandAnswer> {
    let given = config.map(given).transpose()?;
    let (client, cluster) = args.connection.client().await?;
    let report = examine(&client, &args, given.as_ref(), Clock::System.now()).await;
    let report = report.map_err(|error| not_reached(error, &cluster))?;
    if args.settings {
        let of_settings = [&rules::UNTRUSTED_PROGRAM, &rules::SETTING_NOT_CARRIED, &rules::SETTING_UNUSED];
        let of_settings = of_settings.map(|rule| rule.name);
        for finding in report.findings.iter().filter(|finding| of_settings.contains(&finding.rule)) {
            output::remark(&format!("notice: {}: {}", finding.object, finding.message));
        }
        output::write(&report.settings)?;
        return Ok(CommandAnswer::Yes);
    }
    output::print(&report, args.output, || report.text())?;
    Ok(if report.verdict == PreflightVerdict::Blocked { CommandAnswer::No } else { CommandAnswer::Yes })
}

/// Reads the cluster and judges it. The error is an API server that does not answer, or does not know the caller.
pub async fn examine(
    client: &Client,
    args: &PreflightArgs,
    given: Option<&Given>,
    now: Timestamp,
) -> anyhow::Result<PreflightReport> {
    let kinds = given.map(|given| given.config.workloads()).unwrap_or_default();
    let trust = TrustedNamespaces::new(&args.namespace, args.trust_namespace.iter().cloned());
    let seen = reader::read(client, kinds, trust).await?;
    let place = InstallationPlace {
        namespace: &args.namespace,
        default_namespace: NAMESPACE,
        image: args.image.as_deref(),
    };
    Ok(PreflightReport::of(&seen, given, place, now)?.for_cluster(&args.connection.flags()))
}

fn given(file: &Path) -> Result<Given, ConfigError> {
    let (config, notices) = Config::load(Some(file))?;
    super::tell(&notices);
    Ok(Given { file: file.display().to_string(), text: config::text(file)?, config })
}
