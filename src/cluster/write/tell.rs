//! Events, and the conditions of pods.
//!
//! Reasons and actions are kube-scheduler's (`pkg/scheduler/schedule_one.go`, `util/utils.go`), since tools look for them.

use std::time::Duration;

use http::{Method, Request, header::CONTENT_TYPE};
use jiff::Timestamp;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::Client;
use serde::Serialize;
use serde_json::{Value, json};

use super::send::{SendError, send};
use crate::{
    cluster::read::group::{condition_reason, condition_type, version_of},
    excerpt::{NOTE, SUMMARY, excerpt, shortened},
    scheduling::{Concern, Details, PendingReason, PodKey, model::group_statement::GroupStatement},
};

/// The longest time to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(8);

/// The condition of a pod whose cards the device plugin could not allocate.
const ALLOCATED: &str = "berth.dev/DevicesAllocated";

/// The namespace of Events about objects without a namespace, as for the kubelet's Events about nodes.
const NAMESPACE_OF_NODES: &str = "default";

/// The longest note that the API server accepts, in bytes (`pkg/apis/core/validation/events.go`).
const LONGEST_NOTE: usize = 1024;

/// The content of an Event about a pod, a node or a namespace.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    /// The pod was bound.
    Scheduled {
        /// The pod's node.
        node: &'a str,
    },
    /// No node accepts the pod.
    FailedScheduling {
        /// The reasons, in kube-scheduler's form.
        message: &'a str,
    },
    /// The pod waits in the line of its node.
    Waiting {
        /// What it waits for, and since when.
        message: &'a str,
    },
    /// The device plugin could not allocate the pod's cards.
    FailedAllocation {
        /// The plugin's node.
        node: &'a str,
    },
    /// The audit has corrected the ledger.
    Drift {
        /// What was wrong.
        what: &'a str,
    },
    /// The device plugin has not answered for the pod.
    SilentAgent {
        /// The plugin's node.
        node: &'a str,
    },
    /// A card of the pod is overcommitted.
    Excess {
        /// The card, what pods hold of it, and what it has.
        message: &'a str,
    },
    /// It is deleted to make room for another pod.
    Preempted {
        /// Its node.
        node: &'a str,
        /// The pod that needs the room.
        preemptor: &'a PodKey,
    },
    /// Several claims were given a device of it.
    DoubleAllocation {
        /// Which device, and which claims.
        message: &'a str,
    },
    /// It requests a share and is bound without an assignment.
    Unassigned {
        /// What is missing, and what to do.
        message: &'a str,
    },
    /// The pod is evicted from a node whose revocable zone is closed.
    Evicted {
        /// From which node, and until when the zone is closed.
        message: &'a str,
    },
    /// The pod is evicted, since its gang could not be bound as a whole.
    RolledBack {
        /// Which gang.
        message: &'a str,
    },
    /// The pod is to be evicted, and stays for now.
    EvictionPostponed {
        /// From which node, and why not yet.
        message: &'a str,
    },
    /// The settings file of this replica was rejected.
    RejectedSettings {
        /// What is wrong with it.
        message: &'a str,
    },
    /// Moving pods would free GPUs.
    Advice {
        /// How many.
        message: &'a str,
    },
    /// The pod's assignment can't be read.
    Unread {
        /// The annotation, the reason, and what follows.
        message: &'a str,
    },
}

/// What the condition of a pod says that waits for this reason, and what that leaves out.
pub fn condition_text(reason: &PendingReason, details: Details) -> (String, Option<String>) {
    let (message, left_out) = reason.message().told(details);
    (shortened(message, SUMMARY), left_out)
}

/// Creates an Event. A second call with the same time makes the same Event, since its name has the time.
pub async fn event(
    client: Client,
    (reporter, details): (&str, Details),
    of: &Concern,
    news: News<'_>,
    now: Timestamp,
) -> Result<(), SendError> {
    let event = about((reporter, details), of, news, now);
    let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
    let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    write(client, Method::POST, path, "application/json", &event).await
}

/// Sets `PodScheduled=False/Unschedulable`, which cluster autoscalers look for, if the pod still has this resource version: a late
/// message must not be set on a pod that is bound by then.
pub async fn unschedulable(
    client: Client,
    pod: &PodKey,
    resource_version: &str,
    message: &str,
    now: Timestamp,
) -> Result<(), SendError> {
    let metadata = json!({"uid": &*pod.uid, "resourceVersion": resource_version});
    condition(client, pod, metadata, ["PodScheduled", "Unschedulable", message], now).await
}

/// Sets `berth.dev/DevicesAllocated=False/FailedAllocation`. The kubelet fails the pod, and its owner replaces it.
pub async fn failed_allocation(
    client: Client,
    pod: &PodKey,
    (node, details): (&str, Details),
    now: Timestamp,
) -> Result<(), SendError> {
    let words = [ALLOCATED, "FailedAllocation", &failure(pod, node, details)];
    condition(client, pod, json!({"uid": &*pod.uid}), words, now).await
}

/// Sets the condition of a PodGroup of Kubernetes that says whether its pods are placed, if it still is the same PodGroup.
pub async fn group(client: Client, statement: &GroupStatement, now: Timestamp) -> Result<(), SendError> {
    let GroupStatement { kind, group, uid, condition, since } = statement;
    let (namespace, name) = group.split_once('/').unwrap_or_default();
    let condition = json!({
        "type": condition_type(*kind),
        "status": if condition.outcome.is_scheduled() { "True" } else { "False" },
        "reason": condition_reason(condition.outcome),
        "message": excerpt(&condition.message, SUMMARY),
        "lastTransitionTime": seconds(since.unwrap_or(now)),
    });
    let patch = json!({"metadata": {"uid": &**uid}, "status": {"conditions": [condition]}});
    let version = version_of(*kind);
    let status = format!("/apis/scheduling.k8s.io/{version}/namespaces/{namespace}/podgroups/{name}/status");
    write(client, Method::PATCH, status, "application/strategic-merge-patch+json", &patch).await
}

/// As conditions state times.
pub(super) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Sets a condition of a pod to false.
async fn condition(
    client: Client,
    pod: &PodKey,
    metadata: Value,
    [kind, reason, message]: [&str; 3],
    now: Timestamp,
) -> Result<(), SendError> {
    let condition = json!({
        "type": kind,
        "status": "False",
        "reason": reason,
        "message": excerpt(message, SUMMARY),
        "lastTransitionTime": seconds(now),
    });
    let patch = json!({"metadata": metadata, "status": {"conditions": [condition]}});
    let status = format!("/api/v1/namespaces/{}/pods/{}/status", pod.namespace, pod.name);
    write(client, Method::PATCH, status, "application/strategic-merge-patch+json", &patch).await
}

async fn write(
    client: Client,
    method: Method,
    path: String,
    content: &str,
    body: &impl Serialize,
) -> Result<(), SendError> {
    let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, content);
    let body = serde_json::to_vec(body).expect("what is told has string keys only");
    let request = request.body(body).expect("names of Kubernetes objects are valid in a path");
    send::<serde::de::IgnoredAny>(client, request, PATIENCE).await.map(drop)
}

/// How a message about a bound pod calls the pod's node.
fn its_node(node: &str, details: Details) -> String {
    match details {
        Details::Full => format!("node {node}"),
        Details::Own => "its node".to_owned(),
    }
}

fn failure(pod: &PodKey, node: &str, details: Details) -> String {
    let node = its_node(node, details);
    format!(
        "The device plugin of {node} could not allocate the GPU share of {pod}; the share is free again when the pod ends"
    )
}

fn about((reporter, details): (&str, Details), of: &Concern, news: News<'_>, now: Timestamp) -> Event {
    let regarding = regarding(of);
    let related = match news {
        News::Preempted { preemptor, .. } if is_told(preemptor, of, details) => {
            Some(self::regarding(&Concern::Pod(preemptor.clone())))
        }
        _ => None,
    };
    let namespace = regarding.namespace.as_deref().unwrap_or(NAMESPACE_OF_NODES).to_owned();
    let name = regarding.name.as_deref().unwrap_or_default();
    let (kind, reason, action, note) = words(of, news, details);
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{name}.{:x}", now.as_nanosecond())),
            namespace: Some(namespace),
            ..ObjectMeta::default()
        },
        action: Some(action.to_owned()),
        event_time: Some(MicroTime(now)),
        note: Some(excerpt(&note, LONGEST_NOTE - NOTE).into_owned()),
        reason: Some(reason.to_owned()),
        regarding: Some(regarding),
        related,
        reporting_controller: Some(reporter.to_owned()),
        reporting_instance: Some(reporter.to_owned()),
        type_: Some(kind.to_owned()),
        ..Event::default()
    }
}

/// Whether the pod that preempts another is named to who reads of the other: of their own namespace it is in any case.
fn is_told(preemptor: &PodKey, of: &Concern, details: Details) -> bool {
    details == Details::Full || matches!(of, Concern::Pod(victim) if victim.namespace == preemptor.namespace)
}

/// Type, reason, action and note of the Event.
fn words(
    of: &Concern,
    news: News<'_>,
    details: Details,
) -> (&'static str, &'static str, &'static str, String) {
    match news {
        News::Scheduled { node } => {
            let to = match details {
                Details::Full => format!(" to {node}"),
                Details::Own => String::new(),
            };
            ("Normal", "Scheduled", "Binding", format!("Successfully assigned {}{to}", named(of)))
        }
        News::FailedScheduling { message } => {
            ("Warning", "FailedScheduling", "Scheduling", message.to_owned())
        }
        News::Waiting { message } => ("Normal", "WaitingForNode", "Scheduling", message.to_owned()),
        News::FailedAllocation { node } => {
            let note = match of {
                Concern::Pod(pod) => failure(pod, node, details),
                Concern::Node(_) | Concern::Namespace(_) => {
                    format!("The device plugin of node {node} failed")
                }
            };
            ("Warning", "FailedAllocation", "Allocating", note)
        }
        News::Drift { what } => {
            let note = format!("Berth's record was wrong and has been corrected: {what}");
            ("Warning", "LedgerDrift", "Auditing", note)
        }
        News::SilentAgent { node } => {
            let note = format!(
                "The device plugin of {} has not answered for {}; meanwhile Berth places no further pods on the node",
                its_node(node, details),
                named(of)
            );
            ("Warning", "DevicePluginSilent", "Allocating", note)
        }
        News::Preempted { node, preemptor } => {
            let note = match details {
                Details::Full => format!("Preempted by pod {} on node {node}", preemptor.uid),
                Details::Own if is_told(preemptor, of, details) => {
                    format!("Preempted by pod {}", preemptor.uid)
                }
                Details::Own => "Preempted to make room for a pod of higher priority".to_owned(),
            };
            ("Normal", "Preempted", "Preempting", note)
        }
        News::Excess { message } => ("Warning", "CardOvercommitted", "Allocating", message.to_owned()),
        News::DoubleAllocation { message } => {
            ("Warning", "DeviceAllocatedTwice", "Allocating", message.to_owned())
        }
        News::Unassigned { message } => ("Warning", "MissingAssignment", "Allocating", message.to_owned()),
        News::Evicted { message } => ("Normal", "RevocableZoneClosed", "Evicting", message.to_owned()),
        News::RolledBack { message } => ("Warning", "Evicted", "Evicting", message.to_owned()),
        News::EvictionPostponed { message } => {
            ("Warning", "EvictionPostponed", "Evicting", message.to_owned())
        }
        News::RejectedSettings { message } => {
            let note =
                format!("The settings file was rejected, the previous settings stay in force: {message}");
            ("Warning", "SettingsRejected", "Reloading", note)
        }
        News::Advice { message } => ("Normal", "MovesPay", "Planning", message.to_owned()),
        News::Unread { message } => ("Warning", "UnreadableAssignment", "Allocating", message.to_owned()),
    }
}

fn named(of: &Concern) -> String {
    match of {
        Concern::Pod(pod) => pod.to_string(),
        Concern::Node(node) => format!("node {node}"),
        Concern::Namespace(namespace) => format!("namespace {namespace}"),
    }
}

/// A node is its own uid there, as for kubelet's Events (`pkg/kubelet/kubelet.go`, `nodeRef`).
fn regarding(of: &Concern) -> ObjectReference {
    let (kind, namespace, name, uid) = match of {
        Concern::Pod(pod) => ("Pod", Some(pod.namespace.to_string()), &pod.name, &pod.uid),
        Concern::Node(node) => ("Node", None, node, node),
        Concern::Namespace(namespace) => ("Namespace", Some(namespace.to_string()), namespace, namespace),
    };
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some(kind.to_owned()),
        name: Some(name.to_string()),
        namespace,
        uid: Some(uid.to_string()),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_of_news_is_an_event_about_whom_it_concerns() {
        let pod = || Concern::Pod(PodKey { uid: "u".into(), namespace: "team-a".into(), name: "p".into() });
        let wrong = "Berth's record was wrong and has been corrected: why";
        let silent = "The device plugin of node n1 has not answered for team-a/p; \
                      meanwhile Berth places no further pods on the node";
        let failed = "The device plugin of node n1 could not allocate the GPU share of team-a/p; \
                      the share is free again when the pod ends";
        let cases = [
            (
                News::Scheduled { node: "n1" },
                pod(),
                ["Normal", "Scheduled", "Successfully assigned team-a/p to n1"],
            ),
            (News::FailedScheduling { message: "why" }, pod(), ["Warning", "FailedScheduling", "why"]),
            (News::Waiting { message: "why" }, pod(), ["Normal", "WaitingForNode", "why"]),
            (News::FailedAllocation { node: "n1" }, pod(), ["Warning", "FailedAllocation", failed]),
            (News::SilentAgent { node: "n1" }, pod(), ["Warning", "DevicePluginSilent", silent]),
            (News::Excess { message: "why" }, pod(), ["Warning", "CardOvercommitted", "why"]),
            (News::DoubleAllocation { message: "why" }, pod(), ["Warning", "DeviceAllocatedTwice", "why"]),
            (News::Unassigned { message: "why" }, pod(), ["Warning", "MissingAssignment", "why"]),
            (News::Evicted { message: "why" }, pod(), ["Normal", "RevocableZoneClosed", "why"]),
            (News::RolledBack { message: "why" }, pod(), ["Warning", "Evicted", "why"]),
            (News::EvictionPostponed { message: "why" }, pod(), ["Warning", "EvictionPostponed", "why"]),
            (
                News::RejectedSettings { message: "why" },
                pod(),
                [
                    "Warning",
                    "SettingsRejected",
                    "The settings file was rejected, the previous settings stay in force: why",
                ],
            ),
            (News::Drift { what: "why" }, pod(), ["Warning", "LedgerDrift", wrong]),
            (News::Drift { what: "why" }, Concern::Node("p".into()), ["Warning", "LedgerDrift", wrong]),
            (News::Drift { what: "why" }, Concern::Namespace("p".into()), ["Warning", "LedgerDrift", wrong]),
        ];
        for (news, of, expected) in cases {
            let event = about(("berth", Details::Full), &of, news, Timestamp::UNIX_EPOCH);
            let said = [event.type_, event.reason, event.note].map(Option::unwrap);
            assert_eq!(said, expected, "{of:?}");
            let namespace = match of {
                Concern::Pod(_) => "team-a",
                Concern::Node(_) => NAMESPACE_OF_NODES,
                Concern::Namespace(_) => "p",
            };
            assert_eq!(event.metadata.namespace.as_deref(), Some(namespace), "{of:?}");
            assert_eq!(event.regarding.and_then(|regarding| regarding.name).as_deref(), Some("p"));
        }
    }

    /// A pod, of another namespace if that is said, is preempted by one of `team-a`.
    fn preempted(namespace: &str, details: Details) -> (String, bool) {
        let key = |namespace: &str, name: &str| PodKey {
            uid: format!("uid-{name}").into(),
            namespace: namespace.into(),
            name: name.into(),
        };
        let preemptor = key("team-a", "urgent");
        let news = News::Preempted { node: "n1", preemptor: &preemptor };
        let event =
            about(("berth", details), &Concern::Pod(key(namespace, "p")), news, Timestamp::UNIX_EPOCH);
        (event.note.unwrap(), event.related.is_some())
    }

    #[test]
    fn a_preempted_pod_is_told_of_the_other_as_far_as_that_is_its_owners_business() {
        let full = ("Preempted by pod uid-urgent on node n1".to_owned(), true);
        assert_eq!(preempted("team-b", Details::Full), full, "as kube-scheduler says it");
        let own = ("Preempted to make room for a pod of higher priority".to_owned(), false);
        assert_eq!(preempted("team-b", Details::Own), own);
        assert_eq!(preempted("team-a", Details::Own), ("Preempted by pod uid-urgent".to_owned(), true));
    }

    #[test]
    fn no_event_about_a_pod_names_its_node_where_only_what_is_its_owners_is_told() {
        let of = Concern::Pod(PodKey { uid: "u".into(), namespace: "team-a".into(), name: "p".into() });
        let node = "some-node";
        for news in [News::Scheduled { node }, News::FailedAllocation { node }, News::SilentAgent { node }] {
            let told = |details| about(("berth", details), &of, news, Timestamp::UNIX_EPOCH).note.unwrap();
            assert!(told(Details::Full).contains(node), "{news:?}");
            assert!(
                !told(Details::Own).contains(node) && told(Details::Own).contains("team-a/p"),
                "{news:?}"
            );
        }
    }

    #[test]
    fn a_long_note_is_cut_between_characters_and_forges_no_line() {
        let of = Concern::Node("n1".into());
        let message = format!("\n{}", "ä".repeat(600));
        for news in [
            News::FailedScheduling { message: &message },
            News::Waiting { message: &message },
            News::Drift { what: &message },
            News::Excess { message: &message },
            News::Unread { message: &message },
            News::DoubleAllocation { message: &message },
            News::Unassigned { message: &message },
            News::EvictionPostponed { message: &message },
            News::RejectedSettings { message: &message },
        ] {
            let note = about(("berth", Details::Full), &of, news, Timestamp::UNIX_EPOCH).note.unwrap();
            assert!(note.len() <= LONGEST_NOTE && note.ends_with(" more characters)"), "{note}");
            assert!(note.contains(r"\nä"), "{note}");
        }
    }
}
