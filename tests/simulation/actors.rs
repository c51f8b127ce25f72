//! People, other schedulers and machines, who do meanwhile what the story says.

#[path = "actors/api.rs"]
mod api;
#[path = "actors/claims.rs"]
mod claims;
#[path = "actors/groups.rs"]
mod groups;
#[path = "actors/limits.rs"]
mod limits;
#[path = "actors/machines.rs"]
mod machines;
#[path = "actors/others.rs"]
mod others;
#[path = "actors/strikes.rs"]
mod strikes;
#[path = "actors/users.rs"]
mod users;

use std::collections::BTreeMap;

use berth_sandbox::{agent::Behaviour, storage::PROVISIONER};
use jiff::Timestamp;
use k8s_openapi::api::{scheduling::v1::PriorityClass, storage::v1::StorageClass};
use kube::{Api, api::PostParams};
use serde_json::json;

use crate::{
    device_claims::{Kind, Pool, Template},
    dice::Dice,
    plan::Weather,
    pod,
    story::{Act, Sky, Story},
    world::{REPLICAS, World, node},
};
use api::{nodes, patch};
use groups::Teams;
pub(crate) use groups::{COMES_BACK, OF_GROUPS};
use limits::{allow, lend};
pub(crate) use strikes::{deselect, dry_run, leave};

/// The class of all claims.
const CLASS: &str = "made";

/// Everyone but Berth.
pub(crate) struct Actors {
    story: &'static Story,
    dice: Dice,
    pods: u64,
    foreign: u64,
    /// Since when the pod of another scheduler is there.
    rival: Option<Timestamp>,
    ages: BTreeMap<&'static str, u64>,
    /// What is published of each node.
    pools: BTreeMap<(&'static str, Kind), Pool>,
    teams: Teams,
}

impl Actors {
    pub(crate) fn new(story: &'static Story, dice: Dice) -> Self {
        Self {
            story,
            dice,
            pods: 0,
            foreign: 0,
            rival: None,
            ages: BTreeMap::new(),
            pools: BTreeMap::new(),
            teams: Teams::default(),
        }
    }

    /// Before anything else, the namespace may be given a quota.
    pub(crate) async fn begin(&mut self, world: &World) {
        if self.dice.in_thousand(self.story.crowd.quota) {
            self.set_quota(world).await;
        }
        for name in self.nodes() {
            world.fleet.behave(name, Behaviour { ending: self.ending(), ..Behaviour::default() }).unwrap();
        }
        if self.story.crowd.spread > 0 {
            for (name, zone) in self.nodes().zip(["a", "b", "a", "b", "a"]) {
                patch(world, name, json!({"metadata": {"labels": {"zone": zone}}})).await;
            }
        }
        if self.story.crowd.preemptable > 0 {
            lend(world).await;
        }
        if self.story.crowd.urgent > 0 {
            let classes: Api<PriorityClass> = Api::all(world.client.clone());
            let class = json!({"metadata": {"name": pod::URGENT}, "value": 1000});
            classes.create(&PostParams::default(), &serde_json::from_value(class).unwrap()).await.unwrap();
        }
        if self.story.crowd.trees > 0 {
            self.begin_groups(world).await;
        }
        if self.story.crowd.device_claims > 0 {
            self.begin_device_claims(world).await;
        }
        if let Some(attack) = self.story.attack {
            self.begin_attack(world, attack).await;
        }
        if self.story.crowd.claims > 0 {
            let classes: Api<StorageClass> = Api::all(world.client.clone());
            let class = json!({"metadata": {"name": CLASS}, "provisioner": PROVISIONER,
                "volumeBindingMode": "WaitForFirstConsumer"});
            classes.create(&PostParams::default(), &serde_json::from_value(class).unwrap()).await.unwrap();
        }
    }

    /// While all is calm, a pod comes or goes.
    pub(crate) async fn probe(&mut self, world: &World) {
        let goes = self.dice.in_thousand(500);
        if !goes || self.delete(world).await.is_none() {
            self.create(world).await;
        }
    }

    /// One thing happens; what it is not possible to do is not done.
    pub(crate) async fn go_on(&mut self, world: &mut World) {
        let act = self.dice.pick(self.story.acts);
        if self.act(act, world).await.is_some() {
            world.watch.log().count(&format!("{act:?}"));
        }
    }

    /// `None`: it was not possible.
    async fn act(&mut self, act: Act, world: &mut World) -> Option<()> {
        match act {
            Act::Create => self.create(world).await,
            Act::Delete => return self.delete(world).await,
            Act::Recreate => return self.recreate(world).await,
            Act::Gate => self.gate(world).await,
            Act::Quota => self.quota(world).await,
            Act::Budget => self.budget(world).await,
            Act::Cordon => self.cordon(world).await,
            Act::Zone => self.zone(world).await,
            Act::TakeBack => return self.take_back(world).await,
            Act::Touch => self.touch(world).await,
            Act::SwapNode => self.swap_node(world).await,
            Act::ForeignLock => return self.foreign_lock(world).await,
            Act::Rival => return self.rival(world).await,
            Act::ForeignPod => self.foreign_pod(world).await,
            Act::Behave => self.behave(world),
            Act::Sicken => return self.sicken(world).await,
            Act::Device => return self.device(world).await,
            Act::Claim => self.claim(world).await,
            Act::Publish => return self.publish(world).await,
            Act::Regroup => return self.regroup(world).await,
            Act::Reserve => return self.reserve(world).await,
            Act::Allocate => return self.allocate(world, &[Template::Whole]).await,
            Act::AllocateShare => return self.allocate(world, &Template::PARTIAL).await,
            Act::Provision => return self.provision(world),
            Act::Compact => {
                world.sandbox.compact();
                world.watch.log().fault("history is compacted");
            }
            Act::RestartServer => self.restart_server(world),
            Act::Kill => return world.kill(self.replica()).await,
            Act::Stop => return world.stop(self.replica()).await,
            Act::Weather => self.weather(world),
        }
        Some(())
    }

    fn nodes(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.story.nodes().iter().copied()
    }

    /// One of the nodes.
    fn node(&mut self) -> &'static str {
        self.dice.one_of(self.story.nodes())
    }

    fn replica(&mut self) -> usize {
        usize::try_from(self.dice.below(REPLICAS as u64)).unwrap()
    }

    fn weather(&mut self, world: &World) {
        let until = world.sandbox.now() + self.dice.millis(25_000);
        let weather = match self.dice.pick(self.story.skies) {
            Sky::Still => Weather::Still,
            Sky::Parted => Weather::Parted(until),
            Sky::Paused => Weather::Paused(until),
            Sky::Rough(rate) => Weather::Rough(rate),
        };
        let alone = self.dice.in_thousand(600).then(|| self.replica());
        let mut log = world.watch.log();
        for (at, of) in log.weather.iter_mut().enumerate() {
            if alone.is_none_or(|alone| alone == at) {
                *of = weather;
            }
        }
        log.say(&format!("weather for {alone:?}: {weather:?}"));
    }

    /// All its connections break, for a moment it takes none, and it may come back without a history.
    fn restart_server(&mut self, world: &World) {
        let until = world.sandbox.now() + self.dice.millis(5000);
        if self.dice.in_thousand(500) {
            world.sandbox.compact();
        }
        {
            let mut log = world.watch.log();
            log.down = until;
            log.fault(&format!("the API server ends, and is back at {until}"));
        }
        world.break_watches();
    }

    /// Everyone behaves, every node is back, and nothing goes wrong any more.
    pub(crate) async fn calm(&mut self, world: &World) {
        {
            let mut log = world.watch.log();
            log.weather = [Weather::Still; REPLICAS];
            log.down = Timestamp::MIN;
        }
        for name in self.nodes() {
            world.fleet.behave(name, Behaviour::default()).unwrap();
            if nodes(world).get_opt(name).await.unwrap().is_none() {
                world
                    .fleet
                    .replace(node(name, self.ages.get(name).copied().unwrap_or_default()))
                    .await
                    .unwrap();
                if self.story.crowd.device_claims > 0 {
                    self.install_drivers(world, name).await;
                }
            }
        }
        if self.story.crowd.preemptable > 0 {
            allow(world, 1000).await;
        }
        world.watch.say("all is calm");
    }
}
