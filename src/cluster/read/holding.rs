//! What a pod holds by its annotations, and what of it can't be read.

use std::sync::Arc;

use thin_vec::ThinVec;

use super::Reader;
use crate::{
    device::{Allocation, InitPhase, ProfileName, Remains, UnknownCards},
    dialect::{Carried, Dialect, MissingCount, Problem, Unreadable},
    object::Pod,
    scheduling::{
        Holding,
        model::{
            pod::{Binding, Placer},
            tenure::Tenure,
        },
    },
};

impl Reader {
    /// What the pod holds: where it is bound, or where another scheduler means it to be.
    pub(super) fn holding(&self, pod: &Pod, troubles: &mut Vec<Unreadable>) -> Option<Holding> {
        let bound = pod.spec.node_name.as_deref().filter(|node| !node.is_empty());
        let ours = self.placer(pod) == Placer::Berth;
        if bound.is_none() && ours {
            return None;
        }
        let (mut allocations, meant_for) = self.allocations(pod, troubles);
        let (node, binding) = match (bound, meant_for) {
            (Some(node), _) => (node.to_owned(), Binding::Bound),
            (None, Some(node)) => {
                // Until the pod is bound, its node has given it nothing.
                for allocation in &mut allocations {
                    (allocation.unread, allocation.unknown) = (None, None);
                }
                (node, Binding::Intended)
            }
            (None, None) => return None,
        };
        Some(Holding {
            node: node.as_str().into(),
            binding,
            tenure: bound.and_then(|_| Tenure::of_pod(pod)).map(Arc::new),
            init: if pod.init_is_done() { InitPhase::Done } else { InitPhase::Ahead },
            takeable: self.takeable(pod),
            unassigned: match binding {
                Binding::Bound if !pod.is_terminal() => self.unassigned(pod, &allocations),
                Binding::Bound | Binding::Intended => ThinVec::new(),
            },
            allocations: allocations.into(),
        })
    }

    /// The dialects of which the pod requests shares and carries no assignment.
    fn unassigned(&self, pod: &Pod, allocations: &[Allocation]) -> ThinVec<ProfileName> {
        let served = pod.status.extended_resource_claim_status.as_ref();
        let by_claim = |dialect: &Arc<dyn Dialect>| {
            let mut mappings = served.into_iter().flat_map(|served| &served.request_mappings);
            mappings.any(|mapping| dialect.resources().contains(&&*mapping.resource_name))
        };
        let asked = self.dialects.asked(pod).into_iter();
        let asked = asked.filter(|one| self.dialects.are_asked(pod, one.mode()) && !by_claim(one));
        let names = asked.map(|dialect| dialect.name().clone());
        names.filter(|name| allocations.iter().all(|allocation| allocation.profile != *name)).collect()
    }

    /// The dialects whose agents may serve another pod with what this one carries, once it is dead.
    fn takeable(&self, pod: &Pod) -> ThinVec<ProfileName> {
        let takeable = self.dialects.iter().filter(|dialect| dialect.remains(pod) == Remains::Takeable);
        takeable.map(|dialect| dialect.name().clone()).collect()
    }

    /// What the pod carries, one allocation for each dialect, since HAMi's scheduler gives a pod cards of several vendors; and the node that
    /// the first of them names.
    fn allocations(&self, pod: &Pod, troubles: &mut Vec<Unreadable>) -> (Vec<Allocation>, Option<String>) {
        let (mut allocations, mut node) = (Vec::new(), None);
        for dialect in self.dialects.iter() {
            let Some((carried, unread)) = self.carried_in(dialect, pod, troubles) else { continue };
            node = node.or(carried.node);
            allocations.push(Allocation {
                profile: dialect.name().clone(),
                assignment: Arc::new(carried.assignment),
                unknown: unread.as_ref().and_then(|_| unknown(dialect, pod)),
                unread: unread.map(String::into_boxed_str),
                answer: dialect.answer(pod),
            });
        }
        (allocations, node)
    }

    /// What the pod carries in one dialect, and why some of its cards are unknown. A pod that asks for none of its cards was given none, whatever it is annotated with: only
    /// of one that does a card may be missing.
    fn carried_in(
        &self,
        dialect: &Arc<dyn Dialect>,
        pod: &Pod,
        troubles: &mut Vec<Unreadable>,
    ) -> Option<(Carried, Option<String>)> {
        let (mut carried, unread) = match dialect.assignment(pod) {
            Ok(carried) => {
                let mut carried = carried?;
                let unread = std::mem::take(&mut carried.unread);
                (Some(carried), unread)
            }
            Err(trouble) => (None, vec![trouble]),
        };
        let missing = unread.iter().find(|trouble| trouble.problem == Problem::Card);
        let missing =
            missing.filter(|_| self.dialects.are_asked(pod, dialect.mode())).map(ToString::to_string);
        if missing.is_some() {
            carried.get_or_insert_default();
        }
        // Dialects may have one annotation in common.
        let new: Vec<_> = unread.into_iter().filter(|trouble| !troubles.contains(trouble)).collect();
        troubles.extend(new);
        Some((carried?, missing))
    }
}

/// What a pod may hold of a dialect's cards whose assignment can't be read: what its spec asks for, which nobody can change, whatever stands in its
/// annotations. A spec that can't be read was given nothing. Of devices by type, any may be held.
fn unknown(dialect: &Arc<dyn Dialect>, pod: &Pod) -> Option<UnknownCards> {
    let mut pod = pod.clone();
    pod.metadata.annotations = None;
    if matches!(dialect.joint_request(&pod), Ok(Some(_))) {
        return Some(UnknownCards::Everything);
    }
    let request = dialect.request(&pod, MissingCount::Default).ok()??;
    Some(UnknownCards::Asked(Arc::new(request)))
}
