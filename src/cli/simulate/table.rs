//! What came of a simulation, as tables.

use crate::{
    cli::{output::Shown, table::Table},
    cluster::report::ledger::{LedgerCard, LedgerNode},
    simulation::{
        ClaimRow, EvictionRow, NamedVictims, SimulatedPod, Simulation,
        verdict::{self, SimulatedVerdict},
    },
};

/// The nodes whose cards and verdicts are shown.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) enum ShownNodes<'a> {
    /// All.
    All,
    /// Those with these names.
    Named(&'a [String]),
}

impl ShownNodes<'_> {
    fn has(self, node: &String) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.contains(node),
        }
    }
}

/// The pods, then the cards of these nodes.
pub(in crate::cli) fn table(simulation: &Simulation, nodes: ShownNodes<'_>) -> Shown {
    let mut pods = Table::new(&["NAMESPACE", "NAME", "OUTCOME", "NODE", "REMARKS"]);
    for pod in &simulation.pods {
        let mut remarks = remarks(pod, nodes).into_iter();
        let (outcome, node) = (format!("{:?}", pod.outcome), pod.node.clone().unwrap_or_default());
        let first = remarks.next().unwrap_or_default();
        pods.row([pod.namespace.clone(), pod.name.clone(), outcome, node, first]);
        remarks.for_each(|remark| pods.row(["", "", "", "", remark.as_str()]));
    }
    let told = pods.render().and(&evicted(simulation));
    if matches!(nodes, ShownNodes::Named([])) {
        return told;
    }
    told.and(&Shown::line("")).and(&cards(&simulation.nodes, nodes))
}

/// The pods that are evicted; nothing where there are none.
fn evicted(Simulation { evictions, other_evictions, .. }: &Simulation) -> Shown {
    if evictions.is_empty() && *other_evictions == 0 {
        return Shown::default();
    }
    let mut evicted = Table::new(&["NAMESPACE", "EVICTED", "ZONE"]);
    for EvictionRow { namespace, name, zone } in evictions {
        evicted.row([namespace, name, zone].map(String::as_str));
    }
    if *other_evictions > 0 {
        evicted.row(["", &format!("({other_evictions} other)"), ""]);
    }
    Shown::line("").and(&evicted.render())
}

fn cards(all: &[LedgerNode], nodes: ShownNodes<'_>) -> Shown {
    let asked = |node: &&LedgerNode| nodes.has(&node.name);
    let mut cards = Table::new(&["NODE", "CARD", "HEALTHY", "SLOTS", "MEMORY", "CORES", "PODS"]);
    for (node, card) in
        all.iter().filter(asked).flat_map(|node| node.cards.iter().map(move |card| (node, card)))
    {
        cards.row([
            node.name.clone(),
            card.uuid.clone().or_else(|| card.index.map(|index| index.to_string())).unwrap_or_default(),
            card.healthy.to_string(),
            format!("{}/{}", card.slots_used, card.slots),
            format!("{}/{}", card.memory_used, card.memory),
            format!("{}/{}", card.cores_used, card.cores),
            holders(card),
        ]);
    }
    cards.render()
}

/// What there is to say beside outcome and node, line by line.
fn remarks(pod: &SimulatedPod, nodes: ShownNodes<'_>) -> Vec<String> {
    let shares = (!pod.shares.is_empty()).then(|| pod.shares.clone());
    let preempts =
        pod.nominated_node.as_ref().map(|node| format!("would preempt on {node}: {}", victims(pod)));
    let claims = pod.claims.iter().filter_map(ClaimRow::remark);
    let violations = pod.violations.iter().map(ToString::to_string);
    let warnings = pod.warnings.iter().map(|warning| format!("warning: {warning}"));
    let asked = |verdict: &&SimulatedVerdict| nodes.has(&verdict.name);
    let nodes = verdict::lines(pod.nodes.iter().flatten().filter(asked));
    shares
        .into_iter()
        .chain(claims)
        .chain(pod.message.clone())
        .chain(preempts)
        .chain(violations)
        .chain(warnings)
        .chain(nodes)
        .collect()
}

/// The pods that would be preempted for it.
fn victims(pod: &SimulatedPod) -> String {
    let NamedVictims { victims, other_victims } = &pod.victims;
    let others = (*other_victims > 0).then(|| format!("({other_victims} other)"));
    victims.iter().cloned().chain(others).collect::<Vec<_>>().join(", ")
}

/// The pods that hold shares of a card, and the claims that hold some of it.
fn holders(card: &LedgerCard) -> String {
    let claims = card.holders.claims.iter().map(|claim| format!("claim {claim}"));
    let others = (card.holders.others > 0).then(|| format!("({} other)", card.holders.others));
    card.holders.pods.iter().cloned().chain(claims).chain(others).collect::<Vec<_>>().join(",")
}
