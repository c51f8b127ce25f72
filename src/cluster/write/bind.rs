//! Binding a pod: node and assignment in one write.

use http::Request;
use jiff::Timestamp;
use kube::{Client, core::Status};
use serde_json::json;

use super::send::{CLIENT_TIMEOUT, SERVER_TIMEOUT, SendError, send};
use crate::{
    device::{Allocation, DevicePlace},
    dialect::{Dialects, Record},
    scheduling::{BindOutcome, PodKey},
};

/// The annotations and labels of a Binding to this node, for the device plugins of all dialects: `given` are the pod's shares and, where it is given
/// devices by type, the node's devices, and `zone` is the node's revocable zone. The error says what a dialect can't serve.
pub fn record(
    dialects: &Dialects,
    given: (&[Allocation], Option<&DevicePlace>),
    node: &str,
    zone: Option<&str>,
    now: Timestamp,
) -> Result<Record, String> {
    let (allocations, devices) = given;
    allocations.iter().try_fold(Record::lent(zone), |record, one| {
        let dialect = dialects.named(&one.profile).expect("a pod asks for shares of dialects that were read");
        let given = &one.assignment;
        let adaption = devices.map(|place| dialect.adaption(&given.devices, (node, place), now));
        Ok(record.and(dialect.record(given, node, now)).and(adaption.transpose()?.unwrap_or_default()))
    })
}

/// Sends the Binding: `POST …/pods/{name}/binding` with the pod's uid as precondition and the assignment's annotations, which the API
/// server merges into the pod in the same write (kubernetes `pkg/registry/core/pod/storage/storage.go`).
pub async fn bind(client: Client, pod: &PodKey, node: &str, record: Record) -> BindOutcome {
    outcome(send::<Status>(client, request(pod, node, &record), CLIENT_TIMEOUT).await.map(drop))
}

/// The outcome of a Binding for the pod. If the pod may be gone or bound already, the outcome is in doubt, and the pod is read.
fn outcome(answer: Result<(), SendError>) -> BindOutcome {
    match answer {
        Ok(()) => BindOutcome::Bound,
        Err(error) if error.is_refusal() => BindOutcome::Refused(error.to_string()),
        Err(error) if error.is_throttled() => BindOutcome::Throttled(error.setback()),
        Err(error) => BindOutcome::Doubtful(error.setback()),
    }
}

fn request(pod: &PodKey, node: &str, record: &Record) -> Request<Vec<u8>> {
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": &*pod.name,
            "namespace": &*pod.namespace,
            "uid": &*pod.uid,
            "annotations": record.annotations,
            "labels": record.labels,
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    let (namespace, name, timeout) = (&pod.namespace, &pod.name, SERVER_TIMEOUT.as_secs());
    Request::post(format!("/api/v1/namespaces/{namespace}/pods/{name}/binding?timeout={timeout}s"))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(binding.to_string().into_bytes())
        .expect("names of Kubernetes objects are valid in a path")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::effect::REACH;

    /// The name of an outcome, as a label.
    fn name(outcome: &BindOutcome) -> &'static str {
        match outcome {
            BindOutcome::Bound => "bound",
            BindOutcome::Throttled(_) => "throttled",
            BindOutcome::Doubtful(_) => "doubtful",
            BindOutcome::Refused(_) => "refused",
        }
    }

    #[test]
    fn the_api_server_ends_a_binding_before_the_scheduler_relies_on_its_end() {
        let pod = PodKey { uid: "u".into(), namespace: "default".into(), name: "p".into() };
        let uri = request(&pod, "n1", &Record::default()).uri().to_string();
        let timeout = uri.split_once("?timeout=").and_then(|(_, timeout)| timeout.strip_suffix('s'));
        let timeout: i64 = timeout.unwrap().parse().unwrap();
        assert!((1..REACH.as_secs()).contains(&timeout), "{uri}");
    }

    #[test]
    fn only_what_cannot_have_been_carried_out_is_not_in_doubt() {
        assert_eq!(name(&outcome(Ok(()))), "bound");
        let cases = [
            (400, "refused"),
            (401, "refused"),
            (403, "refused"),
            (404, "doubtful"),
            (409, "doubtful"),
            (410, "doubtful"),
            (422, "refused"),
            (429, "throttled"),
            (500, "doubtful"),
            (502, "doubtful"),
            (503, "doubtful"),
            (504, "doubtful"),
        ];
        for (code, expected) in cases {
            let error = SendError::Answered { code, message: String::new(), retry_after: None };
            assert_eq!(name(&outcome(Err(error))), expected, "{code}");
        }
        assert_eq!(name(&outcome(Err(SendError::Late(CLIENT_TIMEOUT)))), "doubtful");
        let lost = kube::Error::Service("connection reset by peer".into());
        assert_eq!(name(&outcome(Err(SendError::Lost(lost)))), "doubtful");
    }
}
