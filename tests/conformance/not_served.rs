//! Tables of what Berth has no counterpart of, each with the reason.

use super::table::Table;

#[test]
fn hami_health() {
    const HANDSHAKE: &str = "the table asks what upstream writes as its next handshake and when it reads a node again; Berth writes none, and judges the age of an old plugin's report in tests of its own";
    let table = Table {
        file: "hami_health.json",
        differences: &[],
        not_served: &[("Test_CheckHealth", HANDSHAKE), ("TestCheckHealth", HANDSHAKE)],
    };
    table.check(|case| panic!("no adapter for {}", case.test));
}

#[test]
fn hami_topology() {
    const COUNTED: &str = "the node plugin counts links and scores pairs; Berth reads the scores";
    let table = Table {
        file: "hami_topology.json",
        differences: &[],
        not_served: &[
            ("Test_nvlinkCountToType", COUNTED),
            ("Test_countMatchingLinks", COUNTED),
            ("Test_GetNVLink", COUNTED),
            ("Test_countNvSwitchLinks", COUNTED),
            ("Test_calculateGPUScore", COUNTED),
            ("pair score table", COUNTED),
        ],
    };
    table.check(|case| panic!("no adapter for {}", case.test));
}

#[test]
fn hami_misc() {
    const PLUGIN: &str = "how the node plugin finds its pod";
    const CONFIG: &str = "Berth has a configuration of its own, with its own tests";
    const EVENT: &str = "Berth's Events have words of their own";
    let table = Table {
        file: "hami_misc.json",
        differences: &[],
        not_served: &[
            ("TestGetPendingPod", PLUGIN),
            ("TestGetAllocatePodByNode", PLUGIN),
            ("TestPatchPodAnnotations", "pods are not patched: annotations ride in the Binding"),
            ("Test_validateConfig", CONFIG),
            ("Test_LoadConfig", CONFIG),
            ("TestRecordScheduleBindingResultEvent", EVENT),
            ("TestRecordScheduleFilterResultEvent", EVENT),
            ("Test_getPodUsage", "a count of pods for upstream's metrics"),
        ],
    };
    table.check(|case| panic!("no adapter for {}", case.test));
}
