//! One cluster in memory: nodes, agents, and two Berths that die, are stopped and come back.

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use berth::{
    cluster::{
        self, Binder, BinderView, Clock, ClusterError, Handoff, Leadership, Metrics, UsageSettings,
        election::candidate,
    },
    config::Config,
    object::Pod,
};
use berth_sandbox::{
    Options, Sandbox,
    agent::{Fleet, card::Card, node::Node, wire::Release},
    claims::DeviceClaims,
    fault::FaultyApi,
    storage::{Conduct, Storage},
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
    time::Instant,
};

use crate::{
    attack::Attack,
    bug::Bug,
    device_claims, devices,
    dice::Dice,
    kept_room,
    lie::Lie,
    plan::{Honest, Rough, Watch, Weather},
    probe, rival,
    story::Story,
    time_division::Windows,
};

/// The nodes, each with the family of its cards.
pub(crate) const NODES: [&str; 5] = ["hami-0", "hami-1", "hami-2", "volcano-0", "volcano-1"];

/// How often users look whether a pod is bound.
const LOOK: Duration = Duration::from_millis(10);

/// How many Berths there are.
pub(crate) const REPLICAS: usize = 2;

pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) watch: Watch,
    pub(crate) fleet: Fleet,
    /// Volume controller and provisioner, where pods have claims.
    pub(crate) storage: Option<Storage>,
    /// The controller of claims of devices, where pods have these.
    pub(crate) device_claims: Option<DeviceClaims>,
    /// For users and foreign schedulers.
    pub(crate) client: kube::Client,
    replicas: [Replica; REPLICAS],
    dice: Dice,
    clock: Clock,
    /// What Berth counts, over all its lives.
    pub(crate) metrics: Metrics,
    config: Config,
    story: &'static Story,
    bug: Option<Bug>,
}

/// One Berth, life after life.
struct Replica {
    lives: u32,
    /// Its way to the API server, in this life.
    api: Option<FaultyApi>,
    berth: JoinSet<Result<(), ClusterError>>,
    /// Tells it to end; `None`: it has been told.
    stop: Option<oneshot::Sender<()>>,
    /// When it is started again.
    starts: Option<Instant>,
    /// What the webhook of the same process asks and tells it.
    handoff: Handoff,
    views: Option<watch::Receiver<Option<BinderView>>>,
}

/// What came of a dry run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum DryRun {
    /// It was given up before the first node was judged.
    GivenUp,
    /// Nodes were judged.
    Judged,
}

/// What happens to a replica by itself.
enum Turn {
    /// It is struck by a fault in the middle of a call.
    Struck(usize),
    /// It has ended.
    Ended(usize, String),
    /// It is time to start it again.
    Due(usize),
}

/// A node of two cards; `age` tells its machines apart: an odd one has less on its cards, and others of them.
pub(crate) fn node(name: &str, age: u64) -> Node {
    if name.starts_with("dra") {
        return device_claims::machine(name);
    }
    if name.starts_with("koord") {
        return devices::machine(name, age);
    }
    let memory = if age.is_multiple_of(2) { 16_384 } else { 12_288 };
    let node = (0..2).fold(Node::new(name), |node, index| {
        let uuid = format!("GPU-{name}-{age}-{index}");
        node.card(Card::new(&uuid, index, memory).slots(4).product("NVIDIA A100-SXM4"))
    });
    if name.starts_with("hami") { node.hami(Release::V2_10) } else { node.volcano() }
}

impl World {
    pub(crate) async fn new(dice: &mut Dice, story: &'static Story, bug: Option<Bug>) -> Self {
        let sandbox = Sandbox::new(Options { seed: dice.next(), history: 512, ..Options::default() });
        let windows = (story.crowd.preemptable > 0).then(|| Windows::new(dice));
        let metrics = Metrics::default();
        let watch = Watch::new(sandbox.clone(), metrics.clone(), windows.as_ref());
        watch.log().checker.telling(story);
        let honest = || FaultyApi::new(sandbox.service(), Box::new(Honest(watch.clone()))).client();
        let nodes = story.nodes().iter().map(|name| node(name, 0)).collect();
        let fleet = Fleet::start(honest(), nodes).await.unwrap();
        let replica = || Replica {
            lives: 0,
            api: None,
            berth: JoinSet::new(),
            stop: None,
            starts: None,
            handoff: Handoff::default(),
            views: None,
        };
        let mut config = windows.as_ref().map(Windows::config).unwrap_or_default();
        config.messages.details = story.details;
        kept_room::set(&mut config, story.rooms);
        rival::set(&mut config, story);
        if bug == Some(Bug::PlacesHeldWithoutBound) {
            config.scheduling.volumes.held_percent = 100;
        }
        let mut world = Self {
            storage: (story.crowd.claims > 0).then(|| Storage::start(honest())),
            device_claims: (story.crowd.device_claims > 0).then(|| DeviceClaims::start(honest())),
            client: honest(),
            clock: Clock::starting_at(sandbox.now()),
            sandbox,
            watch,
            fleet,
            replicas: [replica(), replica()],
            dice: Dice::new(dice.next()),
            metrics,
            config,
            story,
            bug,
        };
        for at in 0..REPLICAS {
            world.start(at);
        }
        world
    }

    fn start(&mut self, at: usize) {
        let replica = &mut self.replicas[at];
        replica.lives += 1;
        let who = format!("berth-{at}.{}", replica.lives);
        self.watch.say(&format!("{who} starts"));
        let plan = Rough::new(
            at,
            &who,
            self.watch.clone(),
            Dice::new(self.dice.next()),
            self.story,
            self.bug.map(|bug| Lie::of(bug, self.sandbox.clone())),
        );
        let api = FaultyApi::new(self.sandbox.service(), Box::new(plan));
        let handoff = Handoff::default();
        let binder = Binder {
            client: api.client(),
            settings: self.config.scheduler_settings(),
            details: self.config.messages.details,
            reader: Arc::new(self.config.reader()),
            clock: self.clock,
            metrics: self.metrics.clone(),
            writes_at_once: 8,
            leadership: Leadership::Elected(candidate::ElectionSettings::new("default", "berth", &who)),
            usage: Some(UsageSettings {
                namespace: "default".to_owned(),
                name: "berth-usage".to_owned(),
                labels: vec!["app".into()],
            }),
            handoff: handoff.clone(),
        };
        if self.story.attack == Some(Attack::DryRuns) {
            replica.views = Some(handoff.views());
        }
        replica.handoff = handoff;
        let (stop, stopped) = oneshot::channel::<()>();
        replica.berth.spawn(cluster::run(binder, async {
            if stopped.await.is_err() {
                std::future::pending::<()>().await;
            }
        }));
        (replica.api, replica.stop, replica.starts) = (Some(api), Some(stop), None);
    }

    /// For so long no process goes on; what happens meanwhile, all of them read together.
    pub(crate) fn stand_still(&self, time: Duration) {
        let until = self.sandbox.now() + time;
        self.watch.log().weather = [Weather::Paused(until); REPLICAS];
    }

    /// How many steps of work were done before the Binding of this pod, if it is bound within this time.
    pub(crate) async fn bound_within(&mut self, name: &str, time: Duration) -> Option<u64> {
        let end = Instant::now() + time;
        loop {
            let steps = self.watch.log().bound_after.get(name).copied();
            if steps.is_some() || Instant::now() >= end {
                return steps;
            }
            self.wait(LOOK).await;
        }
    }

    /// What comes of a dry run in each process that has a view of the cluster.
    pub(crate) fn dry_run(&self, pod: &Pod) -> Vec<DryRun> {
        let views = self.replicas.iter().filter_map(|replica| replica.views.as_ref()?.borrow().clone());
        let judged = |view: BinderView| {
            let demand = view.reader.pod(pod).0.demand().unwrap();
            view.outlook.place(&demand, || ControlFlow::Continue(()))
        };
        views.map(|view| judged(view).map_or(DryRun::GivenUp, |_| DryRun::Judged)).collect()
    }

    /// Every process is told that this pod may come.
    pub(crate) fn hint(&self, pod: &Pod) {
        for replica in &self.replicas {
            replica.handoff.hint(Box::new(pod.clone()));
        }
    }

    /// The namespace of the second user, as Berth takes it.
    pub(crate) fn other_namespace(&self) -> &'static str {
        if self.bug == Some(Bug::NamespacesNotToldApart) { "default" } else { probe::NAMESPACE }
    }

    /// From now on volumes are made at once.
    pub(crate) fn provide(&self) {
        if let Some(storage) = &self.storage {
            storage.behave(Conduct::Provide);
        }
    }

    /// Breaks every watch of every replica.
    pub(crate) fn break_watches(&self) {
        for api in self.replicas.iter().filter_map(|replica| replica.api.as_ref()) {
            api.break_watches();
        }
    }

    /// Ends a replica as `kill -9` does, if it runs. Its last words may still arrive.
    pub(crate) async fn kill(&mut self, at: usize) -> Option<()> {
        let replica = &mut self.replicas[at];
        if replica.berth.is_empty() {
            return None;
        }
        self.watch.log().fault(&format!("berth-{at} dies"));
        replica.berth.abort_all();
        while let Some(ended) = replica.berth.join_next().await {
            if let Err(error) = ended
                && error.is_panic()
            {
                self.watch.log().checker.violations.push(format!("berth panicked: {error}"));
            }
        }
        self.rest(at);
        Some(())
    }

    /// Tells a replica to end in order, if it runs and has not been told.
    pub(crate) async fn stop(&mut self, at: usize) -> Option<()> {
        let stop = self.replicas[at].stop.take()?;
        if self.replicas[at].berth.is_empty() {
            return None;
        }
        self.watch.log().fault(&format!("berth-{at} is told to end"));
        let _ = stop.send(());
        if self.bug == Some(Bug::LeaseGivenBackEarly) {
            let leases: kube::Api<Lease> = kube::Api::default_namespaced(self.client.clone());
            let free = Patch::Merge(json!({"spec": {"holderIdentity": ""}}));
            drop(leases.patch("berth", &PatchParams::default(), &free).await);
        }
        Some(())
    }

    /// It is started again before or after the other has noticed.
    fn rest(&mut self, at: usize) {
        let long = self.dice.in_thousand(400);
        let rest = self.dice.millis(if long { 30_000 } else { 3000 });
        self.replicas[at].starts = Some(Instant::now() + rest);
    }

    /// Lets time run; a replica that is struck meanwhile dies and comes back, one that was told to end comes back.
    pub(crate) async fn wait(&mut self, time: Duration) {
        let end = Instant::now() + time;
        loop {
            let turn = tokio::select! {
                biased;
                turn = self.turn() => turn,
                () = tokio::time::sleep_until(end) => return,
            };
            match turn {
                Turn::Struck(at) => drop(self.kill(at).await),
                Turn::Due(at) => self.start(at),
                Turn::Ended(at, how) if self.replicas[at].stop.is_none() && how == "Ok(Ok(()))" => {
                    self.watch.say(&format!("berth-{at} has ended"));
                    self.rest(at);
                }
                Turn::Ended(at, how) => {
                    let text = format!("berth-{at} ended: {how}");
                    self.watch.log().checker.violations.push(text);
                    return;
                }
            }
        }
    }

    async fn turn(&mut self) -> Turn {
        let [first, second] = &mut self.replicas;
        tokio::select! {
            biased;
            turn = first.turn(0) => turn,
            turn = second.turn(1) => turn,
        }
    }
}

impl Replica {
    async fn turn(&mut self, at: usize) -> Turn {
        let (api, starts) = (self.api.clone(), self.starts);
        let struck = async {
            match api {
                Some(api) if starts.is_none() => api.caller_dies().await,
                _ => std::future::pending().await,
            }
        };
        let due = async {
            match starts {
                Some(starts) => tokio::time::sleep_until(starts).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = struck => Turn::Struck(at),
            Some(ended) = self.berth.join_next() => Turn::Ended(at, format!("{ended:?}")),
            () = due => Turn::Due(at),
        }
    }
}
