//! What kube-scheduler has behind feature gates, put into clusters with devices: compatibility groups of devices, rules that taint them, what devices
//! take of their nodes, attributes that claims compute, and devices for which drivers need not act.

#[path = "gated/derived_attributes.rs"]
mod derived_attributes;
#[path = "gated/node_operations.rs"]
mod node_operations;
#[path = "gated/node_resources.rs"]
mod node_resources;

use serde_json::{Value, json};

use crate::{
    kube_scheduler::{
        dice::Dice,
        difference::WHOLE_POD,
        family::{
            Family,
            devices::{DRIVER, FABRIC},
        },
        plugins::{Answer, Judge, Plugins},
        run::compare,
        world::{Case, push},
    },
    support::build::Release,
};

/// Something that is behind feature gates.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Gated {
    /// Compatibility groups of devices, and rules that taint them.
    GroupsAndRules,
    /// What devices take of their nodes' own resources.
    NodeResources,
    /// Attributes that claims compute of devices.
    DerivedAttributes,
    /// Devices for which kubelet need not ask their driver.
    NodeOperations,
}

impl Gated {
    /// The gates that are on for it, where they are not by default.
    pub(crate) const fn gates(self, release: Release) -> &'static str {
        match (self, release) {
            (Self::GroupsAndRules, Release::V1_34 | Release::Usual) => "DRADeviceTaintRules=true",
            (Self::GroupsAndRules, Release::V1_37) => "DRADeviceCompatibilityGroups=true",
            (Self::NodeResources, _) => "DRANodeAllocatableResources=true",
            (Self::DerivedAttributes, _) => "DRADerivedAttributes=true",
            (Self::NodeOperations, _) => "DRAOptionalNodeOperations=true",
        }
    }

    /// The families of the clusters.
    const fn families(self) -> &'static [Family] {
        match self {
            Self::GroupsAndRules | Self::NodeOperations => &[Family::DeviceClaims, Family::ExtendedResources],
            Self::NodeResources | Self::DerivedAttributes => &[Family::DeviceClaims],
        }
    }

    fn put_into(self, case: &mut Case, release: Release) {
        match self {
            Self::GroupsAndRules => groups_and_rules(case, release),
            Self::NodeResources => node_resources::put_into(case),
            Self::DerivedAttributes => derived_attributes::put_into(case),
            Self::NodeOperations => node_operations::put_into(case),
        }
    }
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Nodes that fit for kube-scheduler but for what is gated.
    pub(crate) kept_away: usize,
    /// Nodes that fit all the same.
    pub(crate) fit: usize,
    /// Each difference, with its seed; and why there was no answer.
    pub(crate) differences: Vec<String>,
}

/// Compares so many clusters.
pub(crate) fn run(judge: &Judge, gated: Gated, clusters: u64, seed: u64) -> Findings {
    let mut plugins = Plugins::start(judge);
    let mut findings = Findings::default();
    for seed in (0..clusters).map(|at| seed.wrapping_add(at)) {
        let plain = Case::generate(seed, gated.families());
        let mut case = plain.clone();
        gated.put_into(&mut case, judge.release);
        match (compare(&mut plugins, &plain), compare(&mut plugins, &case)) {
            (Ok((before, _)), Ok((after, differences))) => {
                let (fit_before, fit) = (fitting(&before), fitting(&after));
                findings.fit += fit;
                findings.kept_away += fit_before.saturating_sub(fit);
                // How pods are scored that request something as a whole is named where such clusters are compared.
                let differences = differences.into_iter().filter(|difference| difference.by != WHOLE_POD);
                let told = differences.map(|difference| format!("seed {seed}: {difference}"));
                findings.differences.extend(told);
            }
            (Err(reason), _) | (_, Err(reason)) => {
                findings.differences.push(format!("seed {seed}: {reason}"));
            }
        }
    }
    findings
}

fn of_kind<'a>(case: &'a mut Case, kind: &'a str) -> impl Iterator<Item = &'a mut Value> {
    case.items.iter_mut().filter(move |item| item["kind"] == kind)
}

/// Has the claims that hold devices of a node be usable from that node alone, some of them without a user. Returns their names.
fn held(case: &mut Case, dice: &mut Dice) -> Vec<String> {
    let mut names = Vec::new();
    for claim in of_kind(case, "ResourceClaim") {
        let results = &claim["status"]["allocation"]["devices"]["results"];
        let Some(pool) = results[0]["pool"].as_str() else { continue };
        let field = json!({"key": "metadata.name", "operator": "In", "values": [pool]});
        claim["status"]["allocation"]["nodeSelector"] =
            json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
        claim["metadata"]["finalizers"] = json!(["resource.kubernetes.io/delete-protection"]);
        if dice.in_thousand(700) {
            claim["status"].as_object_mut().expect("a status").remove("reservedFor");
        }
        names.push(claim["metadata"]["name"].as_str().expect("a name").to_owned());
    }
    names
}

/// Has the pod use one of these claims of the namespace `default`, now and then.
fn use_held(pod: &mut Value, held: &[String], dice: &mut Dice) {
    if pod["metadata"]["namespace"] != "default" || held.is_empty() || !dice.in_thousand(400) {
        return;
    }
    let claim = dice.one_of(&held.iter().map(String::as_str).collect::<Vec<_>>()).to_owned();
    push(&mut pod["spec"]["resourceClaims"], json!({"name": "held", "resourceClaimName": claim}));
    push(&mut pod["spec"]["containers"][0]["resources"]["claims"], json!({"name": "held"}));
}

fn fitting(answer: &Answer) -> usize {
    let nodes = answer.pods.iter().flatten().flat_map(|pod| &pod.nodes);
    nodes.filter(|node| node.fits).count()
}

/// Gives devices that take of counters groups, and adds rules that taint devices.
fn groups_and_rules(case: &mut Case, release: Release) {
    let mut dice = Dice::new(case.seed ^ 0x6761_7465_6421);
    let mut pools = Vec::new();
    for slice in case.items.iter_mut().filter(|item| item["kind"] == "ResourceSlice") {
        pools.push(slice["spec"]["pool"]["name"].as_str().expect("a name").to_owned());
        let devices = slice["spec"]["devices"].as_array_mut();
        let taking = devices.into_iter().flatten().filter(|device| !device["consumesCounters"].is_null());
        for device in taking.filter(|_| release == Release::V1_37) {
            let groups = dice.pick::<&[&str]>(&[(&[], 2), (&["a"], 3), (&["b"], 2), (&["a", "b"], 2)]);
            device["consumesCounters"][0]["compatibilityGroups"] = json!(groups);
        }
    }
    if pools.is_empty() {
        return;
    }
    let version = match release {
        Release::V1_34 | Release::Usual => "resource.k8s.io/v1beta2",
        Release::V1_37 => "resource.k8s.io/v1",
    };
    for at in 0..dice.below(4) {
        let mut selector = json!({});
        if dice.in_thousand(600) {
            selector["driver"] = json!(dice.pick(&[(DRIVER, 4), (FABRIC, 1), ("none.example.com", 1)]));
        }
        if dice.in_thousand(700) {
            selector["pool"] = json!(dice.one_of(&pools.iter().map(String::as_str).collect::<Vec<_>>()));
        }
        if dice.in_thousand(500) {
            selector["device"] = json!(dice.one_of(&["gpu-0", "gpu-1", "link-0"]));
        }
        // A rule without a selector is about no device, by the API's documentation; 1.36 takes it for one about all, which 1.37 has mended.
        let selectorless = release == Release::V1_37 && dice.in_thousand(100);
        let selector = if selectorless { Value::Null } else { selector };
        let taint = json!({
            "key": dice.pick(&[("broken", 1), ("drained", 2)]),
            "effect": dice.pick(&[("NoSchedule", 3), ("NoExecute", 2), ("None", 1)]),
        });
        case.items.push(json!({
            "apiVersion": version, "kind": "DeviceTaintRule", "metadata": {"name": format!("rule-{at}")},
            "spec": {"deviceSelector": selector, "taint": taint},
        }));
    }
}
