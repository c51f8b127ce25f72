//! Groups of pods: who goes with whom, from which nodes, and how long a search may look through them.

use serde_json::json;

use super::*;
use crate::{
    object::Pod,
    scheduling::{
        model::{
            gang::{DisruptionMode, Group, GroupPreemption, Policy},
            kind::PodGroupKind,
            pod::Placer,
        },
        world::ledger::Commitment,
    },
};

fn in_group(charge: Charge) -> Charge {
    let importance = Importance { group: Some("default/train".into()), ..charge.importance };
    Charge { importance, ..charge }
}

/// The PodGroup `train` of this mode and priority.
fn train(kind: PodGroupKind, disruption: DisruptionMode, priority: Option<i32>) -> Object {
    let preemption = GroupPreemption { disruption, priority, policy: None };
    let group = Group { preemption, ..Group::of(Policy::Alone) };
    Object::PodGroup(kind, "default/train".into(), Arc::new(group))
}

fn whole() -> Object {
    train(PodGroupKind::Kubernetes, DisruptionMode::All, None)
}

#[test]
fn a_group_that_is_disrupted_as_a_whole_goes_on_all_nodes() {
    let pods = [
        ("here", in_group(held(("n1", 0), 12_000, 0))),
        ("other-card", in_group(held(("n1", 1), 12_000, 0))),
        ("there", in_group(held(("n2", 0), 12_000, 0))),
        ("alone", held(("n2", 1), 12_000, 99)),
    ];
    let goes = |object: Option<Object>| {
        let mut snapshot = cluster(&["n1", "n2"], &pods);
        if let Some(object) = object {
            snapshot.set_object(object);
        }
        victims(&preemptor(10_000), &mut snapshot)
    };
    for kind in [PodGroupKind::Kubernetes, PodGroupKind::KubernetesAlpha2] {
        assert_eq!(goes(Some(train(kind, DisruptionMode::All, None))), ["here", "other-card", "there"]);
    }
    assert_eq!(goes(Some(train(PodGroupKind::Kubernetes, DisruptionMode::Single, None))).len(), 1);
    assert_eq!(goes(None).len(), 1);
}

#[test]
fn a_group_has_one_priority_which_counts_for_all_its_pods() {
    let pods = [("here", in_group(held(("n1", 0), 16_000, 200))), ("alone", held(("n1", 1), 16_000, 50))];
    let goes = |priority| {
        let mut snapshot = cluster(&["n1"], &pods);
        snapshot.set_object(train(PodGroupKind::Kubernetes, DisruptionMode::All, Some(priority)));
        victims(&preemptor(10_000), &mut snapshot)
    };
    assert_eq!(goes(0), ["here"], "the priority of the pod itself does not count");
    assert_eq!(goes(60), ["alone"]);
    assert_eq!(goes(100), ["alone"]);
}

#[test]
fn all_pods_below_a_group_of_groups_that_is_disrupted_as_a_whole_go_together() {
    let of = |group: &str, charge: Charge| {
        let importance = Importance { group: Some(format!("default/{group}").into()), ..charge.importance };
        Charge { importance, ..charge }
    };
    let group = |parent: Option<&str>, disruption, priority| {
        let preemption = GroupPreemption { disruption, priority, policy: None };
        let parent = parent.map(|parent| format!("default/{parent}").into());
        Arc::new(Group { parent, preemption, ..Group::of(Policy::Alone) })
    };
    let goes = |disruption, priority| {
        let pods = [
            ("prefill", of("prefill", held(("n1", 0), 16_000, priority))),
            ("decode", of("decode", held(("n2", 0), 16_000, priority))),
            ("other", of("other", held(("n1", 1), 16_000, 50))),
            ("alone", held(("n2", 1), 16_000, 99)),
        ];
        let mut snapshot = cluster(&["n1", "n2"], &pods);
        let root = group(None, disruption, Some(priority));
        snapshot.set_object(Object::PodGroup(PodGroupKind::Composite, "default/llm".into(), root));
        for (name, parent) in [("prefill", Some("llm")), ("decode", Some("llm")), ("other", None)] {
            let leaf = group(parent, DisruptionMode::Single, Some(50));
            snapshot.set_object(Object::PodGroup(
                PodGroupKind::Kubernetes,
                format!("default/{name}").into(),
                leaf,
            ));
        }
        let mut victims = victims(&preemptor(10_000), &mut snapshot);
        victims.sort();
        victims
    };
    assert_eq!(goes(DisruptionMode::All, 0), ["decode", "prefill"]);
    assert_eq!(goes(DisruptionMode::Single, 0).len(), 1);
    assert_eq!(goes(DisruptionMode::All, 60), ["other"], "the priority of the root counts");
    assert_eq!(
        goes(DisruptionMode::All, 50),
        ["other"],
        "at the same priority, all of a tree are more important"
    );
}

#[test]
fn a_group_of_which_one_pod_may_not_go_stays() {
    let mut pods = [
        ("here", in_group(held(("n1", 0), 16_000, 0))),
        ("there", in_group(held(("n2", 0), 16_000, 0))),
        ("filler", held(("n1", 1), 16_000, 100)),
        ("filler2", held(("n2", 1), 16_000, 100)),
    ];
    let hopeless = |pods: &[(&str, Charge)], rules| {
        let mut snapshot = cluster(&["n1", "n2"], pods);
        snapshot.set_object(whole());
        chosen(&preemptor(10_000), &mut snapshot, rules).is_err()
    };
    assert!(!hopeless(&pods, Rules::default()));
    pods[1].1.placer = Placer::Another;
    assert!(hopeless(&pods, Rules { other_schedulers: false, ..Rules::default() }));
    assert!(!hopeless(&pods, Rules::default()));
    pods[1].1.commitment = Commitment::Intended;
    assert!(hopeless(&pods, Rules::default()));
}

#[test]
fn what_a_pod_of_the_group_keeps_from_other_nodes_is_given_up_with_it() {
    let term = json!([{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "urgent"}}}]);
    let repelling: Pod = serde_json::from_value(json!({
        "metadata": {"name": "there", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}},
    }))
    .unwrap();
    let footprint = Footprint::of_pod(&repelling, crate::scheduling::ResourceAmounts::default());
    let there = Charge { footprint: Arc::new(footprint), ..in_group(held(("n2", 0), 16_000, 0)) };
    let pods = [
        ("here", in_group(held(("n1", 0), 16_000, 0))),
        ("there", there),
        ("filler", held(("n1", 1), 16_000, 100)),
        ("filler2", held(("n2", 1), 16_000, 100)),
    ];
    let mut snapshot = Snapshot::default();
    for name in ["n1", "n2"] {
        let labels = [("zone", "a")].into();
        snapshot.set_node(crate::scheduling::NodeInfo { labels, ..node(name, 2, 16_000) });
    }
    for (pod, charge) in &pods {
        snapshot.charge((*pod).into(), charge.clone());
    }
    let labels = LabelSet::from([("app", "urgent")]);
    let footprint = Footprint { namespace: "default".into(), labels, ..Footprint::default() };
    let urgent = Demand { footprint: Arc::new(footprint), ..preemptor(10_000) };
    assert!(chosen(&urgent, &mut snapshot, Rules::default()).is_ok_and(|(node, ..)| node == "n2"));
    snapshot.set_object(whole());
    let (_, mut victims, _) = chosen(&urgent, &mut snapshot, Rules::default()).unwrap();
    victims.sort();
    assert_eq!(victims, ["here", "there"]);
    // Now each of the two would do.
    let nodes: Vec<_> = ["n1", "n2"]
        .into_iter()
        .filter(|name| {
            let only = |node: &NodeName| &**node == *name;
            let counts = &mut PodCounts::default();
            choose_among(&urgent, &mut Plan::new(&mut snapshot), counts, Rules::default(), &only).is_ok()
        })
        .collect();
    assert_eq!(nodes, ["n1", "n2"]);
}

#[test]
fn a_search_looks_through_large_groups_only_so_long() {
    let nodes: Vec<String> = (0..400).map(|at| format!("n{at}")).collect();
    let names: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let mut snapshot = cluster(&names, &[]);
    for name in &names {
        for at in 0..50 {
            let pod = held((name, 0), 300, 0);
            let footprint = Footprint { namespace: "other".into(), ..Footprint::default() };
            let pod = Charge { footprint: Arc::new(footprint), ..in_group(pod) };
            snapshot.charge(format!("{name}-{at}").as_str().into(), pod);
        }
        snapshot.charge(format!("{name}-filler").as_str().into(), held((name, 1), 16_000, 100));
    }
    snapshot.set_object(whole());
    let mut counts = PodCounts::default();
    let found = choose(&preemptor(10_000), &mut snapshot, &mut counts, Rules::default());
    assert_eq!(found.map(|found| found.victims.len()).unwrap_or_default(), 20_000);
    let steps = counts.steps().count();
    assert!(steps < 2 * 30 * PER_MILLISECOND, "{} ms", steps / PER_MILLISECOND);
}
