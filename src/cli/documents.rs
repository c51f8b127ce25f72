//! Kubernetes objects out of files, folders and standard input.
//!
//! Documents stay JSON values, so that no field is lost that Berth does not know; each remembers where it stood.

pub(in crate::cli) mod live;
mod source;

use std::{collections::BTreeSet, fmt};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::object::{
    self, UnreadableField,
    workload::{KeptPod, Places, UnreadableWorkload, Workloads},
};

pub use source::read;

/// One object and where it stood.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The object.
    pub value: Value,
    /// Where it stood.
    pub place: DocumentPlace,
}

/// Where an object stood.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DocumentPlace {
    /// The file; `-` for standard input.
    pub file: String,
    /// The document's number in the file, from 1.
    pub document: usize,
    /// The position in a `List`, where it was in one.
    pub item: Option<usize>,
}

/// Why documents could not be read.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The file or folder could not be read.
    #[error("{file}: {reason}")]
    Unreadable {
        /// The file or folder.
        file: String,
        /// Why.
        reason: std::io::Error,
    },
    /// There is no object in any of the files.
    #[error("{asked}: no Kubernetes object")]
    Nothing {
        /// The files and folders that were asked for.
        asked: String,
    },
    /// A folder without any file of a known extension.
    #[error("{folder}: no *.yaml, *.yml or *.json file in this folder")]
    EmptyFolder {
        /// The folder.
        folder: String,
    },
    /// The text is neither YAML nor JSON.
    #[error("{file}:{line}: document {document}: {message}")]
    Malformed {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The document's number in the file, from 1.
        document: usize,
        /// What is wrong.
        message: String,
    },
    /// A field is not what the object must have there.
    #[error("{place}: {field}: {message}")]
    Field {
        /// Where the object stood.
        place: DocumentPlace,
        /// The field's path from the object's root.
        field: String,
        /// What is wrong.
        message: String,
    },
}

impl fmt::Display for DocumentPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: document {}", self.file, self.document)?;
        match self.item {
            Some(item) => write!(formatter, ": items[{item}]"),
            None => Ok(()),
        }
    }
}

impl Document {
    /// Something wrong with a field of this document.
    pub fn error(&self, field: &str, message: impl Into<String>) -> DocumentError {
        DocumentError::Field { place: self.place.clone(), field: field.to_owned(), message: message.into() }
    }

    /// The object's kind.
    pub fn kind(&self) -> &str {
        self.text("/kind").unwrap_or_default()
    }

    /// The object's group and version.
    pub fn api_version(&self) -> &str {
        self.text("/apiVersion").unwrap_or_default()
    }

    /// The object's name, or the prefix from which the API server makes one.
    pub fn name(&self) -> Option<&str> {
        self.text("/metadata/name").or_else(|| self.text("/metadata/generateName"))
    }

    /// The object's namespace, if it names one.
    pub fn namespace(&self) -> Option<&str> {
        self.text("/metadata/namespace").filter(|namespace| !namespace.is_empty())
    }

    /// The namespace in which an object of a namespaced kind is: `default` where it names none.
    pub fn namespace_or_default(&self) -> &str {
        self.namespace().unwrap_or("default")
    }

    /// The object as a typed value.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, DocumentError> {
        self.read_part(&self.value, &Places::default())
    }

    /// A part of the object as a typed value; `places` is where its fields stand in the object.
    pub fn read_part<T: DeserializeOwned>(&self, part: &Value, places: &Places) -> Result<T, DocumentError> {
        object::read(part).map_err(|UnreadableField { field, reason }| self.error(&places.of(&field), reason))
    }

    /// The pods that the object keeps as templates. None: it is no workload of these kinds, or refers to its pods elsewhere.
    pub fn kept_pods(&self, workloads: &Workloads) -> Result<Vec<KeptPod>, DocumentError> {
        let kind = workloads.of_object(self.api_version(), self.kind());
        let pods = kind.map_or(Ok(Vec::new()), |kind| kind.pods(&self.value));
        pods.map_err(|UnreadableWorkload { field, reason }| self.error(&field, reason))
    }

    /// A pod that this document keeps as a template, as a document in the same place and namespace.
    #[must_use]
    pub fn with_pod(&self, mut pod: Value) -> Self {
        if let (Some(Value::Object(metadata)), Some(namespace)) = (pod.get_mut("metadata"), self.namespace())
        {
            metadata.insert("namespace".to_owned(), namespace.into());
        }
        Self { value: pod, place: self.place.clone() }
    }

    fn text(&self, pointer: &str) -> Option<&str> {
        self.value.pointer(pointer)?.as_str()
    }
}

/// Tells once of each kind that was passed over.
pub fn tell_skipped<'a>(kinds: impl IntoIterator<Item = &'a str>, why: &str) {
    let kinds: BTreeSet<_> = kinds.into_iter().collect();
    for kind in kinds {
        super::output::remark(&format!("warning: kind {kind} {why}: skipped"));
    }
}
