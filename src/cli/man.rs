//! `berth man`: the man pages of Berth and of its commands.

use std::{fs, path::PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Command, CommandFactory as _};
use clap_mangen::Man;

use super::{Cli, CommandAnswer, output};

/// Arguments of `berth man`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Examples:\n  berth man review | man -l -\n  berth man --dir /usr/local/share/man/man1"
)]
pub struct ManArgs {
    /// The command; without it, Berth itself
    #[arg(conflicts_with = "dir")]
    pub command: Option<String>,
    /// Write all pages into this folder instead, as berth.1, berth-review.1 and so on
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

impl ManArgs {
    /// Prints a page, or writes all of them.
    pub fn run(&self) -> anyhow::Result<CommandAnswer> {
        match &self.dir {
            Some(folder) => {
                fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
                for (name, page) in pages()? {
                    let file = folder.join(format!("{name}.1"));
                    fs::write(&file, page).with_context(|| file.display().to_string())?;
                }
            }
            None => output::write(&self.page()?)?,
        }
        Ok(CommandAnswer::Yes)
    }

    fn page(&self) -> anyhow::Result<String> {
        let wanted =
            self.command.as_ref().map_or_else(|| "berth".to_owned(), |command| format!("berth-{command}"));
        match pages()?.into_iter().find(|(name, _)| *name == wanted) {
            Some((_, page)) => Ok(page),
            None => bail!("`{}` is no command of berth", self.command.as_deref().unwrap_or_default()),
        }
    }
}

/// Every page by its name.
fn pages() -> anyhow::Result<Vec<(String, String)>> {
    let mut berth = Cli::command().disable_help_subcommand(true);
    berth.build();
    let commands = berth.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let commands = commands.map(|command| {
        let name = format!("berth-{}", command.get_name());
        command.display_name(name.clone()).bin_name(name.replacen('-', " ", 1))
    });
    std::iter::once(berth.clone()).chain(commands).map(page).collect()
}

fn page(command: Command) -> anyhow::Result<(String, String)> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    Ok((name, String::from_utf8(page)?))
}
