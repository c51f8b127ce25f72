//! `berth preflight` against the API server in the process and a real one: what it finds, what it asks for, and that it changes nothing.
#![cfg(feature = "sandbox")]
#![allow(clippy::needless_pass_by_value, reason = "a value of a test is written where it is used")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod commands;
mod hami;
mod rights;
mod sandbox;
mod trust;

use berth::cli::preflight::{PreflightArgs, PreflightReport, examine};
use clap::Parser as _;
use jiff::Timestamp;
use kube::Client;

use crate::support;

/// The arguments of a call without flags.
fn args() -> PreflightArgs {
    let cli = berth::cli::Cli::try_parse_from(["berth", "preflight"]).unwrap();
    match cli.command {
        berth::cli::Command::Preflight(args) => args,
        other => panic!("{other:?}"),
    }
}

async fn report(client: &Client) -> PreflightReport {
    examine(client, &args(), None, Timestamp::constant(1_767_225_600, 0)).await.unwrap()
}

/// The names of the rules that found something, each once, the gravest first.
fn rules(report: &PreflightReport) -> Vec<&'static str> {
    let mut rules: Vec<_> = report.findings.iter().map(|finding| finding.rule).collect();
    rules.dedup();
    rules
}
