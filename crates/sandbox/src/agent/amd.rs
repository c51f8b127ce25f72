//! What AMD's plugin does beside HAMi's protocol: it masks compute units of a card for each pod, and writes down which.
//!
//! It must not choose cards: it stands for another project's program (Project-HAMi/amd-device-plugin
//! `internal/pkg/plugin/plugin.go` `Allocate`, `rebuildCUAllocations`, `validateNodeLockOwner`).

use std::collections::{BTreeMap, BTreeSet};

use kube::api::ListParams;
use serde_json::json;

use super::allocate::{Ask, Refusal};
use super::share::Share;
use super::view::Pod;

/// Which units of which card a pod has: card → `0-3,8`.
const MASKS: &str = "hami.io/amd-cu-allocated";

type Masks = BTreeMap<String, BTreeSet<u64>>;

/// Gives the pod the first free units of each of its cards, as many as its share says; only to the holder of the node's lock.
pub(super) async fn mask(ask: &Ask<'_>, pod: &Pod, shares: &[Share], lock: &str) -> Result<(), Refusal> {
    let here = ListParams::default().fields(&format!("spec.nodeName={}", ask.node.name));
    let mut taken = Masks::new();
    for other in ask.calls.pods(&here).await?.iter().filter(|other| !other.is_terminal()) {
        for (card, units) in masks(other)? {
            taken.entry(card).or_default().extend(units);
        }
    }
    let mut own = masks(pod)?;
    for share in shares {
        let units = free(ask, share, taken.entry(share.uuid.clone()).or_default())?;
        taken.entry(share.uuid.clone()).or_default().extend(&units);
        own.entry(share.uuid.clone()).or_default().extend(units);
    }
    let node = ask.calls.node(&ask.node.name).await?;
    let held = node.metadata.annotations.as_ref().and_then(|annotations| annotations.get(lock));
    let owner = format!(",{},{}", pod.namespace(), pod.name());
    if !held.is_some_and(|held| held.ends_with(&owner)) {
        return Err(Refusal::Unlocked(held.cloned().unwrap_or_default()));
    }
    let lists: BTreeMap<_, _> = own.into_iter().map(|(card, units)| (card, list(&units))).collect();
    let text = serde_json::to_string(&lists).expect("strings are always JSON");
    ask.calls.annotate_pod(pod, json!({MASKS: text})).await?;
    Ok(())
}

fn free(ask: &Ask<'_>, share: &Share, taken: &BTreeSet<u64>) -> Result<Vec<u64>, Refusal> {
    let card = ask.node.cards.iter().find(|card| card.uuid == share.uuid);
    let all = card.ok_or_else(|| Refusal::Units(format!("no card {}", share.uuid)))?.cores;
    let wanted = usize::try_from(share.cores).unwrap_or(0);
    let units: Vec<u64> = (0..all).filter(|unit| !taken.contains(unit)).take(wanted).collect();
    if wanted == 0 || units.len() < wanted {
        let found = units.len();
        return Err(Refusal::Units(format!("{wanted} of {} asked, {found} free", share.uuid)));
    }
    Ok(units)
}

fn masks(pod: &Pod) -> Result<Masks, Refusal> {
    let Some(text) = pod.annotation(MASKS) else { return Ok(Masks::new()) };
    let broken = |error: String| Refusal::Units(format!("`{text}`: {error}"));
    let lists: BTreeMap<String, String> =
        serde_json::from_str(text).map_err(|error| broken(error.to_string()))?;
    let read = |(card, list): (String, String)| Ok((card, units(&list).map_err(&broken)?));
    lists.into_iter().map(read).collect()
}

/// The units of `0-3,8`.
fn units(list: &str) -> Result<BTreeSet<u64>, String> {
    let mut units = BTreeSet::new();
    for part in list.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.parse::<u64>().map_err(|error| format!("`{text}`: {error}"));
        units.extend(number(from)?..=number(to)?);
    }
    Ok(units)
}

/// `0-3,8` of these units.
fn list(units: &BTreeSet<u64>) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for &unit in units {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == unit => *last = unit,
            _ => ranges.push((unit, unit)),
        }
    }
    let range = |(first, last): &(u64, u64)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_units_reads_back_as_it_was_written() {
        let some = BTreeSet::from([0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(list(&some), "0-3,8,10-11");
        assert_eq!(units("0-3,8,10-11"), Ok(some));
        assert!(units("0-x").is_err());
    }
}
