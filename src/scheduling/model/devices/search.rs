//! Devices of several types on the same PCIe switches, found whenever there are any.
//!
//! What can be given is decided by which switches are used: the number of devices of each type below them. So sets of switches are searched,
//! the fewest first, and a state of the search that led to nothing is not entered again.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashSet},
};

use super::{
    Choice, Chosen, gpu, partition, pick,
    topology::{self, Scope},
    view::{Switch, View},
};
use crate::device::{DevicePortion, DeviceType, Minor};

/// A switch below which there is a fitting device of every joined type.
struct Below {
    switch: Switch,
    /// How many devices of each joined type, in their order.
    counts: Vec<usize>,
    /// Whether something below it is in use already.
    is_busy: bool,
}

/// The devices of the joined types, the leading type first; `None`: no devices are free together.
pub(super) fn choose(joined: &[&View<'_>]) -> Option<Choice> {
    let Some(gpus) = joined.iter().find(|view| view.kind == DeviceType::Gpu) else {
        return anywhere(joined, None);
    };
    gpu::template(gpus).ok()?;
    if gpus.request.portion == DevicePortion::Whole {
        let partitions = partition::feasible(gpus).unwrap_or_default();
        let found = partitions.into_iter().find_map(|one| beside(joined, gpus, &one.minors));
        if found.is_some() || partition::is_required(gpus) {
            return found;
        }
    }
    let tree = Scope::of(gpus.node);
    match (topology::is_possible(gpus, tree.as_ref()), &tree) {
        (Ok(()), Some(tree)) => {
            tree.preferred(gpus).into_iter().find_map(|part| anywhere(joined, Some(&part.minors)))
        }
        (Err(_), _) if gpus.request.scope.is_some() => None,
        _ => anywhere(joined, None),
    }
}

/// Devices of the other types on exactly the switches of these GPUs.
fn beside(joined: &[&View<'_>], gpus: &View<'_>, minors: &BTreeSet<Minor>) -> Option<Choice> {
    let switches = gpus.switches(minors);
    let below = below(joined, Some(&minors.iter().copied().collect::<Vec<_>>()));
    let chosen: Vec<_> = below.iter().filter(|one| switches.contains(&one.switch)).collect();
    let counted = minors.iter().all(|&minor| gpus.candidate(minor).is_some_and(|one| one.is_on(&switches)));
    let enough = |(at, view): (usize, &&View<'_>)| {
        chosen.iter().map(|one| one.counts[at]).sum::<usize>() >= view.count
    };
    let can_be = chosen.len() == switches.len() && counted && most_switches(joined) >= switches.len();
    (can_be && joined.iter().enumerate().all(enough)).then(|| devices(joined, &chosen, Some(minors)))
}

/// Devices on the fewest switches that have enough; of the GPUs only these.
fn anywhere(joined: &[&View<'_>], gpus: Option<&[Minor]>) -> Option<Choice> {
    let below = below(joined, gpus);
    let needs: Vec<_> = joined.iter().map(|view| view.count).collect();
    let most = most_switches(joined).min(below.len());
    let chosen = (1..=most).find_map(|size| SwitchSearch::new(&below).find(0, size, &needs))?;
    let chosen: Vec<_> = chosen.into_iter().map(|at| &below[at]).collect();
    let gpus = gpus.map(|gpus| gpus.iter().copied().collect());
    Some(devices(joined, &chosen, gpus.as_ref()))
}

/// On how many switches the devices can be: each needs a device of every type, and only followers that are no GPUs may become more than were asked
/// for.
fn most_switches(joined: &[&View<'_>]) -> usize {
    let bounded = joined.iter().enumerate().filter(|(at, view)| *at == 0 || view.kind == DeviceType::Gpu);
    bounded.map(|(_, view)| view.count).min().unwrap_or(0)
}

/// The switches with a fitting device of every type, those in use first; of the GPUs only these count.
fn below(joined: &[&View<'_>], gpus: Option<&[Minor]>) -> Vec<Below> {
    let mut found = BTreeMap::<Switch, (Vec<usize>, bool)>::new();
    for (at, view) in joined.iter().enumerate() {
        for (minor, candidate) in view.fitting().filter(|(minor, _)| counts(view, *minor, gpus)) {
            let Some(switch) = candidate.device.pcie() else { continue };
            let (counts, is_busy) =
                found.entry(Switch::clone(switch)).or_insert_with(|| (vec![0; joined.len()], false));
            counts[at] += 1;
            *is_busy |= view.used.contains(&minor);
        }
        for minor in &view.used {
            let switch = view.node.device(view.kind, *minor).and_then(|device| device.pcie());
            if let Some((_, is_busy)) = switch.and_then(|switch| found.get_mut(switch)) {
                *is_busy = true;
            }
        }
    }
    let of_all = found.into_iter().filter(|(_, (counts, _))| !counts.contains(&0));
    let mut below: Vec<_> =
        of_all.map(|(switch, (counts, is_busy))| Below { switch, counts, is_busy }).collect();
    below.sort_by_key(|one| Reverse(one.is_busy));
    below
}

fn counts(view: &View<'_>, minor: Minor, gpus: Option<&[Minor]>) -> bool {
    view.kind != DeviceType::Gpu || gpus.is_none_or(|gpus| gpus.contains(&minor))
}

/// A search for so many switches that have enough of every type.
struct SwitchSearch<'a> {
    below: &'a [Below],
    /// From each switch on, how many devices of each type there are.
    rest: Vec<Vec<usize>>,
    /// States from which nothing was found: the first switch left, how many are to be chosen, and what is needed still.
    failed: HashSet<(usize, usize, Vec<usize>)>,
}

impl<'a> SwitchSearch<'a> {
    fn new(below: &'a [Below]) -> Self {
        let types = below.first().map_or(0, |one| one.counts.len());
        let mut rest = vec![vec![0; types]];
        for one in below.iter().rev() {
            let sums = one.counts.iter().zip(&rest[rest.len() - 1]).map(|(count, sum)| count + sum);
            rest.push(sums.collect());
        }
        rest.reverse();
        Self { below, rest, failed: HashSet::new() }
    }

    /// `size` switches from `from` on that have what is needed, by their place.
    fn find(&mut self, from: usize, size: usize, needs: &[usize]) -> Option<Vec<usize>> {
        if size == 0 {
            return needs.iter().all(|need| *need == 0).then(Vec::new);
        }
        let state = (from, size, needs.to_vec());
        if self.below.len() - from < size || self.failed.contains(&state) {
            return None;
        }
        for at in from..=self.below.len() - size {
            if self.rest[at].iter().zip(needs).any(|(rest, need)| rest < need) {
                break;
            }
            let left = needs.iter().zip(&self.below[at].counts);
            let left: Vec<_> = left.map(|(need, count)| need.saturating_sub(*count)).collect();
            if let Some(mut found) = self.find(at + 1, size - 1, &left) {
                found.insert(0, at);
                return Some(found);
            }
        }
        self.failed.insert(state);
        None
    }
}

/// The devices on these switches: of the leading type and of GPUs as many as are asked for, of the others one for each switch at least.
fn devices(joined: &[&View<'_>], chosen: &[&Below], gpus: Option<&BTreeSet<Minor>>) -> Choice {
    let switches: BTreeSet<_> = chosen.iter().map(|one| Switch::clone(&one.switch)).collect();
    let gpus: Option<Vec<_>> = gpus.map(|gpus| gpus.iter().copied().collect());
    let mut choice = Choice::new();
    for (at, view) in joined.iter().enumerate() {
        let exact = at == 0 || view.kind == DeviceType::Gpu;
        let minors = if exact { filled(view, chosen, gpus.as_deref()) } else { spread(view, &switches) };
        let template = gpu::template(view).ok().flatten();
        choice.insert(view.kind, Chosen { minors, template });
    }
    choice
}

/// So many devices as are asked for, switch by switch, one of each at least.
fn filled(view: &View<'_>, chosen: &[&Below], gpus: Option<&[Minor]>) -> Vec<Minor> {
    let mut minors = Vec::new();
    for (at, one) in chosen.iter().enumerate() {
        let for_others = chosen.len() - 1 - at;
        let room = view.count.saturating_sub(minors.len() + for_others);
        let on_it = view.fitting().filter(|(minor, candidate)| {
            candidate.device.pcie() == Some(&one.switch) && counts(view, *minor, gpus)
        });
        let mut on_it: Vec<_> = on_it.map(|(minor, candidate)| (Reverse(candidate.score), minor)).collect();
        on_it.sort_unstable();
        minors.extend(on_it.into_iter().take(room).map(|(_, minor)| minor));
    }
    minors
}

/// The best device of each switch, then the next best, until there are as many as are asked for and as there are switches.
fn spread(view: &View<'_>, switches: &BTreeSet<Switch>) -> Vec<Minor> {
    let on_them = view.fitting().filter(|(_, candidate)| candidate.is_on(switches));
    let on_them: Vec<_> = on_them.map(|(minor, one)| (minor, one.score, one.device.pcie())).collect();
    let mut minors = pick::order(&on_them, switches);
    minors.truncate(view.count.max(switches.len()));
    minors
}
