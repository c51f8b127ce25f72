//! Preemption for devices of claims: how long a pod waits for devices of victims, for whom these are kept, and how long the search may take.

use serde_json::{Value, json};

use super::*;
use crate::{
    object::{DeviceClass, ResourceClaim, ResourceSlice},
    scheduling::{
        Ask, Constraints, ResourceAmounts,
        model::{
            claim_use::{ClaimSource, ResourceClaimUse},
            steps::PER_MILLISECOND,
        },
    },
};

fn read<T: serde::de::DeserializeOwned>(object: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(object).unwrap())
}

/// Nodes of so many devices each.
fn cluster(nodes: &[&str], devices: usize) -> Snapshot {
    let mut snapshot = Snapshot::default();
    snapshot.set_object(Object::DeviceClass(read::<DeviceClass>(json!({"metadata": {"name": "gpu"}}))));
    for name in nodes {
        snapshot.set_node(fixtures::node_offering(name, Vec::new()));
        let devices: Vec<_> = (0..devices).map(|at| json!({"name": format!("gpu-{at}")})).collect();
        let pool = json!({"name": name, "generation": 1, "resourceSliceCount": 1});
        let spec = json!({"driver": "gpu.example.com", "pool": pool, "nodeName": name, "devices": devices});
        let slice = json!({"metadata": {"name": format!("of-{name}")}, "spec": spec});
        snapshot.set_object(Object::ResourceSlice(read::<ResourceSlice>(slice)));
    }
    snapshot
}

/// A claim for one device that passes this selector; with a node, it has the first device there, for these users.
fn show_claim(name: &str, selector: &str, held: Option<(&str, &[(&str, &str)])>, snapshot: &mut Snapshot) {
    let selectors = json!([{"cel": {"expression": selector}}]);
    let requests = json!([{"name": "gpu", "exactly": {"deviceClassName": "gpu", "selectors": selectors}}]);
    let status = held.map(|(node, users)| {
        let result = json!({"request": "gpu", "driver": "gpu.example.com", "pool": node, "device": "gpu-0"});
        let users: Vec<_> =
            users.iter().map(|(kind, uid)| json!({"resource": kind, "name": uid, "uid": uid})).collect();
        json!({"allocation": {"devices": {"results": [result]}}, "reservedFor": users})
    });
    let claim: Arc<ResourceClaim> = read(json!({
        "metadata": {"namespace": "default", "name": name, "uid": name},
        "spec": {"devices": {"requests": requests}}, "status": status,
    }));
    snapshot.set_object(Object::ResourceClaim(claim));
}

fn uses(claim: &str) -> Arc<Footprint> {
    let used =
        ResourceClaimUse { entry: "gpu".into(), claim: Some(claim.into()), source: ClaimSource::Named };
    Arc::new(Footprint {
        namespace: "default".into(),
        resource_claims: [used].into(),
        ..Footprint::default()
    })
}

/// A pod of low priority on this node that uses a claim.
fn user(node: &str, claim: &str) -> Charge {
    Charge { footprint: uses(claim), ..fixtures::charge(node, Vec::new()) }
}

/// A pod of high priority that uses the claim `wanted`.
fn claiming() -> Demand {
    let ask = Ask {
        devices: Vec::new(),
        resources: Arc::new(ResourceAmounts::default()),
        constraints: Constraints::default(),
        policy: crate::device::NodePolicy::Indifferent,
    };
    Demand { footprint: uses("wanted"), priority: 100, ..demand("preemptor", ask) }
}

const ANY: &str = "true";

/// A node of one device, which the claim of the pod `low` holds, and a pod that wants it.
fn held_by_low() -> Snapshot {
    let mut snapshot = cluster(&["n1"], 1);
    show_claim("held", ANY, Some(("n1", &[("pods", "low")])), &mut snapshot);
    show_claim("wanted", ANY, None, &mut snapshot);
    snapshot.charge("low".into(), user("n1", "held"));
    snapshot
}

#[test]
fn the_claim_of_a_victim_that_has_ended_is_waited_for() {
    let (mut snapshot, preemptor) = (held_by_low(), claiming());
    assert_eq!(victims(&preemptor, &mut snapshot), ["low"]);
    snapshot.keep_for(&pod(&preemptor), &"n1".into(), BTreeSet::from(["low".into()]), None);
    snapshot.release(&"low".into());
    assert!(!is_eligible(&preemptor, &snapshot), "Kubernetes is about to free the claim");
    // After a restart, neither the victim is known nor the pod that preempted it.
    let mut anew = cluster(&["n1"], 1);
    show_claim("held", ANY, Some(("n1", &[("pods", "low")])), &mut anew);
    show_claim("wanted", ANY, None, &mut anew);
    assert!(is_eligible(&preemptor, &anew), "no node is kept for it");
    anew.nominate(&PodInfo {
        status: Arc::new(WaitingPodStatus { nominated: Some("n1".into()), ..WaitingPodStatus::default() }),
        ..pod(&preemptor)
    });
    assert!(!is_eligible(&preemptor, &anew));
    for snapshot in [&mut snapshot, &mut anew] {
        show_claim("held", ANY, None, snapshot);
        assert!(is_eligible(&preemptor, snapshot));
        let decided = Classes::new(ScoreWeights::default()).decide(&preemptor, snapshot, |_| 0);
        assert!(decided.is_ok(), "{decided:?}");
    }
}

#[test]
fn what_a_victim_leaves_is_kept_from_pods_of_lower_priority() {
    let (mut snapshot, preemptor) = (held_by_low(), claiming());
    show_claim("other", ANY, None, &mut snapshot);
    let other = |priority| Demand { uid: "other".into(), footprint: uses("other"), priority, ..claiming() };
    let goes = |priority, snapshot: &Snapshot| {
        Classes::new(ScoreWeights::default()).decide(&other(priority), snapshot, |_| 0).is_ok()
    };
    snapshot.keep_for(&pod(&preemptor), &"n1".into(), BTreeSet::from(["low".into()]), None);
    snapshot.release(&"low".into());
    show_claim("held", ANY, None, &mut snapshot);
    assert!(!goes(0, &snapshot) && !goes(100, &snapshot), "it is kept");
    assert!(goes(101, &snapshot), "it comes before");
    snapshot.end_nomination(&preemptor.uid);
    assert!(goes(0, &snapshot));
}

#[test]
fn a_claim_that_something_else_uses_too_keeps_its_device() {
    for users in [&[("pods", "low"), ("jobs", "job")][..], &[("pods", "low"), ("pods", "elsewhere")], &[]] {
        let mut snapshot = held_by_low();
        show_claim("held", ANY, Some(("n1", users)), &mut snapshot);
        let hopeless = chosen(&claiming(), &mut snapshot, Rules::default()).unwrap_err();
        assert_eq!(hopeless, Hopeless { not_helpful: 1, ..Hopeless::default() }, "{users:?}");
    }
}

/// A selector that takes the cube of this number of evaluations for each device.
fn selector(length: usize) -> String {
    let list = format!("[{}]", vec!["0"; length].join(","));
    format!("{list}.all(x, {list}.all(y, {list}.all(z, x + y + z >= 0)))")
}

/// How a search for victims ends for a pod whose claim has this selector, on nodes of four devices, and how many steps it takes.
fn search(nodes: &[&str], selector: &str) -> (Result<Candidate, Hopeless>, u64) {
    let mut snapshot = cluster(nodes, 4);
    show_claim("wanted", selector, None, &mut snapshot);
    for node in nodes {
        let claim = format!("held-{node}");
        show_claim(&claim, ANY, Some((node, &[("pods", node)])), &mut snapshot);
        snapshot.charge((*node).into(), user(node, &claim));
    }
    let mut counts = PodCounts::default();
    let found = choose(&claiming(), &mut snapshot, &mut counts, Rules::default());
    (found, counts.steps().count())
}

#[test]
fn a_search_ends_where_comparing_claims_with_devices_takes_too_long() {
    let (found, steps) = search(&["n1", "n2"], &selector(48));
    let hopeless = found.unwrap_err();
    assert_eq!(
        hopeless.to_string(),
        "preemption: 0/2 nodes are available: 2 Comparing claims with devices takes longer than a search for victims may."
    );
    assert!(steps < PER_MILLISECOND, "no evaluation is begun that may take too long");
    let nodes: Vec<String> = (0..40).map(|node| format!("n{node}")).collect();
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let none_fits = format!("!({})", selector(16));
    let (found, steps) = search(&nodes, &none_fits);
    let hopeless = found.unwrap_err();
    assert!(hopeless.not_helpful > 0 && hopeless.unfinished > 0, "{hopeless:?}");
    assert!((40 * PER_MILLISECOND..65 * PER_MILLISECOND).contains(&steps), "{steps}");
}
