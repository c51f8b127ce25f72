//! How the cards for a container are chosen among those that would do.

/// Which card is taken first, by the one word that names it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum CardPolicy {
    /// The fullest that fits.
    Binpack,
    /// The emptiest.
    Spread,
    /// Only one that no pod uses.
    Mutex,
    /// Those on the higher NUMA node.
    Numa,
    /// Those with the best links between them.
    TopologyAware,
    /// The card that leaves least of no use for the pods that may come.
    LeastWaste,
}

/// A measure by which one card goes before another.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum CardPreference {
    /// The fuller one first.
    Fullest,
    /// The emptier one first.
    Emptiest,
    /// The one with fewer users first.
    FewestUsers,
    /// The one on the higher NUMA node first.
    HighestNuma,
    /// The one on the lower NUMA node first.
    LowestNuma,
    /// The one that leaves least of no use first; where that is not known, the fuller one.
    LeastWaste,
}

/// Whether a card may have other users.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Sharing {
    /// It may.
    #[default]
    Shared,
    /// Only a card that no other pod uses.
    Alone,
}

/// Whether the links between cards count.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum LinkChoice {
    /// They don't.
    #[default]
    Any,
    /// The best-linked set of all cards that fit; for one card, the one that others miss least.
    Closest,
}

/// Whether all shares of a container must be on one NUMA node.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum NumaBinding {
    /// They need not be.
    #[default]
    Free,
    /// They must.
    OneNode,
}

/// What counts how much when cards are compared by how full they are; at least one is above 0.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Weights {
    /// Containers.
    pub slots: u32,
    /// Compute.
    pub cores: u32,
    /// Memory.
    pub memory: u32,
}

impl Default for Weights {
    fn default() -> Self {
        Self { slots: 1, cores: 1, memory: 1 }
    }
}

/// How the cards for a container are chosen.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct CardChoice {
    /// The first measure in which two cards differ decides; the profile breaks ties.
    pub order: Vec<CardPreference>,
    /// Whether a card may have other users.
    pub sharing: Sharing,
    /// Whether links count.
    pub links: LinkChoice,
    /// Whether all must be on one NUMA node.
    pub numa: NumaBinding,
    /// What counts how much.
    pub weights: Weights,
}

impl CardChoice {
    /// By one policy; ties go to the higher NUMA node (HAMi v2.10 `pkg/scheduler/policy/gpu_policy.go`).
    pub fn lone(policy: CardPolicy, numa: NumaBinding) -> Self {
        let first = match policy {
            CardPolicy::Binpack => CardPreference::Fullest,
            CardPolicy::Spread | CardPolicy::TopologyAware => CardPreference::Emptiest,
            CardPolicy::Mutex => CardPreference::FewestUsers,
            CardPolicy::LeastWaste => CardPreference::LeastWaste,
            CardPolicy::Numa => return Self::chain(&[policy], numa),
        };
        let order = match (numa, first) {
            (NumaBinding::Free, _) => vec![first, CardPreference::HighestNuma],
            (NumaBinding::OneNode, CardPreference::Fullest) => vec![CardPreference::LowestNuma, first],
            (NumaBinding::OneNode, _) => vec![CardPreference::HighestNuma, first],
        };
        Self::new(&[policy], order, numa)
    }

    /// By several policies, of which the first in which two cards differ decides; spread, where none of them compares cards. Ties are left
    /// to the profile. Binding to one NUMA node puts that first.
    pub fn chain(policies: &[CardPolicy], numa: NumaBinding) -> Self {
        let mut order = chained(policies);
        if numa == NumaBinding::OneNode {
            order.retain(|measure| *measure != CardPreference::HighestNuma);
            order.insert(0, CardPreference::HighestNuma);
        }
        Self::new(policies, order, numa)
    }

    fn new(policies: &[CardPolicy], order: Vec<CardPreference>, numa: NumaBinding) -> Self {
        let has = |policy| policies.contains(&policy);
        Self {
            order,
            sharing: if has(CardPolicy::Mutex) { Sharing::Alone } else { Sharing::Shared },
            links: if has(CardPolicy::TopologyAware) { LinkChoice::Closest } else { LinkChoice::Any },
            numa,
            weights: Weights::default(),
        }
    }
}

impl From<CardPolicy> for CardChoice {
    fn from(policy: CardPolicy) -> Self {
        Self::lone(policy, NumaBinding::Free)
    }
}

fn chained(policies: &[CardPolicy]) -> Vec<CardPreference> {
    let mut order = Vec::new();
    for policy in policies {
        let measure = match policy {
            CardPolicy::Binpack => CardPreference::Fullest,
            CardPolicy::Spread => CardPreference::Emptiest,
            CardPolicy::Numa => CardPreference::HighestNuma,
            CardPolicy::LeastWaste => CardPreference::LeastWaste,
            CardPolicy::Mutex | CardPolicy::TopologyAware => continue,
        };
        if !order.contains(&measure) {
            order.push(measure);
        }
    }
    if order.is_empty() { vec![CardPreference::Emptiest] } else { order }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_policy_leaves_ties_to_numa_and_several_do_not() {
        let choice = CardChoice::from(CardPolicy::Binpack);
        assert_eq!(choice.order, [CardPreference::Fullest, CardPreference::HighestNuma]);
        let chain = [CardPolicy::Numa, CardPolicy::Mutex, CardPolicy::Spread, CardPolicy::Numa];
        let choice = CardChoice::chain(&chain, NumaBinding::Free);
        assert_eq!(choice.order, [CardPreference::HighestNuma, CardPreference::Emptiest]);
        assert_eq!(choice.sharing, Sharing::Alone);
    }

    #[test]
    fn binding_puts_the_numa_node_first() {
        let bound = |policy| CardChoice::lone(policy, NumaBinding::OneNode).order;
        assert_eq!(bound(CardPolicy::Binpack), [CardPreference::LowestNuma, CardPreference::Fullest]);
        assert_eq!(bound(CardPolicy::Spread), [CardPreference::HighestNuma, CardPreference::Emptiest]);
        assert_eq!(bound(CardPolicy::Mutex), [CardPreference::HighestNuma, CardPreference::FewestUsers]);
        let chain = CardChoice::chain(&[CardPolicy::Binpack, CardPolicy::Numa], NumaBinding::OneNode);
        assert_eq!(chain.order, [CardPreference::HighestNuma, CardPreference::Fullest]);
    }
}
