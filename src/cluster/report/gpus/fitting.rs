//! How many pods of usual sizes would fit what is free of cards. Nothing else that a pod may ask for is looked at.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    cluster::report::cards::{NodeCards, OfferedCard},
    device::Health,
};

/// The sizes: eighths of a card, and how a metric says them, in cards.
pub const FITTED: [(u32, &str); 7] =
    [(1, "0.125"), (2, "0.25"), (4, "0.5"), (8, "1"), (16, "2"), (32, "4"), (64, "8")];

/// How many pods of each of these sizes would fit if no others came.
pub type FittedPods = [u64; FITTED.len()];

/// How many pods of each size would fit the cards of each model of one node. Cards that take no new pods are left out.
pub fn fitting<'a>(cards: &NodeCards<'a>) -> BTreeMap<&'a Arc<str>, FittedPods> {
    let mut unused: BTreeMap<&'a Arc<str>, u64> = BTreeMap::new();
    let mut fitting: BTreeMap<&'a Arc<str>, FittedPods> = BTreeMap::new();
    for card in &cards.cards {
        if card.card.health != Health::Healthy {
            continue;
        }
        let model = &card.card.model;
        *unused.entry(model).or_default() += u64::from(card.used.slots == 0 && times(card, 8) > 0);
        let fitting = fitting.entry(model).or_default();
        for (pods, (eighths, _)) in fitting.iter_mut().zip(FITTED).filter(|(_, (eighths, _))| *eighths < 8) {
            *pods += times(card, eighths);
        }
    }
    for (model, fitting) in &mut fitting {
        for (pods, (eighths, _)) in fitting.iter_mut().zip(FITTED).filter(|(_, (eighths, _))| *eighths >= 8) {
            *pods = unused[model] / u64::from(eighths / 8);
        }
    }
    fitting
}

/// How many shares of so many eighths of its memory and compute a card takes.
fn times(card: &OfferedCard<'_>, eighths: u32) -> u64 {
    let times = |used: u64, all: u64| match all {
        0 => u64::MAX,
        all => all.saturating_sub(used).saturating_mul(8) / all.saturating_mul(eighths.into()),
    };
    let memory = times(card.used.memory.get(), card.card.memory.get());
    let cores = times(card.used.cores.get().into(), card.cores.get().into());
    memory.min(cores).min(card.card.slots.saturating_sub(card.used.slots).into())
}
