//! The values that CEL and Kubernetes add to those of the crate: quantities, versions, times, addresses, URLs and named formats.

mod named_format;
mod network;
mod quoted;
mod time;
mod url;

use std::{any::Any, cmp::Ordering};

use cel::common::{
    types::Type,
    value::{StaticVal, Val},
};

use crate::object::Amount;

pub(super) use named_format::CelFormat;
pub(super) use network::{CelAddress, CelNetwork};
pub(super) use quoted::quoted;
pub(super) use time::{CelDuration, CelTimestamp};
pub(super) use url::CelUrl;

/// Makes a type that is compared by its `PartialEq` a value of CEL of this name, with the operators that it has besides.
macro_rules! is_value {
    ($value:ident, $name:literal $(, $operators:tt)?) => {
        impl Val for $value {
            fn get_type(&self) -> &Type {
                Self::cel_type()
            }

            fn cel_type() -> &'static Type {
                const TYPE: &Type = &Type::new_unspecified_type($name);
                TYPE
            }

            fn equals(&self, other: &dyn Val) -> bool {
                other.downcast_ref::<Self>().is_some_and(|other| self == other)
            }

            fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
                Box::new(Self::clone(self))
            }

            fn as_any(&self) -> Option<&dyn Any> {
                Some(self)
            }

            $(is_value!(@ $operators);)?
        }

        impl StaticVal for $value {}
    };
    (@ arithmetic) => {
        fn as_adder<'b, 'v>(&'b self) -> Option<&'b (dyn cel::common::traits::Adder + 'v)>
        where
            Self: 'v,
        {
            Some(self)
        }

        fn as_subtractor<'b, 'v>(&'b self) -> Option<&'b (dyn cel::common::traits::Subtractor + 'v)>
        where
            Self: 'v,
        {
            Some(self)
        }

        fn as_comparer(&self) -> Option<&dyn cel::common::traits::Comparer> {
            Some(self)
        }
    };
}

use is_value;

/// A Kubernetes quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
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

impl PartialEq for CelVersion {
    fn eq(&self, other: &Self) -> bool {
        self.order(other).is_eq()
    }
}

is_value!(CelQuantity, "kubernetes.Quantity");
is_value!(CelVersion, "kubernetes.Semver");
