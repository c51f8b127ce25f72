//! Users, who create and delete pods and what these use.

use berth_sandbox::storage::Conduct;
use k8s_openapi::api::core::v1 as core;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{Actors, CLASS, api::pods};
use crate::{gang, pod, record::Pod, world::World};

impl Actors {
    pub(super) async fn create(&mut self, world: &World) {
        if let Some(attack) = self.story.attack {
            self.strike(world, attack).await;
            return;
        }
        if self.story.crowd.gangs > 0 && self.dice.in_thousand(self.story.crowd.gangs) {
            return self.create_gang(world).await;
        }
        if self.story.crowd.trees > 0 && self.dice.in_thousand(self.story.crowd.trees) {
            return self.create_groups(world).await;
        }
        self.pods += 1;
        let name = format!("pod-{}", self.pods);
        self.create_named(world, &name, &[]).await;
    }

    /// A group and its pods: as many as it needs at least, one more, or one too few.
    async fn create_gang(&mut self, world: &World) {
        let least = 2 + self.dice.below(3);
        self.pods += 1;
        let group = format!("gang-{}", self.pods);
        create_group(world, &group, least).await;
        let mut pod = pod::of(&mut self.dice, &self.story.crowd, "member");
        pod["metadata"]["annotations"] = json!({gang::GROUP: group});
        for _ in 0..least - 1 + self.dice.below(3) {
            self.pods += 1;
            pod["metadata"]["name"] = json!(format!("pod-{}", self.pods));
            let member = serde_json::from_value(pod.clone()).unwrap();
            drop(pods(world).create(&PostParams::default(), &member).await);
        }
    }

    async fn create_named(&mut self, world: &World, name: &str, gates: &[&str]) {
        let mut pod = pod::of(&mut self.dice, &self.story.crowd, name);
        if !gates.is_empty() {
            pod["spec"]["schedulingGates"] = gates.iter().map(|gate| json!({"name": gate})).collect();
        }
        self.create_claim(world, &pod).await;
        let made = pods(world).create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await;
        world.watch.say(&format!(
            "a user creates {name}: {:?}",
            made.map(|pod| pod.spec.map(|spec| spec.containers[0].resources.clone()))
        ));
    }

    /// The claim that the pod uses, where a story has claims.
    pub(super) async fn create_claim(&mut self, world: &World, pod: &Value) {
        let used = &pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"];
        if used.is_null() || self.story.crowd.claims == 0 {
            return;
        }
        let spec = json!({"storageClassName": CLASS, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}});
        let claim = serde_json::from_value(json!({"metadata": {"name": used}, "spec": spec})).unwrap();
        let claims: Api<core::PersistentVolumeClaim> = Api::default_namespaced(world.client.clone());
        let made = claims.create(&PostParams::default(), &claim).await.is_ok();
        world.watch.say(&format!("a user creates claim {used}: {made}"));
    }

    fn some_pod(&mut self, world: &World, which: impl Fn(&Pod) -> bool) -> Option<String> {
        let pods = world.watch.log().checker.pods().into_iter().filter(|pod| pod.ours && which(pod));
        let names: Vec<String> = pods.map(|pod| pod.name.clone()).collect();
        let at = usize::try_from(self.dice.below(names.len() as u64)).unwrap();
        names.get(at).cloned()
    }

    pub(super) async fn delete(&mut self, world: &World) -> Option<()> {
        let force = self.dice.in_thousand(300);
        // That users take pods of jobs away is not known at once, so that it could not be told whose fault a budget is.
        let name = self.some_pod(world, |pod| pod.member.job.is_none())?;
        let how = if force { DeleteParams::default().grace_period(0) } else { DeleteParams::default() };
        let gone = pods(world).delete(&name, &how).await.is_ok();
        world.watch.say(&format!("a user deletes {name}: {gone}"));
        Some(())
    }

    pub(super) async fn recreate(&mut self, world: &World) -> Option<()> {
        let name = self.some_pod(world, |_| true)?;
        drop(pods(world).delete(&name, &DeleteParams::default().grace_period(0)).await);
        self.create_named(world, &name, &[]).await;
        Some(())
    }

    /// A pod is created that may not be placed yet, or the gate of one is opened.
    pub(super) async fn gate(&mut self, world: &World) {
        let gated = self.some_pod(world, |pod| pod.gated);
        if let Some(name) = gated.filter(|_| self.dice.in_thousand(600)) {
            world.watch.say(&format!("the gate of {name} is opened"));
            let open = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
            drop(pods(world).patch(&name, &PatchParams::default(), &open).await);
        } else {
            self.pods += 1;
            let name = format!("pod-{}", self.pods);
            self.create_named(world, &name, &["example.com/not-yet"]).await;
        }
    }

    /// A bound pod says no more that it is preemptable.
    pub(super) async fn take_back(&mut self, world: &World) -> Option<()> {
        let name = self.some_pod(world, |pod| pod.member.preemptable && !pod.node.is_empty())?;
        let said = if self.dice.in_thousand(500) { json!("false") } else { json!(null) };
        world.watch.say(&format!("{name} is no longer to be preemptable: {said}"));
        let change = Patch::Merge(json!({"metadata": {"annotations": {"volcano.sh/preemptable": said}}}));
        drop(pods(world).patch(&name, &PatchParams::default(), &change).await);
        Some(())
    }

    pub(super) fn provision(&mut self, world: &World) -> Option<()> {
        let conduct = if self.dice.in_thousand(700) { Conduct::Hold } else { Conduct::Provide };
        world.watch.say(&format!("the provisioner: {conduct:?}"));
        world.storage.as_ref()?.behave(conduct);
        Some(())
    }
}

/// A group of which so many pods are placed together at least.
pub(super) async fn create_group(world: &World, group: &str, least: u64) {
    let kind = GroupVersionKind::gvk("scheduling.volcano.sh", "v1beta1", "PodGroup");
    let kind = ApiResource::from_gvk(&kind);
    let groups: Api<DynamicObject> = Api::default_namespaced_with(world.client.clone(), &kind);
    let object = json!({"metadata": {"name": group}, "spec": {"minMember": least}});
    let object = serde_json::from_value(object).unwrap();
    groups.create(&PostParams::default(), &object).await.unwrap();
    world.watch.say(&format!("a user creates {group} of at least {least}"));
}
