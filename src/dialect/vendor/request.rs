//! What a pod asks of one family of cards.
//!
//! Source: HAMi v2.10 `GenerateResourceRequests` and `MutateAdmission` of each vendor, without their silent rounding: what can't be
//! represented is an error that names the field. A size of memory is rounded up to a template only where the vendor has no other.

use std::num::NonZeroU32;

use super::{
    VendorSettings, ascend,
    row::{Containers, CoreColumn, Several, Sizes, Templates, VendorRow},
};
use crate::{
    device::{
        ContainerRequest, CoreRequest, LinkChoice, Mark, Marks, MemoryRequest, MiB, Mode, Percent,
        PodRequest, Role, Selection, ShareRequest,
    },
    dialect::{
        Problem, Unreadable,
        amounts::ResourceReader,
        count,
        hami::{choice, request::node_policy},
        segments,
    },
    object::{Container, Pod},
};

/// What the pod asks; `None` where no container asks for a share.
pub(super) fn read(
    row: &VendorRow,
    settings: &VendorSettings,
    pod: &Pod,
) -> Result<Option<PodRequest>, Vec<Unreadable>> {
    let mut containers = Vec::new();
    let mut troubles = Vec::new();
    for ((path, container), role) in pod.containers().zip(segments::roles(pod)) {
        match share(row, pod, container, &path) {
            Ok(share) => containers.push(ContainerRequest { role, share }),
            Err(trouble) => troubles.push(trouble),
        }
    }
    if troubles.is_empty() && containers.iter().all(|container| container.share.is_none()) {
        return Ok(None);
    }
    if troubles.is_empty() {
        troubles.extend(unserved(row, pod, &containers));
        troubles.extend(one_size_only(row, pod, &containers));
    }
    let choice = choice::read(&settings.card_policies, pod).map_err(|trouble| troubles.push(trouble));
    let (Ok(mut choice), true) = (choice, troubles.is_empty()) else { return Err(troubles) };
    if matches!(row.memory.sizes, Sizes::Templates(_)) {
        choice.links = LinkChoice::Closest;
    }
    Ok(Some(PodRequest {
        containers,
        selection: selection(row, pod),
        choice,
        node_policy: node_policy(settings.node_policy, pod),
        marks: marks(row, pod),
        shuns: Marks::default(),
    }))
}

/// For each container in starting order, whether it asks for a share.
pub(super) fn asks(row: &VendorRow, pod: &Pod) -> Vec<bool> {
    let asks =
        |(path, container): (String, &Container)| matches!(share(row, pod, container, &path), Ok(Some(_)));
    pod.containers().map(asks).collect()
}

/// What the pod bears: its share is written in another way where it is one in software.
pub(super) fn marks(row: &VendorRow, pod: &Pod) -> Marks {
    in_software(row, pod).then(software).into_iter().collect()
}

/// The mark of a pod whose share is one in software.
pub(super) fn software() -> Mark {
    format!("{} {}", ascend::MODE, ascend::SOFTWARE).into()
}

fn in_software(row: &VendorRow, pod: &Pod) -> bool {
    let has_templates = matches!(row.memory.sizes, Sizes::Templates(_));
    has_templates && pod.metadata.annotation(ascend::MODE) == Some(ascend::SOFTWARE)
}

fn selection(row: &VendorRow, pod: &Pod) -> Selection {
    Selection {
        models: row.hints.models(&pod.metadata),
        ids: row.hints.ids(&pod.metadata),
        // A pod that says nothing follows the node.
        modes: in_software(row, pod).then(|| vec![Mode::Soft]),
    }
}

fn share(
    row: &VendorRow,
    pod: &Pod,
    container: &Container,
    path: &str,
) -> Result<Option<ShareRequest>, Unreadable> {
    let read = ResourceReader::new(container, path);
    let names = &row.resources;
    let memory = match &names.memory {
        Some(name) => read.number(name, "MiB", row.memory.unit)?,
        None => None,
    };
    let cores = match &names.cores {
        Some(name) => read.percentage(name)?,
        None => None,
    };
    let Some(cards) = count::cards(&read, &names.count, names.shares(), None)? else { return Ok(None) };
    let ask = VendorAsk { row, read: &read, cards, in_software: in_software(row, pod) };
    Ok(Some(ShareRequest {
        cards,
        memory: ask.memory(memory)?,
        cores: CoreRequest::stated(ask.cores(cores)?, row.cores.budget),
    }))
}

struct VendorAsk<'a> {
    row: &'a VendorRow,
    read: &'a ResourceReader<'a>,
    cards: NonZeroU32,
    in_software: bool,
}

impl VendorAsk<'_> {
    fn memory(&self, stated: Option<u32>) -> Result<MemoryRequest, Unreadable> {
        let unit = u64::from(self.row.memory.unit.max(1));
        let stated = stated.map(|units| MiB::new(u64::from(units) * unit));
        match &self.row.memory.sizes {
            Sizes::Uncounted => Ok(MemoryRequest::Exact(MiB::default())),
            Sizes::Any => {
                let stated = stated.filter(|&memory| memory > MiB::default());
                Ok(stated.map_or(MemoryRequest::Part(Percent::WHOLE), MemoryRequest::Exact))
            }
            Sizes::Templates(templates) => self.sized(templates, stated),
        }
    }

    fn sized(&self, templates: &Templates, stated: Option<MiB>) -> Result<MemoryRequest, Unreadable> {
        let Some(stated) = stated else { return Ok(MemoryRequest::Part(Percent::WHOLE)) };
        let Some(rounded) = templates.rounded(stated) else {
            let message = format!("{stated} is more than the {} of a card", templates.capacity);
            return Err(self.refuse(Problem::Quantity, self.row.resources.memory.as_ref(), message));
        };
        let memory = if self.in_software && stated > MiB::default() { stated } else { rounded };
        if self.cards.get() > 1
            && self.row.cores.several == Several::WholeOnly
            && memory != templates.allocatable
        {
            let message = format!(
                "several cards are given whole only; leave it out, write {}, or ask for one card",
                templates.allocatable.get()
            );
            return Err(self.refuse(Problem::Unserved, self.row.resources.memory.as_ref(), message));
        }
        Ok(MemoryRequest::Exact(memory))
    }

    fn cores(&self, stated: Option<u32>) -> Result<Percent, Unreadable> {
        let CoreColumn { default, least, several, .. } = self.row.cores;
        let name = self.row.resources.cores.as_ref();
        let Some(stated) = stated.map(Percent::new) else {
            return Ok(if self.takes_all(several) { Percent::WHOLE } else { default });
        };
        if stated < least {
            let message = format!(
                "`{}` is less than {} %; leave it out for all of a card's",
                stated.get(),
                least.get()
            );
            return Err(self.refuse(Problem::Quantity, name, message));
        }
        let by_template = matches!(self.row.memory.sizes, Sizes::Templates(_)) && !self.in_software;
        if by_template && stated > Percent::NONE {
            let message = format!(
                "a template has its own compute; leave it out, or annotate the pod `{}: {}`",
                ascend::MODE,
                ascend::SOFTWARE
            );
            return Err(self.refuse(Problem::Unserved, name, message));
        }
        Ok(if self.takes_all(several) { Percent::WHOLE } else { stated })
    }

    fn takes_all(&self, several: Several) -> bool {
        several == Several::AllCores && self.cards.get() > 1
    }

    fn refuse(&self, problem: Problem, name: Option<&String>, message: String) -> Unreadable {
        Unreadable::new(problem, self.read.field(name.map_or("", String::as_str)), message)
    }
}

/// A share of another size in a pod whose plugin distinguishes shares by their card alone
/// (Project-HAMi/ascend-device-plugin `buildRuntimeInfoLookup`).
fn one_size_only(row: &VendorRow, pod: &Pod, containers: &[ContainerRequest]) -> Option<Unreadable> {
    if !matches!(row.memory.sizes, Sizes::Templates(_)) {
        return None;
    }
    let shares = pod.containers().zip(containers);
    let mut shares = shares.filter_map(|((path, _), container)| Some((path, container.share?)));
    let (_, first) = shares.next()?;
    let (path, _) = shares.find(|(_, share)| (share.memory, share.cores) != (first.memory, first.cores))?;
    let message = "the node's plugin distinguishes the shares of a pod by their card alone; request the same amounts in each container";
    Some(Unreadable::new(Problem::Unserved, format!("{path}.resources"), message))
}

/// What the vendor's plugin would not serve of a pod, although each of its containers can be read.
fn unserved(row: &VendorRow, pod: &Pod, containers: &[ContainerRequest]) -> Option<Unreadable> {
    let count = &row.resources.count;
    let shares = pod.containers().zip(containers);
    let mut asking = shares.filter_map(|((path, own), asked)| Some((path, own, asked.role, asked.share?)));
    let refuse = |(path, own): (&str, &Container), message: String| {
        Some(Unreadable::new(Problem::Unserved, ResourceReader::new(own, path).field(count), message))
    };
    let (path, own, role, share) = asking.next().filter(|_| row.containers != Containers::Any)?;
    if let Some((path, own, ..)) = asking.next() {
        return refuse(
            (&path, own),
            "the node's plugin serves one container of a pod; request cards in one container only".to_owned(),
        );
    }
    if row.containers == Containers::One {
        return None;
    }
    if share.cards.get() > 1 {
        let message = "the node's plugin serves one share of a pod; request one card";
        return refuse((&path, own), message.to_owned());
    }
    if role != Role::App {
        return refuse(
            (&path, own),
            "the node's plugin serves no init container; ask in a container".to_owned(),
        );
    }
    let read = ResourceReader::new(own, &path);
    let missing =
        row.resources.shares().find(|name| !matches!(read.number(name, "units", 1), Ok(Some(1..))))?;
    let message = format!("the node's plugin needs both compute and memory; add `{missing}`");
    refuse((&path, own), message)
}
