//! Whatever pods hold: a gang finds victims if there is room for it once all pods are gone that may be preempted, which is found out by trying every node
//! for every pod; and no victim could stay.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    device::{Answer, Card},
    object::{Labels, Pod},
    scheduling::{
        Footprint, Importance, ResourceAmounts,
        fixtures::{self, PROFILE, allocation, ask, demand, share},
        model::{
            gang::{DisruptionMode, Gang, GangName, Group, GroupApi, GroupPreemption, Member, Policy, Tally},
            kind::PodGroupKind,
            label_set::LabelSet,
        },
        plan::gang::MadeRoom,
        world::object::Object,
    },
};

const MEMORY: u64 = 8;
const GROUPS: usize = 2;
const PRIORITY: i32 = 2;

/// A pod that holds a part of the card of its node.
#[derive(Clone, Copy, Debug)]
struct Tenant {
    node: usize,
    memory: u64,
    priority: i32,
    /// Whether the gang keeps away from its zone.
    is_noisy: bool,
    /// The PodGroup with which it goes.
    group: Option<usize>,
}

/// Nodes with a card each, two in a zone.
#[derive(Clone, Debug)]
struct Cluster {
    nodes: usize,
    pods: Vec<Tenant>,
}

/// The pods of a gang, by what they ask for, and whether they keep away from zones with noisy pods.
#[derive(Clone, Debug)]
struct Team {
    memory: Vec<u64>,
    is_averse: bool,
}

fn node(at: usize) -> String {
    format!("n{at}")
}

fn uid(at: usize) -> Uid {
    format!("tenant-{at}").as_str().into()
}

fn group(at: usize) -> Arc<str> {
    format!("default/group-{at}").into()
}

fn labels(tenant: &Tenant) -> Labels {
    Labels::from([("app".to_owned(), if tenant.is_noisy { "noisy" } else { "quiet" }.to_owned())])
}

fn held(at: usize, tenant: &Tenant) -> Charge {
    let card = format!("GPU-{}", node(tenant.node));
    let footprint = Footprint {
        namespace: "default".into(),
        labels: LabelSet::from(&labels(tenant)),
        ..Footprint::default()
    };
    Charge {
        pod: fixtures::key(&uid(at)),
        footprint: Arc::new(footprint),
        importance: Importance {
            priority: tenant.priority,
            started: Timestamp::from_second(i64::try_from(at).unwrap()).ok(),
            group: tenant.group.map(group),
            ..Importance::default()
        },
        ..fixtures::charge(
            &node(tenant.node),
            vec![allocation(PROFILE, share(&card, tenant.memory, 0), Answer::Succeeded)],
        )
    }
}

impl Cluster {
    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for at in 0..self.nodes {
            let card = Card { slots: 20, ..fixtures::card(&format!("GPU-{}", node(at)), 0, MEMORY) };
            let mut info = fixtures::node_offering(&node(at), vec![fixtures::offer(PROFILE, vec![card])]);
            info.labels = [("zone", format!("z{}", at / 2))].into();
            snapshot.set_node(info);
        }
        for at in 0..GROUPS {
            let preemption =
                GroupPreemption { disruption: DisruptionMode::All, ..GroupPreemption::default() };
            let said = Arc::new(Group { preemption, ..Group::of(Policy::Alone) });
            snapshot.set_object(Object::PodGroup(PodGroupKind::Kubernetes, group(at), said));
        }
        for (at, tenant) in self.pods.iter().enumerate() {
            snapshot.charge(uid(at), held(at, tenant));
        }
        snapshot
    }

    /// The pods that go together with this one, itself included.
    fn mates(&self, at: usize) -> Vec<usize> {
        let Some(group) = self.pods[at].group else { return vec![at] };
        (0..self.pods.len()).filter(|other| self.pods[*other].group == Some(group)).collect()
    }

    fn may_go(&self, at: usize) -> bool {
        self.mates(at).iter().all(|mate| self.pods[*mate].priority < PRIORITY)
    }

    /// Whether each pod of the team can be on its node beside these.
    fn have_room(&self, staying: &[usize], team: &Team, places: &[usize]) -> bool {
        let of = |at: usize| {
            let here = staying.iter().filter(|pod| self.pods[**pod].node == at);
            let own = team.memory.iter().zip(places).filter(|(_, place)| **place == at);
            here.map(|pod| self.pods[*pod].memory).sum::<u64>() + own.map(|(memory, _)| memory).sum::<u64>()
        };
        let is_noisy = |place: usize| {
            staying.iter().any(|pod| self.pods[*pod].is_noisy && self.pods[*pod].node / 2 == place / 2)
        };
        (0..self.nodes).all(|at| of(at) <= MEMORY)
            && !(team.is_averse && places.iter().any(|place| is_noisy(*place)))
    }

    /// Whether the team has room once all pods that may go are gone, on whatever nodes.
    fn can_have(&self, team: &Team) -> bool {
        let staying: Vec<usize> = (0..self.pods.len()).filter(|at| !self.may_go(*at)).collect();
        let count = self.nodes.pow(u32::try_from(team.memory.len()).unwrap());
        (0..count).any(|mut number| {
            let places: Vec<usize> = team
                .memory
                .iter()
                .map(|_| {
                    let place = number % self.nodes;
                    number /= self.nodes;
                    place
                })
                .collect();
            self.have_room(&staying, team, &places)
        })
    }
}

fn applicants(team: &Team) -> Vec<Applicant> {
    let averse = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "noisy"}}, "topologyKey": "zone"}]}});
    let affinity = if team.is_averse { averse } else { json!({}) };
    let pod = json!({"metadata": {"name": "p", "namespace": "default"}, "spec": {"affinity": affinity}});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let footprint = Arc::new(Footprint::of_pod(&pod, ResourceAmounts::default()));
    let gang = GangName { api: GroupApi::Volcano, group: "default/gang".into() };
    let of = |(at, memory): (usize, &u64)| Applicant {
        demand: Demand {
            priority: PRIORITY,
            footprint: footprint.clone(),
            ..demand(&format!("p{at}"), ask(1, *memory, 0))
        },
        member: Member { gang: gang.clone(), task: None },
    };
    team.memory.iter().enumerate().map(of).collect()
}

fn charge_of(_: &Uid, decision: &Decision) -> Charge {
    let importance = Importance { priority: PRIORITY, ..Importance::default() };
    Charge { importance, ..fixtures::charge(&decision.node, decision.allocations.clone()) }
}

type Found = Option<Vec<(Uid, Candidate)>>;

/// What victims for one pod after another come to.
fn one_by_one(snapshot: &mut Snapshot, pool: &Pool<'_>) -> Found {
    let mut classes = Classes::default();
    let mut room = MadeRoom::new(&mut classes, Rules::default(), charge_of);
    let mut plan = Plan::new(snapshot);
    let placed = GangSearch::default().go_on(pool, &mut plan, &mut room, &|_| 0, u64::MAX).unwrap().ok();
    drop(plan);
    placed.map(|placed| room.nominations(placed))
}

/// What comes of a cleared cluster, in pieces of so many steps.
fn cleared(snapshot: &mut Snapshot, pool: &Pool<'_>, most_steps: u64) -> Found {
    let (mut classes, mut search) = (Classes::default(), ClearedSearch::default());
    for _ in 0..1000 {
        let mut plan = Plan::new(snapshot);
        let of = (&mut classes, Rules::default());
        if let Some(found) = search.go_on(pool, &mut plan, of, &charge_of, most_steps) {
            return found.ok();
        }
    }
    panic!("each time one place is looked for at least");
}

fn pool<'a>(gang: &'a Gang, team: &Team) -> Pool<'a> {
    let applicants = applicants(team);
    Pool { gang, placed: Tally::default(), nodes: Vec::new(), applicants, part: 0 }
}

fn victims(found: &[(Uid, Candidate)]) -> BTreeSet<Uid> {
    let victims = found.iter().flat_map(|(_, candidate)| &candidate.victims);
    victims.map(|victim| victim.pod.clone()).collect()
}

fn gang_of(team: &Team) -> Gang {
    Gang { min: team.memory.len(), ..Gang::default() }
}

#[test]
fn pods_on_several_nodes_go_that_keep_a_gang_out_of_a_zone() {
    let noisy = |node| Tenant { node, memory: 1, priority: 0, is_noisy: true, group: None };
    let quiet = Tenant { is_noisy: false, ..noisy(1) };
    let stays = Tenant { node: 2, priority: 5, ..noisy(2) };
    let cluster = Cluster { nodes: 4, pods: vec![noisy(0), noisy(1), quiet, stays, noisy(3)] };
    let team = Team { memory: vec![6, 6], is_averse: true };
    let (gang, mut snapshot) = (gang_of(&team), cluster.snapshot());
    let pool = pool(&gang, &team);
    assert_eq!(one_by_one(&mut snapshot, &pool), None, "no single node makes room");
    assert!(ClearedSearch::can_help(&pool, &snapshot));
    let found = cleared(&mut snapshot, &pool, u64::MAX).unwrap();
    let nodes: BTreeSet<String> = found.iter().map(|(_, candidate)| candidate.node.to_string()).collect();
    assert_eq!(nodes, BTreeSet::from([node(0), node(1)]));
    assert_eq!(victims(&found), BTreeSet::from([uid(0), uid(1)]), "the quiet pod stays");
}

#[test]
fn a_gang_of_which_a_pod_preempts_no_others_clears_nothing() {
    let tenant = Tenant { node: 0, memory: 8, priority: 0, is_noisy: true, group: None };
    let cluster = Cluster { nodes: 1, pods: vec![tenant] };
    let team = Team { memory: vec![8], is_averse: true };
    let (gang, mut snapshot) = (gang_of(&team), cluster.snapshot());
    let mut pool = pool(&gang, &team);
    assert!(ClearedSearch::can_help(&pool, &snapshot));
    pool.applicants[0].demand.preemption_policy = PreemptionPolicy::Never;
    assert!(!ClearedSearch::can_help(&pool, &snapshot));
    assert_eq!(cleared(&mut snapshot, &pool, u64::MAX), None);
}

#[test]
fn of_more_pods_than_may_be_off_those_of_the_least_important_nodes_are() {
    let (nodes, each) = (150, 8);
    let pods = (0..nodes * each).map(|at| {
        let priority = i32::from(at / each >= 30);
        Tenant { node: at / each, memory: 1, priority, is_noisy: false, group: None }
    });
    let mut snapshot = Cluster { nodes, pods: pods.collect() }.snapshot();
    let preemptor = Demand { priority: PRIORITY, ..demand("p", ask(1, 1, 0)) };
    let (mut plan, mut classes) = (Plan::new(&mut snapshot), Classes::default());
    let steps = classes.counts().steps();
    let off = take_off_all(&preemptor, &BTreeSet::new(), &mut plan, Rules::default(), steps);
    let off: Vec<&Victim> = off.iter().flat_map(OffUnit::victims).collect();
    assert_eq!(off.len(), 1_000);
    assert_eq!(off.iter().filter(|victim| victim.importance.priority == 0).count(), 30 * each);
}

#[test]
fn where_it_takes_too_long_to_find_out_who_can_stay_nobody_goes() {
    let pods = (0..80 * 8).map(|at| Tenant {
        node: at / 8,
        memory: 1,
        priority: 0,
        is_noisy: at / 8 >= 40,
        group: None,
    });
    let cluster = Cluster { nodes: 80, pods: pods.collect() };
    // Of a gang that looks at single nodes, one place is confirmed for each pod; of one that looks at a zone, each is.
    for is_averse in [false, true] {
        let team = Team { memory: vec![8; 40], is_averse };
        let gang = gang_of(&team);
        let found = cleared(&mut cluster.snapshot(), &pool(&gang, &team), u64::MAX);
        assert_eq!(found.map(|found| victims(&found).len()), (!is_averse).then_some(320));
    }
}

fn clusters() -> impl Strategy<Value = Cluster> {
    let group = prop::option::weighted(0.3, 0..GROUPS);
    let tenant = (0..4_usize, 1..=6_u64, 0..4_i32, prop::bool::weighted(0.4), group);
    let tenant = tenant.prop_map(|(node, memory, priority, is_noisy, group)| Tenant {
        node,
        memory,
        priority,
        is_noisy,
        group,
    });
    (1..=4_usize, prop::collection::vec(tenant, 1..10)).prop_map(|(nodes, pods)| {
        let mut used: BTreeMap<usize, u64> = BTreeMap::new();
        // Those that their node has no room for are left out.
        let fits = |tenant: &Tenant| {
            let used = used.entry(tenant.node).or_default();
            let fits = tenant.node < nodes && *used + tenant.memory <= MEMORY;
            *used += if fits { tenant.memory } else { 0 };
            fits
        };
        let mut fits = fits;
        Cluster { nodes, pods: pods.into_iter().filter(|tenant| fits(tenant)).collect() }
    })
}

/// Each size divides the larger ones. Of sizes that do not, a search can miss a way to place them all.
fn teams() -> impl Strategy<Value = Team> {
    let memory = (0..4_u32).prop_map(|power| 1 << power);
    (prop::collection::vec(memory, 1..5), any::<bool>())
        .prop_map(|(memory, is_averse)| Team { memory, is_averse })
}

proptest! {
    #[test]
    fn a_gang_finds_victims_wherever_some_would_help_and_none_that_could_stay(cluster in clusters(), team in teams()) {
        let mut snapshot = cluster.snapshot();
        let before: Vec<_> = snapshot.nodes().cloned().collect();
        let gang = gang_of(&team);
        let pool = pool(&gang, &team);
        let one_by_one = one_by_one(&mut snapshot, &pool);
        let found = cleared(&mut snapshot, &pool, u64::MAX);
        prop_assert_eq!(&found, &cleared(&mut snapshot, &pool, 0), "in pieces");
        let same = snapshot.nodes().zip(&before).all(|(now, before)| Arc::ptr_eq(now, before));
        prop_assert!(same, "what was tried has left a trace");
        let can_have = cluster.can_have(&team);
        let helps = ClearedSearch::can_help(&pool, &snapshot);
        prop_assert_eq!(one_by_one.is_some() || helps && found.is_some(), can_have);
        let may_go = (0..cluster.pods.len()).any(|at| cluster.may_go(at));
        prop_assert_eq!(found.is_some(), can_have && may_go);
        for found in one_by_one.iter().chain(&found) {
            let gone = victims(found);
            let (gone, staying): (Vec<usize>, Vec<usize>) =
                (0..cluster.pods.len()).partition(|at| gone.contains(&uid(*at)));
            let places: BTreeMap<&Uid, usize> = found
                .iter()
                .map(|(pod, candidate)| (pod, candidate.node.trim_start_matches('n').parse().unwrap()))
                .collect();
            let places: Vec<usize> =
                pool.applicants.iter().map(|applicant| places[applicant.uid()]).collect();
            prop_assert!(cluster.have_room(&staying, &team, &places), "{:?} go, {:?}", gone, places);
            for at in &gone {
                prop_assert!(cluster.may_go(*at), "{at} is as important");
                prop_assert!(cluster.mates(*at).iter().all(|mate| gone.contains(mate)), "{at} goes in part");
            }
        }
        let Some(found) = found else { return Ok(()) };
        let gone = victims(&found);
        let places: BTreeMap<&Uid, usize> =
            found.iter().map(|(pod, one)| (pod, one.node.trim_start_matches('n').parse().unwrap())).collect();
        let places: Vec<usize> = pool.applicants.iter().map(|applicant| places[applicant.uid()]).collect();
        for at in (0..cluster.pods.len()).filter(|at| gone.contains(&uid(*at))) {
            let mates = cluster.mates(at);
            let stay = |pod: &usize| !gone.contains(&uid(*pod)) || mates.contains(pod);
            let staying: Vec<usize> = (0..cluster.pods.len()).filter(stay).collect();
            prop_assert!(!cluster.have_room(&staying, &team, &places), "{at} could stay");
        }
    }
}
