//! What an allocated claim bears: its finalizer, and its devices.

use k8s_openapi::api::resource::v1::{DeviceRequestAllocationResult, ResourceClaim};

/// Keeps a claim until its devices are free again (kubernetes `api/resource/v1`, `Finalizer`).
pub(super) const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

/// The devices of a claim.
pub(super) fn results(claim: &ResourceClaim) -> Vec<DeviceRequestAllocationResult> {
    let devices = claim.status.as_ref().and_then(|status| status.allocation.as_ref()?.devices.clone());
    devices.and_then(|devices| devices.results).unwrap_or_default()
}
