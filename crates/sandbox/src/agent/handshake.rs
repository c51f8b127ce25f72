//! The sign of life of HAMi's plugins up to v2.7: `hami.io/node-handshake: Reported <time>`, again and again.
//!
//! It must not read handshakes: the plugin writes over whatever a scheduler has answered. Source: Project-HAMi/HAMi v2.7
//! `pkg/device-plugin/nvidiadevice/nvinternal/plugin/register.go` (`RegistrInAnnotation`, `WatchAndRegister`).

#![allow(clippy::disallowed_methods, reason = "a plugin reports by the clock of its machine")]

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use super::Shared;
use super::node::Node;
use super::plugin::Plugin;
use super::record::held;
use super::wire::Release;

const HANDSHAKE: &str = "hami.io/node-handshake";

/// Whether a plugin reports its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reports {
    /// At once, and then again and again.
    #[default]
    Regularly,
    /// No longer, as if it had died; it still answers Allocate.
    Never,
}

/// Whether the node's plugin is one that reports.
pub(super) fn is_written_by(node: &Node) -> bool {
    matches!(node.plugin, Some(Plugin::Hami(release)) if release <= Release::V2_7)
}

/// Reports for as long as the fleet is there.
pub(super) async fn run(shared: Arc<Shared>, name: String) {
    let seat = &shared.seats[&name];
    let mut reports = seat.reports.subscribe();
    loop {
        let node = held(&seat.node).clone();
        if *reports.borrow_and_update() == Reports::Never {
            if reports.changed().await.is_err() {
                return;
            }
            continue;
        }
        let annotations = node.annotations().into_iter().map(|(key, value)| (key, json!(value)));
        let report = printed(Timestamp::now() - node.handshake.behind);
        let mut annotations: serde_json::Map<_, _> = annotations.collect();
        annotations.insert(HANDSHAKE.to_owned(), json!(format!("Reported {report}")));
        if let Err(error) =
            shared.calls.patch_node(&name, json!({"metadata": {"annotations": annotations}})).await
        {
            tracing::warn!(%error, node = name, "a plugin could not report");
        }
        tokio::select! {
            () = tokio::time::sleep(node.handshake.every) => {}
            changed = reports.changed() => if changed.is_err() { return },
        }
    }
}

/// As Go prints a time that it has just taken.
fn printed(at: Timestamp) -> String {
    format!("{} +0000 UTC m=+42.000000001", at.strftime("%Y-%m-%d %H:%M:%S%.f"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_printed_as_go_does() {
        let at: Timestamp = "2026-11-21T09:00:00.123456789Z".parse().unwrap();
        assert_eq!(printed(at), "2026-11-21 09:00:00.123456789 +0000 UTC m=+42.000000001");
    }
}
