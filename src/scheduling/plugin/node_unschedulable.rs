//! Whether a node is cordoned.

use super::scene::Scene;
use super::taint_toleration::tolerates;
use crate::{
    object::Taint,
    scheduling::model::reason::{NodeReasons, Reason},
};

/// The taint that stands for a cordon: a pod that tolerates it may be placed on a cordoned node.
const CORDON: &str = "node.kubernetes.io/unschedulable";

/// Fails on a cordoned node, unless the pod tolerates the cordon.
pub(super) fn test(scene: &Scene<'_>) -> Result<(), NodeReasons> {
    let taint = || Taint { key: CORDON.to_owned(), effect: "NoSchedule".to_owned(), value: String::new() };
    let cordoned = scene.node.info.cordoned;
    if cordoned && !tolerates(&scene.ask.constraints.tolerations, &taint()) {
        return Err(vec![Reason::Unschedulable]);
    }
    Ok(())
}
