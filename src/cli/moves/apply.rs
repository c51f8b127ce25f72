//! Carrying out moves: the cards that are to become free are cordoned, and one pod after the other is evicted, each once the successor of the one
//! before stands where the plan has it. Whatever happens, the cards are admitted to new pods again at the end.

mod successor;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Context as _, bail};
use kube::Client;

use crate::{
    cli::{CommandAnswer, output},
    cluster::{Reader, write::cordon},
    device::{CardId, Health, Inventory},
    object::Node,
    scheduling::{
        NodeName,
        plan::moves::{MovePlan, NodeCard, PodMove},
    },
};

use successor::move_pod;

/// Cards that are cordoned for the moves, by node.
#[derive(Debug, Default)]
struct CordonedCards(BTreeMap<NodeName, BTreeSet<CardId>>);

/// Moves the pods in their order. No: a pod does not stand again where the plan has it, and the pods after it are not moved.
pub(super) async fn apply(
    client: &Client,
    reader: &Reader,
    plan: &MovePlan,
    timeout: Duration,
) -> anyhow::Result<CommandAnswer> {
    let mut cordoned = CordonedCards::default();
    let moved = tokio::select! {
        moved = move_all(client, reader, (plan, timeout), &mut cordoned) => moved,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.context("can't wait for an interrupt")?;
            Err(anyhow::anyhow!("interrupted"))
        }
    };
    let admitted = cordoned.admit_all(client).await;
    let done = moved?;
    admitted?;
    if done == plan.moves.len() {
        let won = plan.won;
        output::remark(&format!("{done} of {done} pods were moved; {won} more GPUs are free"));
        return Ok(CommandAnswer::Yes);
    }
    output::remark(&format!("{done} of {} pods were moved; the others are not evicted", plan.moves.len()));
    Ok(CommandAnswer::No)
}

/// How many pods were moved before one did not stand again.
async fn move_all(
    client: &Client,
    reader: &Reader,
    (plan, timeout): (&MovePlan, Duration),
    cordoned: &mut CordonedCards,
) -> anyhow::Result<usize> {
    cordoned.exclude(client, reader, &plan.freed).await?;
    for (done, one) in plan.moves.iter().enumerate() {
        let moved = match cordoned.exclude(client, reader, &one.closed).await {
            Ok(()) => move_one(client, one, timeout).await,
            Err(error) => Err(error),
        };
        // Before it is said how the move went, so that no card stays cordoned.
        cordoned.admit(client, &one.closed).await?;
        if !moved? {
            return Ok(done);
        }
    }
    Ok(plan.moves.len())
}

/// Whether the pod stands where the plan has it.
async fn move_one(client: &Client, one: &PodMove, timeout: Duration) -> anyhow::Result<bool> {
    output::remark(&format!("{}: moving from {} to {}", one.pod, one.from, one.to));
    match move_pod(client, &one.pod, timeout).await? {
        Ok(stands) if *stands.node == *one.to => {
            output::remark(&format!("{}: {} stands on {}", one.pod, stands.name, stands.node));
            Ok(true)
        }
        Ok(stands) => {
            output::remark(&format!(
                "{}: {} stands on {} instead of {}; the cluster has changed, so plan again",
                one.pod, stands.name, stands.node, one.to
            ));
            Ok(false)
        }
        Err(why) => {
            output::remark(&format!("{}: {why}", one.pod));
            Ok(false)
        }
    }
}

impl CordonedCards {
    /// Excludes cards from new pods.
    async fn exclude(
        &mut self,
        client: &Client,
        reader: &Reader,
        cards: &BTreeSet<NodeCard>,
    ) -> anyhow::Result<()> {
        for (name, cards) in NodeCard::by_node(cards) {
            // They may be cordoned although no answer comes.
            self.0.entry(name.clone()).or_default().extend(cards.iter().cloned());
            let (node, new) = cordon::cordon(client, &name, &cards)
                .await
                .with_context(|| format!("can't cordon cards of node {name}"))?;
            let own = self.0.entry(name.clone()).or_default();
            own.retain(|card| new.contains(card) || !cards.contains(card));
            if let Some(open) = cards.iter().find(|card| !is_cordoned(reader, &node, card)) {
                bail!("card {open} of node {name} can't be cordoned: its device plugin has no cordons");
            }
        }
        Ok(())
    }

    /// Admits those of these cards to new pods again that were excluded here.
    async fn admit(&mut self, client: &Client, cards: &BTreeSet<NodeCard>) -> anyhow::Result<()> {
        for one in cards {
            let Some(own) = self.0.get_mut(&one.node) else { continue };
            if own.remove(&one.card) {
                let cards = BTreeSet::from([one.card.clone()]);
                let admitted = cordon::uncordon(client, &one.node, &cards).await;
                if admitted.is_err() {
                    own.insert(one.card.clone());
                }
                admitted.with_context(|| format!("can't uncordon card {} of node {}", one.card, one.node))?;
            }
        }
        Ok(())
    }

    /// Admits all of them again; the error names those of which that failed.
    async fn admit_all(self, client: &Client) -> anyhow::Result<()> {
        let mut failed = Vec::new();
        for (node, cards) in self.0 {
            if let Err(error) = cordon::uncordon(client, &node, &cards).await {
                let cards: Vec<_> = cards.iter().map(CardId::as_str).collect();
                failed.push(format!("cards {} of node {node} stay cordoned: {error}", cards.join(", ")));
            }
        }
        if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("; ")) }
    }
}

fn is_cordoned(reader: &Reader, node: &Node, card: &CardId) -> bool {
    let (info, _) = reader.node(node);
    let inventories = info.devices.offers.iter().filter_map(|offer| offer.inventory.as_deref());
    let mut named = inventories.flat_map(Inventory::cards).filter(|one| one.id == *card);
    named.all(|card| card.health == Health::Cordoned)
}
