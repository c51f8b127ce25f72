//! `berth shadow report`: what a shadow has found out in a week, as one table with a verdict and the workloads concerned.
//!
//! It reads pages of `/debug/shadow` that were saved, and asks no cluster. What diverges was decided by the shadow.

mod summary;

use std::{
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};

use super::{CommandAnswer, output, output::Format};
use crate::cluster::shadow::report::Page;

use summary::Summary;

const EXAMPLE: &str = "\
Example: the report of a shadow that runs in the cluster
  kubectl -n berth-system port-forward deployment/berth-shadow 8443 &
  curl -sk https://localhost:8443/debug/shadow >shadow.json
  berth shadow report -f shadow.json";

/// Arguments of `berth shadow`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLE)]
pub struct ShadowArgs {
    /// What to do
    #[command(subcommand)]
    pub command: ShadowCommand,
}

/// What there is to do with a shadow's findings.
#[derive(Debug, Subcommand)]
pub enum ShadowCommand {
    /// Summarize what a shadow has found: a table, the workloads concerned, and a verdict.
    Report(ReportArgs),
}

/// Arguments of `berth shadow report`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLE)]
pub struct ReportArgs {
    /// A file with pages of `/debug/shadow` as JSON, or `-` for standard input; may be given several times. Of pages of one
    /// process the last one counts, those of several processes are added up
    #[arg(short, long = "filename", alias = "file", value_name = "FILE|-", required = true)]
    pub file: Vec<PathBuf>,
    /// For how many days decisions must have been compared
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u16).range(0..=366))]
    pub days: u16,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}

impl ShadowArgs {
    /// Prints the report. No: something speaks against a switch, or too little is known.
    pub fn run(&self) -> anyhow::Result<CommandAnswer> {
        let ShadowCommand::Report(args) = &self.command;
        let mut pages = Vec::new();
        for file in &args.file {
            pages.extend(read(file)?);
        }
        if pages.is_empty() {
            bail!("no page of /debug/shadow in any of the files");
        }
        let summary = Summary::of(pages, args.days);
        output::print(&summary, args.output, || summary.table())?;
        Ok(if summary.is_ready() { CommandAnswer::Yes } else { CommandAnswer::No })
    }
}

/// The pages of a file, one after the other.
fn read(file: &Path) -> anyhow::Result<Vec<Page>> {
    let called = file.display();
    let mut text = String::new();
    if file.as_os_str() == "-" {
        io::stdin().lock().read_to_string(&mut text).with_context(|| format!("{called}: can't be read"))?;
    } else {
        text = fs::read_to_string(file).with_context(|| format!("{called}: can't be read"))?;
    }
    let pages = serde_json::Deserializer::from_str(&text).into_iter().enumerate();
    pages
        .map(|(at, page)| {
            page.with_context(|| format!("{called}: page {}: not a page of /debug/shadow", at + 1))
        })
        .collect()
}
