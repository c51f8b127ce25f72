//! How much a pod may demand of nodes and of other pods: each demand is compared with each node or pod, and kept while the pod exists.

use std::fmt;

use super::{
    affinity::{NodeSelector, PodAffinity, PodAffinityTerm},
    pod::{PodSpec, TopologySpread},
    selector::LabelSelector,
};

/// How many requirements, values, names and tolerations a pod may have in all.
pub const MOST_REQUIREMENTS: usize = 1024;

/// How many terms of pod affinity and anti-affinity and spread constraints a pod may have in all: each is compared with every pod.
pub const MOST_POD_TERMS: usize = 64;

/// How many claims of volumes a pod may have: each that is not bound is compared with every volume.
pub const MOST_CLAIMS: usize = 32;

/// A pod demands more than is served.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TooManyConstraints {
    /// The field with the most of them.
    pub field: &'static str,
    what: &'static str,
    count: usize,
    most: usize,
}

impl fmt::Display for TooManyConstraints {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, count, most, .. } = self;
        write!(formatter, "the pod has {count} {what} in all, and {most} are allowed")
    }
}

impl PodSpec {
    /// Fails on a pod that demands more of nodes and of other pods than is served.
    pub fn check_constraints(&self) -> Result<(), TooManyConstraints> {
        let counted = [
            ("spec.affinity.nodeAffinity", self.node_requirements()),
            ("spec.affinity.podAffinity", requirements(self.affinity.pod_affinity.as_ref())),
            ("spec.affinity.podAntiAffinity", requirements(self.affinity.pod_anti_affinity.as_ref())),
            ("spec.topologySpreadConstraints", self.spread_requirements()),
            ("spec.tolerations", self.tolerations.len()),
            ("spec.nodeSelector", self.node_selector.as_ref().map_or(0, std::collections::BTreeMap::len)),
        ];
        check(&counted, "requirements, values and tolerations", MOST_REQUIREMENTS)?;
        let terms = |affinity: Option<&PodAffinity>| {
            affinity.map_or(0, |affinity| affinity.required.len() + affinity.preferred.len())
        };
        let counted = [
            ("spec.affinity.podAffinity", terms(self.affinity.pod_affinity.as_ref())),
            ("spec.affinity.podAntiAffinity", terms(self.affinity.pod_anti_affinity.as_ref())),
            ("spec.topologySpreadConstraints", self.topology_spread_constraints.len()),
        ];
        check(&counted, "terms about other pods", MOST_POD_TERMS)?;
        let claims = self
            .volumes
            .iter()
            .filter(|volume| volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some());
        check(&[("spec.volumes", claims.count())], "claims of volumes", MOST_CLAIMS)
    }

    fn node_requirements(&self) -> usize {
        let Some(nodes) = &self.affinity.node_affinity else { return 0 };
        let preferred = nodes.preferred.iter().map(|term| term.preference.requirements());
        preferred.chain(nodes.required.iter().map(NodeSelector::requirements)).sum()
    }

    fn spread_requirements(&self) -> usize {
        let of = |spread: &TopologySpread| {
            let selected = spread.label_selector.as_ref().map_or(0, LabelSelector::requirements);
            1 + selected + spread.match_label_keys.len()
        };
        self.topology_spread_constraints.iter().map(of).sum()
    }
}

fn requirements(affinity: Option<&PodAffinity>) -> usize {
    let Some(PodAffinity { required, preferred }) = affinity else { return 0 };
    let preferred = preferred.iter().map(|weighted| &weighted.pod_affinity_term);
    required.iter().chain(preferred).map(PodAffinityTerm::requirements).sum()
}

fn check(
    counted: &[(&'static str, usize)],
    what: &'static str,
    most: usize,
) -> Result<(), TooManyConstraints> {
    let count = counted.iter().map(|(_, count)| count).sum();
    let field = counted.iter().max_by_key(|(_, count)| count).map_or("spec", |(field, _)| field);
    if count > most { Err(TooManyConstraints { field, what, count, most }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn checked(spec: Value) -> Result<(), String> {
        let spec: PodSpec = serde_json::from_value(spec).unwrap();
        spec.check_constraints().map_err(|error| format!("{}: {error}", error.field))
    }

    fn node_affinity(values: usize) -> Value {
        let values: Vec<_> = (0..values).map(|at| format!("node-{at}")).collect();
        let required = json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "In", "values": values}]}]});
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}})
    }

    #[test]
    fn a_pod_may_have_so_many_requirements_and_no_more() {
        // A term and a requirement are counted with the values.
        assert_eq!(checked(node_affinity(1022)), Ok(()));
        let message = "spec.affinity.nodeAffinity: the pod has 1025 requirements, values and tolerations in all, and 1024 are allowed";
        assert_eq!(checked(node_affinity(1023)), Err(message.to_owned()));
        let tolerations = vec![json!({"operator": "Exists"}); 1025];
        let message = "spec.tolerations: the pod has 1025 requirements, values and tolerations in all, and 1024 are allowed";
        assert_eq!(checked(json!({"tolerations": tolerations})), Err(message.to_owned()));
    }

    #[test]
    fn a_pod_may_have_so_many_terms_about_other_pods_and_no_more() {
        let term = json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}});
        let spread = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"});
        let spec = |terms: usize| {
            let anti = json!({"requiredDuringSchedulingIgnoredDuringExecution": vec![term.clone(); terms]});
            json!({"affinity": {"podAntiAffinity": anti}, "topologySpreadConstraints": [spread]})
        };
        assert_eq!(checked(spec(63)), Ok(()));
        let message =
            "spec.affinity.podAntiAffinity: the pod has 65 terms about other pods in all, and 64 are allowed";
        assert_eq!(checked(spec(64)), Err(message.to_owned()));
    }

    #[test]
    fn a_pod_may_have_so_many_claims_of_volumes_and_no_more() {
        let volume = |at: usize| json!({"name": format!("v{at}"), "persistentVolumeClaim": {"claimName": format!("c{at}")}});
        let spec = |count: usize| json!({"volumes": (0..count).map(volume).collect::<Vec<_>>()});
        assert_eq!(checked(spec(32)), Ok(()));
        let message = "spec.volumes: the pod has 33 claims of volumes in all, and 32 are allowed";
        assert_eq!(checked(spec(33)), Err(message.to_owned()));
    }
}
