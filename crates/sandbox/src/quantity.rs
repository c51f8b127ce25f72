//! How a real API server respells a quantity, and whether it is one; it adds none up.

/// Why a quantity is refused, in the words of the real server.
pub(super) const FORMAT: &str = "quantities must match the regular expression \
     '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// One whole unit in units of 10^-9.
pub(super) const ONE: i128 = 1_000_000_000;

/// Decimal suffixes with their power of a thousand.
const DECIMAL: &[(&str, i32)] =
    &[("n", -3), ("u", -2), ("m", -1), ("", 0), ("k", 1), ("M", 2), ("G", 3), ("T", 4), ("P", 5), ("E", 6)];
/// Binary suffixes with their power of 1024.
const BINARY: &[(&str, u32)] = &[("Ki", 1), ("Mi", 2), ("Gi", 3), ("Ti", 4), ("Pi", 5), ("Ei", 6)];

/// The suffix family in which a quantity is written back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Decimal,
    Binary,
    Exponent,
}

/// A quantity in units of 10^-9.
struct Parsed {
    nano: i128,
    format: Format,
}

fn parse(text: &str) -> Option<Parsed> {
    let digits = text.trim_start_matches(['+', '-']);
    let end = digits.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(digits.len());
    let (number, suffix) = digits.split_at(end);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if text.len() - digits.len() > 1 || whole.len() + part.len() == 0 || part.contains('.') {
        return None;
    }
    let mantissa: i128 = format!("{whole}{part}").parse().ok()?;
    let places = i32::try_from(part.len()).ok()?;
    let (scaled, format) = scale(mantissa, places, suffix)?;
    let nano = if text.starts_with('-') { -scaled } else { scaled };
    Some(Parsed { nano, format })
}

/// `mantissa * 10^-places * suffix` in units of 10^-9, rounded up.
fn scale(mantissa: i128, places: i32, suffix: &str) -> Option<(i128, Format)> {
    if let Some((_, power)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        let value = mantissa.checked_mul(1024_i128.checked_pow(*power)?)?;
        return Some((shift(value, 9 - places)?, Format::Binary));
    }
    if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((shift(mantissa, 9 - places + 3 * power)?, Format::Decimal));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((shift(mantissa, 9 - places + exponent)?, Format::Exponent))
}

fn shift(value: i128, places: i32) -> Option<i128> {
    let factor = 10_i128.checked_pow(places.unsigned_abs())?;
    if places >= 0 {
        return value.checked_mul(factor);
    }
    let (whole, rest) = (value / factor, value % factor);
    Some(if rest > 0 { whole + 1 } else { whole })
}

/// The quantity in units of 10^-9, rounded up; none when the text is no quantity.
pub(super) fn nano(text: &str) -> Option<i128> {
    parse(text).map(|quantity| quantity.nano)
}

/// The spelling under which a real server stores a quantity: `8000` becomes `8k`, `1024Mi` becomes `1Gi`.
///
/// What is no quantity stays, and so does a number with a leading zero (seen on a real server: `030`).
pub(super) fn respell(text: &str) -> String {
    let unsigned = text.trim_start_matches(['+', '-']);
    let leading_zero = unsigned.starts_with('0') && unsigned[1..].starts_with(|c: char| c.is_ascii_digit());
    match parse(text).filter(|_| !leading_zero) {
        Some(quantity) => write(&quantity),
        None => text.to_owned(),
    }
}

fn write(quantity: &Parsed) -> String {
    let Parsed { nano, format } = *quantity;
    if nano == 0 {
        return "0".to_owned();
    }
    if format == Format::Binary && nano % ONE == 0 && (nano / ONE).abs() >= 1024 {
        let value = nano / ONE;
        let fits = |(_, power): &&(&str, u32)| value % 1024_i128.pow(*power) == 0;
        return match BINARY.iter().rev().find(fits) {
            Some((suffix, power)) => format!("{}{suffix}", value / 1024_i128.pow(*power)),
            None => value.to_string(),
        };
    }
    let (mut value, mut power) = (nano, -3);
    while value % 1000 == 0 && power < 6 {
        value /= 1000;
        power += 1;
    }
    if format == Format::Exponent && power != 0 {
        return format!("{value}e{}", power * 3);
    }
    let suffix = DECIMAL.iter().find(|(_, own)| *own == power).map_or("", |(suffix, _)| suffix);
    format!("{value}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::{nano, respell};

    #[test]
    fn quantities_are_respelled_as_a_real_server_does() {
        let cases = [
            ("8000", "8k"),
            ("030", "030"),
            ("0", "0"),
            ("1024Mi", "1Gi"),
            ("0.5", "500m"),
            ("0.5Gi", "512Mi"),
            ("1500", "1500"),
            ("1000m", "1"),
            ("512", "512"),
            ("1e3", "1e3"),
            ("-4", "-4"),
            ("100Mi", "100Mi"),
            ("1Ki", "1Ki"),
            ("abc", "abc"),
        ];
        for (sent, stored) in cases {
            assert_eq!(respell(sent), stored, "{sent}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_none() {
        assert_eq!(nano("-1Ki"), Some(-1_024_000_000_000));
        assert_eq!(nano("1.5m"), Some(1_500_000));
        for text in ["", "Gi", "1Xi", "1.2.3", "--1", "1 Gi", "e3"] {
            assert_eq!(nano(text), None, "{text}");
        }
    }
}
