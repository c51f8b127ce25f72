//! Pods that hold cards of several vendors, as HAMi's scheduler gives them: each vendor's cards count by themselves, and each agent answers.

use berth::{
    config::Config,
    device::Answer,
    scheduling::{Effect, Event, Finding, Holding, QuotaChange, WithdrawOutcome, model::pod::Binding},
};
use serde_json::{Value, json};

use super::{
    holdings::share,
    machine::{Machine, bound, key, node, parsed, pod},
};

/// Every vendor is served.
fn settings() -> Config {
    let text = "dialects:\n  hami: {cambricon: {}, enable-iluvatar: true}\n";
    Config::parse(text, "berth.yaml").unwrap().0
}

/// A node with a card of NVIDIA's and one of Hygon's, 16000 MiB each.
fn both_vendors() -> Value {
    let card = |id: &str, model: &str| json!([{"id": id, "index": 0, "count": 10, "devmem": 16000, "devcore": 100, "type": model, "health": true}]);
    let annotations = json!({
        "hami.io/node-nvidia-register": card("GPU-a", "NVIDIA A100").to_string(),
        "hami.io/node-dcu-register": card("DCU-a", "DCU").to_string(),
    });
    node("n1", &annotations)
}

/// A bound pod that holds 8000 MiB of NVIDIA's card, and these annotations.
fn holding(beside: &Value) -> Value {
    let mut annotations = json!({
        "hami.io/vgpu-node": "n1", "hami.io/bind-phase": "success",
        "hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,8000,0:;",
    });
    for (key, value) in beside.as_object().unwrap() {
        annotations[key] = value.clone();
    }
    bound(share("both", 8000), "n1", annotations)
}

fn dcu(name: &str, memory: u32) -> Value {
    pod(
        name,
        &json!({"hygon.com/dcunum": "1", "hygon.com/dcumem": memory.to_string(), "hygon.com/dcucores": "10"}),
    )
}

/// Which pods are refused for a quota, and how much of it is used by then.
fn over_quota(effects: &[Effect]) -> Vec<(&str, String)> {
    let refused = effects.iter().filter_map(|effect| match effect {
        Effect::TellUnschedulable { pod, reason, .. } => {
            let message = reason.message().full;
            let used = message.split_once("used: ")?.1.split_once(", limited")?.0;
            Some((&*pod.name, used.to_owned()))
        }
        _ => None,
    });
    refused.collect()
}

#[test]
fn cards_of_two_vendors_on_one_pod_count_in_the_quota_of_their_own_vendor() {
    let held = holding(&json!({"hami.io/dcu-devices-allocated": "DCU-a,DCU,6000,50:;"}));
    let mut machine = Machine::new(&settings(), &[both_vendors()], &[held]);
    let hard = json!({"limits.nvidia.com/gpumem": "10000", "limits.hygon.com/dcumem": "7000"});
    let quota = json!({"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": hard}});
    machine.tell(Event::Quota(QuotaChange::Seen(machine.reader().quota(&parsed(&quota)).0)));
    machine.show_pod(&share("gpu", 2001));
    machine.show_pod(&dcu("dcu", 1001));
    let (effects, placed) = machine.run();
    let used = [("gpu", "limits.nvidia.com/gpumem=8000"), ("dcu", "limits.hygon.com/dcumem=6000")];
    assert_eq!(over_quota(&effects), used.map(|(pod, used)| (pod, used.to_owned())));
    assert_eq!(placed, []);
    machine.show_pod(&dcu("small", 1000));
    assert_eq!(machine.run().1.len(), 1);
    let state = machine.scheduler().snapshot().node("n1").unwrap().clone();
    let memory = ["GPU-a", "DCU-a"].map(|card| state.usage.card(&card.into()).memory.get());
    assert_eq!(memory, [8000, 7000]);
}

#[test]
fn a_node_waits_until_the_agent_of_each_vendor_has_answered() {
    let waiting = json!({
        "hami.io/cambricon-mlu-devices-allocated": "n1-cambricon-mlu-0,MLU,256,10:;", "CAMBRICON_DSMLU_ASSIGNED": "false",
    });
    let mut machine = Machine::new(&settings(), &[both_vendors()], &[holding(&waiting)]);
    machine.show_pod(&share("next", 1000));
    assert_eq!(machine.run().1, [], "Cambricon's plugin has not answered");
    let mut served = waiting;
    served["CAMBRICON_DSMLU_ASSIGNED"] = json!("true");
    machine.show_pod(&holding(&served));
    assert_eq!(machine.run().1.len(), 1);
}

#[test]
fn unknown_cards_of_one_vendor_leave_those_of_another_to_further_pods() {
    let mut broken = holding(&json!({"hami.io/dcu-devices-allocated": ",DCU,6000,50:;"}));
    let limits = &mut broken["spec"]["containers"][0]["resources"]["limits"];
    (limits["hygon.com/dcunum"], limits["hygon.com/dcumem"]) = (json!("1"), json!("6000"));
    let mut machine = Machine::new(&settings(), &[both_vendors()], &[broken]);
    machine.show_pod(&dcu("dcu", 1));
    let (effects, placed) = machine.run();
    let told = effects
        .iter()
        .filter(|effect| matches!(effect, Effect::ReportFinding { finding: Finding::Unread(_), .. }))
        .count();
    assert_eq!((told, placed), (1, vec![]));
    machine.show_pod(&share("gpu", 8000));
    assert_eq!(machine.run().1.len(), 1);
}

#[test]
fn what_a_dead_pod_carries_for_several_agents_is_withdrawn_in_one_write() {
    let mut dead = holding(&json!({
        "hami.io/dcu-devices-allocated": "DCU-a,DCU,6000,50:;", "hami.io/MR-V100-devices-allocated": "MR-a,MR-V100,1,1:;",
        "hami.io/bind-phase": "allocating", "hami.io/bind-time": "1800000000",
    }));
    dead["status"]["phase"] = json!("Failed");
    let mut machine = Machine::new(&settings(), &[both_vendors()], &[dead]);
    machine.show_pod(&share("next", 1000));
    let (effects, placed) = machine.run();
    let withdrawn: Vec<_> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Withdraw { profiles, .. } => Some(profiles.iter().map(ToString::to_string).collect()),
            _ => None,
        })
        .collect();
    let profiles: Vec<String> = vec!["hami-dcu".to_owned(), "hami-mr-v100".to_owned()];
    assert_eq!((withdrawn, placed), (vec![profiles], vec![]));
    machine.tell(Event::Withdrawn { pod: key("both"), node: "n1".into(), outcome: WithdrawOutcome::Done });
    assert_eq!(machine.run().1.len(), 1);
}

/// What the pod holds, as it is read.
fn read(pod: &Value) -> Holding {
    let (info, troubles) = settings().reader().pod(&parsed(pod));
    assert_eq!(troubles, []);
    info.holding.unwrap()
}

const MLU: &str = "n1-cambricon-mlu-0,MLU,256,10:;";

#[test]
fn what_a_pod_holds_of_each_vendors_cards_is_an_allocation_with_an_answer_of_its_own() {
    let beside = json!({"hami.io/cambricon-mlu-devices-allocated": MLU, "CAMBRICON_DSMLU_ASSIGNED": "false"});
    let holding = read(&holding(&beside));
    let allocations = holding.allocations.iter().map(|one| {
        let cards: Vec<_> = one.assignment.shares().map(|share| share.card.as_str()).collect();
        (one.profile.as_str(), cards, one.answer)
    });
    let expected = [
        ("hami-nvidia", vec!["GPU-a"], Answer::Succeeded),
        ("hami-mlu", vec!["n1-cambricon-mlu-0"], Answer::Awaited),
    ];
    assert_eq!(allocations.collect::<Vec<_>>(), expected);
}

#[test]
fn cards_of_several_vendors_that_another_scheduler_means_a_pod_to_have_are_all_charged() {
    let mut meant = holding(&json!({"hami.io/cambricon-mlu-devices-allocated": MLU}));
    meant["spec"]["nodeName"] = json!(null);
    meant["spec"]["schedulerName"] = json!("hami-scheduler");
    let holding = read(&meant);
    assert_eq!((&*holding.node, holding.binding, holding.allocations.len()), ("n1", Binding::Intended, 2));
}

#[test]
fn a_pod_without_cards_has_no_allocation() {
    let plain = bound(pod("plain", &json!({"cpu": "1"})), "n1", json!({}));
    assert_eq!(read(&plain).allocations, [].into());
}
