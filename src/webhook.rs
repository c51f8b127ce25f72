//! The HTTPS server in front of `admission`: reviews and their answers, the certificate that the API server trusts, and its registration.
//!
//! It contains no admission rule and nothing of scheduling: the function that judges a pod is a parameter.
//!
//! ```text
//! serve (limits, handshake) ─► connection (HTTP, end) ─► router (client, room, sizes, media types, panics) ─► review ─► judge ─► onward (hint, dry run)
//!                  ▲ tls (certificates, clients)          mint ─► secret ─► registration (caBundle)
//! ```

pub mod certificate;
pub mod metrics;
pub mod page;
mod paths;
pub mod refusal;
pub mod review;
pub mod router;
pub mod server;

pub use certificate::clients::ClientAuthority;
pub use certificate::tls::{Certificates, Files};
pub use metrics::WebhookMetrics;
pub use page::trusted::trusted;
pub use review::bad_review::BadReview;
pub use review::onward::{Handed, Onward};
pub use review::{DryRun, Entrant, Judge, ReviewAnswer, answer};
pub use router::{ServerReadiness, Webhook, router, router_within, verified_router};
pub use server::draining::closing;
pub use server::limits::Limits;
pub use server::room::BodyRoom;
pub use server::serve::{BoundServer, Listener, TlsSettings};
