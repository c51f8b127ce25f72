//! GPUs: by template, by partition, by their place in the machine, and otherwise one by one.
//!
//! Source: koordinator `allocator_gpu.go` (`GPUAllocator.Allocate`).

use std::collections::BTreeSet;

use super::{
    Chosen, Shortfall, partition, pick,
    topology::{self, Scope},
    view::View,
};
use crate::device::{DevicePortion, Minor, node_devices::matching};

/// The pod's GPUs.
pub(super) fn choose(view: &View<'_>) -> Result<Chosen, Shortfall> {
    let template = template(view)?;
    Ok(Chosen { minors: minors(view)?, template })
}

/// The template that the shares are; `None`: they need none, or more than one is exactly what is asked for.
pub(super) fn template(view: &View<'_>) -> Result<Option<String>, Shortfall> {
    if !view.request.by_template {
        return Ok(None);
    }
    let mut names = matching(&view.node.templates, &view.request.each);
    let first = names.next().ok_or(Shortfall::Template)?;
    Ok(names.next().is_none().then(|| first.to_owned()))
}

fn minors(view: &View<'_>) -> Result<Vec<Minor>, Shortfall> {
    if view.request.portion == DevicePortion::Whole {
        match partition::feasible(view) {
            Ok(partitions) => return Ok(partitions[0].minors.iter().copied().collect()),
            Err(shortfall) if partition::is_required(view) => return Err(shortfall),
            Err(_) => {}
        }
    }
    let tree = Scope::of(view.node);
    match (topology::is_possible(view, tree.as_ref()), &tree) {
        (Ok(()), Some(tree)) => topology::choose(view, tree),
        (Err(shortfall), _) if view.request.scope.is_some() => Err(shortfall),
        _ => pick::choose(view, view.count, view.count, &BTreeSet::new()),
    }
}
