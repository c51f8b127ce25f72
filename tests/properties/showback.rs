//! Whichever replica counts, whatever becomes of its writes and whenever it dies: what is stored of each pod is the time for which it held its
//! share. Only what ended while no replica looked is missing.

use berth::scheduling::{
    model::workload::Workload,
    showback::{HeldParts, UsageAccount, UsageSpan},
};
use jiff::Timestamp;
use proptest::prelude::*;

/// Something that happens. Numbers choose among what there is, modulo its count.
#[derive(Clone, Debug)]
enum Step {
    Bind,
    End(usize),
    /// So many milliseconds pass.
    Pass(i64),
    /// The leader counts and writes, and this becomes of its write.
    Count(Fate),
    /// The leader that was ousted writes what it counted last.
    Stale,
    /// The other replica leads; whether it has watched pods all the time.
    HandOver(bool),
    /// The clock of the leader is behind by so many milliseconds.
    Skew(i64),
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Kept,
    Refused,
    /// It is carried out, and the answer is lost.
    Unanswered,
    /// It never arrives, which nobody says.
    Lost,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let fate = prop_oneof![
        4 => Just(Fate::Kept),
        1 => Just(Fate::Refused),
        1 => Just(Fate::Unanswered),
        1 => Just(Fate::Lost),
    ];
    let step = prop_oneof![
        4 => Just(Step::Bind),
        4 => any::<usize>().prop_map(Step::End),
        6 => (1..90_000_i64).prop_map(Step::Pass),
        6 => fate.prop_map(Step::Count),
        1 => Just(Step::Stale),
        1 => any::<bool>().prop_map(Step::HandOver),
        1 => (0..30_000_i64).prop_map(Step::Skew),
    ];
    prop::collection::vec(step, 10..120)
}

struct Held {
    bound: i64,
    ended: Option<i64>,
}

/// A replica: the account that it knows to be stored, by version, and what it has seen to end.
#[derive(Default)]
struct Replica {
    known: Option<(u64, UsageAccount)>,
    ended: Vec<UsageSpan>,
}

struct World {
    now: i64,
    behind: i64,
    pods: Vec<Held>,
    stored: (u64, UsageAccount),
    replicas: [Replica; 2],
    leader: usize,
    /// What the leader before has counted, and from which version.
    stale: Option<(u64, UsageAccount)>,
    /// Seconds of pods that ended unseen.
    missed: i64,
}

fn at(millisecond: i64) -> Timestamp {
    Timestamp::from_millisecond(millisecond).unwrap()
}

impl World {
    fn new() -> Self {
        Self {
            now: 0,
            behind: 0,
            pods: Vec::new(),
            stored: (0, UsageAccount::begin(at(0))),
            replicas: [Replica::default(), Replica::default()],
            leader: 0,
            stale: None,
            missed: 0,
        }
    }

    fn span(&self, pod: usize, until: i64) -> UsageSpan {
        UsageSpan {
            pod: format!("pod-{pod}").as_str().into(),
            namespace: "team-a".into(),
            workload: Workload { kind: "Job".into(), name: format!("job-{pod}").into() },
            labels: Vec::new(),
            held: HeldParts { memory: 1, cores: 1, gpus: 1 },
            from: at(self.pods[pod].bound),
            until: at(until),
        }
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Bind => self.pods.push(Held { bound: self.now, ended: None }),
            Step::End(which) => {
                let running: Vec<usize> =
                    (0..self.pods.len()).filter(|pod| self.pods[*pod].ended.is_none()).collect();
                let Some(pod) = running.get(which % running.len().max(1)) else { return };
                self.pods[*pod].ended = Some(self.now);
                let span = self.span(*pod, self.now);
                self.replicas.iter_mut().for_each(|replica| replica.ended.push(span.clone()));
            }
            Step::Pass(time) => self.now += time,
            Step::Count(fate) => self.count(fate),
            Step::Stale => {
                if let Some((version, account)) = self.stale.take() {
                    self.store(version, account);
                }
            }
            Step::HandOver(watched) => self.hand_over(watched),
            Step::Skew(behind) => self.behind = behind,
        }
    }

    /// Whether the write was of the version that is stored.
    fn store(&mut self, version: u64, account: UsageAccount) -> bool {
        let is_newest = self.stored.0 == version;
        if is_newest {
            self.stored = (version + 1, account);
        }
        is_newest
    }

    fn count(&mut self, fate: Fate) {
        let now = self.now - self.behind;
        let (version, account) =
            self.replicas[self.leader].known.take().unwrap_or_else(|| self.stored.clone());
        let running = (0..self.pods.len()).filter(|pod| self.pods[*pod].ended.is_none());
        let spans =
            running.map(|pod| self.span(pod, now)).chain(self.replicas[self.leader].ended.iter().cloned());
        let account = account.advance(at(now.max(0)), spans.collect(), &[]);
        self.stale = Some((version, account.clone()));
        let is_stored = match fate {
            Fate::Kept | Fate::Unanswered => self.store(version, account.clone()),
            Fate::Refused | Fate::Lost => false,
        };
        if is_stored && matches!(fate, Fate::Kept) {
            let replica = &mut self.replicas[self.leader];
            replica.ended.retain(|span| span.until > account.counted_until);
            replica.known = Some((version + 1, account));
        }
    }

    fn hand_over(&mut self, watched: bool) {
        self.leader = 1 - self.leader;
        let until = self.stored.1.counted_until.as_second();
        let leader = &mut self.replicas[self.leader];
        leader.known = None;
        if !watched {
            let missed =
                leader.ended.drain(..).map(|span| span.until.as_second() - until.max(span.from.as_second()));
            self.missed += missed.filter(|seconds| *seconds > 0).sum::<i64>();
        }
    }

    /// For how many whole seconds pods have held their shares up to the time to which the account has counted.
    fn held(&self) -> i64 {
        let until = self.stored.1.counted_until.as_second();
        let held = |pod: &Held| {
            let ended = pod.ended.map_or(until, |ended| at(ended).as_second().min(until));
            (ended - at(pod.bound).as_second()).max(0)
        };
        self.pods.iter().map(held).sum()
    }

    fn counted(&self) -> i64 {
        let row = self.stored.1.namespaces.get(&["team-a".into()]);
        row.map_or(0, |row| row.held.memory.cast_signed())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn no_moment_is_counted_twice_and_only_what_ended_unseen_is_missing(steps in steps()) {
        let mut world = World::new();
        for step in &steps {
            let before = world.counted();
            world.run(step);
            prop_assert!(before <= world.counted(), "a counter has fallen at {:?}", step);
            prop_assert!(world.counted() <= world.held(), "counted twice at {:?}", step);
        }
        world.behind = 0;
        world.now += 60_000;
        // The first of them may find that another version is stored.
        (0..2).for_each(|_| world.count(Fate::Kept));
        // A stale write that arrives may hold some of what the new leader has missed.
        let missing = world.held() - world.counted();
        prop_assert!((0..=world.missed).contains(&missing), "{} of {} s are missing", missing, world.missed);
        let by_workload: u64 = world.stored.1.workloads.iter().map(|(_, row)| row.held.memory).sum();
        prop_assert_eq!(by_workload.cast_signed(), world.counted());
    }
}
