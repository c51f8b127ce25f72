//! Decisions that try more than one pod: victims for one, and a gang.

use std::time::Duration;

use berth::scheduling::plan::Plan;
use berth::scheduling::{
    Uid,
    decide::Decision,
    model::gang::{Gang, GangName, GroupApi, Member, Tally},
    plan::{
        gang::{Applicant, AsItIs, Pool, place},
        preemption::{Rules, choose},
    },
    plugin::pod_counts::PodCounts,
    world::ledger::Charge,
};
use tokio::time::Instant;

use super::{
    family::GANG,
    world::{World, charge},
};

impl World {
    /// Decides a pod that fits nowhere and looks for its victims, which stay; another pod is charged. How long both took.
    pub(super) fn preempt(&mut self, memory: u64) -> Duration {
        let mut demand = self.demand(self.family.memory(memory));
        demand.priority = 100;
        let name = |pod: &Uid| Some(pod.clone());
        let started = Instant::now();
        let decision = self.classes.decide(&demand, &self.snapshot, |_| 0);
        let chosen = choose(&demand, &mut self.snapshot, &mut PodCounts::default(), Rules::default(), &name);
        let spent = started.elapsed();
        assert!(decision.is_err() && chosen.is_ok(), "{decision:?}, {chosen:?}");
        self.snapshot.charge(demand.uid, self.another());
        self.placed += 1;
        spent
    }

    /// Decides a gang, and charges its pods if they all find room, or else another pod; how long the decision took.
    pub(super) fn place_gang(&mut self, memory: u64) -> Duration {
        let gang = Gang { min: usize::try_from(GANG).unwrap(), ..Gang::default() };
        let name = GangName { api: GroupApi::Volcano, group: "default/gang".into() };
        let member = Member { gang: name, task: None };
        let applicants: Vec<_> = (0..GANG)
            .map(|at| {
                let mut demand = self.demand(self.family.memory_of_member(at, memory));
                demand.uid = format!("{}/{at}", demand.uid).into();
                Applicant { demand, member: member.clone() }
            })
            .collect();
        let footprint = applicants[0].demand.footprint.clone();
        let pool = Pool { gang: &gang, placed: Tally::default(), nodes: Vec::new(), applicants };
        // Made before the time begins.
        let held = charge(&"".into(), Vec::new(), footprint, Vec::new());
        let charge_of = |_: &Uid, decision: &Decision| {
            let Decision { node, allocations, steps } = decision.clone();
            Charge { node, allocations, steps, ..held.clone() }
        };
        let started = Instant::now();
        let mut room = AsItIs { classes: &mut self.classes, charge: charge_of };
        let mut plan = Plan::new(&mut self.snapshot);
        let found = place(&pool, &mut plan, &mut room, &|_| 0);
        if found.is_ok() {
            plan.commit();
        } else {
            drop(plan);
        }
        let spent = started.elapsed();
        assert_eq!(found.is_ok(), self.family.fits(), "{}: {found:?}", self.family.name());
        if found.is_err() {
            self.snapshot.charge(format!("other/{}", self.placed).into(), self.another());
        }
        self.placed += 1;
        spent
    }
}
