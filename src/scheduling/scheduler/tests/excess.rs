//! Cards of which more is held than there is: pods that are bound there hold it, decisions of other schedulers do not.

use super::play::{Play, Sent};
use crate::scheduling::{Event, PodChange, model::pod::Binding};

#[test]
fn a_decision_of_another_scheduler_is_no_excess_until_it_is_bound() {
    let mut play = Play::new();
    play.foreign("bound", 9000);
    play.sent();
    let mut decided = play.foreign_pod("decided", 9000);
    decided.holding.as_mut().unwrap().binding = Binding::Intended;
    play.happens(Event::Pod(PodChange::Seen(Box::new(decided))));
    assert_eq!(play.sent(), []);
    play.foreign("decided", 9000);
    let sent = play.sent();
    assert!(sent.contains(&Sent::Excess("bound")) && sent.contains(&Sent::Excess("decided")), "{sent:?}");
}
