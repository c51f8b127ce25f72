//! What a reason says for which a plugin rejects a node: its name, its words, what it counts with, and what could cure it.

use std::{borrow::Cow, convert::Infallible, fmt};

use smallvec::SmallVec;

/// Every reason for which one plugin rejects a node.
pub type Reasons<R> = SmallVec<[R; 1]>;

/// A reason for which a plugin rejects a node. Its text is in kube-scheduler's words, where that has some.
pub trait Rejection: fmt::Display {
    /// The name, as `berth simulate --explain` prints it.
    fn name(&self) -> Cow<'static, str>;

    /// The reason without the amounts of one node: nodes are counted together that fail for the same.
    #[must_use]
    fn kind(&self) -> Self
    where
        Self: Sized + Clone,
    {
        self.clone()
    }

    /// Its words without the devices and pools that they name, which are not the pod's owner's.
    fn own_words(&self) -> String {
        self.to_string()
    }

    /// What more than its kind the pod's owner is told of the nearest node, without names that are not the owner's; `None`: nothing.
    fn own_detail(&self) -> Option<String> {
        None
    }

    /// What could make the node have the pod.
    fn cure(&self) -> Cure {
        Cure::Eviction
    }

    /// The resource of which the node has too little, where that is the reason.
    fn shortage(&self) -> Option<Shortage<'_>> {
        None
    }

    /// The filter that rejects a node for this; `None`: the only one that the plugin has.
    fn stage(&self) -> Option<FilterStage> {
        None
    }
}

/// What could make a node have a pod that it is rejected for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cure {
    /// Pods that leave the node, as far as is known.
    Eviction,
    /// Something else that changes with time, but no eviction: with [`Cure::Nothing`] kube-scheduler's `UnschedulableAndUnresolvable`.
    Time,
    /// Nothing: the node lacks what the pod asks for, whatever runs on it, and however well it is.
    Nothing,
    /// On so many of the node's cards nothing.
    NothingOnCards {
        /// How many.
        count: usize,
        /// How many cards there are.
        of: usize,
    },
}

/// A resource of which a node has too little. Amounts are in thousandths for cpu, else in units.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Shortage<'a> {
    /// The resource's name.
    pub resource: &'a str,
    /// How much the pod requests.
    pub requested: i64,
    /// How much is free.
    pub free: i64,
}

/// The filters, in the order in which they run: of each stage every plugin in the order of the table.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum FilterStage {
    /// Those of one node by itself.
    Node,
    /// Those by what a plugin has found out for the pod.
    Prepared,
    /// The quota of the pod's namespace.
    Quota,
}

/// A plugin that rejects no node.
impl Rejection for Infallible {
    fn name(&self) -> Cow<'static, str> {
        match *self {}
    }
}
