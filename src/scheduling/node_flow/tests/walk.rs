//! Whatever happens, in whichever order answers come, late, lost or twice, and whenever the scheduler is started again: ARCHITECTURE.md's
//! invariants 4 (doubt is settled by reading), 5 (a lock has an owner, and is freed by its owner's end) and 6 (one pod of a node at a time
//! between Binding and the device plugin's answer).

use jiff::SignedDuration;
use proptest::prelude::*;

use super::world::{Outcome, World};
use crate::device::{Answer, LockNeed};

/// Something that happens. Numbers choose among what there is, modulo its count.
#[derive(Clone, Debug)]
enum WalkStep {
    Create,
    Delete(usize),
    End(usize),
    Kill(usize),
    Serve(usize, Answer),
    FreeLock,
    Start(usize),
    RivalComes,
    RivalStarts,
    RivalGoes,
    /// What is known of other schedulers is reported.
    Report,
    /// Another scheduler does something with the lock.
    Intrude(usize),
    CarryOut(usize, Outcome),
    CarryOutDelayed,
    Hear(usize, bool),
    ShowNode,
    ShowPod,
    Schedule,
    /// Whether the node has room.
    Fill(bool),
    Pass(i64),
    Restart(u64),
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        6 => Just(Outcome::Done),
        1 => Just(Outcome::Lost),
        3 => Just(Outcome::Delayed),
        1 => Just(Outcome::Throttled),
        1 => Just(Outcome::Refused),
    ]
}

fn steps() -> impl Strategy<Value = Vec<WalkStep>> {
    let at = any::<usize>;
    let answer = prop_oneof![4 => Just(Answer::Succeeded), 1 => Just(Answer::Failed)];
    let step = prop_oneof![
        5 => Just(WalkStep::Create),
        1 => at().prop_map(WalkStep::Delete),
        2 => at().prop_map(WalkStep::End),
        1 => at().prop_map(WalkStep::Kill),
        3 => (at(), answer).prop_map(|(at, answer)| WalkStep::Serve(at, answer)),
        3 => Just(WalkStep::FreeLock),
        3 => at().prop_map(WalkStep::Start),
        2 => Just(WalkStep::RivalComes),
        2 => Just(WalkStep::RivalStarts),
        1 => Just(WalkStep::RivalGoes),
        4 => Just(WalkStep::Report),
        1 => at().prop_map(WalkStep::Intrude),
        12 => (at(), outcome()).prop_map(|(at, outcome)| WalkStep::CarryOut(at, outcome)),
        1 => Just(WalkStep::CarryOutDelayed),
        12 => (at(), any::<bool>()).prop_map(|(at, twice)| WalkStep::Hear(at, twice)),
        6 => Just(WalkStep::ShowNode),
        8 => Just(WalkStep::ShowPod),
        5 => Just(WalkStep::Schedule),
        3 => any::<bool>().prop_map(WalkStep::Fill),
        4 => (1..9_i64).prop_map(WalkStep::Pass),
        1 => any::<u64>().prop_map(WalkStep::Restart),
    ];
    prop::collection::vec(step, 20..240)
}

fn name(world: &World, at: usize) -> String {
    let names = world.names();
    if names.is_empty() { String::new() } else { names[at % names.len()].to_string() }
}

fn walk(world: &mut World, number: usize, step: &WalkStep) {
    match *step {
        WalkStep::Create => world.create(&format!("pod-{number}")),
        WalkStep::Delete(at) => world.delete(&name(world, at)),
        WalkStep::End(at) => world.end(&name(world, at)),
        WalkStep::Kill(at) => world.kill(&name(world, at)),
        WalkStep::Serve(at, answer) => world.serve(&name(world, at), answer),
        WalkStep::FreeLock => world.free_lock(),
        WalkStep::Start(at) => world.start(&name(world, at)),
        WalkStep::RivalComes => world.rival_comes(),
        WalkStep::RivalStarts => world.rival_starts(),
        WalkStep::RivalGoes => world.rival_goes(),
        WalkStep::Report => world.report(),
        WalkStep::Intrude(at) => world.intrude(at),
        WalkStep::CarryOut(at, outcome) => world.carry_out(at, outcome),
        WalkStep::CarryOutDelayed => world.carry_out_delayed(),
        WalkStep::Hear(at, twice) => world.hear(at, twice),
        WalkStep::ShowNode => world.show_node(),
        WalkStep::ShowPod => world.show_pod(),
        WalkStep::Schedule => world.schedule(),
        WalkStep::Fill(full) => world.full = full,
        WalkStep::Pass(seconds) => world.pass(SignedDuration::from_secs(seconds)),
        WalkStep::Restart(carried_out) => world.restart(carried_out),
    }
}

/// 384 walks, or more if `PROPTEST_CASES` asks for them.
fn config() -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig { cases: config.cases.max(384), ..config }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn one_pod_at_a_time_is_served_no_doubt_is_given_up_and_no_lock_is_left_behind(
        steps in steps(),
        need in prop_oneof![Just(LockNeed::Always), Just(LockNeed::WhereContested)],
    ) {
        let mut world = World::needing(need);
        for (number, step) in steps.iter().enumerate() {
            walk(&mut world, number, step);
            world.judge();
            prop_assert!(world.faults.is_empty(), "after step {}, {:?}: {:?}", number, step, world.faults);
        }
        world.abandon();
        world.come_to_rest();
        prop_assert!(world.faults.is_empty(), "at rest: {:?}", world.faults);
        prop_assert!(world.left().is_empty(), "{:?}; under way: {:?}", world.left(), world.sent());
    }
}
