//! What one scrape of `/metrics` shows of the cluster: cards, GPUs that are of use, devices by type, pods, namespaces, quotas, and why pods wait.
//!
//! Rendered from what the leader's loop holds at the moment of the scrape; no gauge is kept between two. The loop only copies
//! references: all counting is done outside it. Must not change anything.

mod devices;
mod gpus;
mod hami;
mod legacy;
mod own;
mod rows;

use std::{collections::BTreeMap, fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet},
    metrics::MetricType,
    registry::Registry,
};

use super::gpus::models::{FleetGpus, by_model};
use crate::{
    dialect::Dialects,
    scheduling::{
        PodKey, Scheduler,
        model::{measure::Waiting, pod_shape::PodShape},
        world::{ledger::Charge, node_state::NodeState, quota::Quotas},
    },
};

/// What the binder holds, for one scrape.
#[derive(Debug)]
pub struct Holdings {
    dialects: Dialects,
    nodes: Vec<Arc<NodeState>>,
    /// Those that hold shares of cards.
    pods: Vec<(PodKey, Arc<Charge>)>,
    quotas: Quotas,
    waiting: Waiting,
    /// The shapes of pods that may come, and how much each counts.
    shapes: Vec<(Arc<PodShape>, u32)>,
}

/// Which series there are beside those of cards, devices, namespaces and quotas.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ShownSeries {
    /// One series for each pod and card.
    pub pods: Series,
    /// The metrics of HAMi's scheduler, under its names and labels.
    pub hami: Series,
}

/// Whether a kind of series is exported.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Series {
    /// It is.
    Exported,
    /// It is not.
    LeftOut,
}

impl Holdings {
    /// What a scheduler holds; `None` until it has listed everything, since a part of the cards would look like the whole.
    pub fn of(scheduler: &Scheduler, dialects: &Dialects) -> Option<Self> {
        let snapshot = scheduler.view().is_synced().then(|| scheduler.snapshot())?;
        let pods = scheduler.view().holders().map(|(key, charge)| (key.clone(), charge.clone()));
        Some(Self {
            dialects: dialects.clone(),
            nodes: snapshot.nodes().cloned().collect(),
            pods: pods.collect(),
            quotas: snapshot.quotas().clone(),
            waiting: scheduler.view().waiting(),
            shapes: snapshot.packing().shared_shapes(),
        })
    }

    /// The GPUs by model, and what of them is of use for the pods that may come.
    pub fn gpus(&self) -> BTreeMap<String, FleetGpus> {
        let nodes = rows::nodes(self);
        let models = by_model(nodes.iter().map(|node| (node.state, &node.cards)), &self.shapes);
        models.into_iter().map(|(model, gpus)| (model.into_owned(), gpus)).collect()
    }

    /// The metrics of it.
    pub fn registry(self, shown: ShownSeries) -> Registry {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Exposition { holdings: self, shown }));
        registry
    }
}

/// What is shown of some holdings.
#[derive(Debug)]
struct Exposition {
    holdings: Holdings,
    shown: ShownSeries,
}

impl Collector for Exposition {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let nodes = rows::nodes(&self.holdings);
        let cards: BTreeMap<&str, _> =
            nodes.iter().map(|node| (&*node.state.info.name, &node.cards)).collect();
        let rows = rows::Rows::of(&self.holdings, &cards);
        own::cards(&mut encoder, &rows.cards)?;
        gpus::gpus(&mut encoder, &nodes, &self.holdings.shapes)?;
        devices::devices(&mut encoder, &self.holdings)?;
        if self.shown.pods == Series::Exported {
            own::pods(&mut encoder, &rows.pods)?;
        }
        own::namespaces(&mut encoder, &rows.pods)?;
        own::quotas(&mut encoder, &self.holdings.quotas)?;
        own::waiting(&mut encoder, &self.holdings.waiting)?;
        if self.shown.hami == Series::Exported {
            hami::cards(&mut encoder, &rows.cards)?;
            hami::pods(&mut encoder, &rows.pods)?;
            hami::quotas(&mut encoder, &self.holdings)?;
            legacy::cards(&mut encoder, &rows.cards)?;
            legacy::pods(&mut encoder, &rows.pods)?;
            legacy::quotas(&mut encoder, &self.holdings)?;
            hami::build(&mut encoder)?;
        }
        Ok(())
    }
}

/// Writes one gauge: a row for each set of labels.
fn gauge<L: EncodeLabelSet, V: EncodeGaugeValue>(
    encoder: &mut DescriptorEncoder,
    (name, help): (&str, &str),
    rows: impl Iterator<Item = (L, V)>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in rows {
        metric.encode_family(&labels)?.encode_gauge(&value)?;
    }
    Ok(())
}

/// MiB in bytes. A gauge is a floating point number: exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "a card's memory is far below 2^53 bytes")]
fn bytes(mebibytes: crate::device::MiB) -> f64 {
    mebibytes.get() as f64 * 1_048_576.0
}
