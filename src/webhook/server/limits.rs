//! The limits on what clients send: connections, requests at a time, bodies, and how long each may take.

use std::time::Duration;

/// The largest body that is read. The API server takes objects of 3 MiB, and a review holds up to two.
pub const BODY_LIMIT: usize = 8 * 1024 * 1024;

/// The limits on connections.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Connections at a time. For a further one, an idle connection is closed; if none is idle, the new one waits in the kernel's
    /// queue.
    pub connections: usize,
    /// A connection that has been idle for this time may be closed to make room for another.
    pub idle: Duration,
    /// HTTP/2 requests at a time on one connection.
    pub streams: u32,
    /// The longest time of a TLS handshake.
    pub handshake: Duration,
    /// The longest time until the head of the next HTTP/1.1 request has arrived, including the pause between two requests.
    ///
    /// The API server keeps an idle connection for 90 s and does not repeat a POST that met a closed one,
    /// so this must be longer.
    pub header: Duration,
    /// The longest time to finish open requests at the shutdown.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            idle: Duration::from_secs(1),
            streams: 64,
            handshake: Duration::from_secs(10),
            header: Duration::from_mins(2),
            drain: Duration::from_secs(20),
        }
    }
}
