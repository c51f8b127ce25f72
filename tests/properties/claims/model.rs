//! What may be given and what can be, judged without the allocator: every constraint stated anew, and every choice tried.

use std::collections::{BTreeMap, BTreeSet};

use berth::object::resource_claim::AllocationResult;

use super::{Asked, COUNTER, Made, Use, World};

/// What is given: claim, request, alternative and devices.
pub(super) type Given<'a> = Vec<(usize, usize, &'a Asked, Vec<usize>)>;

/// Whether all of it can be given together.
pub(super) fn is_valid(world: &World, given: &Given<'_>) -> bool {
    let mut whole: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut shares: BTreeMap<usize, i64> = BTreeMap::new();
    for (claim, _, asked, devices) in given {
        for device in devices {
            let made = &world.devices[*device];
            if !asked.may_have(made) {
                return false;
            }
            if made.memory.is_some() {
                *shares.entry(*device).or_default() += Made::taken(asked);
                continue;
            }
            let users = whole.entry(*device).or_default();
            if users.contains(claim) || !asked.admin && !users.is_empty() {
                return false;
            }
            users.push(*claim);
        }
        let distinct: BTreeSet<_> = devices.iter().collect();
        let meant = world.devices.iter().filter(|made| asked.means(made)).count();
        if distinct.len() != devices.len() || devices.len() != asked.count.unwrap_or(meant.max(1)) {
            return false;
        }
    }
    let left = |(device, share): (&usize, &i64)| {
        let made = &world.devices[*device];
        let used = if let Use::Share(used) = made.used { used } else { 0 };
        used + share <= made.memory.unwrap()
    };
    shares.iter().all(left) && counters_suffice(world, &whole, &shares) && constraints_hold(world, given)
}

fn counters_suffice(
    world: &World,
    whole: &BTreeMap<usize, Vec<usize>>,
    shares: &BTreeMap<usize, i64>,
) -> bool {
    (0..2).all(|driver| {
        let of = |at: usize, made: &Made| {
            let held = i64::from(made.used != Use::Free);
            let times = if made.memory.is_some() {
                held.max(i64::from(shares.contains_key(&at)))
            } else {
                held + whole.get(&at).map_or(0, |users| i64::try_from(users.len()).unwrap())
            };
            times * made.counter
        };
        let mine = || world.devices.iter().enumerate().filter(|(_, made)| made.driver == driver);
        let consumed: i64 = mine().map(|(at, made)| of(at, made)).sum();
        let asks = mine().any(|(at, made)| {
            let opened = shares.contains_key(&at) && made.used == Use::Free;
            made.counter > 0 && (whole.contains_key(&at) || opened)
        });
        !asks || consumed <= COUNTER
    })
}

fn constraints_hold(world: &World, given: &Given<'_>) -> bool {
    world.claims.iter().enumerate().all(|(claim, (_, constraint))| {
        let Some((same, first)) = constraint else { return true };
        let about = given.iter().filter(|(of, request, ..)| *of == claim && (!first || *request == 0));
        let values: Vec<&Vec<i64>> =
            about.flat_map(|(.., devices)| devices.iter().map(|at| &world.devices[*at].x)).collect();
        let shared = |x: &i64| values.iter().all(|values| values.contains(x));
        let apart =
            |(at, a): (usize, &&Vec<i64>)| values[..at].iter().all(|b| !a.iter().any(|x| b.contains(x)));
        let present = values.iter().all(|values| !values.is_empty());
        let holds = if *same { (0..3).any(|x| shared(&x)) } else { values.iter().enumerate().all(apart) };
        values.is_empty() || present && holds
    })
}

/// The earliest alternatives with which everything can be given, by trying everything.
pub(super) fn brute_force(world: &World) -> Option<Vec<usize>> {
    let requests = || world.claims.iter().flat_map(|(requests, _)| requests);
    let mut taken = vec![0; requests().count()];
    loop {
        if can_be_given(world, &taken, &mut Vec::new()) {
            return Some(taken);
        }
        // The next combination, the last request counting fastest.
        let lengths: Vec<_> = requests().map(Vec::len).collect();
        let at = (0..taken.len()).rev().find(|at| taken[*at] + 1 < lengths[*at])?;
        taken[at] += 1;
        taken[at + 1..].fill(0);
    }
}

fn can_be_given<'a>(world: &'a World, taken: &[usize], given: &mut Given<'a>) -> bool {
    let requests = world.claims.iter().enumerate();
    let mut requests =
        requests.flat_map(|(claim, (requests, _))| requests.iter().enumerate().map(move |one| (claim, one)));
    let Some((claim, (request, alternatives))) = requests.nth(given.len()) else { return true };
    let asked = &alternatives[taken[given.len()]];
    subsets(world, asked).into_iter().any(|devices| {
        given.push((claim, request, asked, devices));
        let possible = is_valid(world, given) && can_be_given(world, taken, given);
        given.pop();
        possible
    })
}

fn subsets(world: &World, asked: &Asked) -> Vec<Vec<usize>> {
    let meant: Vec<_> = (0..world.devices.len()).filter(|at| asked.means(&world.devices[*at])).collect();
    match asked.count {
        None => {
            if meant.is_empty() {
                vec![]
            } else {
                vec![meant]
            }
        }
        Some(1) => meant.into_iter().map(|at| vec![at]).collect(),
        Some(_) => {
            let pairs =
                |(at, a): (usize, &usize)| meant[at + 1..].iter().map(|b| vec![*a, *b]).collect::<Vec<_>>();
            meant.iter().enumerate().flat_map(pairs).collect()
        }
    }
}

/// The allocations in the model's terms.
pub(super) fn given<'a>(
    world: &'a World,
    results: &[AllocationResult],
    alternatives: &[Vec<usize>],
) -> Given<'a> {
    let mut given = Vec::new();
    for (claim, (requests, _)) in world.claims.iter().enumerate() {
        for (request, list) in requests.iter().enumerate() {
            let at = alternatives[claim][request];
            let name = if list.len() == 1 { format!("r{request}") } else { format!("r{request}/a{at}") };
            let mine = results[claim].devices.results.iter().filter(|result| result.request == name);
            let devices = mine.map(|result| {
                let device: usize = result.device.strip_prefix("dev-").unwrap().parse().unwrap();
                let made = &world.devices[device];
                assert_eq!(result.driver, format!("d{}", made.driver));
                assert_eq!(result.share_id.is_some(), made.memory.is_some());
                let consumed = made.memory.map(|_| ("memory".to_owned(), Made::taken(&list[at]).to_string()));
                let told =
                    result.consumed_capacity.iter().map(|(name, amount)| (name.clone(), amount.to_string()));
                assert_eq!(told.collect::<Vec<_>>(), consumed.into_iter().collect::<Vec<_>>());
                device
            });
            given.push((claim, request, &list[at], devices.collect()));
        }
    }
    let count: usize = results.iter().map(|result| result.devices.results.len()).sum();
    assert_eq!(count, given.iter().map(|(.., devices): &(_, _, _, Vec<_>)| devices.len()).sum::<usize>());
    given
}
