//! Which pods are evicted in a round, in which order, and which budget keeps others.

use jiff::Timestamp;

use super::*;
use crate::scheduling::{
    Claim, Footprint, Importance, Lifetime, PodGroups, fixtures,
    model::{
        kind::{Kind, PodGroupKind},
        label_set::LabelSet,
        tdm::{
            WindowState,
            job::{Quantum, Readiness},
        },
    },
    world::object::Object,
};

/// The job of the controller of this uid.
fn of(controller: &str) -> JobName {
    JobName::Controller("team".into(), controller.into())
}

/// A running, preemptable pod of job `a` on a node of the closed zone `rz1`.
fn pod(name: &str) -> PodInfo {
    let member = JobMember {
        job: of("a"),
        group: None,
        evictable: Evictable::Yes,
        budget: None,
        readiness: Readiness::Ready,
    };
    let labels = LabelSet::from([("app", "a")]);
    let footprint = Footprint { namespace: "team".into(), labels, ..Footprint::default() };
    let mut pod = PodInfo {
        stage: Stage::Running,
        holding: Some(fixtures::holding("rz1-node", Vec::new())),
        footprint: Arc::new(footprint),
        groups: PodGroups::of(None, Some(member)),
        ..fixtures::pod(name, Claim::None)
    };
    pod.key.namespace = "team".into();
    pod
}

fn member(mut pod: PodInfo, change: impl FnOnce(&mut JobMember)) -> PodInfo {
    let mut job = pod.groups.job().unwrap().clone();
    change(&mut job);
    pod.groups = PodGroups::of(None, Some(job));
    pod
}

/// The pods with a budget of their job.
fn with(budget: JobBudget, pods: Vec<PodInfo>) -> Vec<PodInfo> {
    pods.into_iter().map(|pod| member(pod, |member| member.budget = Some(budget))).collect()
}

fn named<const N: usize>(names: [&str; N]) -> Vec<PodInfo> {
    names.map(pod).into()
}

fn zone(node: &NodeName) -> Option<ZoneState> {
    let (zone, _) = node.split_once('-')?;
    let open = zone == "open";
    let window = if open { WindowState::Open(None) } else { WindowState::Closed(None) };
    Some(ZoneState { zone: zone.into(), window, until: None, closed: None })
}

fn run(pods: &[PodInfo], objects: &Objects) -> Round {
    round(pods.iter(), zone, objects, |_| false)
}

fn names(round: &Round) -> Vec<&str> {
    round.evictions.iter().map(|eviction| &*eviction.pod.name).collect()
}

fn evicted(pods: &[PodInfo]) -> Vec<String> {
    names(&run(pods, &Objects::default())).into_iter().map(str::to_owned).collect()
}

fn budgets(of: &[&str]) -> Objects {
    let mut objects = Objects::default();
    for json in of {
        objects.set(Object::PodDisruptionBudget(serde_json::from_str(json).unwrap()));
    }
    objects.note_listed(Kind::PodDisruptionBudget);
    objects
}

const ALL: JobBudget = JobBudget::MaxUnavailable(Quantum::Percent(100));

#[test]
fn the_least_important_pods_go_first() {
    let important =
        PodInfo { importance: Importance { priority: 10, ..Importance::default() }, ..pod("important") };
    let young = PodInfo {
        lifetime: Lifetime { created: Timestamp::from_second(9).unwrap(), ..Lifetime::default() },
        ..pod("young")
    };
    let pods = with(ALL, vec![important, pod("old"), pod("elder"), young]);
    assert_eq!(evicted(&pods), ["young", "elder", "old", "important"]);
}

#[test]
fn only_preemptable_pods_of_closed_zones_go() {
    let on = |node: &str, name: &str| {
        let mut pod = pod(name);
        pod.holding.as_mut().unwrap().node = node.into();
        pod
    };
    let fixed = member(pod("fixed"), |member| member.evictable = Evictable::No);
    let leaving = PodInfo {
        lifetime: Lifetime { leaving: Some(Box::new(Timestamp::UNIX_EPOCH)), ..Lifetime::default() },
        ..pod("leaving")
    };
    let ended = PodInfo { stage: Stage::Ended, ..pod("ended") };
    let mut intended = pod("intended");
    intended.holding.as_mut().unwrap().binding = Binding::Intended;
    let pods =
        vec![on("open-node", "open"), on("plain", "plain"), fixed, leaving, ended, intended, pod("goes")];
    assert_eq!(evicted(&with(ALL, pods)), ["goes"]);
}

#[test]
fn a_job_without_a_budget_loses_one_pod_in_a_round_over_all_zones() {
    let mut other = pod("b");
    other.holding.as_mut().unwrap().node = "rz2-node".into();
    let own = member(pod("c"), |member| member.job = of("other"));
    let round = run(&[pod("a"), other, own], &Objects::default());
    assert_eq!(names(&round), ["a", "c"]);
    let postponed: Vec<_> = round.postponed.iter().map(|one| (&*one.eviction.pod.name, &one.why)).collect();
    assert_eq!(postponed, [("b", &Postponement::Job)]);
}

#[test]
fn budgets_of_jobs_count_pods_that_do_not_run_as_away() {
    use JobBudget::{MaxUnavailable, MinAvailable};
    use Quantum::{Count, Percent};
    // The budget, how many pods run, how many do not, and how many go.
    for (budget, running, away, expected) in [
        (MaxUnavailable(Percent(30)), 5, 0, 2),
        (MaxUnavailable(Percent(30)), 3, 2, 0),
        (MaxUnavailable(Count(3)), 5, 1, 2),
        (MaxUnavailable(Count(9)), 2, 0, 2),
        (MinAvailable(Count(3)), 5, 0, 2),
        (MinAvailable(Count(3)), 3, 4, 0),
        // Volcano takes one more where too few run already.
        (MinAvailable(Count(3)), 2, 4, 0),
        (MinAvailable(Percent(30)), 5, 0, 3),
        (MinAvailable(Percent(99)), 5, 0, 0),
    ] {
        assert_eq!(budget.allows(running + away, running), expected, "{budget:?} {running} {away}");
    }
}

#[test]
fn a_pod_whose_eviction_was_granted_is_away() {
    let pods = with(JobBudget::MaxUnavailable(Quantum::Count(2)), named(["a", "b", "c"]));
    let round = round(pods.iter(), zone, &Objects::default(), |uid| **uid == *"a");
    assert_eq!(names(&round), ["b"]);
}

#[test]
fn a_pod_that_does_not_run_yet_costs_no_budget() {
    let starting = PodInfo { stage: Stage::Pending, ..pod("starting") };
    let pods = with(JobBudget::MinAvailable(Quantum::Count(1)), vec![pod("runs"), starting]);
    assert_eq!(evicted(&pods), ["starting"]);
}

#[test]
fn the_budget_of_the_pod_group_is_that_of_the_job() {
    let mut objects = Objects::default();
    let most = JobBudget::MaxUnavailable(Quantum::Count(2));
    objects.set(Object::PodGroup(
        PodGroupKind::Volcano,
        "team/pg1".into(),
        std::sync::Arc::new(crate::scheduling::model::gang::Group {
            budget: Some(most),
            ..crate::scheduling::model::gang::Group::of(crate::scheduling::model::gang::Policy::Alone)
        }),
    ));
    let grouped = |name| member(pod(name), |member| member.group = Some("team/pg1".into()));
    let pods = ["a", "b", "c"].map(grouped);
    assert_eq!(names(&run(&pods, &objects)), ["a", "b"]);
    // What pods state does not count beside it.
    let least = JobBudget::MinAvailable(Quantum::Count(3));
    assert_eq!(names(&run(&with(least, pods.into()), &objects)), ["a", "b"]);
}

#[test]
fn of_different_budgets_of_the_pods_of_a_job_each_holds() {
    let stating = |name, most| {
        member(pod(name), |member| {
            member.budget = Some(JobBudget::MaxUnavailable(Quantum::Count(most)));
        })
    };
    assert_eq!(evicted(&[stating("a", 1), stating("b", 3), stating("c", 2)]), ["a"]);
}

#[test]
fn disruption_budgets_postpone_what_they_do_not_allow() {
    let budget = |name: &str, allowed: i32, app: &str| {
        format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"team"}},"spec":{{"selector":{{"matchLabels":{{"app":"{app}"}}}}}},
                "status":{{"disruptionsAllowed":{allowed},"currentHealthy":3,"desiredHealthy":3}}}}"#
        )
    };
    let pods = with(ALL, named(["a", "b", "c"]));
    let one = budgets(&[&budget("one", 1, "a")]);
    let round = run(&pods, &one);
    assert_eq!(names(&round), ["a"]);
    let blocked = Postponement::PodDisruptionBudget("one".into());
    assert!(round.postponed.iter().all(|postponed| postponed.why == blocked), "{round:?}");
    assert_eq!(names(&run(&pods, &budgets(&[&budget("other", 0, "b")]))), ["a", "b", "c"]);
    let several = run(&pods, &budgets(&[&budget("one", 3, "a"), &budget("two", 3, "a")]));
    assert_eq!(several.postponed[0].why, Postponement::SeveralPodDisruptionBudgets);
    assert!(several.evictions.is_empty());
    // A pod that is not ready does not count among the healthy ones.
    let unready =
        member(pod("d"), |member| (member.readiness, member.budget) = (Readiness::Unready, Some(ALL)));
    assert_eq!(names(&run(&[pods[0].clone(), unready], &budgets(&[&budget("none", 0, "a")]))), ["d"]);
}

#[test]
fn what_a_disruption_budget_does_not_count_goes_without_it() {
    let budget = |spec: &str, status: &str| {
        format!(
            r#"{{"metadata":{{"name":"one","namespace":"team"}},"spec":{{{spec}"selector":{{"matchLabels":{{"app":"a"}}}}}},
                "status":{{"disruptionsAllowed":0,"desiredHealthy":3,{status}}}}}"#
        )
    };
    let unready = || member(pod("a"), |member| member.readiness = Readiness::Unready);
    let always = r#""unhealthyPodEvictionPolicy":"AlwaysAllow","#;
    let (healthy, unhealthy) = (r#""currentHealthy":3"#, r#""currentHealthy":2"#);
    let granted = r#""currentHealthy":3,"disruptedPods":{"a":"2026-05-05T12:00:00Z"}"#;
    let goes = |pod: PodInfo, spec: &str, status: &str| {
        names(&run(&[pod], &budgets(&[&budget(spec, status)]))) == ["a"]
    };
    assert!(!goes(pod("a"), "", healthy) && !goes(pod("a"), always, healthy));
    assert!(goes(pod("a"), "", granted), "its disruption is counted already");
    assert!(goes(PodInfo { stage: Stage::Pending, ..pod("a") }, "", unhealthy), "it does not run yet");
    assert!(goes(unready(), "", healthy) && !goes(unready(), "", unhealthy));
    assert!(goes(unready(), always, unhealthy));
}

#[test]
fn what_a_disruption_budget_keeps_does_not_use_up_the_budget_of_the_job() {
    let pods = with(JobBudget::MaxUnavailable(Quantum::Count(1)), named(["a", "b"]));
    let mut kept = pods.clone();
    Arc::make_mut(&mut kept[0].footprint).labels = LabelSet::default();
    let none = r#"{"metadata":{"name":"n","namespace":"team"},"spec":{"selector":{"matchExpressions":[{"key":"app","operator":"DoesNotExist"}]}}}"#;
    assert_eq!(names(&run(&kept, &budgets(&[none]))), ["b"]);
}
