//! The best-linked set out of all cards that would do.
//!
//! HAMi v2.10 (`pkg/device/nvidia/device.go` `computeBestCombination`) walks every subset, whose number grows exponentially. Here
//! every subset is walked only while there are at most `EXHAUSTIVE` of them, and answers as HAMi does; beyond, a set is grown
//! from every card and its members are exchanged while that helps, at most once for each card: at most `n` starts of `n` rounds
//! of `k·(n−k)` exchanges, each weighed in `k` steps. A set so found may be second best.

use crate::device::{Links, Share};

/// Up to so many subsets each is weighed: all of a node of up to 10 cards.
const EXHAUSTIVE: usize = 256;

/// So many of the candidates: of one, that which the others miss least; of several, those with the best links among them. Equals
/// go to the candidates that come first.
pub fn closest(candidates: Vec<Share>, wanted: usize, links: &Links) -> Vec<Share> {
    if candidates.len() == wanted {
        return candidates;
    }
    let pairs = Pairs { candidates: &candidates, links };
    let members = if wanted == 1 {
        vec![pairs.least_missed()]
    } else if subsets(candidates.len(), wanted).is_some_and(|count| count <= EXHAUSTIVE) {
        pairs.best_of_all(wanted)
    } else {
        pairs.grown(wanted)
    };
    members.into_iter().map(|member| candidates[member].clone()).collect()
}

struct Pairs<'a> {
    candidates: &'a [Share],
    links: &'a Links,
}

impl Pairs<'_> {
    /// The link of two candidates, read from the one that comes first.
    fn link(&self, a: usize, b: usize) -> i64 {
        let (first, second) = (a.min(b), a.max(b));
        self.links.between(&self.candidates[first].card, &self.candidates[second].card)
    }

    /// All links of a candidate to others.
    fn ties(&self, of: usize, to: impl IntoIterator<Item = usize>) -> i64 {
        to.into_iter().filter(|&other| other != of).map(|other| self.link(of, other)).sum()
    }

    fn total(&self, members: &[usize]) -> i64 {
        let below = |at: usize| members[..at].iter().map(move |&other| self.link(members[at], other));
        (0..members.len()).flat_map(below).sum()
    }

    fn least_missed(&self) -> usize {
        let all = 0..self.candidates.len();
        let from = |one: usize| -> i64 {
            let others = all.clone().filter(|&other| other != one);
            let to =
                |other: usize| self.links.between(&self.candidates[one].card, &self.candidates[other].card);
            others.map(to).sum()
        };
        all.clone().min_by_key(|&one| from(one)).unwrap_or(0)
    }

    /// The best subset, the first in order among equals.
    fn best_of_all(&self, wanted: usize) -> Vec<usize> {
        let mut members: Vec<usize> = (0..wanted).collect();
        let mut best = (self.total(&members), members.clone());
        while advance(&mut members, self.candidates.len()) {
            let total = self.total(&members);
            if total > best.0 {
                best = (total, members.clone());
            }
        }
        best.1
    }

    fn grown(&self, wanted: usize) -> Vec<usize> {
        let sets = (0..self.candidates.len()).map(|start| self.exchanged(self.grow(start, wanted)));
        let scored = sets.map(|set| (self.total(&set), set));
        let best = scored.reduce(|best, set| if set.0 > best.0 { set } else { best });
        best.map(|(_, set)| set).unwrap_or_default()
    }

    fn grow(&self, start: usize, wanted: usize) -> Vec<usize> {
        let mut members = vec![start];
        while members.len() < wanted {
            let outside = (0..self.candidates.len()).filter(|one| !members.contains(one));
            let next = outside.max_by_key(|&one| (self.ties(one, members.iter().copied()), usize::MAX - one));
            members.extend(next);
        }
        members
    }

    fn exchanged(&self, mut members: Vec<usize>) -> Vec<usize> {
        for _ in 0..self.candidates.len() {
            let Some((at, other)) = self.best_exchange(&members) else { break };
            members[at] = other;
        }
        members.sort_unstable();
        members
    }

    /// The exchange of a member for an outsider that gains most, if any gains.
    fn best_exchange(&self, members: &[usize]) -> Option<(usize, usize)> {
        let outside = (0..self.candidates.len()).filter(|one| !members.contains(one));
        let exchanges = outside.flat_map(|other| (0..members.len()).map(move |at| (at, other)));
        let gain = |&(at, other): &(usize, usize)| {
            let rest = || members.iter().copied().filter(move |&member| member != members[at]);
            self.ties(other, rest()) - self.ties(members[at], rest())
        };
        let best = exchanges.max_by_key(|exchange| (gain(exchange), usize::MAX - exchange.1))?;
        (gain(&best) > 0).then_some(best)
    }
}

/// The next subset in order; false after the last.
fn advance(members: &mut [usize], of: usize) -> bool {
    let count = members.len();
    let Some(at) = (0..count).rev().find(|&at| members[at] < of - count + at) else { return false };
    members[at] += 1;
    for next in at + 1..count {
        members[next] = members[next - 1] + 1;
    }
    true
}

/// How many subsets of this size there are; `None`: more than can be counted.
pub fn subsets(of: usize, size: usize) -> Option<usize> {
    (0..size.min(of - size)).try_fold(1_usize, |count, at| Some(count.checked_mul(of - at)? / (at + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{CardId, Cores, MiB};

    fn candidates(count: usize) -> Vec<Share> {
        let share = |at: usize| Share {
            card: format!("GPU-{at}").into(),
            memory: MiB::default(),
            cores: Cores::NONE,
            slice: None,
        };
        (0..count).map(share).collect()
    }

    /// Cards whose numbers leave the same rest are linked well.
    fn islands(count: usize, islands: usize) -> Links {
        let pairs = (0..count).flat_map(|a| (0..count).filter(move |&b| a != b).map(move |b| (a, b)));
        let id = |at: usize| CardId::from(format!("GPU-{at}"));
        pairs.map(|(a, b)| (id(a), id(b), if a % islands == b % islands { 600 } else { 10 })).collect()
    }

    fn chosen(count: usize, wanted: usize, links: &Links) -> Vec<String> {
        closest(candidates(count), wanted, links).iter().map(|share| share.card.to_string()).collect()
    }

    #[test]
    fn a_large_node_gives_a_whole_island_without_walking_every_subset() {
        assert!(subsets(64, 32).is_none_or(|count| count > EXHAUSTIVE));
        let island = chosen(64, 16, &islands(64, 4));
        let wanted: Vec<_> = (0..16).map(|at| format!("GPU-{}", at * 4)).collect();
        assert_eq!(island, wanted);
    }

    #[test]
    fn growing_answers_as_walking_every_subset_does_on_a_usual_node() {
        for (count, wanted, parts) in [(8, 4, 2), (8, 2, 4), (10, 5, 2), (9, 3, 3)] {
            let (candidates, links) = (candidates(count), islands(count, parts));
            let pairs = Pairs { candidates: &candidates, links: &links };
            let (all, grown) = (pairs.best_of_all(wanted), pairs.grown(wanted));
            assert_eq!(pairs.total(&grown), pairs.total(&all), "{wanted} of {count} in {parts} islands");
        }
    }

    #[test]
    fn a_single_share_goes_where_others_miss_it_least() {
        let id = CardId::from;
        let links: Links = [("GPU-0", "GPU-1", 600), ("GPU-1", "GPU-0", 600)]
            .into_iter()
            .map(|(a, b, score)| (id(a), id(b), score))
            .collect();
        assert_eq!(chosen(3, 1, &links), ["GPU-2"]);
        assert_eq!(chosen(3, 2, &links), ["GPU-0", "GPU-1"]);
    }
}
