//! The clusters of the bench `decide`, and what is decided in them.

#[path = "../../../benches/decide/claims.rs"]
pub(crate) mod claims;
#[path = "../../../benches/decide/devices.rs"]
pub(crate) mod devices;
#[path = "../../../benches/decide/family.rs"]
#[allow(dead_code, reason = "the bench decides more families")]
pub(crate) mod family;
#[path = "../../../benches/decide/mix.rs"]
pub(crate) mod mix;
#[path = "../../../benches/decide/storage.rs"]
pub(crate) mod storage;
#[path = "../../../benches/decide/trials.rs"]
pub(crate) mod trials;
#[path = "../../../benches/decide/world.rs"]
pub(crate) mod world;
