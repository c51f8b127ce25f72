//! One container's walk over cards in a given order: takes what fits until it has enough.

use std::collections::BTreeMap;

use super::{CardScene, links, takes_several};
use crate::{
    device::{Card, CardUsage, LinkChoice, NumaBinding, Role, Share, ShareRequest},
    scheduling::plugin::devices::reason::{CardReason, DeviceReason},
};

/// The shares for a container of this role from the cards in this order, each with what is in use of it, or why there are too few.
pub fn walk(
    scene: &CardScene<'_>,
    role: Role,
    ask: ShareRequest,
    cards: &[(&Card, CardUsage)],
) -> Result<Vec<Share>, Vec<DeviceReason>> {
    let wanted = ask.cards.get() as usize;
    let mut walk =
        Walk { scene, role, ask, chosen: Vec::with_capacity(wanted), numa: None, failed: BTreeMap::new() };
    for (card, in_use) in cards {
        walk.visit(card, *in_use);
        if walk.chosen.len() >= wanted && scene.request.choice.links == LinkChoice::Any {
            return Ok(walk.chosen);
        }
    }
    if walk.chosen.len() >= wanted {
        let closest = links::closest(walk.chosen.clone(), wanted, scene.inventory.links());
        if scene.is_within_quota(role, &closest) {
            return Ok(closest);
        }
        // The best-linked of unequal cards may be the larger ones: the smallest that make up the request were within the quota.
        walk.chosen.sort_by_key(|share| (share.memory, share.cores));
        walk.chosen.truncate(wanted);
        if scene.is_within_quota(role, &walk.chosen) {
            return Ok(walk.chosen);
        }
        walk.fail(CardReason::ResourceQuotaNotFit, walk.chosen.len());
        walk.chosen.clear();
    }
    Err(reasons(walk.failed, walk.chosen.len(), cards.len()))
}

struct Walk<'a, 'b> {
    scene: &'a CardScene<'b>,
    role: Role,
    ask: ShareRequest,
    chosen: Vec<Share>,
    /// The NUMA node of the cards chosen, where they must share one.
    numa: Option<u32>,
    failed: BTreeMap<CardReason, usize>,
}

impl Walk<'_, '_> {
    fn visit(&mut self, card: &Card, in_use: CardUsage) {
        if let Err(reason) = self.scene.suits(card) {
            return self.fail(reason, 1);
        }
        if self.scene.request.choice.numa == NumaBinding::OneNode && self.numa != Some(card.numa) {
            // Enough on one node already; only links keep the walk going, and they don't reach across.
            if self.chosen.len() >= self.ask.cards.get() as usize {
                return;
            }
            self.fail(CardReason::NumaNotFit, self.chosen.len());
            self.chosen.clear();
            self.numa = Some(card.numa);
        }
        loop {
            match self.scene.fit((card, in_use), self.role, self.ask, &self.chosen) {
                Ok(share) => self.chosen.push(share),
                Err(reason) => return self.fail(reason, 1),
            }
            if !takes_several(self.scene.profile, card) || self.chosen.len() >= self.ask.cards.get() as usize
            {
                return;
            }
        }
    }

    fn fail(&mut self, reason: CardReason, count: usize) {
        if count > 0 {
            *self.failed.entry(reason).or_default() += count;
        }
    }
}

fn reasons(failed: BTreeMap<CardReason, usize>, chosen: usize, of: usize) -> Vec<DeviceReason> {
    let mut reasons: Vec<DeviceReason> =
        failed.into_iter().map(|(reason, count)| DeviceReason::Card { reason, count, of }).collect();
    if chosen > 0 {
        reasons.push(DeviceReason::TooFewCardsFit { count: chosen, of });
    }
    reasons
}
