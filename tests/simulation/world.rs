//! One cluster in memory: nodes, agents, and a Berth that dies and comes back.

use std::sync::Arc;

use berth::{
    cluster::{self, Clock, Metrics, event_loop::Binder},
    config::Config,
    sandbox::{
        Options, Sandbox,
        agent::{
            Fleet,
            hami::Release,
            node::{Card, Node},
        },
        fault::FaultyApi,
    },
};
use tokio::task::JoinSet;

use crate::{
    dice::Dice,
    lie::{Bug, Lie},
    plan::{Honest, Rough, Watch},
};

/// The nodes, each with the family of its cards.
pub(crate) const NODES: [&str; 5] = ["hami-0", "hami-1", "hami-2", "volcano-0", "volcano-1"];

pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) watch: Watch,
    pub(crate) fleet: Fleet,
    /// For users and foreign schedulers.
    pub(crate) client: kube::Client,
    /// For Berth.
    pub(crate) api: FaultyApi,
    berth: JoinSet<()>,
    clock: Clock,
    /// What Berth counts, over all its lives.
    pub(crate) metrics: Metrics,
}

/// A node of two cards; `age` tells its machines apart: an odd one has less on its cards, and others of them.
pub(crate) fn node(name: &str, age: u64) -> Node {
    let memory = if age.is_multiple_of(2) { 16_384 } else { 12_288 };
    let node = (0..2).fold(Node::new(name), |node, index| {
        let uuid = format!("GPU-{name}-{age}-{index}");
        node.card(Card::new(&uuid, index, memory).slots(4).product("NVIDIA A100-SXM4"))
    });
    if name.starts_with("hami") { node.hami(Release::V2_10) } else { node.volcano() }
}

impl World {
    pub(crate) async fn new(dice: &mut Dice, bug: Option<Bug>) -> Self {
        let sandbox = Sandbox::new(Options { seed: dice.next(), history: 512, ..Options::default() });
        let watch = Watch::new(sandbox.clone());
        let honest = || FaultyApi::new(sandbox.service(), Box::new(Honest(watch.clone()))).client();
        let nodes = NODES.iter().map(|name| node(name, 0)).collect();
        let fleet = Fleet::start(honest(), nodes).await.unwrap();
        let plan = Rough { watch: watch.clone(), dice: Dice::new(dice.next()), lie: bug.map(Lie::of) };
        let mut world = Self {
            client: honest(),
            api: FaultyApi::new(sandbox.service(), Box::new(plan)),
            clock: Clock::starting_at(sandbox.now()),
            sandbox,
            watch,
            fleet,
            berth: JoinSet::new(),
            metrics: Metrics::default(),
        };
        world.start_berth();
        world
    }

    pub(crate) fn start_berth(&mut self) {
        let config = Config::default();
        let binder = Binder {
            client: self.api.client(),
            settings: config.scheduler_settings(),
            reader: Arc::new(config.reader()),
            clock: self.clock,
            metrics: self.metrics.clone(),
            writes_at_once: 8,
            leadership: cluster::Leadership::Alone,
            handoff: cluster::Handoff::default(),
        };
        self.watch.say("berth starts");
        self.berth.spawn(async move { cluster::run(binder, std::future::pending()).await.unwrap() });
    }

    /// Ends Berth as `kill -9` does. Its last words may still arrive; who comes after waits for that, as a Lease makes it.
    pub(crate) async fn kill_berth(&mut self) {
        self.watch.log().fault("berth dies");
        self.berth.abort_all();
        while let Some(ended) = self.berth.join_next().await {
            if let Err(error) = ended
                && error.is_panic()
            {
                self.watch.log().checker.violations.push(format!("berth panicked: {error}"));
            }
        }
        self.api.late_calls().await;
    }

    /// Returns when Berth has ended by itself, which is a defect.
    pub(crate) async fn berth_ends(&mut self) {
        let ended = self.berth.join_next().await;
        self.watch.log().checker.violations.push(format!("berth ended: {ended:?}"));
    }
}
