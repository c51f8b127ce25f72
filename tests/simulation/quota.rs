//! What the namespace may have had at which time, read from ResourceQuotas by their own rules and nobody's code.
//!
//! A quota that is tightened below what is used is nobody's fault. What can be told from objects alone, of each resource by itself: the
//! newest decision over it counted every pod that is bound now, and rested on a quota as it stood at one moment of the recent past.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use serde_json::Value;

use crate::record::{Amount, Family, Pod};

/// The smallest bound of each resource over all quotas.
type Bounds = BTreeMap<String, u64>;

/// What the bounds were, each with when it was last so.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    known: Vec<(Timestamp, Bounds)>,
}

impl Quotas {
    /// Takes in the quotas as they stand.
    pub(crate) fn see(&mut self, quotas: &[Arc<Value>], now: Timestamp) {
        let bounds = bounds(quotas);
        match self.known.last_mut() {
            Some((seen, last)) if *last == bounds => *seen = now,
            _ => self.known.push((now, bounds)),
        }
    }

    /// Whether a pod that has just been bound takes, together with all others of these, more than any quota since then allowed.
    pub(crate) fn judge(&self, pod: &Pod, pods: &[&Pod], since: Timestamp) -> Result<(), String> {
        let Some(family) = pod.family else { return Ok(()) };
        let (used, own) = (used(pods, Pod::takes), pod.takes());
        for (name, _) in
            family.names().into_iter().zip([own.slots, own.memory, own.cores]).filter(|(_, own)| *own > 0)
        {
            let used = used.get(name).copied().unwrap_or_default();
            let most = self.most(name, since);
            if most.is_some_and(|most| used > most) {
                return Err(format!(
                    "{used} of {name} are given away, and for long no more than {most:?} may be"
                ));
            }
        }
        Ok(())
    }

    /// The greatest bound since then; `None`: there was a time without one. The newest counts whenever it was seen.
    fn most(&self, name: &str, since: Timestamp) -> Option<u64> {
        let newest = self.known.len().checked_sub(1)?;
        let recent = self.known.iter().enumerate().filter(|(at, (seen, _))| *at == newest || *seen >= since);
        let bounds: Option<Vec<u64>> = recent.map(|(_, (_, bounds))| bounds.get(name).copied()).collect();
        bounds?.into_iter().max()
    }

    /// Whether the quota as it stands has no room for this pod beside these, of which each takes so much.
    pub(crate) fn exceeds(&self, pod: &Pod, pods: &[&Pod], takes: fn(&Pod) -> Amount) -> bool {
        let (Some((_, bounds)), Some(family)) = (self.known.last(), pod.family) else { return false };
        let (used, more) = (used(pods, takes), pod.least());
        let more = family.names().into_iter().zip([more.slots, more.memory, more.cores]);
        more.into_iter().any(|(name, more)| {
            let used = used.get(name).copied().unwrap_or_default();
            more > 0 && bounds.get(name).is_some_and(|hard| used + more > *hard)
        })
    }
}

fn bounds(quotas: &[Arc<Value>]) -> Bounds {
    let mut bounds = Bounds::new();
    for (key, hard) in quotas.iter().filter_map(|quota| quota["spec"]["hard"].as_object()).flatten() {
        let amount = hard.as_str().and_then(|hard| hard.parse().ok());
        if let (Some(name), Some(hard)) = (key.strip_prefix("limits."), amount) {
            let bound = bounds.entry(name.to_owned()).or_insert(hard);
            *bound = hard.min(*bound);
        }
    }
    bounds
}

fn used(pods: &[&Pod], takes: fn(&Pod) -> Amount) -> BTreeMap<&'static str, u64> {
    let mut used = BTreeMap::new();
    for family in Family::BOTH {
        let pods = pods.iter().filter(|pod| pod.family == Some(family));
        let all = pods.map(|pod| takes(pod)).fold(Amount::default(), Amount::plus);
        used.extend(family.names().into_iter().zip([all.slots, all.memory, all.cores]));
    }
    used
}
