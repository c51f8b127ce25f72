//! `berth replay`: a recording or a trace of pods that arrive and end, played through the real scheduler under one or several policies.
//!
//! The clock jumps from one event to the next. Nothing is decided here: what is measured is what the scheduler of the live binder does.

mod arrivals;
mod chart;
mod gpus;
mod play;
mod report;
mod tally;
mod trace;

use std::path::PathBuf;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use jiff::SignedDuration;

use super::{
    CommandAnswer, documents, output,
    output::{Format, Shown},
};
use crate::config::{Config, duration};
use arrivals::Order;
use report::{PolicyRow, Replay};
use tally::Period;

/// Arguments of `berth replay`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  berth replay -f nodes.csv --trace pods.csv --shuffle --seed 42 --ratio 1.3 -o json"
)]
pub struct ReplayArgs {
    /// A file or a folder with Nodes, Pods and other objects, or a table of nodes; may be given several times.
    #[arg(short, long = "filename", alias = "file", value_name = "FILE|DIR")]
    pub file: Vec<PathBuf>,
    /// A table of pods or of nodes in the columns of the openb traces; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub trace: Vec<PathBuf>,
    /// Play the same pods under the settings of this file and print the result under this name; may be given several times.
    #[arg(long, value_name = "NAME=FILE", value_parser = policy)]
    pub policy: Vec<(String, PathBuf)>,
    /// Let the pods arrive in random order, one after the other, and never end.
    #[arg(long, group = "drawn")]
    pub shuffle: bool,
    /// Draw pods again and again until `--until`, at random moments and each with the time that it runs, so many that they would hold this
    /// percentage of the cluster's GPUs.
    #[arg(long, value_name = "PERCENT", group = "drawn", requires = "until", value_parser = load)]
    pub load: Option<f64>,
    /// What is drawn: the same seed draws the same pods in the same order.
    #[arg(long, default_value_t = 0, requires = "drawn")]
    pub seed: u64,
    /// Draw pods until they ask for so many times the GPUs of the cluster.
    #[arg(long, requires = "shuffle", value_parser = ratio)]
    pub ratio: Option<f64>,
    /// Stop at this time after the first arrival, for example `12h`.
    #[arg(long, value_name = "DURATION", value_parser = time)]
    pub until: Option<SignedDuration>,
    /// Let pods that run longer than this, or never end, run so long, for example `6h`.
    #[arg(long, value_name = "DURATION", requires = "load", value_parser = time)]
    pub longest_run: Option<SignedDuration>,
    /// Leave this time after the first arrival out of means over time and of waits by size, for example `6h`.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = time)]
    pub warm_up: SignedDuration,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub output: Format,
    /// Write curves into this file: allocated and fragmented GPUs by demand, and how soon the largest pods were bound, where some waited.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

fn policy(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.to_owned(), file.into())),
        _ => Err("must be NAME=FILE".to_owned()),
    }
}

fn ratio(text: &str) -> Result<f64, String> {
    let ratio: f64 = text.parse().map_err(|_| "must be a number".to_owned())?;
    if ratio > 0.0 && ratio <= 10.0 { Ok(ratio) } else { Err("must be above 0 and at most 10".to_owned()) }
}

fn load(text: &str) -> Result<f64, String> {
    let load: f64 = text.parse().map_err(|_| "must be a number".to_owned())?;
    if load > 0.0 && load <= 1000.0 { Ok(load) } else { Err("must be above 0 and at most 1000".to_owned()) }
}

fn time(text: &str) -> Result<SignedDuration, String> {
    let time = duration::parse(text).filter(|time| !time.is_negative());
    time.ok_or_else(|| "not a time, such as `12h`".to_owned())
}

impl ReplayArgs {
    /// Plays the pods under each policy, and prints what has come of them.
    pub fn run(&self, config: &Config) -> anyhow::Result<CommandAnswer> {
        ensure!(!(self.file.is_empty() && self.trace.is_empty()), "give nodes and pods with -f or --trace");
        let documents = self.documents()?;
        if let Some(until) = self.until {
            ensure!(self.warm_up < until, "--warm-up: must be shorter than --until");
        }
        let order = match (self.load, self.until) {
            (Some(load), Some(until)) => {
                Order::Steady { seed: self.seed, load: load / 100.0, until, longest: self.longest_run }
            }
            _ if self.shuffle => Order::Shuffled { seed: self.seed, ratio: self.ratio },
            _ => Order::Recorded,
        };
        let period = Period { warm_up: self.warm_up, until: self.until };
        let mut policies = Vec::new();
        if self.policy.is_empty() {
            policies.push(("default".to_owned(), config.clone()));
        }
        for (name, file) in &self.policy {
            let (settings, notices) = Config::load(Some(file))?;
            super::tell(&notices);
            policies.push((name.clone(), settings));
        }
        let mut rows: Vec<PolicyRow> = Vec::new();
        for (name, settings) in policies {
            if rows.iter().any(|row| row.name == name) {
                bail!("--policy {name}: there are two of this name");
            }
            rows.push(play::play(name, &documents, &settings, order, period)?);
        }
        let replay = Replay { policies: rows };
        if let Some(file) = &self.svg {
            std::fs::write(file, chart::svg(&replay)?).with_context(|| file.display().to_string())?;
        }
        output::print(&replay, self.output, || match self.load {
            Some(_) => replay.table().and(&Shown::line("")).and(&replay.steady_table()),
            None => replay.table(),
        })?;
        Ok(CommandAnswer::Yes)
    }

    /// Objects of files and rows of tables.
    fn documents(&self) -> anyhow::Result<Vec<documents::Document>> {
        let is_table = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "csv");
        let (tables, files): (Vec<_>, Vec<_>) = self.file.iter().partition(is_table);
        let mut found = Vec::new();
        for table in tables.into_iter().chain(&self.trace) {
            found.extend(trace::read(table)?);
        }
        if !files.is_empty() {
            let files: Vec<PathBuf> = files.into_iter().cloned().collect();
            found.extend(documents::read(&files)?);
        }
        Ok(found)
    }
}
