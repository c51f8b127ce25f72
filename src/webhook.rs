//! HTTPS in front of `admission`: what the API server asks and what it is answered, the certificate it trusts, and its registration.
//!
//! Holds no admission rule and nothing of scheduling: the judge is given.
//!
//! ```text
//! connection ─► serve (limits, handshake) ─► router (who, room, sizes, media types, panics) ─► review ─► judge ─► onward (hint, dry run)
//!                  ▲ tls (certificates, clients)          mint ─► secret ─► registration (caBundle)
//! ```

mod asked;
mod audit;
pub mod clients;
pub mod debug;
mod exposition;
pub mod metrics;
pub mod mint;
pub mod onward;
mod parse;
mod places;
mod record;
mod refusal;
pub mod registration;
pub mod review;
pub mod room;
pub mod router;
pub mod secret;
pub mod serve;
pub mod tls;
mod words;
mod workload;

pub use clients::ClientAuthority;
pub use metrics::Metrics;
pub use onward::{Handed, Onward};
pub use review::{BadReview, DryRun, Entrant, Judge, ReviewAnswer, answer};
pub use room::Room;
pub use router::{Readiness, Webhook, router, router_within, verified_router};
pub use serve::{Bound, Limits, Listener, TlsSettings};
pub use tls::{Certificates, Files};
