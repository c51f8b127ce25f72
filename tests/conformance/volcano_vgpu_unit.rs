//! Volcano's vGPU tables.

use berth::{
    device::{
        Assignment, CardUsage, ContainerShares, Cores, Cuts, Geometry, InitPhase, Instances, Inventory, MiB,
        Mode, PodRequest, Quota, Role, Share, Slice, Slicing, Usage, Users,
    },
    dialect::{
        Dialect as _,
        volcano::{Volcano, names},
    },
    scheduling::plugin::{allocate::allocate, score},
};
use serde_json::{Value, json};

use super::{
    table::{Case, Table, Verdict},
    upstream::{container, list, number, pod, pod_of, request, share, text},
    volcano::{asked, card, cards, dialect, one_by_one, policies},
};

const IN_PLACE: &str = "upstream adjusts counters in place; Berth folds what is in use anew from the pods";
const BINDING: &str = "Berth writes nothing before the Binding, so there is nothing to take back";

#[test]
fn volcano_vgpu_unit() {
    let table = Table {
        file: "volcano_vgpu_unit.json",
        differences: DIFFERENCES,
        not_served: &[
            ("TestHAMICoreFactory_AddPod", IN_PLACE),
            ("TestHAMICoreFactory_SubPodRemovesEntry", IN_PLACE),
            ("TestAddAndSubMigUsed", IN_PLACE),
            ("TestMIGFactory_SubPod_WithMemoryFactor", IN_PLACE),
            ("TestReleaseReturnsSpeculativeAnnotationKeys", BINDING),
            ("TestReleaseKeepsCommittedAnnotations", BINDING),
        ],
    };
    table.check(judge);
}

const HELD: &str = "upstream passes the share over; here a card that is named is held, whole where its amounts can't be read, and told";

const DIFFERENCES: &[(&str, &str)] = &[
    (
        "TestCheckGPUUUID / denylist constraint rejects empty device UUID",
        "a card without a uuid makes the node's registration unreadable, so that none is ever asked about",
    ),
    (
        "TestDeviceHasPodFromSameGroup / same group but zero usage (released)",
        "upstream keeps released pods in its map with nothing in use; Berth keeps only pods that hold the card",
    ),
    (
        "TestSortedDeviceIndicesByPolicy_PicksExpectedDevice / unset policy preserves legacy descending-index order",
        "Berth has no unset policy: it is `binpack`",
    ),
    ("TestDecodeContainerDevicesRejectsInvalidUsage / valid entry kept when mixed with invalid", HELD),
    ("TestDecodeContainerDevicesRejectsInvalidUsage / negative memory is skipped", HELD),
    ("TestDecodeContainerDevicesRejectsInvalidUsage / negative cores is skipped", HELD),
    ("TestDecodeContainerDevicesRejectsInvalidUsage / non-numeric usage is skipped", HELD),
    ("TestDecodeContainerDevicesRejectsInvalidUsage / entry with missing fields is skipped", HELD),
    (
        "TestFindMatch / No matching MIG template in geometry",
        "defect: upstream offers only sizes of the geometry in use that have a user already; Berth offers each",
    ),
    (
        "TestGetGPUMemoryOfPod / GPUs required only in Containers",
        "two containers ask; the node's plugin would fail the second, so Berth refuses the pod",
    ),
];

fn judge(case: &Case) -> Verdict {
    let (input, expect) = (&case.input, &case.expect);
    match case.test.as_str() {
        "TestCheckGPUtype" => {
            let selection = wishes(&input["annos"]).selection;
            Verdict::of(&json!(selection.models.admits(text(input, "cardtype"))), &expect["want"])
        }
        "TestCheckGPUUUID" => {
            let selection = wishes(&input["annotations"]).selection;
            Verdict::of(&json!(selection.ids.admits(&text(input, "id").into())), &expect["want"])
        }
        "TestGPUUUIDConstraints" => {
            let mut pod_json = case.context["pod"].clone();
            pod_json["metadata"]["annotations"] = input["annotations"].clone();
            let inventory = Inventory::new(list(&case.context["devices"]).iter().map(card).collect());
            let chosen = one_by_one(&dialect("binpack"), &inventory, &json!([pod_json]));
            let wanted = expect["wantUUID"].as_str().map(str::to_owned);
            Verdict::of(&chosen, &vec![wanted])
        }
        "TestGetPodGroupKey" => {
            let group = marks(&input["pod"]).first().map(|mark| mark.trim_start_matches("group ").to_owned());
            Verdict::of(&json!(group.unwrap_or_default()), &expect["want"])
        }
        "TestAddResourceSetsPodGroupKey" => {
            Verdict::of(&marks(&input["pod"]), &vec![format!("group {}", text(expect, "podGroupKey"))])
        }
        "TestDeviceHasPodFromSameGroup" => Verdict::of(&json!(has_group(input)), &expect["want"]),
        "TestSortedDeviceIndicesByPolicy_PicksExpectedDevice" => {
            Verdict::of(&json!(picked(case)), &json!(format!("GPU-{}", expect["device_index"])))
        }
        "TestGPUScore" => Verdict::of(&format!("{:.0}", score_of(input)), &expect["want"].to_string()),
        "TestBinpackStacksSequentialPods" => {
            let inventory = Inventory::new(list(&input["devices"]).iter().map(card).collect());
            let chosen = one_by_one(&dialect("binpack"), &inventory, &input["pods"]);
            Verdict::of(
                &json!(chosen.iter().all(|one| one.is_some() && *one == chosen[0])),
                &expect["all_on_same_device"],
            )
        }
        _ => judge_held(case),
    }
}

/// The tests about assignments, slices and what is in use.
fn judge_held(case: &Case) -> Verdict {
    let (input, expect) = (&case.input, &case.expect);
    match case.test.as_str() {
        "TestDecodeContainerDevicesRejectsInvalidUsage" => {
            let wanted: Vec<Share> = list(&expect["want"]).iter().map(share).collect();
            Verdict::of(&carried(text(input, "str")), &wanted)
        }
        "TestHAMICoreFactory_AddPodDistinctUIDsAccumulate" => accumulate(input, expect),
        "TestFindMatch" => {
            let wanted = (expect["wantFit"] == json!(true))
                .then(|| (text(expect, "wantUUID").to_owned(), u64::from(number(expect, "wantMem"))));
            Verdict::of(&slice_found(input), &wanted)
        }
        "TestMIGFactory_TryAddPod_WithMemoryFactor" => {
            let memory = number(input, "requestMem") * number(input, "memoryFactor");
            let slicing = geometries(&input["migTemplate"]);
            let found = cut("gpu", slicing, Users::default(), memory)
                .map(|(id, memory)| (id.contains(&format!("[{}-", text(expect, "expectedGroup"))), memory));
            Verdict::of(&found, &Some((true, number(expect, "expectedMemReturned").into())))
        }
        "TestMIGFactory_AddPod_WithMemoryFactor" => {
            let wanted = ["expectedUsedNum", "expectedUsedMem", "expectedUsedCore"];
            Verdict::of(&charged(input), &wanted.map(|amount| u64::from(number(expect, amount))))
        }
        "TestGetGPUMemoryOfPod" => {
            let cards = dialect("")
                .request(&pod(&input["pod"]), berth::dialect::MissingCount::Refuse)
                .ok()
                .flatten()
                .map(|asked| {
                    asked
                        .containers
                        .iter()
                        .filter_map(|one| one.share)
                        .map(|one| one.cards.get())
                        .sum::<u32>()
                });
            Verdict::of(&json!(cards), &expect["want"])
        }
        "TestAddResource" => {
            let read =
                dialect("").assignment(&pod_of(&input["annotations"], &json!({names::COUNT: "1"}))).unwrap();
            let known = text(&input["devices"]["0"], "UUID");
            let on = |carried: berth::dialect::Carried| {
                carried.assignment.shares().any(|share| share.card.as_str() == known)
            };
            Verdict::of(&json!(read.is_some_and(on)), &expect["wantAdded"])
        }
        "spread_integration tests" => apart(case),
        other => panic!("no adapter for {other}"),
    }
}

fn wishes(annotations: &Value) -> PodRequest {
    asked(&dialect("binpack"), &pod_of(annotations, &json!({names::COUNT: "1"})))
}

/// What a pod with an assignment bears.
fn marks(value: &Value) -> Vec<String> {
    let mut pod = pod(value);
    pod.metadata
        .annotations
        .get_or_insert_default()
        .insert(names::IDS.to_owned(), "GPU-0,NVIDIA,1,0:".to_owned());
    let carried = dialect("").assignment(&pod).unwrap().unwrap();
    carried.assignment.marks.iter().map(ToString::to_string).collect()
}

fn users(groups: impl Iterator<Item = String>, slots: u32) -> Users {
    let amounts = CardUsage { slots, ..CardUsage::default() };
    Users { amounts, marks: groups.map(berth::device::Mark::from).collect(), ..Users::default() }
}

/// Whether a pod that shuns this group is kept off the card.
fn has_group(input: &Value) -> bool {
    let pods = input["gd"]["PodMap"].as_object().into_iter().flatten();
    let groups = pods.map(|(_, pod)| format!("group {}", text(pod, "PodGroupKey")));
    let usage: Usage = [("GPU-0".into(), users(groups, 1))].into_iter().collect();
    let mut asked = wishes(&Value::Null);
    asked.shuns = [format!("group {}", text(input, "currentKey")).into()].into();
    let inventory = cards(&json!({"memory": 16384}), 1);
    allocate(&asked, &inventory, &usage, &Volcano::profile(), Quota::default()).is_err()
}

fn picked(case: &Case) -> String {
    let inventory = cards(&case.context["device"], number(&case.input, "num_gpus"));
    let seed = case.input["seed"].as_object().into_iter().flatten().map(|(index, seed)| {
        let amounts = CardUsage {
            slots: number(seed, "usedNum"),
            memory: MiB::new(number(seed, "usedMem").into()),
            cores: Cores::NONE,
        };
        (format!("GPU-{index}").into(), Users { amounts, ..Users::default() })
    });
    let usage: Usage = seed.collect();
    let asked = asked(&dialect(text(&case.input, "policy")), &pod(&case.context["pod"]));
    let assignment = allocate(&asked, &inventory, &usage, &Volcano::profile(), Quota::default()).unwrap();
    assignment.shares().next().unwrap().card.to_string()
}

/// The score of a node for a pod that takes nothing on its only card.
fn score_of(input: &Value) -> f64 {
    let device = &input["device"];
    let inventory = Inventory::new(vec![card(device)]);
    let amounts = CardUsage {
        slots: number(device, "UsedNum"),
        memory: MiB::new(number(device, "UsedMem").into()),
        cores: Cores::NONE,
    };
    let usage: Usage = [("GPU-0".into(), Users { amounts, ..Users::default() })].into_iter().collect();
    let own = assignment_of(&["GPU-0"], 0);
    score::of_request(&Volcano::profile(), policies(text(input, "policy")).1, &inventory, &usage, &own)
}

fn assignment_of(cards: &[&str], memory: u64) -> Assignment {
    let share = |card: &&str| Share {
        card: (*card).into(),
        memory: MiB::new(memory),
        cores: Cores::NONE,
        slice: None,
    };
    let shares = cards.iter().map(share).collect();
    Assignment { containers: vec![ContainerShares { role: Role::App, shares }], ..Assignment::default() }
}

/// The shares of an assignment; none of one that can't be read.
fn carried(text: &str) -> Vec<Share> {
    let pod = pod_of(&json!({names::IDS: text}), &json!({names::COUNT: "1"}));
    let carried = dialect("").assignment(&pod).ok().flatten();
    carried.map(|carried| carried.assignment.shares().cloned().collect()).unwrap_or_default()
}

/// What a pod with this slice holds of its card: slots, units of memory and compute.
fn charged(input: &Value) -> [u64; 3] {
    let (id, factor) = (text(input, "devID"), u64::from(number(input, "memoryFactor")));
    let shares = carried(&format!("{id},NVIDIA,{},{}:", number(input, "requestMem"), number(input, "core")));
    let uuid = shares[0].card.clone();
    let cut = card(&json!({"uuid": uuid.as_str(), "memory": 100_000}));
    let cut = berth::device::Card { mode: Mode::Mig, slicing: geometries(&input["migTemplate"]), ..cut };
    let assignment =
        Assignment { containers: vec![ContainerShares { role: Role::App, shares }], ..Assignment::default() };
    let cuts: Cuts = [&cut].into_iter().collect();
    let used = Usage::of([(cuts.sized(&assignment).as_ref(), InitPhase::Done)]).card(&uuid);
    [used.slots.into(), used.memory.get() / factor, used.cores.get().into()]
}

fn accumulate(input: &Value, expect: &Value) -> Verdict {
    let pods: Vec<_> = list(&input["adds"])
        .iter()
        .map(|add| {
            let mut assignment = assignment_of(&["GPU-0"], number(add, "mem").into());
            assignment.containers[0].shares[0].cores = Cores::new(number(add, "core"));
            assignment
        })
        .collect();
    let used = Usage::of(pods.iter().map(|pod| (pod, InitPhase::Done))).card(&"GPU-0".into());
    let used = json!({"usedNum": used.slots, "usedMem": used.memory.get(), "usedCore": used.cores.get()});
    Verdict::of(&used, expect)
}

fn geometries(groups: &Value) -> Slicing {
    let kind = |kind: &Value| Instances {
        name: text(kind, "Name").into(),
        memory: MiB::new(number(kind, "Memory").into()),
        count: number(kind, "Count"),
    };
    let group = |group: &Value| Geometry {
        group: text(group, "Group").into(),
        instances: list(&group["Instances"]).iter().map(kind).collect(),
    };
    Slicing::Geometries(list(groups).iter().map(group).collect())
}

fn slice_found(input: &Value) -> Option<(String, u64)> {
    let usage = &input["usage"];
    let group =
        usize::try_from(usage["Index"].as_i64().unwrap()).ok().map(|at| &input["allowedGeometries"][at]);
    let used = list(&usage["UsageList"]).iter().flat_map(|kind| list(&kind["UsedIndex"]));
    let slices = group.into_iter().flat_map(|group| {
        used.clone().map(|at| Slice::Numbered {
            group: text(group, "Group").into(),
            position: u32::try_from(at.as_u64().unwrap()).unwrap(),
        })
    });
    let users = Users { slices: slices.collect(), ..Users::default() };
    cut(text(input, "uuid"), geometries(&input["allowedGeometries"]), users, number(input, "requestMem"))
}

/// The slice that a share of so much memory becomes: its id and memory.
fn cut(uuid: &str, slicing: Slicing, users: Users, memory: u32) -> Option<(String, u64)> {
    let sliced =
        berth::device::Card { mode: Mode::Mig, slicing, ..card(&json!({"uuid": uuid, "memory": 100_000})) };
    let usage: Usage = [(uuid.into(), users)].into_iter().collect();
    let ask = request(&json!({"Nums": 1, "Memreq": memory}));
    let asked = PodRequest { containers: vec![container(Role::App, ask)], ..wishes(&Value::Null) };
    let given =
        allocate(&asked, &Inventory::new(vec![sliced]), &usage, &Volcano::profile(), Quota::default())
            .ok()?;
    let share = given.shares().next()?;
    Some((format!("{uuid}[{}]", share.slice.as_ref()?), share.memory.get()))
}

fn apart(case: &Case) -> Verdict {
    let inventory = cards(&case.context["device"], number(&case.input, "num_gpus"));
    let chosen = one_by_one(&dialect("binpack"), &inventory, &case.input["pods"]);
    let fit = json!(chosen.iter().map(Option::is_some).collect::<Vec<_>>());
    let same = json!(chosen.windows(2).all(|pair| pair[0] == pair[1]));
    let asserted = case.expect["same_device"].is_boolean();
    Verdict::of(
        &(fit, asserted.then_some(same)),
        &(case.expect["fit"].clone(), asserted.then(|| case.expect["same_device"].clone())),
    )
}
