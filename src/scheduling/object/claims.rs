//! Claims of devices, and what decides on them.

use std::sync::Arc;

use super::Objects;
use crate::scheduling::resource_claims::ResourceClaims;

impl Objects {
    /// Claims of devices and what decides on them; `None`: they are not served.
    pub fn resource_claims(&self) -> Option<&ResourceClaims> {
        self.resource_claims.as_deref()
    }

    /// Serves claims of devices from now on, as they stand here.
    pub fn set_resource_claims(&mut self, claims: ResourceClaims) {
        self.resource_claims = Some(Arc::new(claims));
        self.version += 1;
    }

    /// Changes what is known of claims of devices, where they are served.
    pub fn change_resource_claims(&mut self, change: impl FnOnce(&mut ResourceClaims)) {
        if let Some(claims) = &mut self.resource_claims {
            change(Arc::make_mut(claims));
            self.version += 1;
        }
    }
}
