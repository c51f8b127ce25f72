//! Binding claims alone: what is requested of a scheduler that decides nothing.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    PrebindInput, PrebindRequest, PrebindView, Prebinding,
    reason::{Awaited, DevicesFailure, PrebindReason, VolumeFailure},
};
use crate::scheduling::{
    Snapshot,
    fixtures::key,
    model::{
        message::Details,
        name::NodeName,
        node::NodeInfo,
        outcome::{Setback, WriteOutcome},
        pod::PodInfo,
        prebind_step::{PrebindStep, VolumeChoice},
        prebind_write::PrebindWrite,
    },
    world::{object::Object, pod_lister::PodLister},
};

const SELECTED: &str = "volume.kubernetes.io/selected-node";
const COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// No pod was seen: for claims of volumes nothing of pods is read.
struct NoPods;

impl PodLister for NoPods {
    fn pod(&self, _: &str) -> Option<&PodInfo> {
        None
    }

    fn named(&self, _: &str, _: &str) -> Option<&PodInfo> {
        None
    }
}

/// Two nodes, and pods each of which has a claim of its own name for which a volume is to be made.
struct Cluster {
    snapshot: Snapshot,
    prebinding: Prebinding,
    seen: u64,
}

impl Cluster {
    fn new(pods: &[&str]) -> Self {
        let mut snapshot = Snapshot::default();
        for node in ["n1", "n2"] {
            snapshot.set_node(NodeInfo { name: node.into(), ..NodeInfo::default() });
        }
        let mut cluster = Self { snapshot, prebinding: Prebinding::new(20), seen: 0 };
        for pod in pods {
            cluster.show_claim(pod, 1, &json!({}), "");
        }
        cluster
    }

    /// The claim is seen at this version.
    fn show_claim(&mut self, name: &str, version: u64, annotations: &Value, volume: &str) {
        let claim = json!({
            "metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": version.to_string(),
                "annotations": annotations},
            "spec": {"volumeName": volume},
        });
        self.snapshot.set_object(Object::PersistentVolumeClaim(serde_json::from_value(claim).unwrap()));
    }

    /// The claim is bound to a volume.
    fn bind(&mut self, name: &str, version: u64) {
        let volume = json!({"metadata": {"name": format!("pv-{name}"), "resourceVersion": version.to_string()},
            "spec": {"claimRef": {"namespace": "default", "name": name, "uid": name}}});
        self.snapshot.set_object(Object::PersistentVolume(serde_json::from_value(volume).unwrap()));
        self.show_claim(name, version, &json!({COMPLETED: "yes"}), &format!("pv-{name}"));
    }

    fn happens(&mut self, input: PrebindInput<'_>) -> Vec<String> {
        let view = PrebindView { snapshot: &self.snapshot, pods: &NoPods };
        self.prebinding.handle(input, &view).into_iter().map(words).collect()
    }

    /// The pod is decided for the node.
    fn decide(&mut self, pod: &str, node: &str) -> Vec<String> {
        self.seen += 1;
        let steps = vec![PrebindStep::Volume(VolumeChoice::Provision { claim: pod.into() })];
        let input = PrebindInput::Decided { pod: key(pod), seen: self.seen, node: node.into(), steps };
        let begun = self.happens(input);
        [begun, self.touch(pod)].concat()
    }

    fn touch(&mut self, pod: &str) -> Vec<String> {
        self.happens(PrebindInput::Touched(&pod.into()))
    }

    /// The API server answers the write that selects this node for the pod's claim.
    fn answer(&mut self, pod: &str, node: Option<&str>, outcome: WriteOutcome) -> Vec<String> {
        let claim = self.snapshot.objects().claim("default", pod).unwrap().clone();
        let write = PrebindWrite::SelectNode { claim, node: node.map(NodeName::from) };
        self.happens(PrebindInput::Answered { pod: &key(pod), write: &write, outcome })
    }

    fn pass(&mut self, seconds: i64) {
        let now = self.snapshot.now() + SignedDuration::from_secs(seconds);
        self.snapshot.set_now(now);
    }

    fn bound(&self) -> Vec<&str> {
        self.prebinding.bound().map(|uid| &**uid).collect()
    }
}

fn written(version: u64) -> WriteOutcome {
    WriteOutcome::Written { resource_version: version.to_string() }
}

fn words(request: PrebindRequest) -> String {
    match request {
        PrebindRequest::Write(pod, PrebindWrite::SelectNode { node, .. }) => {
            format!("{} selects {}", pod.name, node.as_deref().unwrap_or("none"))
        }
        PrebindRequest::Join(uid, node) => format!("{uid} joins {node}"),
        PrebindRequest::BackOff(uid, reason) => format!("{uid} backs off: {}", reason.message().full),
        PrebindRequest::Tell(uid, reason) => format!("{uid}: {}", reason.message().full),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_claim_is_written_awaited_and_its_pod_joins_the_line() {
    let mut cluster = Cluster::new(&["a"]);
    assert_eq!(cluster.decide("a", "n1"), ["a selects n1"]);
    assert_eq!(cluster.touch("a"), [""; 0], "the write is under way");
    assert_eq!(cluster.answer("a", Some("n1"), written(2)), [""; 0]);
    assert_eq!(cluster.touch("a"), [""; 0], "the claim is known as it was before");
    cluster.show_claim("a", 2, &json!({SELECTED: "n1"}), "");
    assert_eq!(cluster.touch("a"), [""; 0], "the provisioner has its turn");
    assert!(cluster.prebinding.is_binding(&"a".into()) && cluster.bound().is_empty());
    cluster.bind("a", 3);
    assert_eq!(cluster.touch("a"), [""; 0]);
    assert_eq!(cluster.bound(), ["a"]);
    assert_eq!(cluster.happens(PrebindInput::Permitted(vec!["a".into()])), ["a joins n1"]);
    assert!(!cluster.prebinding.contains(&"a".into()) && cluster.prebinding.next_deadline().is_none());
}

#[test]
fn pods_join_in_the_order_in_which_they_were_seen() {
    let mut cluster = Cluster::new(&["a", "b"]);
    for pod in ["b", "a"] {
        cluster.bind(pod, 2);
        assert_eq!(cluster.decide(pod, "n1"), [""; 0]);
    }
    let bound = cluster.prebinding.bound().cloned().collect();
    assert_eq!(cluster.happens(PrebindInput::Permitted(bound)), ["b joins n1", "a joins n1"]);
}

#[test]
fn a_write_that_fails_is_sent_again_and_one_that_is_refused_sends_the_pod_back() {
    let mut cluster = Cluster::new(&["a"]);
    cluster.decide("a", "n1");
    let setback = Setback { why: "conflict".to_owned(), wait: SignedDuration::from_secs(3) };
    assert_eq!(cluster.answer("a", Some("n1"), WriteOutcome::Failed(setback)), [""; 0]);
    assert_eq!(cluster.touch("a"), [""; 0]);
    assert_eq!(
        cluster.prebinding.next_deadline(),
        Some(Timestamp::UNIX_EPOCH + SignedDuration::from_secs(3))
    );
    cluster.pass(3);
    assert_eq!(cluster.prebinding.take_touched(cluster.snapshot.now()), ["a".into()]);
    assert_eq!(cluster.touch("a"), ["a selects n1"]);
    let refused = WriteOutcome::Refused("no".to_owned());
    let expected = ["a backs off: binding volumes was refused: no"];
    assert_eq!(cluster.answer("a", Some("n1"), refused), expected);
}

#[test]
fn claims_that_are_not_bound_in_time_or_on_a_node_that_is_gone_send_the_pod_back() {
    let mut cluster = Cluster::new(&["a", "b"]);
    cluster.decide("a", "n1");
    cluster.pass(600);
    assert_eq!(cluster.touch("a"), ["a backs off: binding volumes: timed out on node n1"]);
    cluster.decide("b", "n2");
    cluster.snapshot.remove_node("n2");
    assert_eq!(cluster.touch("b"), ["b backs off: node n2 is gone"]);
}

#[test]
fn what_was_written_is_taken_back_once_it_is_seen_unless_the_claim_is_bound() {
    for bound in [false, true] {
        let mut cluster = Cluster::new(&["a"]);
        cluster.decide("a", "n1");
        assert_eq!(cluster.happens(PrebindInput::GivenUp(&"a".into())), [""; 0]);
        assert_eq!(cluster.happens(PrebindInput::UndosTouched), [""; 0], "the write is under way");
        cluster.answer("a", Some("n1"), written(2));
        assert_eq!(cluster.happens(PrebindInput::UndosTouched), [""; 0], "it was not seen yet");
        if bound {
            cluster.bind("a", 3);
            assert_eq!(cluster.happens(PrebindInput::UndosTouched), [""; 0]);
            continue;
        }
        cluster.show_claim("a", 2, &json!({SELECTED: "n1"}), "");
        assert_eq!(cluster.happens(PrebindInput::UndosTouched), ["a selects none"]);
        cluster.answer("a", None, written(3));
        cluster.show_claim("a", 3, &json!({}), "");
        assert_eq!(cluster.happens(PrebindInput::UndosTouched), [""; 0]);
    }
}

#[test]
fn a_place_that_is_held_for_long_goes_to_others_and_its_volume_is_made_meanwhile() {
    for again in ["n1", "n2"] {
        let mut cluster = Cluster::new(&["a"]);
        cluster.decide("a", "n1");
        cluster.answer("a", Some("n1"), written(2));
        cluster.show_claim("a", 2, &json!({SELECTED: "n1"}), "");
        cluster.touch("a");
        cluster.pass(9);
        assert_eq!(cluster.happens(PrebindInput::TimePassed), [""; 0]);
        cluster.pass(1);
        let waits = "a: waiting on node n1 since 1970-01-01T00:00:00Z for persistentvolumeclaim \"a\"; \
             the place goes to another pod that needs it from 1970-01-01T00:00:30Z on";
        assert_eq!(cluster.happens(PrebindInput::TimePassed), [waits]);
        assert!(!cluster.prebinding.yields_any());
        cluster.pass(20);
        assert_eq!(cluster.happens(PrebindInput::TimePassed), ["WakeForHeld(\"n1\")"]);
        assert!(cluster.prebinding.yields_on(&"n1".into()) && !cluster.prebinding.yields_on(&"n2".into()));
        let lost = "a backs off: the place on node n1 was given to another pod: this one had waited there for \
             persistentvolumeclaim \"a\" since 1970-01-01T00:00:00Z";
        assert_eq!(cluster.happens(PrebindInput::PlaceTaken(&"a".into())), ["PutBehind(\"a\")", lost]);
        assert_eq!(cluster.happens(PrebindInput::UndosTouched), [""; 0], "its volume is made meanwhile");
        let elsewhere = again == "n2";
        let selects: &[&str] = if elsewhere { &["a selects n2"] } else { &[] };
        assert_eq!(cluster.decide("a", again), selects);
        assert_eq!(cluster.happens(PrebindInput::UndosTouched), [""; 0], "the claim is in use");
        cluster.happens(PrebindInput::GivenUp(&"a".into()));
        let undone: &[&str] = if elsewhere { &[] } else { &["a selects none"] };
        assert_eq!(cluster.happens(PrebindInput::UndosTouched), undone);
    }
}

/// A reason in full, and as it is told to users of the namespace where that is less.
type Told = (PrebindReason, &'static str, Option<&'static str>);

fn check(cases: impl IntoIterator<Item = Told>) {
    for (reason, full, own) in cases {
        assert_eq!(reason.message().told(Details::Full).0, full);
        let (told, left_out) = reason.message().told(Details::Own);
        assert_eq!((&*told, left_out.as_deref()), (own.unwrap_or(full), own.map(|_| full)));
    }
}

#[test]
fn a_reason_of_volumes_names_nodes_volumes_and_answers_in_full_alone() {
    let name = || -> Arc<str> { "x".into() };
    let node = || -> NodeName { "n1".into() };
    let volume = PrebindReason::Volume;
    let not_mountable = VolumeFailure::NotMountable { volume: name(), node: node() };
    check([
        (PrebindReason::NodeGone(node()), "node n1 is gone", Some("the node is gone")),
        (volume(VolumeFailure::ClaimNotFound(name())), "persistentvolumeclaim \"x\" not found", None),
        (volume(VolumeFailure::VolumeNotFound(name())), "persistentvolume \"x\" not found", None),
        (
            volume(not_mountable),
            "pv \"x\" node affinity doesn't match node \"n1\"",
            Some("pv \"x\" node affinity doesn't match the node"),
        ),
        (
            volume(VolumeFailure::ProvisioningFailed { claim: name(), node: node() }),
            "provisioning failed for PVC \"x\" on node \"n1\"",
            Some("provisioning failed for PVC \"x\""),
        ),
        (
            volume(VolumeFailure::ClaimRefReset(name())),
            "ClaimRef got reset for pv \"x\"",
            Some("ClaimRef got reset for a pv"),
        ),
        (
            volume(VolumeFailure::BoundToAnother(name())),
            "pv \"x\" is bound to another claim",
            Some("a pv is bound to another claim"),
        ),
        (
            volume(VolumeFailure::TimedOut(node())),
            "binding volumes: timed out on node n1",
            Some("binding volumes: timed out"),
        ),
        (
            volume(VolumeFailure::Refused("no".to_owned())),
            "binding volumes was refused: no",
            Some("binding volumes was refused"),
        ),
    ]);
}

#[test]
fn a_reason_of_devices_names_nodes_and_answers_in_full_alone() {
    let node = || -> NodeName { "n1".into() };
    let devices = |failure| PrebindReason::Devices { claim: "c".into(), failure };
    let condition = DevicesFailure::Condition { device: "gpu-0".into(), condition: "Broken".into() };
    check([
        (devices(DevicesFailure::NotFound), "resourceclaim \"c\" not found", None),
        (devices(DevicesFailure::BeingDeleted), "resourceclaim \"c\" is being deleted", None),
        (devices(DevicesFailure::Deleted), "resourceclaim \"c\" was deleted", None),
        (devices(DevicesFailure::OfAnother), "resourceclaim \"c\" was not created for this pod", None),
        (devices(DevicesFailure::ForAnotherNode), "resourceclaim \"c\" was made for another node", None),
        (devices(DevicesFailure::LostDevices), "resourceclaim \"c\" has lost its devices", None),
        (
            devices(DevicesFailure::NotOnNode(node())),
            "resourceclaim \"c\" has devices that are not on node n1",
            Some("resourceclaim \"c\" has devices that are not on the node"),
        ),
        (
            devices(DevicesFailure::InUse(256)),
            "resourceclaim \"c\" is used by 256 pods, which is the most",
            None,
        ),
        (devices(condition), "resourceclaim \"c\": device \"gpu-0\" has the condition Broken", None),
        (devices(DevicesFailure::ChangesTooOften), "resourceclaim \"c\" changes too often", None),
        (
            devices(DevicesFailure::TimedOut(node())),
            "resourceclaim \"c\": timed out on node n1",
            Some("resourceclaim \"c\": timed out"),
        ),
        (
            devices(DevicesFailure::Refused("no".to_owned())),
            "resourceclaim \"c\": the write was refused: no",
            Some("resourceclaim \"c\": the write was refused"),
        ),
    ]);
}

#[test]
fn a_reason_of_a_place_that_is_held_names_the_node_in_full_alone() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let node = || -> NodeName { "n1".into() };
    let held = |awaited| PrebindReason::Held { node: node(), since: at(0), until: at(30), awaited };
    let lost = |awaited| PrebindReason::Lost { node: node(), since: at(0), awaited };
    check([
        (
            held(Awaited::Devices("c".into())),
            "waiting on node n1 since 1970-01-01T00:00:00Z for resourceclaim \"c\"; the place goes to another pod that needs it from \
             1970-01-01T00:00:30Z on",
            Some(
                "waiting on a node since 1970-01-01T00:00:00Z for resourceclaim \"c\"; the place goes to another pod that needs it from \
                 1970-01-01T00:00:30Z on",
            ),
        ),
        (
            lost(Awaited::Gang),
            "the place on node n1 was given to another pod: this one had waited there for the claims of its gang since \
             1970-01-01T00:00:00Z",
            Some(
                "the place on its node was given to another pod: this one had waited there for the claims of its gang since \
                 1970-01-01T00:00:00Z",
            ),
        ),
        (
            PrebindReason::PartHeld { namespace: "team".into(), percent: 20 },
            "pods of namespace team hold 20% of the cluster's cards while they wait for volumes (scheduling.volumes.heldPercent); the \
             pod waits until some of them are bound",
            None,
        ),
    ]);
}
