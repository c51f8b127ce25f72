//! The requests for the current resource versions of pods, nodes and claims of devices.
//!
//! The newest there is: without a `resourceVersion` no list comes from a cache that lags behind. It must not compare.

use kube::{Client, Resource, api::ListParams};
use serde::Deserialize;
use tokio::task::{JoinError, JoinSet};

use crate::{
    cluster::informer::{
        list::{ListError, ListForm, Strange, list, version},
        watch,
        wire::Watched,
    },
    object::{Node, Pod, ResourceClaim},
    scheduling::model::claim_use::DeviceClaims,
};

/// The requests that are under way; dropping it cancels them.
pub struct Inquiry {
    client: Client,
    asked: JoinSet<Result<InquiryAnswer, ListError>>,
}

/// An answer.
pub enum InquiryAnswer {
    /// The version of pods as a whole.
    Pods(String),
    /// Every pod.
    EachPod(Vec<ObjectVersion>),
    /// The version of nodes as a whole, and every node.
    EachNode(String, Vec<ObjectVersion>),
    /// Every claim of devices; none where claims are off, where the API server serves none, or not to this client.
    EachClaim(Vec<ObjectVersion>),
}

/// The uid, names and resource version of one object.
#[derive(Debug, Deserialize)]
pub struct ObjectVersion {
    /// Its uid.
    pub uid: String,
    /// Its namespace; empty for a node.
    #[serde(default)]
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its `resourceVersion`.
    #[serde(rename = "resourceVersion")]
    pub number: String,
}

#[derive(Deserialize)]
struct NamedObject {
    metadata: ObjectVersion,
}

impl Inquiry {
    /// Asks for nodes and claims of devices, which are few, and for the version of pods. Each question is a task, so that its answer is read while the
    /// scheduler is at work.
    pub fn begin(client: &Client, served: DeviceClaims) -> Self {
        let mut inquiry = Self { client: client.clone(), asked: JoinSet::new() };
        let (pods, nodes, claims) = (client.clone(), client.clone(), client.clone());
        inquiry.asked.spawn(async move { Ok(InquiryAnswer::Pods(version(&pods, &path::<Pod>()).await?)) });
        inquiry.asked.spawn(async move {
            let (version, nodes) = each::<Node>(&nodes, ListParams::default()).await?;
            Ok(InquiryAnswer::EachNode(version, nodes))
        });
        inquiry.asked.spawn(async move {
            if served == DeviceClaims::Off {
                return Ok(InquiryAnswer::EachClaim(Vec::new()));
            }
            match each::<ResourceClaim>(&claims, ListParams::default()).await {
                Ok((_, claims)) => Ok(InquiryAnswer::EachClaim(claims)),
                // The watch has the same answer, and no pod with claims is placed.
                Err(ListError::Request(kube::Error::Api(status))) if matches!(status.code, 403 | 404) => {
                    Ok(InquiryAnswer::EachClaim(Vec::new()))
                }
                Err(error) => Err(error),
            }
        });
        inquiry
    }

    /// Asks for every pod.
    pub fn ask_for_pods(&mut self) {
        let client = self.client.clone();
        self.asked.spawn(async move {
            let (_, pods) = each::<Pod>(&client, ListParams::default().fields(watch::PODS)).await?;
            Ok(InquiryAnswer::EachPod(pods))
        });
    }

    /// The next answer; `None` after the last one.
    pub async fn next(&mut self) -> Option<Result<Result<InquiryAnswer, ListError>, JoinError>> {
        self.asked.join_next().await
    }

    /// Whether all answers have arrived.
    pub fn is_over(&self) -> bool {
        self.asked.is_empty()
    }
}

fn path<T>() -> String
where
    Watched<T>: Resource<DynamicType = ()>,
{
    Watched::<T>::url_path(&(), None)
}

/// The resource version of a kind, and that of each of its objects.
async fn each<T>(client: &Client, parameters: ListParams) -> Result<(String, Vec<ObjectVersion>), ListError>
where
    Watched<T>: Resource<DynamicType = ()>,
{
    let mut all = Vec::new();
    // What has no name that can be read is not known to the watch either.
    let read = |named: Result<NamedObject, Strange<'_>>| all.extend(named.map(|named| named.metadata));
    let version = list(client, &path::<T>(), ListForm::Metadata, parameters, read).await?;
    Ok((version, all))
}
