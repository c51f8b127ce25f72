//! The page of `/debug/ledger`: every card, how much of it is used, and by which pods; and what else the leader's loop is asked for.
//!
//! It changes nothing: it shows what the scheduler holds at the time of the request.

mod devices;
mod gpus;
mod reservations;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

pub use devices::{DeviceRow, HeldDeviceRow};
pub use gpus::FleetRow;
pub use reservations::ReservationRow;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::{
    cards::{HeldCard, NodeCards, OfferedCard, held_on},
    scrape::Holdings,
};
use crate::{
    cluster::binder::questions::{NoAnswer, Questions},
    device::{Answer, CardId, InitPhase, Role},
    dialect::Dialects,
    excerpt::{FIELD, excerpt},
    scheduling::{
        Scheduler, Snapshot, Uid,
        model::name::NodeName,
        world::{
            ledger::{Charge, Commitment},
            node_state::NodeState,
        },
    },
};

/// The ledger.
#[derive(Clone, Debug, Serialize)]
pub struct LedgerPage {
    /// The GPUs by model; none until everything is listed, since a part of them would look like the whole.
    pub gpus: Vec<FleetRow>,
    /// Every node with its cards, by name.
    pub nodes: Vec<LedgerNode>,
    /// Every pod that holds something, by namespace and name.
    pub pods: Vec<ChargeRow>,
}

/// What one pod holds, with its commitment.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct ChargeRow {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its node.
    pub node: String,
    /// `Assumed`: decided and not yet bound; `Intended`: meant by another scheduler; `Bound`.
    pub commitment: &'static str,
    /// What the node's device plugins have made of it: `Awaited` while one has not answered, else `Failed` where one failed, or
    /// `Succeeded`; `Withdrawn`: Berth took the assignment back, since the pod died before it.
    pub answer: &'static str,
    /// What it holds of each card at its peak.
    pub cards: Vec<HeldRow>,
    /// What it holds of devices by type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<HeldDeviceRow>,
}

/// What one pod holds of one card.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct HeldRow {
    /// The card; one that is known by its number only has `index` instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Its number, where no plugin tells its uuid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// Its model, as its plugin spells it; absent where the node has no such card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Shares of it.
    pub slots: u32,
    /// MiB.
    pub memory: u64,
    /// Compute, in percent of the card or in its own units.
    pub cores: u32,
}

impl From<HeldCard<'_>> for HeldRow {
    fn from(held: HeldCard<'_>) -> Self {
        let index = held.card.and_then(OfferedCard::number);
        Self {
            uuid: index.is_none().then(|| held.id.to_string()),
            index,
            model: held.card.map(|offered| offered.card.model.to_string()),
            slots: held.used.slots,
            memory: held.used.memory.get(),
            cores: held.used.cores.get(),
        }
    }
}

/// One node.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct LedgerNode {
    /// Its name.
    pub name: String,
    /// Its cards, by number.
    pub cards: Vec<LedgerCard>,
    /// Its devices by type, where its node side lists such.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceRow>,
    /// What Koordinator's Reservations hold of it.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<ReservationRow>,
    /// Its pods with an unreadable assignment, by name, with the reason.
    #[serde(rename = "unreadablePods", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unreadable_pods: BTreeMap<String, String>,
}

/// One card and what of it is in use.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LedgerCard {
    /// The card; one that is known by its number only has `index` instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Its number, where no plugin tells its uuid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// Its model, as its plugin spells it; not a part of the page.
    #[serde(skip)]
    pub model: Arc<str>,
    /// The slots in use.
    pub slots_used: u32,
    /// All slots.
    pub slots: u32,
    /// Memory in use, in MiB.
    pub memory_used: u64,
    /// All memory, in MiB.
    pub memory: u64,
    /// Compute in use, in percent of the card or in its own units.
    pub cores_used: u32,
    /// All compute, in the same unit.
    pub cores: u32,
    /// Whether the device plugin reports it as healthy.
    pub healthy: bool,
    /// Who holds some of it.
    #[serde(flatten)]
    pub holders: NamedHolders,
}

/// Who holds some of a card.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct NamedHolders {
    /// Pods that hold a share of it, by name.
    pub pods: Vec<String>,
    /// Claims of devices that hold some of it, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<String>,
    /// How many more pods and claims hold some of it, which are not shown by name.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub others: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What the loop that binds is asked for, between two decisions.
#[derive(Debug)]
pub enum LedgerQuestion {
    /// The ledger without its GPUs, and what they are counted from.
    Page(oneshot::Sender<(LedgerPage, Option<Holdings>)>),
    /// What a scrape shows; `None` until everything is listed.
    Holdings(oneshot::Sender<Option<Holdings>>),
    /// A copy of the cluster, to plan on; `None` until everything is listed.
    Snapshot(oneshot::Sender<Option<Snapshot>>),
}

impl LedgerQuestion {
    /// Answers it; the one that asked may have gone meanwhile.
    pub(in crate::cluster) fn answer(self, scheduler: &Scheduler, dialects: &Dialects) {
        match self {
            Self::Page(answer) => {
                drop(answer.send((page(scheduler, dialects), Holdings::of(scheduler, dialects))));
            }
            Self::Holdings(answer) => drop(answer.send(Holdings::of(scheduler, dialects))),
            Self::Snapshot(answer) => {
                let is_synced = scheduler.view().is_synced();
                drop(answer.send(is_synced.then(|| scheduler.snapshot().clone())));
            }
        }
    }
}

impl Questions<LedgerQuestion> {
    /// Asks the leader's loop for the ledger, which answers between two decisions. GPUs are counted outside the loop.
    pub async fn page(&self) -> Result<LedgerPage, NoAnswer> {
        let (page, holdings) = self.ask(LedgerQuestion::Page).await?;
        let gpus = tokio::task::spawn_blocking(move || holdings.map(|holdings| holdings.gpus()));
        let gpus = gpus.await.map_err(|error| match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => NoAnswer::NotLeading,
        })?;
        let rows = gpus.into_iter().flatten().map(|(model, gpus)| FleetRow::new(model, &gpus));
        Ok(LedgerPage { gpus: rows.collect(), ..page })
    }

    /// What a scrape shows; `None` until everything is listed.
    pub async fn holdings(&self) -> Result<Option<Holdings>, NoAnswer> {
        self.ask(LedgerQuestion::Holdings).await
    }

    /// A copy of the cluster, to plan on; `None` until everything is listed.
    pub async fn snapshot(&self) -> Result<Option<Snapshot>, NoAnswer> {
        self.ask(LedgerQuestion::Snapshot).await
    }
}

/// The ledger of a scheduler, without its GPUs by model.
pub fn page(scheduler: &Scheduler, dialects: &Dialects) -> LedgerPage {
    let keys: BTreeMap<Uid, _> = scheduler.view().keys().map(|key| (key.uid.clone(), key)).collect();
    let names = |uid: &Uid| keys.get(uid).map(ToString::to_string);
    let row = |(uid, charge): (&Uid, &Charge)| {
        let key = keys.get(uid);
        ChargeRow {
            namespace: key.map(|key| key.namespace.to_string()).unwrap_or_default(),
            name: key.map(|key| key.name.to_string()).unwrap_or_default(),
            uid: uid.to_string(),
            // A pod that is not bound yet may name any node.
            node: excerpt(&charge.node, FIELD).into_owned(),
            commitment: commitment(charge.commitment),
            answer: answer(scheduler.view().answer(uid, charge)),
            cards: held(charge, scheduler.snapshot(), dialects),
            devices: devices::held(charge),
        }
    };
    let mut pods: Vec<_> = scheduler.snapshot().ledger().all().map(row).collect();
    pods.sort();
    LedgerPage { gpus: Vec::new(), nodes: nodes(scheduler.snapshot(), dialects, &names), pods }
}

/// What a pod holds of each card.
fn held(charge: &Charge, snapshot: &Snapshot, dialects: &Dialects) -> Vec<HeldRow> {
    if charge.shares().next().is_none() {
        return Vec::new();
    }
    let cards = snapshot.node(&charge.node).map(|node| NodeCards::of(node, dialects));
    let held = held_on(cards.as_ref(), &charge.allocations, charge.init);
    held.into_iter().map(HeldRow::from).collect()
}

fn commitment(commitment: Commitment) -> &'static str {
    match commitment {
        Commitment::Assumed => "Assumed",
        Commitment::Intended => "Intended",
        Commitment::Bound => "Bound",
    }
}

fn answer(answer: Answer) -> &'static str {
    match answer {
        Answer::Awaited | Answer::ByLock => "Awaited",
        Answer::Succeeded => "Succeeded",
        Answer::Failed => "Failed",
        Answer::Withdrawn => "Withdrawn",
    }
}

/// The namespace and name of a pod; `None`: it is not shown.
pub type PodNames<'a> = &'a dyn Fn(&Uid) -> Option<String>;

/// Every node with its cards, by name.
pub fn nodes(snapshot: &Snapshot, dialects: &Dialects, names: PodNames<'_>) -> Vec<LedgerNode> {
    let node = |state: &Arc<NodeState>| LedgerNode {
        name: state.info.name.to_string(),
        cards: cards(state, snapshot, dialects, names),
        devices: devices::rows(
            state,
            &snapshot.ledger().on_node(&state.info.name).collect::<Vec<_>>(),
            names,
        ),
        reservations: reservations::rows(state),
        unreadable_pods: unreadable(&state.info.name, snapshot, names),
    };
    snapshot.nodes().map(node).collect()
}

fn unreadable(node: &NodeName, snapshot: &Snapshot, names: PodNames<'_>) -> BTreeMap<String, String> {
    let charges = snapshot.ledger().on_node(node);
    charges
        .filter_map(|(uid, charge)| Some((charge.unread()?, uid)))
        .filter_map(|(why, uid)| Some((names(uid)?, why)))
        .collect()
}

/// A node's cards: each uuid once, whichever plugins name it.
fn cards(state: &NodeState, snapshot: &Snapshot, dialects: &Dialects, pods: PodNames<'_>) -> Vec<LedgerCard> {
    let holders = holders(&state.info.name, snapshot, pods);
    let row = |offered: &OfferedCard| {
        let card = offered.card;
        let called: Vec<&CardId> = state.info.devices.names_of(&card.id).collect();
        let claims = snapshot.resource_claims().holders_of(&state.info.name, &called);
        LedgerCard {
            uuid: offered.uuid().map(ToString::to_string),
            index: offered.number(),
            model: card.model.clone(),
            slots_used: offered.used.slots,
            slots: card.slots,
            memory_used: offered.used.memory.get(),
            memory: card.memory.get(),
            cores_used: offered.used.cores.get(),
            cores: offered.cores.get(),
            healthy: offered.is_healthy(),
            holders: NamedHolders {
                pods: named(&called, &holders),
                claims: claims.iter().map(ToString::to_string).collect(),
                others: 0,
            },
        }
    };
    NodeCards::of(state, dialects).cards.iter().map(row).collect()
}

/// The pods that hold a share of a card, by name; those of one name have different uids.
type NamedPods<'a> = BTreeSet<(Arc<str>, &'a Uid)>;

/// The pods that hold a share of each card of a node, by its name.
fn holders<'a>(
    node: &NodeName,
    snapshot: &'a Snapshot,
    names: PodNames<'_>,
) -> BTreeMap<&'a CardId, NamedPods<'a>> {
    let mut holders: BTreeMap<&CardId, NamedPods<'a>> = BTreeMap::new();
    for (uid, charge) in snapshot.ledger().on_node(node) {
        let Some(name) = names(uid).map(Arc::<str>::from) else { continue };
        let containers = charge.allocations.iter().flat_map(|allocation| &allocation.assignment.containers);
        let living =
            containers.filter(|container| charge.init == InitPhase::Ahead || container.role != Role::Init);
        for share in living.flat_map(|container| &container.shares) {
            holders.entry(&share.card).or_default().insert((name.clone(), uid));
        }
    }
    holders
}

/// Those that hold a share of the card of these names.
fn named(card: &[&CardId], holders: &BTreeMap<&CardId, NamedPods<'_>>) -> Vec<String> {
    let pods: NamedPods<'_> = card.iter().filter_map(|name| holders.get(name)).flatten().cloned().collect();
    pods.into_iter().map(|(name, _)| name.to_string()).collect()
}
