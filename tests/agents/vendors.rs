//! The plugins of Hygon, AMD, Biren and Cambricon, where they differ from HAMi's own.

use berth_sandbox::agent::{
    audit::Violation,
    card::Card,
    node::Node,
    plugin::{Plugin, Spelling},
};
use k8s_openapi::api::core::v1 as core;
use kube::{
    api::{DeleteParams, Patch, PatchParams},
    runtime::wait::await_condition,
};
use serde_json::{Value, json};

use super::case::{Case, LIMIT, annotation, container};

/// Annotations of a pod that got this of a vendor whose plugin speaks HAMi's protocol.
fn of_vendor(node: &str, word: &str, devices: &str) -> Value {
    json!({
        "hami.io/vgpu-node": node, "hami.io/vgpu-time": "1", "hami.io/bind-time": "1",
        "hami.io/bind-phase": "allocating",
        format!("hami.io/{word}-devices-to-allocate"): devices, format!("hami.io/{word}-devices-allocated"): devices,
    })
}

#[tokio::test]
async fn hygons_plugin_serves_the_first_that_says_allocating_dead_or_alive_and_frees_the_node() {
    let card = |name, index| Card::new(name, index, 32_768).slots(4);
    let node = Node::new("n1").card(card("DCU-0", 0)).card(card("DCU-1", 1)).plugin(Plugin::Hygon);
    let Some(case) = Case::start(vec![node]).await else { return };
    let limits = json!({"hygon.com/dcunum": 1, "hygon.com/dcumem": 1000, "hygon.com/dcucores": 10});
    let spec = json!({"containers": [container("plain", &json!({})), container("main", &limits)]});
    // Never bound, so that its kubelet has no part in it.
    case.create("dead", spec.clone()).await;
    let carried = of_vendor("n1", "dcu", ";DCU-0,DCU,1000,10:;");
    let failed = Patch::Merge(json!({"metadata": {"annotations": carried}, "status": {"phase": "Failed"}}));
    case.pods().patch_status("dead", &PatchParams::default(), &failed).await.unwrap();
    case.create("next", spec).await;
    case.lock_hami("n1", "next").await;
    case.bind("next", "n1", of_vendor("n1", "dcu", ";DCU-1,DCU,1000,10:;")).await;
    let next = case.in_phase("next", "Running").await;
    assert_eq!(annotation(&next, "hami.io/bind-phase"), "allocating");
    assert_eq!(annotation(&case.in_phase("dead", "Failed").await, "hami.io/bind-phase"), "success");
    assert_eq!(case.node_annotation("n1", "hami.io/mutex.lock").await, None, "whoever holds it");
    let violations = case.fleet.violations();
    let [Violation::WrongPod { found, .. }] = &violations[..] else { panic!("{violations:?}") };
    assert_eq!(found, "default/dead");
    // One that says anything else is passed over.
    let passed_over = Patch::Merge(json!({"metadata": {"annotations": {"hami.io/bind-phase": "failed"}}}));
    case.pods().patch("next", &PatchParams::default(), &passed_over).await.unwrap();
    case.create("third", json!({"containers": [container("main", &limits)]})).await;
    case.bind("third", "n1", of_vendor("n1", "dcu", "DCU-1,DCU,1000,10:;")).await;
    assert_eq!(annotation(&case.in_phase("third", "Running").await, "hami.io/bind-phase"), "success");
    assert_eq!(case.fleet.violations().len(), 1);
}

fn amd_share(name: &str) -> Value {
    container(name, &json!({"amd.com/gpu": 1, "amd.com/gpumem": 1000, "amd.com/gpucores": 50}))
}

#[tokio::test]
async fn amds_plugin_masks_units_under_the_pods_lock_and_serves_one_container() {
    let node = Node::new("n1").card(Card { cores: 304, ..Card::new("AMD-a", 0, 65_536) }).plugin(Plugin::Amd);
    let Some(case) = Case::start(vec![node]).await else { return };
    for (name, mask) in [("p1", "0-151"), ("p2", "152-303")] {
        case.create(name, json!({"containers": [amd_share("main")]})).await;
        case.lock_hami("n1", name).await;
        case.bind(name, "n1", of_vendor("n1", "amd", "AMD-a,AMD,1000,152:;")).await;
        let pod = case.in_phase(name, "Running").await;
        assert_eq!(annotation(&pod, "hami.io/amd-cu-allocated"), format!(r#"{{"AMD-a":"{mask}"}}"#));
        assert_eq!(case.node_annotation("n1", "hami.io/mutex.lock").await, None);
    }
    case.assert_clean();
    case.pods().delete("p1", &DeleteParams::default()).await.unwrap();
    // Without a lock it has masked nothing yet; two containers are one too many.
    case.create("unlocked", json!({"containers": [amd_share("main")]})).await;
    case.bind("unlocked", "n1", of_vendor("n1", "amd", "AMD-a,AMD,1000,152:;")).await;
    let unlocked = case.in_phase("unlocked", "Failed").await;
    assert!(!unlocked.metadata.annotations.unwrap().contains_key("hami.io/amd-cu-allocated"));
    case.create("two", json!({"containers": [amd_share("one"), amd_share("two")]})).await;
    case.lock_hami("n1", "two").await;
    case.bind("two", "n1", of_vendor("n1", "amd", "AMD-a,AMD,1000,152:;AMD-a,AMD,1000,152:;")).await;
    let two = case.in_phase("two", "Failed").await;
    assert_eq!(annotation(&two, "hami.io/bind-phase"), "success", "after the first container");
}

#[tokio::test]
async fn birens_plugin_never_says_that_a_pod_is_served_and_keeps_the_lock_of_one_that_failed() {
    let card = |index: u32| {
        Card { cores: 0, ..Card::new(&format!("card_{index}"), index, 65_024) }.slots(1).product("Biren106B")
    };
    let Some(case) =
        Case::start(vec![Node::new("n1").card(card(0)).card(card(1)).plugin(Plugin::Biren)]).await
    else {
        return;
    };
    let register = case.node_annotation("n1", "hami.io/node-biren-register").await.unwrap();
    assert!(
        register.starts_with(r#"[{"id":"card_0","count":1,"devmem":65024,"type":"Biren106B","#),
        "{register}"
    );
    let spec = json!({"containers": [container("main", &json!({"birentech.com/gpu": 1}))]});
    case.create("p1", spec.clone()).await;
    case.lock_hami("n1", "p1").await;
    case.bind("p1", "n1", of_vendor("n1", "Biren", "card_0,Biren,0,0:;")).await;
    assert_eq!(annotation(&case.in_phase("p1", "Running").await, "hami.io/bind-phase"), "allocating");
    assert_eq!(case.node_annotation("n1", "hami.io/mutex.lock").await, None);
    case.assert_clean();
    case.create("p2", spec).await;
    case.lock_hami("n1", "p2").await;
    case.bind("p2", "n1", of_vendor("n1", "Biren", "card_0,Biren,0,0:card_1,Biren,0,0:;")).await;
    assert_eq!(annotation(&case.in_phase("p2", "Failed").await, "hami.io/bind-phase"), "failed");
    assert!(case.node_annotation("n1", "hami.io/mutex.lock").await.unwrap().ends_with(",default,p2"));
}

fn mlu_pod() -> Value {
    let limits = json!({"cambricon.com/vmlu": 1, "cambricon.com/mlu.smlu.vcore": 20, "cambricon.com/mlu.smlu.vmemory": 4});
    json!({"containers": [container("main", &limits)]})
}

fn of_cambricon(profile: &str, devices: &str) -> Value {
    json!({
        "CAMBRICON_DSMLU_ASSIGNED": "false", "CAMBRICON_DSMLU_PROFILE": profile,
        "hami.io/cambricon-mlu-devices-allocated": devices,
    })
}

#[tokio::test]
async fn cambricons_plugin_cuts_at_its_first_call_and_frees_the_node_at_its_second() {
    let card = |index| Card::new(&format!("n1-cambricon-mlu-{index}"), index, 24_576).slots(100);
    let node = Node::new("n1").card(card(0)).card(card(1)).plugin(Plugin::Cambricon(Spelling::Assigned));
    let Some(case) = Case::start(vec![node]).await else { return };
    let capacity = case.nodes().get("n1").await.unwrap().status.unwrap().capacity.unwrap();
    assert_eq!(capacity["cambricon.com/mlu.smlu.vcore"].0, "200");
    assert_eq!(capacity["cambricon.com/mlu.smlu.vmemory"].0, "192");
    let lock = "cambricon.com/dsmlu.lock";
    case.lock("n1", lock, "2026-08-21T10:00:00Z").await;
    case.create("p1", mlu_pod()).await;
    case.bind("p1", "n1", of_cambricon("1_20_4", "n1-cambricon-mlu-1,MLU,1024,20:;")).await;
    let served = case.in_phase("p1", "Running").await;
    assert_eq!(annotation(&served, "CAMBRICON_DSMLU_ASSIGNED"), "true");
    assert_eq!(annotation(&served, "CAMBRICON_DSMLU_PROFILE_INSTANCE"), "1_257_1_1");
    assert_eq!(case.node_annotation("n1", lock).await, None);
    case.assert_clean();
    // A profile that is not the share of the record, on a node that is not locked.
    case.create("p2", mlu_pod()).await;
    case.bind("p2", "n1", of_cambricon("0_20_4", "n1-cambricon-mlu-1,MLU,1024,20:;")).await;
    case.in_phase("p2", "Running").await;
    let violations = case.fleet.violations();
    let [Violation::WrongTemplate { .. }, Violation::Unlocked { .. }] = &violations[..] else {
        panic!("{violations:?}");
    };
}

#[tokio::test]
async fn cambricons_plugin_frees_the_node_of_a_pod_that_it_never_served_once_that_is_gone() {
    let card = Card::new("n1-cambricon-mlu-0", 0, 24_576).slots(100);
    let node = Node::new("n1").card(card).plugin(Plugin::Cambricon(Spelling::Assigned));
    let Some(case) = Case::start(vec![node]).await else { return };
    let lock = "cambricon.com/dsmlu.lock";
    case.lock("n1", lock, "2026-08-21T10:00:00Z").await;
    case.create("p1", mlu_pod()).await;
    case.bind("p1", "n1", of_cambricon("7_20_4", "n1-cambricon-mlu-0,MLU,1024,20:;")).await;
    case.in_phase("p1", "Failed").await;
    assert!(case.node_annotation("n1", lock).await.is_some(), "a failure frees nothing");
    case.pods().delete("p1", &DeleteParams::default()).await.unwrap();
    let freed = |node: Option<&core::Node>| {
        node.is_some_and(|node| !node.metadata.annotations.as_ref().is_some_and(|own| own.contains_key(lock)))
    };
    tokio::time::timeout(LIMIT, await_condition(case.nodes(), "n1", freed)).await.unwrap().unwrap();
}
