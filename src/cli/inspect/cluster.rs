//! The cluster that a command looks at, live or as files.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use http::Uri;
use jiff::Timestamp;
use kube::Client;

use crate::{
    cli::{
        connection::{ConnectionArgs, not_reached},
        documents::{self, Document, live},
        live_cluster::{self, LiveScope},
        output,
        simulate::{PreparedSimulation, prepare},
    },
    cluster::{Clock, Reader},
    config::Config,
    simulation::SimulatedCluster,
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

    /// One pod, by the right to list the pods of its namespace alone.
    pub(super) async fn pod(&self, namespace: &str, name: &str) -> Result<Option<Document>> {
        match self {
            Self::Live(..) if !is_name(namespace) || !is_name(name) => Ok(None),
            Self::Live(client, address) => {
                let (path, fields) =
                    (format!("/api/v1/namespaces/{namespace}/pods"), format!("metadata.name={name}"));
                let pods = live::selected(client, &path, ("v1", "Pod"), &fields).await;
                Ok(pods.map_err(|error| not_reached(error, address))?.pop())
            }
            Self::Files(files) => {
                let is_it = |document: &Document| is_pod(document, namespace, name);
                Ok(documents::read(files)?.into_iter().find(is_it))
            }
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

    /// The present.
    pub(super) fn now(&self) -> Timestamp {
        self.at.unwrap_or_else(|| Clock::System.now())
    }
}

/// Whether it is the pod of this namespace and name.
pub(super) fn is_pod(document: &Document, namespace: &str, name: &str) -> bool {
    document.kind() == "Pod" && document.name() == Some(name) && document.namespace_or_default() == namespace
}

/// Whether an object can have this name. Other names would be read as something else where they stand in a path.
pub(super) fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    !text.is_empty() && text.len() <= 253 && text != "." && text != ".." && text.bytes().all(fits)
}

/// The cluster of these objects as a scheduler has it that has decided nothing yet, and what reads its objects. The pods that want a place are not in it.
pub(super) fn cluster_of(
    documents: &[Document],
    config: &Config,
    now: Timestamp,
) -> Result<(Reader, SimulatedCluster)> {
    let (reader, cluster, warnings) = read_cluster(documents, config, now)?;
    for warning in warnings {
        output::remark(&format!("warning: {warning}"));
    }
    Ok((reader, cluster))
}

/// The same, and what was odd about the objects.
pub(super) fn read_cluster(
    documents: &[Document],
    config: &Config,
    now: Timestamp,
) -> Result<(Reader, SimulatedCluster, Vec<String>)> {
    let PreparedSimulation { reader, settings, lists, warnings, .. } = prepare(documents, config, now)?;
    Ok((reader, SimulatedCluster::new(settings, lists, now), warnings))
}
