//! What is served beside reviews, and to whom: metrics, the ledger, what a shadow has found out.

pub mod bearer;
pub mod debug;
pub mod detail;
pub(super) mod exposition;
pub mod shadow;
pub(super) mod trusted;
