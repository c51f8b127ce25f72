//! What a node's agent has made of a pod, by the phase that HAMi's and Volcano's plugins write on it.
//!
//! Source: HAMi `pkg/util/util.go` and volcano-vgpu-device-plugin `pkg/util/util.go` (`PodAllocationSuccess`, `PodAllocationFailed`).

use crate::{device::Answer, object::Pod};

/// What the annotation of this key says.
pub fn by_phase(pod: &Pod, key: &str) -> Answer {
    match pod.metadata.annotation(key) {
        Some("success") => Answer::Succeeded,
        Some("failed") => Answer::Failed,
        _ => Answer::Awaited,
    }
}
