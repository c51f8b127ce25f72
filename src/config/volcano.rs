//! Settings of Volcano's dialect: the arguments of its `deviceshare` and `tdm` plugins, and of its device configuration.
//!
//! Source: Volcano ed72c7c `pkg/scheduler/plugins/deviceshare/deviceshare.go`, `pkg/scheduler/plugins/tdm/tdm.go`,
//! `pkg/scheduler/api/devices/config`. Wrong types are errors; upstream logs them and goes on.

use std::collections::BTreeMap;

use jiff::{SignedDuration, tz::TimeZone};
use serde::Serialize;

use crate::{dialect::volcano::ModelGeometries, scheduling::model::tdm::Window};

use super::{
    duration,
    error::Notice,
    hami::SchedulerPolicy,
    section::{Field, Section},
    trouble::Trouble,
};

/// Settings of Volcano's dialect.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolcanoConfig {
    /// Whether Berth serves the dialect.
    pub enabled: bool,
    /// Arguments of the plugins.
    pub arguments: DeviceShare,
    /// The IANA name of the time zone of revocable zones.
    pub time_zone: String,
    /// MiB for each unit of `volcano.sh/vgpu-memory` and of a card's registered memory.
    pub gpu_memory_factor: u32,
    /// MIG geometries as Volcano's device configuration has them, empty for its plugin's own; cards of other models in MIG mode
    /// take no pods.
    pub known_mig_geometries: Vec<serde_json::Value>,
    /// The form of the node lock's value.
    pub lock_value: LockValue,
}

/// Arguments of the `deviceshare` plugin, and beside them those of `tdm`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceShare {
    /// The sharing modes that are on.
    #[serde(flatten)]
    pub modes: Modes,
    /// Whether nodes are locked while a pod is bound.
    #[serde(rename = "deviceshare.NodeLockEnable")]
    pub node_lock: bool,
    /// Which node and card first.
    #[serde(rename = "deviceshare.SchedulePolicy")]
    pub schedule_policy: SchedulerPolicy,
    /// 0: the cards do not decide between nodes.
    #[serde(rename = "deviceshare.ScheduleWeight")]
    pub schedule_weight: u32,
    /// Pods with all labels of one of these share no card with others of the same.
    #[serde(rename = "deviceshare.GPUExclusiveRules", skip_serializing_if = "Vec::is_empty")]
    pub exclusive_rules: Vec<BTreeMap<String, String>>,
    /// Time-division.
    #[serde(flatten)]
    pub tdm: TdmArguments,
}

/// The sharing modes; the last two exclude the first and each other.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Modes {
    /// Virtual cards: `volcano.sh/vgpu-*`.
    #[serde(rename = "deviceshare.VGPUEnable")]
    pub vgpu: bool,
    /// Memory blocks of one card: `volcano.sh/gpu-memory`.
    #[serde(rename = "deviceshare.GPUSharingEnable")]
    pub gpu_sharing: bool,
    /// Whole cards: `volcano.sh/gpu-number`.
    #[serde(rename = "deviceshare.GPUNumberEnable")]
    pub gpu_number: bool,
}

/// Arguments of the `tdm` plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct TdmArguments {
    /// Windows by the name of the revocable zone.
    pub revocable_zones: BTreeMap<String, Vec<Window>>,
    /// How often pods are evicted from zones that have closed.
    pub evict_period: SignedDuration,
    /// How long before a window's end pods are evicted, and no pod is placed any more.
    pub grace_period: SignedDuration,
}

impl Serialize for TdmArguments {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written =
            |windows: &[Window]| windows.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let zones =
            self.revocable_zones.iter().map(|(zone, windows)| (format!("{ZONE}{zone}"), written(windows)));
        let period = (EVICT_PERIOD.to_owned(), duration::format(self.evict_period));
        let grace = (GRACE_PERIOD.to_owned(), duration::format(self.grace_period));
        serializer.collect_map(zones.chain([period, grace]))
    }
}

/// The form of the node lock's value.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LockValue {
    /// `<RFC3339>_<namespace>/<pod>`
    Owned,
    /// `<RFC3339>`
    Bare,
}

const ZONE: &str = "tdm.revocable-zone.";
const NO_USE: &str = "has no effect: Berth does not use this setting of Volcano";
const BUILT_IN_NAMES: &str = "has no effect: Berth reads Volcano's resources by their built-in names";
const EVICT_PERIOD: &str = "tdm.evict.period";
/// Berth's own; Volcano evicts when the window has closed.
const GRACE_PERIOD: &str = "tdm.evict.grace-period";

/// Arguments that Berth has no use for.
pub(super) const UNUSED_ARGUMENTS: [&str; 4] = [
    "deviceshare.AscendMindClusterVNPUEnable",
    "deviceshare.AscendHAMiVNPUEnable",
    "deviceshare.KnownGeometriesCMName",
    "deviceshare.KnownGeometriesCMNamespace",
];

/// Keys of the device configuration that Berth has no use for.
pub(super) const UNUSED_KEYS: [&str; 9] = [
    "vnpus",
    "overwriteEnv",
    "defaultMemory",
    "defaultCores",
    "defaultGPUNum",
    "deviceSplitCount",
    "deviceMemoryScaling",
    "deviceCoreScaling",
    "disableCoreLimit",
];

pub(super) const RESOURCE_NAMES: [&str; 4] =
    ["resourceCountName", "resourceMemoryName", "resourceMemoryPercentageName", "resourceCoreName"];

pub(super) fn read(mut section: Section, notices: &mut Vec<Notice>) -> Result<VolcanoConfig, Trouble> {
    let enabled = section.on_unless_off("enabled")?;
    let arguments = arguments(section.section("arguments")?, notices)?;
    let config = VolcanoConfig {
        enabled,
        arguments,
        time_zone: section.take("timeZone").map_or(Ok("UTC".to_owned()), |field| time_zone(&field))?,
        gpu_memory_factor: section.int("gpuMemoryFactor", 1, 1..=i64::from(i32::MAX))?,
        known_mig_geometries: geometries(&mut section)?,
        lock_value: section.choice(
            "lockValue",
            LockValue::Owned,
            &[("owned", LockValue::Owned), ("bare", LockValue::Bare)],
        )?,
    };
    section.unused(&RESOURCE_NAMES, BUILT_IN_NAMES, notices);
    section.unused(&UNUSED_KEYS, NO_USE, notices);
    section.finish()?;
    Ok(config)
}

fn arguments(mut section: Section, notices: &mut Vec<Notice>) -> Result<DeviceShare, Trouble> {
    let modes = modes(&mut section)?;
    let node_lock = section.take("deviceshare.NodeLockEnable").map_or(Ok(false), |field| field.go_bool())?;
    let policies = [
        ("least-waste", SchedulerPolicy::LeastWaste),
        ("binpack", SchedulerPolicy::Binpack),
        ("spread", SchedulerPolicy::Spread),
    ];
    let arguments = DeviceShare {
        modes,
        node_lock,
        schedule_policy: section.choice(
            "deviceshare.SchedulePolicy",
            SchedulerPolicy::LeastWaste,
            &policies,
        )?,
        schedule_weight: section.int("deviceshare.ScheduleWeight", 10, 0..=i64::from(i32::MAX))?,
        exclusive_rules: exclusive_rules(&mut section)?,
        tdm: tdm(&mut section)?,
    };
    section.unused(&UNUSED_ARGUMENTS, NO_USE, notices);
    section.finish()?;
    Ok(arguments)
}

/// The sharing modes; those that exclude each other are refused. vGPU is on by default, unless another mode is.
fn modes(section: &mut Section) -> Result<Modes, Trouble> {
    let sharing = section.take("deviceshare.GPUSharingEnable");
    let number = section.take("deviceshare.GPUNumberEnable");
    let vgpu = section.take("deviceshare.VGPUEnable");
    let on = |field: &Option<Field>| field.as_ref().map_or(Ok(false), Field::go_bool);
    let (gpu_sharing, gpu_number) = (on(&sharing)?, on(&number)?);
    let other = gpu_sharing || gpu_number;
    let vgpu_on = if vgpu.is_some() { on(&vgpu)? } else { !other };
    let stated = |field: Option<Field>, enabled: bool| field.filter(|_| enabled);
    let (sharing, number) = (stated(sharing, gpu_sharing), stated(number, gpu_number));
    if let (Some(sharing), Some(_)) = (&sharing, &number) {
        return Err(sharing.trouble("excludes `deviceshare.GPUNumberEnable`; only one of them may be true"));
    }
    if let Some(field) = sharing.or(number).filter(|_| vgpu_on) {
        return Err(field.trouble("excludes `deviceshare.VGPUEnable`; only one of them may be true"));
    }
    Ok(Modes { vgpu: vgpu_on, gpu_sharing, gpu_number })
}

fn tdm(section: &mut Section) -> Result<TdmArguments, Trouble> {
    let mut revocable_zones = BTreeMap::new();
    for (zone, field) in section.take_prefixed(ZONE, "<name>") {
        if zone.is_empty() {
            return Err(field.trouble("names no zone"));
        }
        revocable_zones.insert(zone, windows(&field)?);
    }
    let evict_period =
        section.take(EVICT_PERIOD).map_or(Ok(SignedDuration::from_mins(1)), |field| field.duration())?;
    let grace_period = match section.take(GRACE_PERIOD) {
        Some(field) => grace(&field, &revocable_zones)?,
        None => SignedDuration::ZERO,
    };
    Ok(TdmArguments { revocable_zones, evict_period, grace_period })
}

/// One window or more, separated by commas or in a list.
fn windows(field: &Field) -> Result<Vec<Window>, Trouble> {
    let texts: Vec<String> = match field.list() {
        Ok(list) => list.iter().map(Field::text).collect::<Result<_, _>>()?,
        Err(_) => field.text()?.split(',').map(str::to_owned).collect(),
    };
    if texts.is_empty() {
        return Err(field.trouble("contains no window such as `1:00-4:00`"));
    }
    texts.iter().map(|text| text.parse().map_err(|error| field.trouble(format!("{error}")))).collect()
}

/// A grace period that leaves something of each window.
fn grace(field: &Field, zones: &BTreeMap<String, Vec<Window>>) -> Result<SignedDuration, Trouble> {
    let grace = field.duration_or_zero()?;
    let too_short = |windows: &[Window]| windows.iter().copied().find(|window| window.length() <= grace);
    if let Some((zone, window)) = zones.iter().find_map(|(zone, windows)| Some((zone, too_short(windows)?))) {
        let message = format!("is as long as the window {window} of zone {zone} or longer");
        return Err(field.trouble(message));
    }
    Ok(grace)
}

fn time_zone(field: &Field) -> Result<String, Trouble> {
    let name = field.text()?;
    match TimeZone::get(&name) {
        Ok(_) => Ok(name),
        Err(_) => Err(field.trouble(format!("`{name}` is not an IANA time zone, such as `Europe/Berlin`"))),
    }
}

/// A list of label maps, none of them empty.
fn exclusive_rules(section: &mut Section) -> Result<Vec<BTreeMap<String, String>>, Trouble> {
    let Some(field) = section.take("deviceshare.GPUExclusiveRules") else { return Ok(Vec::new()) };
    let rule = |field: &Field| {
        let labels: Option<BTreeMap<String, String>> = serde_json::from_value(field.json()).ok();
        let labels = labels.filter(|labels| !labels.is_empty());
        labels.ok_or_else(|| field.trouble("is not a map of labels to their values, with at least one"))
    };
    field.list()?.iter().map(rule).collect()
}

fn geometries(section: &mut Section) -> Result<Vec<serde_json::Value>, Trouble> {
    let Some(field) = section.take("knownMigGeometries") else { return Ok(Vec::new()) };
    let geometries = field.list()?;
    for geometry in &geometries {
        ModelGeometries::read(&geometry.json()).map_err(|message| geometry.trouble(message))?;
    }
    Ok(geometries.iter().map(Field::json).collect())
}

#[cfg(test)]
mod tests;
