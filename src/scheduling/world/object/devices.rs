//! What objects say of a node's devices: those of its Device, and the templates of shares of their model.

use std::sync::Arc;

use super::{Object, Objects};
use crate::scheduling::model::kind::Kind;
use crate::{
    device::ModelTemplates,
    scheduling::model::node::{NodeInfo, Offer},
};

impl Objects {
    /// What the Device of a node offers there.
    pub fn devices(&self, node: &str) -> Option<&Arc<Offer>> {
        match self.get(Kind::Device, node)? {
            Object::Device(_, offer) => Some(offer),
            _ => None,
        }
    }

    /// The templates of shares.
    fn templates(&self) -> Option<&ModelTemplates> {
        self.of_kind(Kind::ShareTemplates).find_map(|object| match object {
            Object::ShareTemplates(_, templates) => Some(&**templates),
            _ => None,
        })
    }

    /// Joins to a node what its Device offers there, in place of what one offered before.
    pub fn join_devices(&self, node: &mut NodeInfo) {
        if let Some(devices) = self.devices(&node.name) {
            node.set_devices(devices, self.templates());
        }
    }
}
