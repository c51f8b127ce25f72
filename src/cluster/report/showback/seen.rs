//! What there is to count: what pods hold and have held, and which GPUs are stranded, in whole amounts.
//!
//! The loop copies references only; all counting is done outside it.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;

use crate::{
    cluster::report::{
        cards::{HeldCard, NodeCards, held_on},
        gpus::{Lack, models::by_model},
    },
    device::CoreUnit,
    dialect::Dialects,
    object::selector::LabelValues,
    scheduling::{
        Scheduler,
        model::{pod_shape::PodShape, workload::Workload},
        showback::{HeldParts, StrandedAmount, UsageSpan},
        world::{
            World,
            ledger::{Charges, Commitment, EndedCharge, EndedCharges},
            node_state::NodeState,
        },
    },
};

/// What a scheduler holds, to be counted.
#[derive(Debug)]
pub(super) struct SeenCluster {
    dialects: Dialects,
    world: World,
    /// What pods hold now.
    charges: Charges,
    /// What they held before.
    ended: EndedCharges,
    now: Timestamp,
    /// The shapes of pods that may come, and how much each counts.
    shapes: Vec<(Arc<PodShape>, u32)>,
}

impl SeenCluster {
    /// What a scheduler holds now, and what pods held before.
    pub(super) fn of(
        scheduler: &Scheduler,
        dialects: &Dialects,
        ended: &EndedCharges,
        now: Timestamp,
    ) -> Self {
        let snapshot = scheduler.snapshot();
        Self {
            dialects: dialects.clone(),
            world: snapshot.world().clone(),
            charges: snapshot.ledger().shared(),
            ended: ended.clone(),
            now,
            shapes: snapshot.packing().shared_shapes(),
        }
    }

    /// What is to be counted of pods, with the values of these labels, and of free GPUs.
    pub(super) fn counted(&self, labels: &[Arc<str>]) -> (Vec<UsageSpan>, Vec<StrandedAmount>) {
        let nodes: BTreeMap<&str, (&NodeState, NodeCards<'_>)> = self
            .world
            .nodes()
            .map(|node| (&*node.info.name, (&**node, NodeCards::of(node, &self.dialects))))
            .filter(|(_, (_, cards))| !cards.cards.is_empty())
            .collect();
        let bound = self.charges.of_shares().filter(|charge| charge.commitment == Commitment::Bound);
        let held = bound.map(|charge| (charge, self.now));
        let ended = self.ended.iter().map(|EndedCharge { charge, until, .. }| (charge, *until));
        let spans = held.chain(ended).filter_map(|(charge, until)| {
            let tenure = charge.tenure.as_ref()?;
            let cards = nodes.get(&*charge.node).map(|(_, cards)| cards);
            let cards = held_on(cards, &charge.allocations, charge.init);
            Some(UsageSpan {
                pod: charge.pod.uid.clone(),
                namespace: charge.pod.namespace.clone(),
                workload: Workload::clone(&tenure.workload),
                labels: values(labels, |label| charge.footprint.labels.value(label)),
                held: parts(&cards),
                from: tenure.since,
                until,
            })
        });
        let models = by_model(nodes.values().map(|(node, cards)| (*node, cards)), &self.shapes);
        let stranded = models.iter().flat_map(|(model, fleet)| {
            let model: Arc<str> = (&**model).into();
            let lacks = Lack::ALL.into_iter().zip(fleet.stranded);
            lacks.map(move |(lack, gpus)| StrandedAmount {
                model: model.clone(),
                reason: lack.as_str().into(),
                gpus: rounded(gpus),
            })
        });
        (spans.collect(), stranded.collect())
    }
}

/// Each label with its value; empty where there is none.
pub fn values<'a>(labels: &[Arc<str>], value: impl Fn(&str) -> Option<&'a str>) -> Vec<[Arc<str>; 2]> {
    labels.iter().map(|label| [label.clone(), value(label).unwrap_or_default().into()]).collect()
}

/// What a pod holds of all its cards.
pub fn parts(cards: &[HeldCard<'_>]) -> HeldParts {
    cards.iter().fold(HeldParts::default(), |sum, held| {
        let (memory, cores) = (held.used.memory.get(), u64::from(held.used.cores.get()));
        let (percent, gpus) = match held.card {
            Some(card) => {
                let all = u64::from(card.cores.get());
                let percent = if card.unit == CoreUnit::Percent { cores } else { portion(cores, all, 100) };
                let gpus = portion(memory, card.card.memory.get(), 1000).max(portion(cores, all, 1000));
                (percent, gpus.min(1000))
            }
            // Of a card that its node does not have (any more), only the compute tells how much of it is held.
            None => (cores, portion(cores, 100, 1000).min(1000)),
        };
        HeldParts { memory: sum.memory + memory, cores: sum.cores + percent, gpus: sum.gpus + gpus }
    })
}

/// So many of `of` parts, rounded.
fn portion(part: u64, whole: u64, of: u64) -> u64 {
    (part.saturating_mul(of) + whole / 2).checked_div(whole).unwrap_or(0)
}

/// In thousandths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of GPUs that are free")]
fn rounded(gpus: f64) -> u64 {
    (gpus * 1000.0).round() as u64
}
