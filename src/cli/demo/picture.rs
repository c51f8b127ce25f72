//! The cards as a picture in the terminal: bars of used memory and compute, and the pods on each card.

use std::collections::BTreeMap;

use kube::{Api, api::ListParams};

use super::stage::DemoStage;
use crate::{
    cluster::informer::wire::Watched,
    device::{Card, CardId, CardUsage, CoreUnit, InitPhase, Inventory, Usage},
    object::{Node, Pod},
    scheduling::Stage as PodStage,
};

const WIDTH: usize = 24;

/// Draws every card of the cluster as the API server shows it.
pub(super) async fn draw(stage: &DemoStage) -> anyhow::Result<()> {
    let reader = stage.config.reader();
    let everything = ListParams::default();
    let nodes = Api::<Watched<Node>>::all(stage.client.clone()).list(&everything).await?;
    let pods = Api::<Watched<Pod>>::all(stage.client.clone()).list(&everything).await?;
    let pods: Vec<_> = pods.items.iter().map(|pod| reader.pod(&pod.object).0).collect();
    for node in &nodes.items {
        let node = reader.node(&node.object).0;
        let here = pods.iter().filter(|pod| pod.stage != PodStage::Ended);
        let here: Vec<_> = here
            .filter_map(|pod| Some((&pod.key.name, pod.holding.as_ref()?)))
            .filter(|(_, holding)| holding.node == node.name)
            .flat_map(|(name, holding)| holding.allocations.iter().map(move |one| (name, &one.assignment)))
            .collect();
        let usage = Usage::of(here.iter().map(|(_, assignment)| (assignment.as_ref(), InitPhase::Ahead)));
        let mut tenants: BTreeMap<&CardId, Vec<&str>> = BTreeMap::new();
        for (name, assignment) in &here {
            for share in assignment.shares() {
                tenants.entry(&share.card).or_default().push(name);
            }
        }
        for offer in &node.devices.offers {
            stage.say(format_args!("  {} ({})", node.name, offer.profile))?;
            for card in offer.inventory.as_deref().into_iter().flat_map(Inventory::cards) {
                let tenants = tenants.get(&card.id).map(|names| names.join(" ")).unwrap_or_default();
                stage.say(format_args!("{}", line(card, usage.card(&card.id), offer.core_unit, &tenants)))?;
            }
        }
    }
    Ok(())
}

fn line(card: &Card, usage: CardUsage, unit: CoreUnit, tenants: &str) -> String {
    let memory = bar(usage.memory.get(), card.memory.get(), WIDTH);
    let cores = bar(usage.cores.get().into(), card.cores.get().into(), WIDTH / 3);
    format!(
        "    {:<16} {memory} {:>6}/{:<6} MiB  {cores} {:>5}  {:>2}/{} slots  {tenants}",
        card.id.as_str(),
        usage.memory.get(),
        card.memory.get(),
        unit.words(usage.cores),
        usage.slots,
        card.slots,
    )
}

/// A bar of that many characters; anything that is in use shows.
pub(super) fn bar(used: u64, whole: u64, width: usize) -> String {
    let width_units = u64::try_from(width).unwrap_or(0);
    let filled = if whole == 0 { 0 } else { (used * width_units).div_ceil(whole).min(width_units) };
    let filled = usize::try_from(filled).unwrap_or(width);
    format!("{}{}", "█".repeat(filled), "░".repeat(width - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_anything_that_is_used_and_never_runs_over() {
        assert_eq!(bar(0, 100, 4), "░░░░");
        assert_eq!(bar(1, 100, 4), "█░░░");
        assert_eq!(bar(100, 100, 4), "████");
        assert_eq!(bar(300, 100, 4), "████");
        assert_eq!(bar(1, 0, 4), "░░░░");
    }
}
