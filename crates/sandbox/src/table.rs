//! Objects as the rows that kubectl prints: `Table` of `meta.k8s.io/v1`, for the kinds that have columns here; other kinds are
//! answered as they are.
//!
//! It must not read the store; what stands in a cell is said by the file of its kind.

mod age;
mod event;
mod node;
mod pod;

use super::{
    clock::Clock,
    object,
    request::Query,
    resource::Resource,
    status::{Result, StatusError},
};
use jiff::Timestamp;
use serde_json::{Value, json};

/// A column: its name, and whether kubectl shows it with `-o wide` only.
struct Column {
    name: &'static str,
    priority: u8,
}

const fn column(name: &'static str) -> Column {
    Column { name, priority: 0 }
}

const fn wide(name: &'static str) -> Column {
    Column { name, priority: 1 }
}

/// How one kind is printed.
struct Kind {
    columns: &'static [Column],
    cells: fn(&Value, Timestamp) -> Vec<Value>,
}

/// What a row carries of its object, by the parameter `includeObject`.
#[derive(Clone, Copy)]
enum Included {
    Nothing,
    Metadata,
    Object,
}

/// Prints objects of one kind for one client.
pub(super) struct Printer {
    kind: &'static Kind,
    included: Included,
    clock: Clock,
}

impl Printer {
    /// The printer that a client asks for with its header `Accept`; none where it takes objects first, or the kind has no columns.
    pub(super) fn asked(
        accept: &str,
        resource: &Resource,
        query: &Query,
        clock: Clock,
    ) -> Result<Option<Self>> {
        let Some(kind) = kind(resource).filter(|_| prefers_table(accept)) else { return Ok(None) };
        let included = match query.get("includeObject") {
            None | Some("Metadata") => Included::Metadata,
            Some("Object") => Included::Object,
            Some("None") => Included::Nothing,
            Some(other) => {
                let text = format!("includeObject: must be None, Metadata or Object, not {other:?}");
                return Err(StatusError::bad_request(text));
            }
        };
        Ok(Some(Self { kind, included, clock }))
    }

    /// Objects as they would be sent, as a table under the metadata of their list.
    pub(super) fn table(&self, metadata: &Value, objects: &[Value]) -> Value {
        let mut table = self.rows(metadata, objects);
        let columns = self.kind.columns.iter();
        table["columnDefinitions"] = columns.map(Column::definition).collect();
        table
    }

    /// One object, as a table of one row.
    pub(super) fn one(&self, sent: &Value) -> Value {
        self.table(&version(sent), std::slice::from_ref(sent))
    }

    /// The same without columns: what a watch sends after its first event.
    pub(super) fn one_more(&self, sent: &Value) -> Value {
        self.rows(&version(sent), std::slice::from_ref(sent))
    }

    fn rows(&self, metadata: &Value, objects: &[Value]) -> Value {
        let now = self.clock.now();
        let rows: Vec<Value> = objects.iter().map(|object| self.row(object, now)).collect();
        json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
            "columnDefinitions": [], "rows": rows,
        })
    }

    fn row(&self, sent: &Value, now: Timestamp) -> Value {
        let included = match self.included {
            Included::Nothing => Value::Null,
            Included::Object => sent.clone(),
            Included::Metadata => json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": sent["metadata"],
            }),
        };
        json!({ "cells": (self.kind.cells)(sent, now), "object": included })
    }
}

impl Column {
    fn definition(&self) -> Value {
        let format = if self.name == "Name" { "name" } else { "" };
        json!({
            "name": self.name, "type": "string", "format": format, "description": "", "priority": self.priority,
        })
    }
}

fn version(sent: &Value) -> Value {
    json!({ "resourceVersion": object::resource_version(sent) })
}

fn kind(resource: &Resource) -> Option<&'static Kind> {
    match (resource.group, resource.plural) {
        ("", "pods") => Some(&pod::KIND),
        ("", "nodes") => Some(&node::KIND),
        ("", "events") => Some(&event::KIND),
        _ => None,
    }
}

/// Whether the first of the accepted types that can be served is a table.
fn prefers_table(accept: &str) -> bool {
    accept.split(',').find_map(table_or_object).unwrap_or_default()
}

/// Whether an accepted type is a table of version v1 or an object in JSON; none where it is neither.
fn table_or_object(accepted: &str) -> Option<bool> {
    let mut parts = accepted.split(';').map(str::trim);
    if !matches!(parts.next(), Some("application/json" | "application/*" | "*/*")) {
        return None;
    }
    let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
    let given = |name| parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    match (given("as"), given("v"), given("g")) {
        (None, ..) => Some(false),
        (Some("Table"), Some("v1"), Some("meta.k8s.io")) => Some(true),
        _ => None,
    }
}

/// A text, or what is printed where there is none.
fn or<'a>(text: &'a str, none: &'a str) -> &'a str {
    if text.is_empty() { none } else { text }
}

#[cfg(test)]
mod tests {
    use super::prefers_table;

    #[test]
    fn a_table_is_answered_where_it_is_the_first_type_that_is_served() {
        const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let cases = [
            ("", false),
            ("*/*", false),
            ("application/json", false),
            (TABLE, true),
            ("application/json; as=Table; g=meta.k8s.io; v=v1", true),
            ("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", false),
            ("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json", false),
            ("application/vnd.kubernetes.protobuf,application/json;as=Table;v=v1;g=meta.k8s.io", true),
        ];
        for (accept, table) in cases {
            assert_eq!(prefers_table(accept), table, "{accept}");
        }
        let kubectl = format!("{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json");
        assert!(prefers_table(&kubectl));
        assert!(!prefers_table(&format!("application/json,{TABLE}")));
    }
}
