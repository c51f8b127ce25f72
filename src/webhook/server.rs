//! Connections: accepted, limited, served and ended.

pub(super) mod connection;
pub(super) mod draining;
pub mod limits;
pub(super) mod places;
pub mod room;
pub mod serve;
