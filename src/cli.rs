//! Berth's commands, their arguments, and the form of their answers.
//!
//! Exit code 0: the answer is yes, or the job is done; 1: the answer is no; 2: the question could not be read. Answers go to
//! standard output, everything else to standard error. It contains no rule and no decision.

pub mod certs;
pub mod completions;
pub mod config;
pub mod connection;
#[cfg(feature = "sandbox")]
pub mod demo;
pub mod documents;
pub mod inspect;
mod live_cluster;
pub mod man;
pub mod manifests;
pub mod migrate;
pub mod moves;
pub mod output;
pub mod preflight;
pub mod replay;
pub mod review;
pub mod schema;
pub mod serve;
pub mod shadow;
pub mod simulate;
pub mod table;

use std::{
    ffi::OsStr,
    io::IsTerminal,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{
    CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum, builder::Resettable, error::ErrorKind,
};

use tracing_subscriber::{EnvFilter, filter::FromEnvError};

use crate::{
    cluster::Clock,
    config::{Config, ConfigError, Notice},
};

use manifests::ManifestsError;

/// The environment variable that names the settings.
const CONFIG: &str = "BERTH_CONFIG";

/// The program's file name as a plugin of kubectl.
const PLUGIN: &str = "kubectl-berth";

/// GPU sharing for Kubernetes: an admission webhook and a binder in one binary.
#[derive(Debug, Parser)]
#[command(name = "berth", version, max_term_width = 120, subcommand_required = true)]
#[command(after_help = "Example:\n  berth review -f pod.yaml -o json")]
pub struct Cli {
    /// The settings file, berth.yaml; the default settings if not given.
    #[arg(long, global = true, env = CONFIG, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How log lines are written, on standard error
    #[arg(long, global = true, env = "BERTH_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum LogFormat {
    /// For people: time, level, target, message and fields.
    Text,
    /// For collectors: one JSON object a line, its fields at the top level.
    Json,
}

/// Every command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a demonstration cluster inside this process.
    #[cfg(feature = "sandbox")]
    Demo(demo::DemoArgs),
    /// Run the webhook and the binder.
    Serve(serve::ServeArgs),
    /// Check files against the admission rules, offline.
    Review(review::ReviewArgs),
    /// Place pods on a cluster given as files, offline.
    Simulate(simulate::SimulateArgs),
    /// Say why a pod waits and what would help; read-only.
    Why(inspect::why::WhyArgs),
    /// Show how much of the cards is used, by node, model or namespace; read-only.
    Top(inspect::top::TopArgs),
    /// Say which pods hold which card; read-only.
    Who(inspect::who::WhoArgs),
    /// Say how many pods of usual sizes would fit now; read-only.
    Fits(inspect::fits::FitsArgs),
    /// Say how many GPU-hours namespaces, workloads or labels have held.
    Report(inspect::report::UsageReportArgs),
    /// Say where pods would go in another cluster; read-only.
    WhatIf(inspect::what_if::WhatIfArgs),
    /// Write the objects that decide where pods go to files.
    Dump(inspect::dump::DumpArgs),
    /// Play a recording or a trace of pods through the scheduler, offline.
    Replay(replay::ReplayArgs),
    /// Say what installing Berth in a live cluster would do; read-only.
    Preflight(preflight::PreflightArgs),
    /// Say what a node pool's pods would be as claims of devices; read-only.
    Migrate(migrate::MigrateArgs),
    /// Say which pods to move so that whole GPUs become free, and move them.
    Moves(moves::MovesArgs),
    /// Summarize what a shadow of the current scheduler has found.
    Shadow(shadow::ShadowArgs),
    /// Check berth.yaml and print the settings in force.
    Config(config::ConfigArgs),
    /// Print the manifests to install with `kubectl apply`.
    Manifests(manifests::ManifestsArgs),
    /// Create or renew the CA and the serving certificate.
    Certs(certs::CertsArgs),
    /// Print the completions of a shell.
    Completions(completions::CompletionsArgs),
    /// Print what kubectl may complete the words of its plugin with.
    #[command(name = "__complete", hide = true)]
    Complete(completions::CompleteArgs),
    /// Print the JSON schema of berth.yaml.
    Schema(schema::SchemaArgs),
    /// Print man pages.
    Man(man::ManArgs),
}

/// What a command came to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CommandAnswer {
    /// Yes, or done.
    Yes,
    /// No.
    No,
}

impl From<()> for CommandAnswer {
    /// What answers no question is done.
    fn from((): ()) -> Self {
        Self::Yes
    }
}

/// Runs the command of this process's arguments.
pub fn run() -> ExitCode {
    let outcome = match parse() {
        Ok(cli) => execute(&cli),
        Err(error) => return usage(&error),
    };
    match outcome {
        Ok(CommandAnswer::Yes) => ExitCode::SUCCESS,
        Ok(CommandAnswer::No) => ExitCode::from(1),
        Err(error) => {
            for line in told(&error) {
                output::remark(&format!("error: {line}"));
            }
            ExitCode::from(2)
        }
    }
}

/// Reads the arguments and `BERTH_CONFIG`; an empty one counts as not set, as in a manifest that fills it in or does not.
fn parse() -> Result<Cli, clap::Error> {
    let empty = std::env::var_os(CONFIG).is_some_and(|file| file.is_empty());
    let mut command = command(std::env::args_os().next().as_deref());
    if empty {
        command = command.mut_arg("config", |config| config.env(Resettable::Reset));
    }
    Cli::from_arg_matches(&command.try_get_matches()?)
}

/// What the program is called as: by its own name, or by kubectl as a plugin, whose help says how kubectl is called.
fn command(program: Option<&OsStr>) -> clap::Command {
    let command = Cli::command();
    match program.map(Path::new).and_then(Path::file_stem) {
        Some(name) if name == PLUGIN => command.bin_name("kubectl berth").display_name("kubectl berth"),
        _ => command,
    }
}

fn execute(cli: &Cli) -> anyhow::Result<CommandAnswer> {
    match &cli.command {
        Command::Review(args) => args.run(|| settings(cli)),
        Command::Simulate(args) if args.from_cluster => {
            run_async(cli.log_format, "warn", args.clone().run_on_cluster(settings(cli)?))
        }
        Command::Simulate(args) => args.run(&settings(cli)?),
        Command::Replay(args) => args.run(&settings(cli)?),
        Command::Preflight(args) => {
            run_async(cli.log_format, "warn", preflight::run(args.clone(), cli.config.as_deref()))
        }
        Command::Migrate(args) => {
            run_async(cli.log_format, "warn", migrate::run(args.clone(), settings(cli)?))
        }
        Command::Why(args) => {
            run_async(cli.log_format, "warn", inspect::why::run(args.clone(), settings(cli)?))
        }
        Command::Top(args) => {
            // A line of the log would stand across the screen.
            let level = if args.watch.watch { "off" } else { "warn" };
            run_async(cli.log_format, level, inspect::top::run(args.clone(), settings(cli)?))
        }
        Command::Who(args) => {
            let level = if args.watch.watch { "off" } else { "warn" };
            run_async(cli.log_format, level, inspect::who::run(args.clone(), settings(cli)?))
        }
        Command::Report(args) => {
            run_async(cli.log_format, "warn", inspect::report::run(args.clone(), settings(cli)?))
        }
        Command::Fits(args) => {
            run_async(cli.log_format, "warn", inspect::fits::run(args.clone(), settings(cli)?))
        }
        Command::WhatIf(args) => {
            run_async(cli.log_format, "warn", inspect::what_if::run(args.clone(), settings(cli)?))
        }
        Command::Dump(args) => run_async(cli.log_format, "warn", inspect::dump::run(args.clone())),
        Command::Moves(args) => run_async(cli.log_format, "warn", moves::run(args.clone(), settings(cli)?)),
        Command::Shadow(args) => args.run(),
        Command::Config(args) => args.run(&settings(cli)?),
        Command::Manifests(args) => {
            let (text, notices) = manifests::run(args, cli.config.as_deref())?;
            tell(&notices);
            output::write(&text)?;
            Ok(CommandAnswer::Yes)
        }
        Command::Completions(args) => args.run(),
        Command::Complete(args) => args.run(),
        Command::Man(args) => args.run(),
        Command::Schema(args) => args.run(),
        Command::Certs(args) => {
            run_async(cli.log_format, "warn", certs::run(args.clone(), Clock::System.now()))
        }
        Command::Serve(args) => {
            run_async(cli.log_format, "info", serve::run(args.clone(), settings(cli)?, cli.config.clone()))
        }
        #[cfg(feature = "sandbox")]
        Command::Demo(args) => run_async(cli.log_format, "warn", demo::run(args.clone(), settings(cli)?)),
    }
}

/// Crates that both log and return an error; the caller reports it.
const SAID_TWICE: &str = "kube_client=off,kube_runtime=off";

/// Why `RUST_LOG` can't be parsed; `None` if it is not set.
fn unreadable(error: &FromEnvError) -> Option<String> {
    let cause = std::error::Error::source(error)?;
    let unset = cause.downcast_ref() == Some(&std::env::VarError::NotPresent);
    (!unset).then(|| format!("{}: {cause}", EnvFilter::DEFAULT_ENV))
}

/// Runs a command that talks to sockets; `level` is what it logs where `RUST_LOG` does not say.
fn run_async<E, T>(
    format: LogFormat,
    level: &str,
    command: impl Future<Output = Result<T, E>>,
) -> anyhow::Result<CommandAnswer>
where
    anyhow::Error: From<E>,
    T: Into<CommandAnswer>,
{
    let (filter, trouble) = match EnvFilter::try_from_default_env() {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(format!("{level},{SAID_TWICE}")), unreadable(&error)),
    };
    if let Some(trouble) = trouble {
        output::remark(&format!("warning: {trouble}; using the default log level"));
    }
    let colours = std::io::stderr().is_terminal();
    // An error of the logger itself is not printed to standard error, since that would panic if standard error is closed.
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).log_internal_errors(false);
    match format {
        LogFormat::Text => log.with_ansi(colours).with_env_filter(filter).init(),
        LogFormat::Json => log.json().flatten_event(true).with_env_filter(filter).init(),
    }
    let provider = rustls::crypto::ring::default_provider();
    provider.install_default().expect("the crypto provider is installed once, here");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(runtime.block_on(command)?.into())
}

/// Loads the settings, and prints a notice for each key without effect to standard error.
fn settings(cli: &Cli) -> Result<Config, ConfigError> {
    let (config, notices) = Config::load(cli.config.as_deref())?;
    tell(&notices);
    Ok(config)
}

fn tell(notices: &[Notice]) {
    for notice in notices {
        output::remark(&format!("notice: {notice}"));
    }
}

/// What is told of an error: one line, or one for each thing that is wrong with the settings.
fn told(error: &anyhow::Error) -> Vec<String> {
    let settings = match error.downcast_ref::<ManifestsError>() {
        Some(ManifestsError::Settings(error)) => Some(error),
        _ => error.downcast_ref::<ConfigError>(),
    };
    match settings {
        Some(error) => error.each().into_iter().map(|error| one_line(&error.to_string())).collect(),
        None => vec![one_line(&reasons(error))],
    }
}

/// An error and its causes, those left out that are said already.
fn reasons(error: &anyhow::Error) -> String {
    error.chain().map(words).fold(String::new(), |said, cause| match said.as_str() {
        "" => cause,
        said if said.contains(&cause) => said.to_owned(),
        said => format!("{said}: {cause}"),
    })
}

/// The text of an error; for an error of the API server, only its message.
fn words(error: &(dyn std::error::Error + 'static)) -> String {
    let kube = error.downcast_ref::<kube::Error>();
    match kube.or_else(|| error.downcast_ref::<Box<kube::Error>>().map(AsRef::as_ref)) {
        Some(kube::Error::Api(status)) => status.message.clone(),
        _ => match error.downcast_ref::<Box<kube::core::Status>>() {
            Some(status) => status.message.clone(),
            None => error.to_string(),
        },
    }
}

/// Prints help and version as they are, and a wrong call in one line.
fn usage(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let colours = std::io::stdout().is_terminal();
        let text = if colours { error.render().ansi().to_string() } else { error.render().to_string() };
        return output::write(&text).map_or(ExitCode::from(2), |()| ExitCode::SUCCESS);
    }
    let text = error.to_string();
    let said = text.split("\nUsage:").next().unwrap_or(&text).trim();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        text.trim_end().lines().for_each(output::remark);
    } else {
        output::remark(&one_line(said));
    }
    ExitCode::from(2)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook::certificate::secret::SecretError;

    #[test]
    fn a_cause_that_is_said_already_is_not_said_again() {
        let error = anyhow::anyhow!("refused").context("no way: refused").context("cannot reach it");
        assert_eq!(reasons(&error), "cannot reach it: no way: refused");
        let status = kube::core::Status {
            message: "no such namespace".to_owned(),
            code: 404,
            ..kube::core::Status::default()
        };
        let source = Box::new(kube::Error::Api(Box::new(status)));
        let error = SecretError::Api { verb: "create", name: "tls".to_owned(), source };
        assert_eq!(reasons(&error.into()), "cannot create secret tls: no such namespace");
    }

    #[test]
    fn every_command_ends_its_help_with_an_example() {
        let mut command = Cli::command();
        command.clone().debug_assert();
        for command in command.get_subcommands_mut() {
            let help = command.render_long_help().to_string();
            let (_, example) = help.rsplit_once("\nExample").expect("an example");
            assert!(example.contains(&format!("\n  berth {}", command.get_name())), "{help}");
        }
    }
}
