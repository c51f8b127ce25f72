//! Bars, in blocks of Unicode or in ASCII.

use crate::cli::output::Paint;

/// Which characters the terminal shows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Glyphs {
    /// Blocks.
    Unicode,
    /// For terminals of another encoding than UTF-8.
    Ascii,
}

/// The first that is set and not empty says which encoding a terminal has.
const LOCALE: [&str; 3] = ["LC_ALL", "LC_CTYPE", "LANG"];

/// Parts of a block, from one eighth.
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// Levels of a card, from the least that is used.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The same in ASCII, in tenths.
const TENTHS: [char; 10] = ['1', '2', '3', '4', '5', '6', '7', '8', '9', '#'];

impl Glyphs {
    /// Those of the locale, as the value of an environment variable says it.
    pub(super) fn of_locale(value: impl Fn(&str) -> Option<String>) -> Self {
        let locale = LOCALE.into_iter().filter_map(value).find(|locale| !locale.is_empty());
        let locale = locale.unwrap_or_default().to_ascii_lowercase();
        if locale.contains("utf-8") || locale.contains("utf8") { Self::Unicode } else { Self::Ascii }
    }

    /// A bar of so many characters, filled for this part. What is not nothing shows, and what is not all leaves something.
    pub(super) fn bar(self, part: f64, width: u32) -> String {
        let steps = match self {
            Self::Unicode => width * 8,
            Self::Ascii => width,
        };
        let filled = step(part, steps);
        let (full, rest) = match self {
            Self::Unicode => (filled / 8, filled % 8),
            Self::Ascii => (filled, 0),
        };
        let (block, blank) = match self {
            Self::Unicode => ('█', '░'),
            Self::Ascii => ('#', '.'),
        };
        let mut bar: String = std::iter::repeat_n(block, full as usize).collect();
        bar.extend(rest.checked_sub(1).and_then(|at| EIGHTHS.get(at as usize)));
        let drawn = full + u32::from(rest > 0);
        bar.extend(std::iter::repeat_n(blank, (width - drawn) as usize));
        bar
    }

    /// One character for a card of which this part is used.
    pub(super) fn level(self, part: f64, healthy: bool) -> char {
        let (levels, none, broken): (&[char], _, _) = match self {
            Self::Unicode => (&LEVELS, '·', '×'),
            Self::Ascii => (&TENTHS, '.', 'x'),
        };
        let steps = u32::try_from(levels.len()).unwrap_or(u32::MAX);
        match step(part, steps) {
            _ if !healthy => broken,
            0 => none,
            level => levels[level as usize - 1],
        }
    }
}

/// The part in so many steps: 0 for nothing alone, and all of them for all alone.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it lies between 0 and the number of steps"
)]
fn step(part: f64, steps: u32) -> u32 {
    if part <= 0.0 || part.is_nan() {
        0
    } else if part >= 1.0 {
        steps
    } else {
        ((part * f64::from(steps)).round() as u32).clamp(1, (steps - 1).max(1))
    }
}

/// The part in whole percent: 0 for nothing alone, and 100 for all alone.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a part of some cards is no large number"
)]
pub(super) fn percent(part: f64) -> u64 {
    if part > 1.0 { (part * 100.0).ceil() as u64 } else { step(part, 100).into() }
}

/// How a bar stands out.
pub(super) fn paint(part: f64) -> Paint {
    match part {
        part if part >= 0.9 => Paint::Red,
        part if part >= 0.7 => Paint::Yellow,
        _ => Paint::Green,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_what_is_used_and_what_is_left() {
        let cases = [
            (0.0, "░░░░░", "....."),
            (0.001, "▏░░░░", "#...."),
            (0.5, "██▌░░", "###.."),
            (0.999, "████▉", "####."),
            (1.0, "█████", "#####"),
            (1.7, "█████", "#####"),
            (f64::NAN, "░░░░░", "....."),
        ];
        for (part, blocks, ascii) in cases {
            assert_eq!(Glyphs::Unicode.bar(part, 5), blocks, "{part}");
            assert_eq!(Glyphs::Ascii.bar(part, 5), ascii, "{part}");
        }
    }

    #[test]
    fn a_card_is_one_character() {
        let of = |part, healthy| (Glyphs::Unicode.level(part, healthy), Glyphs::Ascii.level(part, healthy));
        assert_eq!(of(0.0, true), ('·', '.'));
        assert_eq!(of(0.01, true), ('▁', '1'));
        assert_eq!(of(0.5, true), ('▄', '5'));
        assert_eq!(of(0.99, true), ('▇', '9'));
        assert_eq!(of(1.0, true), ('█', '#'));
        assert_eq!(of(1.0, false), ('×', 'x'));
    }

    #[test]
    fn percent_are_0_and_100_for_nothing_and_all_alone() {
        assert_eq!([0.0, 0.0001, 0.455, 0.9999, 1.0, 1.001].map(percent), [0, 1, 46, 99, 100, 101]);
    }

    #[test]
    fn the_first_variable_that_is_set_says_what_the_terminal_shows() {
        let of = |set: &[(&str, &str)]| {
            let find = |name: &str| set.iter().find(|(key, _)| *key == name);
            Glyphs::of_locale(|name| find(name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(of(&[]), Glyphs::Ascii);
        assert_eq!(of(&[("LANG", "de_DE.UTF-8")]), Glyphs::Unicode);
        assert_eq!(of(&[("LANG", "C.utf8"), ("LC_ALL", "")]), Glyphs::Unicode);
        assert_eq!(of(&[("LANG", "en_US.UTF-8"), ("LC_ALL", "C")]), Glyphs::Ascii);
        assert_eq!(of(&[("LANG", "C"), ("LC_CTYPE", "C.UTF-8")]), Glyphs::Unicode);
    }
}
