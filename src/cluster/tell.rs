//! What people are told: Events, and the `PodScheduled` condition of a pod that waits.
//!
//! Reasons, actions and lengths are kube-scheduler's (`pkg/scheduler/schedule_one.go`, `util/utils.go`), since tools look for them.

use jiff::Timestamp;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::wire::Watched;
use crate::{object::Pod, scheduling::PodKey};

/// The longest note that the API server takes.
const LONGEST_NOTE: usize = 1024;

/// One thing to tell about a pod.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    /// It is bound.
    Scheduled {
        /// To which node.
        node: &'a str,
    },
    /// It waits.
    FailedScheduling {
        /// Why.
        message: &'a str,
    },
    /// Its node's agent gives no sign.
    SilentAgent {
        /// On which node.
        node: &'a str,
    },
    /// More is held of one of its cards than there is.
    Excess {
        /// What is held, and what there is.
        message: &'a str,
    },
}

/// Writes an Event about the pod.
pub async fn event(
    client: Client,
    reporter: &str,
    pod: &PodKey,
    news: News<'_>,
    now: Timestamp,
) -> Result<(), kube::Error> {
    let events: Api<Event> = Api::namespaced(client, &pod.namespace);
    events.create(&PostParams::default(), &about(reporter, pod, news, now)).await.map(drop)
}

/// Sets `PodScheduled=False/Unschedulable`, which cluster autoscalers look for, if the pod still has this version: a word that comes
/// late must not be said of a pod that is bound by then.
pub async fn unschedulable(
    client: Client,
    pod: &PodKey,
    resource_version: &str,
    message: &str,
    now: Timestamp,
) -> Result<(), kube::Error> {
    let condition = json!({
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    });
    let patch = json!({"metadata": {"uid": &*pod.uid, "resourceVersion": resource_version}, "status": {"conditions": [condition]}});
    let pods: Api<Watched<Pod>> = Api::namespaced(client, &pod.namespace);
    pods.patch_status(&pod.name, &PatchParams::default(), &Patch::Strategic(patch)).await.map(drop)
}

fn about(reporter: &str, pod: &PodKey, news: News<'_>, now: Timestamp) -> Event {
    let (kind, reason, action, note) = match news {
        News::Scheduled { node } => {
            ("Normal", "Scheduled", "Binding", format!("Successfully assigned {pod} to {node}"))
        }
        News::FailedScheduling { message } => {
            ("Warning", "FailedScheduling", "Scheduling", message.to_owned())
        }
        News::SilentAgent { node } => {
            let note =
                format!("The device plugin of node {node} has not answered for {pod}; other pods go on");
            ("Warning", "DevicePluginSilent", "Allocating", note)
        }
        News::Excess { message } => ("Warning", "CardOvercommitted", "Allocating", message.to_owned()),
    };
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{}.{:x}", pod.name, now.as_nanosecond())),
            namespace: Some(pod.namespace.to_string()),
            ..ObjectMeta::default()
        },
        action: Some(action.to_owned()),
        event_time: Some(MicroTime(now)),
        note: Some(cut(note)),
        reason: Some(reason.to_owned()),
        regarding: Some(ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: Some(pod.name.to_string()),
            namespace: Some(pod.namespace.to_string()),
            uid: Some(pod.uid.to_string()),
            ..ObjectReference::default()
        }),
        reporting_controller: Some(reporter.to_owned()),
        reporting_instance: Some(reporter.to_owned()),
        type_: Some(kind.to_owned()),
        ..Event::default()
    }
}

/// A note that is too long ends in ` ...`, as kube-scheduler's do.
fn cut(note: String) -> String {
    const END: &str = " ...";
    if note.len() <= LONGEST_NOTE {
        return note;
    }
    let most = LONGEST_NOTE - END.len();
    let at = (0..=most).rev().find(|&at| note.is_char_boundary(at)).unwrap_or(0);
    note[..at].to_owned() + END
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_note_is_cut_between_characters() {
        let cut = cut("ä".repeat(600));
        assert!(cut.len() <= LONGEST_NOTE && cut.ends_with("ä ..."), "{} bytes", cut.len());
    }
}
