//! Quantities: read exactly or refused, and every spelling of a number is the same number.

use berth::object::{Amount, Quantity, UnreadableQuantity};

/// Each suffix, and the power of ten or of two that it stands for.
const DECIMAL: [(&str, i32); 9] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15)];
const BINARY: [(&str, i32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// A quantity as somebody wrote it.
pub fn run(data: &[u8]) {
    let Some(text) = super::text(data) else { return };
    let Some((negative, digits, suffix)) = parts(text) else {
        let read = Quantity::from(text).amount();
        assert!(matches!(read, Err(UnreadableQuantity::Malformed(_))), "{text}: {read:?}");
        return;
    };
    let Ok(amount) = Quantity::from(text).amount() else { return };
    near(text, amount, &digits, suffix, negative);
    respelled(amount, &digits, suffix, negative);
    if let Some(whole) = amount.whole() {
        assert_eq!(Quantity::from(whole.to_string()).amount(), Ok(amount), "{text}");
    } else {
        assert!(amount.units_rounded_up() > 0 || negative, "{text}: a part of a unit was lost");
    }
}

/// Sign, number and suffix by the grammar alone: `<sign><digits>[.<digits>]<suffix>`, at least one digit, one of the suffixes.
fn parts(text: &str) -> Option<(bool, String, &str)> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (digits, suffix) = unsigned.split_at(end);
    let number = digits.bytes().filter(u8::is_ascii_digit).count() > 0 && digits.matches('.').count() < 2;
    (number && power(suffix).is_some()).then(|| (text.starts_with('-'), digits.to_owned(), suffix))
}

/// Base and exponent of a suffix.
fn power(suffix: &str) -> Option<(f64, i32)> {
    let of = |table: &[(&str, i32)]| table.iter().find(|(name, _)| *name == suffix).map(|(_, power)| *power);
    if let Some(power) = of(&DECIMAL) {
        return Some((10.0, power));
    }
    if let Some(power) = of(&BINARY) {
        return Some((2.0, power));
    }
    if suffix == "E" {
        return Some((10.0, 18));
    }
    Some((10.0, suffix.strip_prefix(['e', 'E'])?.parse().ok()?))
}

/// Floating point is a second opinion on the size.
fn near(text: &str, amount: Amount, digits: &str, suffix: &str, negative: bool) {
    let (base, power) = power(suffix).expect("the suffix was just read");
    let number: f64 = format!("0{digits}").parse().expect("digits with a point at most");
    // Nothing times infinity is no number.
    let size = if number == 0.0 { 0.0 } else { number * base.powi(power) };
    let expected = if negative { -size } else { size };
    #[expect(clippy::cast_precision_loss, reason = "compared with some tolerance")]
    let read = amount.units_rounded_up() as f64;
    assert!((read - expected).abs() <= 1.0 + expected.abs() * 1e-9, "{text}: {read} is not {expected}");
}

/// The same number with zeros, another sign and another suffix.
fn respelled(amount: Amount, digits: &str, suffix: &str, negative: bool) {
    let sign = if negative { "-" } else { "+" };
    let point = if digits.contains('.') { "000" } else { ".000" };
    let mut spellings = vec![format!("{sign}00{digits}{suffix}"), format!("{sign}{digits}{point}{suffix}")];
    let power = DECIMAL.iter().find(|(name, _)| *name == suffix).map(|(_, power)| power);
    spellings.extend(power.map(|power| format!("{sign}{digits}e{power}")));
    for spelling in spellings {
        // Digits beyond what fits are out of range even where they are zeros.
        if let Ok(other) = Quantity::from(spelling.as_str()).amount() {
            assert_eq!(other, amount, "{spelling}");
        }
    }
    let other = if negative { "" } else { "-" };
    if let Ok(mirrored) = Quantity::from(format!("{other}{digits}{suffix}")).amount() {
        assert_eq!(mirrored.whole(), amount.whole().map(|whole| -whole), "-{digits}{suffix}");
    }
}

/// Spellings that the API server takes, and some that it does not.
pub fn seeds() -> Vec<Vec<u8>> {
    super::owned(&[
        "0",
        "1",
        "8000",
        "8k",
        "8e3",
        "+8E3",
        "-5",
        "500m",
        "0.5Ki",
        ".5k",
        "8000.",
        "16Gi",
        "1E",
        "1e-9",
        "9223372036854775807",
        "8Ei",
        "1e40",
        "1e-12",
        "1e2147483647",
        "1e-2147483648",
        "1.2.3",
        "0x10",
        "1 Gi",
        "NaN",
        "0e21004",
        "--1",
        "00000000000000000000000000000000000000000001",
        "0.0000000000000000000000000001n",
    ])
}
