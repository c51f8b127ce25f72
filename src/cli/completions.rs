//! `berth completions`: what a shell needs to complete Berth's commands and flags; and what kubectl asks its plugin `berth` for.

use std::{ffi::OsString, fmt::Write as _};

use anyhow::Context as _;
use clap::{Args, Command, CommandFactory as _};
use clap_complete::{Shell, engine};

use super::{Cli, CommandAnswer, output};
use crate::excerpt::visible;

/// After the candidates, to kubectl: no files besides them.
const NO_FILES: u8 = 4;

/// The same: no space after the candidate, since it is a folder.
const NO_SPACE: u8 = 2;

/// Arguments of `berth completions`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  berth completions bash > /etc/bash_completion.d/berth")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

impl CompletionsArgs {
    /// Prints the shell's script.
    pub fn run(&self) -> anyhow::Result<CommandAnswer> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut shown(), "berth", &mut script);
        output::write(&String::from_utf8(script)?)?;
        Ok(CommandAnswer::Yes)
    }
}

/// The program without the commands that no person calls, which scripts of shells would offer.
fn shown() -> Command {
    let all = Cli::command();
    let commands = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    Command::new("berth").args(all.get_arguments().cloned()).subcommands(commands)
}

/// Arguments of `berth __complete`, which kubectl calls by way of `kubectl_complete-berth`.
#[derive(Args, Clone, Debug)]
#[command(disable_help_flag = true, after_help = "Example:\n  berth __complete top --sort-by \"\"")]
pub struct CompleteArgs {
    /// The words after `kubectl berth`, the last of which is to be completed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

impl CompleteArgs {
    /// Prints the candidates as cobra's completions have them: one a line with its help behind a tab, and a line that says how to go on.
    pub fn run(&self) -> anyhow::Result<CommandAnswer> {
        let words: Vec<_> = std::iter::once("berth".into()).chain(self.words.iter().cloned()).collect();
        let last = words.len().saturating_sub(1).max(1);
        let folder = std::env::current_dir().ok();
        let found = engine::complete(&mut Cli::command(), words, last, folder.as_deref());
        let mut text = String::new();
        let mut directive = NO_FILES;
        for candidate in found.context("can't complete this")?.iter().filter(|one| !one.is_hide_set()) {
            let value = candidate.get_value().to_string_lossy();
            if value.ends_with('/') {
                directive |= NO_SPACE;
            }
            let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
            let tab = if help.is_empty() { "" } else { "\t" };
            let help = help.lines().next().unwrap_or_default();
            writeln!(text, "{}{tab}{}", visible(&value), visible(help))?;
        }
        writeln!(text, ":{directive}")?;
        output::write(&text)?;
        Ok(CommandAnswer::Yes)
    }
}
