//! Constraints that a pod has by default, by its Services and its controller.

use super::*;

const HOSTS: &[(&str, &[(&str, &str)])] = &[
    ("a", &[("kubernetes.io/hostname", "a"), ("topology.kubernetes.io/zone", "1")]),
    ("b", &[("kubernetes.io/hostname", "b"), ("topology.kubernetes.io/zone", "1")]),
    ("c", &[("kubernetes.io/hostname", "c"), ("topology.kubernetes.io/zone", "2")]),
    ("d", &[("kubernetes.io/hostname", "d")]),
];

fn service(namespace: &str, selector: &str) -> Object {
    let object = format!(
        r#"{{"metadata":{{"name":"s","namespace":"{namespace}"}},"spec":{{"selector":{selector}}}}}"#
    );
    Object::service(serde_json::from_str(&object).unwrap())
}

#[test]
fn pods_of_a_service_are_spread_over_nodes_and_zones_by_default() {
    let web = r#"{"metadata":{"labels":{"app":"web"}}}"#;
    let spread = |object: Object, pod: &str| {
        let cluster = Cluster::new(HOSTS).with_pod("a", web).with_pod("a", web).with_object(object);
        cluster.scores(&demand(pod), Plugin::PodTopologySpread)
    };
    // Four nodes: ln 6 a pod, and 2. Three domains, one of them the node without a zone: ln 5 a pod, and 4.
    // On `a` 2 ln 6 + 2 + 2 ln 5 + 4 = 13, on `b` 2 + 2 ln 5 + 4 = 9, on `c` 2 + 4, on `d` 2.
    let expected = [Some(15), Some(46), Some(69), Some(100)];
    assert_eq!(spread(service("default", r#"{"app":"web"}"#), web), expected);
    for (object, pod) in [
        (service("default", r#"{"app":"db"}"#), web),
        (service("default-1", r#"{"app":"web"}"#), web),
        (service("default", "null"), web),
        (service("default", r#"{"app":"web"}"#), "{}"),
    ] {
        assert_eq!(spread(object, pod), [None; 4], "{pod}");
    }
    let stated = r#"{"metadata":{"labels":{"app":"web"}},"spec":{"topologySpreadConstraints":[{"maxSkew":9,
        "topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"DoNotSchedule"}]}}"#;
    assert_eq!(spread(service("default", r#"{"app":"web"}"#), stated), [None; 4], "it states a constraint");
}

#[test]
fn pods_of_one_controller_are_spread_by_default() {
    let web = r#"{"metadata":{"labels":{"app":"web"}}}"#;
    let owned = |version: &str, kind: &str, controls: bool| {
        demand(&format!(
            r#"{{"metadata":{{"labels":{{"app":"web"}},"ownerReferences":[{{"apiVersion":"{version}","kind":"{kind}",
                "name":"one","uid":"1","controller":{controls}}}]}}}}"#
        ))
    };
    let read = |selector: &str| {
        format!(r#"{{"metadata":{{"name":"one","namespace":"default"}},"spec":{{"selector":{selector}}}}}"#)
    };
    let by_selector = read(r#"{"matchLabels":{"app":"web"}}"#);
    let cluster = Cluster::new(HOSTS)
        .with_pod("a", web)
        .with_object(Object::replica_set(serde_json::from_str(&by_selector).unwrap()))
        .with_object(Object::stateful_set(serde_json::from_str(&by_selector).unwrap()))
        .with_object(Object::replication_controller(
            serde_json::from_str(&read(r#"{"app":"web"}"#)).unwrap(),
        ));
    let scores = |demand: &Demand| cluster.scores(demand, Plugin::PodTopologySpread);
    for (version, kind) in
        [("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("v1", "ReplicationController")]
    {
        assert!(scores(&owned(version, kind, true))[3] > scores(&owned(version, kind, true))[0], "{kind}");
        assert_eq!(scores(&owned(version, kind, false)), [None; 4], "{kind}: it is no controller");
        assert_eq!(scores(&owned("other/v1", kind, true)), [None; 4], "{kind} of another group");
        let away = &*cluster.place(&owned(version, kind, true), ScoreWeights::default());
        assert_ne!(away, "a", "{kind}");
    }
    let labelled = service("default", r#"{"app":"web"}"#);
    let cluster = cluster.with_object(labelled);
    let both = cluster.scores(&owned("apps/v1", "ReplicaSet", true), Plugin::PodTopologySpread);
    assert_eq!(both, cluster.scores(&demand(web), Plugin::PodTopologySpread), "what both demand is the same");
}
