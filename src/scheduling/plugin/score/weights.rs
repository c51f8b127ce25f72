//! The plugins that score, and by how much the score of each counts.

use crate::scheduling::model::plugin::Plugin;

/// The plugins that score, with their default weights (v1.36 `pkg/scheduler/apis/config/v1/default_plugins.go`). [`Plugin::Devices`]
/// is Berth's own. [`Plugin::ImageLocality`] has weight 1 in kube-scheduler; here its weight is 0 unless it is set, since it makes
/// every node's images be kept. [`Plugin::Tdm`] is Volcano's, which adds its score to others of about one tenth of that: with this weight a
/// pod takes a node of an open revocable zone before any other. [`Plugin::VolumeBinding`] scores in kube-scheduler by a feature gate that is off by default in v1.36.
pub const SCORING: [(Plugin, u32); 9] = [
    (Plugin::TaintToleration, 3),
    (Plugin::NodeAffinity, 2),
    (Plugin::PodTopologySpread, 2),
    (Plugin::InterPodAffinity, 2),
    (Plugin::NodeResourcesBalancedAllocation, 1),
    (Plugin::ImageLocality, 0),
    (Plugin::VolumeBinding, 0),
    (Plugin::Tdm, 10),
    (Plugin::Devices, 1),
];

/// By how much each plugin's score is multiplied, in the order of [`SCORING`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ScoreWeights(pub(super) [u32; SCORING.len()]);

impl Default for ScoreWeights {
    fn default() -> Self {
        Self(SCORING.map(|(_, weight)| weight))
    }
}

impl ScoreWeights {
    /// The weights that `of` gives for each plugin.
    pub fn each(of: impl Fn(Plugin) -> u32) -> Self {
        Self(SCORING.map(|(plugin, _)| of(plugin)))
    }

    /// Whether the plugin's score can decide between nodes: its weight is above 0. As in kube-scheduler, a plugin whose score can't is
    /// not asked for one where the score depends on more than one node.
    pub fn counts(&self, plugin: Plugin) -> bool {
        SCORING.iter().zip(self.0).any(|((scoring, _), weight)| *scoring == plugin && weight > 0)
    }
}
