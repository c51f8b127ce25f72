//! `string(value)`, and `text.format(list)` as Kubernetes' selectors have it: version 2 of cel-go's functions of texts (cel-go `ext/formatting.go`), which writes numbers for
//! readers of English. The crate has that of version 4, and writes large and small
//! numbers without an exponent.
#![expect(clippy::needless_pass_by_value, reason = "the crate has one type for all functions")]

use cel::{
    DeclarationError, Env, ExecutionError,
    common::{
        types::{
            CelBool, CelBytes, CelDouble, CelInt, CelString, CelType, CelUInt, DYN_TYPE, Kind, LIST_TYPE,
            STRING_TYPE,
        },
        value::{CowVal, Val},
    },
};

use super::{
    list::{self, Called},
    map, unreadable,
};
use crate::dra::cel::value::{CelAddress, CelDuration, CelNetwork, CelTimestamp, quoted};

/// How many digits a number has behind the point if a text does not say.
const USUAL_PRECISION: usize = 6;

/// The largest precision that is served. Go writes zeros otherwise from 256 on.
const LARGEST_PRECISION: usize = 255;

/// Small digits above the line, as exponents have them.
const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(super::FORMAT, "format(string,list)", vec![STRING_TYPE, LIST_TYPE], format)?;
    env.add_overload(super::STRING, "string(dyn)", vec![DYN_TYPE], string)
}

/// `string(value)` (cel-go `common/stdlib/standard.go`, and Kubernetes' `ip.go` and `cidr.go`).
fn string<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Called<'b, 'v> {
    let value = arguments[0].as_ref();
    let kind = value.get_type();
    let text = if let Some(address) = value.downcast_ref::<CelAddress>() {
        address.0.to_string()
    } else if let Some(network) = value.downcast_ref::<CelNetwork>() {
        network.to_string()
    } else if matches!(kind.kind(), Kind::List | Kind::Map | Kind::NullType | Kind::Type) {
        return Err(ExecutionError::no_such_overload("string", vec![kind.name().to_owned()]));
    } else {
        plain(value).map_err(|reason| unreadable("string", reason))?
    };
    Ok(CowVal::owned(CelString::from(text)))
}

fn format<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Called<'b, 'v> {
    let text = arguments[0].downcast_ref::<CelString>();
    let text = text.ok_or_else(|| unreadable("format", "the value is no text"))?;
    let values = list::of(&*arguments[1], "format")?;
    let written = formatted(text.inner(), &values).map_err(|reason| unreadable("format", reason))?;
    Ok(CowVal::owned(CelString::from(written)))
}

/// The text with a value at each `%` and letter. Values that are left over do not matter.
fn formatted(text: &str, values: &[&dyn Val]) -> Result<String, String> {
    let mut values = values.iter();
    let mut written = String::with_capacity(text.len());
    let mut parts = text.split('%');
    written.push_str(parts.next().unwrap_or_default());
    while let Some(part) = parts.next() {
        // `%%` has nothing in between, and so has a `%` at the end.
        if part.is_empty()
            && let Some(next) = parts.next()
        {
            written.push('%');
            written.push_str(next);
            continue;
        }
        let value = *values.next().ok_or("there are fewer values than the text asks for")?;
        let (precision, rest) = precision(part)?;
        let mut rest = rest.chars();
        let letter = rest.next().ok_or("the text ends with %")?;
        written.push_str(&converted(value, letter, precision)?);
        written.push_str(rest.as_str());
    }
    Ok(written)
}

/// The number behind a point at the beginning, and what follows.
fn precision(text: &str) -> Result<(Option<usize>, &str), String> {
    let Some(number) = text.strip_prefix('.') else { return Ok((None, text)) };
    let (digits, rest) =
        number.split_at(number.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(number.len()));
    let precision = digits.parse().map_err(|error| format!("the precision {digits:?}: {error}"))?;
    if precision > LARGEST_PRECISION {
        return Err(format!("the precision is {precision}, and {LARGEST_PRECISION} is served"));
    }
    Ok((Some(precision), rest))
}

fn converted(value: &dyn Val, letter: char, precision: Option<usize>) -> Result<String, String> {
    let precision = precision.unwrap_or(USUAL_PRECISION);
    let whole = Whole::of(value);
    let written = match letter {
        's' => return plain(value),
        'd' => whole.map(|number| number.written(|digits| digits.to_string())),
        'b' => match value.downcast_ref::<CelBool>() {
            Some(truth) => Some(u8::from(*truth.inner()).to_string()),
            None => whole.map(|number| number.written(|digits| format!("{digits:b}"))),
        },
        'o' => whole.map(|number| number.written(|digits| format!("{digits:o}"))),
        'x' => hexadecimal(value),
        'X' => hexadecimal(value).map(|written| written.to_ascii_uppercase()),
        'f' => fraction(value).map(|number| fixed(number, precision)),
        'e' => fraction(value).map(|number| format!("{:>precision$}", scientific(number))),
        _ => return Err(format!("%{letter} means nothing")),
    };
    written.ok_or_else(|| format!("%{letter} can't be used for a value of type {}", value.get_type().name()))
}

/// A whole number, with or without a sign.
#[derive(Clone, Copy)]
struct Whole {
    is_negative: bool,
    digits: u64,
}

impl Whole {
    fn of(value: &dyn Val) -> Option<Self> {
        if let Some(number) = value.downcast_ref::<CelUInt>() {
            return Some(Self { is_negative: false, digits: *number.inner() });
        }
        let number = *value.downcast_ref::<CelInt>()?.inner();
        Some(Self { is_negative: number < 0, digits: number.unsigned_abs() })
    }

    fn written(self, digits: impl FnOnce(u64) -> String) -> String {
        let sign = if self.is_negative { "-" } else { "" };
        sign.to_owned() + &digits(self.digits)
    }
}

fn hexadecimal(value: &dyn Val) -> Option<String> {
    let bytes = |bytes: &[u8]| {
        let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
        digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
    };
    if let Some(text) = value.downcast_ref::<CelString>() {
        return Some(bytes(text.inner().as_bytes()));
    }
    if let Some(value) = value.downcast_ref::<CelBytes>() {
        return Some(bytes(value.inner()));
    }
    Whole::of(value).map(|number| number.written(|digits| format!("{digits:x}")))
}

/// A number with a fraction, or one of the texts that stand for what is none.
fn fraction(value: &dyn Val) -> Option<f64> {
    if let Some(number) = value.downcast_ref::<CelDouble>() {
        return Some(*number.inner());
    }
    match value.downcast_ref::<CelString>()?.inner() {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// With a comma between each three digits in front of the point.
fn fixed(number: f64, precision: usize) -> String {
    if let Some(special) = special(number) {
        return special.to_owned();
    }
    // Without the sign of -0, which Go leaves out.
    let number = if number == 0.0 { 0.0 } else { number };
    let digits = format!("{:.precision$}", number.abs());
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut written = String::with_capacity(digits.len() * 2);
    if number < 0.0 {
        written.push('-');
    }
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            written.push(',');
        }
        written.push(digit);
    }
    written + rest
}

/// With six digits behind the point, whatever the precision is: cel-go takes that for a width.
fn scientific(number: f64) -> String {
    if let Some(special) = special(number) {
        return special.to_owned();
    }
    let number = if number == 0.0 { 0.0 } else { number };
    let written = format!("{number:.USUAL_PRECISION$e}");
    let (digits, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(("", exponent), |exponent| ("⁻", exponent));
    let exponent = format!("{exponent:0>2}");
    let raised = exponent.bytes().map(|digit| RAISED[usize::from(digit - b'0')]);
    format!("{digits}×10{sign}{}", raised.collect::<String>())
}

fn special(number: f64) -> Option<&'static str> {
    match number {
        _ if number.is_nan() => Some("NaN"),
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        _ => None,
    }
}

/// What `%s` writes.
fn plain(value: &dyn Val) -> Result<String, String> {
    match value.downcast_ref::<CelDouble>() {
        Some(number) => Ok(shortest(*number.inner())),
        None => written(value, Place::Alone),
    }
}

/// Where a value is written.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Place {
    Alone,
    /// In a list or a map, as CEL spells it.
    Inside,
}

fn written(value: &dyn Val, place: Place) -> Result<String, String> {
    let inside = |text: String, spelled: fn(&str) -> String| match place {
        Place::Alone => text,
        Place::Inside => spelled(&text),
    };
    if let Some(number) = Whole::of(value) {
        return Ok(number.written(|digits| digits.to_string()));
    }
    if let Some(number) = value.downcast_ref::<CelDouble>() {
        return Ok(spelled_double(*number.inner()));
    }
    if let Some(truth) = value.downcast_ref::<CelBool>() {
        return Ok(truth.inner().to_string());
    }
    if let Some(text) = value.downcast_ref::<CelString>() {
        return Ok(inside(text.inner().to_owned(), |text| quoted(text.as_bytes())));
    }
    if let Some(bytes) = value.downcast_ref::<CelBytes>() {
        let text = std::str::from_utf8(bytes.inner()).map_err(|error| error.to_string())?;
        return Ok(inside(text.to_owned(), |text| format!("b{}", quoted(text.as_bytes()))));
    }
    if let Some(duration) = value.downcast_ref::<CelDuration>() {
        return Ok(inside(duration.to_string(), |text| format!("duration({})", quoted(text.as_bytes()))));
    }
    if let Some(time) = value.downcast_ref::<CelTimestamp>() {
        return Ok(inside(time.to_string(), |text| format!("timestamp({})", quoted(text.as_bytes()))));
    }
    if let Some(name) = value.downcast_ref::<CelType>() {
        return Ok(name.name().to_owned());
    }
    match value.get_type().kind() {
        Kind::NullType => Ok("null".to_owned()),
        Kind::List => list_of(value),
        Kind::Map => map_of(value),
        _ => Err(format!("a value of type {} can't be written", value.get_type().name())),
    }
}

fn list_of(value: &dyn Val) -> Result<String, String> {
    let elements = list::of(value, "format").map_err(|error| error.to_string())?;
    let elements = elements.into_iter().map(|element| written(element, Place::Inside));
    Ok(format!("[{}]", elements.collect::<Result<Vec<_>, _>>()?.join(", ")))
}

/// The entries are in the order of their keys, as they are written.
fn map_of(value: &dyn Val) -> Result<String, String> {
    let mut written_entries = Vec::new();
    for (key, value) in map::entries(value, "format").map_err(|error| error.to_string())? {
        written_entries.push((written(key, Place::Inside)?, written(&*value, Place::Inside)?));
    }
    written_entries.sort();
    let entries = written_entries.into_iter().map(|(key, value)| format!("{key}:{value}"));
    Ok(format!("{{{}}}", entries.collect::<Vec<_>>().join(", ")))
}

/// A number in a list or a map: six digits behind the point.
fn spelled_double(number: f64) -> String {
    match number {
        _ if number.is_nan() => r#""NaN""#.to_owned(),
        f64::INFINITY => r#""+Inf""#.to_owned(),
        f64::NEG_INFINITY => r#""-Inf""#.to_owned(),
        _ => format!("{number:.USUAL_PRECISION$}"),
    }
}

/// As few digits as tell a number from all others; with an exponent below -4 and above 5 (Go 1.26 `strconv/ftoa.go`, `%g`).
fn shortest(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let written = format!("{number:e}");
    let (digits, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    match (sign, exponent) {
        ('+', "0" | "1" | "2" | "3" | "4" | "5") | ('-', "1" | "2" | "3" | "4") => number.to_string(),
        _ => format!("{digits}e{sign}{exponent:0>2}"),
    }
}
