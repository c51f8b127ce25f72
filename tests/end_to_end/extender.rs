//! A real kube-scheduler that asks Berth as its extender.

use std::{fmt::Write as _, net::SocketAddr, time::Duration};

use berth::{
    app::Chooser,
    cluster::{Leadership, election::candidate::ElectionSettings},
};
use berth_sandbox::agent::{Answer, Behaviour};
use k8s_openapi::api::core::v1 as core;
use kube::api::ListParams;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    machines::hami_node,
    support::floor::Floor,
    world::{World, annotation, node_of, pod},
};

/// kube-scheduler for pods that name Berth, with or without Berth as its extender.
fn configuration(kubeconfig: &str, extender: Option<SocketAddr>) -> String {
    let mut text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\n\
         kind: KubeSchedulerConfiguration\n\
         clientConnection: {{kubeconfig: {kubeconfig}, qps: 1000, burst: 1000}}\n\
         leaderElection: {{leaderElect: false}}\n\
         profiles: [{{schedulerName: berth}}]\n"
    );
    if let Some(address) = extender {
        write!(
            text,
            "extenders:\n\
             - urlPrefix: https://{address}/extender/v1\n\
            \x20 filterVerb: filter\n\
            \x20 prioritizeVerb: prioritize\n\
            \x20 preemptVerb: preempt\n\
            \x20 bindVerb: bind\n\
            \x20 weight: 1\n\
            \x20 enableHTTPS: true\n\
            \x20 nodeCacheCapable: true\n\
            \x20 httpTimeout: 5s\n\
            \x20 tlsConfig: {{insecure: true}}\n\
            \x20 managedResources:\n\
            \x20 - {{name: nvidia.com/gpu, ignoredByScheduler: true}}\n\
            \x20 - {{name: nvidia.com/gpumem, ignoredByScheduler: true}}\n\
            \x20 - {{name: nvidia.com/gpucores, ignoredByScheduler: true}}\n"
        )
        .expect("a String takes any text");
    }
    text
}

fn share(name: &str, memory: u32) -> Value {
    pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string()}))
}

/// A cluster with Berth as the extender of a kube-scheduler; `None`, said aloud, where the programs are not to be had.
async fn start(nodes: u32, cards: u32) -> Option<(World, SocketAddr)> {
    let nodes = (1..=nodes).map(|number| hami_node(&format!("gpu-{number}"), cards)).collect();
    let mut world = World::without_berth(Floor::Real, nodes).await?;
    let address = world.start_beside(Chooser::KubeScheduler, Leadership::Alone, None).await;
    let plane = world.cluster.control_plane().expect("the real floor has processes");
    let kubeconfig = plane.kubeconfig("admin").display().to_string();
    plane.start_scheduler(&configuration(&kubeconfig, Some(address))).unwrap();
    Some((world, address))
}

/// Three nodes of two cards with 16 GiB each: six pods of 10 GiB have a card each, and no seventh has.
pub(crate) async fn pods_get_cards_and_what_does_not_fit_waits() {
    let Some((mut world, address)) = start(3, 2).await else { return };
    for number in 0..3 {
        world.create(share(&format!("p{number}"), 10_000)).await;
    }
    for number in 0..3 {
        world.running(&format!("p{number}")).await;
    }
    // Berth dies in the middle, and another takes its place at the same address.
    world.kill_berth().await;
    for number in 3..7 {
        world.create(share(&format!("p{number}"), 10_000)).await;
    }
    world.start_beside(Chooser::KubeScheduler, Leadership::Alone, Some(address)).await;
    let mut cards = Vec::new();
    let mut waiting = Vec::new();
    for number in 0..7 {
        let name = format!("p{number}");
        let pod = world
            .pod_when(&name, |pod| !node_of(pod).is_empty() || says(pod, "Insufficient GPU memory"))
            .await;
        if node_of(&pod).is_empty() {
            waiting.push(name);
        } else {
            world.running(&name).await;
            cards.push(annotation(&pod, "hami.io/vgpu-devices-allocated").to_owned());
        }
    }
    let given = cards.len();
    cards.sort();
    cards.dedup();
    assert_eq!((given, cards.len(), waiting.len()), (6, 6, 1), "each has a card of its own: {cards:?}");
    // What fits on no node, however empty, says so, and a pod that ends makes room.
    world.create(share("too-big", 20_000)).await;
    world.pod_when("too-big", |pod| says(pod, "Insufficient GPU memory")).await;
    let gone = (0..7).map(|number| format!("p{number}")).find(|name| *name != waiting[0]).unwrap();
    world.delete(&gone).await;
    world.running(&waiting[0]).await;
    world.agents_are_content();
}

/// Whether the pod's condition says why it waits in these words.
fn says(pod: &core::Pod, words: &str) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut messages = conditions.filter(|condition| condition.type_ == "PodScheduled");
    messages.any(|condition| condition.message.as_deref().is_some_and(|message| message.contains(words)))
}

/// What a verb answers.
async fn ask(address: SocketAddr, verb: &str, body: &Value) -> Value {
    let mut config = kube::Config::new(format!("https://{address}").parse().unwrap());
    config.accept_invalid_certs = true;
    let client = kube::Client::try_from(config).unwrap();
    let request =
        http::Request::post(format!("/extender/v1/{verb}")).body(body.to_string().into_bytes()).unwrap();
    serde_json::from_str(&client.request_text(request).await.unwrap()).unwrap()
}

/// Why a pod is not bound to a node; empty: it is.
async fn bind(address: SocketAddr, pod: &core::Pod, node: &str) -> String {
    let (name, uid) = (&pod.metadata.name, &pod.metadata.uid);
    let args = json!({"PodName": name, "PodNamespace": "default", "PodUID": uid, "Node": node});
    ask(address, "bind", &args).await["Error"].as_str().unwrap().to_owned()
}

/// A pod of another that is at work on the node is waited for, but not longer than kube-scheduler waits.
pub(crate) async fn a_busy_node_is_told_and_the_pod_can_go_elsewhere(floor: Floor) {
    let nodes = vec![hami_node("gpu-1", 1), hami_node("gpu-2", 1)];
    let Some(mut world) = World::without_berth(floor, nodes).await else { return };
    let silent = Behaviour { answer: Answer::Never, ..Behaviour::default() };
    world.fleet.behave("gpu-1", silent).unwrap();
    let address = world.start_beside(Chooser::KubeScheduler, Leadership::Alone, None).await;
    let first = world.create(share("first", 1000)).await;
    let second = world.create(share("second", 1000)).await;
    assert_eq!(bind(address, &first, "gpu-1").await, "");
    assert_eq!(bind(address, &first, "gpu-1").await, "", "an answer that was lost is given again");
    assert_eq!(bind(address, &first, "gpu-2").await, "pod default/first is bound to node gpu-1");
    assert_eq!(bind(address, &second, "gpu-1").await, "node gpu-1 is busy with other pods");
    assert_eq!(bind(address, &second, "gpu-2").await, "");
    world.running("second").await;
    let large = world.create(share("large", 16_000)).await;
    assert_eq!(bind(address, &large, "gpu-2").await, "Insufficient GPU memory");
    let mut unknown = large;
    unknown.metadata.uid = Some("unknown".to_owned());
    assert_eq!(bind(address, &unknown, "gpu-2").await, "pod default/large is not known");
}

pub(crate) async fn a_follower_judges_nodes_and_names_the_leader_for_bind(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, vec![hami_node("gpu-1", 1)]).await else { return };
    let stands = |name| Leadership::Elected(ElectionSettings::new("default", "berth", name));
    world.start_beside(Chooser::KubeScheduler, stands("leader"), None).await;
    world.until_led_by("leader").await;
    let follower = world.start_beside(Chooser::KubeScheduler, stands("follower"), None).await;
    let pod = world.create(share("p", 1000)).await;
    assert_eq!(bind(follower, &pod, "gpu-1").await, "this replica does not lead; the leader is leader");
    let args = json!({"Pod": pod, "Nodes": null, "NodeNames": ["gpu-1"]});
    let mut again = tokio::time::interval(Duration::from_millis(50));
    let judged = async {
        // It has to list the cluster first, and says so.
        loop {
            again.tick().await;
            let answer = ask(follower, "filter", &args).await;
            if answer["NodeNames"] == json!(["gpu-1"]) {
                return;
            }
            assert!(answer["Error"].as_str().is_some_and(|error| error.contains("not listed")), "{answer}");
        }
    };
    tokio::time::timeout(Duration::from_mins(1), judged).await.expect("the follower lists the cluster");
}

/// How many pods a second are bound by kube-scheduler alone, by kube-scheduler with Berth as its extender, and by Berth alone.
#[expect(clippy::disallowed_methods, reason = "a longer run is asked for by the environment")]
pub(crate) async fn what_an_extender_costs() {
    let pods = std::env::var("BERTH_EXTENDER_PODS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let mut rates = Vec::new();
    for way in ["kube-scheduler alone", "kube-scheduler and Berth", "Berth alone"] {
        let nodes = (1..=20).map(|number| hami_node(&format!("gpu-{number}"), 8)).collect();
        let Some(mut world) = World::without_berth(Floor::Real, nodes).await else { return };
        let extender = match way {
            "kube-scheduler alone" => None,
            "Berth alone" => {
                world.start_berth();
                None
            }
            _ => Some(world.start_beside(Chooser::KubeScheduler, Leadership::Alone, None).await),
        };
        if way != "Berth alone" {
            let plane = world.cluster.control_plane().expect("the real floor has processes");
            let kubeconfig = plane.kubeconfig("admin").display().to_string();
            plane.start_scheduler(&configuration(&kubeconfig, extender)).unwrap();
        }
        let plain = way == "kube-scheduler alone";
        let limits = if plain {
            json!({"cpu": "10m"})
        } else {
            json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"})
        };
        // The first pod waits for all to be up, and is not measured.
        world.create(pod("first", &limits)).await;
        world.pod_when("first", |pod| !node_of(pod).is_empty()).await;
        let began = Instant::now();
        let created = (0..pods).map(|number| world.create(pod(&format!("p{number}"), &limits)));
        futures::future::join_all(created).await;
        let mut again = tokio::time::interval(Duration::from_millis(20));
        let all_bound = async {
            loop {
                again.tick().await;
                let listed = world.pods().list(&ListParams::default()).await.unwrap();
                if listed.iter().all(|pod| !node_of(pod).is_empty()) {
                    return;
                }
            }
        };
        tokio::time::timeout(Duration::from_mins(5), all_bound).await.expect("all are bound in time");
        rates.push((way, f64::from(pods) / began.elapsed().as_secs_f64()));
    }
    for (way, rate) in &rates {
        println!("{way}: {rate:.1} pods/s");
    }
    assert_eq!(rates.len(), 3);
}
