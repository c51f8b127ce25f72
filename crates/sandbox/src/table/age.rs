//! How long ago something was, in as few units as kubectl shows; it reads no clock.

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// The time since a moment (apimachinery `pkg/util/duration/duration.go`, `HumanDuration`): two units while the larger one is small.
pub(super) fn since(moment: &str, now: Timestamp) -> String {
    match moment.parse::<Timestamp>() {
        Ok(moment) => human(now.duration_since(moment).as_secs()),
        Err(_) => "<unknown>".to_owned(),
    }
}

fn human(seconds: i64) -> String {
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(seconds, (MINUTE, "m"), (1, "s")),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(seconds, (HOUR, "h"), (MINUTE, "m")),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(seconds, (DAY, "d"), (HOUR, "h")),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two(seconds, (YEAR, "y"), (DAY, "d")),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// In a unit and a smaller one, which is left out where nothing is left for it.
fn two(seconds: i64, (large, its_name): (i64, &str), (small, name): (i64, &str)) -> String {
    match seconds % large / small {
        0 => format!("{}{its_name}", seconds / large),
        rest => format!("{}{its_name}{rest}{name}", seconds / large),
    }
}

#[cfg(test)]
mod tests {
    use super::{human, since};
    use jiff::Timestamp;

    #[test]
    fn ages_read_as_kubectl_shows_them() {
        let cases = [
            (-5, "<invalid>"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (599, "9m59s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (28_799, "7h59m"),
            (28_800, "8h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
            (252_288_000, "8y"),
        ];
        for (seconds, want) in cases {
            assert_eq!(human(seconds), want, "{seconds}");
        }
        assert_eq!(since("", Timestamp::UNIX_EPOCH), "<unknown>");
        assert_eq!(since("1969-12-31T23:59:55Z", Timestamp::UNIX_EPOCH), "5s");
    }
}
