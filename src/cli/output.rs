//! How an answer is written: for a person, as JSON, or as YAML.

use std::io::{self, Write};

use anyhow::Context;
use clap::ValueEnum;
use serde::Serialize;

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

/// Prints an answer; `table` is asked for only where a table is wanted.
pub fn print<T: Serialize>(answer: &T, format: Format, table: impl FnOnce() -> String) -> anyhow::Result<()> {
    let text = match format {
        Format::Table => table(),
        Format::Json => serde_json::to_string_pretty(answer).context("writing JSON")? + "\n",
        Format::Yaml => serde_saphyr::to_string(answer).context("writing YAML")?,
    };
    write(&text)
}

/// Writes a line to standard error. A failure (a full disk, a closed pipe) can't be reported anywhere, and does not end the command.
pub fn remark(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Writes to standard output. A reader that closes the pipe is not an error.
pub fn write(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("standard output"),
        _ => Ok(()),
    }
}
