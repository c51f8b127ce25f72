//! Why a pod waits, as far as it is counted: the plugin and the reason, without the amounts and names of one pod.
//!
//! Values only; the words for people stand in the errors themselves.

use std::collections::BTreeSet;

use crate::scheduling::plugin::{NodeReasons, Plugin, Reason, rejection::Cure};

/// Why a pod waits.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Blame {
    /// These reasons of nodes, or of the pod itself.
    Reasons(BTreeSet<Reason>, Resolvable),
    /// The quota of its namespace.
    Quota,
    /// Its request can't be read, or it requests no share.
    Request,
    /// The node's lock could not be taken.
    Lock,
    /// The Binding was refused.
    Binding,
    /// Its claims could not be bound.
    Claims,
    /// Objects that decide on its claims are not listed.
    Lists,
    /// Its gang can't be placed, for this reason.
    Gang(&'static str),
}

/// Whether a pod can be placed once other pods have ended, or a node is well again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Resolvable {
    /// It may be.
    Yes,
    /// It can't: what it asks for is on no node, or is not served. kube-scheduler calls this `UnschedulableAndUnresolvable`.
    No,
}

impl Resolvable {
    /// Of a pod on one node that was refused for these reasons.
    pub fn on_node(reasons: &NodeReasons) -> Self {
        if is_of_the_node_itself(reasons) { Self::No } else { Self::Yes }
    }
}

/// Whether the node lacks what the pod asks for whatever runs on it, and however well it is.
fn is_of_the_node_itself(reasons: &NodeReasons) -> bool {
    let mut unlike = 0;
    for reason in reasons {
        match reason.cure() {
            Cure::Nothing => return true,
            Cure::NothingOnCards { count, of } => {
                unlike += count;
                if unlike >= of {
                    return true;
                }
            }
            Cure::Eviction | Cure::Time => {}
        }
    }
    false
}

impl Blame {
    /// Plugin and reason, each once.
    pub fn labels(&self) -> BTreeSet<(&'static str, String)> {
        let one = |plugin: &'static str, reason: &str| BTreeSet::from([(plugin, reason.to_owned())]);
        match self {
            Self::Reasons(reasons, _) => {
                reasons.iter().map(|reason| (reason.plugin().name(), reason.name())).collect()
            }
            Self::Quota => one("ResourceQuota", "ResourceQuotaExceeded"),
            Self::Request => one(Plugin::Devices.name(), "RequestUnreadable"),
            Self::Lock => one("NodeLock", "NodeLockRefused"),
            Self::Binding => one("DefaultBinder", "BindingRefused"),
            Self::Claims => one(Plugin::VolumeBinding.name(), "ClaimsNotBound"),
            Self::Lists => one(Plugin::VolumeBinding.name(), "StorageNotListed"),
            Self::Gang(reason) => one("GangScheduling", reason),
        }
    }

    /// Whether the pod can be placed without a change of the pod or of the cluster's nodes.
    pub fn resolvable(&self) -> Resolvable {
        match self {
            Self::Request => Resolvable::No,
            Self::Reasons(_, resolvable) => *resolvable,
            Self::Quota | Self::Lock | Self::Binding | Self::Claims | Self::Lists | Self::Gang(_) => {
                Resolvable::Yes
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::{
        decide::fit_error::FitError,
        plugin::{
            devices::{CardReason, DeviceReason},
            node_resources_fit::ResourceReason,
            node_unschedulable::Cordoned,
        },
    };

    fn cards(reason: CardReason, count: usize) -> Reason {
        Reason::Devices(DeviceReason::Card { reason, count, of: 4 })
    }

    #[test]
    fn a_pod_is_unresolvable_where_every_node_lacks_what_it_asks_for() {
        use CardReason::{CardInsufficientMemory, CardTypeMismatch, CardUuidMismatch};
        let other_model = vec![cards(CardTypeMismatch, 4)];
        let no_such_card = vec![cards(CardTypeMismatch, 3), cards(CardUuidMismatch, 1)];
        let full = vec![cards(CardTypeMismatch, 3), cards(CardInsufficientMemory, 1)];
        let amount = |requested, capacity| {
            let short = ResourceReason::Insufficient { resource: "cpu".into(), requested, free: 0, capacity };
            vec![Reason::NodeResourcesFit(short)]
        };
        let cordoned = vec![Reason::NodeUnschedulable(Cordoned)];
        let cases: [(&[NodeReasons], Resolvable); 8] = [
            (&[], Resolvable::Yes),
            (std::slice::from_ref(&other_model), Resolvable::No),
            (&[other_model.clone(), no_such_card], Resolvable::No),
            (&[other_model.clone(), full], Resolvable::Yes),
            (&[other_model.clone(), cordoned], Resolvable::Yes),
            (&[vec![Reason::Devices(DeviceReason::Unregistered)], other_model.clone()], Resolvable::No),
            (&[amount(9, 8)], Resolvable::No),
            (&[amount(8, 8)], Resolvable::Yes),
        ];
        for (nodes, expected) in cases {
            assert_eq!(FitError::of_nodes(nodes).blame().resolvable(), expected, "{nodes:?}");
        }
    }
}
