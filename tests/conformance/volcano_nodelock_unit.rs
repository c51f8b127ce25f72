//! Volcano's node lock, whose value is a bare time.

use berth::{device::Lock, dialect::LockForm};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{
    table::{Case, Table, Verdict},
    upstream::{lock, node, text},
};

#[test]
fn volcano_nodelock_unit() {
    let table = Table { file: "volcano_nodelock_unit.json", differences: &[], not_served: &[] };
    table.check(judge);
}

/// A lock that names nobody bars everybody until it has expired.
fn judge(case: &Case) -> Verdict {
    let now: Timestamp = "2026-11-21T00:00:00Z".parse().unwrap();
    let minutes: i64 = text(&case.input, "annotation_offset").trim_end_matches('m').parse().unwrap();
    let since = now + SignedDuration::from_mins(minutes);
    let spec = lock("test-node-lock", LockForm::Bare);
    let state = spec.read(&node(&json!({"test-node-lock": since.to_string()})));
    let barred = matches!(state, Lock::Held { owner: None, since } if since + spec.expiry > now);
    Verdict::of(&barred, &!case.expect["err"].is_null())
}
