//! What holds for every pod, card and order of events: no card and no typed device is ever given away twice, through whichever API, devices that must be together are found whenever there are any, claims are given devices whenever they can be, no namespace put beyond its quota, records
//! read back as they were written, no pod is preempted in vain, no group that goes as a whole goes in part, no gang is left in part, no moment of a pod is counted twice, a plan that is undone leaves no trace, equal input has one answer, hints or not, and no text makes a decoder panic.
#![expect(clippy::unwrap_used, reason = "what fails in a test ends the test")]

mod claim_preemptions;
mod claims;
mod cluster;
mod decoders;
mod devices_per_container;
mod gangs;
mod group_preemptions;
mod hints;
mod histories;
mod holdings;
mod joint_devices;
mod migration;
mod mixed_nodes;
mod plans;
mod preemptions;
mod quotas;
mod records;
mod share_claims;
mod showback;
mod why;
mod worlds;

use crate::fixtures;
