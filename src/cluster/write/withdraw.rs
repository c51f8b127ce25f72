//! Withdraws the assignment of a pod that ended before its allocation.

use std::collections::BTreeMap;

use http::{Request, header::CONTENT_TYPE};
use kube::Client;
use serde_json::json;

use super::send::{CLIENT_TIMEOUT, SERVER_TIMEOUT};
use crate::{cluster::informer::wire::Watched, object::Pod, scheduling::PodKey};

/// Why an assignment was not withdrawn.
#[derive(Debug, thiserror::Error)]
pub enum WithdrawError {
    /// The API server could not be reached, or refused the write.
    #[error(transparent)]
    Refused(#[from] kube::Error),
    /// No answer came in time.
    #[error("no answer within {CLIENT_TIMEOUT:?}")]
    Unanswered,
}

/// Writes the annotations, if the pod still has this uid; a deleted pod needs no write.
///
/// It goes through the pod's status, beside which the API server takes metadata too (`pkg/registry/core/pod/strategy.go`
/// `podStatusStrategy`), so that Berth needs no right to change pods.
pub async fn withdraw(
    client: Client,
    pod: &PodKey,
    annotations: &BTreeMap<String, String>,
) -> Result<(), WithdrawError> {
    let PodKey { uid, namespace, name } = pod;
    let timeout = SERVER_TIMEOUT.as_secs();
    let body = json!({"metadata": {"uid": &**uid, "annotations": annotations}});
    let request =
        Request::patch(format!("/api/v1/namespaces/{namespace}/pods/{name}/status?timeout={timeout}s"))
            .header(CONTENT_TYPE, "application/merge-patch+json")
            .body(body.to_string().into_bytes())
            .expect("names of Kubernetes objects are valid in a path");
    let sent = client.request::<Watched<Pod>>(request);
    match tokio::time::timeout(CLIENT_TIMEOUT, sent).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(()),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(WithdrawError::Unanswered),
    }
}
