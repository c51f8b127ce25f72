//! What people read of an answer: violations as one message, warnings as the API server passes them on.
//!
//! Form alone: what is said is not decided here.

use std::fmt::Write as _;

use crate::admission::Violation;

/// The API server cuts warnings to this many characters once they are many; nothing of ours is longer.
pub(super) const WARNING_CHARS: usize = 256;

/// The API server drops what goes beyond this many characters in one response.
pub(super) const WARNINGS_CHARS: usize = 4096;

/// What a person reads after `admission webhook "…" denied the request:`.
pub(super) fn message(violations: &[Violation]) -> String {
    let mut text = String::new();
    for violation in violations {
        let between = if text.is_empty() { "" } else { "; " };
        write!(text, "{between}{violation}").expect("a String takes every write");
    }
    one_line(&text)
}

/// Warnings as the API server takes them: one line each, no control characters, no more than it passes on.
pub(super) fn presentable(warnings: &[String]) -> Vec<String> {
    let mut left = WARNINGS_CHARS;
    let lines = warnings.iter().map(|warning| cut(&one_line(warning)));
    lines
        .filter(|line| !line.is_empty())
        .take_while(|line| {
            let length = line.chars().count();
            let fits = length <= left;
            left = left.saturating_sub(length);
            fits
        })
        .collect()
}

pub(super) fn one_line(text: &str) -> String {
    let words = text.split(|letter: char| letter.is_control() || letter == ' ');
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn cut(line: &str) -> String {
    if line.chars().count() <= WARNING_CHARS {
        return line.to_owned();
    }
    let mut start: String = line.chars().take(WARNING_CHARS - 1).collect();
    start.push('…');
    start
}
