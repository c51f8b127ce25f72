//! The HTTPS server in front of `admission`: reviews and their answers, the certificate that the API server trusts, and its registration.
//!
//! It contains no admission rule and nothing of scheduling: the function that judges a pod is a parameter.
//!
//! ```text
//! serve (limits, handshake) ─► connection (HTTP, end) ─► router (client, room, sizes, media types, panics) ─► review ─► judge ─► onward (hint, dry run)
//!                  ▲ tls (certificates, clients)          mint ─► secret ─► registration (caBundle)
//! ```

mod asked;
mod audit;
mod bad_review;
pub mod bearer;
pub mod clients;
mod connection;
pub mod debug;
mod draining;
mod exposition;
pub mod limits;
pub mod metrics;
pub mod mint;
pub mod onward;
mod parse;
mod paths;
mod places;
mod record;
pub mod refusal;
pub mod registration;
pub mod review;
pub mod room;
pub mod router;
pub mod secret;
pub mod serve;
pub mod shadow;
pub mod tls;
mod trusted;
mod words;
mod workload;

pub use bad_review::BadReview;
pub use clients::ClientAuthority;
pub use draining::closing;
pub use limits::Limits;
pub use metrics::WebhookMetrics;
pub use onward::{Handed, Onward};
pub use review::{DryRun, Entrant, Judge, ReviewAnswer, answer};
pub use room::BodyRoom;
pub use router::{ServerReadiness, Webhook, router, router_within, verified_router};
pub use serve::{BoundServer, Listener, TlsSettings};
pub use tls::{Certificates, Files};
pub use trusted::trusted;
