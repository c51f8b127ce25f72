//! The webhook over real loopback sockets: what an API server would see of it.
#![expect(clippy::unwrap_used, reason = "what fails in a test ends the test")]

mod allocations;
#[cfg(feature = "sandbox")]
#[path = "webhook/app.rs"]
mod app;
#[path = "webhook/bounds.rs"]
mod bounds;
#[path = "webhook/certificates.rs"]
mod certificates;
#[path = "webhook/client.rs"]
mod client;
#[path = "webhook/clients.rs"]
mod clients;
#[path = "webhook/connections.rs"]
mod connections;
#[cfg(feature = "sandbox")]
#[path = "webhook/inventory.rs"]
mod inventory;
#[path = "webhook/paths.rs"]
mod paths;
#[path = "webhook/reviews.rs"]
mod reviews;
#[path = "webhook/server.rs"]
mod server;
#[path = "webhook/withstood.rs"]
mod withstood;
