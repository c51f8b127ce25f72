//! What is shown of the cluster: metrics, the ledger, GPUs that are of use, what was used, and what moving pods would win.

pub mod advice;
pub mod cards;
pub mod gpus;
pub mod ledger;
pub mod metrics;
pub mod nearest;
pub mod overview;
pub mod scrape;
pub mod showback;
