//! One pod: what it holds, or why it waits.

use std::{cell::Cell, ops::ControlFlow, time::Duration};

use jiff::Timestamp;
use serde::{Deserialize as _, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    ApiError,
    change::{self, PodChanges},
    explanation::{ExplanationRow, QueuePlace},
    fleet::{CountedFleet, card_id},
    history::{self, HistoryRow},
    viewer::{Sees, Viewer},
    words::{asks, first_reason, message},
};
use crate::{
    cluster::report::{
        cards::{HeldCard, NodeCards, held_on},
        overview::{Leading, Overview},
    },
    excerpt::{VALUE, excerpt},
    object::Pod,
    scheduling::{
        Details, PodKey,
        model::{
            pod::Demand,
            steps::{Allowance, PER_MILLISECOND},
        },
        pending::PendingPod,
        plugin::pod_counts::PodCounts,
        world::ledger::{Charge, Commitment},
    },
};

/// How long the nodes are judged for one answer.
const PATIENCE: Duration = Duration::from_millis(150);

/// How long the smallest change is looked for.
const LONGEST_SEARCH: Duration = Duration::from_secs(2);

/// As many steps as are taken within about 20 ms before nodes are judged.
const STEPS: Allowance = Allowance::of(20 * PER_MILLISECOND);

/// How far a pod is.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
enum PodStanding {
    /// It has a node.
    Bound,
    /// It wants one.
    Waiting,
}

/// A pod; a key that does not apply is absent.
#[derive(Debug, Serialize)]
pub(super) struct PodPage<'a> {
    namespace: &'a str,
    name: &'a str,
    outcome: PodStanding,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    /// Since when it runs or waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    priority: i32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    holds: Vec<HeldShare>,
    #[serde(flatten)]
    waits: Option<WaitingRow>,
}

/// What a pod holds of one card.
#[derive(Debug, Serialize)]
struct HeldShare {
    card: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    memory: u64,
    cores: u32,
}

/// What a pod waits for.
#[derive(Debug, Serialize)]
struct WaitingRow {
    asks: String,
    queue: QueuePlace,
    /// Whether the replica decides pods: one that stands by knows of no attempts.
    leads: bool,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// What the nodes make of it now; before that is found out, why it waited last.
    #[serde(flatten)]
    now: ExplanationRow,
    /// Why its attempts failed since the replica leads, the latest outcome first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    history: Vec<HistoryRow>,
}

/// A pod of a namespace that the viewer may see.
pub(super) fn pod<'a>(
    fleet: &'a CountedFleet,
    (namespace, name): (&str, &str),
    viewer: &Viewer,
) -> Result<PodPage<'a>, ApiError> {
    viewer.check(namespace)?;
    let is_it = |key: &PodKey| (&*key.namespace, &*key.name) == (namespace, name);
    let Overview { holders, pending, .. } = &fleet.overview;
    if let Some(charge) = holders.of_shares().find(|charge| is_it(&charge.pod)) {
        return Ok(holder(&fleet.overview, charge));
    }
    let Some(at) = pending.iter().position(|pod| is_it(&pod.key)) else {
        return Err(ApiError::NotFound { kind: "pods", name: name.to_owned() });
    };
    let row = waiting(at, &fleet.overview);
    let details = fleet.overview.details;
    let own = details == Details::Own && viewer.sees != Sees::All;
    let now =
        pending[at].demand.as_ref().filter(|_| !own).and_then(|demand| explained(&fleet.overview, demand));
    let history = history::history(&pending[at], details);
    let waits = row.waits.map(|waits| WaitingRow { now: now.unwrap_or(waits.now), history, ..waits });
    Ok(PodPage { waits, ..row })
}

/// The smallest change with which a pod would fit.
#[derive(Debug, Serialize)]
pub(super) struct ChangePage {
    /// None: no change of the pod helps.
    change: PodChanges,
}

/// An error unless the pod waits.
pub(super) fn check_waits(fleet: &CountedFleet, namespace: &str, name: &str) -> Result<(), ApiError> {
    let is_it = |pod: &PendingPod| (&*pod.key.namespace, &*pod.key.name) == (namespace, name);
    let waits = fleet.overview.pending.iter().any(is_it);
    if waits { Ok(()) } else { Err(ApiError::NotFound { kind: "waiting pods", name: name.to_owned() }) }
}

/// The smallest change of a pod that waits, whose object this is.
pub(super) fn change(fleet: &CountedFleet, object: &Value) -> Result<ChangePage, ApiError> {
    let view = &fleet.overview.view;
    let (until, late) = (Instant::now() + LONGEST_SEARCH, Cell::new(false));
    let change = change::smallest(object, |changed| {
        if Instant::now() > until {
            late.set(true);
            return false;
        }
        let Ok(pod) = Pod::deserialize(changed) else { return false };
        let (info, troubles) = view.reader.pod(&pod);
        let demand = info.demand().filter(|_| troubles.is_empty());
        demand.is_some_and(|demand| view.outlook.fits(&demand))
    });
    // What was found by then need not be the smallest.
    if late.get() {
        return Err(ApiError::Unavailable("finding the smallest change took too long"));
    }
    Ok(ChangePage { change })
}

/// The pods of a namespace that hold something or wait, by name.
pub(super) fn pods<'a>(fleet: &'a CountedFleet, namespace: &str) -> Vec<PodPage<'a>> {
    let Overview { holders, pending, .. } = &fleet.overview;
    let held = holders.of_shares().filter(|charge| *charge.pod.namespace == *namespace);
    let held = held.map(|charge| holder(&fleet.overview, charge));
    let waiting = pending.iter().enumerate().filter(|(_, pod)| *pod.key.namespace == *namespace);
    let waiting = waiting.map(|(at, _)| self::waiting(at, &fleet.overview));
    let mut rows: Vec<_> = held.chain(waiting).collect();
    rows.sort_by_key(|row| row.name);
    rows
}

/// A pod that holds shares.
fn holder<'a>(overview: &Overview, charge: &'a Charge) -> PodPage<'a> {
    let key = &charge.pod;
    let state = overview.view.outlook.world().node(&charge.node);
    let cards = state.map(|state| NodeCards::of(state, overview.view.reader.dialects()));
    let held = held_on(cards.as_ref(), &charge.allocations, charge.init);
    let share = |HeldCard { id, card, used }: HeldCard<'_>| HeldShare {
        card: card
            .map_or_else(|| excerpt(&id.to_string(), VALUE).into_owned(), |card| card_id(&charge.node, card)),
        index: card.map(|card| card.card.index),
        model: card.map(|card| excerpt(&card.card.model, VALUE).into_owned()),
        memory: used.memory.get(),
        cores: used.cores.get(),
    };
    PodPage {
        namespace: &key.namespace,
        name: &key.name,
        outcome: if charge.commitment == Commitment::Bound {
            PodStanding::Bound
        } else {
            PodStanding::Waiting
        },
        node: Some(&charge.node),
        since: charge.importance.started,
        priority: charge.importance.priority,
        holds: held.into_iter().map(share).collect(),
        waits: None,
    }
}

/// A pod that waits, without what the nodes make of it and its history.
fn waiting(at: usize, overview: &Overview) -> PodPage<'_> {
    let (pod, of) = (&overview.pending[at], overview.pending.len());
    let waits = WaitingRow {
        asks: pod.demand.as_ref().map(asks).unwrap_or_default(),
        queue: QueuePlace { position: at + 1, of },
        leads: overview.leading == Leading::Yes,
        attempts: pod.attempts,
        reason: first_reason(pod),
        now: ExplanationRow {
            message: pod.reason.as_ref().map(|reason| message(reason, overview.details)),
            ..ExplanationRow::default()
        },
        history: Vec::new(),
    };
    PodPage {
        namespace: &pod.key.namespace,
        name: &pod.key.name,
        outcome: PodStanding::Waiting,
        node: None,
        since: Some(pod.created),
        priority: pod.priority,
        holds: Vec::new(),
        waits: Some(waits),
    }
}

/// What the nodes make of a pod now; `None`: finding out takes too long.
fn explained(overview: &Overview, demand: &Demand) -> Option<ExplanationRow> {
    let until = Instant::now() + PATIENCE;
    let go_on = || if Instant::now() < until { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
    let counts = PodCounts::bounded(STEPS).up_to(STEPS.left());
    overview.view.outlook.explain(demand, counts, go_on).map(ExplanationRow::from)
}
