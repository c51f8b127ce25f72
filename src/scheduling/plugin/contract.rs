//! What a plugin is: the points at which it takes part in a decision, a trait for each.
//!
//! The points are kube-scheduler's (v1.36 `staging/src/k8s.io/kube-scheduler/framework/interface.go`). Which plugins there are, and in which
//! order they run, is not said here.

use std::{convert::Infallible, fmt, sync::Arc};

use super::{pod_counts::PodCounts, scene::Scene};
use crate::{
    device::Allocation,
    dra::ExtendedResources,
    scheduling::{
        model::{
            change::Change,
            footprint::Footprint,
            kube_scheduler::KubeScheduler,
            pod::{Ask, Demand},
            prebind_step::PrebindStep,
        },
        packing::{
            Packing,
            free_room::{AskedRoom, CostEstimate, FreeRoom},
            vacancy::Vacancy,
        },
        world::{World, node_parts::NodePart, node_state::NodeState, nodes::Nodes, object::Objects},
    },
};

pub use super::rejection::{Cure, FilterStage, Reasons, Rejection, Shortage};

/// A plugin. At which points it takes part is said by the traits below that it implements, and by its line in the table.
pub trait SchedulingPlugin: 'static {
    /// The name, as kube-scheduler's configuration spells it.
    const NAME: &'static str;
    /// On what its answer for a node depends.
    const REACH: Reach = Reach::Node;
    /// By how much its score is multiplied where nothing is set; `None`: it does not score.
    const WEIGHT: Option<u32> = None;
    /// Another weight than that from this release of kube-scheduler on.
    const WEIGHT_SINCE: Option<(KubeScheduler, u32)> = None;

    /// Why it rejects a node.
    type Reason: Rejection + Clone + fmt::Debug + Ord;

    /// Which parts of a node it reads where it looks at one node: what it says of a pod there holds for every node that is equal in these. `None`: what
    /// tells nodes apart too, such as their names and the uuids of their cards. One that reads amounts alone scores a node whatever cards the pod gets.
    fn reads(_ask: &Ask) -> Option<&'static [NodePart]> {
        None
    }

    /// What it makes of a node's amounts where it reads other parts of the node, too: nodes for which that is equal, and these parts are, are equal to it.
    /// It follows from [`NodePart::Amounts`] alone. `None`: it may read anything of them.
    fn of_amounts(_ask: &Ask, _node: &NodeState) -> Option<u64> {
        None
    }

    /// Whether the change could let a pod through that it has rejected: kube-scheduler's queueing hint. It is asked of plugins with [`Reach::Cluster`]
    /// alone: the others' pods are woken by a node that would have them.
    fn helps(_pod: &Footprint, _change: &Change, _objects: &Objects) -> bool {
        false
    }
}

/// On what a plugin's answer for a node depends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reach {
    /// On the pod's ask, that node and the time.
    Node,
    /// On more: what the pod has beside its ask, other nodes, pods or objects.
    Cluster,
}

/// A plugin that tests a node by nothing but the node and the pod's ask. Its answer is kept with the pod's class until the node changes.
pub trait Filter: SchedulingPlugin {
    /// Every reason for which it rejects the node.
    fn test(scene: &Scene<'_>) -> Result<(), Reasons<Self::Reason>>;
}

/// A plugin that finds something out for a pod before it tests nodes: kube-scheduler's PreFilter and Filter.
pub trait PreFilter: SchedulingPlugin {
    /// What it finds out. It holds as long as no pod, no node and no other object changes, and for this time.
    type Found<'a>: PreFiltered<'a, Self::Reason> + 'a;

    /// `None`: there is nothing to do for the pod, and every node passes. The error holds on every node.
    fn prepare<'a>(
        demand: &'a Demand,
        world: &'a World,
        counts: &mut PodCounts,
    ) -> Result<Option<Self::Found<'a>>, Self::Reason>;
}

/// What a plugin has found out for one pod, by which it tests nodes.
pub trait PreFiltered<'a, R> {
    /// Every reason for which the plugin rejects the node.
    fn test(&self, node: &NodeState) -> Result<(), Reasons<R>>;

    /// Clears, by slot, the nodes that the plugin is known to reject, so that these need not be tested one by one. It may leave nodes that it rejects. Returns
    /// whether anything is known.
    fn narrow(&self, _may_pass: &mut [bool]) -> bool {
        false
    }

    /// A reason for which it rejects the node, with what takes longer to find out: it is asked for the nearest node alone. `None`: there is no more to
    /// say.
    fn detailed(&self, _node: &NodeState, _reason: &R) -> Option<R> {
        None
    }

    /// What has to be written before the pod is bound to the node.
    fn steps(&self, _node: &NodeState) -> Result<Vec<PrebindStep>, Reasons<R>> {
        Ok(Vec::new())
    }

    /// What it scores nodes by, where the plugin scores by what it has found out for its test; `None`: nothing.
    fn scoring(&self) -> Option<Box<dyn PreScored + 'a>> {
        None
    }
}

/// A plugin that rejects a pod as a whole, and tests no node.
impl<R> PreFiltered<'_, R> for Infallible {
    fn test(&self, _node: &NodeState) -> Result<(), Reasons<R>> {
        match *self {}
    }
}

/// A plugin that scores a node by nothing but the node, the pod's ask and the cards that the pod would get there. The score is kept with the pod's
/// class until the node changes.
pub trait Score: SchedulingPlugin {
    /// What becomes of its scores once those of all nodes that fit are known.
    const NORMALISATION: Normalisation = Normalisation::AsIs;

    /// `None`: it has nothing to score for the pod, whatever the node.
    fn score(placement: &Placement<'_>) -> Option<f64>;

    /// Whether it is known that it scores all of these nodes alike for the pod, or none of them, without a look at each.
    fn is_even(_ask: &Ask, _nodes: &Nodes) -> bool {
        false
    }
}

/// What a plugin that scores by rooms reads of a node's amounts.
pub type RoomAmounts = [u32; 7];

/// A plugin that scores a node by the room that the pod would leave there. What it finds of the node is kept with the pod's class until the node
/// changes; what that scores is asked anew when the mix of pods changes, of which the worth of rooms depends.
pub trait RoomScore: SchedulingPlugin {
    /// `None`: it has nothing to score for the pod, whatever the node.
    fn vacancy(placement: &Placement<'_>) -> Option<Arc<Vacancy>>;

    /// What it reads of the node's amounts: where it is equal and the node's other parts are, vacancies are alike. It follows from the amounts and from how
    /// many cards there are.
    fn amounts(ask: &Ask, node: &NodeState) -> RoomAmounts;

    /// What a cost of so many millionths of a card comes to in points: the less, the better.
    fn points(cost: f64) -> f64;

    /// What is free on the node, whatever pods ask for.
    fn free_room(node: &NodeState, packing: &Packing) -> FreeRoom;

    /// What the pod asks of that, where there are these classes of devices; `None`: it has nothing to score for the pod, or nothing is known of the cost
    /// before a node is judged.
    fn asked_room(ask: &Ask, classes: &ExtendedResources, packing: &Packing) -> Option<AskedRoom>;

    /// The least that the pod costs where so much is free, as long as that is guessed roughly.
    fn estimate(asked: &AskedRoom, free: &FreeRoom, packing: &Packing) -> CostEstimate;
}

/// What becomes of a plugin's scores once those of all nodes that fit are known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Normalisation {
    /// They are from 0 to 100 already.
    AsIs,
    /// Whole numbers, in percent of the highest: the more, the better.
    OfHighest,
    /// Whole numbers, in percent of the highest: the less, the better.
    BelowHighest,
    /// Costs, in points: 100 less what is more than the least, and below 0 where that is more than 100.
    AboveLeast,
}

/// A plugin that finds something out for a pod before it scores nodes: kube-scheduler's PreScore and Score.
pub trait PreScore: SchedulingPlugin {
    /// What it finds out. It holds as long as [`PreFilter::Found`] does.
    type Found<'a>: PreScored + 'a;

    /// `None`: it has nothing to score for the pod.
    fn prepare<'a>(demand: &'a Demand, world: &'a World, counts: &mut PodCounts) -> Option<Self::Found<'a>>;
}

/// What a plugin has found out for one pod, by which it scores nodes.
pub trait PreScored {
    /// The score, from 0 to 100, of each of these nodes.
    fn normalised(&self, feasible: FeasibleNodes<'_>) -> Vec<i64>;
}

/// The nodes that fit a pod, by slot: what is known of each slot is found without a look at the node.
#[derive(Clone, Copy, Debug)]
pub struct FeasibleNodes<'a> {
    /// The slots of those that fit.
    pub slots: &'a [usize],
    /// All nodes.
    pub nodes: &'a Nodes,
}

impl<'a> FeasibleNodes<'a> {
    /// What `score` makes of each.
    pub(in crate::scheduling) fn each(self, score: impl Fn(&'a NodeState) -> i64) -> Vec<i64> {
        let of_slot = |slot: &usize| self.nodes.at(*slot).map_or(0, |node| score(node));
        self.slots.iter().map(of_slot).collect()
    }
}

/// A pod on a node that it fits.
#[derive(Clone, Copy, Debug)]
pub struct Placement<'a> {
    /// What the pod asks for.
    pub ask: &'a Ask,
    /// The node.
    pub node: &'a NodeState,
    /// What the pod would get there for each of its requests of cards.
    pub allocations: &'a [Allocation],
    /// What rooms are worth to the pods that may come.
    pub packing: &'a Packing,
}
