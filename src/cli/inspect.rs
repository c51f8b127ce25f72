//! Commands that look at a cluster and change nothing: who holds its cards, what would fit, why a pod waits, and what would be if.
//!
//! All of them read the same objects, of a live cluster or of files that `berth dump` wrote, and let the live binder's scheduler judge.

pub mod cluster;
pub mod dump;
pub mod fits;
pub mod report;
pub mod top;
pub mod what_if;
pub mod who;
pub mod why;
