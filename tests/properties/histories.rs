//! Whatever happens, and in whichever order writes are answered: no card is given away while a victim still holds it, a pod for which
//! others were deleted gets a place, none waits behind a nomination that helps no pod, and none keeps such a nomination.

use std::collections::BTreeMap;

use berth::scheduling::{model::kept_room::RoomTerms, plan::preemption::Rules};
use jiff::SignedDuration;
use proptest::prelude::*;

use super::cluster::{Cluster, Shape};

const SHAPE: Shape = Shape {
    nodes: 2,
    cards: 2,
    slots: 4,
    memory: 10,
    rack: 1,
    preemption: Some(RULES),
    rooms: None,
    gangs: None,
    tree: None,
};
const RULES: Rules = Rules { other_schedulers: true, preemptable_first: true };

/// Something that happens. Numbers choose among what there is, modulo its count.
#[derive(Clone, Debug)]
enum Step {
    /// A pod is created: so much memory of one card, and its priority.
    Create(u64, i32),
    /// A user deletes a pod, which takes its time to end if it is bound.
    Delete(usize),
    /// A pod that is being deleted has ended.
    End(usize),
    /// A write is carried out and answered.
    Answer(usize),
    /// A write is refused: it is not carried out, and its answer is a refusal.
    Refuse(usize),
    /// A write is carried out, and its answer is lost.
    Lose(usize),
    Cordon(usize, bool),
    Pass(i64),
    /// The scheduler is started again; each write that is under way is carried out or not.
    Restart(u64),
}

/// Room is kept after half a minute, for a minute.
const TERMS: RoomTerms =
    RoomTerms { after: SignedDuration::from_secs(30), length: SignedDuration::from_secs(60) };

/// Room is kept for at most one pod of two nodes, and not for longer than is set.
fn judge_rooms(cluster: &Cluster) -> Result<(), TestCaseError> {
    let view = cluster.scheduler.view();
    let rooms = cluster.pods.keys().filter_map(|name| view.kept_room(&name.as_str().into()));
    let rooms: Vec<_> = rooms.collect();
    prop_assert!(rooms.len() <= 1, "{rooms:?}");
    prop_assert!(rooms.iter().all(|room| cluster.now < room.until), "{rooms:?} at {}", cluster.now);
    Ok(())
}

/// At rest no status states room that is not kept.
fn judge_stated_rooms(cluster: &Cluster) -> Result<(), TestCaseError> {
    let view = cluster.scheduler.view();
    for (name, pod) in cluster.pods.iter().filter(|(_, pod)| pod.bound.is_none()) {
        let kept = view.kept_room(&name.as_str().into()).map(|room| room.node);
        prop_assert_eq!(&pod.nominated, &kept.map(|node| (*node).into()), "{}", name);
    }
    Ok(())
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (2..=SHAPE.memory, 0..4_i32).prop_map(|(memory, priority)| Step::Create(memory, priority)),
        2 => any::<usize>().prop_map(Step::Delete),
        3 => any::<usize>().prop_map(Step::End),
        12 => any::<usize>().prop_map(Step::Answer),
        2 => any::<usize>().prop_map(Step::Refuse),
        2 => any::<usize>().prop_map(Step::Lose),
        1 => (0..SHAPE.nodes, any::<bool>()).prop_map(|(node, to)| Step::Cordon(node, to)),
        3 => (1..12_i64).prop_map(Step::Pass),
        1 => any::<u64>().prop_map(Step::Restart),
    ];
    prop::collection::vec(step, 10..80)
}

fn run(cluster: &mut Cluster, step: &Step) {
    match *step {
        Step::Create(memory, priority) => drop(cluster.create(memory, priority, None)),
        Step::Delete(at) => cluster.delete(at),
        Step::End(at) => cluster.end(at),
        Step::Answer(at) => cluster.carry_out_next(at),
        Step::Refuse(at) => cluster.refuse_next(at),
        Step::Lose(at) => cluster.lose_answer(at),
        Step::Cordon(at, to) => cluster.cordon(at, to),
        Step::Pass(seconds) => drop(cluster.pass(seconds)),
        Step::Restart(carried_out) => cluster.restart(carried_out),
    }
}

/// At rest: no pod waits that could be where only pods of lower priority, or a nomination, are in its way, and none that waits is nominated.
fn judge_rest(cluster: &Cluster) -> Result<(), TestCaseError> {
    let Shape { cards, slots: most, memory: capacity, .. } = cluster.shape;
    for (name, pod) in cluster.pods.iter().filter(|(_, pod)| pod.bound.is_none()) {
        prop_assert_eq!(&pod.nominated, &None, "{} waits, and its status states a node", name);
        let used = cluster.used(|other| other.priority >= pod.priority);
        for at in cluster.open() {
            let has_room = |index: u32| {
                let card = format!("GPU-{at}-{index}");
                let (slots, memory) = used.get(&card).copied().unwrap_or_default();
                slots < most && memory + pod.memory <= capacity
            };
            prop_assert!(!(0..cards).any(has_room), "{name} waits, and node-{at} could have it");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn preemption_deletes_no_pod_in_vain_and_keeps_no_pod_waiting(steps in steps()) {
        let mut cluster = Cluster::new(SHAPE, BTreeMap::new());
        for step in &steps {
            run(&mut cluster, step);
            cluster.judge_cards()?;
        }
        for at in 0..SHAPE.nodes {
            cluster.cordon(at, false);
        }
        cluster.come_to_rest()?;
        judge_rest(&cluster)?;
    }

    #[test]
    fn room_is_kept_in_bounds_and_no_card_is_given_away_twice(steps in steps()) {
        let mut cluster = Cluster::new(Shape { rooms: Some(TERMS), ..SHAPE }, BTreeMap::new());
        for step in &steps {
            run(&mut cluster, step);
            cluster.judge_cards()?;
            judge_rooms(&cluster)?;
        }
        cluster.come_to_rest()?;
        judge_rooms(&cluster)?;
        judge_stated_rooms(&cluster)?;
        prop_assert_eq!(&cluster.drifts, &Vec::<String>::new());
    }
}
