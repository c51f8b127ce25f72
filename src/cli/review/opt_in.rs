//! Whether the API server would ask the webhook about the pods of a namespace at all.

use std::collections::BTreeMap;

use super::Review;
use crate::admission::passage::Concerned;
use crate::{
    admission::review::OPT_OUT,
    cli::documents::{Document, DocumentError},
    config::{AdmissionScope, Config},
    object::Namespace,
};

/// The namespaces among the documents, with the value of their label.
pub(super) struct OptedIn {
    scope: AdmissionScope,
    labels: BTreeMap<String, Option<String>>,
}

impl OptedIn {
    pub(super) fn of(documents: &[Document], config: &Config) -> Result<Self, DocumentError> {
        let mut labels = BTreeMap::new();
        for document in documents.iter().filter(|document| document.kind() == "Namespace") {
            let Namespace { metadata } = document.read()?;
            let label = metadata.labels.as_ref().and_then(|labels| labels.get(OPT_OUT)).cloned();
            labels.insert(metadata.name, label);
        }
        Ok(Self { scope: config.scope, labels })
    }

    /// Puts a warning before the others of a review where the webhook would not be asked. A namespace that is not among the documents
    /// may be labelled either way.
    pub(super) fn warn(&self, review: &mut Review) {
        let is_asked_about = review.concerned == Concerned::ByItself;
        let Some(label) = self.labels.get(&review.namespace).filter(|_| is_asked_about) else {
            return;
        };
        let wanted = match (self.scope, label.as_deref()) {
            (AdmissionScope::OptIn, Some("enabled")) => return,
            (AdmissionScope::OptOut, label) if label != Some("ignore") => return,
            (AdmissionScope::OptIn, _) => "is not labelled `berth.dev/admission: enabled`",
            (AdmissionScope::OptOut, _) => "is labelled `berth.dev/admission: ignore`",
        };
        let namespace = &review.namespace;
        review
            .warnings
            .insert(0, format!("namespace {namespace} {wanted}: the webhook is not asked about its pods"));
    }
}
