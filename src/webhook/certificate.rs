//! The certificate that the API server trusts: made, kept in a Secret or read from files, served, and published. And the authority of its clients.

pub mod clients;
pub mod mint;
pub mod registration;
pub mod secret;
pub mod tls;
