//! How the cards of a node are cut into hardware slices, and so how much memory a slice holds, whatever its assignment says.
//!
//! Volcano's scheduler writes only what was asked; the registration of the node knows the size. It must not choose a slice.

use std::borrow::Cow;

use super::{
    amount::MiB,
    assignment::Assignment,
    card::{Card, CardId},
    slice::{Slice, Slicing},
};

/// How the cards of one node are cut: each with every cut that a plugin of the node knows of it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Cuts(Vec<(CardId, Slicing)>);

impl<'a> FromIterator<&'a Card> for Cuts {
    /// Cards without a known cut are left out.
    fn from_iter<I: IntoIterator<Item = &'a Card>>(cards: I) -> Self {
        let cut = cards.into_iter().filter(|card| card.slicing != Slicing::Unknown);
        Self(cut.map(|card| (card.id.clone(), card.slicing.clone())).collect())
    }
}

impl Cuts {
    /// Whether no card is known to be cut.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The assignment with each slice holding its own size. Volcano's scheduler writes what the container asked (`vgpu/mig.go` `TryAddPod`)
    /// and counts the size (`AddPod`). A slice that the card's cut does not have keeps what is written.
    pub fn sized<'a>(&self, assignment: &'a Assignment) -> Cow<'a, Assignment> {
        if assignment.shares().all(|share| share.slice.is_none()) {
            return Cow::Borrowed(assignment);
        }
        let mut sized = assignment.clone();
        for share in sized.containers.iter_mut().flat_map(|container| &mut container.shares) {
            let size = share.slice.as_ref().and_then(|slice| self.size(&share.card, slice));
            share.memory = size.unwrap_or(share.memory);
        }
        Cow::Owned(sized)
    }

    fn size(&self, card: &CardId, slice: &Slice) -> Option<MiB> {
        let cuts = self.0.iter().filter(|(id, _)| id == card);
        cuts.into_iter().find_map(|(_, slicing)| slicing.memory_of(slice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{
        ContainerShares, Cores, Geometry, Health, Instances, Mode, Role, Share, SlicePlacement, SliceProfile,
    };

    fn card(id: &str, slicing: Slicing) -> Card {
        Card {
            id: id.into(),
            index: 0,
            slots: 7,
            memory: MiB::new(40_960),
            cores: Cores::WHOLE,
            model: "NVIDIA A100".into(),
            numa: 0,
            mode: Mode::Mig,
            slicing,
            health: Health::Healthy,
        }
    }

    fn geometries() -> Slicing {
        let kind = |memory, count| Instances { name: "i".into(), memory: MiB::new(memory), count };
        let instances = vec![kind(10_240, 3), kind(5120, 1)];
        Slicing::Geometries(vec![Geometry { group: "group2".into(), instances }])
    }

    fn placements() -> Slicing {
        let name = "1g.5gb".into();
        let (memory, cores) = (MiB::new(4864), Cores::new(15));
        Slicing::Placements(vec![SliceProfile { name, memory, cores, slices: 1, placements: Vec::new() }])
    }

    fn memory(cuts: &Cuts, card: &str, slice: Option<Slice>) -> u64 {
        let share = Share {
            card: card.into(),
            memory: MiB::new(4000),
            cores: Cores::NONE,
            slice: slice.map(Box::new),
        };
        let containers = vec![ContainerShares { role: Role::App, shares: vec![share] }];
        let assignment = Assignment { containers, ..Assignment::default() };
        cuts.sized(&assignment).shares().map(|share| share.memory.get()).sum()
    }

    #[test]
    fn a_slice_holds_what_its_cards_cut_gives_it() {
        let numbered = |group: &str, position| Some(Slice::Numbered { group: group.into(), position });
        let placed =
            Some(Slice::Placed { profile: "1g.5gb".into(), placement: SlicePlacement { start: 6, size: 1 } });
        let cards =
            [card("GPU-a", geometries()), card("GPU-b", placements()), card("GPU-c", Slicing::Unknown)];
        let cuts: Cuts = cards.iter().collect();
        assert_eq!(memory(&cuts, "GPU-a", numbered("group2", 0)), 10_240);
        assert_eq!(memory(&cuts, "GPU-a", numbered("group2", 3)), 5120);
        assert_eq!(memory(&cuts, "GPU-b", placed.clone()), 4864);
        for (card, slice) in [
            ("GPU-a", numbered("group2", 4)),
            ("GPU-a", numbered("group9", 0)),
            ("GPU-a", placed),
            ("GPU-a", None),
            ("GPU-c", numbered("group2", 0)),
            ("GPU-z", numbered("group2", 0)),
        ] {
            assert_eq!(memory(&cuts, card, slice.clone()), 4000, "{card} {slice:?}");
        }
    }
}
