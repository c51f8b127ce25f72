//! Differences between Berth and kube-scheduler about a node and its scores, and the table of those that are known.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::kube_scheduler::{
    family::Family,
    plugins::{self, PodVerdict},
    simulate,
};

/// In which way both differ.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Way {
    /// The node fits for Berth alone.
    OnlyBerth,
    /// The node fits for kube-scheduler alone.
    OnlyKubeScheduler,
    /// The node fits for Berth although Berth does not serve what the pod asks for; kube-scheduler's verdict does not matter.
    NotRefused,
    /// A plugin scores the node differently.
    Score,
}

/// A difference about one node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Difference {
    /// The pod.
    pub(crate) pod: String,
    /// The node.
    pub(crate) node: String,
    /// In which way.
    pub(crate) way: Way,
    /// What refuses the node: kube-scheduler's plugin, Berth's reason, or the family that is not served. Of a score: the plugin.
    pub(crate) by: String,
    /// The reasons of the side that refuses it, or both scores.
    pub(crate) reasons: String,
}

/// A difference that is known, and why it is there.
#[derive(Debug)]
pub(crate) struct Named {
    /// A family of the cluster.
    family: Family,
    way: Way,
    /// As [`Difference::by`].
    by: &'static str,
    /// Why both differ.
    pub(crate) reason: &'static str,
}

/// The differences that are known. One that no longer occurs fails the long run: delete it here.
pub(crate) const NAMED: &[Named] = &[
    Named {
        family: Family::PodCounts,
        way: Way::OnlyBerth,
        by: "NodeResourcesFit",
        reason: "deliberate: a node in a file may leave out the number of pods that every kubelet states; kube-scheduler takes it for 0",
    },
    Named {
        family: Family::Resources,
        way: Way::Score,
        by: WHOLE_POD,
        reason: "deliberate: kube-scheduler's filter and the pods on a node count a request of the pod as a whole; its score leaves out that of the pod that is placed (v1.36.3 fit.go sets enablePodLevelResources for the filter alone)",
    },
];

/// What scores differently where the pod requests something as a whole.
pub(crate) const WHOLE_POD: &str = "NodeResourcesFit, of a request of the pod as a whole";

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pod, node, way, by, reasons } = self;
        match way {
            Way::OnlyBerth => {
                write!(formatter, "{pod} fits {node} for Berth, not for kube-scheduler: {by}: {reasons}")
            }
            Way::OnlyKubeScheduler => {
                write!(formatter, "{pod} fits {node} for kube-scheduler, not for Berth: {reasons}")
            }
            Way::NotRefused => {
                write!(formatter, "{pod} asks for {by}, which is not served, and fits {node} for Berth")
            }
            Way::Score => write!(formatter, "{pod} on {node}: {by} scores {reasons}"),
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, {:?}, {}: {}", self.family.name(), self.way, self.by, self.reason)
    }
}

impl Difference {
    /// The position in [`NAMED`] of the difference's name, in a cluster with these families.
    pub(crate) fn name(&self, families: &BTreeSet<Family>, named: &[Named]) -> Option<usize> {
        named.iter().position(|named| {
            families.contains(&named.family) && named.way == self.way && named.by == self.by
        })
    }
}

/// Every difference about a pod that itself asks for `asked`, in a cluster with `families`.
///
/// If Berth does not serve a family that the pod asks for, no node may fit for Berth. If kube-scheduler refuses a node for a family
/// that Berth does not serve and the pod does not ask for, the node is not compared. Nor is one for which a plugin of kube-scheduler fails with an
/// error: an error on one node, such as all devices of which one can't be had, ends its attempt for all nodes.
pub(crate) fn differences(
    families: &BTreeSet<Family>,
    asked: &BTreeSet<Family>,
    theirs: &PodVerdict,
    ours: &BTreeMap<String, simulate::NodeVerdict>,
) -> Vec<Difference> {
    let unserved = asked.iter().find(|family| !family.is_served());
    let nowhere = simulate::NodeVerdict::default();
    let mut found = Vec::new();
    for node in &theirs.nodes {
        let our = ours.get(&node.name).unwrap_or(&nowhere);
        let difference = |way, by: &str, reasons: String| Difference {
            pod: theirs.name.clone(),
            node: node.name.clone(),
            way,
            by: by.to_owned(),
            reasons,
        };
        match unserved {
            Some(family) if our.fits => found.push(difference(Way::NotRefused, family.name(), String::new())),
            None if our.fits && !node.fits && !node.failed && !is_unseen(families, node) => {
                let by =
                    if node.failed { format!("{} with an error", node.plugin) } else { node.plugin.clone() };
                found.push(difference(Way::OnlyBerth, &by, node.reasons.join("; ")));
            }
            None if !our.fits && node.fits => {
                let by = our.reasons().first().copied().unwrap_or_default().to_owned();
                found.push(difference(Way::OnlyKubeScheduler, &by, our.reasons().join("; ")));
            }
            _ => {}
        }
    }
    found
}

/// The plugins whose scores are compared.
const SCORED: [&str; 9] = [
    "TaintToleration",
    "NodeAffinity",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesFit",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "VolumeBinding",
    "DynamicResources",
];

/// Every difference of a plugin's score, where both find the same nodes feasible: a score is relative to these. A plugin with nothing
/// to score for the pod adds nothing, as one that scores 0.
pub(crate) fn score_differences(
    theirs: &PodVerdict,
    ours: &BTreeMap<String, simulate::NodeVerdict>,
) -> Vec<Difference> {
    let fits = |node: &plugins::NodeVerdict| ours.get(&node.name).is_some_and(|our| our.fits);
    if theirs.nodes.iter().any(|node| node.fits != fits(node)) {
        return Vec::new();
    }
    let difference = |node: &String, plugin: &str, their: f64| {
        let our = ours[node].scores.get(plugin).copied().unwrap_or_default();
        ((our - their).abs() > 1e-9).then(|| Difference {
            pod: theirs.name.clone(),
            node: node.clone(),
            way: Way::Score,
            by: plugin.to_owned(),
            reasons: format!("{their} for kube-scheduler, {our} for Berth"),
        })
    };
    let mut found = Vec::new();
    for (node, scores) in &theirs.scores {
        for plugin in SCORED {
            let their = scores.plugins.get(plugin).copied().unwrap_or_default();
            let their = i32::try_from(their).expect("a score is from 0 to 100");
            found.extend(difference(node, plugin, their.into()));
        }
    }
    found
}

/// Whether kube-scheduler refuses the node for a family that Berth does not serve.
fn is_unseen(families: &BTreeSet<Family>, node: &plugins::NodeVerdict) -> bool {
    families.iter().any(|family| !family.is_served() && family.may_decide(&node.plugin, node.nominated))
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn found(families: &[Family], asked: &[Family], theirs: &serde_json::Value, ours: bool) -> Vec<Way> {
        let theirs = from_value(json!({"name": "p", "nodes": [theirs]})).unwrap();
        let our: simulate::NodeVerdict = from_value(json!({"name": "n", "fits": ours})).unwrap();
        let ours = [("n".to_owned(), our)].into();
        let (families, asked) = (families.iter().copied().collect(), asked.iter().copied().collect());
        differences(&families, &asked, &theirs, &ours).into_iter().map(|difference| difference.way).collect()
    }

    #[test]
    fn both_ways_of_differing_are_found() {
        let (fits, fails) = (
            json!({"name": "n", "fits": true}),
            json!({"name": "n", "fits": false, "plugin": "TaintToleration"}),
        );
        assert_eq!(found(&[Family::Taints], &[], &fits, false), [Way::OnlyKubeScheduler]);
        assert_eq!(found(&[Family::Taints], &[], &fails, true), [Way::OnlyBerth]);
        assert_eq!(found(&[Family::Taints], &[], &fits, true), []);
        assert_eq!(found(&[Family::Taints], &[], &fails, false), []);
    }

    #[test]
    fn a_pod_that_asks_for_what_is_not_served_must_fit_nowhere() {
        let Some(family) = Family::all().find(|family| !family.is_served()) else { return };
        let fits = json!({"name": "n", "fits": true});
        assert_eq!(found(&[family], &[family], &fits, true), [Way::NotRefused]);
        assert_eq!(found(&[family], &[family], &fits, false), []);
    }

    #[test]
    fn a_score_that_differs_is_found_where_the_same_nodes_fit() {
        let found = |theirs: i64, our: &serde_json::Value| {
            let theirs = json!({"name": "p", "nodes": [{"name": "n", "fits": true}],
                "scores": {"n": {"plugins": {"NodeAffinity": theirs}}}});
            let our: simulate::NodeVerdict = from_value(our.clone()).unwrap();
            let ours = [("n".to_owned(), our)].into();
            let found = score_differences(&from_value(theirs).unwrap(), &ours);
            found.into_iter().map(|difference| difference.by).collect::<Vec<_>>()
        };
        let fits = json!({"name": "n", "fits": true, "scores": {"NodeAffinity": 50.0}});
        assert_eq!(found(51, &fits), ["NodeAffinity"]);
        assert!(found(50, &fits).is_empty());
        assert!(found(51, &json!({"name": "n", "fits": false})).is_empty());
        assert!(found(0, &json!({"name": "n", "fits": true})).is_empty());
    }

    #[test]
    fn a_name_holds_in_its_family_and_way_alone() {
        let named = [Named { family: Family::Taints, way: Way::OnlyBerth, by: "X", reason: "" }];
        let difference = Difference {
            pod: "p".to_owned(),
            node: "n".to_owned(),
            way: Way::OnlyBerth,
            by: "X".to_owned(),
            reasons: String::new(),
        };
        assert_eq!(difference.name(&[Family::Taints].into(), &named), Some(0));
        assert_eq!(difference.name(&[Family::Cordons].into(), &named), None);
        let other = Difference { way: Way::OnlyKubeScheduler, ..difference };
        assert_eq!(other.name(&[Family::Taints].into(), &named), None);
    }
}
