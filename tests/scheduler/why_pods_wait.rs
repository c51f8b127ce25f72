//! Why pods wait, as metrics count it: by plugin and reason, and those that no end of another pod would help.

use berth::{
    config::Config,
    scheduling::{Event, PodChange},
};
use serde_json::{Value, json};

use super::{
    holdings::{hami_node, share},
    machine::{Machine, pod},
};

fn card() -> Value {
    json!({"id": "GPU-a", "index": 0, "count": 10, "devmem": 16000, "devcore": 100, "type": "NVIDIA A100", "mode": "hami-core", "health": true})
}

fn waiting(machine: &Machine) -> (Vec<(String, usize)>, usize) {
    let waiting = machine.scheduler().view().waiting();
    let reasons =
        waiting.reasons.into_iter().map(|((plugin, reason), pods)| (format!("{plugin}/{reason}"), pods));
    (reasons.collect(), waiting.unplaceable)
}

#[test]
fn each_waiting_pod_counts_for_its_reason_and_one_that_never_fits_is_unplaceable() {
    let mut machine = Machine::new(&Config::default(), &[hami_node(&[card()])], &[]);
    assert_eq!(waiting(&machine), (vec![], 0));
    machine.show_pod(&share("large-1", 20_000));
    machine.show_pod(&share("large-2", 20_000));
    let mut of_another_model = share("h100", 1000);
    of_another_model["metadata"]["annotations"]["nvidia.com/use-gputype"] = "H100".into();
    machine.show_pod(&of_another_model);
    let mut unreadable = pod("no-share", &json!({"nvidia.com/gpu": "1.5"}));
    unreadable["spec"]["schedulerName"] = "berth".into();
    machine.show_pod(&unreadable);
    machine.run();
    let expected = [
        ("Devices/CardInsufficientMemory", 2),
        ("Devices/CardTypeMismatch", 1),
        ("Devices/RequestUnreadable", 1),
    ];
    let expected: Vec<_> = expected.map(|(reason, pods)| (reason.to_owned(), pods)).into();
    assert_eq!(waiting(&machine), (expected, 2));
    for gone in ["large-1", "large-2", "h100", "no-share"] {
        machine.tell(Event::Pod(PodChange::Gone(gone.into())));
    }
    machine.run();
    assert_eq!(waiting(&machine), (vec![], 0));
}

#[test]
fn a_pod_that_is_placed_waits_for_no_reason_any_more() {
    let mut machine = Machine::new(&Config::default(), &[], &[]);
    machine.show_pod(&share("first", 1000));
    machine.run();
    assert_eq!(waiting(&machine).1, 0, "a node may come");
    machine.show_node(&hami_node(&[card()]));
    assert_eq!(machine.run().1.len(), 1);
    assert_eq!(waiting(&machine), (vec![], 0));
}
