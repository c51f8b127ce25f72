//! What a question to the API costs that plays pods on everything a replica has seen: how long the loop that binds copies for it, and how long the answer
//! takes outside the loop.
//!
//! It must not judge: machines differ, so the figures are printed.
#![expect(clippy::unwrap_used, reason = "what fails in a bench ends the bench")]

#[path = "../tests/support/fixtures.rs"]
#[allow(dead_code, reason = "the tests use the rest of it")]
mod fixtures;

use std::{
    collections::{BTreeMap, HashMap},
    ops::ControlFlow,
    sync::Arc,
    time::Duration,
};

use berth::{
    cluster::{Reader, report::overview::Recount},
    device::Answer,
    dialect::Dialects,
    scheduling::{
        Claim, Event, PodChange, PodInfo, Scheduler, Stage,
        model::message::Message,
        scheduler::{Pace, Settings},
    },
    simulation::{ClusterChange, ClusterLists, Explain, SimulatedPod, SimulationStage, simulate},
};
use clap::Parser;
use jiff::Timestamp;
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
    #[arg(long, value_delimiter = ',', default_values_t = ["10000/100".to_owned(), "10000/10000".to_owned(), "40000/10000".to_owned()])]
    pods: Vec<String>,
    /// Rounds for each figure.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Passed by cargo; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
}

/// MiB of a card.
const CARD: u64 = 81_920;

fn bound(number: usize, nodes: usize) -> PodInfo {
    let node = format!("node-{:04}", number % nodes);
    let card = format!("GPU-{node}-{}", number / nodes % 8);
    let allocation =
        fixtures::allocation(fixtures::PROFILE, fixtures::share(&card, 1_000, 1), Answer::Succeeded);
    PodInfo {
        holding: Some(fixtures::holding(&node, vec![allocation])),
        stage: Stage::Running,
        ..fixtures::pod(&format!("held/pod-{number}"), Claim::None)
    }
}

/// A pod that fits nowhere; there are four sizes of them.
fn waiting(number: usize) -> PodInfo {
    let ask = fixtures::ask(1, CARD + 1 + (number % 4) as u64, 0);
    fixtures::pod(&format!("waits/pod-{number}"), Claim::Place(Arc::new(ask)))
}

fn scheduler(nodes: usize, held: usize, waits: usize) -> Scheduler {
    let mut scheduler = Scheduler::new(fixtures::settings());
    let infos = (0..nodes).map(|at| fixtures::node(&format!("node-{at:04}"), 8, CARD)).collect();
    let pods: Vec<_> = (0..held).map(|at| bound(at, nodes)).chain((0..waits).map(waiting)).collect();
    for event in fixtures::lists(infos) {
        let event = match event {
            Event::Pod(_) => Event::Pod(PodChange::Listed(Vec::clone(&pods))),
            other => other,
        };
        scheduler.observe(event, Timestamp::UNIX_EPOCH);
    }
    scheduler
}

/// The answer to one question about one pod.
fn answer(events: Vec<Event>, reader: &Reader) -> usize {
    let mut lists = ClusterLists::seen(events).changed(&ClusterChange::default()).unwrap();
    let asked = fixtures::pod("asked/pod", Claim::Place(Arc::new(fixtures::ask(1, 20_000, 10))));
    let positions = HashMap::from([(asked.key.uid.clone(), 0)]);
    lists.pods.push(asked);
    let stage = SimulationStage {
        settings: Settings { pace: Pace::OneByOne, ..fixtures::settings() },
        lists,
        rows: BTreeMap::from([(0, SimulatedPod::new("asked", "pod"))]),
        positions,
        allocated: BTreeMap::new(),
    };
    let told = |message: Message| message.full;
    let mut go_on = || ControlFlow::Continue(());
    let simulation =
        simulate(stage, reader, (Explain::Nothing, &told), Timestamp::UNIX_EPOCH, &mut go_on).unwrap();
    assert_eq!(simulation.pods.len(), 1);
    serde_json::to_vec(&simulation).unwrap().len()
}

fn figures(mut took: Vec<Duration>) -> String {
    took.sort();
    let figure = |at: usize| format!("{:>8.1}", took[at].as_secs_f64() * 1000.0);
    format!("{}{}{}", figure(0), figure(took.len() / 2), figure(took.len() - 1))
}

fn main() {
    let args = Args::parse();
    let reader = Reader::new(Dialects::default(), "berth".to_owned());
    println!("{} nodes; ms: least, median and most of {} rounds", args.nodes, args.rounds);
    println!("{:<24} {:>24} {:>24}", "pods that run/wait", "the loop copies", "the answer takes");
    for pair in &args.pods {
        let (held, waits) = pair.split_once('/').unwrap();
        let scheduler = scheduler(args.nodes, held.parse().unwrap(), waits.parse().unwrap());
        let (mut copies, mut answers) = (Vec::new(), Vec::new());
        for _ in 0..args.rounds {
            let began = Instant::now();
            let recount = Recount::of(&scheduler);
            copies.push(began.elapsed());
            let Some(Recount::Events(events)) = recount else { panic!("too many pods: {pair}") };
            let began = Instant::now();
            assert!(answer(events, &reader) > 0);
            answers.push(began.elapsed());
        }
        println!("{pair:<24} {} {}", figures(copies), figures(answers));
    }
}
