//! Preemption: pods of low priority go for one of high priority, by the cards that it needs; also when the binder is killed on the way.

use k8s_openapi::api::{
    core::v1::{self as core, Pod},
    policy::v1::PodDisruptionBudget,
    scheduling::v1::PriorityClass,
};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    deaths::{Death, Moment, Write},
    machines::hami_node,
    support::floor::Floor,
    world::{World, annotation, node_of, pod},
};

/// A pod of the priority class `high`, or of none, with so many MiB of a card that has 16,384.
fn share(name: &str, class: Option<&str>, memory: u32) -> Value {
    let mut pod = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string()}));
    pod["metadata"]["labels"] = json!({"app": name});
    pod["spec"]["priorityClassName"] = class.into();
    // Its containers are asked to end, and do at once.
    pod["spec"]["terminationGracePeriodSeconds"] = 5.into();
    pod
}

impl World {
    pub(crate) async fn create_priority_classes(&self) {
        let named = [
            ("high", 1000, "PreemptLowerPriority"),
            ("middle", 500, "PreemptLowerPriority"),
            ("polite", 1000, "Never"),
        ];
        for (name, value, policy) in named {
            let class = json!({"metadata": {"name": name}, "value": value, "preemptionPolicy": policy});
            self.create_priority_class(class).await;
        }
    }

    /// Returns once pods of the class are admitted: the API server looks it up in a cache that follows the class by a watch.
    pub(crate) async fn create_priority_class(&self, class: Value) {
        let mut probe = pod("probe", &json!({}));
        probe["spec"]["priorityClassName"] = class["metadata"]["name"].clone();
        let classes: Api<PriorityClass> = Api::all(self.cluster.client.clone());
        classes.create(&PostParams::default(), &serde_json::from_value(class).unwrap()).await.unwrap();
        self.until_judged(&serde_json::from_value(probe).unwrap(), true).await;
    }

    /// A budget that allows no disruption of the pod of this name.
    pub(crate) async fn protect(&self, pod: &str) {
        let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(self.cluster.client.clone());
        let budget = json!({
            "metadata": {"name": pod},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": pod}}},
        });
        budgets.create(&PostParams::default(), &serde_json::from_value(budget).unwrap()).await.unwrap();
        let status = json!({"status": {
            "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
        }});
        budgets.patch_status(pod, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    pub(crate) async fn is_there(&self, pod: &str) -> bool {
        self.pods().get_opt(pod).await.unwrap().is_some_and(|pod| pod.metadata.deletion_timestamp.is_none())
    }
}

fn disruption(pod: &Pod) -> Option<&core::PodCondition> {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.find(|condition| condition.type_ == "DisruptionTarget")
}

fn nominated(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.nominated_node_name.as_deref()
}

pub(crate) async fn a_victim_goes_for_the_card_that_is_needed(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, vec![hami_node("gpu-1", 2)]).await else { return };
    world.create_priority_classes().await;
    // Berth lists the budget at its start: one created while it runs could reach it after the pod that preempts.
    world.protect("protected").await;
    world.start_berth();
    // The victim matters most of the three: it goes for its card alone, and since a budget protects the other pod there.
    for (name, class, memory) in
        [("large", None, 16_000), ("protected", None, 8_000), ("victim", Some("middle"), 8_000)]
    {
        world.create(share(name, class, memory)).await;
        world.running(name).await;
    }
    let held = |pod: &Pod| annotation(pod, "hami.io/vgpu-devices-allocated").to_owned();
    let victim = world.running("victim").await;
    // With a finalizer it can still be looked at once it has ended.
    let keep = |finalizers: Value| Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    world.pods().patch("victim", &PatchParams::default(), &keep(json!(["example.com/keep"]))).await.unwrap();
    let card = |text: String| text.split(',').next().unwrap().trim_start_matches([';', ':', '[']).to_owned();
    let mut urgent = share("urgent", Some("high"), 7_000);
    urgent["metadata"]["annotations"] = json!({"nvidia.com/use-gpuuuid": card(held(&victim))});
    let urgent = world.create(urgent).await;
    let going = world.pod_when("victim", |pod| pod.metadata.deletion_timestamp.is_some()).await;
    let condition = disruption(&going).expect("it says why it is deleted");
    assert_eq!(
        (condition.status.as_str(), condition.reason.as_deref()),
        ("True", Some("PreemptionByScheduler"))
    );
    assert_eq!(condition.message.as_deref(), Some("berth: preempting to accommodate a higher priority pod"));
    let event = world.event("victim", "Preempted").await;
    let uid = urgent.metadata.uid.as_deref().unwrap();
    assert_eq!(event.message.as_deref(), Some(&*format!("Preempted by pod {uid} on node gpu-1")));
    assert_eq!(event.related.unwrap().name.as_deref(), Some("urgent"));

    world.pods().patch("victim", &PatchParams::default(), &keep(Value::Null)).await.unwrap();
    let urgent = world.running("urgent").await;
    assert_eq!(node_of(&urgent), "gpu-1");
    assert_eq!(card(held(&urgent)), card(held(&victim)), "it has the victim's card");
    assert!(world.is_there("large").await && world.is_there("protected").await);
    world.agents_are_content();
}

pub(crate) async fn nothing_is_deleted_in_vain(floor: Floor) {
    let Some(world) = World::start(floor, vec![hami_node("gpu-1", 1)]).await else { return };
    world.create_priority_classes().await;
    world.create(share("small", None, 8_000)).await;
    world.running("small").await;
    world.create(share("huge", Some("high"), 17_000)).await;
    let told = world.unschedulable("huge").await;
    assert_eq!(
        told,
        "0/1 nodes are available: 1 Insufficient GPU memory. preemption: 0/1 nodes are available: \
         1 Preemption is not helpful for scheduling."
    );
    world.create(share("polite", Some("polite"), 16_000)).await;
    world.unschedulable_with("polite", "0/1 nodes are available: 1 Insufficient GPU memory.").await;
    assert!(world.is_there("small").await);
    world.agents_are_content();
}

/// The binder dies before and after each of its writes, and another goes on: one victim goes, the pod has its room.
pub(crate) async fn a_binder_that_is_killed_while_it_preempts_takes_one_victim(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, vec![hami_node("gpu-1", 1)]).await else { return };
    world.create_priority_classes().await;
    takes_one_victim_although_killed(&mut world, |name, class| {
        share(name, class, if class.is_some() { 7_000 } else { 8_000 })
    })
    .await;
    world.agents_are_content();
}

/// A pod of the class `high` preempts one of two pods, and the binder dies before and after each of its writes. `pod` makes a pod of this name and
/// priority class: two of them fit the node `gpu-1`, a third does not.
pub(crate) async fn takes_one_victim_although_killed(
    world: &mut World,
    pod: impl Fn(&str, Option<&str>) -> Value,
) {
    let mut at = 0;
    for write in [Write::Nomination, Write::Disruption, Write::Deletion] {
        for moment in [Moment::Before, Moment::After] {
            at += 1;
            let [stays, victim, urgent] = ["stays", "victim", "urgent"].map(|name| format!("{name}-{at}"));
            world.start_berth();
            for name in [&stays, &victim] {
                world.create(pod(name, None)).await;
                world.running(name).await;
            }
            world.protect(&stays).await;
            world.kill_berth().await;
            let death = Death::at(world.cluster.client.clone(), write, moment);
            world.start_berth_through(death.client());
            world.create(pod(&urgent, Some("high"))).await;
            death.reached().await;
            if (write, moment) == (Write::Nomination, Moment::After) {
                let urgent = world.pods().get(&urgent).await.unwrap();
                assert_eq!(nominated(&urgent), Some("gpu-1"), "{:?}", urgent.status);
            }
            world.kill_berth().await;
            world.start_berth();
            world.running(&urgent).await;
            assert!(world.is_there(&stays).await, "{write:?} {moment:?}");
            assert!(!world.is_there(&victim).await, "{write:?} {moment:?}");
            world.delete_and_await(&[&stays, &urgent]).await;
            world.kill_berth().await;
        }
    }
}
