//! What the plugins that look at more than one node found out for one pod, before its nodes are tested and scored: kube-scheduler's
//! PreFilter, PreScore and CycleState.

use std::fmt;

use super::{
    NodeReasons, Plugin, Reason, TABLE,
    contract::PreScored,
    pod_counts::PodCounts,
    row::{Prepared, Row},
    score::weights::ScoreWeights,
};
use crate::scheduling::{
    model::{pod::Demand, prebind_step::PrebindStep},
    world::{World, node_state::NodeState},
};

/// What each plugin found out for one pod that has something to do for it, in the order of the table. It holds as long as no pod, no node and no
/// other object changes, and for this time.
#[derive(Default)]
pub struct Cycle<'a>(Vec<Box<dyn Prepared<'a> + 'a>>);

impl<'a> Cycle<'a> {
    /// Asks each plugin what it has to do for this pod. The error, which is that of the first plugin, holds on every node.
    pub fn prepare(demand: &'a Demand, world: &'a World, counts: &mut PodCounts) -> Result<Self, Reason> {
        Self::prepare_rows(|_| true, demand, world, counts)
    }

    /// As [`Self::prepare`], without this plugin.
    pub(in crate::scheduling) fn prepare_but(
        left_out: Plugin,
        demand: &'a Demand,
        world: &'a World,
        counts: &mut PodCounts,
    ) -> Result<Self, Reason> {
        Self::prepare_rows(|row| row.plugin != left_out, demand, world, counts)
    }

    fn prepare_rows(
        takes_part: impl Fn(&Row) -> bool,
        demand: &'a Demand,
        world: &'a World,
        counts: &mut PodCounts,
    ) -> Result<Self, Reason> {
        let rows = TABLE.iter().filter(|row| takes_part(row));
        let prepared = rows
            .filter_map(|row| row.prepare)
            .filter_map(|prepare| prepare(demand, world, counts).transpose());
        prepared.collect::<Result<_, _>>().map(Self)
    }

    /// Every reason for which this plugin rejects the node.
    pub(in crate::scheduling) fn test_by(&self, plugin: Plugin, node: &NodeState) -> Result<(), NodeReasons> {
        let mut of_plugin = self.0.iter().filter(|prepared| prepared.plugin() == plugin);
        of_plugin.try_for_each(|prepared| prepared.test(node))
    }

    /// Whether no plugin has anything to do: every node passes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every reason of the first plugin that rejects the node.
    pub fn test(&self, node: &NodeState) -> Result<(), NodeReasons> {
        self.0.iter().try_for_each(|prepared| prepared.test(node))
    }

    /// By slot, of so many, whether the node may pass, by what plugins know of all nodes at once; `None`: nothing is known. Every other node fails
    /// [`Self::test`].
    pub fn may_pass(&self, slots: usize) -> Option<Vec<bool>> {
        let mut may_pass = vec![true; slots];
        let narrowed = self.0.iter().filter(|prepared| prepared.narrow(&mut may_pass)).count();
        (narrowed > 0).then_some(may_pass)
    }

    /// The reasons with what takes longer to find out.
    pub fn detailed(&self, node: &NodeState, reasons: &NodeReasons) -> NodeReasons {
        let detailed = |reason: &Reason| {
            let more = self.0.iter().find_map(|prepared| prepared.detailed(node, reason));
            more.unwrap_or_else(|| reason.clone())
        };
        reasons.iter().map(detailed).collect()
    }

    /// Whether the node has devices for the pod's claims.
    pub(in crate::scheduling) fn has_devices(&self, node: &NodeState) -> bool {
        self.test_by(Plugin::DynamicResources, node).is_ok()
    }

    /// What has to be written before the pod is bound to the node.
    pub fn steps(&self, node: &NodeState) -> Result<Vec<PrebindStep>, NodeReasons> {
        let mut steps = Vec::new();
        for prepared in &self.0 {
            steps.extend(prepared.steps(node)?);
        }
        Ok(steps)
    }
}

/// The plugins that have something to do: what they have found out is made of the whole cluster.
impl fmt::Debug for Cycle<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.iter().map(|prepared| prepared.plugin())).finish()
    }
}

/// What each plugin found out for one pod that scores by more than one node and has something to score for it. It holds as long as [`Cycle`] does.
#[derive(Default)]
pub struct Preferences<'a>(pub(super) Vec<(Plugin, Box<dyn PreScored + 'a>)>);

impl<'a> Preferences<'a> {
    /// Asks each plugin whose score has a weight above 0. `cycle` is what the plugins found out for its filters.
    pub fn prepare(
        demand: &'a Demand,
        world: &'a World,
        cycle: Option<&Cycle<'a>>,
        counts: &mut PodCounts,
        weights: &ScoreWeights,
    ) -> Self {
        let prepare = TABLE.iter().filter_map(|row| Some((row.plugin, row.prepare_score?)));
        let prepare = prepare.filter(|(plugin, _)| weights.counts(*plugin));
        let found = prepare.filter_map(|(plugin, prepare)| Some((plugin, prepare(demand, world, counts)?)));
        let mut found: Vec<_> = found.collect();
        for prepared in cycle.into_iter().flat_map(|cycle| &cycle.0) {
            if weights.counts(prepared.plugin()) {
                found.extend(prepared.scoring().map(|scoring| (prepared.plugin(), scoring)));
            }
        }
        Self(found)
    }

    /// Whether no plugin has anything to score.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The plugins that have something to score.
impl fmt::Debug for Preferences<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.iter().map(|(plugin, _)| plugin)).finish()
    }
}
