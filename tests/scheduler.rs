//! The scheduler's state machine, event by event: what it wants done about dialects' pods, nodes and their agents.
//!
//! Objects are read as the live binder reads them; there is no API server, no clock and no agent.
#![expect(clippy::unwrap_used, reason = "what fails in a test ends the test")]

#[path = "scheduler/adopted.rs"]
mod adopted;
#[path = "scheduler/backoff.rs"]
mod backoff;
#[path = "scheduler/claims.rs"]
mod claims;
#[path = "scheduler/compute_units.rs"]
mod compute_units;
#[path = "scheduler/deliberate.rs"]
mod deliberate;
#[path = "scheduler/details.rs"]
mod details;
#[path = "scheduler/device_claims.rs"]
mod device_claims;
#[path = "scheduler/devices.rs"]
mod devices;
#[path = "scheduler/discreet.rs"]
mod discreet;
#[path = "scheduler/extended_resources.rs"]
mod extended_resources;
#[path = "scheduler/extender.rs"]
mod extender;
#[path = "scheduler/gang_attempts.rs"]
mod gang_attempts;
#[path = "scheduler/handshake.rs"]
mod handshake;
#[path = "scheduler/held_places.rs"]
mod held_places;
#[path = "scheduler/held_up.rs"]
mod held_up;
#[path = "scheduler/holdings.rs"]
mod holdings;
#[path = "scheduler/long_texts.rs"]
mod long_texts;
#[path = "scheduler/machine.rs"]
mod machine;
#[path = "scheduler/mixed_nodes.rs"]
mod mixed_nodes;
#[path = "scheduler/modes.rs"]
mod modes;
#[path = "scheduler/neighbours.rs"]
mod neighbours;
#[path = "scheduler/nominated_quota.rs"]
mod nominated_quota;
#[path = "scheduler/nominations.rs"]
mod nominations;
#[path = "scheduler/numbers.rs"]
mod numbers;
#[path = "scheduler/plugin_locks.rs"]
mod plugin_locks;
#[path = "scheduler/requests.rs"]
mod requests;
#[path = "scheduler/requeue.rs"]
mod requeue;
#[path = "scheduler/requeue_storage.rs"]
mod requeue_storage;
#[path = "scheduler/reservations.rs"]
mod reservations;
#[path = "scheduler/several_vendors.rs"]
mod several_vendors;
#[path = "scheduler/shadow.rs"]
mod shadow;
#[path = "scheduler/shares_only.rs"]
mod shares_only;
#[path = "scheduler/slices.rs"]
mod slices;
#[path = "scheduler/storms.rs"]
mod storms;
#[path = "scheduler/tenants.rs"]
mod tenants;
#[path = "scheduler/time_division.rs"]
mod time_division;
#[path = "scheduler/unassigned.rs"]
mod unassigned;
#[path = "scheduler/why_pods_wait.rs"]
mod why_pods_wait;
#[path = "scheduler/withdrawal.rs"]
mod withdrawal;
