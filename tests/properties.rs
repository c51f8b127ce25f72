//! What holds for every pod, card and order of events: no card and no typed device is ever given away twice, through whichever API, devices that must be together are found whenever there are any, claims are given devices whenever they can be, no namespace put beyond its quota, records
//! read back as they were written, no pod is preempted in vain, no gang is left in part, a plan that is undone leaves no trace, equal input has one answer, hints or not, and no text makes a decoder panic.
#![expect(clippy::unwrap_used, reason = "what fails in a test ends the test")]

#[path = "properties/claims.rs"]
mod claims;
#[path = "properties/cluster.rs"]
mod cluster;
#[path = "properties/decoders.rs"]
mod decoders;
#[path = "properties/devices_per_container.rs"]
mod devices_per_container;
#[path = "support/fixtures.rs"]
mod fixtures;
#[path = "properties/gangs.rs"]
mod gangs;
#[path = "properties/hints.rs"]
mod hints;
#[path = "properties/histories.rs"]
mod histories;
#[path = "properties/holdings.rs"]
mod holdings;
#[path = "properties/joint_devices.rs"]
mod joint_devices;
#[path = "properties/migration.rs"]
mod migration;
#[path = "properties/mixed_nodes.rs"]
mod mixed_nodes;
#[path = "properties/plans.rs"]
mod plans;
#[path = "properties/preemptions.rs"]
mod preemptions;
#[path = "properties/quotas.rs"]
mod quotas;
#[path = "properties/records.rs"]
mod records;
#[path = "properties/share_claims.rs"]
mod share_claims;
#[path = "properties/worlds.rs"]
mod worlds;
