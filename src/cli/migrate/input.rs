//! What a plan reads of its documents.

use std::collections::BTreeMap;

use crate::{
    cli::documents::{Document, DocumentError},
    object::{DeviceClass, Metadata, Node, Pod, ResourceClaim, ResourceSlice, resource_claim::VERSIONS},
};

/// Objects by namespace, name and, where they have no name yet, place in the input.
type Named<T> = BTreeMap<(String, String, usize), T>;

/// The objects of a plan. Of one that is there twice, the last document counts.
#[derive(Debug, Default)]
pub(super) struct MigrationInput<'a> {
    pub(super) nodes: Named<Node>,
    /// Those that have not ended and are not being deleted.
    pub(super) pods: Named<Pod>,
    pub(super) slices: Named<ResourceSlice>,
    pub(super) classes: Named<DeviceClass>,
    pub(super) claims: Named<ResourceClaim>,
    /// Documents of other kinds.
    pub(super) unread: Vec<&'a Document>,
}

/// Sorts the documents by their kinds.
pub(super) fn read(documents: &[Document]) -> Result<MigrationInput<'_>, DocumentError> {
    let mut input = MigrationInput::default();
    for (number, document) in (1..).zip(documents) {
        let of_devices = VERSIONS.contains(&document.api_version());
        match document.kind() {
            "Node" => put(&mut input.nodes, number, document.read()?, |node| &mut node.metadata),
            "Pod" => put(&mut input.pods, number, pod(document, number)?, |pod| &mut pod.metadata),
            "ResourceSlice" if of_devices => {
                put(&mut input.slices, number, document.read()?, |slice| &mut slice.metadata);
            }
            "DeviceClass" if of_devices => {
                put(&mut input.classes, number, document.read()?, |class| &mut class.metadata);
            }
            "ResourceClaim" if of_devices => {
                put(&mut input.claims, number, document.read()?, |claim| &mut claim.metadata);
            }
            _ => input.unread.push(document),
        }
    }
    input.pods.retain(|_, pod| !pod.is_terminal() && pod.metadata.deletion_timestamp.is_none());
    Ok(input)
}

/// A pod that names no namespace is in `default`, and one without a name is called by its prefix and its place in the input.
fn pod(document: &Document, number: usize) -> Result<Pod, DocumentError> {
    let mut pod: Pod = document.read()?;
    let metadata = &mut pod.metadata;
    if metadata.namespace.is_empty() {
        "default".clone_into(&mut metadata.namespace);
    }
    if metadata.name.is_empty() {
        metadata.name = format!("{}{number}", metadata.generate_name.as_deref().unwrap_or("pod-"));
    }
    Ok(pod)
}

fn put<T>(known: &mut Named<T>, number: usize, mut object: T, metadata: fn(&mut T) -> &mut Metadata) {
    let Metadata { namespace, name, .. } = metadata(&mut object);
    let place = if name.is_empty() { number } else { 0 };
    known.insert((namespace.clone(), name.clone(), place), object);
}
