//! Which hardware slice of a card a share becomes.
//!
//! Placements: HAMi v2.10 `pkg/device/nvidia/mig_allocations.go`. Geometries: Volcano `vgpu/mig.go`, by its rules but with each
//! slice counted once, all sizes of the geometry in use offered, and the geometry free again after its last user.

use crate::device::{Card, Geometry, MiB, Share, Slice, SlicePlacement, SliceProfile, Slicing, Users};

/// The share as a slice of the card: the smallest that is free and large enough. `own` are slices that the same pod has already.
pub(super) fn cut<'a>(
    card: &Card,
    users: Option<&'a Users>,
    own: impl Iterator<Item = &'a Slice>,
    want: Share,
) -> Option<Share> {
    // A share without a known position may lie anywhere.
    if users.is_some_and(|users| users.unsliced > 0) {
        return None;
    }
    let taken: Vec<&Slice> = users.iter().flat_map(|users| &users.slices).chain(own).collect();
    match &card.slicing {
        Slicing::Unknown => None,
        Slicing::Placements(profiles) => place(profiles, &occupied(&taken)?, want),
        Slicing::Geometries(geometries) => number(geometries, &taken, want),
    }
}

/// The places that are taken; `None` where one of them is not known.
fn occupied(taken: &[&Slice]) -> Option<Vec<SlicePlacement>> {
    let placement = |slice: &&Slice| match slice {
        Slice::Placed { placement, .. } => Some(*placement),
        Slice::Numbered { .. } => None,
    };
    taken.iter().map(placement).collect()
}

fn place(profiles: &[SliceProfile], occupied: &[SlicePlacement], want: Share) -> Option<Share> {
    let mut fitting: Vec<_> = profiles.iter().filter(|profile| profile.memory >= want.memory).collect();
    fitting.sort_by_key(|profile| (profile.memory, profile.slices));
    let free = |profile: &&SliceProfile| Some(((*profile).clone(), free_place(profile, occupied)?));
    let (profile, placement) = fitting.iter().find_map(free)?;
    let slice = Some(Box::new(Slice::Placed { profile: profile.name.clone(), placement }));
    Some(Share { memory: profile.memory, cores: profile.cores, slice, ..want })
}

/// Slices of one and three compute slices are placed from the end of the card, others from its start: so they leave most room
/// for each other.
pub fn free_place(profile: &SliceProfile, occupied: &[SlicePlacement]) -> Option<SlicePlacement> {
    let mut places = profile.placements.clone();
    places.sort_unstable();
    if profile.name.starts_with("1g.") || profile.name.starts_with("3g.") {
        places.reverse();
    }
    places.into_iter().find(|place| !occupied.iter().any(|taken| taken.overlaps(*place)))
}

fn number(geometries: &[Geometry], taken: &[&Slice], want: Share) -> Option<Share> {
    let groups: Option<Vec<_>> = taken.iter().map(|slice| numbered(slice)).collect();
    let held = groups?;
    let open = |geometry: &&Geometry| held.iter().all(|(group, _)| *group == &*geometry.group);
    let fits = |geometry: &Geometry| {
        let free = |number: u32| !held.iter().any(|(_, taken)| *taken == number);
        let slices = geometry.slices().filter(|&(at, memory)| memory >= want.memory && free(at));
        let (position, memory) = slices.min_by_key(|&(at, memory)| (memory, at))?;
        Some((Slice::Numbered { group: geometry.group.clone(), position }, memory))
    };
    let found: Option<(Slice, MiB)> = geometries.iter().filter(open).find_map(fits);
    let (slice, memory) = found?;
    Some(Share { memory, slice: Some(Box::new(slice)), ..want })
}

/// A slice of a geometry; `None` for one that is placed.
fn numbered(slice: &Slice) -> Option<(&str, u32)> {
    match slice {
        Slice::Numbered { group, position } => Some((group, *position)),
        Slice::Placed { .. } => None,
    }
}
