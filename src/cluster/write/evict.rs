//! Evicting a pod through the Eviction API, which holds to the PodDisruptionBudgets.

use http::{Request, header::CONTENT_TYPE};
use kube::Client;
use serde::de::IgnoredAny;
use serde_json::json;

use super::send::{CLIENT_TIMEOUT, SERVER_TIMEOUT, SendError, send};
use crate::scheduling::{EvictionOutcome, PodKey};

/// Sends the eviction: `POST …/pods/{name}/eviction`, with the pod's uid as precondition (kubernetes
/// `pkg/registry/core/pod/storage/eviction.go`).
pub async fn evict(client: Client, pod: &PodKey) -> EvictionOutcome {
    outcome(send::<IgnoredAny>(client, request(pod), CLIENT_TIMEOUT).await.map(drop))
}

/// 429 says that a budget does not allow it, and also that the API server has too much to do: nothing is evicted either way. 409 says that
/// the pod of this name has another uid.
fn outcome(answer: Result<(), SendError>) -> EvictionOutcome {
    match answer {
        Ok(()) => EvictionOutcome::Granted,
        Err(error) if matches!(error.code(), Some(404 | 409)) => EvictionOutcome::Gone,
        Err(error) if error.is_refusal() || error.is_throttled() => {
            EvictionOutcome::Refused(error.to_string())
        }
        Err(_) => EvictionOutcome::Doubtful,
    }
}

fn request(pod: &PodKey) -> Request<Vec<u8>> {
    let PodKey { uid, namespace, name } = pod;
    let eviction = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": &**name, "namespace": &**namespace},
        "deleteOptions": {"preconditions": {"uid": &**uid}},
    });
    let timeout = SERVER_TIMEOUT.as_secs();
    Request::post(format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction?timeout={timeout}s"))
        .header(CONTENT_TYPE, "application/json")
        .body(eviction.to_string().into_bytes())
        .expect("names of Kubernetes objects are valid in a path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_not_have_been_carried_out_is_not_in_doubt() {
        let answered = |code| {
            let error = SendError::Answered { code, message: "why".to_owned(), retry_after: None };
            outcome(Err(error))
        };
        assert_eq!(outcome(Ok(())), EvictionOutcome::Granted);
        for code in [404, 409] {
            assert_eq!(answered(code), EvictionOutcome::Gone, "{code}");
        }
        for code in [400, 401, 403, 422, 429] {
            assert!(matches!(answered(code), EvictionOutcome::Refused(_)), "{code}");
        }
        for code in [500, 503, 504] {
            assert_eq!(answered(code), EvictionOutcome::Doubtful, "{code}");
        }
        assert_eq!(outcome(Err(SendError::Late(CLIENT_TIMEOUT))), EvictionOutcome::Doubtful);
    }
}
