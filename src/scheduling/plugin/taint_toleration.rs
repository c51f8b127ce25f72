//! Taints of a node and tolerations of a pod, as `k8s.io/api/core/v1/toleration.go` matches them.

use std::borrow::Cow;

use smallvec::smallvec;

use super::{
    contract::{Cure, Filter, Normalisation, Placement, Reasons, Rejection, SchedulingPlugin, Score},
    scene::Scene,
};
use crate::{
    object::{Taint, Toleration},
    scheduling::{
        model::pod::Ask,
        world::{node_parts::NodePart, nodes::Nodes},
    },
};

/// Rejects a node with a taint of effect `NoSchedule` or `NoExecute` that the pod does not tolerate, and prefers nodes with few taints of effect
/// `PreferNoSchedule` that it does not tolerate.
#[derive(Debug)]
pub struct TaintToleration;

impl SchedulingPlugin for TaintToleration {
    const NAME: &'static str = "TaintToleration";
    const WEIGHT: Option<u32> = Some(3);

    type Reason = UntoleratedTaint;

    fn reads(_ask: &Ask) -> Option<&'static [NodePart]> {
        Some(&[NodePart::Rest])
    }
}

impl Filter for TaintToleration {
    fn test(scene: &Scene<'_>) -> Result<(), Reasons<UntoleratedTaint>> {
        let tolerated = tolerates_all(&scene.ask.constraints.tolerations, &scene.node.info.taints);
        if tolerated { Ok(()) } else { Err(smallvec![UntoleratedTaint]) }
    }
}

impl Score for TaintToleration {
    const NORMALISATION: Normalisation = Normalisation::BelowHighest;

    fn score(placement: &Placement<'_>) -> Option<f64> {
        let (ask, info) = (placement.ask, &placement.node.info);
        let untolerated = untolerated_preferences(&ask.constraints.tolerations, &info.taints);
        Some(u32::try_from(untolerated).unwrap_or(u32::MAX).into())
    }

    fn is_even(_ask: &Ask, nodes: &Nodes) -> bool {
        !nodes.has_unfavoured()
    }
}

/// The node has a taint that the pod does not tolerate.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, thiserror::Error)]
#[error("node(s) had untolerated taint(s)")]
pub struct UntoleratedTaint;

impl Rejection for UntoleratedTaint {
    fn name(&self) -> Cow<'static, str> {
        TaintToleration::NAME.into()
    }

    fn cure(&self) -> Cure {
        Cure::Time
    }
}

/// Whether the pod tolerates every taint that keeps pods off a node.
pub fn tolerates_all(tolerations: &[Toleration], taints: &[Taint]) -> bool {
    let keeps_off = |taint: &&Taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
    taints.iter().filter(keeps_off).all(|taint| tolerates(tolerations, taint))
}

/// How many taints of effect `PreferNoSchedule` the pod does not tolerate.
pub fn untolerated_preferences(tolerations: &[Toleration], taints: &[Taint]) -> usize {
    let prefers_not = |taint: &&Taint| taint.effect == "PreferNoSchedule";
    taints.iter().filter(prefers_not).filter(|taint| !tolerates(tolerations, taint)).count()
}

/// Whether one of the tolerations matches the taint.
pub fn tolerates(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|toleration| matches_taint(toleration, taint))
}

fn matches_taint(toleration: &Toleration, taint: &Taint) -> bool {
    let same_or_any = |wanted: Option<&str>, actual: &str| {
        wanted.is_none_or(|wanted| wanted.is_empty() || wanted == actual)
    };
    if !same_or_any(toleration.effect.as_deref(), &taint.effect)
        || !same_or_any(toleration.key.as_deref(), &taint.key)
    {
        return false;
    }
    match toleration.operator.as_deref() {
        None | Some("" | "Equal") => toleration.value.as_deref().unwrap_or_default() == taint.value,
        Some("Exists") => true,
        // `Lt` and `Gt` are behind an alpha gate; with it off they match nothing.
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(key: &str, value: &str, effect: &str) -> Taint {
        Taint { key: key.into(), value: value.into(), effect: effect.into() }
    }

    fn toleration(json: &str) -> Vec<Toleration> {
        vec![serde_json::from_str(json).unwrap()]
    }

    #[test]
    fn a_toleration_matches_by_key_operator_value_and_effect() {
        let taints = [taint("gpu", "yes", "NoSchedule")];
        for (json, expected) in [
            (r#"{"key":"gpu","operator":"Exists"}"#, true),
            (r#"{"operator":"Exists"}"#, true),
            (r#"{"key":"gpu","value":"yes"}"#, true),
            (r#"{"key":"gpu","value":"no"}"#, false),
            (r#"{"key":"gpu","operator":"Exists","effect":"NoExecute"}"#, false),
            (r#"{"key":"gpu","operator":"Gt","value":"1"}"#, false),
        ] {
            assert_eq!(tolerates_all(&toleration(json), &taints), expected, "{json}");
        }
    }

    #[test]
    fn a_preference_rejects_no_node() {
        let taints = [taint("slow", "", "PreferNoSchedule")];
        assert!(tolerates_all(&[], &taints));
        assert_eq!(untolerated_preferences(&[], &taints), 1);
    }
}
