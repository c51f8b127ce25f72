//! What it costs that Berth reads its watches as JSON: the processor time that the API server takes to write a change in JSON and in protobuf, and the part
//! of Berth's own time that goes into reading it.
//!
//! It must not judge: machines differ, so what counts are the ratios within one run.

mod encodings {
    pub(crate) mod answers;
    pub(crate) mod pods;
}
#[path = "end_to_end/load.rs"]
#[allow(dead_code, reason = "the bench of binding uses the rest of it")]
mod load;
#[path = "end_to_end/process.rs"]
#[allow(dead_code, reason = "the bench of binding uses the rest of it")]
mod process;
#[path = "../tests/support/lib.rs"]
mod support;

use std::{path::Path, process::ExitCode, time::Duration};

use anyhow::{Context as _, ensure};
use berth::object::Pod;
use clap::Parser;
use encodings::{
    answers::{Encoding, list, newest, watch},
    pods::{CHANGES, Requests, create_and_run, register},
};
use kube::Client;
use serde::Deserialize;
use serde_json::value::RawValue;
use support::{
    controlplane::{ControlPlane, GarbageCollection, LIMITLESS, Options},
    installed::{Replica, free_address},
};
use tokio::time::Instant;

/// Watches and lists pods in both encodings, in turn, beside the program that only watches them.
#[derive(Debug, Parser)]
struct Args {
    /// Pods of each round.
    #[arg(long, default_value_t = 400)]
    pods: usize,
    /// Nodes that the pods run on.
    #[arg(long, default_value_t = 50)]
    nodes: usize,
    /// Rounds; the medians are printed.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How often a round watches the same changes, and lists the same pods, in each encoding.
    #[arg(long, default_value_t = 8)]
    times: u32,
    /// What the pods ask for.
    #[arg(long, value_enum, default_value_t = Requests::Gpu)]
    requests: Requests,
    /// Passed by cargo; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
}

const ADMIN: &str = "admin";
const REPLICA: &str = "berth";
/// What the program logs once it has listed the cluster.
const KNOWN: &str = "pods and nodes are known";
const START_LIMIT: Duration = Duration::from_mins(1);
/// How long to wait between two looks at counters that must have come to rest.
const REST: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime.expect("this machine has threads to give").block_on(measure(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("encodings: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Microseconds that the rounds have taken.
#[derive(Debug, Default)]
struct Figures {
    /// The API server, for a pod's way from its creation until it runs.
    server_by_pod: Vec<f64>,
    /// The program that watches, for one change of a pod.
    program_by_change: Vec<f64>,
    /// Reading one change from JSON, and nothing else.
    reading_by_change: Vec<f64>,
    /// The API server, for writing one change to one watch.
    server_by_change: [Vec<f64>; 2],
    /// The API server, for one pod of a list.
    server_by_listed: [Vec<f64>; 2],
    /// Bytes of one change.
    bytes_by_change: [usize; 2],
}

async fn measure(args: &Args) -> anyhow::Result<()> {
    let options = Options {
        apiserver_flags: LIMITLESS.map(str::to_owned).to_vec(),
        garbage_collection: GarbageCollection::Usual,
        ..Options::default()
    };
    let plane = ControlPlane::start(options).await.context("there is no real control plane here")?;
    let client = plane.admin();
    register(&client, args.nodes).await?;
    let arguments = ["--scheduler-only", "--leader-elect=false"];
    let replica = Replica::start_as(&plane, ADMIN, REPLICA, free_address(), &arguments);
    wait_until_known(plane.directory()).await?;
    // Go's caches and the program's memory reach the size that they keep.
    create_and_run(&client, "warm", args).await?;
    let mut figures = Figures::default();
    for round in 0..args.rounds {
        measure_round(&client, &replica, args, round, &mut figures).await?;
        let program = figures.program_by_change.last().copied().unwrap_or(f64::NAN);
        eprintln!("round {} of {}: {program:.0} µs of the program for a change", round + 1, args.rounds);
    }
    figures.print();
    Ok(())
}

async fn measure_round(
    client: &Client,
    replica: &Replica,
    args: &Args,
    round: usize,
    figures: &mut Figures,
) -> anyhow::Result<()> {
    let version = newest(client).await?;
    let before = (api_server()?, replica.processor_time());
    create_and_run(client, &format!("round{round}"), args).await?;
    let after = at_rest(replica).await?;
    let changes = args.pods * CHANGES;
    figures.server_by_pod.push(micros(after.0.saturating_sub(before.0), args.pods));
    figures.program_by_change.push(micros(after.1.saturating_sub(before.1), changes));
    let idle = {
        let (now, began) = (newest(client).await?, api_server()?);
        for _ in 0..args.times {
            watch(client, Encoding::Json, &now).await?;
        }
        api_server()?.saturating_sub(began)
    };
    for (at, encoding) in [Encoding::Json, Encoding::Protobuf].into_iter().enumerate() {
        let began = api_server()?;
        let mut bytes = Vec::new();
        for _ in 0..args.times {
            bytes = watch(client, encoding, &version).await?;
        }
        let used = api_server()?.saturating_sub(began).saturating_sub(idle);
        figures.server_by_change[at].push(micros(used / args.times, changes));
        figures.bytes_by_change[at] = bytes.len() / changes;
        if encoding == Encoding::Json {
            figures.reading_by_change.push(read(&bytes, changes, args.times)?);
        }
        let began = api_server()?;
        for _ in 0..args.times {
            list(client, encoding).await?;
        }
        let listed = args.pods * (round + 2);
        figures.server_by_listed[at].push(micros(api_server()?.saturating_sub(began) / args.times, listed));
    }
    Ok(())
}

/// A line of a watch.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    object: &'a RawValue,
}

/// Microseconds to read the pod of one line.
fn read(lines: &[u8], changes: usize, times: u32) -> anyhow::Result<f64> {
    let text = str::from_utf8(lines).context("the lines of a watch")?;
    let pods: Vec<&str> = text
        .lines()
        .map(|line| serde_json::from_str::<Line<'_>>(line).map(|line| line.object.get()))
        .collect::<Result<_, _>>()
        .context("the lines of a watch")?;
    ensure!(pods.len() == changes, "a watch has told {} changes, not {changes}", pods.len());
    let began = Instant::now();
    for _ in 0..times {
        for pod in &pods {
            let pod: Pod = serde_json::from_str(std::hint::black_box(pod)).context("a pod")?;
            std::hint::black_box(pod);
        }
    }
    Ok(micros(began.elapsed() / times, changes))
}

impl Figures {
    fn print(&self) {
        let of = |figures: &[f64]| median(figures.to_vec());
        let [json, protobuf] = self.server_by_change.each_ref().map(|figures| of(figures));
        let [json_listed, protobuf_listed] = self.server_by_listed.each_ref().map(|figures| of(figures));
        let [json_bytes, protobuf_bytes] = self.bytes_by_change;
        let (server, program) = (of(&self.server_by_pod), of(&self.program_by_change));
        let reading = of(&self.reading_by_change);
        println!("processor time, medians of {} rounds", self.server_by_pod.len());
        println!("API server, one change to one watch: JSON {json:.0} µs for {json_bytes} bytes");
        println!("                                 protobuf {protobuf:.0} µs for {protobuf_bytes} bytes");
        println!("API server, one pod of a list: JSON {json_listed:.0} µs, protobuf {protobuf_listed:.0} µs");
        println!("API server, {CHANGES} changes of a pod with their writes: {server:.0} µs");
        #[expect(clippy::cast_precision_loss, reason = "a handful")]
        let saved = (json - protobuf) * CHANGES as f64 / server * 100.0;
        println!("  of that, protobuf instead of JSON for one watch saves {saved:.1} %");
        println!("Berth, one change of a pod that it only watches: {program:.0} µs");
        println!("  of that, reading the pod from JSON: {reading:.1} µs, {:.1} %", reading / program * 100.0);
    }
}

/// Waits until the program has listed the cluster.
async fn wait_until_known(directory: &Path) -> anyhow::Result<()> {
    let log = directory.join(format!("{REPLICA}.log"));
    let known = async {
        while !std::fs::read_to_string(&log).unwrap_or_default().contains(KNOWN) {
            tokio::time::sleep(REST).await;
        }
    };
    tokio::time::timeout(START_LIMIT, known).await.context("the program has not listed the cluster")
}

/// Processor time of the API server and of the program, once the program has taken in what was written.
async fn at_rest(replica: &Replica) -> anyhow::Result<(Duration, Duration)> {
    let mut last = None;
    loop {
        let used = replica.processor_time();
        if last.replace(used) == Some(used) {
            return Ok((api_server()?, used));
        }
        tokio::time::sleep(REST).await;
    }
}

/// Processor time of the API server so far.
fn api_server() -> anyhow::Result<Duration> {
    process::times()?.get("kube-apiserver").copied().context("the API server is no child of this process")
}

#[expect(clippy::cast_precision_loss, reason = "counts of a bench are far below 2^52")]
fn micros(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
