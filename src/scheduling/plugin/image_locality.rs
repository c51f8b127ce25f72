//! How many bytes of a pod's images a node has already.
//!
//! Source: v1.36 and v1.37 `pkg/scheduler/framework/plugins/imagelocality/image_locality.go`. Upstream takes the size of an image from the
//! node that reported its name first; here each node's own counts.

use std::convert::Infallible;

use super::{
    contract::{FeasibleNodes, PreScore, PreScored, SchedulingPlugin},
    pod_counts::PodCounts,
    score::range::{MOST, float, whole},
};
use crate::scheduling::{
    model::{kube_scheduler::KubeScheduler, node::NodeInfo, pod::Demand},
    world::World,
};

/// Prefers nodes that have the pod's images. Its weight is 1 in kube-scheduler; here it is 0 unless it is set, since it makes every node's images be
/// kept.
#[derive(Debug)]
pub struct ImageLocality;

impl SchedulingPlugin for ImageLocality {
    const NAME: &'static str = "ImageLocality";
    const WEIGHT: Option<u32> = Some(0);

    type Reason = Infallible;
}

impl PreScore for ImageLocality {
    type Found<'a> = LocalImages<'a>;

    fn prepare<'a>(demand: &'a Demand, world: &'a World, _counts: &mut PodCounts) -> Option<LocalImages<'a>> {
        LocalImages::of(demand, world)
    }
}

const MB: i64 = 1024 * 1024;
/// Below so many bytes a node's images are worth nothing.
const LEAST_BYTES: i64 = 23 * MB;
/// Beyond so many bytes for each container, and each image volume from v1.37 on, they are worth no more.
const MOST_BYTES: i64 = 1000 * MB;

/// The pod's images that some node has.
#[derive(Debug)]
pub struct LocalImages<'a> {
    /// Each name, and which part of all nodes has it: an image that few nodes have counts less, so that these don't draw every pod.
    images: Vec<(&'a str, f64)>,
    /// The bytes beyond which a node's images are worth no more.
    most: i64,
}

impl<'a> LocalImages<'a> {
    /// The images as nodes have them now; `None`: no node has any.
    fn of(demand: &'a Demand, world: &World) -> Option<Self> {
        let wanted = &demand.origin.as_ref()?.images;
        let all = count(world.nodes.slots().iter().flatten().count());
        let known = wanted.names.iter().map(|name| (&**name, count(world.nodes.images().nodes(name)) / all));
        let images: Vec<_> = known.filter(|(_, part)| *part > 0.0).collect();
        let counted = match world.arguments().get().copied().unwrap_or_default() {
            // An image volume adds to the bytes on the node and not to those beyond which they are worth no more.
            KubeScheduler::V1_36 => wanted.containers,
            KubeScheduler::V1_37 => wanted.names.len(),
        };
        let counted = i64::try_from(counted).unwrap_or(i64::MAX);
        (!images.is_empty()).then_some(Self { images, most: MOST_BYTES.saturating_mul(counted.max(1)) })
    }

    /// 0 to 100: 0 up to 23 MiB of the pod's images on the node, 100 from 1000 MiB for each image that counts on.
    fn score(&self, node: &NodeInfo) -> i64 {
        let worth = |(name, part): &(&str, f64)| Some(whole(float(node.images.size(name)?) * part));
        let bytes = self.images.iter().filter_map(worth).fold(0, i64::saturating_add);
        MOST * (bytes.clamp(LEAST_BYTES, self.most) - LEAST_BYTES) / (self.most - LEAST_BYTES)
    }
}

impl PreScored for LocalImages<'_> {
    fn normalised(&self, feasible: FeasibleNodes<'_>) -> Vec<i64> {
        feasible.each(|node| self.score(&node.info))
    }
}

fn count(nodes: usize) -> f64 {
    float(i64::try_from(nodes).unwrap_or(i64::MAX))
}
