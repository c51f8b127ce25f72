//! A plugin as a line of the table: the points at which it takes part as functions that know the reasons of all plugins.

use std::sync::Arc;

use super::{
    NodeReasons, Plugin, Reason,
    contract::{
        Filter, Normalisation, Placement, PreFilter, PreFiltered, PreScore, PreScored, Reach, Reasons,
        Rejection, RoomAmounts, RoomScore, SchedulingPlugin, Score,
    },
    pod_counts::PodCounts,
    scene::Scene,
};
use crate::{
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

/// A plugin that stands in the table.
pub(super) trait InTable: SchedulingPlugin {
    /// Its place.
    const PLUGIN: Plugin;

    /// One of its reasons among those of all plugins.
    fn reason(reason: Self::Reason) -> Reason;

    /// The reason, if it is one of this plugin.
    fn own(reason: &Reason) -> Option<&Self::Reason>;

    /// The reason without the amounts of one node.
    fn kind(reason: &Self::Reason) -> Reason {
        Self::reason(reason.kind())
    }

    /// Several of its reasons among those of all plugins.
    fn reasons(mut reasons: Reasons<Self::Reason>) -> NodeReasons {
        // Most nodes are rejected for one reason, and many nodes are.
        match reasons.len() {
            1 => reasons.pop().map(Self::reason).into_iter().collect(),
            _ => reasons.into_iter().map(Self::reason).collect(),
        }
    }
}

/// What a plugin has found out for one pod, by which it tests nodes.
pub(super) trait Prepared<'a> {
    /// The plugin.
    fn plugin(&self) -> Plugin;

    /// As [`PreFiltered::test`].
    fn test(&self, node: &NodeState) -> Result<(), NodeReasons>;

    /// As [`PreFiltered::narrow`].
    fn narrow(&self, may_pass: &mut [bool]) -> bool;

    /// As [`PreFiltered::detailed`]; `None` for another plugin's reason, too.
    fn detailed(&self, node: &NodeState, reason: &Reason) -> Option<Reason>;

    /// As [`PreFiltered::steps`].
    fn steps(&self, node: &NodeState) -> Result<Vec<PrebindStep>, NodeReasons>;

    /// As [`PreFiltered::scoring`].
    fn scoring(&self) -> Option<Box<dyn PreScored + 'a>>;
}

type Test = fn(&Scene<'_>) -> Result<(), NodeReasons>;

type Prepare =
    for<'a> fn(&'a Demand, &'a World, &mut PodCounts) -> Result<Option<Box<dyn Prepared<'a> + 'a>>, Reason>;

type ScoreNode = fn(&Placement<'_>) -> Option<f64>;

type FindVacancy = fn(&Placement<'_>) -> Option<Arc<Vacancy>>;

type ReadAmounts = fn(&Ask, &NodeState) -> RoomAmounts;

type FindFreeRoom = fn(&NodeState, &Packing) -> FreeRoom;

type FindAskedRoom = fn(&Ask, &ExtendedResources, &Packing) -> Option<AskedRoom>;

type Estimate = fn(&AskedRoom, &FreeRoom, &Packing) -> CostEstimate;

type IsEven = fn(&Ask, &Nodes) -> bool;

type PrepareScore = for<'a> fn(&'a Demand, &'a World, &mut PodCounts) -> Option<Box<dyn PreScored + 'a>>;

type Reads = fn(&Ask) -> Option<&'static [NodePart]>;

type OfAmounts = fn(&Ask, &NodeState) -> Option<u64>;

type Helps = fn(&Footprint, &Change, &Objects) -> bool;

/// A line of the table.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) plugin: Plugin,
    pub(super) name: &'static str,
    pub(super) reach: Reach,
    pub(super) weight: Option<DefaultWeight>,
    pub(super) reads: Reads,
    pub(super) of_amounts: OfAmounts,
    pub(super) helps: Helps,
    pub(super) test: Option<Test>,
    pub(super) prepare: Option<Prepare>,
    pub(super) score: Option<NodeScoring>,
    pub(super) room_score: Option<RoomScoring>,
    pub(super) prepare_score: Option<PrepareScore>,
}

/// How a plugin scores by rooms.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoomScoring {
    pub(super) vacancy: FindVacancy,
    pub(super) amounts: ReadAmounts,
    pub(super) points: fn(f64) -> f64,
    pub(super) free_room: FindFreeRoom,
    pub(super) asked_room: FindAskedRoom,
    pub(super) estimate: Estimate,
}

/// How a plugin scores a node by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeScoring {
    pub(super) score: ScoreNode,
    pub(super) normalisation: Normalisation,
    pub(super) is_even: IsEven,
}

/// By how much a plugin's score is multiplied where nothing is set.
#[derive(Clone, Copy, Debug)]
pub(super) struct DefaultWeight {
    usual: u32,
    since: Option<(KubeScheduler, u32)>,
}

impl DefaultWeight {
    /// The weight where this release of kube-scheduler is followed.
    pub(super) fn of(self, followed: KubeScheduler) -> u32 {
        let since = self.since.filter(|(release, _)| followed >= *release);
        since.map_or(self.usual, |(_, weight)| weight)
    }
}

impl Row {
    /// The plugin's line, without a point at which it takes part.
    pub(super) const fn of<P: InTable>() -> Self {
        Self {
            plugin: P::PLUGIN,
            name: P::NAME,
            reach: P::REACH,
            weight: match P::WEIGHT {
                Some(usual) => Some(DefaultWeight { usual, since: P::WEIGHT_SINCE }),
                None => None,
            },
            reads: P::reads,
            of_amounts: P::of_amounts,
            helps: P::helps,
            test: None,
            prepare: None,
            score: None,
            room_score: None,
            prepare_score: None,
        }
    }

    /// Whether it tests or scores a node by itself.
    pub(super) const fn looks_at_one_node(&self) -> bool {
        self.test.is_some() || self.score.is_some() || self.room_score.is_some()
    }

    /// It tests a node by itself.
    pub(super) const fn filter<P: InTable + Filter>(self) -> Self {
        Self { test: Some(test::<P>), ..self }
    }

    /// It tests a node by what it finds out for a pod.
    pub(super) const fn pre_filter<P: InTable + PreFilter>(self) -> Self {
        Self { prepare: Some(prepare::<P>), ..self }
    }

    /// It scores a node by itself.
    pub(super) const fn score<P: InTable + Score>(self) -> Self {
        let score = NodeScoring { score: P::score, normalisation: P::NORMALISATION, is_even: P::is_even };
        Self { score: Some(score), ..self }
    }

    /// It scores a node by the room that is left there.
    pub(super) const fn room_score<P: InTable + RoomScore>(self) -> Self {
        let room_score = RoomScoring {
            vacancy: P::vacancy,
            amounts: P::amounts,
            points: P::points,
            free_room: P::free_room,
            asked_room: P::asked_room,
            estimate: P::estimate,
        };
        Self { room_score: Some(room_score), ..self }
    }

    /// It scores a node by what it finds out for a pod.
    pub(super) const fn pre_score<P: InTable + PreScore>(self) -> Self {
        Self { prepare_score: Some(prepare_score::<P>), ..self }
    }
}

fn test<P: InTable + Filter>(scene: &Scene<'_>) -> Result<(), NodeReasons> {
    P::test(scene).map_err(P::reasons)
}

fn prepare<'a, P: InTable + PreFilter>(
    demand: &'a Demand,
    world: &'a World,
    counts: &mut PodCounts,
) -> Result<Option<Box<dyn Prepared<'a> + 'a>>, Reason> {
    let found = P::prepare(demand, world, counts).map_err(P::reason)?;
    Ok(found.map(|found| Box::new(Found::<P>(found)) as Box<dyn Prepared<'a> + 'a>))
}

fn prepare_score<'a, P: InTable + PreScore>(
    demand: &'a Demand,
    world: &'a World,
    counts: &mut PodCounts,
) -> Option<Box<dyn PreScored + 'a>> {
    P::prepare(demand, world, counts).map(|found| Box::new(found) as Box<dyn PreScored + 'a>)
}

/// What a plugin has found out, with its reasons among those of all plugins.
struct Found<'a, P: PreFilter>(P::Found<'a>);

impl<'a, P: InTable + PreFilter> Prepared<'a> for Found<'a, P> {
    fn plugin(&self) -> Plugin {
        P::PLUGIN
    }

    fn test(&self, node: &NodeState) -> Result<(), NodeReasons> {
        self.0.test(node).map_err(P::reasons)
    }

    fn narrow(&self, may_pass: &mut [bool]) -> bool {
        self.0.narrow(may_pass)
    }

    fn detailed(&self, node: &NodeState, reason: &Reason) -> Option<Reason> {
        self.0.detailed(node, P::own(reason)?).map(P::reason)
    }

    fn steps(&self, node: &NodeState) -> Result<Vec<PrebindStep>, NodeReasons> {
        self.0.steps(node).map_err(P::reasons)
    }

    fn scoring(&self) -> Option<Box<dyn PreScored + 'a>> {
        self.0.scoring()
    }
}
