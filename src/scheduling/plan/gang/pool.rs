//! The pods of a gang: those that are placed, and those that are to be.

use crate::scheduling::model::{
    gang::{Gang, GangName, Member, Tally},
    name::NodeName,
    pod::Demand,
};

/// A pod of a gang that waits for a place.
#[derive(Clone, Debug)]
pub struct Applicant {
    /// What it asks for.
    pub demand: Demand,
    /// What it is in its group.
    pub member: Member,
}

/// The pods of a gang: those that are placed, and those that are to be.
#[derive(Debug)]
pub struct Pool<'a> {
    /// What must hold of the gang.
    pub gang: &'a Gang,
    /// The pods that hold a place.
    pub placed: Tally,
    /// The nodes of these pods, with the group of each.
    pub nodes: Vec<(GangName, NodeName)>,
    /// The pods that are to be placed, in the order in which they are tried.
    pub applicants: Vec<Applicant>,
    /// In a tree of groups, the part of it that is to have enough pods; all others have, or are not looked at.
    pub part: usize,
}
