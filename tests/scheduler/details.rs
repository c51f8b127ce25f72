//! What users are told with each value of `messages.details`, and what of it administrators read elsewhere.

use berth::{
    cluster::write::tell::condition_text,
    config::Config,
    scheduling::{Details, Effect},
};
use serde_json::json;

use super::{
    holdings::{hami_node, share},
    machine::Machine,
};

/// What users are told, and what is reported to administrators in full.
fn said(details: Details) -> (Vec<String>, Vec<String>) {
    let card = json!({"id": "GPU-a", "index": 0, "count": 10, "devmem": 16000, "devcore": 100, "type": "NVIDIA A100", "mode": "hami-core", "health": true});
    let mut machine = Machine::new(&Config::default(), &[hami_node(&[card])], &[]);
    machine.show_pod(&share("large", 20_000));
    let (mut told_to_users, mut reported) = (Vec::new(), Vec::new());
    for effect in machine.run().0 {
        if let Effect::TellUnschedulable { reason, .. } = effect {
            let (message, left_out) = condition_text(&reason, details);
            told_to_users.push(message);
            reported.extend(left_out);
        }
    }
    (told_to_users, reported)
}

#[test]
fn what_a_user_is_not_told_is_reported_in_full() {
    let counted = "0/1 nodes are available: 1 Insufficient GPU memory.";
    let (full, nothing) = said(Details::Full);
    assert!(full[0].starts_with(&format!("{counted} nearest: n1 lacks 4000 MiB on GPU-a")), "{full:?}");
    assert_eq!(nothing, Vec::<String>::new());
    assert_eq!(said(Details::Own), (vec![counted.to_owned()], full));
}
