//! What a ResourceQuota bounds of shares: the one reading of it, for admission and for the binder.
//!
//! Reads only; what is used, and what is left, is theirs to compare.

use super::{Dialects, Problem, Unreadable};
use crate::{
    device::{CountedAmount, ProfileName},
    object::{
        ResourceQuota,
        quota::{key_of, units},
    },
};

/// A bound on one amount of one dialect's cards.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HardLimit<'a> {
    /// Whose cards.
    pub profile: &'a ProfileName,
    /// The amount, and what a unit of it is.
    pub counted: CountedAmount<'a>,
    /// How many units.
    pub units: u64,
}

impl Dialects {
    /// What the quota bounds, and which of its keys on shares can't be read: an amount that is no whole number, or each where the quota is
    /// about some of the namespace's pods only.
    pub fn bounds(&self, quota: &ResourceQuota) -> (Vec<HardLimit<'_>>, Vec<Unreadable>) {
        let (mut bounds, mut troubles) = (Vec::new(), Vec::new());
        for (resource, hard) in quota.limits() {
            let Some((profile, counted)) = self.counted(resource) else { continue };
            let read = if quota.is_scoped() {
                Err("a ResourceQuota with scopes does not limit shares of cards: remove the scopes"
                    .to_owned())
            } else {
                units(hard)
            };
            match read {
                Ok(units) => bounds.push(HardLimit { profile, counted, units }),
                Err(message) => {
                    let field = format!("spec.hard[{}]", key_of(resource));
                    troubles.push(Unreadable::new(Problem::Quantity, field, message));
                }
            }
        }
        (bounds, troubles)
    }

    /// What a resource of this name counts, and in which dialect.
    fn counted(&self, resource: &str) -> Option<(&ProfileName, CountedAmount<'_>)> {
        let of_dialect = |counted: &CountedAmount<'_>| counted.resource == resource;
        self.iter().find_map(|dialect| {
            let counted = dialect.counted().into_iter().find(of_dialect)?;
            Some((dialect.name(), counted))
        })
    }
}
