//! Koordinator's devices: what its node side writes about a node, what pods ask by its names, and what a pod was given.
//!
//! Source: koordinator a7a1b76 `apis/extension/device_share.go`, `apis/scheduling/v1alpha1/device_types.go`,
//! `pkg/scheduler/plugins/deviceshare`. Where Berth differs from that scheduler, the item says so.

pub mod adaption;
pub mod dimension;
mod hints;
pub mod names;
pub mod node;
pub mod partitions;
pub mod record;
pub mod request;
pub mod shape;
pub mod templates;

/// What the names of Koordinator's GPU resources begin with: `gpu`, `gpu-core`, `gpu-memory`, `gpu-memory-ratio`, `gpu.shared`.
pub const GPU_PREFIX: &str = "koordinator.sh/gpu";
