//! The dialects of the other vendors that HAMi shares cards of: one implementation, and a row of data for each family of cards.
//!
//! Only vendors whose cards are chosen by the common walk are here; one that chooses in its own way is left to others. Source:
//! Project-HAMi/HAMi v2.10.0 `pkg/device/*/device.go`, as each row names it.

pub mod amd;
pub mod ascend;
pub mod biren;
pub mod cambricon;
mod cards;
pub mod hygon;
pub mod iluvatar;
mod record;
mod request;
pub mod row;
#[cfg(test)]
mod tests;
mod withdrawal;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{
    Additions, Carried, CountedAmount, Dialect, HintKeys, LockForm, LockSpec, MissingCount, Record,
    SharingMode, Unreadable,
};
use crate::{
    device::{
        Answer, Assignment, Blend, CardPolicy, Dimension, Inventory, LockNeed, NodePolicy, PodRequest,
        Profile, Remains, SlicesOfCard, Tie,
    },
    object::{Node, Pod},
};
pub use row::VendorRow;

/// Resources of vendors that choose cards in a way of their own, as far as only HAMi's scheduler can place them: a plugin that
/// advertises them waits for its annotations. Those of plugins that work without HAMi are ordinary extended resources.
pub const LEFT_TO_HAMI: [&str; 10] = [
    "metax-tech.com/sgpu",
    "metax-tech.com/vcore",
    "metax-tech.com/vmemory",
    "enflame.com/drs-gcu",
    "enflame.com/gcu-memory",
    "enflame.com/gcu-core",
    "kunlunxin.com/vxpu",
    "kunlunxin.com/vxpu-memory",
    "vastaitech.com/va",
    "mthreads.com/vgpu",
];

/// What HAMi's scheduler does for every vendor.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VendorSettings {
    /// Which node first, where the pod does not say.
    pub node_policy: NodePolicy,
    /// Which card first, where the pod does not say; of several, each decides where those before it see no difference.
    pub card_policies: Vec<CardPolicy>,
    /// After this time a foreign holder of the lock that gives no sign may be taken over.
    pub lock_expiry: SignedDuration,
}

/// One family of cards.
#[derive(Clone, Debug)]
pub struct Vendor {
    row: VendorRow,
    settings: VendorSettings,
    profile: Profile,
    mode: SharingMode,
    lock: LockSpec,
}

impl Vendor {
    /// The family of this row.
    pub fn new(row: VendorRow, settings: VendorSettings) -> Self {
        let profile = Profile {
            name: row.name.clone(),
            blend: Blend::Even,
            tie: Tie::Highest,
            core_budget: row.cores.budget,
            slices: SlicesOfCard::Several,
        };
        let expiry =
            if row.lock.form == LockForm::Bare { row::BARE_LOCK_EXPIRY } else { settings.lock_expiry };
        let lock =
            LockSpec { key: row.lock.key.to_owned(), form: row.lock.form, expiry, need: LockNeed::Always };
        Self { mode: SharingMode::Vendor(row.name.clone()), row, settings, profile, lock }
    }

    /// What the family is.
    pub fn row(&self) -> &VendorRow {
        &self.row
    }
}

impl Dialect for Vendor {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn mode(&self) -> &SharingMode {
        &self.mode
    }

    fn resources(&self) -> Vec<&str> {
        self.row.resources.all().collect()
    }

    fn share_resources(&self) -> Vec<&str> {
        self.row.resources.shares().collect()
    }

    fn counted(&self) -> Vec<CountedAmount<'_>> {
        let row::FamilyResources { count, memory, cores } = &self.row.resources;
        let count = CountedAmount { resource: count, dimension: Dimension::Cards, unit: 1 };
        let unit = self.row.memory.unit;
        let memory = memory.as_deref();
        let memory = memory.map(|resource| CountedAmount { resource, dimension: Dimension::Memory, unit });
        let cores = cores.as_deref();
        let cores = cores.map(|resource| CountedAmount { resource, dimension: Dimension::Cores, unit: 1 });
        std::iter::once(count).chain(memory).chain(cores).collect()
    }

    fn hint_keys(&self) -> Option<&HintKeys> {
        Some(&self.row.hints)
    }

    fn default_count(&self) -> Option<(&str, u32)> {
        None
    }

    fn additions(&self) -> Additions<'_> {
        let count = self.row.resources.count.as_str();
        Additions {
            runtime_class: self.row.runtime_class.as_deref(),
            name_variable: self.row.name_variable.map(|variable| (variable, count)),
        }
    }

    fn inventory(&self, node: &Node) -> Result<Option<Inventory>, Unreadable> {
        cards::read(&self.row, node)
    }

    // None of these vendors' mutations adds a count.
    fn request(&self, pod: &Pod, _missing: MissingCount) -> Result<Option<PodRequest>, Vec<Unreadable>> {
        request::read(&self.row, &self.settings, pod)
    }

    fn assignment(&self, pod: &Pod) -> Result<Option<Carried>, Unreadable> {
        record::read(&self.row, pod)
    }

    fn record(&self, assignment: &Assignment, node: &str, now: Timestamp) -> Record {
        record::write(&self.row, assignment, node, now)
    }

    fn answer(&self, pod: &Pod) -> Answer {
        match record::answer(&self.row, pod) {
            Answer::Failed if withdrawal::is_withdrawn(&self.row, pod) => Answer::Withdrawn,
            answer => answer,
        }
    }

    fn remains(&self, pod: &Pod) -> Remains {
        withdrawal::remains(&self.row, pod)
    }

    fn withdrawal(&self) -> BTreeMap<String, String> {
        withdrawal::annotations(&self.row)
    }

    fn locks(&self) -> &[LockSpec] {
        std::slice::from_ref(&self.lock)
    }
}
