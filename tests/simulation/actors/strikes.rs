//! A user who attacks all others, and what the cluster has that this needs.

use std::time::Duration;

use berth_sandbox::storage::Conduct;
use k8s_openapi::api::{
    core::v1::{self as core, Namespace},
    resource::v1::{DeviceClass, ResourceClaim, ResourceSlice},
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::{Actors, api::pods, claims::create, users::create_group};
use crate::{
    attack::{Attack, Strike, slow_claim},
    probe::NAMESPACE,
    world::{DryRun, World},
};

/// The annotation of a claim by which a volume is to be made for a node.
const SELECTED: &str = "volume.kubernetes.io/selected-node";

/// The claim of the pods that are only asked about.
const REVIEWED: &str = "reviewed";

/// So long a user looks for the Binding of a pod that is to be deleted right after it.
const SOON: Duration = Duration::from_secs(2);

impl Actors {
    /// The second user's namespace, and the devices that claims ask for. Volumes are not made.
    pub(super) async fn begin_attack(&mut self, world: &World, attack: Attack) {
        let namespaces: Api<Namespace> = Api::all(world.client.clone());
        create(&namespaces, json!({"metadata": {"name": NAMESPACE}})).await;
        if let Some(storage) = &world.storage {
            storage.behave(Conduct::Hold);
        }
        let Some(class) = attack.class() else { return };
        let classes: Api<DeviceClass> = Api::all(world.client.clone());
        create(&classes, class).await;
        let slices: Api<ResourceSlice> = Api::all(world.client.clone());
        if attack == Attack::DryRuns {
            create(&claims(world), json!({"metadata": {"name": REVIEWED}, "spec": slow_claim(0)})).await;
        }
        for slice in self.nodes().filter_map(|node| attack.slices(node)) {
            create(&slices, slice).await;
        }
    }

    /// The first user creates once more what is to hold up the others; the names of the pods.
    pub(crate) async fn strike(&mut self, world: &World, attack: Attack) -> Vec<String> {
        self.pods += 1;
        let number = self.pods;
        if attack == Attack::DryRuns {
            self.review(world);
            return Vec::new();
        }
        let Strike { group, claim, pods: struck } = attack.strike(number);
        if let Some((group, least)) = group {
            create_group(world, &group, least as u64).await;
        }
        if let Some(spec) = claim {
            create(&claims(world), json!({"metadata": {"name": format!("slow-{number}")}, "spec": spec}))
                .await;
        }
        let mut names = Vec::new();
        for mut pod in struck {
            self.pods += 1;
            // In the order of their names, in which a list has them too.
            let name = format!("pod-{:04}", self.pods);
            pod["metadata"]["name"] = json!(name);
            if let Some(used) = pod["spec"]["resourceClaims"].get_mut(0) {
                used["resourceClaimName"] = json!(format!("slow-{number}"));
            }
            if let Some(volume) = pod["spec"]["volumes"].get_mut(0) {
                volume["persistentVolumeClaim"]["claimName"] = json!(format!("claim-{name}"));
            }
            self.create_claim(world, &pod).await;
            let made =
                pods(world).create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await;
            world.watch.say(&format!("a user strikes with {name}: {}", made.is_ok()));
            names.push(name);
        }
        names
    }
    /// The API server asks whether pods may be created, and then creates none: one by a dry run, others that are denied later.
    fn review(&self, world: &World) {
        let answers = dry_run(world);
        world.watch.say(&format!("a user asks where a pod would be placed: {answers:?}"));
        for pod in Attack::Classes.strike(self.pods).pods {
            world.hint(&serde_json::from_value(pod).unwrap());
        }
    }

    /// A pod is created and deleted by force as soon as it is bound; whether it was.
    pub(crate) async fn strike_and_delete(&mut self, world: &mut World, attack: Attack) -> bool {
        let name = self.strike(world, attack).await.remove(0);
        let bound = world.bound_within(&name, SOON).await.is_some();
        drop(pods(world).delete(&name, &DeleteParams::default().grace_period(0)).await);
        world.watch.say(&format!("a user deletes {name}, bound: {bound}"));
        bound
    }
}

/// Deletes every pod of the first user, so that all nodes have room.
pub(crate) async fn leave(world: &World) {
    for pod in world.sandbox.objects("pods") {
        if pod["metadata"]["namespace"] == "default" {
            let name = pod["metadata"]["name"].as_str().unwrap();
            drop(pods(world).delete(name, &DeleteParams::default().grace_period(0)).await);
        }
    }
    world.watch.say("a user deletes all pods");
}

/// What comes of a dry run of a pod whose claim takes long.
pub(crate) fn dry_run(world: &World) -> Vec<DryRun> {
    let mut pod = Attack::DryRuns.strike(0).pods.remove(0);
    pod["metadata"]["namespace"] = json!("default");
    pod["spec"]["resourceClaims"][0]["resourceClaimName"] = json!(REVIEWED);
    world.dry_run(&serde_json::from_value(pod).unwrap())
}

fn claims(world: &World) -> Api<ResourceClaim> {
    Api::default_namespaced(world.client.clone())
}

/// No volume is to be made for any claim of the namespace: what has been chosen for it is taken back.
pub(crate) async fn deselect(world: &World) {
    let claims: Api<core::PersistentVolumeClaim> = Api::default_namespaced(world.client.clone());
    for claim in world.sandbox.objects("persistentvolumeclaims") {
        if claim["metadata"]["annotations"].get(SELECTED).is_some() {
            let name = claim["metadata"]["name"].as_str().unwrap();
            world.watch.say(&format!("a user takes back what {name} is selected for"));
            let back = Patch::Merge(json!({"metadata": {"annotations": {SELECTED: null}}}));
            claims.patch(name, &PatchParams::default(), &back).await.unwrap();
        }
    }
}
