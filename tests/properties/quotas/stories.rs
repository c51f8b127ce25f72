//! Single stories of quotas: what is told, what is left, and what frees who waits.
//!
//! It must not leave anything to chance.

use berth::device::{
    CardPolicy, ContainerRequest, MemoryRequest, MiB, Percent, PodRequest, ProfileName, Role, ShareRequest,
};

use super::{
    super::fixtures,
    world::{Step, World, quota},
};

#[test]
fn a_quota_in_units_is_left_in_mebibytes() {
    let profile: ProfileName = "even".into();
    let mut snapshot = berth::scheduling::Snapshot::default();
    snapshot.set_quota(quota(0, 0, [None, Some(4), None], &profile));
    let left = snapshot.quotas().left("one", &profile);
    assert_eq!((left.memory, left.cards, left.cores), (Some(MiB::new(4096)), None, None));
    assert_eq!(snapshot.quotas().left("two", &profile).memory, None);
}

/// A node of two large cards, and nobody whose Binding is refused.
fn roomy() -> World {
    of_cards(&[40, 40])
}

/// Two nodes that have each one half of these cards, with so many GiB; no Binding is refused.
fn of_cards(gib: &[u64]) -> World {
    let card = |(index, gib): (u32, &u64)| fixtures::card(&format!("GPU-{index}"), index, gib * 1024);
    World::new(fixtures::profile("even"), &(0..).zip(gib).map(card).collect::<Vec<_>>(), u32::MAX)
}

/// Each container by its role and its memory.
fn asking(containers: &[(Role, MemoryRequest)]) -> Box<PodRequest> {
    let container = |&(role, memory): &(Role, MemoryRequest)| ContainerRequest {
        role,
        share: Some(ShareRequest { memory, ..fixtures::share_request(1, 0, 0) }),
    };
    Box::new(PodRequest {
        choice: CardPolicy::Binpack.into(),
        ..fixtures::request(containers.iter().map(container).collect())
    })
}

fn gib(gib: u64) -> MemoryRequest {
    MemoryRequest::Exact(MiB::new(gib * 1024))
}

impl World {
    fn go(&mut self, steps: impl IntoIterator<Item = Step>) {
        for step in steps {
            let at = self.pods.len();
            self.step(at, step);
            self.settle(&mut |_| Ok(())).unwrap();
        }
    }

    fn bound(&self) -> usize {
        self.pods.iter().filter(|(info, _)| info.holding.is_some()).count()
    }
}

#[test]
fn what_init_containers_give_back_is_there_for_the_next_pod() {
    let mut world = roomy();
    let first = asking(&[(Role::Init, gib(4)), (Role::App, gib(1))]);
    let second = asking(&[(Role::App, gib(4))]);
    world.go([Step::Quota(0, 0, [None, Some(5), None]), Step::Come(0, first), Step::Come(0, second)]);
    assert_eq!(world.bound(), 1);
    assert_eq!(
        world.told,
        ["exceeded quota: quota-0, requested: Memory=4, used: Memory=4, limited: Memory=5".to_owned()]
    );
    world.go([Step::EndInit(0)]);
    assert_eq!(world.bound(), 2);
}

#[test]
fn a_quota_binds_its_own_namespace_and_only_while_it_is_there() {
    let mut world = roomy();
    let pod = || asking(&[(Role::App, gib(4))]);
    world.go([Step::Quota(0, 0, [None, Some(4), None]), Step::Quota(0, 1, [Some(9), None, None])]);
    world.go([Step::Come(0, pod()), Step::Come(0, pod()), Step::Come(1, pod())]);
    assert_eq!(world.bound(), 2, "one of each namespace");
    world.go([Step::Quota(0, 0, [None, Some(3), None]), Step::Go(2)]);
    assert_eq!(world.bound(), 1, "a quota that shrinks takes nothing away");
    world.go([Step::NoQuota(0, 0)]);
    assert_eq!(world.bound(), 2);
}

#[test]
fn a_part_of_a_card_counts_by_the_card_that_serves() {
    let mut world = roomy();
    let half = || asking(&[(Role::App, MemoryRequest::Part(Percent::new(50)))]);
    world.go([Step::Quota(0, 0, [None, Some(30), None]), Step::Come(0, half()), Step::Come(0, half())]);
    assert_eq!(world.bound(), 1);
    let told: Vec<_> = world.told.iter().filter_map(|told| told.split(" nearest: ").next()).collect();
    let quota = "Quota quota-0: Memory=20 of 30 used.";
    assert_eq!(told, [format!("0/2 nodes are available: 2 GPU quota of the namespace exceeded. {quota}")]);
    world.go([Step::Quota(0, 0, [None, Some(40), None])]);
    assert_eq!(world.bound(), 2);
}

/// The first container of the pod takes the card that the second needs, until another card is the fullest.
#[test]
fn a_pod_that_fits_since_another_has_come_is_decided_again() {
    let on = |card: &str, memory: u64| {
        let mut pod = asking(&[(Role::App, gib(memory))]);
        pod.selection.ids.one_of = vec![card.to_owned()];
        Step::Come(0, pod)
    };
    let mut world = of_cards(&[1, 1, 20, 40]);
    world.go([on("GPU-3", 12), Step::Come(0, asking(&[(Role::App, gib(10)), (Role::App, gib(28))]))]);
    assert_eq!(world.bound(), 1, "{:?}", world.told);
    world.go([on("GPU-2", 8)]);
    assert_eq!(world.bound(), 3, "{:?}", world.told);
}
