//! The cluster that a command looks at, live or as files.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use http::Uri;
use jiff::Timestamp;
use kube::Client;

use crate::{
    cli::{
        connection::ConnectionArgs,
        documents::{self, Document},
        live_cluster::{self, LiveScope},
        output,
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

/// A cluster that can be read again and again.
pub(super) enum InspectedCluster {
    /// A live one, at this address.
    Live(Client, Uri),
    /// These files and folders.
    Files(Vec<PathBuf>),
}

impl InspectedCluster {
    /// The namespace of whoever names none.
    pub(super) fn namespace(&self) -> &str {
        match self {
            Self::Live(client, _) => client.default_namespace(),
            Self::Files(_) => "default",
        }
    }

    /// All of its objects. Lists that the caller may not read are left out, with a warning.
    pub(super) async fn documents(&self) -> Result<Vec<Document>> {
        match self {
            Self::Live(client, address) => live_cluster::read_at(client, address).await,
            Self::Files(files) => Ok(documents::read(files)?),
        }
    }

    /// What there is of cards and who holds it, and what was left out.
    pub(super) async fn cards(&self) -> Result<(Vec<Document>, Vec<String>)> {
        match self {
            Self::Live(client, address) => live_cluster::read_by(client, address, LiveScope::Cards).await,
            Self::Files(files) => Ok((documents::read(files)?, Vec::new())),
        }
    }
}

impl InspectedArgs {
    /// The cluster.
    pub(super) async fn inspected(&self) -> Result<InspectedCluster> {
        if !self.file.is_empty() {
            return Ok(InspectedCluster::Files(self.file.clone()));
        }
        let (client, address) = self.connection.client().await?;
        Ok(InspectedCluster::Live(client, address))
    }

    /// The objects of the cluster.
    pub(super) async fn documents(&self) -> Result<Vec<Document>> {
        self.inspected().await?.documents().await
    }

    /// The cluster as a scheduler has it that has decided nothing yet, and what reads its objects. The pods that want a place are not in it.
    pub(super) async fn cluster(&self, config: &Config) -> Result<(Reader, SimulatedCluster)> {
        cluster_of(&self.documents().await?, config, self.now())
    }

    /// The present.
    pub(super) fn now(&self) -> Timestamp {
        self.at.unwrap_or_else(|| Clock::System.now())
    }
}

/// As [`InspectedArgs::cluster`], from its objects.
pub(super) fn cluster_of(
    documents: &[Document],
    config: &Config,
    now: Timestamp,
) -> Result<(Reader, SimulatedCluster)> {
    let PreparedSimulation { reader, settings, lists, warnings, .. } = prepare(documents, config, now)?;
    for warning in warnings {
        output::remark(&format!("warning: {warning}"));
    }
    Ok((reader, SimulatedCluster::new(settings, lists, now)))
}
