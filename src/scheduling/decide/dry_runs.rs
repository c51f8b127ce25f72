//! What dry runs find out about nodes, kept for the next: which nodes are alike, and the verdicts of the pods that were asked about last.
//!
//! It belongs to those who ask. Nothing of it reaches the scheduler, and it holds for one scheduler's view of the cluster.

use std::{
    collections::{BTreeSet, VecDeque},
    ops::ControlFlow,
    sync::Arc,
};

use super::{
    judging::Judging,
    verdicts::{NodeIndex, Verdicts},
};
use crate::scheduling::{
    model::{plugin_arguments::PluginArguments, pod::Ask},
    plugin::score::weights::ScoreWeights,
    world::World,
};

/// What is known from dry runs before.
#[derive(Debug, Default)]
pub struct DryRuns {
    of: Option<Lineage>,
    index: NodeIndex,
    /// The asks that were asked about last, the latest at the end.
    asked: VecDeque<(Arc<Ask>, Verdicts)>,
}

/// Which scheduler a world is of: generations of nodes are its own.
#[derive(Clone, Debug)]
struct Lineage {
    resources: Arc<BTreeSet<String>>,
    arguments: Arc<PluginArguments>,
    weights: ScoreWeights,
}

/// Of so many asks the verdicts are kept: each takes 24 bytes for a node.
const KEPT: usize = 8;

impl DryRuns {
    /// Finds out which nodes are alike, and once there has been a dry run, what is free on them, so that the next one need not.
    pub(super) fn prepare(&mut self, world: &World, weights: ScoreWeights) {
        self.follow(world, weights);
        let slots = 0..world.nodes.slots().len();
        let _ = self.index.likenesses.refresh(world, slots, &mut || ControlFlow::Continue(()));
        // That takes several megabytes in a large cluster, and many clusters are never asked.
        if !self.asked.is_empty() {
            let _ = self.index.free_rooms.refresh(world, &mut || ControlFlow::Continue(()));
        }
    }

    /// Forgets what the world of another scheduler has shown.
    fn follow(&mut self, world: &World, weights: ScoreWeights) {
        let World { device_resources, arguments, .. } = world;
        let is_same = |of: &Lineage| {
            Arc::ptr_eq(&of.resources, device_resources)
                && Arc::ptr_eq(&of.arguments, arguments)
                && of.weights == weights
        };
        if !self.of.as_ref().is_some_and(is_same) {
            let (resources, arguments) = (device_resources.clone(), arguments.clone());
            *self = Self { of: Some(Lineage { resources, arguments, weights }), ..Self::default() };
        }
    }

    /// What these nodes are to a pod that asks for this; `None`: `go_on` has said no, and what was found out until then is kept.
    pub(super) fn judge(
        &mut self,
        ask: &Arc<Ask>,
        (world, weights): (&World, ScoreWeights),
        judging: Judging,
        go_on: impl FnMut() -> ControlFlow<()>,
    ) -> Option<&Verdicts> {
        self.follow(world, weights);
        let known = self.asked.iter().position(|(known, _)| known == ask);
        let (ask, mut verdicts) =
            known.and_then(|at| self.asked.remove(at)).unwrap_or_else(|| (ask.clone(), Verdicts::default()));
        let judged = verdicts.update_alike_while(&ask, (world, weights), &mut self.index, judging, go_on);
        if self.asked.len() == KEPT {
            self.asked.pop_front();
        }
        self.asked.push_back((ask, verdicts));
        judged?;
        self.asked.back().map(|(_, verdicts)| verdicts)
    }
}

#[cfg(test)]
mod tests;
