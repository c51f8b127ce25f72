//! On which nodes there are devices for claims: found anew where a node, its devices or what is held of them has changed, kept everywhere else.

use std::{collections::HashMap, sync::Arc};

use super::ClaimRejection;
use crate::scheduling::{
    pod_counts::Surroundings, reason::Reason, resource_claims::Beside, snapshot::NodeState,
};

/// What claims ask for, the version of the classes by which that is read, and whether the pod asks for shares too.
pub(super) type Asked = (u64, Beside, Vec<Arc<str>>);

/// What the allocator finds for some claims on the node in one slot.
#[derive(Clone, Debug)]
struct Judged {
    /// The node's generation, and the stamp of its devices, when it was judged; 0: there was no node.
    at: (u64, u64),
    found: Result<(), Reason>,
}

/// What the allocator finds on each node, for claims that ask for the same.
#[derive(Debug, Default)]
pub struct ClaimFits(HashMap<Asked, Vec<Judged>>);

/// Beyond this number of different asks all of them are forgotten: few clusters have more than a handful of templates.
const REMEMBERED: usize = 64;

impl ClaimFits {
    /// By slot, whether there are devices for the claims, as `judge` finds out.
    pub(super) fn of(
        &mut self,
        asked: Asked,
        around: Surroundings<'_>,
        judge: impl Fn(&NodeState) -> Result<(), Reason>,
    ) -> Vec<Result<(), Reason>> {
        if self.0.len() >= REMEMBERED && !self.0.contains_key(&asked) {
            self.0.clear();
        }
        let judged = self.0.entry(asked).or_default();
        judged.resize(around.slots.len(), Judged { at: (0, 0), found: Ok(()) });
        for (state, judged) in around.slots.iter().zip(judged.iter_mut()) {
            let Some(state) = state else {
                judged.at = (0, 0);
                continue;
            };
            let at = (state.generation, around.resource_claims.stamp(&state.info.name));
            if judged.at != at {
                let found = judge(state);
                // An error names the claim, which is another the next time.
                let keeps = !matches!(&found, Err(Reason::ResourceClaims(ClaimRejection::Undecidable(_))));
                *judged = Judged { at: if keeps { at } else { (0, 0) }, found };
            }
        }
        judged.iter().map(|judged| judged.found.clone()).collect()
    }
}
