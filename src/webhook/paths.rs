//! The paths of the reviews, and the stage of each.

use crate::admission::AdmissionStage;

/// The path of the mutating webhook.
pub(super) const MUTATE: &str = "/mutate";

/// The path of the mutating webhook for pods without a share.
pub(super) const ADOPT: &str = "/adopt";

/// The path of the validating webhooks.
pub(super) const VALIDATE: &str = "/validate";

/// The stage of the reviews on a path; `None`: the path takes none.
pub(super) fn stage_of(path: &str) -> Option<AdmissionStage> {
    match path {
        MUTATE => Some(AdmissionStage::Mutate),
        ADOPT => Some(AdmissionStage::Adopt),
        VALIDATE => Some(AdmissionStage::Validate),
        _ => None,
    }
}
