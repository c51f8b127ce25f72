//! `berth schema`: the JSON schema of `berth.yaml`.

use clap::Args;

use super::{CommandAnswer, output};
use crate::config::schema;

/// Arguments of `berth schema`.
#[derive(Args, Clone, Copy, Debug)]
#[command(after_help = "Example: let an editor check berth.yaml, which begins with
  # yaml-language-server: $schema=berth.schema.json
  berth schema > berth.schema.json")]
pub struct SchemaArgs {}

impl SchemaArgs {
    /// Prints the schema.
    pub fn run(self) -> anyhow::Result<CommandAnswer> {
        output::write(&(serde_json::to_string_pretty(&schema())? + "\n"))?;
        Ok(CommandAnswer::Yes)
    }
}
