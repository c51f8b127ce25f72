//! A plan as tables.

use super::{CardSource, MigrationOutcome, MigrationPlan, MigrationRow, PoolNodeRow, row::GivenDeviceRow};
use crate::cli::{output::Shown, table::Table};

impl MigrationPlan {
    /// Nodes, pods, and how many of these would be served.
    pub fn table(&self) -> Shown {
        self.tables(false)
    }

    /// The same with the cards that pods have now and the objects of their claims.
    pub fn wide(&self) -> Shown {
        self.tables(true)
    }

    fn tables(&self, wide: bool) -> Shown {
        let mut nodes = Table::new(&["NODE", "CARDS", "KNOWN FROM", "PODS", "SHARES", "GIVEN", "NOT GIVEN"]);
        for node in &self.nodes {
            nodes.row(cells(node));
        }
        let mut text = nodes.render();
        if !self.pods.is_empty() {
            let all = ["POD", "NODE", "OUTCOME", "CARDS NOW", "CLAIM", "DEVICES", "REMARK"];
            let headings = if wide { all.to_vec() } else { [&all[..3], &all[5..]].concat() };
            let mut pods = Table::new(&headings);
            for pod in &self.pods {
                for row in lines(pod, wide) {
                    pods.row(row);
                }
            }
            text = text.and(&Shown::line("")).and(&pods.render());
        }
        text.and(&Shown::line("")).and(&Shown::line(self.summary()))
    }

    fn summary(&self) -> String {
        let count = |outcome: MigrationOutcome| self.pods.iter().filter(|pod| pod.outcome == outcome).count();
        let partly = self.pods.iter().filter(|pod| pod.is_given() && !pod.is_served()).count();
        let partly = match partly {
            0 => String::new(),
            _ => format!(" ({partly} with less than asked for)"),
        };
        let (fit, unfit, none) =
            (MigrationOutcome::Fits, MigrationOutcome::DoesNotFit, MigrationOutcome::NoClaim);
        format!(
            "Pods: {}. Fit: {}{partly}. Do not fit: {}. Without a claim: {}.",
            self.pods.len(),
            count(fit),
            count(unfit),
            count(none)
        )
    }
}

fn cells(node: &PoolNodeRow) -> Vec<String> {
    let source = match node.source {
        CardSource::Slices => "slices",
        CardSource::Registration => "registration",
        CardSource::Nothing => "",
    };
    let count = |number: usize| number.to_string();
    let shares = node.shares.to_string();
    let (cards, pods) = (count(node.cards.len()), count(node.pods));
    vec![node.name.clone(), cards, source.to_owned(), pods, shares, count(node.given), count(node.not_given)]
}

/// A line for the pod, and one for each further remark.
fn lines(pod: &MigrationRow, wide: bool) -> Vec<Vec<String>> {
    let outcome = match pod.outcome {
        MigrationOutcome::Fits => "Fits",
        MigrationOutcome::DoesNotFit => "DoesNotFit",
        MigrationOutcome::NoClaim => "NoClaim",
    };
    let name = format!("{}/{}", pod.namespace, pod.name);
    let node = match (&pod.node, &pod.allocated_on) {
        (Some(node), _) => node.clone(),
        (None, Some(node)) => format!("(waits) {node}"),
        (None, None) => "(waits)".to_owned(),
    };
    let mut first = vec![name, node, outcome.to_owned()];
    if wide {
        first.push(pod.cards.join(", "));
        first.push(
            pod.claim.as_ref().map(|claim| format!("{:?}/{}", claim.kind, claim.name)).unwrap_or_default(),
        );
    }
    first.push(pod.devices.iter().map(device).collect::<Vec<_>>().join(", "));
    let remarks = pod.remarks();
    let blank = vec![String::new(); first.len()];
    let mut lines = vec![[first, vec![remarks.first().cloned().unwrap_or_default()]].concat()];
    lines.extend(remarks.iter().skip(1).map(|remark| [blank.clone(), vec![remark.clone()]].concat()));
    lines
}

fn device(device: &GivenDeviceRow) -> String {
    let amount = |name: &str| device.capacity.get(name).map(ToString::to_string);
    let cores = amount("cores").map(|cores| format!("{cores} %"));
    let amounts: Vec<String> = amount("memory").into_iter().chain(cores).collect();
    if amounts.is_empty() {
        device.device.clone()
    } else {
        format!("{} ({})", device.device, amounts.join(", "))
    }
}
