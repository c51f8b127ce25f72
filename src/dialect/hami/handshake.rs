//! How long a sign of life of HAMi's old plugins holds.
//!
//! Plugins up to v2.7 write `Reported <time>` every 30 s, as Go prints a time; their scheduler answers `Requesting_<time>` and takes a
//! plugin that has not written again after 60 s for dead (`Deleted_<time>`). Plugins from v2.8 on write no handshake: one that stands
//! beside their JSON registration is a leftover. Berth reads handshakes and writes none. A time that can't be read holds for good, as
//! with HAMi (`pkg/device/devices.go` `CheckHealth`).

use jiff::{SignedDuration, Timestamp, civil, fmt::strtime, tz::TimeZone};

use super::{names, register};
use crate::object::Node;

/// After this time without an answer a plugin is dead.
const ANSWER: SignedDuration = SignedDuration::from_secs(60);
/// How often a plugin reports.
const PERIOD: SignedDuration = SignedDuration::from_secs(30);

/// Until when the node's cards may be used without a new sign of life; `None`: for good.
pub(super) fn expiry(node: &Node) -> Option<Timestamp> {
    let register = node.metadata.annotation(names::REGISTER)?;
    if register::is_json(register) {
        return None;
    }
    let handshake = node.metadata.annotation(names::HANDSHAKE)?;
    let (word, time) = handshake.split_once([' ', '_'])?;
    match word {
        "Reported" => printed(time)?.checked_add(PERIOD + ANSWER).ok(),
        "Requesting" => civil_time(time)?.checked_add(ANSWER).ok(),
        "Deleted" => Some(civil_time(time).unwrap_or(Timestamp::UNIX_EPOCH)),
        _ => None,
    }
}

/// `2006-01-02 15:04:05.999999999 -0700 MST m=+0.000000001`
fn printed(text: &str) -> Option<Timestamp> {
    let [date, time, offset] = text.split_whitespace().take(3).collect::<Vec<_>>()[..] else { return None };
    let time = time.split('.').next()?;
    strtime::parse("%Y-%m-%d %H:%M:%S %z", format!("{date} {time} {offset}")).ok()?.to_timestamp().ok()
}

/// `2006-01-02 15:04:05`, in v2.4 with points in the date; the clock of a scheduler's container, which runs in UTC.
fn civil_time(text: &str) -> Option<Timestamp> {
    let text = text.trim().replace('.', "-");
    let time = civil::DateTime::strptime("%Y-%m-%d %H:%M:%S", text).ok()?;
    TimeZone::UTC.to_timestamp(time).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FIELDS: &str = "GPU-a,10,16384,100,NVIDIA A100,0,true,0,hami-core:";

    fn expires(register: &str, handshake: &str) -> Option<String> {
        let annotations = json!({names::REGISTER: register, names::HANDSHAKE: handshake});
        let node = serde_json::from_value(json!({"metadata": {"annotations": annotations}})).unwrap();
        expiry(&node).map(|at| at.to_string())
    }

    #[test]
    fn a_sign_of_life_of_an_old_plugin_holds_for_a_while() {
        let cases = [
            ("Reported 2026-11-21 09:00:00.123456789 +0000 UTC m=+30.01", Some("2026-11-21T09:01:30Z")),
            ("Reported 2026-11-21 10:00:00 +0100 CET", Some("2026-11-21T09:01:30Z")),
            ("Requesting_2026-11-21 09:00:00", Some("2026-11-21T09:01:00Z")),
            ("Requesting_2026.11.21 09:00:00", Some("2026-11-21T09:01:00Z")),
            ("Deleted_2026-11-21 09:00:00", Some("2026-11-21T09:00:00Z")),
            ("Deleted_", Some("1970-01-01T00:00:00Z")),
            ("Reported just now", None),
            ("Requesting", None),
            ("", None),
        ];
        for (handshake, wanted) in cases {
            assert_eq!(expires(FIELDS, handshake).as_deref(), wanted, "{handshake}");
        }
    }

    #[test]
    fn beside_the_registration_of_a_new_plugin_it_is_a_leftover() {
        assert_eq!(expires("[]", "Deleted_2026-11-21 09:00:00"), None);
        assert_eq!(expires("[{\"id\":\"GPU-a\"}]", "Reported 2026-11-21 09:00:00 +0000 UTC"), None);
    }
}
