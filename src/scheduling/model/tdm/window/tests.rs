//! When windows open and close: by the clock on the wall over a year, around changes of that clock, and with a grace period.

use super::*;

const ZONES: [&str; 3] = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"];
const WINDOWS: [&str; 4] = ["1:00-4:00", "22:00-6:00", "0:00-23:59", "8:30-24:00"];

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap()
}

fn windows(text: &str) -> Vec<Window> {
    text.split(',').map(|window| window.parse().unwrap()).collect()
}

/// The instant at which the clock of a zone shows this, the first time.
fn at(zone: &TimeZone, time: &str) -> Timestamp {
    zone.to_timestamp(time.parse::<civil::DateTime>().unwrap()).unwrap()
}

fn instant(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn a_window_is_two_times_of_the_day() {
    for (text, hours) in
        [("1:00-4:00", 3), ("22:00-6:00", 8), ("  1:00-0:00 ", 23), ("23:59-23:59", 24), ("0:00-24:00", 24)]
    {
        let window: Window = text.parse().unwrap();
        assert_eq!(window.length(), SignedDuration::from_hours(hours), "{text}");
        assert_eq!(window.to_string(), text.trim());
    }
    for text in [
        "",
        "1:00",
        "1:00_4:00",
        "1:0-4:00",
        "24:00-4:00",
        "1:00-24:01",
        "1:00-4:60",
        "1:00 - 4:00",
        "١:00-4:00",
        "1:00-4:00-5:00",
        "001:00-4:00",
        ":00-4:00",
        "+1:00-4:00",
        "63:59-23:59",
    ] {
        assert!(text.parse::<Window>().is_err(), "{text}");
    }
}

/// Whether the clock shows a time that is in the window, as a reader of the clock on the wall would say.
fn on_the_wall(window: Window, zone: &TimeZone, now: Timestamp) -> bool {
    let shown = TimeOfDay::at(now, zone);
    if window.start < window.end {
        window.start <= shown && shown < window.end
    } else {
        shown >= window.start || shown < window.end
    }
}

#[test]
fn over_a_year_a_window_is_open_by_local_time() {
    for zone in ZONES.map(zone) {
        let (first, last) = (at(&zone, "2026-01-01T00:00"), at(&zone, "2027-01-01T00:00"));
        let changes: Vec<_> = zone.following(first).map(|change| change.timestamp()).take(2).collect();
        let near_a_change = |now: Timestamp| {
            changes.iter().any(|change| now.duration_since(*change).abs() < SignedDuration::from_hours(24))
        };
        for window in WINDOWS.map(|text| text.parse::<Window>().unwrap()) {
            let (mut now, mut compared) = (first, 0);
            while now < last {
                if !near_a_change(now) {
                    let open =
                        matches!(state_of(&[window], &zone, SignedDuration::ZERO, now), WindowState::Open(_));
                    assert_eq!(open, on_the_wall(window, &zone, now), "{window} at {now}");
                    compared += 1;
                }
                now += SignedDuration::from_mins(17);
            }
            assert!(compared > 30_000, "{compared}");
        }
    }
}

#[test]
fn over_a_year_each_change_is_known_beforehand_and_comes_once_a_day() {
    for zone in ZONES.map(zone) {
        let (first, last) = (at(&zone, "2026-01-01T12:00"), at(&zone, "2027-01-01T12:00"));
        for window in
            ["1:00-4:00", "22:00-6:00", "2:10-2:50", "8:30-9:00"].map(|text| text.parse::<Window>().unwrap())
        {
            let (mut now, mut opened, mut closed) = (first, 0, 0);
            let state = |now| state_of(&[window], &zone, SignedDuration::ZERO, now);
            while now < last {
                let (open, next) = match state(now) {
                    WindowState::Open(at) => (true, at.unwrap()),
                    WindowState::Closed(at) => (false, at.unwrap()),
                };
                assert!(next > now, "{window} at {now}");
                // Nothing changes before.
                let before = next - SignedDuration::from_nanos(1);
                assert_eq!(matches!(state(before), WindowState::Open(_)), open, "{window} at {before}");
                if next < last {
                    let count = if open { &mut closed } else { &mut opened };
                    *count += 1;
                }
                now = next;
            }
            assert_eq!((opened, closed), (365, 365), "{window} in {zone:?}");
        }
    }
}

/// A time zone, a window, a time before it, and when it opens and closes next; `None`: not on that day.
type Change = (&'static str, &'static str, &'static str, Option<(&'static str, &'static str)>);

const CHANGES: &[Change] = &[
    // Set forward at 2:00, to 3:00: the window is an hour shorter.
    (
        "Europe/Berlin",
        "1:00-4:00",
        "2026-03-29T00:00",
        Some(("2026-03-29T00:00:00Z", "2026-03-29T02:00:00Z")),
    ),
    // Set back at 3:00, to 2:00: it is an hour longer, and not interrupted.
    (
        "Europe/Berlin",
        "1:00-4:00",
        "2026-10-25T00:00",
        Some(("2026-10-24T23:00:00Z", "2026-10-25T03:00:00Z")),
    ),
    // 2:30 comes twice: the first time counts.
    (
        "Europe/Berlin",
        "2:30-4:00",
        "2026-10-25T00:00",
        Some(("2026-10-25T00:30:00Z", "2026-10-25T03:00:00Z")),
    ),
    (
        "Europe/Berlin",
        "0:00-2:30",
        "2026-10-24T12:00",
        Some(("2026-10-24T22:00:00Z", "2026-10-25T00:30:00Z")),
    ),
    // 2:30 does not come: half an hour after the change counts.
    (
        "Europe/Berlin",
        "2:30-4:00",
        "2026-03-29T00:00",
        Some(("2026-03-29T01:30:00Z", "2026-03-29T02:00:00Z")),
    ),
    // From 3:30 to 3:45, since neither time comes.
    (
        "Europe/Berlin",
        "2:30-2:45",
        "2026-03-29T00:00",
        Some(("2026-03-29T01:30:00Z", "2026-03-29T01:45:00Z")),
    ),
    (
        "America/New_York",
        "22:00-6:00",
        "2026-03-07T12:00",
        Some(("2026-03-08T03:00:00Z", "2026-03-08T10:00:00Z")),
    ),
    (
        "America/New_York",
        "22:00-6:00",
        "2026-10-31T12:00",
        Some(("2026-11-01T02:00:00Z", "2026-11-01T11:00:00Z")),
    ),
    // Lord Howe sets its clocks by half an hour.
    (
        "Australia/Lord_Howe",
        "1:00-4:00",
        "2026-10-04T00:00",
        Some(("2026-10-03T14:30:00Z", "2026-10-03T17:00:00Z")),
    ),
    (
        "Australia/Lord_Howe",
        "1:00-4:00",
        "2026-04-05T00:00",
        Some(("2026-04-04T14:00:00Z", "2026-04-04T17:30:00Z")),
    ),
    // The window from 2:00 to 3:00 is all that the clock skips.
    ("Europe/Berlin", "2:00-3:00", "2026-03-29T00:00", None),
];

#[test]
fn a_clock_that_is_set_forward_or_back_moves_the_ends_of_windows() {
    for &(name, window, day, expected) in CHANGES {
        let (zone, windows) = (zone(name), windows(window));
        let state = |now| state_of(&windows, &zone, SignedDuration::ZERO, now);
        let from = at(&zone, day);
        let Some((start, end)) = expected else {
            let next = at(&zone, "2026-03-30T02:00");
            assert_eq!(state(from), WindowState::Closed(Some(next)), "{name} {window}");
            continue;
        };
        assert_eq!(state(from), WindowState::Closed(Some(instant(start))), "{name} {window}");
        assert_eq!(state(instant(start)), WindowState::Open(Some(instant(end))), "{name} {window}");
        assert!(matches!(state(instant(end)), WindowState::Closed(_)), "{name} {window}");
    }
}

#[test]
fn windows_that_touch_or_overlap_are_one() {
    let utc = TimeZone::UTC;
    let state = |text: &str, now: &str| state_of(&windows(text), &utc, SignedDuration::ZERO, instant(now));
    let (noon, six) = ("2026-05-05T12:00:00Z", Some(instant("2026-05-05T18:00:00Z")));
    assert_eq!(state("8:00-13:00,13:00-18:00", noon), WindowState::Open(six));
    assert_eq!(state("8:00-14:00,13:00-18:00,9:00-10:00", noon), WindowState::Open(six));
    assert_eq!(state("1:00-4:00,18:00-19:00", noon), WindowState::Closed(six));
    for always in ["0:00-0:00", "10:00-10:00", "0:00-24:00", "22:00-6:00,6:00-22:00"] {
        assert_eq!(state(always, noon), WindowState::Open(None), "{always}");
    }
    assert_eq!(state_of(&[], &utc, SignedDuration::ZERO, instant(noon)), WindowState::Closed(None));
}

#[test]
fn the_grace_period_is_taken_off_the_end() {
    let utc = TimeZone::UTC;
    let grace = SignedDuration::from_mins(10);
    let state = |text: &str, now: &str| state_of(&windows(text), &utc, grace, instant(now));
    let end = Some(instant("2026-05-05T03:50:00Z"));
    assert_eq!(state("1:00-4:00", "2026-05-05T03:49:59Z"), WindowState::Open(end));
    let next = WindowState::Closed(Some(instant("2026-05-06T01:00:00Z")));
    assert_eq!(state("1:00-4:00", "2026-05-05T03:50:00Z"), next);
    assert_eq!(state("1:00-4:00", "2026-05-05T04:00:00Z"), next);
    // Where one window follows another, nothing closes between them.
    let end = Some(instant("2026-05-05T05:50:00Z"));
    assert_eq!(state("1:00-4:00,4:00-6:00", "2026-05-05T03:55:00Z"), WindowState::Open(end));
    assert_eq!(state("0:00-0:00", "2026-05-05T03:55:00Z"), WindowState::Open(None));
}

#[test]
fn the_last_closing_is_known_over_a_day_on_which_the_clock_skips_the_window() {
    let (zone, windows) = (zone("Europe/Berlin"), windows("2:00-3:00"));
    let closed = |now: &str, grace| last_closed(&windows, &zone, grace, at(&zone, now));
    assert_eq!(closed("2026-03-30T01:00", SignedDuration::ZERO), Some(at(&zone, "2026-03-28T03:00")));
    let grace = SignedDuration::from_mins(10);
    assert_eq!(closed("2026-03-30T03:00", grace), Some(at(&zone, "2026-03-30T02:50")));
    // An open window has closed before, too.
    assert_eq!(closed("2026-03-31T02:30", grace), Some(at(&zone, "2026-03-30T02:50")));
}
