//! `berth report`: how many hours of GPUs, of their memory and of their compute were held, by namespace, workload or value of a label.
//!
//! From Prometheus, which has scraped the counters of the leader; or from the pods that there are, which tell nothing of pods that are gone.

mod opencost;
mod pods;
mod prometheus;

use std::{io, path::PathBuf};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::cluster::InspectedArgs;
use crate::{
    api::usage::{Grouping, HeldHours, StrandedRow, UsageReportRow, grouping, six_decimals},
    cli::{
        CommandAnswer,
        output::{self, Format, Shown},
        table::Table,
    },
    config::Config,
};

/// The longest time that a report can be about.
const LONGEST: SignedDuration = SignedDuration::from_hours(24 * 366 * 10);

/// Arguments of `berth report`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Examples: the last week by namespace; the last month by the label team, for a spreadsheet\n  berth report --since 7d --prometheus http://localhost:9090\n  berth report --since 30d --by label=team -o csv --prometheus http://localhost:9090"
)]
pub struct UsageReportArgs {
    /// How far back, as Prometheus writes it: 12h, 7d, 4w
    #[arg(long, value_name = "DURATION", default_value = "7d", value_parser = duration)]
    pub since: SignedDuration,
    /// What hours are added up by: namespace, owner (the workload), or label=KEY
    #[arg(long, value_name = "namespace|owner|label=KEY", default_value = "namespace", value_parser = grouping)]
    pub by: Grouping,
    /// The Prometheus that scrapes Berth [default: none: only the pods that there are now]
    #[arg(long, value_name = "URL", value_parser = prometheus::address, conflicts_with_all = ["file", "kubeconfig", "context"])]
    pub prometheus: Option<http::Uri>,
    /// A file with the bearer token that Prometheus wants
    #[arg(long, value_name = "FILE", requires = "prometheus")]
    pub prometheus_token_file: Option<PathBuf>,
    /// Which cluster
    #[command(flatten)]
    pub cluster: InspectedArgs,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Table)]
    pub output: ReportFormat,
}

/// The form of a report.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum ReportFormat {
    /// A table.
    Table,
    /// One JSON document.
    Json,
    /// Comma-separated values, with a line of headings.
    Csv,
    /// As OpenCost's API answers on /allocation.
    Opencost,
}

/// Hours that were held.
#[derive(Clone, Debug, Serialize)]
pub struct UsageReport {
    since: Timestamp,
    until: Timestamp,
    /// `namespace`, `owner` or `label=KEY`.
    by: String,
    #[serde(skip)]
    grouping: Grouping,
    /// The most GPU-hours first.
    usage: Vec<UsageReportRow>,
    /// GPUs that were free and of no use; none where only pods were looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stranded: Vec<StrandedRow>,
}

/// Prints the report.
pub async fn run(args: UsageReportArgs, config: Config) -> Result<CommandAnswer> {
    let until = args.cluster.now();
    let since = until.checked_sub(args.since)?;
    let (mut usage, stranded) = match &args.prometheus {
        Some(address) => {
            let token = args.prometheus_token_file.as_deref();
            prometheus::hours(address, token, &args.by, (since, until)).await?
        }
        None => (pods::hours(&args.cluster, &config, &args.by, (since, until)).await?, Vec::new()),
    };
    usage.sort_by(|one, other| {
        let names = |row: &UsageReportRow| row.names().map(str::to_owned).collect::<Vec<_>>();
        other.hours.gpus.total_cmp(&one.hours.gpus).then_with(|| names(one).cmp(&names(other)))
    });
    let by = args.by.to_string();
    let report = UsageReport { since, until, by, grouping: args.by, usage, stranded };
    match args.output {
        ReportFormat::Table => output::show(&report.table())?,
        ReportFormat::Json => output::print(&report, Format::Json, Shown::default)?,
        ReportFormat::Csv => report.csv()?,
        ReportFormat::Opencost => {
            output::print(&opencost::allocations(&report), Format::Json, Shown::default)?;
        }
    }
    Ok(CommandAnswer::Yes)
}

impl UsageReport {
    fn table(&self) -> Shown {
        let names = self.grouping.headings().iter().map(|name| name.to_uppercase().replace('_', " "));
        let headings: Vec<String> = names
            .chain(["GPU-HOURS", "MEMORY (GIB-HOURS)", "COMPUTE (GPU-HOURS)"].map(str::to_owned))
            .collect();
        let mut table = Table::new(&headings.iter().map(|heading| &**heading).collect::<Vec<_>>());
        for row in &self.usage {
            let HeldHours { gpus, memory, cores } = row.hours;
            let hours = [gpus, memory, cores].map(|hours| format!("{hours:.2}"));
            let names = row.names().map(|name| if name.is_empty() { "<none>" } else { name });
            table.row(names.map(str::to_owned).chain(hours));
        }
        if self.stranded.is_empty() {
            return table.render();
        }
        let mut stranded = Table::new(&["STRANDED MODEL", "REASON", "GPU-HOURS"]);
        for StrandedRow { model, reason, gpu_hours } in &self.stranded {
            stranded.row([&**model, &**reason, &format!("{gpu_hours:.2}")]);
        }
        table.render().and(&Shown::line("")).and(&stranded.render())
    }

    fn csv(&self) -> Result<()> {
        let mut writer = csv::Writer::from_writer(io::stdout().lock());
        let hours = ["gpu_hours", "gpu_memory_gib_hours", "gpu_core_hours"];
        writer.write_record(self.grouping.headings().iter().chain(&hours))?;
        for row in &self.usage {
            let HeldHours { gpus, memory, cores } = row.hours;
            let hours = [gpus, memory, cores].map(|hours| format!("{hours:.6}"));
            writer.write_record(row.names().map(cell).chain(hours))?;
        }
        Ok(writer.flush()?)
    }
}

/// A name as a cell: what a spreadsheet would take for a formula is quoted as text.
fn cell(name: &str) -> String {
    if name.starts_with(['=', '+', '-', '@']) { format!("'{name}") } else { name.to_owned() }
}

/// A duration as Prometheus writes it: whole numbers, each with its unit.
fn duration(text: &str) -> Result<SignedDuration> {
    let (mut rest, mut seconds) = (text, 0_i64);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, unit) = rest.split_at(digits);
        let unit_end = unit.find(|c: char| c.is_ascii_digit()).unwrap_or(unit.len());
        let (unit, after) = unit.split_at(unit_end);
        let of_one = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            "w" => 7 * 86_400,
            _ => {
                bail!("{text:?} is no duration: whole numbers with the units s, m, h, d or w, as 7d or 1d12h")
            }
        };
        let Ok(number) = number.parse::<i64>() else {
            bail!("{text:?} is no duration: a number must stand before each unit");
        };
        seconds = seconds.saturating_add(number.saturating_mul(of_one));
        rest = after;
    }
    if seconds <= 0 || seconds > LONGEST.as_secs() {
        bail!("{text:?} must be more than nothing and at most ten years");
    }
    Ok(SignedDuration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_prometheus() {
        for (text, seconds) in [("90s", 90), ("7d", 604_800), ("1d12h", 129_600), ("4w", 2_419_200)] {
            assert_eq!(duration(text).unwrap().as_secs(), seconds, "{text}");
        }
        for text in ["", "7", "d", "1.5h", "-1h", "0s", "7y", "99999w", "99999999999999999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_name_is_never_a_formula() {
        assert_eq!(cell("=1+1"), "'=1+1");
        assert_eq!(cell("team-a"), "team-a");
    }
}
