//! A scheduler whose nodes kube-scheduler chooses.

use super::Scheduler;
use crate::scheduling::{
    model::{
        name::{NodeName, Uid},
        pod::Demand,
    },
    plan::extension::is_relieved,
};

impl Scheduler {
    /// This scheduler, which takes no pod from its queue: the node of each pod is chosen by kube-scheduler and told by
    /// [`Event::Directed`](crate::scheduling::Event::Directed).
    #[must_use]
    pub fn directed(mut self) -> Self {
        self.binding.cycle.duty.directed = true;
        self
    }

    /// Whether this node would have the pod if these of its pods were gone.
    pub fn relieves(&mut self, demand: &Demand, node: &NodeName, victims: &[Uid]) -> bool {
        is_relieved(demand, node, victims, &mut self.binding.cycle.snapshot)
    }
}
