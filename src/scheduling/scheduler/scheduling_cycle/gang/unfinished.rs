//! Attempts to place a gang that take more than one turn of the loop.
//!
//! A namespace has one at a time, for as long as the pods are the same: what a user's gangs hold of memory and of a turn does not grow with
//! their number.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use crate::scheduling::{
    model::{
        gang::{Gang, GangName, Tally},
        name::{NodeName, Uid},
    },
    plan::gang::{Candidates, ClearedSearch, GangSearch, GangShortfall, Pool},
    scheduler::scheduling_cycle::scheduling_queue::MOST_STEPS,
    snapshot::Snapshot,
};

/// What a search on trial takes, of which nothing is kept.
pub(super) const MOST_ON_TRIAL: u64 = 2 * MOST_STEPS;

/// An attempt to place the pods of a gang.
#[derive(Debug)]
pub(in crate::scheduling::scheduler) struct UnfinishedAttempt {
    of: PoolKey,
    /// The search under way.
    pub(in crate::scheduling::scheduler) search: GangSearch,
    /// Why the gang finds no room as it is; pods are to be preempted for it then.
    pub(in crate::scheduling::scheduler) shortfall: Option<GangShortfall>,
    /// For which pods of the gang others would go, as far as the search is.
    pub(super) candidates: Candidates,
    /// The search among all pods at once, where victims for one pod after another make no room.
    pub(super) cleared: Option<ClearedSearch>,
    /// What the cluster was when the attempt was interrupted for the first time.
    interrupted: Option<ClusterVersion>,
}

/// What an attempt is for: one for other pods begins anew.
#[derive(Debug, Eq, PartialEq)]
struct PoolKey {
    name: GangName,
    gang: Gang,
    placed: Tally,
    nodes: Vec<(GangName, NodeName)>,
    applicants: Vec<Uid>,
    part: usize,
}

impl PoolKey {
    fn of(name: &GangName, pool: &Pool<'_>) -> Self {
        Self {
            name: name.clone(),
            gang: pool.gang.clone(),
            placed: pool.placed.clone(),
            nodes: pool.nodes.clone(),
            part: pool.part,
            applicants: pool.applicants.iter().map(|applicant| applicant.uid().clone()).collect(),
        }
    }
}

/// A number for all nodes, and the versions of quotas and other objects: the same as long as nothing has changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct ClusterVersion([u64; 3]);

/// The attempts that are to go on, by namespace.
#[derive(Debug, Default)]
pub(super) struct UnfinishedAttempts(BTreeMap<Arc<str>, UnfinishedAttempt>);

impl UnfinishedAttempts {
    /// The attempt for these pods that is to go on, or else a new one.
    pub(super) fn take(&mut self, name: &GangName, pool: &Pool<'_>) -> UnfinishedAttempt {
        let of = PoolKey::of(name, pool);
        let namespace = pool.applicants.first().map(|applicant| &applicant.demand.footprint.namespace);
        let unfinished = namespace.and_then(|namespace| self.0.remove(namespace));
        unfinished.filter(|attempt| attempt.of == of).unwrap_or_else(|| UnfinishedAttempt {
            of,
            search: GangSearch::default(),
            shortfall: None,
            candidates: Candidates::new(),
            cleared: None,
            interrupted: None,
        })
    }

    /// The attempt of this namespace goes on in a later turn.
    pub(super) fn put_off(
        &mut self,
        namespace: &Arc<str>,
        mut attempt: UnfinishedAttempt,
        snapshot: &Snapshot,
    ) {
        attempt.interrupted.get_or_insert_with(|| ClusterVersion::of(snapshot));
        self.0.insert(namespace.clone(), attempt);
    }

    /// The gang has no pods any more.
    pub(super) fn forget(&mut self, name: &GangName) {
        self.0.retain(|_, attempt| attempt.of.name != *name);
    }
}

impl UnfinishedAttempt {
    /// Whether something changed while the attempt was under way that could have helped its pods: nobody waited for it then.
    pub(in crate::scheduling::scheduler) fn has_missed_changes(&self, snapshot: &Snapshot) -> bool {
        self.interrupted.is_some_and(|version| version != ClusterVersion::of(snapshot))
    }
}

impl ClusterVersion {
    fn of(snapshot: &Snapshot) -> Self {
        let mut nodes = DefaultHasher::new();
        snapshot.nodes.generations().hash(&mut nodes);
        Self([nodes.finish(), snapshot.quotas().version(), snapshot.objects().version()])
    }
}
