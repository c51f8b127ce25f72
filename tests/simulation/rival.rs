//! Another scheduler of HAMi's that comes and goes, while Berth leaves locks out whenever none runs.
//!
//! It must not take locks: [`crate::actors`] does, once it has started.

use berth::config::{Config, NodeLockConfig, NodeLockPolicy};
use berth_sandbox::Sandbox;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::{record::text, story::Story};

/// So long after its pod was created it takes its first lock.
pub(crate) const START: SignedDuration = SignedDuration::from_secs(20);

/// So long after its pod was created no pod is bound any more without a lock: what is known of it is too old by then, and what was sent on
/// that has arrived or never will.
const KNOWN: SignedDuration = SignedDuration::from_secs(15);

/// So long its locks are respected, and Berth takes locks after it is gone.
pub(crate) const RESPECTED: SignedDuration = SignedDuration::from_secs(30);

/// The label of its pods.
pub(crate) const LABEL: (&str, &str) = ("app.kubernetes.io/component", "hami-scheduler");

/// Locks are left out where such a scheduler comes and goes.
pub(crate) fn set(config: &mut Config, story: &Story) {
    if story.has_rival() {
        config.dialects.hami.node_locks = NodeLockConfig { expire: RESPECTED, policy: NodeLockPolicy::Auto };
    }
}

/// Whether it is one of its pods.
pub(crate) fn is_its(pod: &Value) -> bool {
    pod["metadata"]["labels"][LABEL.0] == LABEL.1
}

/// Whether it has been there for so long that Berth is to know it.
pub(crate) fn is_known(sandbox: &Sandbox, now: Timestamp) -> bool {
    let created = |pod: &Value| text(pod, "/metadata/creationTimestamp").parse::<Timestamp>().unwrap();
    sandbox.objects("pods").iter().any(|pod| is_its(pod) && created(pod) + KNOWN < now)
}
