//! HTTPS in front of `admission`: what the API server asks and what it is answered, the certificate it trusts, and its registration.
//!
//! Holds no admission rule and nothing of scheduling: the judge is given.
//!
//! ```text
//! connection ─► serve (limits, handshake) ─► router (sizes, media types, panics) ─► review ─► judge
//!                  ▲ tls (certificates)          mint ─► secret ─► registration (caBundle)
//! ```

pub mod clients;
pub mod metrics;
pub mod mint;
pub mod registration;
pub mod review;
pub mod router;
pub mod secret;
pub mod serve;
pub mod tls;
mod workload;

pub use clients::ClientAuthority;
pub use metrics::Metrics;
pub use review::{BadReview, Judge, ReviewAnswer, answer};
pub use router::{Readiness, Webhook, router, verified_router};
pub use serve::{Bound, Limits, Listener, TlsSettings};
pub use tls::{Certificates, Files};
