//! What distinguishes one family of cards from another, as data: names, units, sizes, and what is written beside the assignment.
//!
//! No reading, no writing: each column is used by one of the neighbouring files.

use std::borrow::Cow;

use jiff::SignedDuration;

use crate::{
    device::{CoreBudget, Cores, MiB, Percent, ProfileName},
    dialect::{HintKeys, LockForm, hami},
};

/// Cambricon's plugin and HAMi's scheduler take a lock for forgotten after this time
/// (`pkg/device/cambricon/device.go` `LockNode`).
pub const BARE_LOCK_EXPIRY: SignedDuration = SignedDuration::from_mins(2);

/// HAMi's node lock, which most plugins free.
pub const HAMI_LOCK: VendorLock = VendorLock { key: hami::names::LOCK, form: LockForm::Comma };

/// One family of cards.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VendorRow {
    /// Its name in messages and metrics.
    pub name: ProfileName,
    /// Its word: the type of every share that is written.
    pub word: String,
    /// What pods ask by.
    pub resources: FamilyResources,
    /// How memory is asked for.
    pub memory: MemoryColumn,
    /// How compute is asked for.
    pub cores: CoreColumn,
    /// Which containers of a pod its plugin serves.
    pub containers: Containers,
    /// Where the assignment is written.
    pub keys: Keys,
    /// By which annotations users choose cards.
    pub hints: HintKeys,
    /// Where the node's cards stand.
    pub cards: Cards,
    /// The node's lock.
    pub lock: VendorLock,
    /// What its plugin does with pods that died before it served them.
    pub dead: Dead,
    /// What is written beside the assignment.
    pub beside: BesideAssignment,
    /// The runtime class of share pods that name none.
    pub runtime_class: Option<String>,
    /// The environment variable that passes its name to a container.
    pub name_variable: Option<&'static str>,
}

/// The names of a family's resources.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FamilyResources {
    /// Counts cards, a share of each.
    pub count: String,
    /// Memory of each; none where cards are given whole.
    pub memory: Option<String>,
    /// Percent of each card's compute.
    pub cores: Option<String>,
}

impl FamilyResources {
    /// Every name.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.count.as_str()).chain(self.shares())
    }

    /// Those that ask for a part of a card.
    pub fn shares(&self) -> impl Iterator<Item = &str> {
        self.memory.iter().chain(&self.cores).map(String::as_str)
    }
}

/// How memory is asked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MemoryColumn {
    /// MiB for each unit of the resource.
    pub unit: u32,
    /// Which sizes there are.
    pub sizes: Sizes,
}

/// Which sizes of memory there are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Sizes {
    /// Any; a share that states none takes a whole card's.
    Any,
    /// Memory is not counted.
    Uncounted,
    /// Those of the vendor's templates.
    Templates(Templates),
}

/// The sizes that a driver cuts a card into.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Templates {
    /// From the smallest to the largest.
    pub sizes: Vec<SliceTemplate>,
    /// What pods may have of a whole card.
    pub allocatable: MiB,
    /// What the card has.
    pub capacity: MiB,
    /// What plugins do that do not say whether they share in software.
    pub unsaid: Splitting,
}

/// How a node's plugin splits its cards.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Splitting {
    /// By the driver's templates.
    #[default]
    Templates,
    /// In software, any amount.
    Software,
}

/// One size.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SliceTemplate {
    /// Its name, such as `vir02`.
    pub name: String,
    /// Its memory.
    pub memory: MiB,
}

impl Templates {
    /// The memory of the smallest template that holds so much, or of a whole card; none where a card has less.
    pub fn rounded(&self, memory: MiB) -> Option<MiB> {
        let template = self.sizes.iter().map(|template| template.memory).find(|&size| memory <= size);
        template.or_else(|| (memory <= self.capacity).then_some(self.allocatable))
    }

    /// The template of this size; none: it is a whole card.
    pub fn of(&self, memory: MiB) -> Option<&SliceTemplate> {
        self.sizes.iter().find(|template| memory <= template.memory)
    }
}

/// How compute is asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CoreColumn {
    /// Where none is stated.
    pub default: Percent,
    /// The least that may be stated.
    pub least: Percent,
    /// What each of several cards gives.
    pub several: Several,
    /// What a card has to give.
    pub budget: CoreBudget,
}

/// Which containers of a pod a plugin serves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Containers {
    /// Each.
    Any,
    /// One: it takes the pod for served after that.
    One,
    /// One with one card, which is no init container and states compute and memory: the plugin is asked once for each.
    OneStatingBoth,
}

/// What a container gets that asks for several cards.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Several {
    /// What it asks of each.
    Alike,
    /// All compute of each.
    AllCores,
    /// Whole cards: it may not ask for less of their memory.
    WholeOnly,
}

/// Where the assignment is written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Keys {
    /// What the plugin consumes.
    pub to_allocate: String,
    /// What stays.
    pub allocated: String,
}

impl Keys {
    /// Most families' keys, made of a word.
    pub fn of(word: &str) -> Self {
        Self {
            to_allocate: format!("hami.io/{word}-devices-to-allocate"),
            allocated: format!("hami.io/{word}-devices-allocated"),
        }
    }
}

/// Where a node's cards stand.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Cards {
    /// In an annotation, as HAMi's plugins register them.
    Registered {
        /// The annotation.
        key: String,
        /// The compute of a card whose plugin does not state it.
        cores: Option<Cores>,
    },
    /// Nowhere: they are reckoned from what the node has of compute and memory.
    Capacity {
        /// How many units of compute make a card.
        cores_of_a_card: u32,
        /// What follows the node's name in a card's id, before its number.
        infix: &'static str,
    },
}

/// A node's lock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct VendorLock {
    /// The annotation.
    pub key: &'static str,
    /// The form that its readers parse.
    pub form: LockForm,
}

/// What a plugin that is asked for the next pod does with a dead one that still says `allocating`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Dead {
    /// It passes it over: its pod is named by the node's lock, or is one of those that have not ended.
    PassedOver,
    /// It may serve the next pod with it: its pod is the first of the cluster in that phase that names the node.
    Taken,
}

/// What is written beside the assignment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum BesideAssignment {
    /// Nothing.
    Nothing,
    /// Ascend's list of shares with their templates, under this key.
    Ascend {
        /// The annotation.
        key: String,
    },
    /// Cambricon's profile of the one share.
    Cambricon,
}

/// The name of the family of this word.
pub fn name(word: &str) -> ProfileName {
    format!("hami-{}", word.to_ascii_lowercase()).as_str().into()
}

/// The keys of a family whose cards are all of one model.
pub fn ids_only(use_id: impl Into<Cow<'static, str>>, no_use_id: impl Into<Cow<'static, str>>) -> HintKeys {
    HintKeys { use_model: None, no_use_model: None, use_id: use_id.into(), no_use_id: no_use_id.into() }
}
