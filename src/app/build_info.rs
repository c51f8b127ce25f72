//! The metric `berth_build_info`, which shows the version that each replica runs.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct BuildLabels {
    version: &'static str,
}

/// Registers the gauge `berth_build_info`, whose value is always 1.
pub fn register(registry: &mut Registry) {
    let builds: Family<BuildLabels, Gauge> = Family::default();
    builds.get_or_create(&BuildLabels { version: env!("CARGO_PKG_VERSION") }).set(1);
    registry.register("berth_build_info", "1, with the version that runs as a label", builds);
}
