//! The kinds of objects that users, machines and other schedulers write.

use k8s_openapi::api::{core::v1 as core, policy::v1::PodDisruptionBudget};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
};
use serde_json::Value;

use crate::{devices, world::World};

pub(super) fn pods(world: &World) -> Api<core::Pod> {
    Api::default_namespaced(world.client.clone())
}

pub(super) fn budgets(world: &World) -> Api<PodDisruptionBudget> {
    Api::default_namespaced(world.client.clone())
}

pub(super) fn quotas(world: &World) -> Api<core::ResourceQuota> {
    Api::default_namespaced(world.client.clone())
}

pub(super) fn devices(world: &World) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(devices::GROUP, "v1alpha1", "Device"));
    Api::all_with(world.client.clone(), &kind)
}

pub(super) fn reservations(world: &World) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(devices::GROUP, "v1alpha1", "Reservation"));
    Api::all_with(world.client.clone(), &kind)
}

pub(super) fn nodes(world: &World) -> Api<core::Node> {
    Api::all(world.client.clone())
}

pub(super) async fn patch(world: &World, node: &str, patch: Value) {
    drop(nodes(world).patch(node, &PatchParams::default(), &Patch::Merge(patch)).await);
}
