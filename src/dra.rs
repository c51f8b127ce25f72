//! Dynamic Resource Allocation: which devices serve which claims, as kube-scheduler's structured allocator decides it.
//!
//! Values in, values out: it holds no client and no clock, and knows nothing of pods, of other constraints or of cards.
//! Source: kubernetes `staging/src/k8s.io/dynamic-resource-allocation`, 1.36, and the KEPs that files name.

pub mod allocate;
pub mod capacity;
pub mod cel;
pub mod claim;
mod constraint;
mod counters;
pub mod device;
pub mod error;
mod excess;
pub mod extended_resources;
pub mod held;
pub mod node;
pub mod node_resources;
pub mod pool;
pub mod taint;

pub use allocate::{
    AskedDevices, ClaimAllocations, GoOn, KnownKind, RequestShortfall, Selected, Taken, Toll, allocate,
    allocate_again, asked, describe, shortfall,
};
pub use claim::{CompiledClasses, WaitingClaim};
pub use error::AllocationError;
pub use extended_resources::ExtendedResources;
pub use held::{Excess, HeldDevices};
pub use node::TargetNode;
pub use node_resources::NodeResourcesTaken;
pub use pool::{DevicePools, PoolId};
