//! The rounds in which pods are evicted from a zone that is closed.

use berth::{
    config::Config,
    scheduling::{
        Effect, Event, EvictionOutcome, ObjectChange, PodChange,
        model::kind::{Kind, PodGroupKind},
        plan::eviction::Eviction,
        world::object::Object,
    },
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    super::machine::{Machine, bound},
    annotated, config, lent,
};

/// A running pod of job `train` on node `n1`, of which so many must run.
fn running(name: &str, least: &str) -> Value {
    let annotations = json!({
        "volcano.sh/preemptable": "true", "scheduling.k8s.io/group-name": "train",
        "volcano.sh/jdb-min-available": least,
    });
    let mut pod = bound(annotated(name, &json!({})), "n1", annotations);
    pod["status"]["phase"] = json!("Running");
    pod
}

fn leaving(name: &str, least: &str) -> Value {
    let mut pod = running(name, least);
    pod["metadata"]["deletionTimestamp"] = json!("2027-01-15T12:00:00Z");
    pod
}

/// The machine with these pods, which are known to have no other budgets.
pub(super) fn lent_out(window: &str, pods: &[Value]) -> Machine {
    let mut machine = Machine::new(&config(window), &[lent("n1")], pods);
    machine.tell(Event::Object(ObjectChange::Listed(Kind::PodDisruptionBudget, Vec::new())));
    machine.tell(Event::Object(ObjectChange::Listed(Kind::PodGroup(PodGroupKind::Volcano), Vec::new())));
    machine
}

/// The evictions that are begun, and what is said of pods that stay.
pub(super) fn evictions(machine: &mut Machine) -> (Vec<Eviction>, Vec<String>) {
    let (mut evictions, mut said) = (Vec::new(), Vec::new());
    for effect in machine.run().0 {
        match effect {
            Effect::EvictFromZone { eviction } => evictions.push(eviction),
            Effect::TellEvictionPostponed { postponed } => said.push(postponed.message().full),
            _ => {}
        }
    }
    (evictions, said)
}

pub(super) fn names(evictions: &[Eviction]) -> Vec<&str> {
    evictions.iter().map(|eviction| &*eviction.pod.name).collect()
}

fn answer(machine: &mut Machine, eviction: &Eviction, outcome: EvictionOutcome) {
    machine.tell(Event::EvictionAnswered { eviction: eviction.clone(), outcome });
}

#[test]
fn a_round_comes_when_the_zone_closes_and_again_after_each_period() {
    let mut machine = lent_out("7:00-9:00", &["a", "b", "c", "d"].map(|name| running(name, "2")));
    assert_eq!(evictions(&mut machine), (Vec::new(), Vec::new()));
    machine.pass(3600);
    let (first, said) = evictions(&mut machine);
    assert_eq!(names(&first), ["a", "b"]);
    let stays = "Not evicted yet from node n1: revocable zone rz1 is closed until 07:00; \
                 the budget of its job does not allow another eviction now";
    assert_eq!(said, [stays, stays]);
    let nine: Timestamp = "2027-01-15T09:00:00Z".parse().unwrap();
    for eviction in &first {
        answer(&mut machine, eviction, EvictionOutcome::Granted);
    }
    machine.show_pod(&leaving("a", "2"));
    machine.pass(60);
    // `b` is not seen to leave yet, and still counts as away; what was said is not said again.
    assert_eq!(evictions(&mut machine), (Vec::new(), Vec::new()));
    assert_eq!(machine.next_deadline(), Some(nine + SignedDuration::from_mins(2)));
    // Two more run that may go.
    machine.show_pod(&running("e", "2"));
    machine.pass(60);
    assert_eq!(names(&evictions(&mut machine).0), ["c"]);
}

#[test]
fn a_scheduler_that_is_started_while_a_zone_is_closed_waits_for_the_next_round() {
    let pods = ["a", "b"].map(|name| running(name, "1"));
    // The zone has closed 7 hours and 40 seconds ago.
    let mut machine = lent_out("0:00-1:00", &pods);
    machine.pass(40);
    assert_eq!(evictions(&mut machine).0, []);
    machine.pass(19);
    assert_eq!(evictions(&mut machine).0, []);
    machine.pass(1);
    assert_eq!(names(&evictions(&mut machine).0), ["a"]);
}

/// A running pod of job `train`, which states no budget.
fn of_train(name: &str) -> Value {
    let annotations = json!({"volcano.sh/preemptable": "true", "scheduling.k8s.io/group-name": "train"});
    let mut pod = bound(annotated(name, &json!({})), "n1", annotations);
    pod["status"]["phase"] = json!("Running");
    pod
}

#[test]
fn a_restart_moves_no_round_although_another_zone_has_opened_again() {
    let begin = |windows: [&str; 2], pods: &[Value]| {
        let file = json!({"dialects": {"volcano": {"arguments": {"tdm.evict.period": "7m",
            "tdm.revocable-zone.rz1": windows[0], "tdm.revocable-zone.rz2": windows[1]}}}});
        let config = Config::parse(&file.to_string(), "berth.yaml").unwrap().0;
        let mut other = lent("n2");
        other["metadata"]["labels"]["volcano.sh/revocable-zone"] = json!("rz2");
        let mut machine = Machine::new(&config, &[lent("n1"), other], pods);
        machine.tell(Event::Object(ObjectChange::Listed(Kind::PodDisruptionBudget, Vec::new())));
        machine.tell(Event::Object(ObjectChange::Listed(Kind::PodGroup(PodGroupKind::Volcano), Vec::new())));
        machine
    };
    // After how many minutes a pod goes.
    let rounds = |mut machine: Machine| -> Vec<usize> {
        let mut evicts = |_: &usize| {
            let evicted = evictions(&mut machine).0;
            for eviction in &evicted {
                machine.tell(Event::Pod(PodChange::Gone(eviction.pod.uid.clone())));
            }
            machine.pass(60);
            !evicted.is_empty()
        };
        (0..=19).filter(&mut evicts).collect()
    };
    let machine = begin(["7:00-8:10", "7:00-8:12, 8:13-9:00"], &["a", "b", "c", "d"].map(of_train));
    assert_eq!(rounds(machine), [10, 12, 19]);
    // The same windows, 14 minutes later.
    let restarted = begin(["6:46-7:56", "6:46-7:58, 7:59-8:46"], &["c"].map(of_train));
    assert_eq!(rounds(restarted), [5]);
}

#[test]
fn nothing_is_evicted_before_all_budgets_are_known() {
    let mut machine =
        Machine::new(&config("7:00-9:00"), &[lent("n1")], &[running("a", "1"), running("b", "1")]);
    machine.pass(3600);
    machine.tell(Event::Object(ObjectChange::Listed(Kind::PodGroup(PodGroupKind::Volcano), Vec::new())));
    assert_eq!(evictions(&mut machine).0, []);
    machine.tell(Event::Object(ObjectChange::Listed(Kind::PodDisruptionBudget, Vec::new())));
    assert_eq!(names(&evictions(&mut machine).0), ["a"]);

    let mut machine = Machine::new(&config("7:00-9:00"), &[lent("n1")], &[of_train("a"), of_train("b")]);
    machine.pass(3600);
    machine.tell(Event::Object(ObjectChange::Listed(Kind::PodDisruptionBudget, Vec::new())));
    assert_eq!(evictions(&mut machine).0, [], "a PodGroup may state a budget");
}

#[test]
fn a_scheduler_that_is_to_end_begins_no_round() {
    let mut machine = lent_out("7:00-9:00", &[running("a", "1"), running("b", "1")]);
    machine.scheduler_mut().drain();
    machine.pass(3600);
    assert_eq!(evictions(&mut machine).0, []);
}

#[test]
fn pods_that_say_that_they_are_preemptable_go_and_others_stay() {
    let on_node = |name: &str, annotations: &Value| {
        let mut pod = bound(annotated(name, &json!({})), "n1", annotations.clone());
        pod["status"]["phase"] = json!("Running");
        pod
    };
    let marked = json!({"volcano.sh/preemptable": "true"});
    let owned = |name: &str, kind: [&str; 3], annotations: &Value| {
        let mut pod = on_node(name, annotations);
        let [version, kind, owner] = kind;
        pod["metadata"]["ownerReferences"] =
            json!([{"apiVersion": version, "kind": kind, "name": owner, "uid": name, "controller": true}]);
        pod
    };
    let mirror = json!({"volcano.sh/preemptable": "true", "kubernetes.io/config.mirror": "1"});
    let mut labelled = on_node("label", &json!({}));
    labelled["metadata"]["labels"]["volcano.sh/preemptable"] = json!("true");
    let pods = [
        on_node("annotation", &marked),
        owned("job", ["batch/v1", "Job", "job"], &marked),
        labelled,
        on_node("named-zone", &json!({"volcano.sh/revocable-zone": "rz1"})),
        on_node(
            "not-preemptable",
            &json!({"volcano.sh/revocable-zone": "rz1", "volcano.sh/preemptable": "false"}),
        ),
        on_node("silent", &json!({})),
        owned("static", ["v1", "Node", "n1"], &mirror),
    ];
    let mut machine = lent_out("7:00-9:00", &pods);
    machine.pass(3600);
    assert_eq!(names(&evictions(&mut machine).0), ["annotation", "job", "label", "named-zone"]);
}

#[test]
fn of_two_budgets_of_a_pod_the_least_number_that_must_run_counts() {
    let both = |name: &str| {
        let mut pod = running(name, "1");
        pod["metadata"]["annotations"]["volcano.sh/jdb-max-unavailable"] = json!("1");
        pod
    };
    let mut machine = lent_out("7:00-9:00", &["a", "b", "c"].map(both));
    machine.pass(3600);
    assert_eq!(names(&evictions(&mut machine).0), ["a", "b"]);
}

#[test]
fn only_a_pod_whose_condition_ready_is_true_counts_in_a_healthy_disruption_budget() {
    for (ready, gone) in [("True", 0), ("False", 1)] {
        let mut pod = running("a", "1");
        pod["metadata"]["annotations"] = json!({"volcano.sh/preemptable": "true"});
        pod["status"]["conditions"] = json!([{"type": "Ready", "status": ready}]);
        let mut machine = Machine::new(&config("7:00-9:00"), &[lent("n1")], &[pod]);
        let budget = json!({"metadata": {"name": "web", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1}});
        let budget = Object::PodDisruptionBudget(serde_json::from_value(budget).unwrap());
        machine.tell(Event::Object(ObjectChange::Listed(Kind::PodDisruptionBudget, vec![budget])));
        machine.tell(Event::Object(ObjectChange::Listed(Kind::PodGroup(PodGroupKind::Volcano), Vec::new())));
        machine.pass(3600);
        assert_eq!(evictions(&mut machine).0.len(), gone, "{ready}");
    }
}

#[test]
fn a_pod_that_the_api_server_does_not_know_and_that_is_still_seen_is_tried_again() {
    let mut machine = lent_out("7:00-9:00", &[running("a", "1"), running("b", "1")]);
    machine.pass(3600);
    for _ in 0..2 {
        let (round, _) = evictions(&mut machine);
        assert_eq!(names(&round), ["a"]);
        answer(&mut machine, &round[0], EvictionOutcome::Gone);
        machine.pass(60);
    }
}

#[test]
fn a_pod_that_the_api_server_keeps_is_told_so_once_and_tried_again() {
    let mut machine = lent_out("7:00-9:00", &[running("a", "1"), running("b", "1")]);
    machine.pass(3600);
    for said in [1, 0, 0] {
        let (round, _) = evictions(&mut machine);
        assert_eq!(names(&round), ["a"]);
        answer(&mut machine, &round[0], EvictionOutcome::Refused("no".to_owned()));
        assert_eq!(evictions(&mut machine).1.len(), said);
        machine.pass(60);
    }
}

#[test]
fn an_eviction_without_an_answer_counts_for_as_long_as_it_may_take_effect() {
    let mut file = config("7:00-9:00");
    file.dialects.volcano.arguments.tdm.evict_period = SignedDuration::from_secs(2);
    let mut machine = Machine::new(&file, &[lent("n1")], &["a", "b"].map(|name| running(name, "1")));
    machine.tell(Event::Object(ObjectChange::Listed(Kind::PodDisruptionBudget, Vec::new())));
    machine.tell(Event::Object(ObjectChange::Listed(Kind::PodGroup(PodGroupKind::Volcano), Vec::new())));
    machine.pass(3600);
    let (round, _) = evictions(&mut machine);
    answer(&mut machine, &round[0], EvictionOutcome::Doubtful);
    for begun in [0, 0, 1] {
        machine.pass(2);
        assert_eq!(evictions(&mut machine).0.len(), begun);
    }
}
