//! Whatever becomes of a pod at whichever step on its way to its node: nothing more is sent for it, nothing of it is left, and the
//! node's next pod goes.

use super::{
    play::{Play, Sent, pod, setback},
    seconds,
};
use crate::{
    device::Answer,
    scheduling::{
        Claim,
        event::{BindOutcome, LockOutcome},
        model::pod::PodInfo,
        world::ledger::Commitment,
    },
};

/// How far a pod is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum At {
    Unschedulable,
    InLine,
    Locking,
    DoubtingLock,
    Relocking,
    Binding,
    Doubting,
    Rebinding,
    Fencing,
}

impl At {
    const ALL: [Self; 9] = [
        Self::Unschedulable,
        Self::InLine,
        Self::Locking,
        Self::DoubtingLock,
        Self::Relocking,
        Self::Binding,
        Self::Doubting,
        Self::Rebinding,
        Self::Fencing,
    ];

    /// Brings the pod `a` there.
    fn reach(self, play: &mut Play) {
        match self {
            Self::Unschedulable => return play.create_large("a"),
            Self::InLine => play.locked_by("team-b/other"),
            _ => {}
        }
        play.create("a");
        match self {
            Self::DoubtingLock => play.lock_answered("a", LockOutcome::Failed(setback("500", 0))),
            Self::Relocking => play.lock_answered("a", LockOutcome::Throttled(setback("429", 5))),
            Self::Binding | Self::Doubting | Self::Rebinding | Self::Fencing => play.lock_taken("a"),
            Self::Unschedulable | Self::InLine | Self::Locking => {}
        }
        match self {
            Self::Rebinding => play.bind_answered("a", BindOutcome::Throttled(setback("429", 5))),
            Self::Doubting | Self::Fencing => {
                play.bind_answered("a", BindOutcome::Doubtful(setback("500", 0)));
            }
            _ => {}
        }
        if self == Self::Fencing {
            play.unlocked();
            play.read("a", play.pod("a"));
            play.wait(seconds(1));
        }
    }
}

/// What becomes of a pod.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fate {
    /// It is gone.
    Gone,
    /// It has ended.
    Ended,
    /// It is being deleted, or was given a gate.
    Unwanted,
    /// It has become too large for every node.
    TooLarge,
}

impl Fate {
    fn befall(self, play: &mut Play) {
        match self {
            Self::Gone => play.gone("a"),
            Self::Ended => play.ended("a"),
            Self::Unwanted | Self::TooLarge => play.changed("a", |pod| self.change(pod)),
        }
    }

    fn change(self, info: &mut PodInfo) {
        info.claim = match self {
            Self::TooLarge => pod("a", 99_000, info.lifetime.created).claim,
            _ => Claim::None,
        };
    }

    /// Answers what was sent: writes are carried out, Bindings are not, and reads find the pod as it is.
    fn answer(self, play: &mut Play, sent: Sent<'_>) {
        match sent {
            Sent::Lock(pod) => play.lock_taken(pod),
            Sent::Unlock => {
                play.unlocked();
                play.released();
            }
            Sent::ReadNode => play.node_read(),
            Sent::ReadHolder => play.holder_absent(),
            Sent::Bind(pod) => play.bind_answered(pod, BindOutcome::Bound),
            Sent::Read("a") if matches!(self, Self::Gone | Self::Ended) => play.read_gone("a"),
            Sent::Read("a") => {
                let mut found = play.pod("a");
                self.change(&mut found);
                play.read("a", found);
            }
            _ => {}
        }
    }
}

#[test]
fn whatever_becomes_of_a_pod_at_any_step_leaves_nothing_and_stops_nobody() {
    for at in At::ALL {
        for fate in [Fate::Gone, Fate::Ended, Fate::Unwanted, Fate::TooLarge] {
            let mut play = Play::new();
            at.reach(&mut play);
            let case = format!("{at:?}, then {fate:?}");
            let before = play.sent();
            fate.befall(&mut play);
            let late = [(At::Locking, Sent::Lock("a")), (At::Binding, Sent::Bind("a"))];
            if let Some((_, sent)) =
                late.into_iter().find(|(step, sent)| *step == at && before.contains(sent))
            {
                match sent {
                    Sent::Bind(_) => play.bind_answered("a", BindOutcome::Doubtful(setback("404", 0))),
                    sent => fate.answer(&mut play, sent),
                }
            }
            if before.contains(&Sent::Read("a")) {
                fate.answer(&mut play, Sent::Read("a"));
            }
            if before.contains(&Sent::ReadNode) {
                play.node_read();
            }
            if at == At::InLine {
                play.unlocked();
            }
            play.create("b");
            let mut sent = Vec::new();
            for _ in 0..40 {
                for effect in play.sent() {
                    sent.push(effect);
                    fate.answer(&mut play, effect);
                }
                play.wait(seconds(1));
            }
            for never in [Sent::Lock("a"), Sent::Bind("a"), Sent::Drift] {
                assert!(!sent.contains(&never), "{case}: {never:?} is among {sent:?}");
            }
            assert!(sent.contains(&Sent::Bind("b")), "{case}: b is not bound: {sent:?}");
            for commitment in [Commitment::Assumed, Commitment::Bound] {
                assert!(!play.is_charged("a", commitment), "{case}: a is charged");
            }
        }
    }
}

#[test]
fn a_pod_is_bound_as_the_node_is_when_its_lock_is_taken() {
    let mut play = Play::new();
    play.create("a");
    // Bound by another scheduler before the lock was taken, and seen only now.
    play.foreign("theirs", 9500);
    play.lock_taken("a");
    let sent = play.sent();
    assert!(sent.contains(&Sent::Unschedulable("a")) && sent.contains(&Sent::Unlock), "{sent:?}");
    assert!(!sent.contains(&Sent::Bind("a")), "{sent:?}");
    play.released();
    play.unlocked();
    play.ended("theirs");
    play.lock_taken("a");
    assert!(play.sent().contains(&Sent::Bind("a")));
    play.bind_answered("a", BindOutcome::Bound);
    play.served("a", Answer::Succeeded);
    assert!(play.is_charged("a", Commitment::Bound));
}
