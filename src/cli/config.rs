//! `berth config`: whether `berth.yaml` can be read, and the settings in force.

use clap::Args;
use serde_json::Value;

use super::{
    CommandAnswer, output,
    output::{Format, Shown},
    table::Table,
};
use crate::config::Config;

/// Arguments of `berth config`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  berth config --config berth.yaml -o json")]
pub struct ConfigArgs {
    /// The output format; YAML can be used as berth.yaml.
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    pub output: Format,
}

impl ConfigArgs {
    /// Prints the settings in force.
    pub fn run(&self, config: &Config) -> anyhow::Result<CommandAnswer> {
        let value = serde_json::to_value(config)?;
        output::print(config, self.output, || table(&value))?;
        Ok(CommandAnswer::Yes)
    }
}

fn table(settings: &Value) -> Shown {
    let mut table = Table::new(&["KEY", "VALUE"]);
    rows("", settings, &mut table);
    table.render()
}

fn rows(path: &str, value: &Value, table: &mut Table) {
    let Value::Object(fields) = value else {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        return table.row([path.to_owned(), text]);
    };
    for (key, value) in fields {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        rows(&path, value, table);
    }
}
