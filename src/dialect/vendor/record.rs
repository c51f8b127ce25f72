//! A pod's assignment, as the plugin of its family reads it: HAMi's string of shares, and what some want beside it.
//!
//! Source: HAMi v2.10 `PatchAnnotations` of each vendor.

use jiff::Timestamp;
use serde::Serialize;

use super::{
    ascend, cambricon, request,
    row::{BesideAssignment, Sizes, VendorRow},
};
use crate::{
    device::{Answer, Assignment, Share},
    dialect::{
        Carried, Record, Unreadable, answer,
        hami::{names, record as hami},
        segments,
    },
    object::Pod,
};

/// The assignment that a pod carries.
pub(super) fn read(row: &VendorRow, pod: &Pod) -> Result<Option<Carried>, Unreadable> {
    let Some(text) = pod.metadata.annotation(&row.keys.allocated) else {
        return Ok(None);
    };
    let asks = request::asks(row, pod);
    let mut carried = segments::carried((&row.keys.allocated, text), pod, &asks, hami::node(pod))?;
    carried.assignment.marks = request::marks(row, pod);
    Ok(Some(carried))
}

/// The annotations and the label of an assignment.
pub(super) fn write(row: &VendorRow, assignment: &Assignment, node: &str, now: Timestamp) -> Record {
    let devices = hami::devices(assignment, &row.word);
    let own = [(row.keys.to_allocate.as_str(), devices.clone()), (row.keys.allocated.as_str(), devices)];
    hami::around(node, now, own.into_iter().chain(beside(row, assignment, now)))
}

/// What the plugin has made of the pod.
pub(super) fn answer(row: &VendorRow, pod: &Pod) -> Answer {
    if row.beside == BesideAssignment::Cambricon {
        let keys = [cambricon::ASSIGNED, cambricon::ASSIGNED_AS_OLDER_PLUGINS_SPELL_IT];
        let served = keys.into_iter().any(|key| pod.metadata.annotation(key) == Some("true"));
        return if served { Answer::Succeeded } else { Answer::Awaited };
    }
    answer::by_phase(pod, names::BIND_PHASE)
}

fn beside<'a>(row: &'a VendorRow, assignment: &Assignment, now: Timestamp) -> Vec<(&'a str, String)> {
    match &row.beside {
        BesideAssignment::Nothing => Vec::new(),
        BesideAssignment::Ascend { key } => {
            let shares: Vec<_> = assignment.shares().map(|share| described(row, assignment, share)).collect();
            let shares = serde_json::to_string(&shares).expect("numbers and strings always serialise");
            vec![(key, shares), (ascend::TIME, now.as_second().to_string())]
        }
        BesideAssignment::Cambricon => {
            let profile = assignment.shares().next().map(|share| (cambricon::PROFILE, profile(row, share)));
            let awaited = [cambricon::ASSIGNED, cambricon::ASSIGNED_AS_OLDER_PLUGINS_SPELL_IT];
            awaited.into_iter().map(|key| (key, "false".to_owned())).chain(profile).collect()
        }
    }
}

/// A share as Ascend's plugin reads it; zero and nothing are left out.
#[derive(Serialize)]
struct Described<'a> {
    #[serde(rename = "UUID")]
    card: &'a str,
    #[serde(rename = "temp", skip_serializing_if = "Option::is_none")]
    template: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    core: Option<u32>,
}

fn described<'a>(row: &'a VendorRow, assignment: &Assignment, share: &'a Share) -> Described<'a> {
    let in_software = assignment.marks.contains(&request::software());
    let template = match &row.memory.sizes {
        Sizes::Templates(templates) if !in_software => templates.of(share.memory),
        _ => None,
    };
    Described {
        card: share.card.as_str(),
        template: template.map(|template| template.name.as_str()),
        memory: Some(share.memory.get()).filter(|&memory| memory > 0),
        core: Some(share.cores.get()).filter(|&cores| cores > 0),
    }
}

/// `<card's number>_<percent>_<units of memory>`; the number ends the card's id.
fn profile(row: &VendorRow, share: &Share) -> String {
    let number = share.card.as_str().rsplit('-').next().unwrap_or_default();
    format!("{number}_{}_{}", share.cores.get(), share.memory.get() / u64::from(row.memory.unit.max(1)))
}
