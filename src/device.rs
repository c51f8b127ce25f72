//! What sharing a card means: amounts, cards, inventories, requests, assignments, usage, and [`Profile`], which says as plain
//! data how one family of cards is shared.
//!
//! Values only: no Kubernetes type, no JSON, no async, no clock.

pub mod agent;
pub mod allocation;
pub mod amount;
pub mod amounts;
pub mod assignment;
pub mod card;
pub mod choice;
pub mod cut;
pub mod inventory;
pub mod joint;
pub mod label_filter;
pub mod lock;
pub mod mark;
pub mod node_devices;
pub mod profile;
pub mod quota;
pub mod request;
pub mod reservation;
pub mod selection;
pub mod slice;
pub mod usage;

pub use agent::{Answer, Remains};
pub use allocation::{Allocation, UnknownCards};
pub use amount::{CoreUnit, Cores, MiB, Percent};
pub use amounts::{Amounts, NamedDimension, Proportion, Unit};
pub use assignment::{Assignment, ContainerShares, Role, Share};
pub use card::{Card, CardId, Health, Mode};
pub use choice::{CardChoice, CardPolicy, CardPreference, LinkChoice, NumaBinding, Sharing, Weights};
pub use cut::Cuts;
pub use inventory::{Inventory, Links};
pub use joint::{
    ContainerDeviceRequest, ContainerDevices, DeviceAllocation, DeviceAllocations, DeviceCount, DevicePlace,
    DevicePortion, DeviceUse, DevicesUsed, Exclusive, Joint, JointRequest, JointScope, PartitionChoice,
    PartitionSpec, TopologyScope, TypedRequest, together,
};
pub use label_filter::{DeviceLabels, LabelFilter, LabelRule};
pub use lock::{Lock, LockName, LockNeed, LockOwner};
pub use mark::{Mark, Marks};
pub use node_devices::{
    CardDimensions, DeviceLocation, DeviceTraits, DeviceType, LockingPlugin, Minor, ModelTemplates,
    NodeDevice, NodeDevices, Partition, PartitionPolicy, PartitionTable, ShareTemplates, SriovFunction,
    VirtualFunctions,
};
pub use profile::{Blend, CoreBudget, Profile, ProfileName, SlicesOfCard, Tie};
pub use quota::{CountedAmount, Dimension, Quota};
pub use request::{
    ByClass, ContainerRequest, CoreRequest, MemoryRequest, NodePolicy, PodRequest, ProfileRequest,
    ShareRequest,
};
pub use reservation::ReservationName;
pub use selection::{IdFilter, ModelFilter, Selection};
pub use slice::{Geometry, Instances, Slice, SlicePlacement, SliceProfile, Slicing};
pub use usage::{CardUsage, Claimed, InitPhase, Usage, Users};
