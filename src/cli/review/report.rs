//! The answer of `berth review`, as JSON has it and as a table.

use json_patch::PatchOperation;
use serde::Serialize;
use serde_json::Value;

use crate::{
    admission::passage::{Concerned, ReviewVerdict, ReviewedPod},
    app::entrance::violation_row,
    cli::{documents::Document, output::Shown, table::Table},
    object::workload::Places,
    simulation::ViolationRow,
};

/// Every review.
#[derive(Clone, Debug, Serialize)]
pub struct Reviews {
    /// In the order of the documents.
    pub reviews: Vec<Review>,
}

/// One review; a key that does not apply is absent.
#[derive(Clone, Debug, Serialize)]
pub struct Review {
    /// The document's kind.
    pub kind: String,
    /// The document's namespace.
    pub namespace: String,
    /// The document's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The part of the workload that the pod is of, where it keeps several pods, as in the pods' names: `head`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// What came of it.
    pub outcome: ReviewVerdict,
    /// Why it concerns Berth.
    #[serde(skip)]
    pub concerned: Concerned,
    /// What was changed, where it was admitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<Vec<PatchOperation>>,
    /// The warnings for the user who submits the pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<ViolationRow>,
    /// The pod after the patch, unless it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<Value>,
}

impl Review {
    /// The review of the pod whose fields stand at these places of the document.
    pub fn new(document: &Document, judged: ReviewedPod, places: &Places) -> Self {
        let ReviewedPod { outcome, concerned, patch, warnings, violations, object } = judged;
        Self {
            kind: document.kind().to_owned(),
            namespace: document.namespace_or_default().to_owned(),
            name: document.name().map(str::to_owned),
            part: None,
            outcome,
            concerned,
            patch: (outcome == ReviewVerdict::Admitted).then_some(patch),
            warnings: warnings.iter().map(|warning| warning.at(places).to_string()).collect(),
            violations: violations.iter().map(|row| violation_row(row, places)).collect(),
            object: (outcome != ReviewVerdict::Denied).then_some(object),
        }
    }

    /// The document's name, with the part behind it in parentheses.
    fn shown_name(&self) -> String {
        let name = self.name.as_deref().unwrap_or_default();
        match &self.part {
            Some(part) => format!("{name} ({part})"),
            None => name.to_owned(),
        }
    }

    /// What there is to say beside the outcome, line by line.
    fn remarks(&self) -> Vec<String> {
        let changes = self.patch.iter().flatten().map(change);
        let warnings = self.warnings.iter().map(|warning| format!("warning: {warning}"));
        let violations = self.violations.iter().map(ToString::to_string);
        violations.chain(warnings).chain(changes).collect()
    }
}

fn change(operation: &PatchOperation) -> String {
    match operation {
        PatchOperation::Add(add) => format!("add {} = {}", add.path, add.value),
        PatchOperation::Replace(replace) => format!("replace {} = {}", replace.path, replace.value),
        PatchOperation::Remove(remove) => format!("remove {}", remove.path),
        other => other.to_string(),
    }
}

impl Reviews {
    /// A row for each review, and one more for each further remark.
    pub fn table(&self) -> Shown {
        let mut table = Table::new(&["NAMESPACE", "KIND", "NAME", "OUTCOME", "REMARKS"]);
        for review in &self.reviews {
            let mut remarks = review.remarks().into_iter();
            table.row([
                review.namespace.clone(),
                review.kind.clone(),
                review.shown_name(),
                format!("{:?}", review.outcome),
                remarks.next().unwrap_or_default(),
            ]);
            remarks.for_each(|remark| table.row(["", "", "", "", remark.as_str()]));
        }
        table.render()
    }
}
