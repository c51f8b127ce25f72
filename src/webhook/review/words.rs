//! The texts of an answer: violations as one message, and warnings in the form that the API server passes on.
//!
//! It changes only the form; the rules decide the content.

use std::fmt::Write as _;

use crate::{
    admission::Violation,
    excerpt::{NOTE, SUMMARY, excerpt},
};

/// The most violations that one message lists.
pub(super) const MOST_VIOLATIONS: usize = 16;

/// The API server cuts warnings to this many characters if there are many, so no warning is longer.
pub(super) const WARNING_CHARS: usize = 256;

/// The API server drops what goes beyond this many characters in one response.
pub(super) const WARNINGS_CHARS: usize = 4096;

/// The room for the line that counts further warnings.
const ROOM_TO_COUNT: usize = 64;

/// The text after `admission webhook "…" denied the request:`: the first violations, and the number of the others.
pub(super) fn message(violations: &[Violation]) -> String {
    let mut text = String::new();
    for violation in violations.iter().take(MOST_VIOLATIONS) {
        let between = if text.is_empty() { "" } else { "; " };
        write!(text, "{between}{violation}").expect("a String takes every write");
    }
    let text = sentence(&text, SUMMARY);
    match violations.len().saturating_sub(MOST_VIOLATIONS) {
        0 => text,
        rest => format!("{text}; and {rest} more"),
    }
}

/// Warnings in the form that the API server accepts: one line each, without control characters, no more than it passes on together
/// with the warnings in `beside`; then the number of the others.
pub(super) fn presentable(warnings: &[String], beside: &[String]) -> Vec<String> {
    let taken: usize = beside.iter().map(|line| line.chars().count()).sum();
    let mut left = WARNINGS_CHARS.saturating_sub(taken + ROOM_TO_COUNT);
    let mut shown = Vec::new();
    for (at, warning) in warnings.iter().enumerate() {
        let line = sentence(warning, WARNING_CHARS - NOTE);
        let length = line.chars().count();
        if length > left {
            if taken + ROOM_TO_COUNT <= WARNINGS_CHARS {
                shown.push(format!("and {} more warnings", warnings.len() - at));
            }
            break;
        }
        left -= length;
        shown.extend((!line.is_empty()).then_some(line));
    }
    shown
}

/// An excerpt on one line.
pub(super) fn sentence(text: &str, most: usize) -> String {
    excerpt(&one_line(text), most).into_owned()
}

fn one_line(text: &str) -> String {
    let words = text.split(|letter: char| letter.is_control() || letter == ' ');
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
