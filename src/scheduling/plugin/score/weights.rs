//! The plugins that score, and by how much the score of each counts.

use crate::scheduling::{
    model::kube_scheduler::KubeScheduler,
    plugin::{Plugin, TABLE},
};

/// How many plugins score.
pub(super) const SCORING: usize = place(TABLE.len());

/// The place among the plugins that score of the one that has this place in the table.
pub(super) const fn place(row: usize) -> usize {
    let (mut at, mut before) = (0, 0);
    while at < row {
        before += TABLE[at].weight.is_some() as usize;
        at += 1;
    }
    before
}

/// By how much each plugin's score is multiplied, in the order of the table. The defaults are kube-scheduler's (v1.36
/// `pkg/scheduler/apis/config/v1/default_plugins.go`), unless the plugin says why it has another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ScoreWeights(pub(super) [u32; SCORING]);

impl Default for ScoreWeights {
    fn default() -> Self {
        Self::each(|plugin| plugin.default_weight(KubeScheduler::default()))
    }
}

impl ScoreWeights {
    /// The weights that `of` gives for each plugin.
    pub fn each(of: impl Fn(Plugin) -> u32) -> Self {
        let mut weights = [0; SCORING];
        for (own, plugin) in weights.iter_mut().zip(Plugin::scoring()) {
            *own = of(plugin);
        }
        Self(weights)
    }

    /// Whether the plugin's score can decide between nodes: its weight is above 0. As in kube-scheduler, a plugin whose score can't is
    /// not asked for one where the score depends on more than one node.
    pub fn counts(&self, plugin: Plugin) -> bool {
        TABLE[plugin as usize].weight.is_some() && self.0[place(plugin as usize)] > 0
    }
}
