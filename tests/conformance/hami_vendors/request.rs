//! What pods of a vendor's ask for, in the words of upstream's tables.
//!
//! Judges no case, and knows nothing of cards.

use berth::{
    device::{MemoryRequest, MiB, PodRequest},
    dialect::{
        Unreadable,
        vendor::{VendorRow, row::Containers},
    },
    object::Pod,
};
use serde_json::{Map, Value, json};

use crate::upstream::{number, pod};

pub(crate) type Asked = Result<Option<PodRequest>, Vec<Unreadable>>;

/// What asks for one card, or for the least part of one where it must be a part.
pub(crate) fn one(row: &VendorRow) -> Value {
    let parts = row.resources.shares().filter(|_| row.containers == Containers::OneStatingBoth);
    let names = std::iter::once(row.resources.count.as_str()).chain(parts);
    names.map(|name| (name.to_owned(), json!("1"))).collect::<Map<_, _>>().into()
}

pub(crate) fn of_container(container: &Value, annotations: &Value) -> Pod {
    pod(&json!({
        "metadata": {"name": "pod", "namespace": "default", "annotations": annotations},
        "spec": {"containers": [container]},
    }))
}

/// Cards, MiB or percent of memory, percent of compute; nothing where nothing is asked or what is asked is refused.
pub(crate) fn requested(asked: Asked) -> Option<(u32, MemoryOf, u32)> {
    let share = asked.ok().flatten()?.containers[0].share?;
    let memory = match share.memory {
        MemoryRequest::Exact(memory) if memory == MiB::default() => MemoryOf::Part(100),
        MemoryRequest::Exact(memory) => MemoryOf::Exact(memory.get()),
        MemoryRequest::Part(part) => MemoryOf::Part(part.get()),
    };
    Some((share.cards.get(), memory, share.cores.get()))
}

#[derive(Debug, PartialEq)]
pub(crate) enum MemoryOf {
    Exact(u64),
    Part(u32),
}

pub(crate) fn wanted(request: &Value) -> Option<(u32, MemoryOf, u32)> {
    let cards = Some(number(request, "Nums")).filter(|&cards| cards > 0)?;
    let memory = match number(request, "Memreq") {
        0 => MemoryOf::Part(number(request, "MemPercentagereq")),
        memory => MemoryOf::Exact(memory.into()),
    };
    Some((cards, memory, number(request, "Coresreq")))
}
