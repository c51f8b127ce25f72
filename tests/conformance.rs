//! Conformance with HAMi, Volcano, Koordinator and Kubernetes' device allocator, case by case: what their own unit tests expect, and what Berth does with the same input.
//!
//! The tables are kept outside of the project, in the folder that `BERTH_VECTORS` names or else in `../shared/vectors` beside it;
//! where neither is there, each test says so on standard error and passes. A case is equal, or it stands in its file's list of
//! differences with the reason; a listed case that turns out equal fails the test, so that the lists stay honest.
#![expect(clippy::unwrap_used, reason = "what fails in a test ends the test")]

#[path = "conformance/call.rs"]
mod call;
mod conformance_admission;
#[path = "conformance/dra_allocator.rs"]
mod dra_allocator;
#[path = "conformance/dra_consumable_capacity.rs"]
mod dra_consumable_capacity;
#[path = "support/fixtures.rs"]
mod fixtures;
#[path = "conformance/hami_codec.rs"]
mod hami_codec;
#[path = "conformance/hami_filter.rs"]
mod hami_filter;
#[path = "conformance/hami_fit.rs"]
mod hami_fit;
#[path = "conformance/hami_init_containers.rs"]
mod hami_init_containers;
#[path = "conformance/hami_nodelock.rs"]
mod hami_nodelock;
#[path = "conformance/hami_quota.rs"]
mod hami_quota;
#[path = "conformance/hami_recorded_fit_calls.rs"]
mod hami_recorded_fit_calls;
#[path = "conformance/hami_score.rs"]
mod hami_score;
#[path = "conformance/hami_selectors.rs"]
mod hami_selectors;
#[path = "conformance/hami_vendors.rs"]
mod hami_vendors;
#[path = "conformance/koordinator.rs"]
mod koordinator;
#[path = "conformance/koordinator_allocation.rs"]
mod koordinator_allocation;
#[path = "conformance/koordinator_annotations.rs"]
mod koordinator_annotations;
#[path = "conformance/koordinator_cache_events.rs"]
mod koordinator_cache_events;
#[path = "conformance/koordinator_device_plugin_adapter.rs"]
mod koordinator_device_plugin_adapter;
#[cfg(feature = "sandbox")]
#[path = "conformance/koordinator_env_injection.rs"]
mod koordinator_env_injection;
#[path = "conformance/koordinator_numa_hints.rs"]
mod koordinator_numa_hints;
#[path = "conformance/koordinator_phases.rs"]
mod koordinator_phases;
#[path = "conformance/koordinator_primitives.rs"]
mod koordinator_primitives;
#[path = "conformance/koordinator_request_validation.rs"]
mod koordinator_request_validation;
#[path = "conformance/koordinator_reservation.rs"]
mod koordinator_reservation;
#[path = "conformance/koordinator_scoring.rs"]
mod koordinator_scoring;
mod kube_scheduler;
#[path = "conformance/not_served.rs"]
mod not_served;
#[cfg(feature = "sandbox")]
#[path = "support/lib.rs"]
mod support;
#[path = "conformance/table.rs"]
mod table;
#[path = "conformance/upstream.rs"]
mod upstream;
#[path = "conformance/volcano.rs"]
mod volcano;
#[path = "conformance/volcano_ascend_hami_unit.rs"]
mod volcano_ascend_hami_unit;
#[path = "conformance/volcano_deviceshare_unit.rs"]
mod volcano_deviceshare_unit;
#[path = "conformance/volcano_gpushare_unit.rs"]
mod volcano_gpushare_unit;
#[path = "conformance/volcano_nodelock_unit.rs"]
mod volcano_nodelock_unit;
#[path = "conformance/volcano_tdm_unit.rs"]
mod volcano_tdm_unit;
#[path = "conformance/volcano_vgpu_unit.rs"]
mod volcano_vgpu_unit;
