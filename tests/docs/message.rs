//! The messages that a page quotes, and whether the program's sources have them.
//!
//! A message is a line of a `text` block, or what stands in backticks in the first column of a table. `…` stands for any text.

use std::{fs, path::PathBuf};

/// The messages of a page.
pub(super) fn of(page: &str) -> Vec<String> {
    let mut messages = Vec::new();
    let mut fence: Option<bool> = None;
    for line in page.lines() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            fence = if fence.is_none() { Some(info == "text") } else { None };
        } else if fence == Some(true) {
            messages.push(line.to_owned());
        } else if let Some(quoted) = line.strip_prefix("| `") {
            messages.extend(quoted.split("` |").next().map(str::to_owned));
        }
    }
    messages
}

/// The text of source files, in which the lines of one string literal stand together.
pub(super) struct Sources(Vec<String>);

impl Sources {
    pub(super) fn read(folders: &[PathBuf]) -> Self {
        let mut waiting = folders.to_vec();
        let mut texts = Vec::new();
        while let Some(path) = waiting.pop() {
            if path.is_dir() {
                waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "yaml") {
                texts.push(joined(&fs::read_to_string(&path).unwrap()));
            }
        }
        Self(texts)
    }

    /// Whether some file has all the parts of the message, in order and close to each other.
    pub(super) fn have(&self, message: &str) -> bool {
        let parts: Vec<_> = message.split('…').filter(|part| !part.trim().is_empty()).collect();
        self.0.iter().any(|text| {
            let starts = text.match_indices(parts[0]);
            starts.into_iter().any(|(at, _)| follows(&text[at..], &parts))
        })
    }
}

/// What stands between two parts of a message in a format string: a placeholder, or the quotes of the next string.
const LONGEST_GAP: usize = 60;

fn follows(text: &str, parts: &[&str]) -> bool {
    let mut rest = text;
    parts.iter().all(|part| {
        let found = rest.find(part).filter(|at| *at <= LONGEST_GAP);
        rest = found.map_or("", |at| &rest[at + part.len()..]);
        found.is_some()
    })
}

/// The text with the line breaks of Rust's and CEL's string literals taken out.
fn joined(text: &str) -> String {
    let mut joined = String::new();
    for line in text.lines() {
        let line = line.trim_start();
        match line.strip_suffix('\\') {
            Some(begun) => joined.push_str(begun),
            None => joined.extend([line, "\n"]),
        }
    }
    joined.replace("'\n+ '", "")
}

#[test]
fn the_reader_of_messages_knows_placeholders_and_broken_strings() {
    let page = "```text\nWaiting for … since …\n```\n| `a b` | c |\n| `d` and `e` | f |\n";
    assert_eq!(of(page), ["Waiting for … since …", "a b", "d` and `e"]);
    let sources = Sources(vec![joined("format!(\"Waiting for {node} \\\n    since {at}\")\n'x '\n  + 'y'")]);
    assert!(sources.have("Waiting for … since …") && sources.have("x y"));
    assert!(!sources.have("Waiting for … until …"));
}
