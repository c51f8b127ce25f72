//! The cluster that a command looks at, live or as files.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;

use crate::{
    cli::{
        connection::ConnectionArgs,
        documents::{self, Document},
        live_cluster, output,
        simulate::{PreparedSimulation, prepare},
        simulated_cluster::SimulatedCluster,
    },
    cluster::{Clock, Reader},
    config::Config,
};

/// Which cluster a command looks at.
#[derive(Args, Clone, Debug)]
pub struct InspectedArgs {
    /// A file or a folder that `berth dump` wrote, or `-` for standard input; may be given several times [default: a live cluster]
    #[arg(short, long = "filename", alias = "file", value_name = "FILE|DIR|-", conflicts_with_all = ["kubeconfig", "context"])]
    pub file: Vec<PathBuf>,
    /// The current time to assume, which makes the output reproducible [default: now]
    #[arg(long, value_name = "RFC3339")]
    pub at: Option<Timestamp>,
    /// Which cluster
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

impl InspectedArgs {
    /// The objects of the cluster.
    pub(super) async fn documents(&self) -> Result<Vec<Document>> {
        if self.file.is_empty() {
            live_cluster::read(&self.connection).await
        } else {
            Ok(documents::read(&self.file)?)
        }
    }

    /// The cluster as a scheduler has it that has decided nothing yet, and what reads its objects. The pods that want a place are not in it.
    pub(super) async fn cluster(&self, config: &Config) -> Result<(Reader, SimulatedCluster)> {
        let now = self.now();
        let PreparedSimulation { reader, settings, lists, warnings, .. } =
            prepare(&self.documents().await?, config, now)?;
        for warning in warnings {
            output::remark(&format!("warning: {warning}"));
        }
        Ok((reader, SimulatedCluster::new(settings, lists, now)))
    }

    /// The present.
    pub(super) fn now(&self) -> Timestamp {
        self.at.unwrap_or_else(|| Clock::System.now())
    }
}
