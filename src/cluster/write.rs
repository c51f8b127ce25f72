//! What the scheduler has decided, written to the API server: each effect is one task, and its answer an event.

pub mod act;
pub mod bind;
pub mod cordon;
pub mod evict;
pub mod fence;
pub mod lock;
pub mod prebind;
pub(super) mod preempt;
pub(super) mod quota_use;
pub mod send;
pub mod tell;
pub mod withdraw;
pub(super) mod writes;
