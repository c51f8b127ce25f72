//! The cluster as the scheduler sees it: nodes with what is taken of them, and every other object that decides.

pub mod ledger;
pub mod node_state;
pub mod nominations;
pub mod object;
pub mod quota;
pub mod quota_holder;
pub mod reservation;
pub mod resource_claims;
pub mod surroundings;
pub mod topology;
pub mod volume_reservations;
