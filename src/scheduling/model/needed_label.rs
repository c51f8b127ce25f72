//! Labels that a node needs for something: necessary conditions, by which what a node can reach is found.

use crate::object::Requirement;

/// A label of which a node must have one of these values.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduling) struct NeededLabel<'a> {
    pub(in crate::scheduling) key: &'a str,
    pub(in crate::scheduling) values: &'a [String],
}

impl<'a> NeededLabel<'a> {
    /// Those of some requirements that only nodes with certain values of a label meet.
    pub(in crate::scheduling) fn among(requirements: &'a [Requirement]) -> impl Iterator<Item = Self> {
        let listed = requirements.iter().filter(|requirement| requirement.operator == "In");
        listed.map(|requirement| Self { key: &requirement.key, values: &requirement.values })
    }
}
