//! Nodes whose cards a device plugin registers and a DRA driver publishes: a card has one account, whoever asks for it.

use berth::{
    config::Config,
    object::resource_claim::AllocationResult,
    scheduling::{
        Effect, Event, ObjectChange, PodChange, effect::PrebindWrite, model::kind::Kind,
        world::object::Object,
    },
};
use serde_json::{Value, json};

use super::{
    device_claims::{claim, listed, user, writes},
    devices::{device, gpu, whole},
    holdings::{hami_node, holding, share},
    machine::{Machine, bound, node, parsed, placed, pod, told},
};

const FULL: &str = "0/1 nodes are available: 1 cannot allocate all claims.";
const TAKEN: &str = "0/1 nodes are available: 1 node(s) had no free slot on a GPU.";

/// HAMi's registration of a card of 16000 MiB.
fn card(id: &str, index: u32) -> Value {
    json!({"id": id, "index": index, "count": 10, "devmem": 16000, "devcore": 100, "type": "NVIDIA A100", "mode": "hami-core", "health": true})
}

/// A card as NVIDIA's driver publishes it.
fn exclusive(name: &str, uuid: &str) -> Value {
    json!({"name": name, "attributes": {"uuid": {"string": uuid}}, "capacity": {"memory": {"value": "16000Mi"}}})
}

/// A card as HAMi's driver publishes it.
fn shared(name: &str, uuid: &str) -> Value {
    let amount = |value: &str, step: &str| json!({"value": value, "requestPolicy": {"default": value, "validRange": {"min": step, "step": step}}});
    json!({
        "name": name, "allowMultipleAllocations": true, "attributes": {"uuid": {"string": uuid}},
        "capacity": {"memory": amount("16000Mi", "1Mi"), "cores": amount("100", "1")},
    })
}

/// The slice of node `n1`.
fn slice(generation: u32, devices: &[Value]) -> Event {
    let slice = json!({
        "metadata": {"name": "n1-gpu.example.com"},
        "spec": {"driver": "gpu.example.com", "nodeName": "n1", "devices": devices,
            "pool": {"name": "n1", "generation": generation, "resourceSliceCount": 1}},
    });
    Event::Object(ObjectChange::Seen(Object::ResourceSlice(parsed(&slice))))
}

/// What a claim has of a device of `n1`: all of it, or a share of so much memory and compute.
fn given(device: &str, share: Option<(&str, &str)>) -> AllocationResult {
    let mut result = json!({"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": device});
    if let Some((memory, cores)) = share {
        result["shareID"] = json!("8b2f4e1c-0000-4000-8000-000000000000");
        result["consumedCapacity"] = json!({"memory": memory, "cores": cores});
    }
    let name = json!({"key": "metadata.name", "operator": "In", "values": ["n1"]});
    let selector = json!({"nodeSelectorTerms": [{"matchFields": [name]}]});
    parsed(&json!({"devices": {"results": [result]}, "nodeSelector": selector}))
}

/// A claim with these devices, or none.
fn standing(name: &str, version: u32, allocation: Option<&AllocationResult>) -> Event {
    let status =
        allocation.map_or_else(|| json!({}), |one| json!({"allocation": serde_json::to_value(one).unwrap()}));
    claim(name, version, &status)
}

/// A claim of a share of so much memory.
fn asking(name: &str, memory: &str) -> Event {
    let exactly =
        json!({"deviceClassName": "gpu", "capacity": {"requests": {"memory": memory, "cores": "10"}}});
    let claim = json!({
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "1"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    });
    Event::Object(ObjectChange::Seen(Object::ResourceClaim(parsed(&claim))))
}

/// One node with cards of HAMi's, these devices of its slice, and these pods.
fn mixed(cards: &[Value], devices: &[Value], pods: &[Value]) -> Machine {
    let mut machine = Machine::new(&Config::default(), &[hami_node(cards)], pods);
    listed(&mut machine);
    machine.tell(slice(1, devices));
    machine
}

fn one_card(devices: &[Value], pods: &[Value]) -> Machine {
    mixed(&[card("GPU-a", 0)], devices, pods)
}

/// The names of the claims that are given devices by these effects.
fn reserved(effects: &[Effect]) -> Vec<String> {
    let of = |write| match write {
        PrebindWrite::ProtectClaim { claim } | PrebindWrite::ReserveClaim { claim, .. } => {
            Some(claim.metadata.name.clone())
        }
        _ => None,
    };
    writes(effects).into_iter().filter_map(of).collect()
}

#[test]
fn a_share_pod_waits_for_a_card_that_a_claim_holds_until_that_is_freed() {
    let mut machine = one_card(&[exclusive("gpu-0", "GPU-a")], &[]);
    machine.tell(standing("c", 2, Some(&given("gpu-0", None))));
    machine.show_pod(&share("s", 1000));
    let (effects, placed_now) = machine.run();
    assert_eq!(placed_now, []);
    assert_eq!(told(&effects, "s"), TAKEN);
    machine.tell(standing("c", 3, None));
    assert_eq!(machine.run().1, placed(&[("s", "n1")]));
}

#[test]
fn a_claim_pod_waits_for_a_card_of_which_a_pod_has_a_share_until_that_ends() {
    let mut machine = one_card(&[exclusive("gpu-0", "GPU-a")], &[holding("s", "GPU-a,NVIDIA,1000,0:;")]);
    machine.tell(standing("c", 1, None));
    machine.show_pod(&user("p", "c"));
    assert_eq!(told(&machine.settle(), "p"), FULL);
    machine.tell(Event::Pod(PodChange::Ended("s".into())));
    machine.pass(15);
    assert_eq!(reserved(&machine.settle()), ["c"]);
}

#[test]
fn shares_of_claims_and_of_pods_fill_one_card_together() {
    let mut machine = one_card(&[shared("gpu-0", "GPU-a")], &[holding("s", "GPU-a,NVIDIA,6000,30:;")]);
    for (name, memory) in [("small", "4000Mi"), ("large", "10001Mi")] {
        machine.tell(asking(name, memory));
        machine.show_pod(&user(name, name));
    }
    let effects = machine.settle();
    assert_eq!((reserved(&effects), told(&effects, "large")), (vec!["small".to_owned()], FULL.to_owned()));
    machine.show_pod(&share("too-much", 6001));
    machine.show_pod(&share("rest", 6000));
    let (effects, placed_now) = machine.run();
    assert_eq!(placed_now, placed(&[("rest", "n1")]), "4000 MiB are the claim's that is being written");
    assert!(told(&effects, "too-much").contains("Insufficient GPU memory"), "{effects:?}");
}

#[test]
fn what_a_claim_holds_is_known_after_a_restart_however_late_it_is_listed() {
    let node = hami_node(&[card("GPU-a", 0)]);
    let pending = user("p", "c");
    let mut machine =
        Machine::new(&Config::default(), std::slice::from_ref(&node), std::slice::from_ref(&pending));
    machine.show_pod(&share("s", 1000));
    assert_eq!(machine.run().1, [], "the claim of a pod may hold the card");
    let Event::Object(ObjectChange::Seen(slice)) = slice(1, &[exclusive("gpu-0", "GPU-a")]) else {
        unreachable!()
    };
    let Event::Object(ObjectChange::Seen(held)) = standing("c", 2, Some(&given("gpu-0", None))) else {
        unreachable!()
    };
    machine.tell(Event::Object(ObjectChange::Listed(Kind::ResourceSlice, vec![slice])));
    machine.tell(Event::Object(ObjectChange::Listed(Kind::ResourceClaim, vec![held])));
    let (effects, placed_now) = machine.run();
    assert_eq!(placed_now, []);
    assert_eq!(told(&effects, "s"), TAKEN);

    // The lists do not come, as without the permission: pods of other nodes wait for a moment, those of this one for the lists.
    let other = |name: &str| {
        let mut node = hami_node(&[card("GPU-b", 0)]);
        node["metadata"]["name"] = json!(name);
        node["metadata"]["uid"] = json!(name);
        node
    };
    let running = bound(pending, "n1", json!({}));
    let mut machine = Machine::new(&Config::default(), &[node, other("n2")], &[running]);
    for name in ["one", "two"] {
        machine.show_pod(&share(name, 9000));
    }
    assert_eq!(machine.run().1, []);
    machine.pass(5);
    let placed_now = machine.run().1;
    assert_eq!(placed_now.iter().map(|(_, node)| node.as_str()).collect::<Vec<_>>(), ["n2"]);
    for kind in Kind::DEVICE_CLAIMS {
        machine.tell(Event::Object(ObjectChange::Listed(*kind, Vec::new())));
    }
    let placed_now = machine.run().1;
    assert_eq!(placed_now.iter().map(|(_, node)| node.as_str()).collect::<Vec<_>>(), ["n1"]);
}

#[test]
fn a_device_that_is_no_longer_published_may_be_any_card_that_its_pool_does_not_name() {
    let cards = [card("GPU-a", 0), card("GPU-b", 1)];
    let devices = [exclusive("gpu-0", "GPU-a"), exclusive("gpu-1", "GPU-b")];
    let mut machine = mixed(&cards, &devices, &[]);
    machine.tell(standing("c", 2, Some(&given("gpu-0", None))));
    machine.tell(slice(2, &devices[1..]));
    machine.show_pod(&pod("both", &json!({"nvidia.com/gpu": "2", "nvidia.com/gpumem": "1000"})));
    machine.show_pod(&share("one", 1000));
    let (effects, placed_now) = machine.run();
    assert_eq!(placed_now, placed(&[("one", "n1")]), "card GPU-b is published and not held");
    assert_ne!(told(&effects, "both"), "");
    machine.show_pod(&holding("one", "GPU-b,NVIDIA,1000,0:;"));
    machine.tell(Event::Object(ObjectChange::Gone(Kind::ResourceSlice, "n1-gpu.example.com".into())));
    machine.show_pod(&share("more", 1000));
    let (effects, placed_now) = machine.run();
    assert_eq!(placed_now, [], "the device may be either card");
    assert_eq!(told(&effects, "more"), TAKEN);
    assert_eq!(super::holdings::told(&effects), [], "what is in doubt is no excess");
    machine.tell(slice(3, &devices));
    assert_eq!(machine.run().1, placed(&[("more", "n1")]));
}

#[test]
fn an_assignment_that_can_not_be_read_keeps_every_card_from_claims() {
    let mut machine = one_card(&[shared("gpu-0", "GPU-a")], &[holding("s", "GPU-a,NVIDIA:;")]);
    machine.tell(asking("c", "1Mi"));
    machine.show_pod(&user("p", "c"));
    assert_eq!(told(&machine.settle(), "p"), FULL);
    machine.tell(Event::Pod(PodChange::Ended("s".into())));
    machine.pass(15);
    assert_eq!(reserved(&machine.settle()), ["c"]);
}

#[test]
fn a_slice_of_a_card_makes_it_full_and_is_not_given_where_the_card_has_shares() {
    let part = |name: &str, parent: &str| {
        let counters =
            json!([{"counterSet": format!("set-{parent}"), "counters": {"memory": {"value": "1"}}}]);
        json!({"name": name, "consumesCounters": counters,
            "attributes": {"uuid": {"string": format!("MIG-{name}")}, "parentUUID": {"string": parent}}})
    };
    let parts = [part("a-0", "GPU-a"), part("a-1", "GPU-a"), part("b-0", "GPU-b"), part("b-1", "GPU-b")];
    let sets = ["GPU-a", "GPU-b"]
        .map(|parent| json!({"name": format!("set-{parent}"), "counters": {"memory": {"value": "2"}}}));
    let cards = [card("GPU-a", 0), card("GPU-b", 1)];
    let mut machine =
        Machine::new(&Config::default(), &[hami_node(&cards)], &[holding("s", "GPU-a,NVIDIA,1,0:;")]);
    listed(&mut machine);
    let pool = json!({"name": "n1", "generation": 1, "resourceSliceCount": 2});
    for (name, field, of) in [("devices", "devices", &parts[..]), ("counters", "sharedCounters", &sets[..])] {
        let mut spec = json!({"driver": "gpu.example.com", "nodeName": "n1", "pool": pool});
        spec[field] = json!(of);
        let slice = json!({"metadata": {"name": name}, "spec": spec});
        machine.tell(Event::Object(ObjectChange::Seen(Object::ResourceSlice(parsed(&slice)))));
    }
    for name in ["c", "d", "e"] {
        machine.tell(standing(name, 1, None));
        machine.show_pod(&user(name, name));
    }
    let effects = machine.settle();
    assert_eq!(reserved(&effects).len(), 2, "both slices of GPU-b: {effects:?}");
    assert_eq!(told(&effects, "e"), FULL);
    machine.show_pod(&share("t", 1000));
    let bound = machine.run().1;
    assert_eq!(bound, placed(&[("t", "n1")]), "GPU-a has room");
    let usage = &machine.scheduler().snapshot().node("n1").unwrap().usage;
    assert_eq!(usage.card(&"GPU-b".into()).slots, 10);
    assert_eq!(usage.card(&"GPU-a".into()).slots, 2);
}

#[test]
fn a_gpu_of_koordinators_is_the_same_card_too() {
    let mut machine = Machine::new(&Config::default(), &[node("n1", &json!({}))], &[]);
    listed(&mut machine);
    machine.show_device(&device("n1", &[gpu(0)]));
    machine.tell(slice(1, &[exclusive("gpu-0", "GPU-0")]));
    machine.tell(standing("c", 2, Some(&given("gpu-0", None))));
    machine.show_pod(&whole("k"));
    assert_eq!(machine.run().1, []);
    machine.tell(standing("c", 3, None));
    assert_eq!(machine.run().1, placed(&[("k", "n1")]));
    machine.show_pod(&user("p", "c"));
    assert_eq!(told(&machine.settle(), "p"), FULL);
    machine.tell(Event::Pod(PodChange::Ended("k".into())));
    machine.pass(15);
    assert_eq!(reserved(&machine.settle()), ["c"]);
}

#[test]
fn two_drivers_that_publish_one_card_do_not_give_it_twice() {
    let mut machine = one_card(&[exclusive("gpu-0", "GPU-a")], &[]);
    let mut other = json!({
        "metadata": {"name": "other"},
        "spec": {"driver": "hami.example.com", "nodeName": "n1", "devices": [shared("hami-gpu-0", "GPU-a")],
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}},
    });
    machine.tell(Event::Object(ObjectChange::Seen(Object::ResourceSlice(parsed(&other)))));
    machine.tell(standing("c", 2, Some(&given("gpu-0", None))));
    machine.tell(standing("d", 1, None));
    machine.show_pod(&user("p", "d"));
    assert_eq!(told(&machine.settle(), "p"), FULL);
    other["spec"]["devices"] = json!([shared("hami-gpu-0", "GPU-a"), shared("hami-gpu-1", "GPU-b")]);
    machine.tell(Event::Object(ObjectChange::Seen(Object::ResourceSlice(parsed(&other)))));
    machine.pass(15);
    assert_eq!(reserved(&machine.settle()), ["d"]);
}

#[test]
fn more_of_a_card_than_there_is_counts_claims_too() {
    let mut machine = one_card(&[exclusive("gpu-0", "GPU-a")], &[holding("s", "GPU-a,NVIDIA,1000,0:;")]);
    assert_eq!(super::holdings::told(&machine.run().0), []);
    machine.tell(standing("c", 2, Some(&given("gpu-0", None))));
    let effects = machine.run().0;
    let words = "Pods hold more of card GPU-a on node n1 than it has: 11 of 10 slots, 17000 MiB of 16000 MiB";
    assert_eq!(super::holdings::told(&effects), [("s", words.to_owned())]);
}

#[test]
fn a_pod_with_a_claim_preempts_a_pod_with_a_share_of_the_card() {
    let mut machine = one_card(&[exclusive("gpu-0", "GPU-a")], &[holding("s", "GPU-a,NVIDIA,1000,0:;")]);
    machine.tell(Event::Object(ObjectChange::Listed(Kind::PodDisruptionBudget, Vec::new())));
    machine.tell(standing("c", 1, None));
    let mut urgent = user("p", "c");
    urgent["spec"]["priority"] = json!(1000);
    machine.show_pod(&urgent);
    let effects = machine.settle();
    let preempts = |effect: &Effect| matches!(effect, Effect::Nominate { node: Some(_), .. });
    assert!(effects.iter().any(preempts), "{effects:?}");
}

#[test]
fn a_pod_that_asks_for_a_share_and_uses_a_claim_gets_two_cards() {
    let cards = [card("GPU-a", 0), card("GPU-b", 1)];
    let both = || {
        let mut pod = share("p", 1000);
        pod["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": "c"}]);
        pod
    };
    let mut alone = mixed(&cards, &[exclusive("gpu-0", "GPU-a")], &[]);
    alone.tell(standing("c", 1, None));
    alone.show_pod(&both());
    assert_eq!(told(&alone.settle(), "p"), FULL, "which card the share is of is not known before");
    let mut beside = mixed(&cards, &[exclusive("gpu-0", "GPU-a"), exclusive("gpu-2", "GPU-c")], &[]);
    beside.tell(standing("c", 1, None));
    beside.show_pod(&both());
    let effects = beside.settle();
    assert_eq!(reserved(&effects), ["c"], "{effects:?}");
    let given = beside.scheduler().snapshot().resource_claims().allocation("default", "c").unwrap();
    assert_eq!(given.devices.results[0].device, "gpu-2");
}

#[test]
fn what_administrators_watch_over_holds_no_card() {
    let mut machine = one_card(&[exclusive("gpu-0", "GPU-a")], &[]);
    let mut watched = given("gpu-0", None);
    watched.devices.results[0].admin_access = Some(true);
    machine.tell(standing("c", 2, Some(&watched)));
    machine.show_pod(&share("s", 1000));
    assert_eq!(machine.run().1, placed(&[("s", "n1")]));
}
