//! Which replica leads, by the Lease.

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};

use crate::cluster::Leadership;

/// The identity of the replica that holds the Lease; `None`: no other replica holds it now, or it can't be read, which is logged.
pub(super) async fn leader(client: &Client, leadership: &Leadership) -> Option<String> {
    let Leadership::Elected(settings) = leadership else { return None };
    let leases: Api<Lease> = Api::namespaced(client.clone(), &settings.namespace);
    let lease = leases.get_opt(&settings.name).await.inspect_err(|error| {
        let error = crate::excerpt::brief(error);
        tracing::warn!(%error, "the holder of the Lease is unknown");
    });
    let holder = lease.ok()??.spec?.holder_identity.filter(|holder| !holder.is_empty())?;
    (holder != *settings.identity).then_some(holder)
}
