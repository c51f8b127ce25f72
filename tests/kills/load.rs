//! The cluster and its users: nodes of both kinds, pods of every size, users who delete what they created, at any moment.
//!
//! It must not look at who binds, and it does not give up: what a server that was killed did not answer is asked again.

use std::{sync::Arc, time::Duration};

use berth_sandbox::agent::{Behaviour, Fleet, card::Card, node::Node, wire::Release};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{DeleteParams, PostParams, Preconditions},
};
use serde_json::json;

const CARDS: u32 = 4;
/// MiB of each card.
const MEMORY: u64 = 16_384;
/// How many users create pods at the same time.
const USERS: usize = 12;
/// Between two tries of a user whom the API server did not answer.
const AGAIN: Duration = Duration::from_millis(100);
/// How long a pod of the load runs.
const LIFE: Duration = Duration::from_millis(800);

/// On pods that their users mean to delete, which only they may.
const TO_BE_DELETED: &str = "deleted-by-user";

/// Whose pods and nodes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Family {
    Hami,
    Volcano,
}

impl Family {
    const ALL: [Self; 2] = [Self::Hami, Self::Volcano];

    fn of(number: usize) -> Self {
        Self::ALL[number % 2]
    }
}

/// So many nodes of each family.
pub(crate) async fn nodes(client: Client, of_each: usize) -> Fleet {
    let node = |number: usize| {
        let family = Family::of(number);
        let name = format!("{family:?}-{:03}", number / 2).to_lowercase();
        let card = |index| Card::new(&format!("GPU-{name}-{index}"), index, MEMORY);
        let node = (0..CARDS).fold(Node::new(&name), |node, index| node.card(card(index)));
        match family {
            Family::Hami => node.hami(Release::V2_10),
            Family::Volcano => node.volcano(),
        }
    };
    Fleet::start(client, (0..2 * of_each).map(node).collect()).await.unwrap()
}

/// How many cards the nodes of each family have.
pub(crate) fn cards(of_each: usize) -> usize {
    of_each * CARDS as usize
}

/// From now on pods run for a while, or until they are deleted.
pub(crate) fn live(fleet: &Fleet, of_each: usize, runs_for: Option<Duration>) {
    for number in 0..2 * of_each {
        let name = format!("{:?}-{:03}", Family::of(number), number / 2).to_lowercase();
        fleet.behave(&name, Behaviour { runs_for, ..Behaviour::default() }).unwrap();
    }
}

/// Pods that come and go: all but the giants are served sooner or later, or deleted.
pub(crate) async fn come_and_go(client: Client, fleet: &Fleet, of_each: usize, pods: usize) {
    live(fleet, of_each, Some(LIFE));
    let api: Api<Pod> = Api::default_namespaced(client);
    stream::iter(0..pods).for_each_concurrent(USERS, |number| one(api.clone(), number)).await;
}

/// Pods that stay: two of a size of which each card bears one, for every card.
pub(crate) async fn crowd(client: Client, fleet: &Fleet, of_each: usize) {
    live(fleet, of_each, None);
    let api: Api<Pod> = Api::default_namespaced(client);
    let resident = |number: usize| {
        let api = api.clone();
        async move {
            let name = format!("resident-{number:04}");
            insist_on(&api, &pod(&name, Family::of(number), 1, 9_000, 10, Fate::Stays)).await;
        }
    };
    stream::iter(0..4 * cards(of_each)).for_each_concurrent(USERS, resident).await;
}

/// What a pod's user means to do with it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fate {
    Stays,
    Deleted,
}

async fn one(api: Api<Pod>, number: usize) {
    let (name, family) = (format!("pod-{number:05}"), Family::of(number));
    let cards = if number % 9 == 4 { 2 } else { 1 };
    // Every fiftieth is larger than any card.
    let memory = if number % 50 == 49 { 20_000 } else { 1_500 + 1_250 * (number % 8) };
    let cores = 5 * (number % 7);
    let fate = if number % 8 == 3 { Fate::Deleted } else { Fate::Stays };
    let uid = insist_on(&api, &pod(&name, family, cards, memory, cores, fate)).await;
    if fate == Fate::Stays {
        return;
    }
    // A user thinks for a while: some pods are gone before they are bound, some while they run, most somewhere between.
    tokio::time::sleep(LIFE * u32::try_from(number % 5).unwrap() / 4).await;
    delete(&api, &name, &uid).await;
    if number % 16 == 3 {
        insist_on(&api, &pod(&name, family, cards, memory, cores, Fate::Stays)).await;
    }
}

fn pod(name: &str, family: Family, cards: usize, memory: usize, cores: usize, fate: Fate) -> Arc<Pod> {
    let names = match family {
        Family::Hami => ["nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"],
        Family::Volcano => ["volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"],
    };
    let limits: serde_json::Map<_, _> = names
        .into_iter()
        .zip([cards, memory, cores])
        .map(|(name, amount)| (name.to_owned(), json!(amount.to_string())))
        .collect();
    let container = json!({"name": "main", "image": "train", "resources": {"limits": limits}});
    let labels = if fate == Fate::Deleted { json!({TO_BE_DELETED: "true"}) } else { json!({}) };
    let spec =
        json!({"schedulerName": "berth", "containers": [container], "terminationGracePeriodSeconds": 1});
    let pod = json!({"metadata": {"name": name, "labels": labels}, "spec": spec});
    Arc::new(serde_json::from_value(pod).unwrap())
}

/// Creates a pod, also where the answer was lost and where its predecessor of the same name is not gone yet; its uid.
async fn insist_on(api: &Api<Pod>, pod: &Pod) -> String {
    let name = pod.metadata.name.as_deref().unwrap();
    loop {
        let found = match api.create(&PostParams::default(), pod).await {
            Ok(created) => Ok(Some(created)),
            Err(kube::Error::Api(status)) if status.code == 409 => api.get_opt(name).await,
            Err(error) => Err(error),
        };
        let is_it = |found: &Pod| is_to_be_deleted(found) == is_to_be_deleted(pod);
        match found {
            Ok(Some(found)) if is_it(&found) => return found.metadata.uid.unwrap(),
            Err(kube::Error::Api(status)) if (400..409).contains(&status.code) => {
                panic!("pod {name}: {status:?}")
            }
            Ok(_) | Err(_) => {}
        }
        tokio::time::sleep(AGAIN).await;
    }
}

fn is_to_be_deleted(pod: &Pod) -> bool {
    pod.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(TO_BE_DELETED))
}

/// Deletes that very pod; one that is gone is deleted.
async fn delete(api: &Api<Pod>, name: &str, uid: &str) {
    let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
    let params = DeleteParams::default().preconditions(preconditions);
    loop {
        match api.delete(name, &params).await {
            Ok(_) => return,
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => return,
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    }
}
