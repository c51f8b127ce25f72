//! People, other schedulers and machines, who do meanwhile what the story says.

use std::collections::BTreeMap;

use berth::sandbox::{
    agent::{Answer, Behaviour, Ending, node::Health},
    storage::{Conduct, PROVISIONER},
};
use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1 as core, policy::v1::PodDisruptionBudget, scheduling::v1::PriorityClass,
    storage::v1::StorageClass,
};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    checker::LOCK,
    devices,
    dice::Dice,
    gang,
    plan::Weather,
    pod,
    record::Pod,
    reservation,
    story::{Act, Sky, Story},
    time_division::{JOBS, Stated, zone_of},
    world::{NODES, REPLICAS, World, node},
};

/// The name of the namespace's quota.
const QUOTA: &str = "shares";
/// The class of all claims.
const CLASS: &str = "made";

/// Everyone but Berth.
pub(crate) struct Actors {
    story: &'static Story,
    dice: Dice,
    pods: u64,
    foreign: u64,
    ages: BTreeMap<&'static str, u64>,
}

impl Actors {
    pub(crate) fn new(story: &'static Story, dice: Dice) -> Self {
        Self { story, dice, pods: 0, foreign: 0, ages: BTreeMap::new() }
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
            Act::Touch => self.touch(world).await,
            Act::SwapNode => self.swap_node(world).await,
            Act::ForeignLock => return self.foreign_lock(world).await,
            Act::ForeignPod => self.foreign_pod(world).await,
            Act::Behave => self.behave(world),
            Act::Sicken => return self.sicken(world).await,
            Act::Device => return self.device(world).await,
            Act::Reserve => return self.reserve(world).await,
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

    async fn create(&mut self, world: &World) {
        if self.story.crowd.gangs > 0 && self.dice.in_thousand(self.story.crowd.gangs) {
            return self.create_gang(world).await;
        }
        self.pods += 1;
        let name = format!("pod-{}", self.pods);
        self.create_named(world, &name, &[]).await;
    }

    /// A group and its pods: as many as it needs at least, one more, or one too few.
    async fn create_gang(&mut self, world: &World) {
        let least = 2 + self.dice.below(3);
        self.pods += 1;
        let group = format!("gang-{}", self.pods);
        let kind = GroupVersionKind::gvk("scheduling.volcano.sh", "v1beta1", "PodGroup");
        let kind = ApiResource::from_gvk(&kind);
        let groups: Api<DynamicObject> = Api::default_namespaced_with(world.client.clone(), &kind);
        let object = json!({"metadata": {"name": group}, "spec": {"minMember": least}});
        let object = serde_json::from_value(object).unwrap();
        groups.create(&PostParams::default(), &object).await.unwrap();
        world.watch.say(&format!("a user creates {group} of at least {least}"));
        let mut pod = pod::of(&mut self.dice, &self.story.crowd, "member");
        pod["metadata"]["annotations"] = json!({gang::GROUP: group});
        for _ in 0..least - 1 + self.dice.below(3) {
            self.pods += 1;
            pod["metadata"]["name"] = json!(format!("pod-{}", self.pods));
            let member = serde_json::from_value(pod.clone()).unwrap();
            drop(pods(world).create(&PostParams::default(), &member).await);
        }
    }

    async fn create_named(&mut self, world: &World, name: &str, gates: &[&str]) {
        let mut pod = pod::of(&mut self.dice, &self.story.crowd, name);
        if !gates.is_empty() {
            pod["spec"]["schedulingGates"] = gates.iter().map(|gate| json!({"name": gate})).collect();
        }
        self.create_claim(world, &pod).await;
        let made = pods(world).create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await;
        world.watch.say(&format!(
            "a user creates {name}: {:?}",
            made.map(|pod| pod.spec.map(|spec| spec.containers[0].resources.clone()))
        ));
    }

    /// The claim that the pod uses, where a story has claims.
    async fn create_claim(&mut self, world: &World, pod: &Value) {
        let used = &pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"];
        if used.is_null() || self.story.crowd.claims == 0 {
            return;
        }
        let spec = json!({"storageClassName": CLASS, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}});
        let claim = serde_json::from_value(json!({"metadata": {"name": used}, "spec": spec})).unwrap();
        let claims: Api<core::PersistentVolumeClaim> = Api::default_namespaced(world.client.clone());
        let made = claims.create(&PostParams::default(), &claim).await.is_ok();
        world.watch.say(&format!("a user creates claim {used}: {made}"));
    }

    fn provision(&mut self, world: &World) -> Option<()> {
        let conduct = if self.dice.in_thousand(700) { Conduct::Hold } else { Conduct::Provide };
        world.watch.say(&format!("the provisioner: {conduct:?}"));
        world.storage.as_ref()?.behave(conduct);
        Some(())
    }

    fn some_pod(&mut self, world: &World, which: impl Fn(&Pod) -> bool) -> Option<String> {
        let pods = world.watch.log().checker.pods().into_iter().filter(|pod| pod.ours && which(pod));
        let names: Vec<String> = pods.map(|pod| pod.name.clone()).collect();
        let at = usize::try_from(self.dice.below(names.len() as u64)).unwrap();
        names.get(at).cloned()
    }

    async fn delete(&mut self, world: &World) -> Option<()> {
        let force = self.dice.in_thousand(300);
        // That users take pods of jobs away is not known at once, so that it could not be told whose fault a budget is.
        let name = self.some_pod(world, |pod| pod.member.job.is_none())?;
        let how = if force { DeleteParams::default().grace_period(0) } else { DeleteParams::default() };
        let gone = pods(world).delete(&name, &how).await.is_ok();
        world.watch.say(&format!("a user deletes {name}: {gone}"));
        Some(())
    }

    async fn recreate(&mut self, world: &World) -> Option<()> {
        let name = self.some_pod(world, |_| true)?;
        drop(pods(world).delete(&name, &DeleteParams::default().grace_period(0)).await);
        self.create_named(world, &name, &[]).await;
        Some(())
    }

    /// A pod is created that may not be placed yet, or the gate of one is opened.
    async fn gate(&mut self, world: &World) {
        let gated = self.some_pod(world, |pod| pod.gated);
        if let Some(name) = gated.filter(|_| self.dice.in_thousand(600)) {
            world.watch.say(&format!("the gate of {name} is opened"));
            let open = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
            drop(pods(world).patch(&name, &PatchParams::default(), &open).await);
        } else {
            self.pods += 1;
            let name = format!("pod-{}", self.pods);
            self.create_named(world, &name, &["example.com/not-yet"]).await;
        }
    }

    async fn quota(&mut self, world: &World) {
        if self.dice.in_thousand(250) {
            world.watch.say("the quota is taken away");
            drop(quotas(world).delete(QUOTA, &DeleteParams::default()).await);
        } else {
            self.set_quota(world).await;
        }
    }

    /// From barely anything to nearly everything that there is.
    async fn set_quota(&mut self, world: &World) {
        let hard = json!({
            "limits.nvidia.com/gpu": self.dice.one_of(&["3", "8", "100"]),
            "limits.nvidia.com/gpumem": self.dice.one_of(&["13000", "40000", "80000", "1000000"]),
            "limits.volcano.sh/vgpu-memory": self.dice.one_of(&["13000", "40000", "60000"]),
            "limits.volcano.sh/vgpu-cores": self.dice.one_of(&["120", "400"]),
        });
        world.watch.say(&format!("the quota is {hard}"));
        let quota = json!({"metadata": {"name": QUOTA}, "spec": {"hard": hard}});
        let quota: core::ResourceQuota = serde_json::from_value(quota).unwrap();
        if quotas(world).create(&PostParams::default(), &quota).await.is_err() {
            let hard = Patch::Merge(json!({"spec": quota.spec}));
            quotas(world).patch(QUOTA, &PatchParams::default(), &hard).await.unwrap();
        }
    }

    async fn budget(&mut self, world: &World) {
        let allowed = self.dice.below(3);
        world.watch.say(&format!("the PodDisruptionBudget allows {allowed}"));
        allow(world, allowed).await;
    }

    async fn cordon(&mut self, world: &World) {
        let name = self.node();
        let to = self.dice.in_thousand(300);
        patch(world, name, json!({"spec": {"unschedulable": to}})).await;
        world.watch.say(&format!("{name} is cordoned: {to}"));
    }

    /// A node moves to another zone, or now and then has none any more.
    async fn zone(&mut self, world: &World) {
        let name = self.node();
        let zone = self.dice.one_of(&["a", "b", "c", "a", "b", ""]);
        let label = if zone.is_empty() { Value::Null } else { json!(zone) };
        patch(world, name, json!({"metadata": {"labels": {"zone": label}}})).await;
        world.watch.say(&format!("{name} is in zone {zone:?}"));
    }

    /// Something that matters to nobody changes on a node.
    async fn touch(&mut self, world: &World) {
        let name = self.node();
        patch(world, name, json!({"metadata": {"annotations": {"heartbeat": self.dice.next().to_string()}}}))
            .await;
    }

    /// A machine goes away with its pods, or another comes in its place.
    async fn swap_node(&mut self, world: &World) {
        let name = self.node();
        if nodes(world).get_opt(name).await.unwrap().is_none() {
            let age = self.ages.entry(name).or_default();
            *age += self.dice.below(2);
            world.fleet.replace(node(name, *age)).await.unwrap();
            world.watch.say(&format!("{name} comes back, age {age}"));
            return;
        }
        nodes(world).delete(name, &DeleteParams::default()).await.unwrap();
        world.watch.say(&format!("{name} leaves"));
        // The Device of a node is owned by it.
        if self.story.crowd.devices > 0 {
            drop(devices(world).delete(name, &DeleteParams::default()).await);
        }
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
        let mut object = json!({"metadata": {"name": name}, "spec": {"schedulerName": "other", "nodeName": self.node(),
            "containers": [{"name": "c", "image": "i"}]}});
        if self.story.crowd.spread > 0 {
            object["metadata"]["labels"] = json!({"app": "spread"});
            // As many go as come.
            let gone = format!("plain-{}", 1 + self.dice.below(self.foreign));
            drop(pods(world).delete(&gone, &DeleteParams::default().grace_period(0)).await);
            world.watch.say(&format!("{name} comes, {gone} goes"));
        }
        drop(pods(world).create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await);
    }

    /// Where pods may take long to end, they do.
    fn ending(&self) -> Ending {
        let long = self.story.crowd.grace.iter().any(|seconds| *seconds > 5);
        if long { Ending::AfterGrace } else { Ending::AtOnce }
    }

    fn behave(&mut self, world: &World) {
        let name = self.node();
        let answer = match self.dice.below(6) {
            0 => Answer::After(self.dice.millis(4000)),
            1 => Answer::FailingEvery(3),
            2 => Answer::Never,
            _ => Answer::Promptly,
        };
        let runs_for = self.dice.in_thousand(400).then(|| self.dice.millis(60_000));
        world.watch.say(&format!("the agent of {name}: {answer:?}, pods run for {runs_for:?}"));
        world.fleet.behave(name, Behaviour { answer, runs_for, ending: self.ending() }).unwrap();
    }

    async fn sicken(&mut self, world: &World) -> Option<()> {
        let name = self.node();
        nodes(world).get_opt(name).await.unwrap()?;
        let age = self.ages.get(name).copied().unwrap_or_default();
        let ill = if self.story.crowd.devices > 0 { 600 } else { 300 };
        let health = if self.dice.in_thousand(ill) { Health::Unhealthy } else { Health::Healthy };
        let card = if self.story.crowd.devices > 0 {
            devices::one_of(&mut self.dice, name, age)
        } else {
            format!("GPU-{name}-{age}-{}", self.dice.below(2))
        };
        world.watch.say(&format!("{card} is {health:?}"));
        world.fleet.set_health(name, &card, health).await.unwrap();
        Some(())
    }

    /// koordlet is installed anew on a node: its Device goes, and comes back once a device is reported.
    async fn device(&mut self, world: &World) -> Option<()> {
        let name = self.node();
        nodes(world).get_opt(name).await.unwrap()?;
        let gone = devices(world).delete(name, &DeleteParams::default()).await.is_ok();
        if !gone {
            let age = self.ages.get(name).copied().unwrap_or_default();
            let device = devices::one_of(&mut self.dice, name, age);
            world.fleet.set_health(name, &device, Health::Healthy).await.unwrap();
        }
        world.watch.say(&format!("the Device of {name} {}", if gone { "is deleted" } else { "is back" }));
        Some(())
    }

    /// Another scheduler reserves a GPU that is free, or a Reservation ends.
    async fn reserve(&mut self, world: &World) -> Option<()> {
        let there = world.sandbox.objects_of(devices::GROUP, "reservations");
        if let Some(oldest) = there.first().filter(|_| there.len() > 1) {
            let name = oldest["metadata"]["name"].as_str().unwrap();
            let gone = reservations(world).delete(name, &DeleteParams::default()).await.is_ok();
            world.watch.say(&format!("{name} ends: {gone}"));
            return Some(());
        }
        let (node, minor) = world.watch.log().checker.free_gpu(&mut self.dice)?;
        self.foreign += 1;
        let name = format!("reservation-{}", self.foreign);
        let object = reservation::object(&mut self.dice, &name, &node, minor);
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        reservations(world).create(&PostParams::default(), &object).await.unwrap();
        world.watch.say(&format!("{name} holds GPU {minor} of {node}: {}", object.data["spec"]));
        Some(())
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
            }
        }
        if self.story.crowd.preemptable > 0 {
            allow(world, 1000).await;
        }
        world.watch.say("all is calm");
    }
}

fn pods(world: &World) -> Api<core::Pod> {
    Api::default_namespaced(world.client.clone())
}

/// Some nodes are put into revocable zones, and the budgets of their pods are stated.
async fn lend(world: &World) {
    for name in NODES {
        if let Some(zone) = zone_of(name) {
            patch(world, name, json!({"metadata": {"labels": {"volcano.sh/revocable-zone": zone}}})).await;
        }
    }
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("scheduling.volcano.sh", "v1beta1", "PodGroup"));
    let groups: Api<DynamicObject> = Api::default_namespaced_with(world.client.clone(), &kind);
    for (job, budget, stated) in JOBS {
        let mut group = DynamicObject::new(job, &kind);
        let budget = budget.filter(|_| stated == Stated::OnPodGroup);
        group.annotations_mut().extend(budget.map(|(key, value)| (key.to_owned(), value.to_owned())));
        groups.create(&PostParams::default(), &group).await.unwrap();
    }
    let budget = json!({"metadata": {"name": pod::GUARDED},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": pod::GUARDED}}}});
    let budget = serde_json::from_value(budget).unwrap();
    budgets(world).create(&PostParams::default(), &budget).await.unwrap();
    allow(world, 1).await;
}

/// What the disruption controller writes. The budget has fewer healthy pods than it wants, so that each eviction counts, whether the pod is
/// ready or not.
async fn allow(world: &World, disruptions: u64) {
    let status = json!({"observedGeneration": 1, "disruptionsAllowed": disruptions, "expectedPods": 2,
        "currentHealthy": 0, "desiredHealthy": 1, "disruptedPods": null});
    let status = Patch::Merge(json!({"status": status}));
    budgets(world).patch_status(pod::GUARDED, &PatchParams::default(), &status).await.unwrap();
}

fn budgets(world: &World) -> Api<PodDisruptionBudget> {
    Api::default_namespaced(world.client.clone())
}

fn quotas(world: &World) -> Api<core::ResourceQuota> {
    Api::default_namespaced(world.client.clone())
}

fn devices(world: &World) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(devices::GROUP, "v1alpha1", "Device"));
    Api::all_with(world.client.clone(), &kind)
}

fn reservations(world: &World) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(devices::GROUP, "v1alpha1", "Reservation"));
    Api::all_with(world.client.clone(), &kind)
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
