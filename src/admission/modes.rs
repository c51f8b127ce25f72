//! One pod, one mode: a pod can't mix gpushare, gpunumber, vgpu and HAMi, and the settings decide which modes are served.
//!
//! Resource claims and vendors that are not served are other ways to a card, which a pod can't combine with a share, but for claims beside a
//! share in HAMi's mode, which may be of other devices; and so are Koordinator's
//! names where the settings leave them to Koordinator's own scheduler.

use std::{collections::BTreeMap, fmt};

use super::{facts::Facts, findings::ReviewFindings, named_nodes, rules};
use crate::{
    dialect::{SharingMode, koordinator, readers::InPod, vendor},
    object::{Container, Pod, Quantity},
};

/// A way to ask for a card.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Way {
    /// A mode of Berth's.
    Share(SharingMode),
    /// Koordinator's resources, where Berth does not serve them.
    Koordinator,
    /// Resources of a vendor that HAMi's scheduler places and Berth does not.
    OfHami,
    /// A resource claim.
    Claim,
}

impl fmt::Display for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(mode) => mode.fmt(formatter),
            Self::Koordinator => formatter.write_str("koordinator"),
            Self::OfHami => formatter.write_str("a vendor that only HAMi's scheduler serves"),
            Self::Claim => formatter.write_str("resource claim"),
        }
    }
}

/// Where a way was first taken.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TakenAt {
    field: String,
    resource: String,
}

/// The ways that a pod takes, and where each was taken first.
#[derive(Clone, Debug, Default)]
pub struct Ways(BTreeMap<Way, TakenAt>);

impl Ways {
    /// Reads a pod.
    pub fn of(pod: &Pod, facts: &Facts) -> Self {
        let mut ways = BTreeMap::new();
        let readers = facts.dialects.in_pod(pod);
        let init = pod.spec.init_containers.iter().enumerate().map(|at| ("initContainers", at));
        let apps = pod.spec.containers.iter().enumerate().map(|at| ("containers", at));
        for (list, (at, container)) in init.chain(apps) {
            let field = |section: &str| format!("spec.{list}[{at}].resources.{section}");
            collect(container, (facts, &readers), &mut ways, field);
        }
        if !pod.spec.resource_claims.is_empty() {
            let asked = TakenAt { field: "spec.resourceClaims".into(), resource: "resourceClaims".into() };
            ways.insert(Way::Claim, asked);
        }
        Self(ways)
    }

    /// The modes of Berth's that the pod uses.
    pub fn modes(&self) -> impl Iterator<Item = &SharingMode> {
        self.0.keys().filter_map(|way| match way {
            Way::Share(mode) => Some(mode),
            Way::Koordinator | Way::OfHami | Way::Claim => None,
        })
    }

    /// Whether the pod takes no way at all.
    pub fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the pod takes no way but claims.
    pub fn are_claims_alone(&self) -> bool {
        self.0.keys().all(|way| *way == Way::Claim)
    }

    /// Whether the pod asks for a share at all.
    pub fn ask_for_a_share(&self) -> bool {
        self.modes().next().is_some()
    }

    /// Reports conflicts between the ways, and modes that are not served.
    pub fn judge(&self, findings: &mut ReviewFindings, facts: &Facts) {
        // A claim may be of other devices, such as a network card.
        let is_hamis = |mode: &SharingMode| matches!(mode, SharingMode::Hami | SharingMode::Vendor(_));
        let beside_claims = self.modes().all(is_hamis);
        let mut asked = self.0.iter().filter(|(way, _)| !(beside_claims && **way == Way::Claim));
        let (Some((first, at)), true) = (asked.next(), self.ask_for_a_share()) else { return };
        for (way, other) in asked {
            let message = format!(
                "`{}` ({way}) conflicts with `{}` ({first}) of {}; a pod may use one mode only",
                other.resource, at.resource, at.field
            );
            findings.deny(rules::MODE_CONFLICT, &other.field, message);
        }
        for (way, asked) in &self.0 {
            let Way::Share(mode) = way else { continue };
            if facts.settings.modes.contains(mode) {
                continue;
            }
            let message = format!(
                "`{}` asks in mode {mode}, which is not enabled; enabled: {}",
                asked.resource,
                enabled(facts)
            );
            findings.deny(rules::MODE_DISABLED, &asked.field, message);
        }
    }

    /// Whether the nodes that the pod names serve its mode; unknown nodes are not judged.
    pub fn judge_nodes(&self, findings: &mut ReviewFindings, pod: &Pod, facts: &Facts) {
        let (Some(inventory), Some((field, names))) = (&facts.inventory, named_nodes::of(pod)) else {
            return;
        };
        let known: Vec<_> = names.iter().filter_map(|name| inventory.node(name)).collect();
        let serves = |mode: &SharingMode| known.iter().any(|node| node.offered_in(mode).is_some());
        let others: Vec<_> = known.iter().filter(|node| node.offers().len() > 0).collect();
        if known.len() < names.len() || others.is_empty() {
            return;
        }
        for mode in self.modes().filter(|mode| !serves(mode)) {
            let offers = others.iter().map(|node| {
                let modes: Vec<_> = node.offers().map(|(mode, _)| mode.to_string()).collect();
                format!("{} offers {}", node.name, modes.join(", "))
            });
            let offers: Vec<_> = offers.collect();
            let message =
                format!("the pod asks in mode {mode} and names a node of another: {}", offers.join("; "));
            findings.deny(rules::MODE_OF_NODE, &field, message);
        }
    }
}

fn enabled(facts: &Facts) -> String {
    let modes: Vec<_> = facts.settings.modes.iter().map(ToString::to_string).collect();
    if modes.is_empty() { "none".to_owned() } else { modes.join(", ") }
}

fn collect(
    container: &Container,
    (facts, readers): (&Facts, &InPod<'_>),
    ways: &mut BTreeMap<Way, TakenAt>,
    field: impl Fn(&str) -> String,
) {
    let resources = &container.resources;
    for (section, amounts) in [("limits", &resources.limits), ("requests", &resources.requests)] {
        for (resource, amount) in amounts.iter().flatten() {
            if let Some(way) = way(resource, amount, (facts, readers)) {
                ways.entry(way)
                    .or_insert_with(|| TakenAt { field: field(section), resource: resource.clone() });
            }
        }
    }
}

/// The way that so much of a resource takes; an amount of 0 takes none.
fn way(resource: &str, amount: &Quantity, (facts, readers): (&Facts, &InPod<'_>)) -> Option<Way> {
    // Names without a domain are kubelet's own.
    if !resource.contains('/') || amount.is_zero() || readers.is_of_plugin(resource) {
        return None;
    }
    let share = readers.mode_of_request(resource).cloned().map(Way::Share);
    share.or_else(|| vendor::LEFT_TO_HAMI.contains(&resource).then_some(Way::OfHami)).or_else(|| {
        let served = || facts.dialects.named(&koordinator::NAME.into()).is_some();
        (resource.starts_with(koordinator::GPU_PREFIX) && !served()).then_some(Way::Koordinator)
    })
}
