//! `berth dump`: the objects that decide where pods go, as files that `berth simulate` reads.
//!
//! No Secret is read, and of pods neither environment nor command lines are kept.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::cli::{CommandAnswer, connection::ConnectionArgs, documents::Document, live_cluster, output};

/// Arguments of `berth dump`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Example:\n  berth dump --out cluster/ && berth simulate -f cluster/ -f pod.yaml --explain"
)]
pub struct DumpArgs {
    /// The folder to write to, which must be new or empty
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Which cluster
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

/// Writes the objects of the cluster, a file for each kind.
pub async fn run(args: DumpArgs) -> Result<CommandAnswer> {
    let folder = args.out.display().to_string();
    fs::create_dir_all(&args.out).with_context(|| folder.clone())?;
    if fs::read_dir(&args.out).with_context(|| folder.clone())?.next().is_some() {
        bail!("{folder} is not empty");
    }
    let documents = live_cluster::read(&args.connection).await?;
    let (objects, files) = (documents.len(), write(&args.out, documents)?);
    output::remark(&format!("{objects} objects in {files} files in {folder}"));
    Ok(CommandAnswer::Yes)
}

/// Writes a List for each kind, and says how many there are.
fn write(folder: &Path, documents: Vec<Document>) -> Result<usize> {
    let mut by_kind: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for document in documents {
        let group = document.api_version().split_once('/').map_or("", |(group, _)| group);
        let dot = if group.is_empty() { "" } else { "." };
        let file = format!("{}{dot}{group}.json", document.kind().to_lowercase());
        by_kind.entry(file).or_default().push(document.value);
    }
    for (name, items) in &by_kind {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        let path = folder.join(name);
        let text = serde_json::to_vec_pretty(&list)?;
        fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(by_kind.len())
}
