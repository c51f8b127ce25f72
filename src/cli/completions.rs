//! `berth completions`: what a shell needs to complete Berth's commands and flags.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::{Cli, CommandAnswer, output};

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
        clap_complete::generate(self.shell, &mut Cli::command(), "berth", &mut script);
        output::write(&String::from_utf8(script)?)?;
        Ok(CommandAnswer::Yes)
    }
}
