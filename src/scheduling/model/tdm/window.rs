//! The windows of one zone: on every day from one time to another, by the clock of a time zone.
//!
//! Each window is read day by day: a start and an end as the clock shows them become two instants. Where the clock is set forward past such
//! a time, the instant lies as far behind the change as the time lies behind the gap's beginning; where the clock shows it twice, the first
//! one counts (RFC 5545, section 3.3.5). So a window opens at most once for each day, and no change of the clock interrupts it.

use std::{fmt, str::FromStr};

use jiff::{SignedDuration, Timestamp, ToSpan, civil, tz::TimeZone};

/// So many days after a time are looked at for the next change. A window can be missing on days on which the clock skips it.
const AHEAD: i8 = 8;

/// A time of the day, in whole minutes after midnight; 24:00 is the midnight that follows.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TimeOfDay(u16);

impl TimeOfDay {
    /// The time that the clock of a time zone shows, without its seconds.
    pub fn at(time: Timestamp, zone: &TimeZone) -> Self {
        let time = zone.to_datetime(time);
        Self(u16::from(time.hour().unsigned_abs()) * 60 + u16::from(time.minute().unsigned_abs()))
    }

    /// The instant at which the clock shows this on a day; `None`: outside of what can be counted.
    fn on(self, day: civil::Date, zone: &TimeZone) -> Option<Timestamp> {
        let midnight = day.to_datetime(civil::Time::midnight());
        let time = midnight.checked_add(i64::from(self.0).minutes()).ok()?;
        zone.to_ambiguous_timestamp(time).compatible().ok()
    }
}

/// `01:00`.
impl fmt::Display for TimeOfDay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

/// From one time of the day up to another, which is not part of it. An end that is not after the start is on the next day.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Window {
    start: TimeOfDay,
    end: TimeOfDay,
}

/// A text that is not a window.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is not a window such as `1:00-4:00`")]
pub struct UnreadableWindow(String);

/// `H:MM-H:MM`: hours from 0 to 23 in one or two digits, minutes in two; the end may also be `24:00`. Blanks around it are passed over.
impl FromStr for Window {
    type Err = UnreadableWindow;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = || {
            let (start, end) = text.trim().split_once('-')?;
            let start = clock(start).filter(|start| start.0 < 24 * 60)?;
            Some(Self { start, end: clock(end)? })
        };
        read().ok_or_else(|| UnreadableWindow(text.to_owned()))
    }
}

/// A time of the day up to `24:00`.
fn clock(text: &str) -> Option<TimeOfDay> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |digits: &str| {
        let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        plain.then(|| digits.parse::<u16>().ok()).flatten()
    };
    let sized = hours.len() <= 2 && minutes.len() == 2;
    let (hours, minutes) = (number(hours)?, number(minutes).filter(|minutes| *minutes < 60)?);
    Some(TimeOfDay(hours * 60 + minutes)).filter(|clock| sized && clock.0 <= 24 * 60)
}

/// As Volcano writes it, hours without a leading zero: `1:00-4:00`.
impl fmt::Display for Window {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |clock: TimeOfDay| format!("{}:{:02}", clock.0 / 60, clock.0 % 60);
        write!(formatter, "{}-{}", time(self.start), time(self.end))
    }
}

impl Window {
    /// How long it is open on a day on which the clock is not changed.
    pub fn length(self) -> SignedDuration {
        let (start, end) = (i64::from(self.start.0), i64::from(self.end.0));
        let minutes = if start < end { end - start } else { 24 * 60 - start + end };
        SignedDuration::from_mins(minutes)
    }

    /// When it opens on a day, and when it closes after that; `None`: on this day the clock skips it.
    fn on(self, day: civil::Date, zone: &TimeZone) -> Option<(Timestamp, Timestamp)> {
        let last = if self.start < self.end { day } else { day.tomorrow().ok()? };
        let (start, end) = (self.start.on(day, zone)?, self.end.on(last, zone)?);
        (start < end).then_some((start, end))
    }
}

/// Whether a zone takes pods, and until when.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum WindowState {
    /// It does until then; `None`: always.
    Open(Option<Timestamp>),
    /// It does not until then; `None`: never.
    Closed(Option<Timestamp>),
}

/// How windows stand at a time, where the last part of each, this long, counts as closed: pods leave within it. Windows that touch or
/// overlap are one.
pub fn state_of(windows: &[Window], zone: &TimeZone, grace: SignedDuration, now: Timestamp) -> WindowState {
    for (start, end) in usable(windows, zone, grace, now) {
        if start > now {
            return WindowState::Closed(Some(start));
        }
        if end.is_none_or(|end| end > now) {
            return WindowState::Open(end);
        }
    }
    WindowState::Closed(None)
}

/// When windows have closed last before a time; `None`: that was not in the days before.
pub fn last_closed(
    windows: &[Window],
    zone: &TimeZone,
    grace: SignedDuration,
    now: Timestamp,
) -> Option<Timestamp> {
    usable(windows, zone, grace, now).filter_map(|(_, end)| end.filter(|end| *end <= now)).last()
}

/// From when to when pods are placed, around a time, in order; no end: always.
fn usable(
    windows: &[Window],
    zone: &TimeZone,
    grace: SignedDuration,
    now: Timestamp,
) -> impl Iterator<Item = (Timestamp, Option<Timestamp>)> {
    spans(windows, zone, now).into_iter().filter_map(move |(start, end)| match end {
        SpanEnd::At(end) => {
            let end = end.checked_sub(grace).ok().filter(|end| start < *end)?;
            Some((start, Some(end)))
        }
        SpanEnd::Beyond => Some((start, None)),
    })
}

/// Where a span of open time ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum SpanEnd {
    At(Timestamp),
    /// Behind all days that are looked at.
    Beyond,
}

/// The spans of open time from two days before a time to some days after it, in order; between two of them all windows are closed.
fn spans(windows: &[Window], zone: &TimeZone, now: Timestamp) -> Vec<(Timestamp, SpanEnd)> {
    let today = zone.to_datetime(now).date();
    let days: Vec<_> =
        (-2..=AHEAD).filter_map(|days| today.checked_add(i64::from(days).days()).ok()).collect();
    let on =
        |day: &civil::Date| windows.iter().filter_map(|window| window.on(*day, zone)).collect::<Vec<_>>();
    let mut open: Vec<_> = days.iter().flat_map(on).collect();
    open.sort_unstable();
    let mut spans: Vec<(Timestamp, Timestamp)> = Vec::new();
    for (start, end) in open {
        match spans.last_mut() {
            Some((_, last)) if start <= *last => *last = end.max(*last),
            _ => spans.push((start, end)),
        }
    }
    let horizon = days.last().and_then(|day| TimeOfDay(0).on(*day, zone)).unwrap_or(now);
    let end = |end: Timestamp| if end > horizon { SpanEnd::Beyond } else { SpanEnd::At(end) };
    // What reaches behind the last day and has only just begun is no span without an end: it has been looked at in part.
    let known = |(start, last): &(Timestamp, Timestamp)| end(*last) != SpanEnd::Beyond || *start <= now;
    spans.into_iter().filter(known).map(|(start, last)| (start, end(last))).collect()
}

#[cfg(test)]
mod tests;
