//! The scheduler's state machine, event by event: what it wants done about dialects' pods, nodes and their agents.
//!
//! Objects are read as the live binder reads them; there is no API server, no clock and no agent.
#![expect(clippy::unwrap_used, reason = "what fails in a test ends the test")]

mod adopted;
mod backoff;
mod claiming_pods;
mod claims;
mod composite_groups;
mod compute_units;
mod deliberate;
mod details;
mod device_claims;
mod devices;
mod discreet;
mod extended_resources;
mod extender;
mod gang_attempts;
mod group_claims;
mod handshake;
mod held_places;
mod held_up;
mod holdings;
mod kept_rooms;
mod lines;
mod long_texts;
mod machine;
mod mixed_nodes;
mod modes;
mod neighbours;
mod node_resources;
mod nominated_quota;
mod nominations;
mod numbers;
mod plugin_locks;
mod requests;
mod requeue;
mod requeue_storage;
mod reservations;
mod several_vendors;
mod shadow;
mod shares_only;
mod slices;
mod storms;
mod tenants;
mod time_division;
mod unassigned;
mod why_pods_wait;
mod withdrawal;
