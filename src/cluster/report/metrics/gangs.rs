//! The count of decisions about gangs.

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue},
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use crate::scheduling::model::measure::GangAttempt;

#[derive(Clone, Copy, Debug, EncodeLabelValue, Eq, Hash, PartialEq)]
#[expect(non_camel_case_types, reason = "label values are lower case")]
enum GangResult {
    scheduled,
    unschedulable,
    rolled_back,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct GangLabels {
    result: GangResult,
}

/// Decisions about gangs, by result; clones share the count.
#[derive(Clone, Debug, Default)]
pub(super) struct GangMetrics(Family<GangLabels, Counter>);

impl GangMetrics {
    pub(super) fn register(&self, scheduler: &mut Registry) {
        let help = "Decisions about gangs, by result: all pods found room, they did not, or the gang was rolled back";
        scheduler.register("gang_attempts", help, self.0.clone());
        for result in [GangResult::scheduled, GangResult::unschedulable, GangResult::rolled_back] {
            drop(self.0.get_or_create(&GangLabels { result }));
        }
    }

    /// Counts one decision.
    pub(super) fn count(&self, attempt: GangAttempt) {
        let result = match attempt {
            GangAttempt::Scheduled => GangResult::scheduled,
            GangAttempt::Unschedulable => GangResult::unschedulable,
            GangAttempt::RolledBack => GangResult::rolled_back,
        };
        self.0.get_or_create(&GangLabels { result }).inc();
    }
}
