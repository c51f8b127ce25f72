//! Preemption for devices of claims: pods of low priority go for a device or a card that a claim of a pod of high priority asks for, and the
//! controller of claims frees what they leave; also when the binder is killed on the way.

use berth_sandbox::claims::driver::Driver;
use serde_json::{Value, json};

use crate::{
    device_claims::{self, all_are_content, create_claim, create_template, of_claim, of_template, request},
    mixed_nodes, preemption,
    support::floor::Floor,
    world::node_of,
};

/// The pod with this priority class.
fn of_class(mut pod: Value, class: Option<&str>) -> Value {
    pod["metadata"]["labels"] = json!({"app": pod["metadata"]["name"]});
    pod["spec"]["priorityClassName"] = class.into();
    // Its containers are asked to end, and do at once.
    pod["spec"]["terminationGracePeriodSeconds"] = 5.into();
    pod
}

fn high(pod: Value) -> Value {
    of_class(pod, Some("high"))
}

fn low(pod: Value) -> Value {
    of_class(pod, None)
}

pub(crate) async fn a_claim_takes_the_device_of_a_claim(floor: Floor) {
    let world = device_claims::without_berth(floor, Driver::Nvidia, &[("gpu-1", 2)]).await;
    let Some((mut world, claims)) = world else { return };
    world.create_priority_classes().await;
    world.protect("protected").await;
    world.start_berth();
    create_template(&world, "gpu", request(Driver::Nvidia, None)).await;
    for name in ["protected", "victim"] {
        world.create(low(of_template(name, "gpu"))).await;
        world.running(name).await;
    }
    world.create(high(of_template("urgent", "gpu"))).await;
    let urgent = world.running("urgent").await;
    assert_eq!(node_of(&urgent), "gpu-1");
    assert!(world.is_there("protected").await && !world.is_there("victim").await);
    all_are_content(&world, &claims);
}

/// Its device is free only if both of its users go.
pub(crate) async fn all_users_of_a_claim_go_for_its_device(floor: Floor) {
    let world = device_claims::without_berth(floor, Driver::Nvidia, &[("gpu-1", 1)]).await;
    let Some((mut world, claims)) = world else { return };
    world.create_priority_classes().await;
    world.start_berth();
    create_template(&world, "gpu", request(Driver::Nvidia, None)).await;
    create_claim(&world, "shared", request(Driver::Nvidia, None)).await;
    for (name, class) in [("one", None), ("two", Some("middle"))] {
        world.create(of_class(of_claim(name, "shared"), class)).await;
        world.running(name).await;
    }
    let between = json!({"metadata": {"name": "between"}, "value": 200});
    world.create_priority_class(between).await;
    world.create(of_class(of_template("next", "gpu"), Some("between"))).await;
    let waits = "0/1 nodes are available: 1 cannot allocate all claims. preemption: 0/1 nodes are available: \
                 1 Preemption is not helpful for scheduling.";
    world.unschedulable_with("next", waits).await;
    assert!(world.is_there("one").await, "it would go in vain");
    world.create(high(of_template("urgent", "gpu"))).await;
    world.running("urgent").await;
    assert!(!world.is_there("one").await && !world.is_there("two").await);
    all_are_content(&world, &claims);
}

/// Through whichever API a pod of high priority asks for the card of one of low priority.
pub(crate) async fn a_card_changes_hands_between_a_claim_and_a_share(floor: Floor) {
    let Some((mut world, claims)) = mixed_nodes::without_berth(floor, Driver::Nvidia).await else { return };
    world.create_priority_classes().await;
    world.start_berth();
    create_template(&world, "gpu", request(Driver::Nvidia, None)).await;
    world.create(low(mixed_nodes::share("first", 4000))).await;
    world.running("first").await;
    world.create(of_class(of_template("second", "gpu"), Some("middle"))).await;
    world.running("second").await;
    assert!(!world.is_there("first").await);
    world.create(high(mixed_nodes::share("urgent", 1000))).await;
    world.running("urgent").await;
    assert!(!world.is_there("second").await);
    all_are_content(&world, &claims);
}

/// The binder dies before and after each of its writes, and another goes on: one victim goes, the pod has its device.
pub(crate) async fn a_binder_that_is_killed_while_it_preempts_for_a_claim_takes_one_victim(floor: Floor) {
    let world = device_claims::without_berth(floor, Driver::Nvidia, &[("gpu-1", 2)]).await;
    let Some((mut world, claims)) = world else { return };
    world.create_priority_classes().await;
    create_template(&world, "gpu", request(Driver::Nvidia, None)).await;
    let pod = |name: &str, class: Option<&str>| of_class(of_template(name, "gpu"), class);
    preemption::takes_one_victim_although_killed(&mut world, pod).await;
    all_are_content(&world, &claims);
}
