//! On small clusters, as few pods move as any order of moves to any cards would need.

use proptest::prelude::*;

use super::*;

/// Where each pod is and how much it holds; a card is a number.
#[derive(Clone, Debug)]
struct Shares {
    cards: usize,
    pods: Vec<(usize, u64)>,
}

impl Shares {
    fn used(&self, card: usize) -> u64 {
        self.pods.iter().filter(|(on, _)| *on == card).map(|(_, memory)| memory).sum()
    }

    fn free(&self) -> usize {
        (0..self.cards).filter(|card| self.used(*card) == 0).count()
    }

    /// Whether so many moves in a row, each of a pod that has not moved, leave so many cards free.
    fn is_reached(&mut self, free: usize, left: usize, moved: &mut Vec<bool>) -> bool {
        if self.free() >= free {
            return true;
        }
        if left == 0 {
            return false;
        }
        for pod in 0..self.pods.len() {
            if moved[pod] {
                continue;
            }
            let (from, memory) = self.pods[pod];
            moved[pod] = true;
            for to in (0..self.cards).filter(|to| *to != from) {
                if self.used(to) + memory > CARD {
                    continue;
                }
                self.pods[pod].0 = to;
                let reached = self.is_reached(free, left - 1, moved);
                self.pods[pod].0 = from;
                if reached {
                    moved[pod] = false;
                    return true;
                }
            }
            moved[pod] = false;
        }
        false
    }

    /// The fewest moves after which so many more cards are free.
    fn fewest(&mut self, more: usize, most: usize) -> Option<usize> {
        let free = self.free() + more;
        (1..=most).find(|moves| {
            let mut moved = vec![false; self.pods.len()];
            self.is_reached(free, *moves, &mut moved)
        })
    }

    /// The cluster, with so many cards on each node.
    fn stage(&self, on_node: usize) -> Cluster {
        let nodes: Vec<(String, u32)> = (0..self.cards)
            .step_by(on_node)
            .map(|first| {
                (format!("n{}", first / on_node), u32::try_from(on_node.min(self.cards - first)).unwrap())
            })
            .collect();
        let nodes: Vec<_> = nodes.iter().map(|(name, cards)| (name.as_str(), *cards)).collect();
        let mut stage = Cluster::new(&nodes);
        for (number, (card, memory)) in self.pods.iter().enumerate() {
            let node = format!("n{}", card / on_node);
            stage =
                stage.with(&format!("p{number}"), (&node, u32::try_from(card % on_node).unwrap()), *memory);
        }
        stage
    }
}

/// Up to six cards with up to seven pods, none of which is above its capacity.
fn shares() -> impl Strategy<Value = Shares> {
    let pods = prop::collection::vec((0..6_usize, 1..=9_u64), 1..8);
    (2..=6_usize, pods).prop_map(|(cards, pods)| {
        let mut shares = Shares { cards, pods: Vec::new() };
        for (card, tenth) in pods {
            let (card, memory) = (card % cards, tenth * CARD / 10);
            if shares.used(card) + memory <= CARD {
                shares.pods.push((card, memory));
            }
        }
        shares
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_order_of_moves_needs_fewer(mut shares in shares(), on_node in 1..4_usize, more in 1..3_usize) {
        let fewest = shares.fewest(more, 4);
        let plan = shares.stage(on_node).plan(&free_of(more));
        match fewest {
            Some(fewest) => {
                prop_assert!(plan.won >= more, "{fewest} moves would do, but {:?}", plan.moves);
                prop_assert!(plan.moves.len() * 10 <= fewest * 12, "{fewest} would do, not {:?}", plan.moves);
            }
            None => prop_assert!(plan.won < more || plan.moves.len() > 4, "{:?}", plan.moves),
        }
        // What is shown can be done one after the other, and wins what is said.
        let free = shares.free();
        for one in &plan.moves {
            let pod: usize = one.pod.name[1..].parse().unwrap();
            let card = one.cards.iter().next().unwrap().as_str().strip_prefix("GPU-n").unwrap();
            let (node, index) = card.split_once('-').unwrap();
            shares.pods[pod].0 = node.parse::<usize>().unwrap() * on_node + index.parse::<usize>().unwrap();
            prop_assert!((0..shares.cards).all(|card| shares.used(card) <= CARD));
        }
        prop_assert_eq!(shares.free(), free + plan.won);
    }
}
