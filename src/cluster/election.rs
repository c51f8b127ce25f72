//! Which replica leads: one Lease, as client-go's leader election holds it.

pub mod candidate;
pub mod lease;
pub mod sightings;
