//! What a question to the API costs that plays pods on everything a replica has seen: how long the loop that binds copies for it, and how long the answer
//! takes outside the loop.
//!
//! It must not judge: machines differ, so the figures are printed.
#![expect(clippy::unwrap_used, reason = "what fails in a bench ends the bench")]

#[path = "../tests/support/hami.rs"]
mod hami;

use std::{
    collections::{BTreeMap, HashMap},
    ops::ControlFlow,
    time::Duration,
};

use berth::{
    cluster::{Reader, report::overview::Recount},
    config::Config,
    object::{Node, Pod},
    scheduling::{
        Event, NodeChange, ObjectChange, PodChange, QuotaChange, Scheduler,
        model::{kind::Kind, message::Message},
        scheduler::{Pace, Settings},
    },
    simulation::{
        ClusterChange, ClusterLists, Explain, SimulatedOutcome, SimulatedPod, SimulationStage, simulate,
    },
};
use clap::Parser;
use hami::{bound, node, pod};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

/// The program's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Prints how long one question takes, on clusters of several sizes.
#[derive(Debug, Parser)]
struct Args {
    /// Nodes of eight cards each.
    #[arg(long, default_value_t = 1000)]
    nodes: usize,
    /// Pods that hold a share, and pods that wait; one line for each pair.
    #[arg(long, value_delimiter = ',', default_values_t = ["10000/100".to_owned(), "10000/10000".to_owned(), "15000/5000".to_owned()])]
    pods: Vec<String>,
    /// Rounds for each figure.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Passed by cargo; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
}

/// MiB of a card.
const CARD: u32 = 81_920;

fn read<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).unwrap()
}

fn running(number: usize, nodes: usize) -> Value {
    let node = format!("node-{:04}", number % nodes);
    let card = format!("GPU-{node}-{}", number / nodes % 8);
    bound(pod("held", &format!("pod-{number}"), (1, 1_000)), &node, &card, 1_000)
}

/// A pod that fits nowhere; there are four sizes of them.
fn waiting(number: usize) -> Value {
    pod("waits", &format!("pod-{number}"), (1, CARD + 1 + u32::try_from(number % 4).unwrap()))
}

fn settings(config: &Config, reader: &Reader) -> Settings {
    Settings { device_resources: reader.device_resources(), ..config.scheduler_settings() }
}

fn scheduler((config, reader): (&Config, &Reader), nodes: usize, held: usize, waits: usize) -> Scheduler {
    let mut scheduler = Scheduler::new(settings(config, reader));
    let infos =
        (0..nodes).map(|at| reader.node(&read::<Node>(node(&format!("node-{at:04}"), 8, CARD))).0).collect();
    let pods = (0..held).map(|at| running(at, nodes)).chain((0..waits).map(waiting));
    let pods = pods.map(|pod| reader.pod(&read::<Pod>(pod)).0).collect();
    let first = [
        Event::Pod(PodChange::Listed(pods)),
        Event::Node(NodeChange::Listed(infos)),
        Event::Quota(QuotaChange::Listed(Vec::new())),
    ];
    let others = Kind::ALL.iter().map(|kind| Event::Object(ObjectChange::Listed(*kind, Vec::new())));
    for event in first.into_iter().chain(others) {
        scheduler.observe(event, Timestamp::UNIX_EPOCH);
    }
    scheduler
}

/// The answer to one question about one pod.
fn answer(events: Vec<Event>, (config, reader): (&Config, &Reader)) -> usize {
    let mut lists = ClusterLists::seen(events).changed(&ClusterChange::default()).unwrap();
    let asked = reader.pod(&read::<Pod>(pod("asked", "pod", (1, 20_000)))).0;
    let positions = HashMap::from([(asked.key.uid.clone(), 0)]);
    lists.pods.push(asked);
    let stage = SimulationStage {
        settings: Settings { pace: Pace::OneByOne, ..settings(config, reader) },
        lists,
        rows: BTreeMap::from([(0, SimulatedPod::new("asked", "pod"))]),
        positions,
        allocated: BTreeMap::new(),
    };
    let told = |message: Message| message.full;
    let mut go_on = || ControlFlow::Continue(());
    let simulation =
        simulate(stage, reader, (Explain::Nothing, &told), Timestamp::UNIX_EPOCH, &mut go_on).unwrap();
    assert_eq!(simulation.pods[0].outcome, SimulatedOutcome::Bound);
    serde_json::to_vec(&simulation).unwrap().len()
}

fn figures(mut took: Vec<Duration>) -> String {
    took.sort();
    let figure = |at: usize| format!("{:>8.1}", took[at].as_secs_f64() * 1000.0);
    format!("{}{}{}", figure(0), figure(took.len() / 2), figure(took.len() - 1))
}

fn main() {
    let args = Args::parse();
    let config = Config::default();
    let reader = config.reader();
    println!("{} nodes; ms: least, median and most of {} rounds", args.nodes, args.rounds);
    println!("{:<24} {:>24} {:>24}", "pods that run/wait", "the loop copies", "the answer takes");
    for pair in &args.pods {
        let (held, waits) = pair.split_once('/').unwrap();
        let scheduler =
            scheduler((&config, &reader), args.nodes, held.parse().unwrap(), waits.parse().unwrap());
        let (mut copies, mut answers) = (Vec::new(), Vec::new());
        for _ in 0..args.rounds {
            let began = Instant::now();
            let recount = Recount::of(&scheduler);
            copies.push(began.elapsed());
            let Some(Recount::Events(events)) = recount else { panic!("too many pods: {pair}") };
            let began = Instant::now();
            assert!(answer(events, (&config, &reader)) > 0);
            answers.push(began.elapsed());
        }
        println!("{pair:<24} {} {}", figures(copies), figures(answers));
    }
}
