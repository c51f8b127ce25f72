//! Preemptions alone: what is requested of a scheduler that decides nothing.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::{Need, Nominated, PreemptInput, PreemptRequest, PreemptView, Preempting};
use crate::scheduling::{
    Claim, Importance, NodeInfo, PodInfo, Snapshot, Uid,
    fixtures::{ask, charge, key, pod},
    model::{
        gang::{DisruptionMode, Group, GroupPreemption, Policy},
        kind::PodGroupKind,
        outcome::{Setback, WriteOutcome},
    },
    node_flow::Course,
    plan::preemption::{Candidate, Rules, Victim},
    world::{
        ledger::{Charge, Commitment},
        object::Object,
        pod_lister::PodLister,
    },
};

/// The pods that were seen.
#[derive(Default)]
struct Seen(BTreeMap<Uid, PodInfo>);

impl PodLister for Seen {
    fn pod(&self, uid: &str) -> Option<&PodInfo> {
        self.0.get(uid)
    }

    fn named(&self, _: &str, _: &str) -> Option<&PodInfo> {
        None
    }
}

/// Two nodes, on the first of which pods hold something.
struct Cluster {
    snapshot: Snapshot,
    pods: Seen,
    course: Course,
    preempting: Preempting,
}

impl Cluster {
    fn new() -> Self {
        let mut snapshot = Snapshot::default();
        for name in ["n1", "n2"] {
            snapshot.set_node(NodeInfo { name: name.into(), ..NodeInfo::default() });
        }
        let (pods, preempting) = (Seen::default(), Preempting::new(Some(Rules::default())));
        Self { snapshot, pods, course: Course::Onward, preempting }
    }

    /// A pod of this priority is seen.
    fn see(&mut self, name: &str, priority: i32) {
        let importance = Importance { priority, ..Importance::default() };
        let waiting = PodInfo { importance, ..pod(name, Claim::Place(ask(1, 1, 0).into())) };
        self.pods.0.insert(name.into(), waiting);
    }

    /// A pod of priority 0 holds something of `n1`.
    fn place(&mut self, name: &str, commitment: Commitment) {
        self.see(name, 0);
        self.snapshot.charge(name.into(), Charge { commitment, ..charge("n1", Vec::new()) });
    }

    /// What is requested, in words; what is requested of the snapshot is carried out.
    fn happens(&mut self, input: PreemptInput<'_>) -> Vec<String> {
        let (snapshot, pods, course) = (&self.snapshot, &self.pods, self.course);
        let view = PreemptView { snapshot, pods, course };
        let requests = self.preempting.handle(input, &view);
        requests.into_iter().map(|request| self.carry_out(request)).collect()
    }

    fn carry_out(&mut self, request: PreemptRequest) -> String {
        match request {
            PreemptRequest::Keep { pod, node, victims, room_since } => {
                self.snapshot.keep_for(&self.pods.0[&pod], &node, victims, room_since);
                format!("keep {node} for {pod}")
            }
            PreemptRequest::EndNomination(pod) => {
                self.snapshot.end_nomination(&pod);
                format!("end the nomination of {pod}")
            }
            PreemptRequest::Nominate(pod, Nominated { node, .. }) => {
                format!("{} states {}", pod.name, node.as_deref().unwrap_or("none"))
            }
            PreemptRequest::NoteStated { pod, resource_version, .. } => {
                format!("{pod} at {resource_version}")
            }
            PreemptRequest::NoteNominationWritten(pod) => format!("{pod} is nominated"),
            PreemptRequest::Confirm(pod) => format!("confirm {}", pod.name),
            PreemptRequest::Delete { pod, node, preemptor } => {
                format!("delete {} on {node} for {}", pod.name, preemptor.name)
            }
            other => format!("{other:?}"),
        }
    }

    /// A node was chosen for the pod, and these go.
    fn choose(&mut self, pod: &str, node: &str, victims: &[&str]) -> Vec<String> {
        let victim = |name: &&str| Victim {
            pod: (*name).into(),
            node: node.into(),
            importance: Importance::default(),
        };
        let victims = victims.iter().map(victim).collect();
        let candidate = Candidate { node: node.into(), victims, violations: 0 };
        let priority = self.pods.0[pod].importance.priority;
        self.happens(PreemptInput::Chosen { pod: &pod.into(), priority, candidate })
    }

    fn nominated(&mut self, pod: &str, node: Option<&str>, outcome: &WriteOutcome) -> Vec<String> {
        let node = node.map(Uid::from);
        let stated = &Nominated { node, room: None };
        self.happens(PreemptInput::Nominated { pod: &key(pod), stated, outcome })
    }

    fn confirm(&mut self, pod: &str, need: Need) -> Vec<String> {
        self.happens(PreemptInput::Confirmed(key(pod), need))
    }

    fn deleted(&mut self, pod: &str, preemptor: &str, outcome: &WriteOutcome) -> Vec<String> {
        self.happens(PreemptInput::Deleted { pod: &key(pod), preemptor: &key(preemptor), outcome })
    }

    fn awaits_victims(&self, pod: &str) -> bool {
        let (snapshot, pods, course) = (&self.snapshot, &self.pods, self.course);
        let view = PreemptView { snapshot, pods, course };
        self.preempting.awaits_victims(&pod.into(), &view)
    }
}

fn written() -> WriteOutcome {
    WriteOutcome::Written { resource_version: "7".to_owned() }
}

fn failed() -> WriteOutcome {
    WriteOutcome::Failed(Setback { why: "conflict".to_owned(), wait: SignedDuration::ZERO })
}

/// The nomination of `high` to `n1` is written, and its victims there are bound.
fn with_nomination(victims: &[&str]) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.see("high", 100);
    for victim in victims {
        cluster.place(victim, Commitment::Bound);
    }
    assert_eq!(cluster.choose("high", "n1", victims), ["keep n1 for high", "high states n1"]);
    let written = cluster.nominated("high", Some("n1"), &written());
    assert_eq!(written, ["high at 7", "high is nominated", "confirm high"]);
    cluster
}

#[test]
fn victims_are_deleted_once_the_nomination_is_written_and_awaited_until_they_go() {
    let mut cluster = with_nomination(&["a", "b"]);
    assert!(cluster.preempting.is_nominating(&"high".into()));
    let expected = ["delete a on n1 for high", "delete b on n1 for high"];
    assert_eq!(cluster.confirm("high", Need::Still), expected);
    assert!(!cluster.preempting.is_nominating(&"high".into()));
    assert_eq!(cluster.deleted("a", "high", &written()), [""; 0]);
    cluster.preempting.note_going(&"a".into());
    assert!(cluster.awaits_victims("high"));
    cluster.preempting.note_going(&"b".into());
    assert!(!cluster.awaits_victims("high"));
}

#[test]
fn nothing_is_deleted_for_a_pod_that_needs_it_no_more_or_by_a_scheduler_that_stops() {
    for (need, course) in [(Need::NoLonger, Course::Onward), (Need::Still, Course::Draining)] {
        let mut cluster = with_nomination(&["a"]);
        cluster.course = course;
        assert_eq!(cluster.confirm("high", need), [""; 0]);
        assert!(!cluster.awaits_victims("high"));
    }
}

#[test]
fn all_pods_of_a_group_that_goes_as_a_whole_are_deleted_those_on_other_nodes_first() {
    let mut cluster = Cluster::new();
    cluster.see("high", 100);
    let preemption = GroupPreemption { disruption: DisruptionMode::All, ..GroupPreemption::default() };
    let group = Group { preemption, ..Group::of(Policy::Alone) };
    let group = Object::PodGroup(PodGroupKind::Kubernetes, "default/g".into(), group.into());
    cluster.snapshot.set_object(group);
    let place = |cluster: &mut Cluster, name: &str, node: &str| {
        cluster.see(name, 0);
        let importance = Importance { group: Some("default/g".into()), ..Importance::default() };
        cluster.snapshot.charge(name.into(), Charge { importance, ..charge(node, Vec::new()) });
    };
    place(&mut cluster, "a", "n1");
    place(&mut cluster, "b", "n2");
    cluster.choose("high", "n1", &["a", "b"]);
    cluster.nominated("high", Some("n1"), &written());
    // One more pod of the group was bound meanwhile.
    place(&mut cluster, "c", "n2");
    let expected = ["delete b on n1 for high", "delete c on n1 for high", "delete a on n1 for high"];
    assert_eq!(cluster.confirm("high", Need::Still), expected);
    cluster.preempting.note_going(&"a".into());
    cluster.preempting.note_going(&"b".into());
    assert!(cluster.awaits_victims("high"), "the third is awaited, too");
}

#[test]
fn a_victim_that_is_not_bound_is_decided_again_and_one_that_is_gone_is_not_awaited() {
    let mut cluster = Cluster::new();
    cluster.see("high", 100);
    cluster.place("assumed", Commitment::Assumed);
    cluster.choose("high", "n1", &["assumed", "gone"]);
    cluster.nominated("high", Some("n1"), &written());
    assert_eq!(cluster.confirm("high", Need::Still), ["BackOffIfNotServed(\"assumed\", \"n1\")"]);
    // Its decision is taken back.
    cluster.preempting.note_going(&"assumed".into());
    assert!(!cluster.awaits_victims("high"));
}

#[test]
fn a_write_that_fails_ends_the_nomination_and_the_preemption() {
    let expected = ["end the nomination of high", "high states none", "BackOffIfWaiting(\"high\")"];
    let mut cluster = Cluster::new();
    cluster.see("high", 100);
    cluster.place("a", Commitment::Bound);
    cluster.choose("high", "n1", &["a"]);
    assert_eq!(cluster.nominated("high", Some("n1"), &failed()), expected);
    let mut cluster = with_nomination(&["a"]);
    cluster.confirm("high", Need::Still);
    assert_eq!(cluster.deleted("a", "high", &failed()), expected);
    assert!(!cluster.awaits_victims("high"));
}

#[test]
fn one_write_of_a_nomination_is_under_way_at_a_time() {
    let mut cluster = Cluster::new();
    cluster.see("high", 100);
    cluster.place("a", Commitment::Bound);
    cluster.choose("high", "n1", &["a"]);
    let withdrawn = cluster.happens(PreemptInput::Withdrawn(&"high".into()));
    assert_eq!(withdrawn, ["end the nomination of high"], "the first write is under way");
    assert_eq!(cluster.nominated("high", Some("n1"), &written()), ["high states none", "high at 7"]);
    assert_eq!(cluster.nominated("high", None, &written()), ["high at 7"]);
}

#[test]
fn a_node_is_kept_no_longer_for_pods_of_lower_priority() {
    let mut cluster = Cluster::new();
    cluster.see("middle", 50);
    cluster.see("high", 100);
    cluster.place("a", Commitment::Bound);
    cluster.choose("middle", "n1", &["a"]);
    cluster.nominated("middle", Some("n1"), &written());
    let expected = [
        "keep n1 for high",
        "high states n1",
        "end the nomination of middle",
        "middle states none",
        "DecideAgain(\"middle\")",
    ];
    assert_eq!(cluster.choose("high", "n1", &["a"]), expected);
    assert!(!cluster.awaits_victims("middle"));
}
