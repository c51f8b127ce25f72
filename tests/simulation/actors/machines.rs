//! Machines and their agents: they come and go, move, fail and recover.

use berth_sandbox::agent::{Answer, Behaviour, Ending, card::Health};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::{
    Actors,
    api::{devices as device_objects, nodes, patch, pods},
};
use crate::{
    devices,
    world::{World, node},
};

impl Actors {
    pub(super) async fn cordon(&mut self, world: &World) {
        let name = self.node();
        let to = self.dice.in_thousand(300);
        patch(world, name, json!({"spec": {"unschedulable": to}})).await;
        world.watch.say(&format!("{name} is cordoned: {to}"));
    }

    /// A node moves to another zone, or now and then has none any more.
    pub(super) async fn zone(&mut self, world: &World) {
        let name = self.node();
        let zone = self.dice.one_of(&["a", "b", "c", "a", "b", ""]);
        let label = if zone.is_empty() { Value::Null } else { json!(zone) };
        patch(world, name, json!({"metadata": {"labels": {"zone": label}}})).await;
        world.watch.say(&format!("{name} is in zone {zone:?}"));
    }

    /// Something that matters to nobody changes on a node.
    pub(super) async fn touch(&mut self, world: &World) {
        let name = self.node();
        patch(world, name, json!({"metadata": {"annotations": {"heartbeat": self.dice.next().to_string()}}}))
            .await;
    }

    /// A machine goes away with its pods, or another comes in its place.
    pub(super) async fn swap_node(&mut self, world: &World) {
        let name = self.node();
        if nodes(world).get_opt(name).await.unwrap().is_none() {
            let age = self.ages.entry(name).or_default();
            *age += self.dice.below(2);
            world.fleet.replace(node(name, *age)).await.unwrap();
            world.watch.say(&format!("{name} comes back, age {age}"));
            if self.story.crowd.device_claims > 0 {
                self.install_drivers(world, name).await;
            }
            return;
        }
        nodes(world).delete(name, &DeleteParams::default()).await.unwrap();
        world.watch.say(&format!("{name} leaves"));
        // The Device of a node is owned by it.
        if self.story.crowd.devices > 0 {
            drop(device_objects(world).delete(name, &DeleteParams::default()).await);
        }
        if self.story.crowd.device_claims > 0 {
            self.remove_drivers(world, name).await;
        }
        collect_pods(world, name).await;
    }

    /// Where pods may take long to end, they do.
    pub(super) fn ending(&self) -> Ending {
        let long = self.story.crowd.grace.iter().any(|seconds| *seconds > 5);
        if long { Ending::AfterGrace } else { Ending::AtOnce }
    }

    pub(super) fn behave(&mut self, world: &World) {
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

    pub(super) async fn sicken(&mut self, world: &World) -> Option<()> {
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
    pub(super) async fn device(&mut self, world: &World) -> Option<()> {
        let name = self.node();
        nodes(world).get_opt(name).await.unwrap()?;
        let gone = device_objects(world).delete(name, &DeleteParams::default()).await.is_ok();
        if !gone {
            let age = self.ages.get(name).copied().unwrap_or_default();
            let device = devices::one_of(&mut self.dice, name, age);
            world.fleet.set_health(name, &device, Health::Healthy).await.unwrap();
        }
        world.watch.say(&format!("the Device of {name} {}", if gone { "is deleted" } else { "is back" }));
        Some(())
    }
}

/// Kubernetes removes the pods of a node that is gone.
async fn collect_pods(world: &World, node: &str) {
    let there: Vec<_> = world.watch.log().checker.pods().into_iter().filter(|pod| pod.node == node).collect();
    for pod in there {
        drop(pods(world).delete(&pod.name, &DeleteParams::default().grace_period(0)).await);
    }
}
