//! Time division: nodes of a revocable zone take preemptable pods while one of the zone's windows is open, and lose them when it closes.
//!
//! Volcano ed72c7c `pkg/scheduler/plugins/tdm/tdm.go`, without its defects. Values and decisions only: the time is a parameter, and the
//! rules of the time zone come in with the settings.

pub mod job;
pub mod permission;
pub mod window;
pub mod zones;

pub use permission::{Permission, Revocable};
pub use window::{TimeOfDay, UnreadableWindow, Window, WindowState};
pub use zones::{RevocableZones, ZoneState};
