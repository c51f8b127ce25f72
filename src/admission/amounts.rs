//! Amounts that can be read and are hardly meant: another unit was on their author's mind.
//!
//! Warnings only. What no card has is another rule's, where the cards are known.

use super::{facts::Facts, findings::ReviewFindings, rules, shares::PodShares};
use crate::{
    device::{MemoryRequest, MiB},
    object::Pod,
};

/// Less than this of a card serves nothing: a CUDA context alone takes more. GiB are written as MiB by mistake.
const LEAST: MiB = MiB::new(64);

/// No card has more than this, 1 TiB. Bytes or KiB are written as MiB by mistake.
const MOST: MiB = MiB::new(1024 * 1024);

/// Judges how much memory each container asks for on each card.
pub fn judge(findings: &mut ReviewFindings, pod: &Pod, shares: &PodShares<'_>, facts: &Facts) {
    for (_, request) in shares.requests() {
        for (at, container) in request.containers.iter().enumerate() {
            let Some(MemoryRequest::Exact(memory)) = container.share.map(|share| share.memory) else {
                continue;
            };
            // Most amounts are meant: the path is made for the others alone.
            if let Some(message) = doubt(memory, facts)
                && let Some((field, _)) = pod.containers().nth(at)
            {
                findings.warn(rules::IMPLAUSIBLE_AMOUNT, format!("{field}.resources"), message);
            }
        }
    }
}

/// Why this much memory of a card is hardly meant.
fn doubt(memory: MiB, facts: &Facts) -> Option<String> {
    let asked = memory.get();
    if memory < LEAST && asked > 0 {
        let gib = asked * 1024;
        return Some(format!(
            "asks for {asked} MiB of a card, which is less than a program on it needs; {asked} GiB are {gib} MiB"
        ));
    }
    (memory > MOST && facts.inventory.is_none()).then(|| {
        format!("asks for {asked} MiB of a card, which is more than any card has; the amount is in MiB")
    })
}
