//! Whether a node that has room for a pod still has it beside the pods that it is kept for.

use std::sync::Arc;

use crate::scheduling::{
    model::pod::Demand,
    plugin::{NodeReasons, Plugin, cycle::Cycle, filter::filter, pod_counts::PodCounts},
    world::{World, node_state::NodeState, nominations::Nominations},
};

impl Nominations {
    /// Whether a node that has room for the pod would still have it beside the pods that it is kept for. `cycle` is what the plugins
    /// found out for the pod without them.
    pub fn test(
        &self,
        demand: &Demand,
        node: &Arc<NodeState>,
        world: &World,
        cycle: &Cycle<'_>,
    ) -> Result<(), NodeReasons> {
        let Some(kept) = self.kept(demand, node) else { return Ok(()) };
        // What looks at more than one node has nothing to do for the pod, unless these pods keep others away or share its claims.
        let alone = cycle.is_empty() && demand.footprint.claims.is_empty();
        let alone = alone && kept.anti_affinity.len() == node.anti_affinity.len();
        let kept = Arc::new(kept);
        filter(&demand.ask, &kept, world.device_resources(), &[])?;
        if alone {
            return Ok(());
        }
        let beside = world.with(kept.clone());
        // Counts are kept by generation, and this state has none of its own.
        let mut counts = PodCounts::default();
        let others = Cycle::prepare_but(Plugin::DynamicResources, demand, &beside, &mut counts);
        others.map_err(|reason| vec![reason])?.test(&kept)?;
        // No claim is another for these pods, and of devices those are left out that are kept for them.
        cycle.test_by(Plugin::DynamicResources, &kept)
    }
}
