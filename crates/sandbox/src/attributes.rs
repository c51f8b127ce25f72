//! What admission knows of a request beside the object that may still change.

use super::{
    object,
    request::{Call, DryRun},
    resource::{self, Scope},
    server::Server,
    status::Result,
    wire,
};
use serde_json::Value;

/// What is done to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
        }
    }
}

/// What selectors and reviews read about a request, beside the object that may still change.
#[derive(Debug)]
pub(super) struct Attributes<'a> {
    pub(super) call: &'a Call,
    pub(super) operation: Operation,
    pub(super) name: String,
    pub(super) old: Option<&'a Value>,
    pub(super) dry_run: DryRun,
}

impl<'a> Attributes<'a> {
    /// `named` is the object that the request is about, for its name.
    pub(super) fn new(
        call: &'a Call,
        operation: Operation,
        named: &Value,
        old: Option<&'a Value>,
        dry_run: DryRun,
    ) -> Self {
        Self { call, operation, name: object::name(named).to_owned(), old, dry_run }
    }

    /// Group, version and kind of the object in the review.
    pub(super) fn kind(&self) -> (&'static str, &'static str, &'static str) {
        match self.call.subresource.as_str() {
            "binding" => ("", "v1", "Binding"),
            _ => (self.call.resource.group, self.call.resource.version, self.call.resource.kind),
        }
    }

    /// The labels that a namespace selector is held against: those of the namespace, or none for cluster scope.
    pub(super) fn namespace(&self, server: &Server, object: &Value) -> Option<Value> {
        if self.call.resource.plural == "namespaces" {
            return Some(if object.is_null() {
                self.old.cloned().unwrap_or_default()
            } else {
                object.clone()
            });
        }
        let namespaces = resource::known("", "namespaces");
        let key = (String::new(), self.call.namespace.clone());
        let found =
            (self.call.resource.scope == Scope::Namespaced).then(|| server.store().get(namespaces, &key));
        found.flatten().map(|namespace| (*namespace).clone())
    }

    /// The object as the client's group spells it.
    pub(super) fn spelled(&self, stored: &Value) -> Value {
        if stored.is_null() || self.call.subresource == "binding" {
            return stored.clone();
        }
        wire::encode(self.call.resource, stored)
    }

    /// The object as it is stored, of one as the client's group spells it.
    pub(super) fn unspelled(&self, object: Value) -> Result<Value> {
        if self.call.subresource == "binding" {
            return Ok(object);
        }
        wire::decode(self.call.resource, object)
    }
}
