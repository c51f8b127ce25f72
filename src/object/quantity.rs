//! A Kubernetes quantity, read exactly: every spelling that the API server accepts, no rounding, no wrapping.
//!
//! Grammar: `k8s.io/apimachinery/pkg/api/resource/quantity.go`. The API server itself respells (`8000` becomes `8k`),
//! so each spelling of a number must read as the same number.

use std::{borrow::Cow, fmt};

use compact_str::{CompactString, ToCompactString as _};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::excerpt::{VALUE, excerpt};

/// A quantity as it was written.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Quantity(CompactString);

/// An exact amount, in billionths of a unit (the finest that Kubernetes knows).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Amount(i128);

/// Why a quantity can't be read, with an excerpt of it.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum UnreadableQuantity {
    /// It is not written as a quantity.
    #[error("`{0}` is not a quantity")]
    Malformed(String),
    /// It is finer than a billionth or larger than any resource.
    #[error("`{0}` is out of range")]
    OutOfRange(String),
}

const NANO: i128 = 1_000_000_000;

impl Quantity {
    /// The quantity as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is 0, in whichever spelling; what can't be read is not.
    pub fn is_zero(&self) -> bool {
        self.amount() == Ok(Amount::default())
    }

    /// The exact amount.
    pub fn amount(&self) -> Result<Amount, UnreadableQuantity> {
        if let Some(units) = plain(&self.0) {
            return Ok(Amount::units(units));
        }
        let malformed = || UnreadableQuantity::Malformed(excerpt(&self.0, VALUE).into_owned());
        let out_of_range = || UnreadableQuantity::OutOfRange(excerpt(&self.0, VALUE).into_owned());
        let (digits, suffix) = split(&self.0).ok_or_else(malformed)?;
        let scale = SuffixScale::of(suffix).ok_or_else(malformed)?;
        let (mantissa, fraction_digits) = decimal(digits).ok_or_else(out_of_range)?;
        scale.nanos(mantissa, fraction_digits).map(Amount).ok_or_else(out_of_range)
    }
}

impl<T: Into<CompactString>> From<T> for Quantity {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Amount {
    /// An amount of whole units.
    pub const fn units(units: i64) -> Self {
        Self(units as i128 * NANO)
    }

    /// The number of units, if it is a whole one.
    pub const fn whole(self) -> Option<i128> {
        if self.0 % NANO == 0 { Some(self.0 / NANO) } else { None }
    }

    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// What is left of this once the other is taken away; below 0 where the other is more.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This many times the other, rounded up to a billionth.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        let whole = (self.0 / NANO).saturating_mul(other.0);
        let rest = ceil_div((self.0 % NANO).saturating_mul(other.0), NANO);
        Self(whole.saturating_add(rest))
    }

    /// As a quantity in units, with the largest binary suffix that is exact: `4Gi`. Parts of a unit are rounded up.
    pub fn binary(self) -> Quantity {
        const SUFFIXES: &[&str] = &["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        let mut units = ceil_div(self.0, NANO);
        let mut suffixes = SUFFIXES.iter();
        let mut suffix = suffixes.next();
        while units != 0 && units % 1024 == 0 && suffixes.len() > 0 {
            units /= 1024;
            suffix = suffixes.next();
        }
        Quantity(format!("{units}{}", suffix.unwrap_or(&"")).into())
    }

    /// As a quantity that is exactly this amount: as [`Self::binary`] has it, or else in thousandths or billionths of a unit.
    pub fn exact(self) -> Quantity {
        const NANOS_OF_A_MILLI: i128 = NANO / 1000;
        match (self.0 % NANO, self.0 % NANOS_OF_A_MILLI) {
            (0, _) => self.binary(),
            (_, 0) => Quantity(format!("{}m", self.0 / NANOS_OF_A_MILLI).into()),
            _ => Quantity(format!("{}n", self.0).into()),
        }
    }

    /// The least amount that is not less than this one and some steps from another; a step must be more than 0.
    #[must_use]
    pub const fn rounded_up(self, from: Self, step: Self) -> Self {
        let above = self.0.saturating_sub(from.0);
        let beyond = above.rem_euclid(step.0);
        if beyond == 0 { self } else { Self(self.0.saturating_add(step.0 - beyond)) }
    }

    /// The nearest number of units that a floating point number can hold.
    #[expect(clippy::cast_precision_loss, reason = "it is asked for as an approximation")]
    pub fn approximate(self) -> f64 {
        self.0 as f64 / NANO as f64
    }

    /// Units, rounded up: how Kubernetes counts memory and extended resources.
    pub fn units_rounded_up(self) -> i64 {
        clamp(ceil_div(self.0, NANO))
    }

    /// Thousandths of a unit, rounded up: how Kubernetes counts cpu.
    pub fn millis_rounded_up(self) -> i64 {
        clamp(ceil_div(self.0, NANO / 1000))
    }
}

fn ceil_div(amount: i128, by: i128) -> i128 {
    amount.div_euclid(by) + i128::from(amount.rem_euclid(by) != 0)
}

fn clamp(amount: i128) -> i64 {
    i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX })
}

/// The most digits of which each number fits.
const PLAIN_DIGITS: usize = 18;

/// A number of a few digits and nothing else, as most quantities are; `None`: it is written in another way.
fn plain(text: &str) -> Option<i64> {
    if text.is_empty() || text.len() > PLAIN_DIGITS {
        return None;
    }
    text.bytes().try_fold(0, |units, byte| byte.is_ascii_digit().then(|| units * 10 + i64::from(byte - b'0')))
}

/// Splits into a signed decimal number and its suffix; `None` where there is no number.
fn split(text: &str) -> Option<(&str, &str)> {
    let sign = usize::from(text.starts_with(['+', '-']));
    let (mut digits, mut points) = (0, 0);
    for byte in text.bytes().skip(sign) {
        match byte {
            b'0'..=b'9' => digits += 1,
            b'.' => points += 1,
            _ => break,
        }
    }
    (digits > 0 && points <= 1).then(|| text.split_at(sign + digits + points))
}

/// The digits as an integer, and how many of them stand behind the point.
fn decimal(digits: &str) -> Option<(i128, u32)> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    let mantissa = match fraction {
        "" => Cow::Borrowed(whole),
        fraction => Cow::Owned(format!("{whole}{fraction}")),
    };
    let mantissa = if matches!(&*mantissa, "" | "+" | "-") { "0" } else { &mantissa };
    Some((mantissa.parse().ok()?, u32::try_from(fraction.len()).ok()?))
}

enum SuffixScale {
    Binary(u32),
    Decimal(i32),
}

impl SuffixScale {
    fn of(suffix: &str) -> Option<Self> {
        Some(match suffix {
            "" => Self::Decimal(0),
            "n" => Self::Decimal(-9),
            "u" => Self::Decimal(-6),
            "m" => Self::Decimal(-3),
            "k" => Self::Decimal(3),
            "M" => Self::Decimal(6),
            "G" => Self::Decimal(9),
            "T" => Self::Decimal(12),
            "P" => Self::Decimal(15),
            "E" => Self::Decimal(18),
            "Ki" => Self::Binary(10),
            "Mi" => Self::Binary(20),
            "Gi" => Self::Binary(30),
            "Ti" => Self::Binary(40),
            "Pi" => Self::Binary(50),
            "Ei" => Self::Binary(60),
            _ => Self::Decimal(suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
        })
    }

    /// `mantissa` × 10^-`fraction_digits` × this scale in billionths, if that is a whole number in range.
    fn nanos(&self, mantissa: i128, fraction_digits: u32) -> Option<i128> {
        let fraction_digits = i32::try_from(fraction_digits).ok()?;
        let (mantissa, power) = match *self {
            Self::Binary(bits) => (mantissa.checked_mul(1_i128 << bits)?, 9 - fraction_digits),
            Self::Decimal(power) => (mantissa, power.checked_add(9)?.checked_sub(fraction_digits)?),
        };
        if mantissa == 0 {
            return Some(0);
        }
        let factor = 10_i128.checked_pow(power.unsigned_abs())?;
        let nanos = if power >= 0 {
            mantissa.checked_mul(factor)?
        } else {
            (mantissa % factor == 0).then(|| mantissa / factor)?
        };
        (nanos.unsigned_abs() <= (1_u128 << 63) * NANO.unsigned_abs()).then_some(nanos)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Quantity;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a quantity: a string such as \"500m\" or \"8Gi\", or a number")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
                Ok(Quantity(text.into()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_compact_string()))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_compact_string()))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_compact_string()))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Option<i128> {
        Quantity::from(text).amount().ok().and_then(Amount::whole)
    }

    #[test]
    fn every_spelling_of_a_number_reads_as_the_same_number() {
        for text in
            ["8000", "8k", "8e3", "8E3", "+8000", "8000.0", "8000000m", "0.008M", "008k", "80e2", "8000."]
        {
            assert_eq!(whole(text), Some(8000), "{text}");
        }
        assert_eq!(whole("16Gi"), Some(16 << 30));
        assert_eq!(whole("1E"), Some(1_000_000_000_000_000_000));
        assert_eq!(whole("999999999999999999"), Some(999_999_999_999_999_999));
        assert_eq!(whole("1000000000000000000"), Some(1_000_000_000_000_000_000));
        assert_eq!(whole("000000000000000000000007"), Some(7));
        assert_eq!(whole("1.5Ki"), Some(1536));
        assert_eq!(whole("-5"), Some(-5));
        assert_eq!(whole("-0.5Ki"), Some(-512));
        assert_eq!(whole(".5k"), Some(500));
    }

    #[test]
    fn an_amount_is_written_with_the_largest_binary_suffix_that_is_exact() {
        for (text, written) in [
            ("4Gi", "4Gi"),
            ("4096Mi", "4Gi"),
            ("1536Mi", "1536Mi"),
            ("1000", "1000"),
            ("0", "0"),
            ("500m", "1"),
            ("-2Ki", "-2Ki"),
            ("6Ei", "6Ei"),
        ] {
            assert_eq!(Quantity::from(text).amount().unwrap().binary().as_str(), written);
        }
    }

    #[test]
    fn an_amount_is_written_exactly_and_rounded_up_to_some_steps_from_another() {
        let amount = |text: &str| Quantity::from(text).amount().unwrap();
        for (text, written) in [("4096Mi", "4Gi"), ("1.5", "1500m"), ("0.25u", "250n"), ("-0.5", "-500m")] {
            assert_eq!(amount(text).exact().as_str(), written);
        }
        for (asked, from, step, given) in [
            ("1.2", "500m", "250m", "1.25"),
            ("1.25", "500m", "250m", "1.25"),
            ("7", "1", "4", "9"),
            ("1", "1", "4", "1"),
            ("1n", "0", "1", "1"),
        ] {
            assert_eq!(amount(asked).rounded_up(amount(from), amount(step)), amount(given), "{asked}");
        }
    }

    #[test]
    fn a_fraction_is_read_but_is_not_whole() {
        let half = Quantity::from("500m").amount().unwrap();
        assert_eq!(half.whole(), None);
        assert_eq!(half.units_rounded_up(), 1);
        assert_eq!(half.millis_rounded_up(), 500);
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in ["", "k", "1.2.3", "0x10", "1 Gi", "1gi", "e3", "1e", "--1", "1Kib", "NaN", "."] {
            assert!(matches!(Quantity::from(text).amount(), Err(UnreadableQuantity::Malformed(_))), "{text}");
        }
        for text in ["1e40", "99999999999999999999999999999999999999999", "1e2147483647", "1e-12"] {
            assert!(
                matches!(Quantity::from(text).amount(), Err(UnreadableQuantity::OutOfRange(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn of_a_long_text_an_excerpt_is_told() {
        for text in ["x".repeat(100_000), "9".repeat(100_000)] {
            let told = Quantity::from(text).amount().unwrap_err().to_string();
            assert!(told.len() < 200 && told.contains(" more characters)` is "), "{told}");
        }
    }
}
