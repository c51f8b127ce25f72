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
mod totals;

use std::{collections::BTreeMap, fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet},
    metrics::MetricType,
    registry::Registry,
};

use self::totals::{RowCounts, Totals};
use super::gpus::models::FleetGpus;
use crate::{
    dialect::Dialects,
    scheduling::{
        Scheduler,
        model::{measure::Waiting, pod_shape::PodShape},
        world::{World, ledger::Charges},
    },
};

/// What the binder holds, for one scrape.
#[derive(Debug)]
pub struct Holdings {
    dialects: Dialects,
    world: World,
    charges: Charges,
    waiting: Waiting,
    /// The shapes of pods that may come, and how much each counts.
    shapes: Vec<(Arc<PodShape>, u32)>,
}

/// Which series there are beside those of nodes, namespaces and quotas.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ShownSeries {
    /// One series for each pod and card.
    pub pods: Series,
    /// The metrics of HAMi's scheduler, under its names and labels.
    pub hami: Series,
    /// So many series of single cards, devices and pods are shown at most, where none are asked for.
    pub limit: usize,
    /// What the scraper asks to have shown singly, whatever the number of series.
    pub asked: Option<SeriesDetail>,
}

/// What has series of its own; the greater ones include the lesser.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum SeriesDetail {
    /// No card, device or pod.
    Nodes,
    /// Each card and device.
    Cards,
    /// Each card that a pod holds a share of, too.
    Pods,
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
        Some(Self {
            dialects: dialects.clone(),
            world: snapshot.world().clone(),
            charges: snapshot.ledger().shared(),
            waiting: scheduler.view().waiting(),
            shapes: snapshot.packing().shared_shapes(),
        })
    }

    /// The GPUs by model, and what of them is of use for the pods that may come.
    pub fn gpus(&self) -> BTreeMap<String, FleetGpus> {
        let models = Totals::of(self).gpus;
        models.into_iter().map(|(model, gpus)| (model.to_string(), gpus)).collect()
    }

    /// The metrics of it.
    pub fn registry(self, shown: ShownSeries) -> Registry {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Exposition { holdings: self, shown }));
        registry
    }
}

/// What is shown of some holdings.
struct Exposition {
    holdings: Holdings,
    shown: ShownSeries,
}

/// Without the holdings, which are those of the whole cluster.
impl fmt::Debug for Exposition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Exposition").field("shown", &self.shown).finish_non_exhaustive()
    }
}

impl Collector for Exposition {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let Self { holdings, shown } = self;
        let Totals { nodes, namespaces, gpus, rows } = Totals::of(holdings);
        own::nodes(&mut encoder, &nodes)?;
        drop(nodes);
        gpus::gpus(&mut encoder, &gpus)?;
        own::namespaces(&mut encoder, &namespaces)?;
        own::quotas(&mut encoder, holdings.world.quotas())?;
        own::waiting(&mut encoder, &holdings.waiting)?;
        if shown.hami == Series::Exported {
            hami::quotas(&mut encoder, holdings)?;
            legacy::quotas(&mut encoder, holdings)?;
            hami::build(&mut encoder)?;
        }
        let series = shown.series(rows);
        let detail = shown.detail(series);
        let left_out = |kind: SeriesDetail, series: usize| if detail < kind { series } else { 0 };
        let [cards, pods] = series;
        own::left_out(
            &mut encoder,
            [("cards", left_out(SeriesDetail::Cards, cards)), ("pods", left_out(SeriesDetail::Pods, pods))],
        )?;
        if detail == SeriesDetail::Nodes { Ok(()) } else { self.single(&mut encoder, detail) }
    }
}

impl Exposition {
    /// The series of single cards, devices and pods.
    fn single(&self, encoder: &mut DescriptorEncoder, detail: SeriesDetail) -> fmt::Result {
        let Self { holdings, shown } = self;
        let hami = shown.hami == Series::Exported;
        let nodes = rows::nodes(holdings);
        let cards: BTreeMap<&str, _> =
            nodes.iter().map(|node| (&*node.state.info.name, &node.cards)).collect();
        let rows = rows::cards(&cards);
        own::cards(encoder, &rows)?;
        devices::devices(encoder, holdings)?;
        if hami {
            hami::cards(encoder, &rows)?;
            legacy::cards(encoder, &rows)?;
        }
        drop(rows);
        if detail < SeriesDetail::Pods {
            return Ok(());
        }
        let rows = rows::pods(holdings, &cards);
        if shown.pods == Series::Exported {
            own::pods(encoder, &rows)?;
        }
        if hami {
            hami::pods(encoder, &rows)?;
            legacy::pods(encoder, &rows)?;
        }
        Ok(())
    }
}

impl ShownSeries {
    /// How many series there would be of these cards and devices, and of these pods.
    fn series(self, rows: RowCounts) -> [usize; 2] {
        let RowCounts { cards, devices, held } = rows;
        let of = |series: Series, each: usize| if series == Series::Exported { each } else { 0 };
        let hami_cards = of(self.hami, hami::OF_A_CARD + legacy::OF_A_CARD);
        let hami_pods = of(self.hami, hami::OF_A_POD + legacy::OF_A_POD);
        [
            cards * (own::OF_A_CARD + hami_cards) + devices * devices::OF_A_DEVICE,
            held * (of(self.pods, own::OF_A_POD) + hami_pods),
        ]
    }

    /// What is shown singly, of so many series of cards and of pods.
    fn detail(self, [cards, pods]: [usize; 2]) -> SeriesDetail {
        self.asked.unwrap_or(match () {
            () if cards.saturating_add(pods) <= self.limit => SeriesDetail::Pods,
            () if cards <= self.limit => SeriesDetail::Cards,
            () => SeriesDetail::Nodes,
        })
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
