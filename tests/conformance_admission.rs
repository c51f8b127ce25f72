//! HAMi's, Volcano's and Koordinator's own tables about admission, answered by ours: alike, or different for a reason that stands here.
//!
//! The tables are read from `BERTH_VECTORS`, or from `../shared/vectors` beside the project; where they are missing this says so.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod hami;
mod koordinator;
mod outcome;
mod volcano;
