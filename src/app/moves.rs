//! What moving pods would win, where the process is to look for it.

use super::Options;
use crate::cluster::{
    Handoff, Metrics,
    report::advice::{ADVICE_PERIOD, Advisor},
};

/// Whether the leader looks for what moving pods would win.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum MovesAdvice {
    /// It does, and reports them by metrics and Events.
    Given,
    /// It does not.
    #[default]
    Off,
}

/// Looks for ever.
pub(super) fn follow(
    options: &Options,
    metrics: Metrics,
    handoff: &Handoff,
) -> impl Future<Output = ()> + Send + use<> {
    let advisor = Advisor {
        client: options.client.clone(),
        clock: options.clock,
        views: handoff.views(),
        questions: handoff.questions().clone(),
        metrics,
        controller: options.config.scheduler_name.clone(),
        own_pod: options.own_pod.clone(),
    };
    advisor.advise(ADVICE_PERIOD)
}
