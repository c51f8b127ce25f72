//! Nodes whose cards both HAMi's plugin registers and a DRA driver publishes: each card is given once, through whichever API it is asked for.
//!
//! The controller of claims notes every card that pods and claims hold at once beyond what it has.

use berth_sandbox::claims::{
    DeviceClaims,
    driver::{Driver, Gpu},
};
use serde_json::{Value, json};

use crate::{
    deaths::{Moment, Write},
    device_claims::{all_are_content, create_template, of_template, request},
    machines::hami_node,
    support::floor::Floor,
    world::{World, pod},
};

const NODE: &str = "gpu-1";

/// A node of one card of 16 GiB, which HAMi's plugin registers and this driver publishes; Berth is yet to start.
pub(crate) async fn without_berth(floor: Floor, driver: Driver) -> Option<(World, DeviceClaims)> {
    let world = World::without_berth(floor, vec![hami_node(NODE, 1)]).await?;
    let card = Gpu { uuid: format!("GPU-{NODE}-0"), memory: 16 << 30, root: "pci0000:00".to_owned() };
    driver.publish(&world.cluster.client, NODE, &[card], 1).await.unwrap();
    let claims = DeviceClaims::start(world.cluster.client.clone());
    Some((world, claims))
}

/// A pod with a share of so much memory.
pub(crate) fn share(name: &str, memory: u32) -> Value {
    pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string()}))
}

pub(crate) async fn a_card_is_given_through_one_api_at_a_time(floor: Floor) {
    let Some((mut world, claims)) = without_berth(floor, Driver::Nvidia).await else { return };
    world.start_berth();
    create_template(&world, "gpu", request(Driver::Nvidia, None)).await;
    world.create(share("first", 4000)).await;
    world.running("first").await;
    world.create(of_template("second", "gpu")).await;
    world.unschedulable_with("second", "0/1 nodes are available: 1 cannot allocate all claims.").await;
    world.delete("first").await;
    world.running("second").await;
    world.create(share("third", 1)).await;
    world.unschedulable_with("third", "0/1 nodes are available: 1 node(s) had no free slot on a GPU.").await;
    world.delete("second").await;
    world.running("third").await;
    all_are_content(&world, &claims);
}

pub(crate) async fn shares_of_claims_and_of_pods_fill_a_card_together(floor: Floor) {
    let Some((mut world, claims)) = without_berth(floor, Driver::Hami).await else { return };
    world.start_berth();
    create_template(&world, "half", request(Driver::Hami, Some(("8Gi", "30")))).await;
    world.create(share("one", 4096)).await;
    world.running("one").await;
    world.create(of_template("two", "half")).await;
    world.running("two").await;
    world.create(of_template("three", "half")).await;
    world.unschedulable_with("three", "0/1 nodes are available: 1 cannot allocate all claims.").await;
    world.create(share("four", 4097)).await;
    world.unschedulable_with("four", "0/1 nodes are available: 1 Insufficient GPU memory.").await;
    world.create(share("five", 4096)).await;
    world.running("five").await;
    for name in ["four", "one", "five"] {
        world.delete(name).await;
    }
    world.running("three").await;
    all_are_content(&world, &claims);
}

/// The binder dies before and after each write for a pod with a claim, and for one with a share. Before another goes on, a pod comes that wants
/// the same card through the other API.
pub(crate) async fn a_binder_that_is_killed_between_any_two_steps_gives_a_card_once(floor: Floor) {
    let Some((mut world, claims)) = without_berth(floor, Driver::Nvidia).await else { return };
    create_template(&world, "gpu", request(Driver::Nvidia, None)).await;
    let of_claim = [Write::ProtectClaim, Write::ReserveClaim, Write::Binding].map(|write| (write, "claim"));
    let of_share = [Write::Lock, Write::Binding].map(|write| (write, "share"));
    for (write, first) in of_claim.into_iter().chain(of_share) {
        for moment in [Moment::Before, Moment::After] {
            let name = |kind: &str| format!("{kind}-{first}-{write:?}-{moment:?}").to_lowercase();
            let pods = [of_template(&name("claim"), "gpu"), share(&name("share"), 1000)];
            let [mut one, mut other] = pods;
            let mut names = [name("claim"), name("share")];
            if first == "share" {
                std::mem::swap(&mut one, &mut other);
                names.swap(0, 1);
            }
            world.kill_berth_at(write, moment, one).await;
            world.create(other).await;
            world.start_berth();
            // The API server's times are whole seconds, so that either pod may be the older one.
            let [older, newer] = tokio::select! {
                _ = world.running(&names[0]) => [&names[0], &names[1]],
                _ = world.running(&names[1]) => [&names[1], &names[0]],
            };
            world.delete(older).await;
            world.running(newer).await;
            world.delete(newer).await;
            world.kill_berth().await;
        }
    }
    all_are_content(&world, &claims);
}
