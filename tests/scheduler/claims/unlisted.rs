//! Pods with claims while what decides on claims is not listed.

use berth::{
    config::Config,
    scheduling::{Event, ObjectChange, model::kind::Kind},
};
use jiff::SignedDuration;
use serde_json::json;

use super::{
    super::machine::{Machine, pod},
    hami_node, said, share, tell,
};

#[test]
fn a_pod_with_claims_waits_until_storage_is_listed_and_others_do_not() {
    let mut machine = Machine::without_storage(&Config::default(), &[hami_node("n1", 16_000)]);
    machine.show_pod(&share("p"));
    machine.show_pod(&pod("q", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"})));
    let (effects, bound) = machine.run();
    assert_eq!(bound, [("q".to_owned(), "n1".to_owned())]);
    assert_eq!(said(&effects), [""; 0]);
    for kind in Kind::STORAGE {
        machine.tell(Event::Object(ObjectChange::Listed(*kind, Vec::new())));
    }
    let (effects, _) = machine.run();
    assert_eq!(said(&effects), [r#"0/1 nodes are available: persistentvolumeclaim "data" not found."#]);
}

#[test]
fn a_pod_whose_lists_do_not_come_says_after_half_a_minute_which_they_are() {
    let missing = |names: &str| {
        format!(
            "the Pod has claims, and these are not listed yet: {names}; Berth's ServiceAccount must be allowed to list and watch them"
        )
    };
    let mut machine = Machine::without_storage(&Config::default(), &[hami_node("n1", 16_000)]);
    let [late, also_late, listed @ ..] = Kind::STORAGE else { panic!("there are more kinds") };
    for kind in listed {
        machine.tell(Event::Object(ObjectChange::Listed(*kind, Vec::new())));
    }
    machine.show_pod(&share("p"));
    machine.run();
    machine.pass(29);
    assert_eq!(said(&machine.run().0), [""; 0]);
    assert_eq!(machine.next_deadline(), Some(machine.now() + SignedDuration::from_secs(1)));
    machine.pass(1);
    let (effects, _) = machine.run();
    assert_eq!(said(&effects), [missing("persistentvolumes, persistentvolumeclaims")]);
    tell(&mut machine, &effects);
    machine.show_pod(&share("q"));
    let (effects, _) = machine.run();
    assert_eq!(
        said(&effects),
        [missing("persistentvolumes, persistentvolumeclaims")],
        "the next pod says it at once"
    );
    tell(&mut machine, &effects);
    machine.tell(Event::Object(ObjectChange::Listed(*late, Vec::new())));
    let (effects, _) = machine.run();
    assert_eq!(said(&effects), [missing("persistentvolumeclaims"), missing("persistentvolumeclaims")]);
    tell(&mut machine, &effects);
    machine.tell(Event::Object(ObjectChange::Listed(*also_late, Vec::new())));
    let not_found = r#"0/1 nodes are available: persistentvolumeclaim "data" not found."#;
    assert_eq!(said(&machine.run().0), [not_found, not_found]);
}
