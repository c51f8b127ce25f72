//! What sharing a card means: amounts, cards, inventories, requests, assignments, usage, and [`Profile`], which says as plain
//! data how one family of cards is shared.
//!
//! Values only: no Kubernetes type, no JSON, no async, no clock.

pub mod amount;
pub mod assignment;
pub mod card;
pub mod lock;
pub mod profile;
pub mod request;
pub mod selection;
pub mod usage;

pub use amount::{MiB, Percent};
pub use assignment::{Answer, Assignment, ContainerShares, Role, Share};
pub use card::{Card, CardId, Health, Inventory, Mode};
pub use lock::{Lock, LockOwner};
pub use profile::{Blend, CoreBudget, Profile, ProfileName, Tie};
pub use request::{CardPolicy, ContainerRequest, MemoryRequest, NodePolicy, PodRequest, ShareRequest};
pub use selection::{IdFilter, ModelFilter, Selection};
pub use usage::{CardUsage, InitPhase, Usage};
