//! The JSON schema of `berth.yaml`, for editors: every key that is read, and none besides.
//!
//! It says less than the reader does, which also knows what contradicts what. Keys that are another program's are taken with any value.

pub(super) mod kinds;

use serde_json::{Value, json};

use super::{
    Authentication, NodeLockPolicy, hami, messages, metrics, plugin_config, scheduling, vendors, volcano,
};
use crate::{
    dialect::vendor::{amd, biren, cambricon, hygon, row::FamilyResources},
    scheduling::plugin::Plugin,
};
use kinds::{amount, anything, flag, list, mapping, one_of, requiring, switch, text, whole};

/// The dialect of JSON Schema in which the schema is written.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The schema as JSON.
pub fn schema() -> Value {
    let severity = || one_of(&["deny", "warn", "allow"]);
    let guards = ["neverFits", "presetNode", "privileged", "deviceMounts", "visibleDevices", "quota"];
    let weights = Plugin::scoring().map(|plugin| (plugin.name(), whole(0, 100)));
    let gangs = mapping([("enabled", switch()), ("timeout", text())]);
    let claims = mapping([("enabled", switch())]);
    let volumes = mapping([("heldPercent", whole(0, 100))]);
    let preemption = mapping(["enabled", "otherSchedulers", "preemptableFirst"].map(|key| (key, switch())));
    let pods = mapping([
        ("policy", one_of(&["least-waste", "balanced"])),
        ("keepRoomAfter", text()),
        ("keepRoomFor", text()),
    ]);
    let mut schema = mapping([
        ("schedulerName", text()),
        ("scope", one_of(&["opt-in", "opt-out"])),
        ("adoptSchedulers", list(&text())),
        ("schedulerNamespaces", list(&text())),
        ("unmanagedPods", one_of(&["warn", "deny", "allow"])),
        ("protection", one_of(&["auto", "warn", "deny"])),
        ("guards", mapping(guards.map(|guard| (guard, severity())))),
        (
            "metrics",
            mapping([
                ("hamiNames", switch()),
                ("pods", switch()),
                ("seriesLimit", whole(0, metrics::SERIES_AT_MOST)),
                ("authentication", one_of(&Authentication::CHOICES.map(|(word, _)| word))),
                ("usageLabels", list(&text())),
            ]),
        ),
        ("messages", mapping([("details", one_of(&messages::DETAILS.map(|(word, _)| word)))])),
        (
            "scheduling",
            mapping([
                ("kubeScheduler", one_of(&scheduling::FOLLOWED.map(|(word, _)| word))),
                ("weights", mapping(weights)),
                ("pluginConfig", plugin_config::schema()),
                ("preemption", preemption),
                ("gangs", gangs),
                ("volumes", volumes),
                ("claims", claims),
                ("pods", pods),
            ]),
        ),
        ("workloads", list(&workload())),
        (
            "dialects",
            mapping([
                ("hami", of_hami()),
                ("volcano", of_volcano()),
                ("koordinator", mapping(["enabled", "wholeCards"].map(|key| (key, switch())))),
            ]),
        ),
    ]);
    schema["$schema"] = DIALECT.into();
    schema["title"] = "berth.yaml".into();
    schema
}

fn unused<'a>(keys: &'a [&'a str]) -> impl Iterator<Item = (&'a str, Value)> {
    keys.iter().map(|&key| (key, anything()))
}

fn workload() -> Value {
    let template = requiring(mapping([("path", text()), ("replicas", text())]), &["path"]);
    let templates = json!({"type": "array", "items": template, "minItems": 1});
    let keys = [("apiGroup", text()), ("kind", text()), ("plural", text()), ("templates", templates)];
    requiring(mapping(keys), &["kind", "templates"])
}

fn of_hami() -> Value {
    let nvidia = || {
        let names = hami::NVIDIA_KEYS.iter().map(|&key| (key, nvidia(key)));
        names.chain(unused(&hami::UNUSED_KEYS))
    };
    let duration = text;
    let node_policy = || one_of(&["least-waste", "binpack", "spread"]);
    let own = [
        ("enabled", switch()),
        ("nvidia", mapping(nvidia())),
        ("nodeSchedulerPolicy", node_policy()),
        ("node-scheduler-policy", node_policy()),
        ("gpuSchedulerPolicy", text()),
        ("gpu-scheduler-policy", text()),
        ("nodeLockExpire", duration()),
        ("node-lock-timeout", duration()),
        ("nodeLock", one_of(&NodeLockPolicy::CHOICES.map(|(word, _)| word))),
        ("forceOverwriteDefaultScheduler", switch()),
        ("force-overwrite-default-scheduler", switch()),
        ("enable-iluvatar", flag()),
        ("enable-ascend", flag()),
        ("hygon", family(&hygon::resources(), true)),
        ("cambricon", family(&cambricon::resources(), false)),
        ("amd", family(&amd::resources(), false)),
        ("biren", family(&biren::resources(), false)),
        ("iluvatars", anything()),
        ("vnpus", anything()),
    ];
    let others = unused(&hami::UNUSED_FLAGS).chain(unused(&vendors::NOT_SERVED));
    mapping(own.into_iter().chain(nvidia()).chain(others))
}

fn nvidia(key: &str) -> Value {
    match key {
        "defaultCores" => whole(0, 100),
        "defaultMemory" | "defaultGPUNum" => amount(0),
        "memoryFactor" => amount(1),
        "gpuCorePolicy" => one_of(&["default", "force", "disable"]),
        "overwriteEnv" => switch(),
        _ => text(),
    }
}

fn family(resources: &FamilyResources, has_factor: bool) -> Value {
    let optional = [("resourceMemoryName", &resources.memory), ("resourceCoreName", &resources.cores)];
    let optional = optional.into_iter().filter(|(_, name)| name.is_some()).map(|(key, _)| (key, text()));
    let factor = has_factor.then(|| ("memoryFactor", amount(1)));
    mapping([("enabled", switch()), ("resourceCountName", text())].into_iter().chain(optional).chain(factor))
}

fn of_volcano() -> Value {
    let own = [
        ("enabled", switch()),
        ("arguments", arguments()),
        ("timeZone", text()),
        ("gpuMemoryFactor", amount(1)),
        ("knownMigGeometries", list(&anything())),
        ("lockValue", one_of(&["owned", "bare"])),
    ];
    let others = unused(&volcano::RESOURCE_NAMES).chain(unused(&volcano::UNUSED_KEYS));
    mapping(own.into_iter().chain(others))
}

fn arguments() -> Value {
    let flags = ["VGPUEnable", "GPUSharingEnable", "GPUNumberEnable", "NodeLockEnable"];
    let flags = flags.map(|name| format!("deviceshare.{name}"));
    let own = [
        ("deviceshare.SchedulePolicy", one_of(&["least-waste", "binpack", "spread"])),
        ("deviceshare.ScheduleWeight", amount(0)),
        ("deviceshare.GPUExclusiveRules", anything()),
        ("tdm.evict.period", text()),
        ("tdm.evict.grace-period", text()),
    ];
    let flags = flags.iter().map(|name| (name.as_str(), flag()));
    let mut arguments = mapping(flags.chain(own).chain(unused(&volcano::UNUSED_ARGUMENTS)));
    let windows = json!({"type": ["string", "array"], "items": text()});
    arguments["patternProperties"] = json!({r"^tdm\.revocable-zone\..+": windows});
    arguments
}

#[cfg(test)]
mod tests;
