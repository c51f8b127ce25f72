//! HTTPS in front of `admission`: what the API server asks and what it is answered, the certificate it trusts, and its registration.
//!
//! Holds no admission rule and nothing of scheduling: the judge is given.
//!
//! ```text
//! connection ─► serve (limits, handshake) ─► router (sizes, media types, panics) ─► review ─► judge ─► onward (hint, dry run)
//!                  ▲ tls (certificates)          mint ─► secret ─► registration (caBundle)
//! ```

pub mod metrics;
pub mod mint;
pub mod onward;
pub mod registration;
pub mod review;
pub mod router;
pub mod secret;
pub mod serve;
pub mod tls;
mod words;
mod workload;

pub use metrics::Metrics;
pub use onward::{Handed, Onward};
pub use review::{BadReview, DryRun, Entrant, Judge, ReviewAnswer, answer};
pub use router::{Readiness, Webhook, router, verified_router};
pub use serve::{Bound, Limits, Listener};
pub use tls::{Certificates, Files};
