//! One size of cluster: the program is started on it and asked.

use std::{fmt, path::Path, time::Duration};

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::PostParams};
use tokio::time::{Instant, sleep};

use super::{
    api_server::ApiServer,
    objects,
    program::{Program, value},
};
use crate::process::Memory;

/// How large a cluster is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClusterSize {
    pub(crate) nodes: usize,
    /// Pods that run and hold shares.
    pub(crate) pods: usize,
    /// Pods that wait, no two of them alike.
    pub(crate) classes: usize,
    /// Whether the shares that pods hold differ by a few MiB.
    pub(crate) uneven: bool,
}

/// What the program takes.
#[derive(Debug)]
pub(crate) struct Figures {
    size: ClusterSize,
    /// From the last bytes of the list of pods until all is known.
    ready: Duration,
    /// Once all is known, and at most until then.
    pub(crate) listed: Memory,
    /// After all questions.
    pub(crate) end: Memory,
    /// Of pods of a class that was decided before.
    pub(crate) known: Duration,
    /// Of pods of a class that was not.
    pub(crate) new: Duration,
    /// The median, for how many pods the first says where the pod would go, and how many there were until all had.
    pub(crate) dry_run: (Duration, usize, usize),
    /// The median.
    pub(crate) scrape: Duration,
    /// The bytes of it.
    page: usize,
}

/// Questions of each kind.
const TIMES: usize = 9;

/// So many dry runs of one pod.
const MOST_ASKED: usize = 20;

/// Decisions are not waited for longer than this.
const DECIDED: Duration = Duration::from_mins(2);

const COUNT: &str = "berth_scheduler_decision_duration_seconds_count";
const SUM: &str = "berth_scheduler_decision_duration_seconds_sum";

/// Measures one size.
pub(crate) async fn measure(
    size: ClusterSize,
    program: &Path,
    config: Option<&Path>,
) -> anyhow::Result<Figures> {
    let api_server = ApiServer::start(size).await?;
    eprintln!("{size:?}: the list of pods has {} MiB", api_server.bytes >> 20);
    let mut program = Program::start(program, config, &api_server)?;
    let known = program.known().await?;
    let listed = api_server.listed().context("pods were listed")?;
    let ready = known.duration_since(listed).try_into().unwrap_or_default();
    let listed = program.settled().await?;
    let mut load = Load { api_server: &api_server, program: &program, created: 0 };
    if size.classes > 0 {
        // More than any card has: they stay.
        load.decided((0..size.classes).map(|class| 100_000 + class)).await?;
    }
    load.decided([2_000]).await?;
    let known = load.decided([2_000; TIMES]).await?;
    let new = load.decided((0..TIMES).map(|class| 3_001 + class)).await?;
    let (mut dry_runs, mut at_once) = (Vec::new(), 0);
    for number in 0..TIMES {
        let pod = objects::asking("asked", 4_001 + number);
        for again in 0..MOST_ASKED {
            let (told, took) = program.dry_run(&pod).await?;
            dry_runs.push(took);
            if told.iter().any(|line| line.contains("placed")) {
                at_once += usize::from(again == 0);
                break;
            }
        }
    }
    let (mut scrapes, mut page) = (Vec::new(), 0);
    for _ in 0..TIMES {
        let began = Instant::now();
        page = program.scrape("").await?.len();
        scrapes.push(began.elapsed());
    }
    let dry_run = (median(&mut dry_runs), at_once, dry_runs.len());
    Ok(Figures {
        size,
        ready,
        listed,
        end: program.memory()?,
        known,
        new,
        dry_run,
        scrape: median(&mut scrapes),
        page,
    })
}

fn median(durations: &mut [Duration]) -> Duration {
    durations.sort();
    durations.get(durations.len() / 2).copied().unwrap_or_default()
}

/// Pods that are created.
struct Load<'a> {
    api_server: &'a ApiServer,
    program: &'a Program,
    created: usize,
}

impl Load<'_> {
    /// Creates pods that ask for so much memory each, and waits until all were decided; the mean time of a decision.
    async fn decided(&mut self, memory: impl IntoIterator<Item = usize>) -> anyhow::Result<Duration> {
        let before = self.program.scrape("").await?;
        let api = Api::<Pod>::namespaced(self.api_server.sandbox.client(), objects::NAMESPACE);
        let mut pods = 0.0;
        for memory in memory {
            self.created += 1;
            let pod = serde_json::from_value(objects::asking(&format!("new-{:05}", self.created), memory))?;
            api.create(&PostParams::default(), &pod).await.context("a pod")?;
            pods += 1.0;
        }
        let until = Instant::now() + DECIDED;
        loop {
            sleep(Duration::from_millis(300)).await;
            let page = self.program.scrape("").await?;
            let decisions = value(&page, COUNT) - value(&before, COUNT);
            if decisions >= pods {
                return Ok(Duration::from_secs_f64((value(&page, SUM) - value(&before, SUM)) / decisions));
            }
            ensure!(Instant::now() < until, "{decisions} of {pods} pods were decided");
        }
    }
}

impl Figures {
    /// The heading of the table that these are rows of.
    pub(crate) const HEADING: &'static str = "  nodes    pods classes | ready ms | MiB listed, most, end | µs known     new | dry run ms, at once, in all | scrape ms    KiB";
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn mebibytes(kibibytes: u64) -> u64 {
    kibibytes / 1024
}

impl fmt::Display for Figures {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClusterSize { nodes, pods, classes, .. } = self.size;
        let (dry_run, at_once, asked) = self.dry_run;
        write!(
            out,
            "{nodes:>7} {pods:>7} {classes:>7} | {:>8.0} | {:>10} {:>5} {:>4} | {:>8} {:>7} | {:>6.1} {at_once:>2} of {TIMES} {asked:>4} | {:>9.1} {:>6}",
            milliseconds(self.ready),
            mebibytes(self.listed.rss_kib),
            mebibytes(self.listed.peak_kib),
            mebibytes(self.end.rss_kib),
            self.known.as_micros(),
            self.new.as_micros(),
            milliseconds(dry_run),
            milliseconds(self.scrape),
            self.page / 1024,
        )
    }
}
