//! Pods of a second user beside an attack of a first one: each is bound after so much work, and few of them have to go.
//!
//! Work is counted in steps, by which Berth bounds it; no simulation can say how long it takes on a machine. What a pod waits for is other than
//! work where places are held: there the clock of the simulation counts.

use std::{collections::BTreeSet, time::Duration};

use berth_sandbox::agent::{Answer, Behaviour};
use k8s_openapi::api::core::v1 as core;
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::json;

use crate::{
    actors::{Actors, deselect, dry_run, leave},
    attack::{Attack, CARDS, share},
    world::{DryRun, NODES, World},
};

/// The namespace of the second user.
pub(crate) const NAMESPACE: &str = "other";

/// So much work may be done from the beginning of an attack until a pod that comes with it is bound: what a turn of the loop may take, about
/// 15 ms.
const MOST_STEPS: u64 = 15 * 66_000;

/// After this time one replica leads again, and what a node was kept for is over.
const LED: Duration = Duration::from_mins(1);

/// So long all processes stand still, so that they read the attack and the second user's pod together.
const STILL: Duration = Duration::from_millis(500);

/// After this time all pods of an attack are decided.
const SETTLED: Duration = Duration::from_secs(10);

/// A device plugin that is at work for a pod when this is deleted.
const AT_WORK: Duration = Duration::from_secs(3);

/// A user who attacks takes back at most so often what was chosen, and the other one looks after lost pods.
const PERIOD: Duration = Duration::from_secs(2);
/// How often they do so.
const PERIODS: usize = 150;
/// In this time, so many of the second user's pods may go: one at once, and one after each pause of 10 s, 20 s and so on.
const MOST_VICTIMS: usize = 6;

/// Attacks once more while all is calm, and judges what that costs a second user.
pub(crate) async fn judge(world: &mut World, actors: &mut Actors, attack: Attack) {
    world.wait(LED).await;
    match attack {
        Attack::Storms => return judge_storm(world, actors).await,
        // A node whose device plugin may still be at work for a pod that is gone is given none for a while: others are to have room.
        Attack::Deletions => leave(world).await,
        _ => {}
    }
    for number in 0..attack.probes() {
        // What is still to be done of the attack before is no part of this one.
        world.wait(SETTLED).await;
        let before = world.metrics.steps();
        match attack {
            Attack::Deletions => be_deleted(world, actors).await,
            // They have their places before.
            Attack::Places => {}
            _ => world.stand_still(STILL),
        }
        for _ in 0..attack.beside() {
            actors.strike(world, attack).await;
        }
        judge_probe(world, attack, number, before).await;
    }
    if attack == Attack::DryRuns {
        judge_dry_run(world);
    }
}

/// What is to be found out before the first node is judged takes longer than a dry run may.
fn judge_dry_run(world: &World) {
    let answers = dry_run(world);
    if answers.is_empty() || answers.contains(&DryRun::Judged) {
        let text = format!("the dry run of a pod whose claim takes long is {answers:?}");
        world.watch.log().checker.violations.push(text);
    }
}

/// A pod of the first user is deleted while a device plugin is at work for it.
async fn be_deleted(world: &mut World, actors: &mut Actors) {
    // What is owed to the pods before is over.
    world.wait(LED).await;
    let answer = Answer::After(AT_WORK);
    for node in NODES {
        world.fleet.behave(node, Behaviour { answer: answer.clone(), ..Behaviour::default() }).unwrap();
    }
    if !actors.strike_and_delete(world, Attack::Deletions).await {
        world.watch.log().checker.violations.push("a pod that is alone is not bound".to_owned());
    }
}

/// Creates a pod, and waits until it is bound or has waited too long.
async fn judge_probe(world: &mut World, attack: Attack, number: u64, before: u64) {
    let name = format!("probe-{number}");
    create(world, &name, attack.of_probe()).await;
    let patience = attack.patience(number);
    let violation = match world.bound_within(&name, patience).await {
        None => Some(format!("{name} of another user is not bound within {patience:?}, beside {attack:?}")),
        Some(after) => {
            let steps = after - before;
            world.watch.say(&format!("another user: {name} is bound after {steps} steps beside {attack:?}"));
            let text =
                format!("{name} of another user is bound after {steps} steps of work, beside {attack:?}");
            (steps > MOST_STEPS).then_some(text)
        }
    };
    world.watch.log().checker.violations.extend(violation);
}

/// Creates a pod of the second user that asks for so much of one card, in MiB.
async fn create(world: &World, name: &str, memory: u64) {
    let mut pod = share(memory);
    pod["metadata"]["name"] = json!(name);
    let pods: Api<core::Pod> = Api::namespaced(world.client.clone(), world.other_namespace());
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    world.watch.say(&format!("another user creates {name}"));
}

/// Every card has a pod of the second user, and another one in its place once that is gone.
async fn judge_storm(world: &mut World, actors: &mut Actors) {
    let attacking: Api<core::Pod> = Api::default_namespaced(world.client.clone());
    let at_once = DeleteParams::default().grace_period(0);
    attacking.delete_collection(&at_once, &kube::api::ListParams::default()).await.unwrap();
    world.wait(LED).await;
    let mut seen = BTreeSet::new();
    let mut victims = 0;
    for number in 0..CARDS {
        let name = format!("resident-{number}");
        create(world, &name, Attack::Storms.of_probe()).await;
        seen.insert(name);
    }
    world.wait(LED).await;
    actors.strike(world, Attack::Storms).await;
    for _ in 0..PERIODS {
        world.wait(PERIOD).await;
        deselect(world).await;
        let stay: BTreeSet<String> = residents(world);
        for gone in seen.iter().filter(|name| !stay.contains(*name)).cloned().collect::<Vec<_>>() {
            victims += 1;
            seen.remove(&gone);
            let name = format!("resident-{}", CARDS + victims);
            create(world, &name, Attack::Storms.of_probe()).await;
            seen.insert(name);
        }
    }
    world.watch.say(&format!("another user: {victims} pods had to go"));
    let victims = usize::try_from(victims).unwrap();
    if victims == 0 || victims > MOST_VICTIMS {
        let text = format!("{victims} pods of another user had to go for one that never starts");
        world.watch.log().checker.violations.push(text);
    }
}

/// The pods of the second user that are to stay.
fn residents(world: &World) -> BTreeSet<String> {
    let stays = |pod: &serde_json::Value| pod["metadata"].get("deletionTimestamp").is_none();
    let pods = world.sandbox.objects("pods").into_iter().filter(|pod| stays(pod));
    pods.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}
