//! What people, other schedulers and machines do meanwhile.

use std::collections::BTreeMap;

use berth::sandbox::agent::{Answer, Behaviour, node::Health};
use k8s_openapi::api::core::v1 as core;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    checker::LOCK,
    dice::Dice,
    plan::Weather,
    record::Pod,
    world::{NODES, REPLICAS, World, node},
};

/// Who does what next.
pub(crate) struct Story {
    dice: Dice,
    pods: u64,
    foreign: u64,
    ages: BTreeMap<&'static str, u64>,
}

impl Story {
    pub(crate) fn new(dice: Dice) -> Self {
        Self { dice, pods: 0, foreign: 0, ages: BTreeMap::new() }
    }

    /// One thing happens; what it is not possible to do is not done.
    pub(crate) async fn go_on(&mut self, world: &mut World) {
        match self.dice.below(100) {
            0..34 => self.create(world).await,
            34..50 => drop(self.delete(world).await),
            50..58 => drop(self.recreate(world).await),
            58..63 => self.cordon(world).await,
            63..67 => self.touch(world).await,
            67..70 => self.swap_node(world).await,
            70..77 => drop(self.foreign_lock(world).await),
            77..80 => self.foreign_pod(world).await,
            80..87 => self.behave(world),
            87..89 => drop(self.sicken(world).await),
            89..91 => {
                world.sandbox.compact();
                world.watch.log().fault("history is compacted");
            }
            91..93 => {
                let at = self.replica();
                world.kill(at).await;
            }
            93 => {
                let at = self.replica();
                world.stop(at).await;
            }
            94..98 => self.weather(world),
            _ => {}
        }
    }

    fn replica(&mut self) -> usize {
        usize::try_from(self.dice.below(REPLICAS as u64)).unwrap()
    }

    fn weather(&mut self, world: &World) {
        let until = world.sandbox.now() + self.dice.millis(25_000);
        let weather = match self.dice.below(6) {
            0 => Weather::Still,
            1 => Weather::Parted(until),
            2 => Weather::Paused(until),
            3 => Weather::Rough(550),
            _ => Weather::Rough(300),
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

    async fn create(&mut self, world: &World) {
        self.pods += 1;
        let name = format!("pod-{}", self.pods);
        self.create_named(world, &name).await;
    }

    async fn create_named(&mut self, world: &World, name: &str) {
        let pod = self.pod(name);
        let made = pods(world).create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await;
        world.watch.say(&format!(
            "a user creates {name}: {:?}",
            made.map(|pod| pod.spec.map(|spec| spec.containers[0].resources.clone()))
        ));
    }

    /// A pod of some request, now and then a wrong one.
    fn pod(&mut self, name: &str) -> Value {
        let hami = self.dice.in_thousand(600);
        let limits = |dice: &mut Dice| {
            let count = if dice.in_thousand(800) { "1" } else { "2" };
            let memory = dice.one_of(&["1100", "3300", "6600", "9900", "12200", "16100"]);
            let cores = dice.one_of(&["0", "20", "50", "100"]);
            if hami {
                json!({"nvidia.com/gpu": count, "nvidia.com/gpumem": memory, "nvidia.com/gpucores": cores})
            } else {
                json!({"volcano.sh/vgpu-number": count, "volcano.sh/vgpu-memory": memory, "volcano.sh/vgpu-cores": cores})
            }
        };
        let container =
            |name: &str, limits: Value| json!({"name": name, "image": "i", "resources": {"limits": limits}});
        let mut containers = vec![container("main", limits(&mut self.dice))];
        let mut spec =
            json!({"schedulerName": "berth", "terminationGracePeriodSeconds": self.dice.one_of(&[1, 5])});
        match self.dice.below(20) {
            0 => {
                containers[0]["resources"]["limits"]
                    [if hami { "nvidia.com/gpumem" } else { "volcano.sh/vgpu-memory" }] = json!("16Gi");
            }
            1 => spec["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
            2 | 3 if hami => containers.push(container("second", limits(&mut self.dice))),
            4 | 5 if hami => spec["initContainers"] = json!([container("first", limits(&mut self.dice))]),
            6 => {
                spec["tolerations"] =
                    json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]);
            }
            _ => {}
        }
        spec["containers"] = json!(containers);
        json!({"metadata": {"name": name}, "spec": spec})
    }

    fn some_pod(&mut self, world: &World, which: impl Fn(&Pod) -> bool) -> Option<String> {
        let pods = world.watch.log().checker.pods().into_iter().filter(|pod| pod.ours && which(pod));
        let names: Vec<String> = pods.map(|pod| pod.name.clone()).collect();
        let at = usize::try_from(self.dice.below(names.len() as u64)).unwrap();
        names.get(at).cloned()
    }

    async fn delete(&mut self, world: &World) -> Option<()> {
        let force = self.dice.in_thousand(300);
        let name = self.some_pod(world, |_| true)?;
        let how = if force { DeleteParams::default().grace_period(0) } else { DeleteParams::default() };
        let gone = pods(world).delete(&name, &how).await.is_ok();
        world.watch.say(&format!("a user deletes {name}: {gone}"));
        Some(())
    }

    async fn recreate(&mut self, world: &World) -> Option<()> {
        let name = self.some_pod(world, |_| true)?;
        drop(pods(world).delete(&name, &DeleteParams::default().grace_period(0)).await);
        self.create_named(world, &name).await;
        Some(())
    }

    async fn cordon(&mut self, world: &World) {
        let name = self.dice.one_of(&NODES);
        let to = self.dice.in_thousand(300);
        patch(world, name, json!({"spec": {"unschedulable": to}})).await;
        world.watch.say(&format!("{name} is cordoned: {to}"));
    }

    /// Something that matters to nobody changes on a node.
    async fn touch(&mut self, world: &World) {
        let name = self.dice.one_of(&NODES);
        patch(world, name, json!({"metadata": {"annotations": {"heartbeat": self.dice.next().to_string()}}}))
            .await;
    }

    /// A machine goes away with its pods, or another comes in its place.
    async fn swap_node(&mut self, world: &World) {
        let name = self.dice.one_of(&NODES);
        if nodes(world).get_opt(name).await.unwrap().is_none() {
            let age = self.ages.entry(name).or_default();
            *age += self.dice.below(2);
            world.fleet.replace(node(name, *age)).await.unwrap();
            world.watch.say(&format!("{name} comes back, age {age}"));
            return;
        }
        nodes(world).delete(name, &DeleteParams::default()).await.unwrap();
        world.watch.say(&format!("{name} leaves"));
        collect_pods(world, name).await;
    }

    /// Another scheduler holds a node's lock for its pod; or gives one back; or its pod dies first.
    async fn foreign_lock(&mut self, world: &World) -> Option<()> {
        let name = self.dice.one_of(&NODES[..3]);
        let node = nodes(world).get_opt(name).await.unwrap()?;
        let now = world.sandbox.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let lock = node.annotations().get(LOCK).cloned();
        if let Some(lock) = lock {
            let holder = lock.rsplit(',').next().unwrap_or_default();
            if lock.contains(",foreign-") || !lock.contains(',') {
                if holder.starts_with("foreign-") && self.dice.in_thousand(500) {
                    drop(pods(world).delete(holder, &DeleteParams::default().grace_period(0)).await);
                } else {
                    set_lock(world, &node, json!(null)).await;
                }
            }
            return Some(());
        }
        self.foreign += 1;
        let value = match self.dice.below(5) {
            0 => now,
            1 => "nobody knows".to_owned(),
            2 => format!("{now},default,never-was"),
            _ => {
                let pod = format!("foreign-{}", self.foreign);
                let object = json!({"metadata": {"name": pod}, "spec": {"schedulerName": "other", "containers": [{"name": "c", "image": "i"}]}});
                drop(
                    pods(world)
                        .create(&PostParams::default(), &serde_json::from_value(object).unwrap())
                        .await,
                );
                format!("{now},default,{pod}")
            }
        };
        world.watch.say(&format!("another scheduler locks {name}: {value}"));
        set_lock(world, &node, json!(value)).await;
        Some(())
    }

    /// Another scheduler places a pod that asks for no card.
    async fn foreign_pod(&mut self, world: &World) {
        self.foreign += 1;
        let name = format!("plain-{}", self.foreign);
        let object = json!({"metadata": {"name": name}, "spec": {"schedulerName": "other", "nodeName": self.dice.one_of(&NODES),
            "containers": [{"name": "c", "image": "i"}]}});
        drop(pods(world).create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await);
    }

    fn behave(&mut self, world: &World) {
        let name = self.dice.one_of(&NODES);
        let answer = match self.dice.below(6) {
            0 => Answer::After(self.dice.millis(4000)),
            1 => Answer::FailingEvery(3),
            2 => Answer::Never,
            _ => Answer::Promptly,
        };
        let runs_for = self.dice.in_thousand(400).then(|| self.dice.millis(60_000));
        world.watch.say(&format!("the agent of {name}: {answer:?}, pods run for {runs_for:?}"));
        world.fleet.behave(name, Behaviour { answer, runs_for }).unwrap();
    }

    async fn sicken(&mut self, world: &World) -> Option<()> {
        let name = self.dice.one_of(&NODES);
        nodes(world).get_opt(name).await.unwrap()?;
        let age = self.ages.get(name).copied().unwrap_or_default();
        let health = if self.dice.in_thousand(300) { Health::Unhealthy } else { Health::Healthy };
        let card = format!("GPU-{name}-{age}-{}", self.dice.below(2));
        world.watch.say(&format!("{card} is {health:?}"));
        world.fleet.set_health(name, &card, health).await.unwrap();
        Some(())
    }

    /// Everyone behaves, every node is back, and nothing goes wrong any more.
    pub(crate) async fn calm(&mut self, world: &World) {
        world.watch.log().weather = [Weather::Still; REPLICAS];
        for name in NODES {
            world.fleet.behave(name, Behaviour::default()).unwrap();
            if nodes(world).get_opt(name).await.unwrap().is_none() {
                world
                    .fleet
                    .replace(node(name, self.ages.get(name).copied().unwrap_or_default()))
                    .await
                    .unwrap();
            }
        }
        world.watch.say("all is calm");
    }
}

fn pods(world: &World) -> Api<core::Pod> {
    Api::default_namespaced(world.client.clone())
}

fn nodes(world: &World) -> Api<core::Node> {
    Api::all(world.client.clone())
}

async fn patch(world: &World, node: &str, patch: Value) {
    drop(nodes(world).patch(node, &PatchParams::default(), &Patch::Merge(patch)).await);
}

async fn set_lock(world: &World, node: &core::Node, value: Value) {
    let version = node.resource_version().unwrap();
    let metadata = json!({"resourceVersion": version, "annotations": {LOCK: value}});
    patch(world, &node.name_any(), json!({"metadata": metadata})).await;
}

/// Kubernetes removes the pods of a node that is gone.
async fn collect_pods(world: &World, node: &str) {
    let there: Vec<_> = world.watch.log().checker.pods().into_iter().filter(|pod| pod.node == node).collect();
    for pod in there {
        drop(pods(world).delete(&pod.name, &DeleteParams::default().grace_period(0)).await);
    }
}
