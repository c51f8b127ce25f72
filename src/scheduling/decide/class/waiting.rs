//! The pods of each class that no node would have, and the change of a node that wakes them.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;

use super::{ClassOrigin, Classes};
use crate::{
    device::ProfileName,
    scheduling::{
        model::{name::Uid, pod::Ask, steps::LOOK},
        plugin::{contract::Reach, filter::filter, tdm},
        world::node_state::NodeState,
    },
};

/// How a node has changed whose waiting pods are looked for.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum HeldChange {
    /// Less is held of it, or it has become another: every pod may fit.
    Less,
    /// More is held of it: only pods of several shares may fit for that.
    More,
}

impl Classes {
    /// How many pods of all classes wait for a node to change.
    pub fn waiting(&self) -> usize {
        // Asked in each turn: no ask is looked up, which would take as long as its text is.
        self.by_ask.values().map(|class| class.waiting.len() + class.waiting_for_others.len()).sum()
    }

    /// A pod of this class found no node: it waits for one to change. `rejected_by` is [`Reach::Cluster`] where a plugin
    /// which looks at more than one node has rejected some: what these were is no reason to decide again.
    pub fn wait(&mut self, ask: &Arc<Ask>, uid: Uid, rejected_by: Reach) {
        let Some(class) = self.by_ask.get_mut(ask) else {
            return;
        };
        match rejected_by {
            Reach::Node => class.waiting.insert(uid),
            Reach::Cluster => class.waiting_for_others.insert(uid),
        };
        if class.waiting_place.is_none() {
            let place = self.waiting.last_key_value().map_or(0, |(last, _)| last + 1);
            class.waiting_place = Some(place);
            self.waiting.insert(place, ask.clone());
        }
    }

    /// As [`Self::wait`] for a pod whose class may not be known yet.
    pub(in crate::scheduling) fn wait_known(&mut self, ask: &Arc<Ask>, uid: Uid) {
        self.make_known(ask, ClassOrigin::Decided);
        self.wait(ask, uid, Reach::Node);
    }

    /// A pod of this class waits no more.
    pub fn leave(&mut self, ask: &Arc<Ask>, uid: &Uid) {
        if let Some(class) = self.by_ask.get_mut(ask) {
            class.waiting.remove(uid);
            class.waiting_for_others.remove(uid);
            if class.has_none_waiting()
                && let Some(place) = class.waiting_place.take()
            {
                self.waiting.remove(&place);
            }
        }
        self.forget_empty(ask);
    }

    /// Whether the class is remembered: its pods can wait.
    pub fn knows(&self, ask: &Arc<Ask>) -> bool {
        self.by_ask.contains_key(ask)
    }

    /// Whether a pod of this class waits.
    pub fn holds(&self, ask: &Arc<Ask>, uid: &Uid) -> bool {
        let class = self.by_ask.get(ask);
        class.is_some_and(|class| class.waiting.contains(uid) || class.waiting_for_others.contains(uid))
    }

    /// The pods that wait for a node to change and ask for cards or devices of one of these plugins, by uid.
    pub(in crate::scheduling) fn waiting_for(&self, profiles: &BTreeSet<ProfileName>) -> BTreeSet<Uid> {
        let asks = |ask: &&Arc<Ask>| ask.devices.iter().any(|asked| profiles.contains(&asked.profile.name));
        let classes = self.waiting.values().filter(asks).filter_map(|ask| self.by_ask.get(ask));
        classes.flat_map(|class| class.waiting.iter().chain(&class.waiting_for_others)).cloned().collect()
    }

    /// Forgets what was found of the node in this slot: it is judged anew, and wakes every waiting pod that it would have.
    pub fn forget(&mut self, slot: usize) {
        for class in self.by_ask.values_mut() {
            class.verdicts.forget(slot);
        }
    }

    /// The waiting pods that the node in this slot, as it now is, would have, were it not for their quotas and for other nodes. Pods
    /// that wait for other nodes and their pods are among them only if the node did not fit when their class was last decided.
    pub fn wake(
        &mut self,
        slot: usize,
        node: &NodeState,
        device_resources: &BTreeSet<String>,
        (held, now): (HeldChange, Timestamp),
    ) -> Vec<Uid> {
        let several = |ask: &Ask| ask.devices.iter().any(|device| device.request.has_several_shares());
        let may_fit = |ask: &Ask| held == HeldChange::Less || several(ask);
        let (mut woken, mut left) = (Vec::new(), Vec::new());
        self.counts.steps().add(LOOK, self.waiting.len());
        for (place, ask) in self.waiting.iter().filter(|(_, ask)| may_fit(ask)) {
            let Some(class) = self.by_ask.get_mut(ask) else { continue };
            let fitted = class.verdicts.fits(slot);
            if class.waiting.is_empty() && fitted {
                continue;
            }
            self.counts.steps().add(ask.cost(), 1);
            if filter(ask, node, device_resources, &[]).is_err() || !tdm::lasts(ask, node, now) {
                continue;
            }
            woken.extend(std::mem::take(&mut class.waiting));
            if !fitted {
                woken.extend(std::mem::take(&mut class.waiting_for_others));
            }
            if class.has_none_waiting() {
                class.waiting_place = None;
                left.push(*place);
            }
        }
        for place in left {
            self.waiting.remove(&place);
        }
        woken
    }
}
