//! Whatever comes, goes and is answered: no namespace beyond its quotas, and nobody waits for a quota that would have it.

use berth::scheduling::Event;
use jiff::SignedDuration;
use proptest::prelude::*;

use super::worlds::{cards, pod, profile};
use world::{Step, World};

#[path = "quotas/stories.rs"]
mod stories;
#[path = "quotas/world.rs"]
mod world;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bound = || prop::option::of(0..40_u64);
    let quota = (0..2_usize, 0..2_u8, [bound(), bound(), bound()]);
    let step = prop_oneof![
        8 => (0..2_usize, pod()).prop_map(|(namespace, pod)| Step::Come(namespace, Box::new(pod))),
        2 => any::<usize>().prop_map(Step::EndInit),
        4 => any::<usize>().prop_map(Step::Go),
        3 => quota.prop_map(|(namespace, number, bounds)| Step::Quota(namespace, number, bounds)),
        1 => (0..2_usize, 0..2_u8).prop_map(|(namespace, number)| Step::NoQuota(namespace, number)),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_namespace_is_put_beyond_its_quota(
        cards in cards(),
        profile in profile(),
        steps in steps(),
        refuse in 2..9_u32,
    ) {
        let mut world = World::new(profile, &cards, refuse);
        let mut before = world.held();
        for (at, step) in steps.into_iter().enumerate() {
            world.step(at, step);
            world.settle(&mut |world| world.check(&mut before))?;
        }
        // Long enough for what was refused to be tried again, and for the audit, which asks of every pod that waits whether it must.
        for _ in 0..8 {
            world.now += SignedDuration::from_secs(70);
            world.observe(Event::Tick);
            world.settle(&mut |world| world.check(&mut before))?;
        }
        prop_assert_eq!(&world.drift, &Vec::<String>::new());
    }
}
