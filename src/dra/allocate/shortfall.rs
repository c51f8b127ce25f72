//! Why devices were not found: the first request for which too few are free, whatever the other requests are given.

use super::{
    AllocationError, AttemptDevices, CandidateDevice, DevicePools, HeldDevices, Selected, TargetNode,
    WaitingClaim, candidates,
    options::{self, DeviceOptions, is_free},
    toll::GoOn,
};
use crate::dra::{claim::Alternative, device::DeviceId};

/// A request for which too few devices of a node are free.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RequestShortfall {
    /// The claim's place among the claims.
    pub claim: usize,
    /// The request; of a prioritized list its first alternative, as `request/alternative`.
    pub request: String,
    /// How many devices it needs.
    pub wanted: usize,
    /// How many would do if nothing were in use.
    pub matching: usize,
    /// Those of them that have a taint which the request does not tolerate.
    pub tainted: usize,
    /// Those of the others that need a feature which the node's kubelet does not declare.
    pub featureless: usize,
    /// Those of the others that are in use, or of which too little is left.
    pub in_use: Vec<DeviceId>,
}

/// The first request for which too few devices of the node are free by themselves; `None`: there is none, so that requests stand in each
/// other's way, or it takes longer to find out than `go_on` lets it. The parameters are those of [`super::allocate_again`].
pub fn shortfall(
    claims: &[&WaitingClaim],
    node: TargetNode<'_>,
    (inventory, held): (&DevicePools, &HeldDevices),
    selected: &mut Selected,
    go_on: GoOn<'_>,
) -> Option<RequestShortfall> {
    let pools = inventory.pools(node);
    let nothing = HeldDevices::default();
    let candidates = [held, &nothing].map(|held| candidates(&pools, node, held));
    let mut options = |candidates: &[CandidateDevice<'_>]| {
        let scene = AttemptDevices { pools: &pools, candidates };
        selected.start_over();
        let of = |claim: &&WaitingClaim| options::of(claim, scene, selected, &mut Vec::new(), go_on);
        claims.iter().map(of).collect::<Result<Vec<_>, AllocationError>>().ok()
    };
    let [left, all] = [&candidates[0], &candidates[1]].map(|candidates| options(candidates));
    let (left, all) = (left?, all?);
    let [candidates, _] = candidates;
    let device = |at: &usize| candidates[*at].device;
    let free = |alternative: &Alternative, left: &DeviceOptions| -> Vec<usize> {
        let free = left.devices.iter().filter(|at| is_free(alternative, &candidates[**at]));
        free.copied().collect()
    };
    for (place, claim) in claims.iter().enumerate() {
        for (at, request) in claim.requests.iter().enumerate() {
            let (left, all) = (&left[place][at], &all[place][at]);
            let alternatives = || request.alternatives.iter().zip(left).zip(all);
            let wanted = |all: &DeviceOptions| all.count.max(1);
            if alternatives().any(|((one, left), all)| free(one, left).len() >= wanted(all)) {
                continue;
            }
            let ((first, left), all) = alternatives().next()?;
            let free = free(first, left);
            let is_tainted = |at: &&usize| device(at).taints.keep_away(&first.tolerations);
            let is_featureless = |at: &&usize| candidates[**at].featureless && !is_tainted(at);
            let in_use = all.devices.iter();
            let in_use = in_use.filter(|at| !free.contains(at) && !is_tainted(at) && !is_featureless(at));
            return Some(RequestShortfall {
                claim: place,
                request: first.full_name.clone(),
                wanted: wanted(all),
                matching: all.devices.len(),
                tainted: all.devices.iter().filter(is_tainted).count(),
                featureless: all.devices.iter().filter(is_featureless).count(),
                in_use: in_use.map(|at| device(at).id.clone()).collect(),
            });
        }
    }
    None
}
