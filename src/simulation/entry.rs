//! A pod at the entrance of a simulated cluster: whether it may come in, and whether it wants a place there.

use super::report::{SimulatedPod, ViolationRow};
use crate::{object::Pod, scheduling::Claim};

/// What comes of a pod at the entrance; each with the warnings for the user who submits it.
#[derive(Debug)]
pub enum Entered {
    /// It wants a place.
    Ours(Box<Pod>, Vec<String>),
    /// It is not Berth's to place.
    Ignored(Vec<String>),
    /// It may not come in.
    Denied(Vec<ViolationRow>, Vec<String>),
}

/// Whether a pod is to be decided.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wants {
    /// It is.
    Place,
    /// It is there, and wants no place.
    Nothing,
}

impl SimulatedPod {
    /// It has come in and claims this. `gated`: gates hold it back.
    #[must_use]
    pub fn entering(mut self, claim: &Claim, gated: bool) -> (Self, Wants) {
        match claim {
            Claim::Place(_) => return (self, Wants::Place),
            Claim::Unreadable(why) => self = self.unschedulable(why.0.clone()),
            Claim::None if gated => {
                let gated = "Scheduling is blocked due to non-empty scheduling gates";
                self = self.unschedulable(gated.to_owned());
            }
            Claim::None => self.warnings.push("the pod has ended or is being deleted".to_owned()),
        }
        (self, Wants::Nothing)
    }
}
