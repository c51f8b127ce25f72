//! Pods that arrive and end for as long as somebody looks on. Which ones, and after how long, follows from the seed.

use std::{cmp::Reverse, collections::BinaryHeap};

use anyhow::Context;
use fastrand::Rng;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep_until};

use super::{
    DemoArgs,
    register::create,
    stage::{DemoStage, OPTED_IN},
};

/// The teams whose pods come, with what they call them.
const TEAMS: &[(&str, &[&str])] = &[
    (OPTED_IN, &["train", "evaluate"]),
    ("chat", &["llm", "guard"]),
    ("notebooks", &["lab"]),
    ("search", &["rank", "embed"]),
    ("speech", &["transcribe", "align"]),
];

/// The memory that pods of each protocol ask for, in MiB, and its part of a card in percent. Small ones are more frequent.
const HAMI: &[(u32, u32)] =
    &[(4_096, 10), (5_120, 12), (8_192, 20), (10_240, 25), (20_480, 50), (40_960, 100)];
const VOLCANO: &[(u32, u32)] =
    &[(8_192, 10), (10_240, 12), (20_480, 25), (20_480, 25), (40_960, 50), (81_920, 100)];

/// How long pods stay, in seconds.
const STAY: std::ops::Range<f64> = 15.0..75.0;
/// How many pods there would be for each node if all of them found room: more than fit, so that some wait.
const PODS_OF_A_NODE: u32 = 10;
/// The most pods that there are at a time.
const MOST: u32 = 600;

/// The rest of a pod: when it ends, and which one it is.
type Leaves = Reverse<(Instant, &'static str, String)>;

/// Lets pods arrive and end until something fails.
pub(super) async fn come_and_go(stage: &DemoStage, args: &DemoArgs) -> anyhow::Result<()> {
    for (team, _) in TEAMS.iter().filter(|(team, _)| *team != OPTED_IN) {
        let labels = json!({"berth.dev/admission": "enabled"});
        create::<Namespace>(&stage.client, json!({"metadata": {"name": team, "labels": labels}})).await?;
    }
    let mut dice = Rng::with_seed(args.seed);
    let pods = f64::from((args.nodes * PODS_OF_A_NODE).min(MOST));
    let pause = f64::midpoint(STAY.start, STAY.end) / pods;
    let mut here: BinaryHeap<Leaves> = BinaryHeap::new();
    let mut arrives = Instant::now();
    for number in 0_u64.. {
        while let Some(Reverse((leaves, _, _))) = here.peek()
            && *leaves <= arrives
        {
            sleep_until(*leaves).await;
            if let Some(Reverse((_, team, name))) = here.pop() {
                end(stage, team, &name).await?;
            }
        }
        sleep_until(arrives).await;
        let (team, pod) = pod(&mut dice, number);
        let name = pod.metadata.name.clone().unwrap_or_default();
        let pods: Api<Pod> = Api::namespaced(stage.client.clone(), team);
        pods.create(&PostParams::default(), &pod)
            .await
            .with_context(|| format!("create pod {team}/{name}"))?;
        let stays = STAY.start + dice.f64() * (STAY.end - STAY.start);
        here.push(Reverse((arrives + Duration::from_secs_f64(stays), team, name)));
        arrives += Duration::from_secs_f64(2.0 * pause * dice.f64());
    }
    Ok(())
}

async fn end(stage: &DemoStage, team: &str, name: &str) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::namespaced(stage.client.clone(), team);
    pods.delete(name, &DeleteParams::default()).await.with_context(|| format!("delete pod {team}/{name}"))?;
    Ok(())
}

/// The next pod, and the team to which it belongs.
fn pod(dice: &mut Rng, number: u64) -> (&'static str, Pod) {
    let (team, names) = TEAMS[dice.usize(..TEAMS.len())];
    let name = format!("{}-{number}", names[dice.usize(..names.len())]);
    let hami = dice.bool();
    let sizes = if hami { HAMI } else { VOLCANO };
    // The smaller of two, so that small ones come more often.
    let (memory, percent) = sizes[dice.usize(..sizes.len()).min(dice.usize(..sizes.len()))];
    let cores = percent * dice.u32(50..=100) / 100;
    let keys = if hami {
        ["nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"]
    } else {
        ["volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"]
    };
    let limits: serde_json::Map<String, Value> = keys
        .into_iter()
        .zip([1, memory, cores])
        .map(|(key, amount)| (key.to_owned(), amount.to_string().into()))
        .collect();
    let container =
        json!({"name": "main", "image": "registry.example/work", "resources": {"limits": limits}});
    let pod = json!({"metadata": {"name": name}, "spec": {"containers": [container]}});
    (team, serde_json::from_value(pod).expect("it has the form of a pod"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_brings_the_same_pods_and_another_seed_others() {
        let of = |seed| {
            let mut dice = Rng::with_seed(seed);
            (0..50).map(|number| pod(&mut dice, number)).collect::<Vec<_>>()
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}
