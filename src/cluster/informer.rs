//! What the API server has: objects listed, watched and kept, each read into Berth's own structs.

pub mod changes;
pub mod keep;
pub mod list;
mod newest;
pub mod other_schedulers;
pub mod reflector;
pub mod retry;
pub mod unread;
pub mod watch;
pub mod wire;
