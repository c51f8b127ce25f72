//! HAMi's tables of its other vendors, a vendor at a time; Ascend's, whose tests ask for more, stands in a file of its own.

use berth::dialect::vendor::{amd, biren, cambricon, hygon, iluvatar, row::FamilyResources};

use super::table::Table;
use family::Family;

#[path = "hami_vendors/ascend.rs"]
pub(crate) mod ascend;
#[path = "hami_vendors/cards.rs"]
mod cards;
#[path = "hami_vendors/family.rs"]
pub(crate) mod family;
#[path = "hami_vendors/request.rs"]
mod request;

const FILE: &str = "hami_vendors.json";
const OTHER_TYPE: &str =
    "upstream's caller asks for another vendor's type; Berth's request has no type of its own";
const HANDSHAKE: &str =
    "handshakes are neither written nor waited for: a card works as its registration says";
const LOCKED: &str =
    "whether the call to the API server is made; Berth's binder takes every lock, by tests of its own";

#[test]
fn hygon() {
    let differences = [("TestDevices_Fit / fit fail: type mismatch", OTHER_TYPE)];
    let not_served = [
        ("Test_CheckHealth", HANDSHAKE),
        ("TestDevices_LockNode", LOCKED),
        ("TestDevices_ReleaseNodeLock", LOCKED),
    ];
    let family = Family { row: hygon::row(hygon::resources(), 1) };
    family.check("hygon/", &differences, &not_served);
}

#[test]
fn iluvatar() {
    let differences = [("Test_Fit / fit fail: type mismatch", OTHER_TYPE)];
    let not_served = [("TestDevices_LockNode", LOCKED), ("TestDevices_ReleaseNodeLock", LOCKED)];
    let family = Family { row: iluvatar::row("MR-V100", iluvatar::resources("MR-V100")) };
    family.check("iluvatar/", &differences, &not_served);
}

#[test]
fn amd() {
    let differences = [
        (
            "Test_MutateAdmission / requests only (limits empty) -> false",
            "upstream overlooks a count that stands in the requests alone; Berth reads it",
        ),
        (
            "TestCheckAMDType / use with only commas rejects card",
            "a list that names nothing is denied when the pod comes in, and constrains nothing afterwards",
        ),
    ];
    let resources = FamilyResources {
        count: "amd.com/gpu".into(),
        memory: Some("amd.com/gpu-mem".into()),
        cores: Some("amd.com/gpu-core-pct".into()),
    };
    Family { row: amd::row(resources) }.check("amd/", &differences, &[]);
}

#[test]
fn biren() {
    let differences = [("TestDevices_Fit / fit fail: type mismatch", OTHER_TYPE)];
    let not_served = [
        ("Test_CheckHealth", HANDSHAKE),
        ("TestDevices_LockNode", LOCKED),
        ("TestDevices_ReleaseNodeLock", LOCKED),
    ];
    Family { row: biren::row(biren::resources()) }.check("biren/", &differences, &not_served);
}

#[test]
fn cambricon() {
    const BOTH: &str = "kubelet asks the plugin for compute and memory, each by itself; a pod that asks for one alone is never served";
    let differences = [
        ("Test_GenerateResourceRequests / resourcememoryname don't set to limits and requests", BOTH),
        ("Test_GenerateResourceRequests / resourcecoresname don't set to limits and requests", BOTH),
        ("TestDevices_Fit / fit fail: type mismatch", OTHER_TYPE),
        (
            "Test_LockNode / invalid lock time format",
            "a lock that nobody can read serves nobody: Berth reports it and takes it over",
        ),
    ];
    let not_served = [
        ("Test_ParseConfig", "Berth has a configuration of its own, with its own tests"),
        ("Test_ReleaseNodeLock", LOCKED),
    ];
    let resources = FamilyResources { count: "cambricon.com/mlu".into(), ..cambricon::resources() };
    Family { row: cambricon::row(resources) }.check("cambricon/", &differences, &not_served);
}

#[test]
fn left_to_others() {
    let table = Table { file: FILE, differences: &[], not_served: &[] };
    for (folder, reason) in [
        ("awsneuron/", "chooses by a mask of cores and a graph of its own"),
        ("enflame/", "chooses a profile in a way of its own"),
        ("kunlun/", "chooses by groups of its own"),
        ("metax/", "scores nodes and cards by a topology of its own"),
        ("mthreads/", "binds a pod's containers to one card by a rule of its own"),
        ("vastai/", "chooses by the dies of a card"),
    ] {
        table.leave_folder(folder, reason);
    }
}
