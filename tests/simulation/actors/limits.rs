//! Administrators, who set quotas and lend nodes, and the disruption controller.

use k8s_openapi::api::core::v1 as core;
use kube::ResourceExt as _;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::{
    Actors,
    api::{budgets, patch, quotas},
};
use crate::{
    pod,
    time_division::{JOBS, Stated, zone_of},
    world::{NODES, World},
};

/// The name of the namespace's quota.
const QUOTA: &str = "shares";

impl Actors {
    pub(super) async fn quota(&mut self, world: &World) {
        if self.dice.in_thousand(250) {
            world.watch.say("the quota is taken away");
            drop(quotas(world).delete(QUOTA, &DeleteParams::default()).await);
        } else {
            self.set_quota(world).await;
        }
    }

    /// From barely anything to nearly everything that there is.
    pub(super) async fn set_quota(&mut self, world: &World) {
        let hard = json!({
            "limits.nvidia.com/gpu": self.dice.one_of(&["3", "8", "100"]),
            "limits.nvidia.com/gpumem": self.dice.one_of(&["13000", "40000", "80000", "1000000"]),
            "limits.volcano.sh/vgpu-memory": self.dice.one_of(&["13000", "40000", "60000"]),
            "limits.volcano.sh/vgpu-cores": self.dice.one_of(&["120", "400"]),
        });
        world.watch.say(&format!("the quota is {hard}"));
        let quota = json!({"metadata": {"name": QUOTA}, "spec": {"hard": hard}});
        let quota: core::ResourceQuota = serde_json::from_value(quota).unwrap();
        if quotas(world).create(&PostParams::default(), &quota).await.is_err() {
            let hard = Patch::Merge(json!({"spec": quota.spec}));
            quotas(world).patch(QUOTA, &PatchParams::default(), &hard).await.unwrap();
        }
    }

    pub(super) async fn budget(&mut self, world: &World) {
        let allowed = self.dice.below(3);
        world.watch.say(&format!("the PodDisruptionBudget allows {allowed}"));
        allow(world, allowed).await;
    }
}

/// Some nodes are put into revocable zones, and the budgets of their pods are stated.
pub(super) async fn lend(world: &World) {
    for name in NODES {
        if let Some(zone) = zone_of(name) {
            patch(world, name, json!({"metadata": {"labels": {"volcano.sh/revocable-zone": zone}}})).await;
        }
    }
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("scheduling.volcano.sh", "v1beta1", "PodGroup"));
    let groups: Api<DynamicObject> = Api::default_namespaced_with(world.client.clone(), &kind);
    for (job, budget, stated) in JOBS {
        let mut group = DynamicObject::new(job, &kind);
        let budget = budget.filter(|_| stated == Stated::OnPodGroup);
        group.annotations_mut().extend(budget.map(|(key, value)| (key.to_owned(), value.to_owned())));
        groups.create(&PostParams::default(), &group).await.unwrap();
    }
    let budget = json!({"metadata": {"name": pod::GUARDED},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": pod::GUARDED}}}});
    let budget = serde_json::from_value(budget).unwrap();
    budgets(world).create(&PostParams::default(), &budget).await.unwrap();
    allow(world, 1).await;
}

/// What the disruption controller writes. The budget has fewer healthy pods than it wants, so that each eviction counts, whether the pod is
/// ready or not.
pub(super) async fn allow(world: &World, disruptions: u64) {
    let status = json!({"observedGeneration": 1, "disruptionsAllowed": disruptions, "expectedPods": 2,
        "currentHealthy": 0, "desiredHealthy": 1, "disruptedPods": null});
    let status = Patch::Merge(json!({"status": status}));
    budgets(world).patch_status(pod::GUARDED, &PatchParams::default(), &status).await.unwrap();
}
