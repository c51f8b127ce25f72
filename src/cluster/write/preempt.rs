//! The writes of a preemption: the nominated node in the status of the pod that needs room, and the deletion of a pod that must go.

use http::{Request, header::CONTENT_TYPE};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

use super::{
    send::{CLIENT_TIMEOUT, SERVER_TIMEOUT, SendError, send},
    tell::seconds,
};
use crate::{
    cluster::read::{PREEMPTION_BY_SCHEDULER, ROOM_KEPT, room_reason},
    scheduling::{
        PodKey, WriteOutcome,
        model::kept_room::{RoomCourse, RoomStatus},
    },
};

/// Writes which node is kept for a pod, and what became of the room that is kept for it because it waits long; `None`: none is any more, and that is
/// left as it is. A pod that is gone counts as written.
pub(super) async fn nominate(
    client: Client,
    pod: &PodKey,
    node: Option<&str>,
    room: Option<RoomStatus>,
) -> WriteOutcome {
    let mut body = json!({"metadata": {"uid": &*pod.uid}, "status": {"nominatedNodeName": node}});
    if let Some(room) = room {
        body["status"]["conditions"] = json!([room_kept(room)]);
    }
    outcome(send::<Value>(client, status(pod, &body), CLIENT_TIMEOUT).await)
}

/// Deletes a pod with its own grace period, after its condition says why (v1.36 `pkg/scheduler/framework/preemption/executor.go`). A pod
/// that is gone counts as written.
pub(super) async fn preempt(client: Client, pod: &PodKey, scheduler: &str, now: Timestamp) -> WriteOutcome {
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": PREEMPTION_BY_SCHEDULER,
        "message": format!("{scheduler}: preempting to accommodate a higher priority pod"),
        "lastTransitionTime": seconds(now),
    });
    let body = json!({"metadata": {"uid": &*pod.uid}, "status": {"conditions": [condition]}});
    match outcome(send::<Value>(client.clone(), status(pod, &body), CLIENT_TIMEOUT).await) {
        WriteOutcome::Written { .. } => outcome(send::<Value>(client, deletion(pod), CLIENT_TIMEOUT).await),
        failed => failed,
    }
}

/// The condition that says what became of a pod's room.
fn room_kept(room: RoomStatus) -> Value {
    let message = match room.course {
        // Which node that is says `nominatedNodeName`: with `messages.details: own`, no message does.
        RoomCourse::Kept => "the node to which the Pod is nominated is kept for it, since it waits long",
        RoomCourse::GivenUp => "the Pod did not find its place in the time for which room is kept",
        RoomCourse::Lost => {
            "the node that was kept for the Pod is gone, can't have it any more, or is needed for a Pod of higher priority"
        }
    };
    json!({
        "type": ROOM_KEPT,
        "status": if room.course == RoomCourse::Kept { "True" } else { "False" },
        "reason": room_reason(room.course),
        "message": message,
        "lastTransitionTime": seconds(room.since),
    })
}

fn outcome(answer: Result<Value, SendError>) -> WriteOutcome {
    match answer {
        Ok(object) => {
            let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
            WriteOutcome::Written { resource_version: version.to_owned() }
        }
        Err(error) if error.code() == Some(404) => WriteOutcome::Written { resource_version: String::new() },
        // A conflict among others: another pod may have the name by now, or the pod is being changed by others.
        Err(error) if error.is_refusal() => WriteOutcome::Refused(error.to_string()),
        Err(error) => WriteOutcome::Failed(error.setback()),
    }
}

fn status(pod: &PodKey, body: &Value) -> Request<Vec<u8>> {
    let (path, timeout) = (path(pod), SERVER_TIMEOUT.as_secs());
    Request::patch(format!("{path}/status?timeout={timeout}s"))
        .header(CONTENT_TYPE, "application/strategic-merge-patch+json")
        .body(body.to_string().into_bytes())
        .expect("names of Kubernetes objects are valid in a path")
}

fn deletion(pod: &PodKey) -> Request<Vec<u8>> {
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": &*pod.uid}});
    let (path, timeout) = (path(pod), SERVER_TIMEOUT.as_secs());
    Request::delete(format!("{path}?timeout={timeout}s"))
        .header(CONTENT_TYPE, "application/json")
        .body(options.to_string().into_bytes())
        .expect("names of Kubernetes objects are valid in a path")
}

fn path(pod: &PodKey) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", pod.namespace, pod.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::read::stated_room;

    #[test]
    fn only_a_pod_that_is_gone_needs_no_further_write() {
        let answered = |code| {
            let error = SendError::Answered { code, message: "why".to_owned(), retry_after: None };
            outcome(Err(error))
        };
        let version = |version: &str| WriteOutcome::Written { resource_version: version.to_owned() };
        assert_eq!(outcome(Ok(json!({"metadata": {"resourceVersion": "7"}}))), version("7"));
        assert_eq!(answered(404), version(""));
        for code in [400, 401, 403, 422] {
            assert!(matches!(answered(code), WriteOutcome::Refused(_)), "{code}");
        }
        for code in [409, 429, 500, 503, 504] {
            assert!(matches!(answered(code), WriteOutcome::Failed(_)), "{code}");
        }
    }

    #[test]
    fn each_write_is_of_this_pod_alone_and_ends_in_time() {
        let pod = PodKey { uid: "u".into(), namespace: "team-a".into(), name: "p".into() };
        let patch = status(&pod, &json!({"metadata": {"uid": "u"}}));
        let delete = deletion(&pod);
        assert_eq!(
            patch.uri().to_string(),
            format!("/api/v1/namespaces/team-a/pods/p/status?timeout={}s", SERVER_TIMEOUT.as_secs())
        );
        let body: Value = serde_json::from_slice(delete.body()).unwrap();
        assert_eq!((delete.method().as_str(), &body["preconditions"]), ("DELETE", &json!({"uid": "u"})));
    }

    #[test]
    fn what_is_written_of_a_room_is_read_back() {
        let since = Timestamp::from_second(1_800_000_000).unwrap();
        for course in [RoomCourse::Kept, RoomCourse::GivenUp, RoomCourse::Lost] {
            let room = RoomStatus { course, since };
            let condition = room_kept(room);
            let kept = if course == RoomCourse::Kept { "True" } else { "False" };
            assert_eq!(condition["status"], kept);
            let pod = json!({"metadata": {"name": "p", "uid": "u"}, "status": {"conditions": [condition]}});
            assert_eq!(stated_room(&serde_json::from_value(pod).unwrap()), Some(room));
        }
    }
}
