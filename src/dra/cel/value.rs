//! The values that Kubernetes adds to CEL: quantities and versions.

use std::{any::Any, cmp::Ordering};

use cel::common::{
    types::Type,
    value::{StaticVal, Val},
};

use crate::object::Amount;

const QUANTITY: &Type = &Type::new_unspecified_type("kubernetes.Quantity");
const VERSION: &Type = &Type::new_unspecified_type("kubernetes.Semver");

/// A Kubernetes quantity.
#[derive(Clone, Copy, Debug)]
pub(super) struct CelQuantity(pub(super) Amount);

/// A version.
#[derive(Clone, Debug)]
pub(super) struct CelVersion(pub(super) semver::Version);

impl CelVersion {
    /// The order of two versions; what stands behind a `+` does not count.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        self.0.cmp_precedence(&other.0)
    }
}

impl Val for CelQuantity {
    fn get_type(&self) -> &Type {
        Self::cel_type()
    }

    fn cel_type() -> &'static Type {
        QUANTITY
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self.0 == other.0)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(*self)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for CelQuantity {}

impl Val for CelVersion {
    fn get_type(&self) -> &Type {
        Self::cel_type()
    }

    fn cel_type() -> &'static Type {
        VERSION
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self.order(other).is_eq())
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for CelVersion {}
