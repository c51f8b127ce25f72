//! Koordinator's names, as far as a pod that uses them must be told apart from one that asks for a share of ours.
//!
//! Nothing of it is served: no request, no node, no record. Source: koordinator `apis/extension/device_share.go`.

/// What the names of Koordinator's GPU resources begin with: `gpu`, `gpu-core`, `gpu-memory`, `gpu-memory-ratio`, `gpu.shared`.
pub const GPU_PREFIX: &str = "koordinator.sh/gpu";
