//! Gangs: the pods of a group that are placed together or not at all.
//!
//! Three APIs have such groups, each with a kind PodGroup: Volcano's, the coscheduling plugin's, and Kubernetes' own (KEP-4671). What they say
//! comes to the same values.

mod cleared;
mod made_room;
mod order;
mod place;
pub mod pool;
mod search;
mod shortfall;

pub use cleared::ClearedSearch;
pub use made_room::{Candidates, MadeRoom};
pub use place::{AsItIs, GangShortfall, TrialRoom};
pub use pool::{Applicant, Pool};
pub use search::{GangSearch, Placed, place};
pub use shortfall::{GangNoRoom, GangReason, GangRefusal, Ungathered};
