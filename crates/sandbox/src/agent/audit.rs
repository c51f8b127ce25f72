//! Whether what the scheduler wrote is what the node needs: right pod, right container, right card, never too much.
//!
//! It must not stop anything: a violation is kept for the test to read, and the agent goes on as the real one would.

use std::collections::BTreeMap;

use super::card::{Card, Health};
use super::cut::Cut;
use super::node::Node;
use super::plugin::Plugin;
use super::share::{Share, decode};
use super::view::{Container, Pod};

/// A rule that the scheduler broke, as seen from a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum Violation {
    #[error("node {node}: while admitting {admitting} the plugin finds {found}")]
    WrongPod { node: String, admitting: String, found: String },
    #[error("pod {pod}: container {container} gets segment {segment}, which is another's")]
    WrongContainer { pod: String, container: String, segment: usize },
    #[error("pod {pod}: container {container} asks for {asked} shares and gets {given}")]
    WrongCount { pod: String, container: String, asked: usize, given: usize },
    #[error("pod {pod}: container {container} asks for {asked} {what} and gets {given} of card {card}")]
    WrongAmount { pod: String, container: String, card: String, what: Dimension, asked: u64, given: i32 },
    #[error("pod {pod}: card {card} is described as `{described}`, which is not its share")]
    WrongTemplate { pod: String, card: String, described: String },
    #[error("node {node}: {pod} is served under the lock `{lock}`, which no scheduler can read")]
    Unlocked { node: String, pod: String, lock: String },
    #[error("pod {pod}: container {container} gets card {card} twice")]
    SameCardTwice { pod: String, container: String, card: String },
    #[error("pod {pod}: what is left to allocate differs from the record in segment {segment}")]
    Unrecorded { pod: String, segment: usize },
    #[error("pod {pod}: the record `{text}` does not fit the pod: {reason}")]
    Undecodable { pod: String, text: String, reason: String },
    #[error("pod {pod}: node {node} has no card {card}")]
    UnknownCard { pod: String, node: String, card: String },
    #[error("pod {pod}: card {card} of node {node} is not healthy")]
    UnhealthyCard { pod: String, node: String, card: String },
    #[error("pod {pod}: slice {slice} is given to it while {holder} holds it or another cut of its card")]
    SliceTaken { pod: String, slice: String, holder: String },
    #[error("pod {pod}: virtual function {function} is given to it while {holder} holds it")]
    FunctionTaken { pod: String, function: String, holder: String },
    #[error("node {node}: device {device} has {limit} {resource} and {used} are given away, last to {pod}")]
    DeviceOvercommitted {
        node: String,
        device: String,
        resource: String,
        limit: i128,
        used: i128,
        pod: String,
    },
    #[error("node {node}: card {card} has {limit} {what} and {used} are given away, last to {pod}")]
    Overcommitted { node: String, card: String, what: Dimension, limit: u64, used: i64, pod: String },
}

/// What a card can run out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Shares.
    Slots,
    /// MiB.
    Memory,
    /// Percent of the multiprocessors.
    Cores,
}

impl std::fmt::Display for Dimension {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Dimension::Slots => "slots",
            Dimension::Memory => "MiB",
            Dimension::Cores => "percent of cores",
        })
    }
}

/// What one pod holds of one card at its peak.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    slots: i64,
    memory: i64,
    cores: i64,
}

impl Held {
    fn plus(self, other: Held) -> Held {
        Held {
            slots: self.slots + other.slots,
            memory: self.memory + other.memory,
            cores: self.cores + other.cores,
        }
    }

    fn max(self, other: Held) -> Held {
        Held {
            slots: self.slots.max(other.slots),
            memory: self.memory.max(other.memory),
            cores: self.cores.max(other.cores),
        }
    }
}

/// What the live pods of one node hold, by pod uid and card uuid.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    held: BTreeMap<String, BTreeMap<String, Held>>,
}

impl Ledger {
    /// A pod came to the node: charges its record, once, and says what is wrong with it.
    pub(super) fn charge(&mut self, node: &Node, pod: &Pod) -> Vec<Violation> {
        let Some(plugin) = node.plugin else { return vec![] };
        let Some(text) = pod.annotation(plugin.record()) else {
            return vec![];
        };
        if self.held.contains_key(pod.uid()) {
            return vec![];
        }
        match by_container(plugin, pod, text) {
            Ok(shares) => {
                let peak = peak(&shares);
                self.held.insert(pod.uid().to_owned(), peak.clone());
                peak.keys().flat_map(|card| self.judge(node, pod, card)).collect()
            }
            Err(reason) => {
                self.held.insert(pod.uid().to_owned(), BTreeMap::new());
                vec![Violation::Undecodable { pod: pod.key(), text: text.to_owned(), reason }]
            }
        }
    }

    /// A pod ended or is gone.
    pub(super) fn release(&mut self, uid: &str) {
        self.held.remove(uid);
    }

    fn judge(&self, node: &Node, pod: &Pod, uuid: &str) -> Vec<Violation> {
        let (at, card) = (|| (pod.key(), node.name.clone(), uuid.to_owned()), find(node, uuid));
        let Some(card) = card else {
            let (pod, node, card) = at();
            return vec![Violation::UnknownCard { pod, node, card }];
        };
        let mut violations = Vec::new();
        if card.health == Health::Unhealthy {
            let (pod, node, card) = at();
            violations.push(Violation::UnhealthyCard { pod, node, card });
        }
        let used = self.held.values().filter_map(|cards| cards.get(uuid)).copied();
        let used = used.fold(Held::default(), Held::plus);
        // The compute of placed slices is rounded up, so its sum says nothing; two slices at one place are `SliceTaken`.
        let cores = if matches!(card.cut, Cut::Placed(_)) { 0 } else { used.cores };
        let dimensions = [
            (Dimension::Slots, used.slots, card.slots),
            (Dimension::Memory, used.memory, card.memory),
            (Dimension::Cores, cores, card.cores),
        ];
        for (what, used, limit) in dimensions {
            if used > i64::try_from(limit).unwrap_or(i64::MAX) {
                let (pod, node, card) = at();
                violations.push(Violation::Overcommitted { node, card, what, limit, used, pod });
            }
        }
        violations
    }
}

/// The card of that uuid, or of that number where the plugin knows numbers only.
fn find<'a>(node: &'a Node, name: &str) -> Option<&'a Card> {
    let numbered = matches!(node.plugin, Some(Plugin::GpuShare(_)));
    node.cards.iter().find(|card| if numbered { card.index.to_string() == name } else { card.uuid == name })
}

type Shares<'a> = Vec<(&'a Container, Vec<Share>)>;

/// Gives each segment of a record to its container; init containers first, sidecars told by their restart policy.
fn by_container<'a>(plugin: Plugin, pod: &'a Pod, text: &str) -> Result<(Shares<'a>, Shares<'a>), String> {
    if let Plugin::GpuShare(strategy) = plugin {
        return Ok((Vec::new(), strategy.shares(pod, text)?));
    }
    let mut segments = decode(text)?;
    // HAMi v2.4 to v2.5.3 writes a blank share for a plain container; the plugin hands out nothing for it.
    for shares in &mut segments {
        shares.retain(|share| !share.uuid.is_empty());
    }
    while segments.last().is_some_and(Vec::is_empty) {
        segments.pop();
    }
    let keeps_all = plugin.keeps_every_segment();
    let containers: Vec<&Container> =
        if keeps_all { pod.in_kubelet_order().collect() } else { volcano_order(pod, segments.len()) };
    if segments.len() > containers.len() {
        return Err(format!("{} segments for {} containers", segments.len(), containers.len()));
    }
    let inits = if keeps_all { pod.spec.init_containers.len() } else { 0 };
    let mut all: Shares<'a> = containers.into_iter().zip(segments).collect();
    let apps = all.split_off(inits.min(all.len()));
    Ok((all, apps))
}

/// Volcano's own scheduler writes segments for asking containers only; one segment for each container is read as well.
fn volcano_order(pod: &Pod, segments: usize) -> Vec<&Container> {
    let names = Plugin::Volcano.names();
    let asking = pod.spec.containers.iter().filter(|container| container.amount(names.count).is_some());
    let asking: Vec<&Container> = asking.collect();
    if segments > asking.len() { pod.spec.containers.iter().collect() } else { asking }
}

/// Init containers run one after another, beside the sidecars that were started before; then all app containers.
fn peak((inits, apps): &(Shares<'_>, Shares<'_>)) -> BTreeMap<String, Held> {
    let (mut running, mut peak) = (BTreeMap::new(), BTreeMap::new());
    for (container, shares) in inits {
        let mut now = running.clone();
        add(&mut now, shares);
        raise(&mut peak, &now);
        if container.is_sidecar() {
            running = now;
        }
    }
    for (_, shares) in apps {
        add(&mut running, shares);
    }
    raise(&mut peak, &running);
    peak
}

fn add(to: &mut BTreeMap<String, Held>, shares: &[Share]) {
    for share in shares {
        let more = Held { slots: 1, memory: share.memory.into(), cores: share.cores.into() };
        let held = to.entry(share.card().to_owned()).or_default();
        *held = held.plus(more);
    }
}

fn raise(peak: &mut BTreeMap<String, Held>, now: &BTreeMap<String, Held>) {
    for (card, held) in now {
        let top = peak.entry(card.clone()).or_default();
        *top = top.max(*held);
    }
}

/// What a plugin is about to give one container.
#[derive(Debug)]
pub(super) struct Grant<'a> {
    pub(super) pod: &'a Pod,
    pub(super) container: &'a Container,
    /// Its place among the segments.
    pub(super) segment: usize,
    pub(super) shares: &'a [Share],
}

impl Grant<'_> {
    /// Compares the shares with the container's own request and with the permanent record.
    pub(super) fn judge(&self, node: &Node, plugin: Plugin) -> Vec<Violation> {
        let mut violations = self.against_record(plugin);
        for (position, share) in self.shares.iter().enumerate() {
            let card = find(node, share.card());
            let sliced = card.is_some_and(|card| matches!(card.cut, Cut::Placed(_)));
            // Volcano's scheduler passes over the second slice of a card that a pod has, and gives it to another pod.
            if !sliced && self.shares[..position].iter().any(|earlier| earlier.card() == share.card()) {
                let (pod, container) = self.at();
                violations.push(Violation::SameCardTwice { pod, container, card: share.card().to_owned() });
            }
            if let Some(card) = card {
                violations.extend(self.memory(plugin, card, share));
            }
            // A slice brings the cores of its profile.
            if let Some(card) = card.filter(|_| !sliced) {
                violations.extend(self.cores(plugin, card, share));
            }
        }
        violations
    }

    fn at(&self) -> (String, String) {
        (self.pod.key(), self.container.name.clone())
    }

    fn against_record(&self, plugin: Plugin) -> Vec<Violation> {
        let record = self.pod.annotation(plugin.record()).and_then(|text| decode(text).ok());
        let recorded = record.as_ref().and_then(|segments| segments.get(self.segment));
        if recorded.is_some_and(|shares| shares == self.shares) {
            return vec![];
        }
        vec![Violation::Unrecorded { pod: self.pod.key(), segment: self.segment }]
    }

    fn memory(&self, plugin: Plugin, card: &Card, share: &Share) -> Option<Violation> {
        let asked = plugin.memory_asked(self.container, card);
        let larger = u64::try_from(share.memory).is_ok_and(|given| given > asked);
        if card.cut != Cut::Whole && larger {
            return None;
        }
        self.amount(share, Dimension::Memory, asked, share.memory)
    }

    fn cores(&self, plugin: Plugin, card: &Card, share: &Share) -> Option<Violation> {
        let asked = plugin.cores_asked(self.container, card)?;
        self.amount(share, Dimension::Cores, asked, share.cores)
    }

    fn amount(&self, share: &Share, what: Dimension, asked: u64, given: i32) -> Option<Violation> {
        if u64::try_from(given) == Ok(asked) {
            return None;
        }
        let (pod, container) = self.at();
        Some(Violation::WrongAmount { pod, container, card: share.uuid.clone(), what, asked, given })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::wire::Release;
    use super::*;

    fn pod(uid: &str, spec: &serde_json::Value, record: &str) -> Pod {
        let annotations =
            json!({"hami.io/vgpu-devices-allocated": record, "volcano.sh/vgpu-ids-new": record});
        let metadata = json!({"name": uid, "namespace": "default", "uid": uid, "annotations": annotations});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    fn node() -> Node {
        Node::new("n").card(Card::new("GPU-a", 0, 10_000).slots(4)).hami(Release::V2_10)
    }

    #[test]
    fn sidecars_add_to_apps_and_plain_init_containers_do_not() {
        let init = json!([{"name": "side", "restartPolicy": "Always"}, {"name": "plain"}]);
        let spec = json!({"initContainers": init, "containers": [{"name": "app"}]});
        let record = "GPU-a,NVIDIA,4000,10:;GPU-a,NVIDIA,5000,20:;GPU-a,NVIDIA,4000,30:;";
        let pod = pod("p", &spec, record);
        let shares = by_container(Plugin::Hami(Release::V2_10), &pod, record).unwrap();
        let held = peak(&shares)["GPU-a"];
        assert_eq!((held.slots, held.memory, held.cores), (2, 9000, 40));
    }

    #[test]
    fn a_pod_is_charged_once_and_freed_whole() {
        let spec = json!({"containers": [{"name": "app"}]});
        let (first, second) = ("GPU-a,NVIDIA,6000,60:;", "GPU-a,NVIDIA,4001,41:;");
        let mut ledger = Ledger::default();
        assert_eq!(ledger.charge(&node(), &pod("p1", &spec, first)), []);
        assert_eq!(ledger.charge(&node(), &pod("p1", &spec, first)), []);
        let over = ledger.charge(&node(), &pod("p2", &spec, second));
        let over: Vec<String> = over.iter().map(ToString::to_string).collect();
        let expected = [
            "node n: card GPU-a has 10000 MiB and 10001 are given away, last to default/p2",
            "node n: card GPU-a has 100 percent of cores and 101 are given away, last to default/p2",
        ];
        assert_eq!(over, expected);
        ledger.release("p1");
        ledger.release("p2");
        assert_eq!(ledger.charge(&node(), &pod("p3", &spec, second)), []);
    }

    #[test]
    fn a_record_of_more_segments_than_containers_is_a_violation() {
        let record = "GPU-a,NVIDIA,1,1:;GPU-a,NVIDIA,1,1:;";
        let pod = pod("p", &json!({"containers": [{"name": "app"}]}), record);
        let violations = Ledger::default().charge(&node(), &pod);
        assert!(matches!(violations[..], [Violation::Undecodable { .. }]), "{violations:?}");
    }

    #[test]
    fn volcano_segments_stand_for_asking_containers_or_for_all() {
        let asking = json!({"name": "app", "resources": {"limits": {"volcano.sh/vgpu-number": "1"}}});
        let spec = json!({"containers": [{"name": "plain"}, asking]});
        for record in ["GPU-a,NVIDIA,1,1:", ";GPU-a,NVIDIA,1,1:"] {
            let pod = pod("p", &spec, record);
            let (_, apps) = by_container(Plugin::Volcano, &pod, record).unwrap();
            let holder = apps.iter().find(|(_, shares)| !shares.is_empty()).unwrap().0;
            assert_eq!(holder.name, "app", "{record}");
        }
    }
}
