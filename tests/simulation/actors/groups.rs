//! Users of PodGroups and CompositePodGroups of Kubernetes, whose pods use claims of devices.

use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{
    Actors,
    api::{patch, pods},
    claims::{claims, create, templates},
};
use crate::{
    device_claims::{NODES, Template},
    groups::{API, Kind, RACK},
    world::World,
};

/// What is counted of the groups that users create, in each search.
pub(crate) const OF_GROUPS: [&str; 6] = [
    ALONE,
    TREE,
    "claims of their own",
    "a claim of the PodGroup",
    "a CompositePodGroup that shares a rack",
    "a claim that is made for the PodGroup",
];
const ALONE: &str = "a PodGroup by itself";
const TREE: &str = "a tree of groups";
/// Too rare for a short search.
pub(crate) const COMES_BACK: &str = "a CompositePodGroup comes back";

/// What the pods of a PodGroup use.
#[derive(Clone, Copy, Debug)]
enum Uses {
    /// Each a claim that is made from this template.
    Own(Template),
    /// All the claim of their PodGroup.
    Shared,
    /// All the claim that is made for their PodGroup from this template.
    Made(Template),
}

/// A PodGroup with pods.
#[derive(Clone, Debug)]
pub(super) struct Team {
    name: String,
    uses: Uses,
}

/// The groups that users have created.
#[derive(Clone, Debug, Default)]
pub(super) struct Teams {
    teams: Vec<Team>,
    /// CompositePodGroups as they were created.
    composites: Vec<Value>,
}

impl Actors {
    /// Nodes are in racks: most in one, the others in another.
    pub(super) async fn begin_groups(&mut self, world: &World) {
        for (name, rack) in NODES.into_iter().zip(["left", "left", "right"]) {
            patch(world, name, json!({"metadata": {"labels": {RACK: rack}}})).await;
        }
    }

    /// A PodGroup with its pods, or a tree of PodGroups under CompositePodGroups: before or after the pods come, and now and then with too few of them.
    pub(super) async fn create_groups(&mut self, world: &World) {
        self.pods += 1;
        let root = format!("group-{}", self.pods);
        match self.dice.below(5) {
            0 | 1 => {
                world.watch.log().count(ALONE);
                self.create_team(world, &root, None).await;
            }
            2 | 3 => {
                let least = 1 + self.dice.below(2);
                self.create_composite(world, &root, None, least).await;
                for part in ["a", "b"] {
                    self.create_team(world, &format!("{root}-{part}"), Some(&root)).await;
                }
            }
            _ => {
                let inner = format!("{root}-inner");
                self.create_composite(world, &root, None, 2).await;
                self.create_composite(world, &inner, Some(&root), 2).await;
                for (part, parent) in [("a", &inner), ("b", &inner), ("c", &root)] {
                    self.create_team(world, &format!("{root}-{part}"), Some(parent)).await;
                }
            }
        }
    }

    async fn create_composite(&mut self, world: &World, name: &str, parent: Option<&str>, least: u64) {
        let mut spec = json!({"schedulingPolicy": {"gang": {"minGroupCount": least}}});
        if let Some(parent) = parent {
            spec["parentCompositePodGroupName"] = json!(parent);
        } else {
            world.watch.log().count(TREE);
        }
        if self.dice.in_thousand(300) {
            world.watch.log().count(OF_GROUPS[4]);
            spec["schedulingConstraints"] = json!({"topology": [{"key": RACK}]});
        }
        let composite = json!({"metadata": {"name": name}, "spec": spec});
        world.watch.say(&format!("a user creates CompositePodGroup {name}: {}", composite["spec"]));
        create_group(world, Kind::Composite, &composite).await;
        self.teams.composites.push(composite);
    }

    async fn create_team(&mut self, world: &World, name: &str, parent: Option<&str>) {
        let least = 1 + self.dice.below(2);
        let mut spec = json!({"schedulingPolicy": {"gang": {"minCount": least}}});
        if let Some(parent) = parent {
            spec["parentCompositePodGroupName"] = json!(parent);
        }
        let template =
            if self.dice.in_thousand(700) { Template::Whole } else { self.dice.one_of(&Template::ALL) };
        let share = self.story.crowd.shared_claims;
        let is_made = self.dice.in_thousand(share);
        let is_shared = !is_made && self.dice.in_thousand(share);
        let uses = if is_made {
            world.watch.log().count(OF_GROUPS[5]);
            spec["resourceClaims"] = json!([{"name": "gpu", "resourceClaimTemplateName": template.name()}]);
            Uses::Made(template)
        } else if is_shared {
            world.watch.log().count(OF_GROUPS[3]);
            spec["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": name}]);
            create(&claims(world), json!({"metadata": {"name": name}, "spec": template.spec()})).await;
            Uses::Shared
        } else {
            world.watch.log().count(OF_GROUPS[2]);
            Uses::Own(template)
        };
        let team = Team { name: name.to_owned(), uses };
        let group = json!({"metadata": {"name": name}, "spec": spec});
        world.watch.say(&format!("a user creates PodGroup {name}, {uses:?}: {}", group["spec"]));
        let pods_first = self.dice.in_thousand(300);
        if !pods_first {
            create_group(world, Kind::Leaf, &group).await;
        }
        for _ in 0..(least + self.dice.below(3)).saturating_sub(1).max(1) {
            self.create_member(world, &team).await;
        }
        if pods_first {
            create_group(world, Kind::Leaf, &group).await;
            touch_claims(world, name).await;
        }
        self.teams.teams.push(team);
    }

    async fn create_member(&mut self, world: &World, team: &Team) {
        self.pods += 1;
        let uses = match team.uses {
            Uses::Own(template) | Uses::Made(template) => {
                json!({"name": "gpu", "resourceClaimTemplateName": template.name()})
            }
            Uses::Shared => json!({"name": "gpu", "resourceClaimName": team.name}),
        };
        let spec = json!({"schedulerName": "berth", "resourceClaims": [uses],
            "terminationGracePeriodSeconds": self.dice.one_of(self.story.crowd.grace),
            "schedulingGroup": {"podGroupName": team.name},
            "containers": [{"name": "main", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}]});
        // In the order of their names, in which a list has them too.
        let pod = json!({"metadata": {"name": format!("pod-{:04}", self.pods)}, "spec": spec});
        drop(pods(world).create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await);
    }

    /// A PodGroup gets another pod, or is deleted with all its pods; or a CompositePodGroup is deleted, or one comes back.
    pub(super) async fn regroup(&mut self, world: &World) -> Option<()> {
        match self.dice.below(6) {
            0..3 => {
                let team = self.some_team()?;
                self.create_member(world, &team).await;
                world.watch.say(&format!("{} gets another pod", team.name));
            }
            3 | 4 => {
                let team = self.some_team()?;
                self.delete_team(world, &team.name).await;
            }
            _ => {
                let at = usize::try_from(self.dice.below(self.teams.composites.len() as u64)).unwrap();
                let composite = self.teams.composites.get(at)?.clone();
                let name = composite["metadata"]["name"].as_str().unwrap();
                let groups = groups(world, Kind::Composite);
                if groups.get_opt(name).await.unwrap().is_some() {
                    groups.delete(name, &DeleteParams::default()).await.unwrap();
                    world.watch.say(&format!("a user deletes CompositePodGroup {name}"));
                } else {
                    create_group(world, Kind::Composite, &composite).await;
                    world.watch.log().count(COMES_BACK);
                    world.watch.say(&format!("CompositePodGroup {name} comes back"));
                }
            }
        }
        Some(())
    }

    fn some_team(&mut self) -> Option<Team> {
        let at = usize::try_from(self.dice.below(self.teams.teams.len() as u64)).unwrap();
        self.teams.teams.get(at).cloned()
    }

    /// The finalizer of a PodGroup keeps it until none of its pods is left (v1.37 `pkg/controller/podgroupprotection`): its pods go first, at once.
    async fn delete_team(&mut self, world: &World, name: &str) {
        for pod in world.sandbox.objects("pods") {
            if pod["spec"]["schedulingGroup"]["podGroupName"] == name {
                let pod = pod["metadata"]["name"].as_str().unwrap();
                drop(pods(world).delete(pod, &DeleteParams::default().grace_period(0)).await);
            }
        }
        drop(groups(world, Kind::Leaf).delete(name, &DeleteParams::default()).await);
        self.teams.teams.retain(|team| team.name != name);
        world.watch.say(&format!("a user deletes PodGroup {name} and its pods"));
        touch_claims(world, name).await;
    }
}

/// The controller of claims looks at all of them again: the sandbox's does so when a template changes, Kubernetes' when a PodGroup does.
async fn touch_claims(world: &World, group: &str) {
    let touched = Patch::Merge(json!({"metadata": {"annotations": {"example.com/touched": group}}}));
    templates(world).patch(Template::Whole.name(), &PatchParams::default(), &touched).await.unwrap();
}

fn groups(world: &World, kind: Kind) -> Api<DynamicObject> {
    let [version, name, _] = kind.names();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(API, version, name));
    Api::default_namespaced_with(world.client.clone(), &resource)
}

async fn create_group(world: &World, kind: Kind, object: &Value) {
    let object = serde_json::from_value(object.clone()).unwrap();
    groups(world, kind).create(&PostParams::default(), &object).await.unwrap();
}
