//! As much of a text from outside as a reader is shown: in a log, an Event, a condition, a message, an answer.
//!
//! Users and nodes may write megabytes, and characters that forge lines or hide text. Errors and violations shorten what they quote, so that
//! no log, Event or answer can forget it. It must not decide what is shown.

use std::{borrow::Cow, fmt::Display};

/// Bytes of one value, such as an annotation's, that a message quotes.
pub const VALUE: usize = 100;
/// Bytes of the path of a field: an annotation's key has 317 at most.
pub const FIELD: usize = 400;
/// Bytes of a message about one thing.
pub const MESSAGE: usize = 800;
/// Bytes of a message that sums up all nodes or all violations.
pub const SUMMARY: usize = 4096;

/// What the note on the rest takes at most, in bytes: a text that is longer than its limit by no more is shown whole.
pub const NOTE: usize = 42;

/// The first `most` bytes of a text, cut between characters, then `… (N more characters)`; control characters and those that
/// change the direction of a line are escaped as Rust writes them. The result has at most `most + NOTE` bytes, and an excerpt of an
/// excerpt to the same or a greater length changes nothing.
pub fn excerpt(text: &str, most: usize) -> Cow<'_, str> {
    let short = text.len() <= most + NOTE;
    if short && !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    // Where to cut, should the rest be too long: bytes shown, and characters that they stand for.
    let (mut cut, mut kept) = (0, 0);
    for c in text.chars() {
        if is_obeyed(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
        if shown.len() <= most {
            (cut, kept) = (shown.len(), kept + 1);
        } else if shown.len() > most + NOTE {
            shown.truncate(cut);
            let rest = text.chars().count() - kept;
            return Cow::Owned(format!("{shown}… ({rest} more characters)"));
        }
    }
    Cow::Owned(shown)
}

/// The whole text, with each character escaped that a terminal may obey instead of showing it: see [`is_obeyed`].
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_obeyed(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// An excerpt of a `String`, which is kept as it is where all of it is shown.
pub fn shortened(text: impl Into<String>, most: usize) -> String {
    let text = text.into();
    match excerpt(&text, most) {
        Cow::Borrowed(_) => text,
        Cow::Owned(excerpt) => excerpt,
    }
}

/// An excerpt of an error's words, which may quote what another program answered.
pub fn brief(error: &(impl Display + ?Sized)) -> String {
    shortened(error.to_string(), MESSAGE)
}

/// The first `most` of a list, then `and N more`.
pub fn listed<T: AsRef<str>>(elements: &[T], most: usize) -> String {
    let shown: Vec<_> = elements.iter().take(most).map(|element| excerpt(element.as_ref(), VALUE)).collect();
    let rest = elements.len() - shown.len();
    let shown = shown.join(", ");
    if rest == 0 { shown } else { format!("{shown} and {rest} more") }
}

/// Whether a terminal may obey the character instead of showing it: control characters (C0, DEL, C1), line and paragraph separators,
/// and marks of direction.
pub fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_shown_whole() {
        for text in ["", "GPU-1", "größer als 40 GiB", &"x".repeat(VALUE + NOTE)] {
            assert!(matches!(excerpt(text, VALUE), Cow::Borrowed(shown) if shown == text));
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters_and_says_how_much_is_missing() {
        assert_eq!(excerpt(&"ä".repeat(100_000), 5), "ää… (99998 more characters)");
        assert_eq!(excerpt(&"x".repeat(100_000), 3), "xxx… (99997 more characters)");
        for width in ["x", "ä", "…", "🙂", "\0", "\u{202e}"] {
            for length in [0, 1, VALUE, VALUE + NOTE, VALUE + NOTE + 1, 100_000] {
                let text = width.repeat(length);
                let once = excerpt(&text, VALUE);
                assert!(once.len() <= VALUE + NOTE, "{} bytes of {length} times {width:?}", once.len());
                assert_eq!(excerpt(&once, VALUE), once, "an excerpt of an excerpt");
            }
        }
    }

    #[test]
    fn no_character_forges_a_line_or_hides_text() {
        let shown = excerpt("a\nb\r\u{1b}[2J\0\u{85}\u{2028}\u{202e}\u{2066}c", VALUE);
        assert_eq!(shown, r"a\nb\r\u{1b}[2J\u{0}\u{85}\u{2028}\u{202e}\u{2066}c");
    }

    #[test]
    fn every_character_that_a_terminal_obeys_is_made_visible() {
        let ranges =
            [('\0', '\u{1f}'), ('\u{7f}', '\u{9f}'), ('\u{200e}', '\u{200f}'), ('\u{2028}', '\u{202e}')];
        for (first, last) in ranges.into_iter().chain([('\u{2066}', '\u{2069}'), ('\u{61c}', '\u{61c}')]) {
            for c in first..=last {
                let text = format!("a{c}b");
                let shown = visible(&text);
                assert!(shown.starts_with("a\\") && !shown.contains(c), "{c:?}: {shown}");
            }
        }
        for text in ["", "größer als 40 GiB", "שלום", "🙂", "a\u{a0}b"] {
            assert!(matches!(visible(text), Cow::Borrowed(shown) if shown == text), "{text}");
        }
    }

    #[test]
    fn a_long_list_is_counted() {
        assert_eq!(listed(&["a", "b"], 2), "a, b");
        assert_eq!(listed(&["a", "b", "c", "d"], 2), "a, b and 2 more");
        assert_eq!(listed::<&str>(&[], 2), "");
    }
}
