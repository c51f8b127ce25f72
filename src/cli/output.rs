//! How an answer is written: for a person, as JSON, or as YAML. Here alone text from outside reaches a terminal.
//!
//! What a person is shown is a [`Shown`], in which no character of a name or a message is left that a terminal obeys. JSON and YAML
//! say the same characters exactly, by the escapes of their own.

use std::{
    fmt::{self, Display},
    io::{self, Write},
};

use anyhow::Context;
use clap::ValueEnum;
use jiff::Timestamp;
use owo_colors::{OwoColorize, Stream};
use serde::Serialize;

use crate::excerpt::{is_obeyed, visible};

/// The form of an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Format {
    /// A table.
    Table,
    /// One JSON document.
    Json,
    /// The same as YAML.
    Yaml,
}

/// The form of an answer that has a wider table too.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum WideFormat {
    /// A table.
    Table,
    /// A table with more columns.
    Wide,
    /// One JSON document.
    Json,
    /// The same as YAML.
    Yaml,
}

/// Which columns a table has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Detail {
    /// Those that fit a terminal.
    Usual,
    /// All of them.
    Wide,
}

/// Text for a person: characters that a terminal obeys are escaped visibly, but for its own ends of lines and its own colours.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Shown(String);

/// How a word stands out where standard output, or standard error, is a terminal that wants it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Paint {
    /// As a heading.
    Bold,
    /// As what went well.
    Green,
    /// As what did not, and is as it should be.
    Yellow,
    /// As what was refused.
    Red,
}

impl Shown {
    /// Text that may be from outside, within a line.
    pub fn text(text: impl Display) -> Self {
        Self(visible(&text.to_string()).into_owned())
    }

    /// The same as a line of its own: whatever the text holds, it stays one.
    pub fn line(text: impl Display) -> Self {
        Self::text(text).ended()
    }

    /// Text that stands out on a terminal.
    pub fn painted(text: impl Display, paint: Paint, on: Stream) -> Self {
        let Self(text) = Self::text(text);
        Self(match paint {
            Paint::Bold => text.if_supports_color(on, |text| text.bold()).to_string(),
            Paint::Green => text.if_supports_color(on, |text| text.green()).to_string(),
            Paint::Yellow => text.if_supports_color(on, |text| text.yellow()).to_string(),
            Paint::Red => text.if_supports_color(on, |text| text.red()).to_string(),
        })
    }

    /// This, and more behind it.
    #[must_use]
    pub fn and(mut self, more: &Self) -> Self {
        self.0 += &more.0;
        self
    }

    /// This, and the end of the line, without blanks before it.
    #[must_use]
    pub fn ended(mut self) -> Self {
        self.0.truncate(self.0.trim_end_matches(' ').len());
        self.0.push('\n');
        self
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Display for Shown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromIterator<Self> for Shown {
    fn from_iter<T: IntoIterator<Item = Self>>(parts: T) -> Self {
        parts.into_iter().fold(Self::default(), |shown, part| shown.and(&part))
    }
}

impl WideFormat {
    /// Says beside a table why it has no rows.
    pub fn remark_empty(self, why: &str) {
        if self.detail().is_some() {
            remark(why);
        }
    }

    /// Which columns its table has; `None`: it is no table.
    pub fn detail(self) -> Option<Detail> {
        match self {
            Self::Table => Some(Detail::Usual),
            Self::Wide => Some(Detail::Wide),
            Self::Json | Self::Yaml => None,
        }
    }

    /// Prints an answer; `table` is asked for only where a table is wanted.
    pub fn print<T: Serialize>(self, answer: &T, table: impl FnOnce(Detail) -> Shown) -> anyhow::Result<()> {
        match self {
            Self::Table => show(&table(Detail::Usual)),
            Self::Wide => show(&table(Detail::Wide)),
            Self::Json => print(answer, Format::Json, Shown::default),
            Self::Yaml => print(answer, Format::Yaml, Shown::default),
        }
    }
}

/// Prints an answer; `table` is asked for only where a table is wanted.
pub fn print<T: Serialize>(answer: &T, format: Format, table: impl FnOnce() -> Shown) -> anyhow::Result<()> {
    match format {
        Format::Table => show(&table()),
        Format::Json => write(&json(answer)?),
        Format::Yaml => write(&yaml(answer).context("writing YAML")?),
    }
}

/// The answer as JSON over several lines. What JSON does not escape by itself and a terminal obeys is escaped too, which means the same.
fn json<T: Serialize>(answer: &T) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(answer).context("writing JSON")? + "\n";
    if !text.contains(is_obeyed_in_json) {
        return Ok(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_obeyed_in_json(c) {
            escaped.extend(format!("\\u{:04x}", u32::from(c)).chars());
        } else {
            escaped.push(c);
        }
    }
    Ok(escaped)
}

/// Such a character stands within a string of JSON, where an escape means the same; all of them have four hexadecimal digits.
fn is_obeyed_in_json(c: char) -> bool {
    c != '\n' && is_obeyed(c)
}

/// The answer as one document of YAML. Marks of direction stand in YAML as they are: a document that has some is written as JSON, which
/// YAML reads as the same.
pub fn yaml<T: Serialize>(answer: &T) -> anyhow::Result<String> {
    let text = serde_saphyr::to_string(answer)?;
    let is_obeyed_in_yaml = |c: char| !matches!(c, '\n' | '\t') && is_obeyed(c);
    if text.contains(is_obeyed_in_yaml) { json(answer) } else { Ok(text) }
}

/// The second in which this was, as tables have times.
pub fn second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// Writes a line to standard error. A failure (a full disk, a closed pipe) can't be reported anywhere, and does not end the command.
pub fn remark(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", visible(line));
}

/// Writes what a person is shown to standard output.
pub fn show(text: &Shown) -> anyhow::Result<()> {
    write(text.as_str())
}

/// The same to standard error, where a failure can't be reported anywhere.
pub fn show_aside(text: &Shown) {
    let _ = io::stderr().lock().write_all(text.as_str().as_bytes());
}

/// Writes to standard output as it is: a text of the program's own, or one in a form that escapes what is from outside. A reader that
/// closes the pipe is not an error.
pub fn write(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("standard output"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// One character of each kind that a terminal obeys.
    const OBEYED: &str = "a\u{1b}[31m\n\r\t\0\u{7f}\u{9b}2J\u{85}\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}z";

    #[test]
    fn a_line_stays_one_whatever_it_holds() {
        let shown = Shown::line(OBEYED).and(&Shown::text("b\n"));
        let escaped = r"a\u{1b}[31m\n\r\t\u{0}\u{7f}\u{9b}2J\u{85}\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}z";
        assert_eq!(shown.as_str(), format!("{escaped}\nb\\n"));
    }

    #[test]
    fn json_and_yaml_say_exactly_what_is_there_without_a_character_that_a_terminal_obeys() {
        let answer = json!({"name": OBEYED, OBEYED: ["größer", "שלום", "\u{202e}"], "block": "a\n\tb\n"});
        let json = super::json(&answer).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), answer);
        assert!(!json.contains(is_obeyed_in_json), "{json}");
        let without = json!({"name": "\u{1b}[2J\u{7f}\u{9b}\u{2028}", "block": "a\n\tb\n"});
        for answer in [answer, without] {
            let yaml = yaml(&answer).unwrap();
            assert_eq!(serde_saphyr::from_str::<Value>(&yaml).unwrap(), answer, "{yaml}");
            assert!(!yaml.contains(|c| !matches!(c, '\n' | '\t') && is_obeyed(c)), "{yaml}");
        }
    }
}
