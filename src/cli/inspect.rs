//! Commands that look at a cluster and change nothing: who holds its cards, what would fit, why a pod waits, and what would be if.
//!
//! All of them read the same objects, of a live cluster or of files that `berth dump` wrote, and let the live binder's scheduler judge.

pub mod berth_api;
mod cells;
pub mod cluster;
pub mod dump;
pub mod fits;
mod order;
pub mod report;
mod screen;
pub mod top;
mod watch;
pub mod what_if;
pub mod who;
pub mod why;
