//! Whether Berth preempts the pods that kube-scheduler's own plugin does, on generated clusters of few nodes that are nearly full.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use serde_json::{Value, json};

use crate::kube_scheduler::{
    family::Family,
    plugins::{Candidate, Judge, Plugins, PodVerdict},
    run::{on_all_processors, without_others},
    simulate::{self, PodRow, Settings},
    world::{Case, World},
};

/// Families by which a node may refuse a pod for what runs on it, and some by which it refuses for what it is.
const FAMILIES: &[Family] = &[
    Family::Ports,
    Family::Disks,
    Family::OncePod,
    Family::AttachLimits,
    Family::Spread,
    Family::PodAffinity,
    Family::PodAntiAffinity,
    Family::ShunnedByOthers,
    Family::Taints,
    Family::Cordons,
    Family::Selectors,
];

/// What a run has found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Pods that fit nowhere.
    pub(crate) unfit: u64,
    /// Those for which pods are preempted.
    pub(crate) preempting: u64,
    /// Those for which a budget is violated.
    pub(crate) violating: u64,
    /// Those with a choice of nodes.
    pub(crate) choosing: u64,
    /// What both make of the same pod differently, and clusters of which one of both makes nothing.
    pub(crate) differences: Vec<String>,
}

/// Few nodes, full of pods of several priorities, some of them in budgets, and pods of high priority that wait.
fn crowd(world: &mut World) {
    let nodes = 1 + usize::try_from(world.dice.below(4)).expect("it is small");
    world.nodes.truncate(nodes);
    for node in &mut world.nodes {
        for amounts in ["capacity", "allocatable"] {
            node["status"][amounts]["cpu"] = json!("4");
        }
    }
    let mut at = 0;
    let mut bound = std::mem::take(&mut world.bound);
    for pod in &mut bound {
        at += 1;
        place(world, pod, at);
    }
    world.bound = bound;
    for at in 0..world.waiting.len() {
        let (priority, cpu) =
            (world.dice.one_of(&[5, 50, 1000]), world.dice.one_of(&["1", "2", "3", "3500m"]));
        let never = world.dice.in_thousand(80);
        let spec = &mut world.waiting[at]["spec"];
        spec["priority"] = json!(priority);
        spec["preemptionPolicy"] = json!(if never { "Never" } else { "PreemptLowerPriority" });
        spec["containers"][0]["resources"]["requests"]["cpu"] = json!(cpu);
        if world.dice.in_thousand(200) {
            let node = world.any_node_name();
            world.waiting[at]["status"]["nominatedNodeName"] = json!(node);
        }
    }
    for at in 0..world.dice.below(4) {
        let budget = budget(world, at);
        world.objects.push(budget);
    }
}

/// Puts a bound pod on one of the nodes. No two are started at the same time, so that one of them is always the more important.
fn place(world: &mut World, pod: &mut Value, at: u64) {
    let cpu = world.dice.one_of(&["100m", "500m", "1", "2"]);
    pod["spec"]["nodeName"] = json!(world.any_node_name());
    pod["spec"]["priority"] = json!(world.dice.one_of(&[-10, 0, 0, 3, 10, 100]));
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!(cpu);
    let second = world.dice.below(600);
    pod["status"]["startTime"] =
        json!(format!("2025-12-{:02}T00:{:02}:{:02}Z", 1 + at % 28, second / 60, second % 60));
    if world.dice.in_thousand(60) {
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:30Z");
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        if world.dice.in_thousand(500) {
            pod["status"]["conditions"] =
                json!([{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]);
        }
    }
}

fn budget(world: &mut World, at: u64) -> Value {
    let selector = match world.dice.below(4) {
        0 => json!({}),
        1 => json!({"matchLabels": {"app": "web"}}),
        2 => json!({"matchLabels": {"app": "db"}}),
        _ => json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}),
    };
    let allowed = world.dice.below(3);
    let disrupted =
        if world.dice.in_thousand(300) { json!({"b01": "2025-12-31T00:00:00Z"}) } else { json!({}) };
    let namespace = world.namespace(0);
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": format!("budget-{at}"), "namespace": namespace},
        "spec": {"selector": selector, "minAvailable": 1},
        "status": {"disruptionsAllowed": allowed, "currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3,
            "disruptedPods": disrupted},
    })
}

/// The cluster of this seed, without what kube-scheduler's dry run miscounts (v1.36).
///
/// Two pods of a node with one host port, which no scheduler places, are one port there, which is gone with the first of them
/// (`framework/types.go` `updateUsedPorts`). A pod that is being deleted is not among those that a spread constraint counts, and is taken
/// off their number all the same (`podtopologyspread/filtering.go` `updateWithPod`).
fn generate(seed: u64) -> Case {
    let mut case = Case::generate_with(seed, FAMILIES, crowd);
    let spreads = case.families.contains(&Family::Spread);
    let mut taken = BTreeSet::new();
    case.items.retain(|item| {
        let Some(node) = item["spec"]["nodeName"].as_str() else { return true };
        let leaves = !item["metadata"]["deletionTimestamp"].is_null();
        let free = ports(item).into_iter().all(|port| taken.insert((node.to_owned(), port)));
        free && !(leaves && spreads)
    });
    case
}

/// The numbers of the pod's ports.
fn ports(pod: &Value) -> BTreeSet<u64> {
    let containers = ["containers", "initContainers"].map(|list| pod["spec"][list].as_array());
    let ports =
        containers.into_iter().flatten().flatten().filter_map(|container| container["ports"].as_array());
    ports.flatten().filter_map(|port| port["containerPort"].as_u64()).collect()
}

/// Compares so many clusters from a seed, on every processor.
pub(crate) fn run(judge: &Judge, clusters: u64, seed: u64) -> Findings {
    let next = AtomicU64::new(0);
    let worker = || {
        let mut plugins = Plugins::start(judge);
        let mut findings = Findings::default();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= clusters {
                return findings;
            }
            findings.compare(&mut plugins, &generate(seed + at));
        }
    };
    let mut all = Findings::default();
    for findings in on_all_processors(worker) {
        all.merge(findings);
    }
    all
}

impl Findings {
    fn merge(&mut self, other: Self) {
        self.unfit += other.unfit;
        self.preempting += other.preempting;
        self.violating += other.violating;
        self.choosing += other.choosing;
        self.differences.extend(other.differences);
    }

    fn compare(&mut self, plugins: &mut Plugins, case: &Case) {
        let settings = Settings::usual(plugins.release);
        let answer = match plugins.judge(&case.items, settings) {
            Ok(answer) => answer,
            Err(error) => return self.differences.push(format!("seed {}: {error}", case.seed)),
        };
        let objects = answer.objects.as_deref().unwrap_or_default();
        for theirs in answer.pods.iter().flatten().filter(|pod| pod.nodes.iter().all(|node| !node.fits)) {
            self.count(theirs);
            let difference =
                match simulate::row(&without_others(objects, case, &theirs.name), &theirs.name, settings) {
                    Ok(ours) => difference(theirs, &ours),
                    Err(error) => Some(error),
                };
            let named = |difference| {
                let list = json!({"apiVersion": "v1", "kind": "List", "items": without_others(objects, case, &theirs.name)});
                let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
                    .join(format!("preemption-{}-{}.json", case.seed, theirs.name));
                fs::write(&path, list.to_string()).expect("the folder of tests can be written");
                format!("seed {}, {}: {difference}\n    {}", case.seed, theirs.name, path.display())
            };
            self.differences.extend(difference.map(named));
        }
    }

    fn count(&mut self, pod: &PodVerdict) {
        let candidates = candidates(pod);
        self.unfit += 1;
        self.preempting += u64::from(!candidates.is_empty());
        self.choosing += u64::from(candidates.len() > 1);
        self.violating += u64::from(candidates.iter().any(|one| one.best && one.violations > 0));
    }
}

fn candidates(pod: &PodVerdict) -> &[Candidate] {
    pod.preemption.as_ref().map_or(&[], |preemption| preemption.candidates())
}

/// What Berth makes of the pod differently: the node must be one that kube-scheduler may choose, and the victims there the same.
fn difference(theirs: &PodVerdict, ours: &PodRow) -> Option<String> {
    let candidates = candidates(theirs);
    let set = |victims: &[String]| victims.iter().cloned().collect::<BTreeSet<String>>();
    let same = match &ours.nominated_node {
        None => candidates.is_empty(),
        Some(node) => candidates
            .iter()
            .any(|one| one.node == *node && one.best && set(&one.victims) == set(&ours.victims)),
    };
    (!same).then(|| {
        format!("Berth: {:?} {:?}; kube-scheduler: {candidates:?}", ours.nominated_node, ours.victims)
    })
}
