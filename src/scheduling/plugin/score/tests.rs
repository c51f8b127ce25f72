//! What each plugin makes of nodes that fit, and what the weights make of that. The numbers are those of kube-scheduler's arithmetic.

mod default_spread;
mod images;
mod volume_capacity;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
    sync::Arc,
};

use super::{range::whole, *};
use crate::{
    object::{Taint, pod::Pod},
    scheduling::{
        Demand, Footprint, NodeName, ResourceAmounts, Snapshot,
        decide::{Filters, class::Classes, outlook::Outlook, verdict::judge},
        fixtures,
        model::{
            images::NodeImages,
            kind::Kind,
            kube_scheduler::KubeScheduler,
            node_affinity::NodeAffinityTerms,
            origin::{Origin, PodImages},
            plugin_arguments::PluginArguments,
            tdm::RevocableZones,
        },
        plugin::pod_counts::PodCounts,
        world::{ledger::Charge, object::Object},
    },
};

/// Nodes with these labels, one card each, and the pods on each as JSON.
struct Cluster(Snapshot);

impl Cluster {
    fn new(nodes: &[(&str, &[(&str, &str)])]) -> Self {
        Self::following(KubeScheduler::default(), nodes)
    }

    fn following(followed: KubeScheduler, nodes: &[(&str, &[(&str, &str)])]) -> Self {
        let arguments = PluginArguments::default().with(followed);
        let mut snapshot = Snapshot::new(BTreeSet::new(), arguments, RevocableZones::default());
        for (name, labels) in nodes {
            let mut info = fixtures::node(name, 1, 8_000);
            info.labels = labels.iter().copied().collect();
            snapshot.set_node(info);
        }
        Self(snapshot)
    }

    fn with_taints(mut self, node: &str, count: usize) -> Self {
        let mut info = (*self.0.node(node).unwrap().info).clone();
        let taint =
            |at| Taint { key: format!("k{at}"), value: String::new(), effect: "PreferNoSchedule".into() };
        info.taints = (0..count).map(taint).collect();
        self.0.set_node(info);
        self
    }

    fn with_room(mut self, node: &str, cpu: &str, memory: &str) -> Self {
        let mut info = (*self.0.node(node).unwrap().info).clone();
        info.allocatable = amounts(cpu, memory);
        self.0.set_node(info);
        self
    }

    fn with_images(mut self, node: &str, images: &[(&str, i64)]) -> Self {
        let mut info = (*self.0.node(node).unwrap().info).clone();
        info.images = NodeImages::new(images.iter().map(|(name, size)| (*name, size * 1024 * 1024)));
        self.0.set_node(info);
        self
    }

    fn with_object(mut self, object: Object) -> Self {
        self.0.set_object(object);
        self
    }

    fn with_pod(mut self, node: &str, pod: &str) -> Self {
        let uid: Arc<str> = format!("{node}-{}", self.0.node(node).unwrap().pods.len()).into();
        let footprint = footprint(pod, ResourceAmounts::default());
        let charge = Charge { footprint, ..fixtures::charge(node, Vec::new()) };
        self.0.charge(uid, charge);
        self
    }

    /// The scores by one plugin, node by node; `None` where it has nothing to score.
    fn scores(&self, demand: &Demand, plugin: Plugin) -> Vec<Option<i64>> {
        self.weighed(demand, plugin, &ScoreWeights::default())
    }

    /// The same under these weights, by which scores are not multiplied here.
    fn weighed(&self, demand: &Demand, plugin: Plugin, weights: &ScoreWeights) -> Vec<Option<i64>> {
        let mut counts = PodCounts::default();
        let filters = Filters::prepare(demand, self.0.world(), &mut counts);
        let preferences = filters.preferences(&mut counts, weights);
        let judged = |state| judge(&demand.ask, state, self.0.world().into(), &[]);
        let states: Vec<_> = self.0.nodes().collect();
        let raw: Vec<_> = states.iter().map(|state| judged(state).unwrap().1.raw).collect();
        let slots: Vec<_> = states.iter().map(|state| state.slot).collect();
        let feasible = FeasibleNodes { slots: &slots, nodes: &self.0.world().nodes };
        let of = |scores: Scores| scores.by_plugin().find(|(other, _)| *other == plugin);
        let scores = NormalisedScores::of(&preferences, feasible, raw.iter().collect());
        scores.of_nodes().map(|scores| of(scores).map(|(_, score)| whole(score))).collect()
    }

    /// Where the scheduler would place the pod, which is where a dry run says that it would go.
    fn place(&self, demand: &Demand, weights: ScoreWeights) -> NodeName {
        let decided = Classes::new(weights).decide(demand, &self.0, |_| 0).unwrap().node;
        let outlook = Outlook::new(self.0.world().clone(), BTreeMap::default(), weights);
        let dry = outlook.place(demand, || ControlFlow::Continue(())).unwrap().unwrap();
        assert_eq!(dry.node.info.name, decided, "a dry run and a decision differ");
        decided
    }
}

fn amounts(cpu: &str, memory: &str) -> ResourceAmounts {
    let quantities = serde_json::from_value::<BTreeMap<String, crate::object::Quantity>>(
        serde_json::json!({"cpu": cpu, "memory": memory}),
    );
    ResourceAmounts::read(&quantities.unwrap()).unwrap()
}

fn footprint(pod: &str, resources: ResourceAmounts) -> Arc<Footprint> {
    let mut pod: Pod = serde_json::from_str(pod).unwrap();
    pod.metadata.namespace = "default".into();
    Arc::new(Footprint::of_pod(&pod, resources))
}

/// A pod that asks for a little of a card, with the rest of it as JSON.
fn demand(pod: &str) -> Demand {
    let mut ask = fixtures::ask(1, 100, 0);
    let read: Pod = serde_json::from_str(pod).unwrap();
    ask.resources = Arc::new(ResourceAmounts::of_pod(&read, KubeScheduler::default()).unwrap());
    let preferred =
        read.spec.affinity.node_affinity.clone().map(|affinity| affinity.preferred).unwrap_or_default();
    ask.constraints.affinity = NodeAffinityTerms { preferred, ..NodeAffinityTerms::default() };
    let footprint = footprint(pod, ResourceAmounts::clone(&ask.resources));
    let origin = Origin { images: PodImages::of_pod(&read), controller: read.metadata.controller.clone() };
    Demand { footprint, origin: Some(Arc::new(origin)), ..fixtures::demand("pod", ask) }
}

const ZONES: &[(&str, &[(&str, &str)])] =
    &[("a", &[("zone", "1")]), ("b", &[("zone", "1")]), ("c", &[("zone", "2")]), ("d", &[])];

#[test]
fn preferred_node_affinity_is_scored_against_the_best_node() {
    let pod = demand(
        r#"{"spec":{"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[
            {"weight":30,"preference":{"matchExpressions":[{"key":"zone","operator":"In","values":["1"]}]}},
            {"weight":40,"preference":{"matchExpressions":[{"key":"zone","operator":"In","values":["2"]}]}},
            {"weight":5,"preference":{}}]}}}}"#,
    );
    let cluster = Cluster::new(ZONES);
    assert_eq!(cluster.scores(&pod, Plugin::NodeAffinity), [Some(75), Some(75), Some(100), Some(0)]);
    assert_eq!(&*cluster.place(&pod, ScoreWeights::default()), "c");
    assert_eq!(cluster.scores(&demand("{}"), Plugin::NodeAffinity), [None; 4]);
}

#[test]
fn taints_that_keep_no_pod_off_are_scored_against_the_most() {
    let cluster = Cluster::new(ZONES).with_taints("a", 3).with_taints("b", 1);
    let pod = demand("{}");
    assert_eq!(cluster.scores(&pod, Plugin::TaintToleration), [Some(0), Some(67), Some(100), Some(100)]);
    assert_eq!(&*cluster.place(&pod, ScoreWeights::default()), "c");
    let blind = ScoreWeights::each(|plugin| u32::from(plugin == Plugin::Devices));
    assert_eq!(&*cluster.place(&pod, blind), "a", "equals go by name");
    assert_eq!(Cluster::new(ZONES).scores(&pod, Plugin::TaintToleration), [Some(100); 4]);
}

#[test]
fn a_pod_goes_where_the_fewest_pods_of_its_spread_constraint_are() {
    let pod = |key: &str| {
        demand(&format!(
            r#"{{"spec":{{"topologySpreadConstraints":[{{"maxSkew":1,"topologyKey":"{key}",
                "whenUnsatisfiable":"ScheduleAnyway","labelSelector":{{"matchLabels":{{"app":"x"}}}}}}]}}}}"#
        ))
    };
    let own = r#"{"metadata":{"labels":{"app":"x"}}}"#;
    let leaving = r#"{"metadata":{"labels":{"app":"x"},"deletionTimestamp":"2026-01-01T00:00:00Z"}}"#;
    let cluster = Cluster::new(ZONES)
        .with_pod("a", own)
        .with_pod("a", own)
        .with_pod("b", own)
        .with_pod("c", own)
        .with_pod("c", leaving);
    // Two domains: ln 4 a pod, so 3 pods are 4 and 1 pod is 1; the node without the key has 0.
    assert_eq!(
        cluster.scores(&pod("zone"), Plugin::PodTopologySpread),
        [Some(25), Some(25), Some(100), Some(0)]
    );
    assert_eq!(&*cluster.place(&pod("zone"), ScoreWeights::default()), "c");
    let hosts: &[(&str, &[(&str, &str)])] =
        &[("a", &[("kubernetes.io/hostname", "a")]), ("b", &[("kubernetes.io/hostname", "b")])];
    let cluster = Cluster::new(hosts).with_pod("a", own);
    assert_eq!(
        cluster.scores(&pod("kubernetes.io/hostname"), Plugin::PodTopologySpread),
        [Some(0), Some(100)]
    );
    assert_eq!(cluster.scores(&demand("{}"), Plugin::PodTopologySpread), [None; 2]);
}

#[test]
fn terms_of_both_sides_attract_and_repel() {
    let term = r#"{"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"x"}}}"#;
    let preferring = |kind: &str| {
        format!(
            r#"{{"metadata":{{"labels":{{"app":"x"}}}},"spec":{{"affinity":{{"{kind}":{{
                "preferredDuringSchedulingIgnoredDuringExecution":[{{"weight":10,"podAffinityTerm":{term}}}]}}}}}}}}"#
        )
    };
    let requiring = format!(
        r#"{{"spec":{{"affinity":{{"podAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":[{term}]}}}}}}}}"#
    );
    let plain = r#"{"metadata":{"labels":{"app":"x"}}}"#;
    let scores = |cluster: &Cluster, pod: &str| cluster.scores(&demand(pod), Plugin::InterPodAffinity);
    let (near, away) = ([Some(100), Some(100), Some(0), Some(0)], [Some(0), Some(0), Some(100), Some(100)]);
    let beside = Cluster::new(ZONES).with_pod("a", plain);
    assert_eq!(scores(&beside, &preferring("podAffinity")), near);
    assert_eq!(scores(&beside, &preferring("podAntiAffinity")), away);
    assert_eq!(scores(&beside, plain), [None; 4]);
    for (there, expected) in
        [(preferring("podAffinity"), near), (preferring("podAntiAffinity"), away), (requiring, near)]
    {
        let cluster = Cluster::new(ZONES).with_pod("a", &there);
        assert_eq!(scores(&cluster, plain), expected, "{there}");
        assert_eq!(scores(&cluster, "{}"), [None; 4], "no term is about this pod");
    }
    let repelling = Cluster::new(ZONES).with_pod("a", &preferring("podAntiAffinity"));
    assert_eq!(&*repelling.place(&demand(plain), ScoreWeights::default()), "c");
}

#[test]
fn a_plugin_of_weight_0_is_not_asked_about_other_nodes() {
    let own = r#"{"metadata":{"labels":{"app":"x"}}}"#;
    let pod = demand(
        r#"{"spec":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway",
            "labelSelector":{"matchLabels":{"app":"x"}}}],
            "affinity":{"podAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":10,
            "podAffinityTerm":{"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"x"}}}}]}}}}"#,
    );
    let cluster = Cluster::new(ZONES).with_pod("a", own);
    for plugin in [Plugin::PodTopologySpread, Plugin::InterPodAffinity] {
        let others = ScoreWeights::each(|other| u32::from(other != plugin));
        assert!(cluster.scores(&pod, plugin).iter().all(Option::is_some), "{plugin:?}");
        assert_eq!(cluster.weighed(&pod, plugin, &others), [None; 4], "{plugin:?}");
    }
}

#[test]
fn a_pod_is_scored_by_how_much_it_balances_cpu_and_memory() {
    let pod = |requests: &str| {
        demand(&format!(r#"{{"spec":{{"containers":[{{"resources":{{"requests":{requests}}}}}]}}}}"#))
    };
    let cluster = Cluster::new(&ZONES[..2]).with_room("a", "10", "10").with_room("b", "10", "40");
    // On `a` both parts are 0.2: 100 as before. On `b` they are 0.2 and 0.05: 92 after 100.
    let even = pod(r#"{"cpu":"2","memory":"2"}"#);
    assert_eq!(cluster.scores(&even, Plugin::NodeResourcesBalancedAllocation), [Some(75), Some(71)]);
    assert_eq!(&*cluster.place(&even, ScoreWeights::default()), "a");
    let none = pod(r#"{"example.com/fpga":"0"}"#);
    assert_eq!(cluster.scores(&none, Plugin::NodeResourcesBalancedAllocation), [None; 2]);
}
