//! Decisions that try more than one pod: victims for one, and a gang.

use super::{
    family::GANG,
    world::{TrialOutcome, TrialSubject, World, charge},
};
use berth::scheduling::plan::Plan;
use berth::scheduling::{
    Demand, Uid,
    decide::Decision,
    model::gang::{Gang, GangName, GroupApi, Member, Tally},
    plan::{
        gang::{Applicant, AsItIs, Pool, place},
        preemption::{Rules, choose},
    },
    plugin::pod_counts::PodCounts,
    world::ledger::Charge,
};

impl World {
    /// Decides a pod that fits nowhere and looks for its victims, which stay.
    pub(super) fn preempt(&mut self, demand: Demand) -> TrialOutcome {
        let decision = self.classes.decide(&demand, &self.snapshot, |_| 0);
        let chosen = choose(&demand, &mut self.snapshot, &mut PodCounts::default(), Rules::default());
        TrialOutcome::Preemptor(demand, decision, chosen.map_err(|none| format!("{none:?}")))
    }

    /// The pods of the next gang.
    pub(super) fn next_gang(&mut self, memory: u64) -> TrialSubject {
        let name = GangName { api: GroupApi::Volcano, group: "default/gang".into() };
        let member = Member { gang: name, task: None };
        let applicant = |at| {
            let mut demand = self.demand(self.family.memory_of_member(at, memory));
            demand.uid = format!("{}/{at}", demand.uid).into();
            Applicant { demand, member: member.clone() }
        };
        TrialSubject::Gang((0..GANG).map(applicant).collect())
    }

    /// Decides a gang, and charges its pods if they all find room.
    pub(super) fn place_gang(&mut self, applicants: Vec<Applicant>) -> TrialOutcome {
        let gang = Gang { min: applicants.len(), ..Gang::default() };
        let held = charge(&"".into(), Vec::new(), applicants[0].demand.footprint.clone(), Vec::new());
        let pool = Pool { gang: &gang, placed: Tally::default(), nodes: Vec::new(), applicants, part: 0 };
        let charge_of = |_: &Uid, decision: &Decision| {
            let Decision { node, allocations, steps } = decision.clone();
            Charge { node, allocations: allocations.into(), steps: steps.into(), ..held.clone() }
        };
        let mut room = AsItIs { classes: &mut self.classes, charge: charge_of };
        let mut plan = Plan::new(&mut self.snapshot);
        let found = place(&pool, &mut plan, &mut room, &|_| 0);
        if found.is_ok() {
            plan.commit();
        } else {
            drop(plan);
        }
        TrialOutcome::Gang(pool.applicants, found.err().map(|unfit| format!("{unfit:?}")))
    }
}
