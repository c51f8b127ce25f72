//! Durations and timestamps, as cel-go has them (`common/types/duration.go` and `timestamp.go`): nanoseconds in 64 bits, and the years 1 to 9999.

use std::{any::Any, cmp::Ordering, fmt};

use cel::{
    ExecutionError,
    common::{
        traits::{Adder, Comparer, Subtractor},
        types::Type,
        value::{CowVal, StaticVal, Val},
    },
};
use jiff::{
    SignedDuration, Timestamp,
    civil::{DateTime, date},
    tz::TimeZoneDatabase,
};

use super::is_value;

const SECOND: i128 = 1_000_000_000;
/// 0001-01-01T00:00:00Z.
const FIRST_SECOND: i64 = -62_135_596_800;
/// 9999-12-31T23:59:59Z.
const LAST_SECOND: i64 = 253_402_300_799;
const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

/// A number of nanoseconds.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::dra::cel) struct CelDuration(pub(in crate::dra::cel) i64);

/// A point in time.
#[derive(Clone, Copy, Debug)]
pub(in crate::dra::cel) struct CelTimestamp {
    /// Since 1970.
    nanoseconds: i128,
    /// How many seconds the clock that it was read from is ahead of UTC: it is written in that clock's time.
    offset: i64,
}

impl CelDuration {
    /// Reads a duration as Go does; `None`: the text is none.
    pub(in crate::dra::cel) fn parse(text: &str) -> Option<Self> {
        let duration = crate::object::duration::parse(text)?;
        duration.as_nanos().try_into().ok().map(Self)
    }

    fn within(nanoseconds: i128, operator: &str) -> Result<Self, ExecutionError> {
        let nanoseconds = i64::try_from(nanoseconds);
        nanoseconds.map(Self).map_err(|_| ExecutionError::function_error(operator, "duration overflow"))
    }
}

impl fmt::Display for CelDuration {
    #[expect(clippy::cast_precision_loss, reason = "Go's seconds are of 53 bits as well")]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, rest) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        write!(formatter, "{}s", seconds as f64 + rest as f64 / 1e9)
    }
}

impl CelTimestamp {
    /// The time so many seconds after 1970 began.
    pub(in crate::dra::cel) fn of_seconds(seconds: i64) -> Result<Self, ExecutionError> {
        Self { nanoseconds: 0, offset: 0 }.at(i128::from(seconds) * SECOND, "timestamp")
    }

    /// Reads a time of RFC 3339; `None`: the text is none.
    pub(in crate::dra::cel) fn parse(text: &str) -> Option<Self> {
        let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
        let is_mark = |(at, mark): (usize, u8)| text.as_bytes().get(at) == Some(&mark);
        if !text.is_ascii() || text.len() < 20 || !marks.into_iter().all(is_mark) {
            return None;
        }
        let part = |from: usize, to: usize| digits(&text[from..to]);
        let small = |from: usize| part(from, from + 2).and_then(|number| i8::try_from(number).ok());
        let day = (i16::try_from(part(0, 4)?).ok()?, small(5)?, small(8)?);
        let (hour, minute, second) = (small(11)?, small(14)?, small(17)?);
        let mut zone = &text[19..];
        let mut fraction = 0;
        if let Some(rest) = zone.strip_prefix(['.', ',']) {
            let end = rest.find(|next: char| !next.is_ascii_digit())?;
            let nine: String = rest[..end].chars().chain("000000000".chars()).take(9).collect();
            fraction = i32::try_from(digits(&nine).filter(|_| end > 0)?).ok()?;
            zone = &rest[end..];
        }
        let clock = DateTime::new(day.0, day.1, day.2, hour, minute, second, fraction).ok()?;
        let offset = offset(zone)?;
        let nanoseconds = EPOCH.duration_until(clock).as_nanos() - i128::from(offset) * SECOND;
        Self { nanoseconds, offset }.checked()
    }

    /// Itself, if it is in the years that CEL has.
    fn checked(self) -> Option<Self> {
        (FIRST_SECOND..=LAST_SECOND).contains(&self.seconds()).then_some(self)
    }

    /// Another time, by the same clock.
    fn at(self, nanoseconds: i128, operator: &str) -> Result<Self, ExecutionError> {
        let error = || ExecutionError::function_error(operator, "timestamp overflow");
        Self { nanoseconds, ..self }.checked().ok_or_else(error)
    }

    /// How many seconds have passed since 1970.
    pub(in crate::dra::cel) fn seconds(self) -> i64 {
        i64::try_from(self.nanoseconds.div_euclid(SECOND)).unwrap_or(i64::MAX)
    }

    /// What a clock shows that is so many seconds ahead of UTC.
    fn clock(self, offset: i64) -> Option<DateTime> {
        let fraction = i32::try_from(self.nanoseconds.rem_euclid(SECOND)).ok()?;
        EPOCH.checked_add(SignedDuration::new(self.seconds().checked_add(offset)?, fraction)).ok()
    }

    /// What a clock shows in UTC.
    pub(in crate::dra::cel) fn utc(self) -> Option<DateTime> {
        self.clock(0)
    }

    /// What a clock shows in a time zone: a name, or how far it is ahead of UTC as `hh:mm`.
    pub(in crate::dra::cel) fn local(self, zone: &str) -> Option<DateTime> {
        let offset = match zone.split_once(':') {
            Some((hours, minutes)) => {
                let (hours, minutes): (i16, i16) = (hours.parse().ok()?, minutes.parse().ok()?);
                let sign = if zone.starts_with('-') { -1 } else { 1 };
                (i64::from(hours) * 60 + sign * i64::from(minutes)) * 60
            }
            None if zone.is_empty() => 0,
            None => {
                // Those that the program holds, so that a selector has the same value on every machine.
                let zones = TimeZoneDatabase::bundled();
                let zone = zones.get(zone).ok().filter(|found| found.iana_name() == Some(zone))?;
                let end = if self.nanoseconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
                zone.to_offset(Timestamp::from_second(self.seconds()).unwrap_or(end)).seconds().into()
            }
        };
        self.clock(offset)
    }
}

/// The number that these digits are.
fn digits(text: &str) -> Option<u32> {
    text.bytes().all(|digit| digit.is_ascii_digit()).then(|| text.parse().ok())?
}

/// How many seconds a zone of RFC 3339 is ahead of UTC.
fn offset(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let (sign, rest) = zone.split_at_checked(1)?;
    let sign = match sign {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':').filter(|_| rest.len() == 5)?;
    let (hours, minutes) = (digits(hours)?, digits(minutes)?);
    (hours <= 24 && minutes <= 60).then(|| sign * i64::from(hours * 60 + minutes) * 60)
}

impl fmt::Display for CelTimestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clock = self.clock(self.offset).ok_or(fmt::Error)?;
        let (year, month, day) = (clock.year(), clock.month(), clock.day());
        let (hour, minute, second) = (clock.hour(), clock.minute(), clock.second());
        write!(formatter, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        let fraction = format!("{:09}", clock.subsec_nanosecond());
        match fraction.trim_end_matches('0') {
            "" => {}
            fraction => write!(formatter, ".{fraction}")?,
        }
        match self.offset {
            0 => formatter.write_str("Z"),
            offset => {
                let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
                write!(formatter, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
        }
    }
}

impl PartialEq for CelTimestamp {
    fn eq(&self, other: &Self) -> bool {
        self.nanoseconds == other.nanoseconds
    }
}

fn no_overload(operator: &str, left: &dyn Val, right: &dyn Val) -> ExecutionError {
    let types = [left, right].map(|value| value.get_type().name().to_owned());
    ExecutionError::no_such_overload(operator, types.to_vec())
}

impl Adder for CelDuration {
    fn add<'b, 'v>(&'b self, right: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        if let Some(time) = right.downcast_ref::<CelTimestamp>() {
            return time.at(time.nanoseconds + i128::from(self.0), "_+_").map(CowVal::owned);
        }
        let other = right.downcast_ref::<Self>().ok_or_else(|| no_overload("_+_", self, right))?;
        Self::within(i128::from(self.0) + i128::from(other.0), "_+_").map(CowVal::owned)
    }
}

impl Subtractor for CelDuration {
    fn sub<'b, 'v>(&'b self, right: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let other = right.downcast_ref::<Self>().ok_or_else(|| no_overload("_-_", self, right))?;
        Self::within(i128::from(self.0) - i128::from(other.0), "_-_").map(CowVal::owned)
    }
}

impl Comparer for CelDuration {
    fn compare(&self, right: &dyn Val) -> Result<Ordering, ExecutionError> {
        let other = right.downcast_ref::<Self>().ok_or_else(|| no_overload("_<_", self, right))?;
        Ok(self.cmp(other))
    }
}

impl Adder for CelTimestamp {
    fn add<'b, 'v>(&'b self, right: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let CelDuration(after) =
            right.downcast_ref::<CelDuration>().ok_or_else(|| no_overload("_+_", self, right))?;
        self.at(self.nanoseconds + i128::from(*after), "_+_").map(CowVal::owned)
    }
}

impl Subtractor for CelTimestamp {
    fn sub<'b, 'v>(&'b self, right: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        if let Some(other) = right.downcast_ref::<Self>() {
            return CelDuration::within(self.nanoseconds - other.nanoseconds, "_-_").map(CowVal::owned);
        }
        let CelDuration(before) =
            right.downcast_ref::<CelDuration>().ok_or_else(|| no_overload("_-_", self, right))?;
        self.at(self.nanoseconds - i128::from(*before), "_-_").map(CowVal::owned)
    }
}

impl Comparer for CelTimestamp {
    fn compare(&self, right: &dyn Val) -> Result<Ordering, ExecutionError> {
        let other = right.downcast_ref::<Self>().ok_or_else(|| no_overload("_<_", self, right))?;
        Ok(self.nanoseconds.cmp(&other.nanoseconds))
    }
}

is_value!(CelDuration, "google.protobuf.Duration", arithmetic);
is_value!(CelTimestamp, "google.protobuf.Timestamp", arithmetic);
