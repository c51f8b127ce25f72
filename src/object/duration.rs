//! Durations as Go reads them (`time.ParseDuration`): `5m`, `1m30s`, `1.5h`.

use jiff::SignedDuration;

/// Reads a duration; `None` where Go would not.
pub fn parse(text: &str) -> Option<SignedDuration> {
    let (sign, mut rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) if text.starts_with('-') => (-1, rest),
        Some(rest) => (1, rest),
        None => (1, text),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (digits, behind) = rest.split_at(number);
        let unit = behind.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit);
        total = total.checked_add(nanoseconds(digits, unit)?)?;
        rest = behind;
    }
    let nanoseconds = i64::try_from(total * sign).ok()?;
    (text != "-" && text != "+" && !text.is_empty()).then(|| SignedDuration::from_nanos(nanoseconds))
}

fn nanoseconds(digits: &str, unit: &str) -> Option<i128> {
    let scale: i128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction = &fraction[..fraction.len().min(15)];
    let part: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let divisor = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    whole.checked_mul(scale)?.checked_add(part.checked_mul(scale)? / divisor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_reads_is_read() {
        let read = |text| parse(text).map(|duration| duration.as_millis());
        assert_eq!(read("5m"), Some(300_000));
        assert_eq!(read("1m30s"), Some(90_000));
        assert_eq!(read("1.5h"), Some(5_400_000));
        assert_eq!(read(".5s"), Some(500));
        assert_eq!(read("-2ms"), Some(-2));
        assert_eq!(read("0"), Some(0));
        for text in ["", "5", "m", "5 m", "1..5s", ".s", "5x", "-", "5m3", "999999999999h"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
