//! Whatever happens, and in whichever order writes are answered: at rest no gang is bound in part unless its rules allow that, none waits that
//! would find room as a whole, no pod waits beside room, and no card exceeds its capacity.
//!
//! Whether a gang would find room is found out by trying every card for every pod.

use std::collections::{BTreeMap, BTreeSet};

use berth::scheduling::model::gang::{Gang, SharedTopology, Strictness};
use jiff::SignedDuration;
use proptest::prelude::*;

use super::cluster::{Cluster, Pod, ROOT, Shape, node_name};

const SHAPE: Shape = Shape {
    nodes: 3,
    cards: 2,
    slots: 8,
    memory: 8,
    rack: 2,
    preemption: None,
    rooms: None,
    gangs: Some(SignedDuration::from_secs(60)),
    tree: None,
};
const GANGS: usize = 3;

/// Something that happens. Numbers choose among what there is, modulo its count.
#[derive(Clone, Debug)]
enum Step {
    /// A pod is created: so much memory of one card, its priority, and its gang; from the count of gangs on, it has none.
    Create(u64, i32, usize),
    /// As many pods are created as the gang has at least.
    CreateGang(u64, i32, usize),
    Delete(usize),
    End(usize),
    /// The containers of a bound pod run.
    Start(usize),
    Answer(usize),
    Refuse(usize),
    Lose(usize),
    Cordon(usize, bool),
    /// A node vanishes with its pods, or comes back.
    SwapNode(usize),
    Pass(i64),
    Restart(u64),
}

/// Each size divides the larger ones. Of sizes that do not, Berth can miss a way to place them all.
fn memory() -> impl Strategy<Value = u64> {
    (0..4_u32).prop_map(|power| 1 << power)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let create = (memory(), 0..2_i32, 0..GANGS + 2);
    let gang = (memory(), 0..2_i32, 0..GANGS);
    let step = prop_oneof![
        8 => create.prop_map(|(memory, priority, gang)| Step::Create(memory, priority, gang)),
        3 => gang.prop_map(|(memory, priority, gang)| Step::CreateGang(memory, priority, gang)),
        4 => any::<usize>().prop_map(Step::Delete),
        4 => any::<usize>().prop_map(Step::End),
        2 => any::<usize>().prop_map(Step::Start),
        14 => any::<usize>().prop_map(Step::Answer),
        3 => any::<usize>().prop_map(Step::Refuse),
        2 => any::<usize>().prop_map(Step::Lose),
        1 => (0..SHAPE.nodes, any::<bool>()).prop_map(|(node, to)| Step::Cordon(node, to)),
        1 => (0..SHAPE.nodes).prop_map(Step::SwapNode),
        3 => (1..30_i64).prop_map(Step::Pass),
        1 => any::<u64>().prop_map(Step::Restart),
    ];
    prop::collection::vec(step, 10..80)
}

fn gangs() -> impl Strategy<Value = Vec<Gang>> {
    let topology = prop_oneof![
        3 => Just(None),
        1 => Just(Some(Strictness::Required)),
        1 => Just(Some(Strictness::Preferred)),
    ];
    let gang = (2..5_usize, prop::option::weighted(0.2, 0..2_usize), topology);
    let gang = gang.prop_map(|(min, beyond, topology)| Gang {
        min,
        max: beyond.map(|beyond| min + beyond),
        topology: topology.map(|strictness| SharedTopology { key: "rack".into(), strictness }),
        ..Gang::default()
    });
    prop::collection::vec(gang, GANGS)
}

fn gang_name(at: usize) -> Option<String> {
    (at < GANGS).then(|| format!("gang-{at}"))
}

/// A cluster, with what must be remembered of its gangs.
struct History {
    cluster: Cluster,
    /// Gangs whose pods ran when a scheduler began, which does not know whether they were whole.
    excused: BTreeSet<String>,
}

impl History {
    /// What these steps lead to once nothing more happens, with every node open to pods.
    fn to_rest(shape: Shape, groups: BTreeMap<String, Gang>, steps: &[Step]) -> Result<Self, TestCaseError> {
        let mut history = Self { cluster: Cluster::new(shape, groups), excused: BTreeSet::new() };
        for step in steps {
            history.run(step);
            history.cluster.judge_cards()?;
        }
        for at in 0..shape.nodes {
            history.cluster.cordon(at, false);
        }
        history.cluster.come_to_rest()?;
        Ok(history)
    }

    fn run(&mut self, step: &Step) {
        let cluster = &mut self.cluster;
        match *step {
            Step::Create(memory, priority, gang) => drop(cluster.create(memory, priority, gang_name(gang))),
            Step::CreateGang(memory, priority, at) => {
                let name = gang_name(at).unwrap();
                for _ in 0..cluster.groups[&name].min {
                    cluster.create(memory, priority, Some(name.clone()));
                }
            }
            Step::Delete(at) => cluster.delete(at),
            Step::End(at) => cluster.end(at),
            Step::Start(at) => start(cluster, at),
            Step::Answer(at) => cluster.carry_out_next(at),
            Step::Refuse(at) => cluster.refuse_next(at),
            Step::Lose(at) => cluster.lose_answer(at),
            Step::Cordon(at, to) => cluster.cordon(at, to),
            Step::SwapNode(at) if cluster.absent[at] => cluster.restore_node(at),
            Step::SwapNode(at) => cluster.lose_node(at),
            Step::Pass(seconds) => drop(cluster.pass(seconds)),
            Step::Restart(carried_out) => {
                cluster.restart(carried_out);
                let running = cluster.pods.values().filter(|pod| pod.started);
                self.excused.extend(running.filter_map(|pod| pod.gang.clone()));
                if !self.excused.is_empty() {
                    self.excused.insert(ROOT.to_owned());
                }
            }
        }
    }

    fn judge_rest(&self) -> Result<(), TestCaseError> {
        prop_assert_eq!(&self.cluster.drifts, &Vec::<String>::new());
        for (name, pod) in alone(&self.cluster) {
            prop_assert!(
                !fit(&self.cluster, &[pod.memory], None),
                "{name} waits, and a card has room for it"
            );
        }
        for (name, gang) in &self.cluster.groups {
            self.judge_gang(name, gang)?;
        }
        Ok(())
    }

    /// As [`Self::judge_rest`], where the groups are in a tree that asks for so many: each group holds nothing, or enough, or is one that may lack pods, and
    /// so does the tree. No group waits that could be completed beside a whole tree.
    fn judge_tree(&self, least: usize) -> Result<(), TestCaseError> {
        prop_assert_eq!(&self.cluster.drifts, &Vec::<String>::new());
        let may_lack = |name: &str| self.cluster.whole.contains(name) || self.excused.contains(name);
        let (mut whole, mut bound_pods) = (0, 0);
        for (name, gang) in &self.cluster.groups {
            let bound = members(&self.cluster, name).filter(|(_, pod)| pod.bound.is_some()).count();
            whole += usize::from(bound >= gang.min);
            bound_pods += bound;
            prop_assert!(
                bound == 0 || bound >= gang.min || may_lack(name),
                "{name} is bound in part: {bound} of at least {}",
                gang.min
            );
        }
        prop_assert!(
            bound_pods == 0 || whole >= least || may_lack(ROOT),
            "the tree is bound in part: {whole} of at least {least} groups"
        );
        let is_whole = whole >= least;
        for (name, gang) in self.cluster.groups.iter().filter(|(_, gang)| is_whole && gang.topology.is_none())
        {
            self.judge_gang(name, gang)?;
        }
        Ok(())
    }

    /// A gang holds nothing, or enough, or is one that may lack pods; and what waits of it finds no room.
    fn judge_gang(&self, name: &str, gang: &Gang) -> Result<(), TestCaseError> {
        let (bound, waiting): (Vec<_>, Vec<_>) =
            members(&self.cluster, name).partition(|(_, pod)| pod.bound.is_some());
        let whole = bound.len() >= gang.min;
        prop_assert!(
            bound.is_empty() || whole || self.cluster.whole.contains(name) || self.excused.contains(name),
            "{name} is bound in part: {} of at least {}",
            bound.len(),
            gang.min
        );
        let most = gang.max.unwrap_or(usize::MAX);
        prop_assert!(bound.len() <= most, "{name} has more than {most} pods");
        let together = if whole { 1 } else { gang.min - bound.len() };
        if waiting.len() < together || bound.len() + together > most {
            return Ok(());
        }
        let mut sizes: Vec<u64> = waiting.iter().map(|(_, pod)| pod.memory).collect();
        sizes.sort_unstable();
        let racks: Vec<_> = racks(gang, bound.first().map(|(_, pod)| *pod));
        for rack in racks {
            prop_assert!(
                !fit(&self.cluster, &sizes[..together], rack),
                "{together} pods of {name} wait, and find room in rack {rack:?}"
            );
        }
        Ok(())
    }
}

/// The containers of a bound pod run.
fn start(cluster: &mut Cluster, at: usize) {
    let bound = cluster.pods.iter().filter(|(_, pod)| pod.bound.is_some());
    let bound: Vec<String> = bound.map(|(name, _)| name.clone()).collect();
    if let Some(name) = bound.get(at % bound.len().max(1)) {
        cluster.change(name, |pod| pod.started = true);
        cluster.show(name);
    }
}

fn members<'a>(cluster: &'a Cluster, gang: &'a str) -> impl Iterator<Item = (&'a String, &'a Pod)> {
    cluster.pods.iter().filter(move |(_, pod)| pod.gang.as_deref() == Some(gang))
}

/// The pods without a gang that wait.
fn alone(cluster: &Cluster) -> impl Iterator<Item = (&String, &Pod)> {
    cluster.pods.iter().filter(|(_, pod)| pod.gang.is_none() && pod.bound.is_none())
}

/// The racks in each of which the gang may be placed, beside this pod of it; `None`: it may be anywhere.
fn racks(gang: &Gang, beside: Option<&Pod>) -> Vec<Option<usize>> {
    if gang.topology.as_ref().is_none_or(|topology| topology.strictness == Strictness::Preferred) {
        return vec![None];
    }
    let node = beside.and_then(|pod| pod.bound.as_ref()).map(|(node, _)| node);
    let taken = node.and_then(|node| (0..SHAPE.nodes).find(|at| node_name(*at) == *node));
    match taken {
        Some(at) => vec![Some(SHAPE.rack_of(at))],
        None => (0..=SHAPE.rack_of(SHAPE.nodes - 1)).map(Some).collect(),
    }
}

/// Whether pods of these sizes find room together, in this rack if it matters.
fn fit(cluster: &Cluster, sizes: &[u64], rack: Option<usize>) -> bool {
    let used = cluster.used(|_| true);
    let nodes = cluster.open().filter(|at| rack.is_none_or(|rack| SHAPE.rack_of(*at) == rack));
    let cards = nodes.flat_map(|at| (0..SHAPE.cards).map(move |index| format!("GPU-{at}-{index}")));
    let free = cards.map(|card| SHAPE.memory - used.get(&card).map_or(0, |(_, memory)| *memory));
    place(&mut free.collect::<Vec<_>>(), sizes)
}

/// Tries every card for every pod.
fn place(free: &mut [u64], sizes: &[u64]) -> bool {
    let Some((size, others)) = sizes.split_last() else { return true };
    for at in 0..free.len() {
        if free[at] >= *size {
            free[at] -= size;
            let placed = place(free, others);
            free[at] += size;
            if placed {
                return true;
            }
        }
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_gang_is_left_in_part_and_none_waits_that_would_find_room(gangs in gangs(), steps in steps()) {
        let groups: BTreeMap<_, _> =
            gangs.into_iter().enumerate().map(|(at, gang)| (gang_name(at).unwrap(), gang)).collect();
        History::to_rest(SHAPE, groups, &steps)?.judge_rest()?;
    }

    /// The same of gangs that are the groups of a CompositePodGroup.
    #[test]
    fn no_group_of_a_tree_is_left_in_part(gangs in gangs(), least in 1..=GANGS, steps in steps()) {
        let of_tree = |gang: Gang| {
            let topology = gang.topology.filter(|topology| topology.strictness == Strictness::Required);
            Gang { max: None, topology, ..gang }
        };
        let groups: BTreeMap<_, _> =
            gangs.into_iter().enumerate().map(|(at, gang)| (gang_name(at).unwrap(), of_tree(gang))).collect();
        let shape = Shape { tree: Some(least), ..SHAPE };
        History::to_rest(shape, groups, &steps)?.judge_tree(least)?;
    }
}
