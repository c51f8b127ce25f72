//! Durations as Go writes them (`time.ParseDuration`): `5m`, `1m30s`, `1.5h`.

use jiff::SignedDuration;
use serde::Serializer;

pub use crate::object::duration::parse;

/// Writes a duration so that [`parse`] reads it back.
pub fn format(duration: SignedDuration) -> String {
    let nanoseconds = duration.as_nanos();
    let units = [("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000)];
    let mut rest = nanoseconds.abs();
    let mut text = if nanoseconds < 0 { "-".to_owned() } else { String::new() };
    for (unit, scale) in units.into_iter().chain([("us", 1_000), ("ns", 1)]) {
        if rest >= scale {
            text += &(rest / scale).to_string();
            text += unit;
            rest %= scale;
        }
    }
    if nanoseconds == 0 { "0s".to_owned() } else { text }
}

/// For `#[serde(serialize_with)]`.
pub(super) fn serialize<S: Serializer>(duration: &SignedDuration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format(*duration))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["5m", "1m30s", "1h", "250ms", "0s", "-1h2m3s"] {
            assert_eq!(format(parse(text).unwrap()), text);
        }
    }
}
