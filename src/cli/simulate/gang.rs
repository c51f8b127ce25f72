//! Gangs in a simulation: the pods of a PodGroup are placed together or not at all.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    charge::placed,
    report::SimulatedPod,
    run::{Entries, Entry, SimulationRun},
};
use crate::scheduling::plan::Plan;
use crate::scheduling::{
    PodInfo, Uid,
    decide::Decision,
    model::gang::{Gang, GangName, Member, Membership, Policy, Tally},
    plan::{
        gang::{Applicant, AsItIs, GangRefusal, MadeRoom, Pool, Shortfall, Ungathered, place},
        preemption::{Candidate, Rules},
    },
    world::ledger::Charge,
};

impl SimulationRun<'_> {
    /// Takes in that a pod holds a place.
    pub(super) fn note_holder(&mut self, info: &PodInfo, charge: &Charge) {
        if let Some(member) = &info.groups.gang {
            let holders = self.holders.entry(member.gang.clone()).or_default();
            holders.push((member.clone(), charge.node.clone()));
        }
    }

    /// What the pod's PodGroup says; `None`: the pod is placed alone.
    pub(super) fn membership(&self, info: &PodInfo) -> Option<(Arc<Member>, Membership)> {
        let member = info.groups.gang.clone().filter(|_| self.gangs)?;
        match self.snapshot.objects().membership(&member.gang) {
            Membership::Policy(Policy::Alone) => None,
            membership => Some((member, membership)),
        }
    }

    /// Places the pods of a gang of which this one's turn has come, with all others that wait.
    pub(super) fn place_gang(
        &mut self,
        (member, membership): (&Member, Membership),
        first: Entry,
        waiting: &mut Entries,
    ) -> Vec<(u64, SimulatedPod)> {
        let name = &member.gang;
        let refused = |(at, row, _): Entry, why: &Ungathered, gang: Option<&Gang>| {
            (at, row.unschedulable(why.message(name, gang)))
        };
        let gang = match &membership {
            Membership::Policy(Policy::Gang(gang)) => gang.clone(),
            Membership::Policy(Policy::Unserved(why)) => {
                return vec![refused(first, &Ungathered::Unserved(why.clone()), None)];
            }
            _ => return vec![refused(first, &Ungathered::NotFound, None)],
        };
        let holders = self.holders.get(name).cloned().unwrap_or_default();
        let held = Tally::default().beside(holders.iter().map(|(member, _)| &**member));
        let entries = together(first, waiting, name, gang.is_whole(&held));
        let applicants: Vec<_> = entries.iter().filter_map(|(_, _, info)| applicant(info)).collect();
        let all = held.clone().beside(applicants.iter().map(|applicant| &applicant.member));
        let why = match () {
            () if gang.room(&held) == 0 => Some(Ungathered::Full(held.total())),
            () if !gang.is_whole(&all) => Some(Ungathered::TooFew(all.total())),
            () => None,
        };
        if let Some(why) = why {
            return entries.into_iter().map(|entry| refused(entry, &why, Some(&gang))).collect();
        }
        let nodes = holders.into_iter().map(|(_, node)| node).collect();
        let pool = Pool { gang: &gang, placed: held, nodes, applicants };
        self.place_pool((member, membership), &pool, entries)
    }

    fn place_pool(
        &mut self,
        (member, membership): (&Member, Membership),
        pool: &Pool<'_>,
        mut entries: Vec<Entry>,
    ) -> Vec<(u64, SimulatedPod)> {
        for (_, row, info) in &mut entries {
            self.explain(row, info);
        }
        let infos: BTreeMap<Uid, PodInfo> =
            entries.iter().map(|(_, _, info)| (info.key.uid.clone(), info.clone())).collect();
        let now = self.now;
        let charge = |uid: &Uid, decision: &Decision| placed(&infos[uid], decision.clone(), now);
        let mut plan = Plan::new(&mut self.snapshot);
        let mut room = AsItIs { classes: &mut self.classes, charge };
        let found = place(pool, &mut plan, &mut room, &|_| 0);
        drop(plan);
        match found {
            Ok(found) => {
                let mut found: BTreeMap<Uid, Decision> = found.into_iter().collect();
                let (placed, left): (Vec<_>, Vec<_>) =
                    entries.into_iter().partition(|(_, _, info)| found.contains_key(&info.key.uid));
                let mut rows = Vec::new();
                for (at, row, info) in placed {
                    let decision = found.remove(&info.key.uid).expect("it was just found there");
                    rows.push((at, self.carry_out(row, &info, decision)));
                }
                // The gang is whole: each of the others is tried beside it.
                for entry in left {
                    rows.extend(self.place_gang((member, membership.clone()), entry, &mut Entries::new()));
                }
                rows
            }
            Err(shortfall) => self.refuse_pool(&member.gang, pool, &shortfall, entries),
        }
    }

    /// Says to each pod why the gang waits, and which pods would be preempted for it.
    fn refuse_pool(
        &mut self,
        name: &GangName,
        pool: &Pool<'_>,
        shortfall: &Shortfall,
        entries: Vec<Entry>,
    ) -> Vec<(u64, SimulatedPod)> {
        let called: BTreeMap<Uid, Arc<str>> =
            entries.iter().map(|(_, _, info)| (info.key.uid.clone(), info.key.name.clone())).collect();
        let refusal = GangRefusal::new(name, pool, shortfall, |uid| called[uid].clone(), None);
        let mut nominated =
            self.preemption.and_then(|rules| self.made_room(rules, pool, &entries)).unwrap_or_default();
        let mut rows = Vec::new();
        for (at, row, info) in entries {
            let uid = &info.key.uid;
            let message = refusal.of(uid).message().full;
            let mut row = match shortfall.failure_of(uid) {
                Some(Some(error)) => row.unfit(error),
                _ => row.unschedulable(String::new()),
            };
            row.message = Some(message);
            let row = match nominated.remove(uid) {
                None => row,
                Some(Candidate { node, victims, .. }) => {
                    let named =
                        victims.iter().filter_map(|victim| self.names.get(&victim.pod).cloned()).collect();
                    let victims = victims.into_iter().map(|victim| victim.pod).collect();
                    self.snapshot.keep_for(&info, &node, victims);
                    row.nominated(&node, named)
                }
            };
            rows.push((at, row));
        }
        rows
    }

    /// The node of each pod of the gang, and the pods that would go for it.
    fn made_room(
        &mut self,
        rules: Rules,
        pool: &Pool<'_>,
        entries: &[Entry],
    ) -> Option<BTreeMap<Uid, Candidate>> {
        let infos: BTreeMap<&Uid, &PodInfo> =
            entries.iter().map(|(_, _, info)| (&info.key.uid, info)).collect();
        let (names, now) = (&self.names, self.now);
        let name = |pod: &Uid| names.get(pod).and_then(|name| name.rsplit('/').next()).map(Arc::from);
        let charge = |uid: &Uid, decision: &Decision| placed(infos[uid], decision.clone(), now);
        let mut plan = Plan::new(&mut self.snapshot);
        let mut room = MadeRoom::new(&mut self.classes, rules, &name, charge);
        let found = place(pool, &mut plan, &mut room, &|_| 0).ok()?;
        Some(room.nominations(found).into_iter().collect())
    }
}

/// The pod and, unless its gang is whole, all others of the gang that wait, in the order of the queue.
fn together(first: Entry, waiting: &mut Entries, name: &GangName, whole: bool) -> Vec<Entry> {
    let is_mate = |info: &PodInfo| info.groups.gang.as_ref().is_some_and(|member| member.gang == *name);
    let mates = waiting.iter().filter(|(_, (_, _, info))| !whole && is_mate(info));
    let mates: Vec<Uid> = mates.map(|(uid, _)| uid.clone()).collect();
    let mut entries = vec![first];
    entries.extend(mates.iter().filter_map(|uid| waiting.remove(uid)));
    entries.sort_by_key(|(at, _, info)| {
        (std::cmp::Reverse(info.importance.priority), info.lifetime.created, *at)
    });
    entries
}

fn applicant(info: &PodInfo) -> Option<Applicant> {
    Some(Applicant { demand: info.demand()?, member: (**info.groups.gang.as_ref()?).clone() })
}
