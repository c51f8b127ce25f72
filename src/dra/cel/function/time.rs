//! Functions of durations and timestamps (cel-go `common/stdlib/standard.go`). A timestamp's parts are those of UTC where no time zone is named.
#![expect(clippy::trivially_copy_pass_by_ref, reason = "the crate hands over every argument by reference")]

use cel::{
    DeclarationError, Env, ExecutionError, add_member_overload, add_overload,
    common::types::{CelInt, CelString},
};
use jiff::civil::DateTime;

use super::unreadable;
use crate::dra::cel::value::{CelDuration, CelTimestamp};

/// A part of what a clock shows, under the name of the function that answers it.
macro_rules! add_part {
    ($env:expr, $name:literal, $part:expr) => {{
        fn in_utc(this: &CelTimestamp) -> Result<CelInt, ExecutionError> {
            part($name, this.utc(), $part)
        }
        fn in_zone(this: &CelTimestamp, zone: &CelString<'_>) -> Result<CelInt, ExecutionError> {
            part($name, this.local(zone.inner()), $part)
        }
        add_member_overload!($env, fn in_utc: (CelTimestamp) -> Result<CelInt>, name = $name)?;
        add_member_overload!($env, fn in_zone: (CelTimestamp, CelString) -> Result<CelInt>, name = $name)?;
    }};
}

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    add_overload!(env, fn duration: (CelString) -> Result<CelDuration>)?;
    add_overload!(env, fn same_duration: (CelDuration) -> CelDuration, name = "duration")?;
    add_overload!(env, fn number_of_duration: (CelDuration) -> CelInt, name = "int")?;
    add_member_overload!(env, fn get_hours: (CelDuration) -> CelInt)?;
    add_member_overload!(env, fn get_minutes: (CelDuration) -> CelInt)?;
    add_member_overload!(env, fn get_seconds: (CelDuration) -> CelInt)?;
    add_member_overload!(env, fn get_milliseconds: (CelDuration) -> CelInt)?;
    add_overload!(env, fn timestamp: (CelString) -> Result<CelTimestamp>)?;
    add_overload!(env, fn timestamp_of_number: (CelInt) -> Result<CelTimestamp>, name = "timestamp")?;
    add_overload!(env, fn same_timestamp: (CelTimestamp) -> CelTimestamp, name = "timestamp")?;
    add_overload!(env, fn number_of_timestamp: (CelTimestamp) -> CelInt, name = "int")?;
    add_part!(env, "getFullYear", |clock| clock.year().into());
    add_part!(env, "getMonth", |clock| i64::from(clock.month()) - 1);
    add_part!(env, "getDate", |clock| clock.day().into());
    add_part!(env, "getDayOfMonth", |clock| i64::from(clock.day()) - 1);
    add_part!(env, "getDayOfYear", |clock| i64::from(clock.day_of_year()) - 1);
    add_part!(env, "getDayOfWeek", |clock| clock.weekday().to_sunday_zero_offset().into());
    add_part!(env, "getHours", |clock| clock.hour().into());
    add_part!(env, "getMinutes", |clock| clock.minute().into());
    add_part!(env, "getSeconds", |clock| clock.second().into());
    add_part!(env, "getMilliseconds", |clock| clock.millisecond().into());
    Ok(())
}

fn part(
    function: &str,
    clock: Option<DateTime>,
    part: fn(DateTime) -> i64,
) -> Result<CelInt, ExecutionError> {
    let clock = clock.ok_or_else(|| unreadable(function, "the time zone is unknown"))?;
    Ok(part(clock).into())
}

fn duration(text: &CelString<'_>) -> Result<CelDuration, ExecutionError> {
    CelDuration::parse(text.inner()).ok_or_else(|| unreadable("duration", "the text is no duration"))
}

fn same_duration(this: &CelDuration) -> CelDuration {
    *this
}

fn number_of_duration(this: &CelDuration) -> CelInt {
    this.0.into()
}

fn get_hours(this: &CelDuration) -> CelInt {
    (this.0 / 3_600_000_000_000).into()
}

fn get_minutes(this: &CelDuration) -> CelInt {
    (this.0 / 60_000_000_000).into()
}

fn get_seconds(this: &CelDuration) -> CelInt {
    (this.0 / 1_000_000_000).into()
}

fn get_milliseconds(this: &CelDuration) -> CelInt {
    (this.0 / 1_000_000).into()
}

fn timestamp(text: &CelString<'_>) -> Result<CelTimestamp, ExecutionError> {
    CelTimestamp::parse(text.inner())
        .ok_or_else(|| unreadable("timestamp", "the text is no time of RFC 3339"))
}

fn timestamp_of_number(seconds: &CelInt) -> Result<CelTimestamp, ExecutionError> {
    CelTimestamp::of_seconds(*seconds.inner())
}

fn same_timestamp(this: &CelTimestamp) -> CelTimestamp {
    *this
}

fn number_of_timestamp(this: &CelTimestamp) -> CelInt {
    this.seconds().into()
}
