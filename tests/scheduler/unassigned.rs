//! Bound pods that request a share and carry no assignment: reported once, whichever scheduler bound them.

use berth::{
    config::Config,
    scheduling::{Concern, Effect, Event, Finding, PodChange},
};
use serde_json::{Value, json};

use super::{
    holdings::{hami_node, holding, share},
    machine::{Machine, bound, node, pod},
};

fn card() -> Value {
    json!({"id": "GPU-a", "index": 0, "count": 10, "devmem": 16000, "devcore": 100, "type": "NVIDIA A100", "mode": "hami-core", "health": true})
}

/// Which pods get an Event, with its message, and how many a node is listed with.
fn unassigned(effects: &[Effect]) -> (Vec<(&str, String)>, Vec<usize>) {
    let told = effects.iter().filter_map(|effect| match effect {
        Effect::ReportFinding { of: Concern::Pod(pod), finding: finding @ Finding::Unassigned(_) } => {
            Some((&*pod.name, finding.message().full))
        }
        _ => None,
    });
    let listed = effects.iter().filter_map(|effect| match effect {
        Effect::CountFindings { findings, .. } => Some(findings.unassigned.len()),
        _ => None,
    });
    (told.collect(), listed.collect())
}

#[test]
fn a_bound_share_pod_without_an_assignment_is_reported_once_until_it_ends() {
    let stray = bound(share("stray", 1000), "n1", json!({}));
    let mut machine = Machine::new(&Config::default(), &[hami_node(&[card()])], std::slice::from_ref(&stray));
    let effects = machine.run().0;
    let message = "the Pod requests a GPU share (hami-nvidia) and is bound to node n1 without an assignment: its device plugin may \
                   refuse it or give it the cards of another Pod; delete it and create it again for a scheduler of GPU shares";
    assert_eq!(unassigned(&effects), (vec![("stray", message.to_owned())], vec![1]));
    machine.show_pod(&stray);
    assert_eq!(unassigned(&machine.run().0), (vec![], vec![]), "reported once");
    machine.tell(Event::Pod(PodChange::Ended("stray".into())));
    assert_eq!(unassigned(&machine.run().0), (vec![], vec![0]));
}

#[test]
fn pods_that_no_agent_of_the_node_serves_and_pods_with_an_assignment_are_not_reported() {
    let mut ended = bound(share("ended", 1000), "n1", json!({}));
    ended["status"]["phase"] = "Succeeded".into();
    let pods = [
        holding("assigned", "GPU-a,NVIDIA,1000,0:;"),
        bound(share("elsewhere", 1000), "plain", json!({})),
        bound(pod("no-share", &json!({"cpu": "1"})), "n1", json!({})),
        ended,
    ];
    let nodes = [hami_node(&[card()]), node("plain", &json!({}))];
    let mut machine = Machine::new(&Config::default(), &nodes, &pods);
    assert_eq!(unassigned(&machine.run().0), (vec![], vec![]));
}
