//! The nearest miss: of the nodes that can't have a pod, the one that comes closest, and what it lacks.
//!
//! The closest node has passed the most filters; among those that stop at the same one, it lacks the least. Nodes without cards of the
//! pod's kind come last.

use std::{cmp::Ordering, fmt, sync::Arc};

use super::{
    Filters,
    remedy::{Remedy, remedy},
};
use crate::device::{CardId, CoreUnit, Quota};
use crate::scheduling::{
    model::{name::NodeName, pod::Ask},
    plugin::{
        NodeReasons, Reason,
        allocate::explain::{self, CardFailure, InsufficientAmount},
        devices::{CardReason, DeviceReason},
        rejection::Shortage,
    },
    world::node_state::NodeState,
};

/// The node that comes closest to having a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// The node.
    pub node: NodeName,
    /// What it lacks.
    pub lacks: Vec<Lack>,
    /// The smallest change of the pod with which the node would have it, where one was found.
    pub remedy: Option<Remedy>,
    /// What the compute of its cards is counted in.
    core_unit: CoreUnit,
}

/// One thing that a node lacks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Lack {
    /// Something of one card; the amounts where the test is about one.
    Card(CardFailure),
    /// So many cards more.
    Cards(usize),
    /// Anything else.
    Node(Reason),
}

/// How close a node comes; the greater, the closer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Closeness {
    /// How many filters it passes, and one more; 0 where it offers no cards of the pod's kind.
    passes: usize,
    /// What it lacks: for each amount the part that is missing, for anything else more than 1.
    lacks: f64,
}

impl Eq for Closeness {}

impl PartialOrd for Closeness {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Closeness {
    fn cmp(&self, other: &Self) -> Ordering {
        self.passes.cmp(&other.passes).then_with(|| other.lacks.total_cmp(&self.lacks))
    }
}

/// What can't be had by less of an amount is worth more than any amount.
const NOT_AN_AMOUNT: f64 = 2.0;

/// A card that is not there is worth more than one that does not fit.
const NO_CARD: f64 = 3.0;

impl Closeness {
    /// How close the node comes to having a pod that it refuses for these reasons.
    pub fn of(ask: &Ask, node: &NodeState, reasons: &NodeReasons, quotas: &[Quota]) -> Self {
        let offers_all = ask.profiles().all(|profile| node.info.devices.offer(profile).is_some());
        let passes = if offers_all { passes(reasons) } else { 0 };
        let (_, lacks) = lacks(ask, node, reasons, quotas);
        Self { passes, lacks: lacks.iter().map(Lack::weight).sum() }
    }
}

/// How many filters a node has passed that is refused for these reasons, in the order in which they run, and one more.
fn passes(reasons: &NodeReasons) -> usize {
    reasons.iter().map(Reason::passed).max().map_or(0, |passed| passed + 1)
}

/// Nodes that are refused for the same reasons and come as close.
#[derive(Clone, Debug)]
pub struct FailedNodes<'a> {
    /// The first of them by name.
    pub first: &'a Arc<NodeState>,
    /// How many they are.
    pub count: usize,
    /// The reasons.
    pub reasons: &'a NodeReasons,
    /// How close they come all the same.
    pub closeness: Closeness,
}

/// The nearest of these nodes; equals go by name.
pub fn nearest<'a>(filters: &Filters<'_>, failed: impl Iterator<Item = FailedNodes<'a>>) -> Option<Nearest> {
    let nodes = &filters.world.nodes;
    let closest = failed.reduce(|closest, other| {
        let is_closer = match other.closeness.cmp(&closest.closeness) {
            Ordering::Equal => nodes.comes_before(other.first.slot, closest.first.slot),
            order => order.is_gt(),
        };
        if is_closer { other } else { closest }
    });
    let FailedNodes { first: state, reasons, .. } = closest?;
    let (ask, quotas) = (&filters.demand.ask, filters.quotas());
    let detailed = filters.cycle.as_ref().ok().map(|cycle| cycle.detailed(state, reasons));
    let (at, lacks) = lacks(ask, state, detailed.as_ref().unwrap_or(reasons), quotas);
    let cards = reasons.iter().any(Reason::is_of_cards);
    let remedy = || remedy(ask, at, state, filters.world.device_resources(), quotas);
    Some(Nearest {
        node: state.info.name.clone(),
        lacks,
        core_unit: ask.devices.get(at).map(|device| device.profile.core_budget.unit()).unwrap_or_default(),
        // Nothing is said of a change that the other filters have not been asked about.
        remedy: if cards && filters.look_at_one_node() { remedy() } else { None },
    })
}

impl Nearest {
    /// What the pod's owner is told of it who is told of her own objects alone; `None`: nothing.
    pub(super) fn own_words(&self) -> Option<String> {
        let of_node = |lack: &Lack| match lack {
            Lack::Node(reason) => reason.own_detail(),
            Lack::Card(_) | Lack::Cards(_) => None,
        };
        let words: Vec<String> = self.lacks.iter().filter_map(of_node).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

/// What a node lacks that is refused for these reasons: of its cards as many as are missing, those first that lack least; and the place
/// of the request of cards that it lacks them for.
pub fn lacks(ask: &Ask, node: &NodeState, reasons: &NodeReasons, quotas: &[Quota]) -> (usize, Vec<Lack>) {
    let of_node = || reasons.iter().cloned().map(Lack::Node).collect();
    let of_cards = reasons.iter().any(Reason::is_of_cards);
    let short = of_cards.then(|| explain::short_on(ask, node, quotas)).flatten();
    let Some((at, short)) = short else { return (0, of_node()) };
    (at, short.lacks().unwrap_or_else(of_node))
}

impl explain::Short {
    /// As many cards as are missing, those first that lack least; `None` where cards that fit one by one do not fit together: on one
    /// NUMA node, or within the quota.
    fn lacks(self) -> Option<Vec<Lack>> {
        let Self { wanted, fitting, failures } = self;
        let missing = wanted.saturating_sub(fitting).max(1);
        let mut failed: Vec<_> = failures.into_iter().map(Lack::Card).collect();
        failed.sort_by(|one, other| one.weight().total_cmp(&other.weight()));
        failed.truncate(missing);
        if failed.is_empty() && fitting >= wanted {
            return None;
        }
        let absent = missing.saturating_sub(failed.len());
        failed.extend((absent > 0).then_some(Lack::Cards(absent)));
        Some(failed)
    }
}

impl Lack {
    /// The reason's name, as `berth simulate --explain` prints it.
    pub fn reason(&self) -> String {
        match self {
            Self::Card(failure) => failure.reason.name().to_owned(),
            Self::Cards(_) => Reason::Devices(DeviceReason::TooFewCards).name(),
            Self::Node(reason) => reason.name(),
        }
    }

    /// The card that it is about.
    pub fn card(&self) -> Option<&CardId> {
        match self {
            Self::Card(failure) => Some(&failure.card),
            Self::Cards(_) | Self::Node(_) => None,
        }
    }

    /// How much is missing, where it is an amount: MiB, percent of compute, slots, cards; of another resource in its own unit, cpu in
    /// thousandths.
    pub fn by(&self) -> Option<u64> {
        match self {
            Self::Card(CardFailure { amounts, .. }) => amounts.map(InsufficientAmount::missing),
            Self::Cards(count) => u64::try_from(*count).ok(),
            Self::Node(reason) => {
                let Shortage { requested, free, .. } = reason.shortage()?;
                u64::try_from(requested.saturating_sub(free)).ok()
            }
        }
    }

    fn weight(&self) -> f64 {
        match self {
            Self::Card(CardFailure { amounts: Some(amounts), .. }) => amounts.part_missing(),
            #[expect(clippy::cast_precision_loss, reason = "a node has few cards")]
            Self::Cards(count) => NO_CARD * *count as f64,
            Self::Node(reason) => {
                reason.shortage().map_or(NOT_AN_AMOUNT, |Shortage { requested, free, .. }| {
                    let amount = |amount: i64| u64::try_from(amount).unwrap_or(0);
                    InsufficientAmount { needed: amount(requested), free: amount(free) }.part_missing()
                })
            }
            Self::Card(_) => NOT_AN_AMOUNT,
        }
    }

    /// `2048 MiB on GPU-a`, `500m cpu`, `had untolerated taint(s)`.
    fn words(&self, core_unit: CoreUnit) -> String {
        match (self, self.by()) {
            (Self::Card(CardFailure { card, reason, .. }), Some(by)) => match (reason, core_unit) {
                (CardReason::CardInsufficientMemory, _) => format!("{by} MiB on {card}"),
                (CardReason::CardInsufficientCore, CoreUnit::Percent) => format!("{by} % compute on {card}"),
                (CardReason::CardInsufficientCore, CoreUnit::Units) => {
                    format!("{by} {} on {card}", core_unit.name())
                }
                _ => format!("{by} slot(s) on {card}"),
            },
            (Self::Card(CardFailure { card, reason, .. }), None) => of_card(*reason, card),
            (Self::Cards(count), _) => format!("{count} GPU(s)"),
            (Self::Node(reason), by) => {
                if let (Some(Shortage { resource, .. }), Some(by)) = (reason.shortage(), by) {
                    return if resource == "cpu" { cpu(by) } else { format!("{by} {resource}") };
                }
                let words = reason.to_string();
                words.strip_prefix("node(s) ").unwrap_or(&words).to_owned()
            }
        }
    }

    /// Whether it reads as something that a node lacks; anything else is said of the node as it is.
    fn is_amount(&self) -> bool {
        self.by().is_some()
    }
}

/// What is said of a card that lacks no amount.
fn of_card(reason: CardReason, card: &impl fmt::Display) -> String {
    match reason {
        CardReason::CardNotHealth => format!("{card} is unhealthy"),
        CardReason::CardCordoned => format!("{card} is cordoned"),
        CardReason::CardTypeMismatch => format!("{card} is of another type"),
        CardReason::CardUuidMismatch => format!("{card} has another UUID"),
        CardReason::ModeNotFit => format!("{card} is in another mode"),
        CardReason::NumaNotFit => format!("{card} is on another NUMA node"),
        CardReason::CardTimeSlicingExhausted => format!("no free slot on {card}"),
        CardReason::CardMarkConflict => format!("{card} is used by a Pod that must not share it"),
        CardReason::ResourceQuotaNotFit => format!("the quota leaves too little for {card}"),
        CardReason::CardInsufficientMemory => format!("too little memory on {card}"),
        CardReason::CardInsufficientCore => format!("too little compute on {card}"),
        CardReason::ExclusiveDeviceAllocateConflict => format!("{card} is not free for exclusive use"),
        CardReason::CardComputeUnitsExhausted => format!("no compute left on {card}"),
        CardReason::CardMigTopologyInfeasible => format!("no free MIG slice of the size on {card}"),
    }
}

/// Thousandths of a cpu: `500m cpu`, `2 cpu`, `108.1 cpu`.
fn cpu(thousandths: u64) -> String {
    let (whole, rest) = (thousandths / 1000, thousandths % 1000);
    match (whole, rest) {
        (_, 0) => format!("{whole} cpu"),
        (0, _) => format!("{rest}m cpu"),
        _ => format!("{whole}.{} cpu", format!("{rest:03}").trim_end_matches('0')),
    }
}

/// `node-7 lacks 2048 MiB on GPU-a; fits with at most 6144 MiB per card`.
impl fmt::Display for Nearest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (amounts, others): (Vec<&Lack>, Vec<&Lack>) =
            self.lacks.iter().partition(|lack| lack.is_amount());
        let list = |lacks: Vec<&Lack>| {
            lacks.into_iter().map(|lack| lack.words(self.core_unit)).collect::<Vec<_>>().join(", ")
        };
        write!(formatter, "{}", self.node)?;
        if !amounts.is_empty() {
            write!(formatter, " lacks {}", list(amounts))?;
        }
        if !others.is_empty() {
            write!(formatter, ": {}", list(others))?;
        }
        self.remedy.iter().try_for_each(|remedy| write!(formatter, "; fits {remedy}"))
    }
}

#[cfg(test)]
mod tests;
