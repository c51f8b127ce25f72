//! A report as OpenCost's API answers on `/allocation`: one set of allocations. Of costs and of other resources than GPUs it says 0.
//!
//! Source: OpenCost `core/pkg/opencost/allocation_json.go`.

use serde_json::{Map, Value, json};

use super::{Grouping, UsageReport, UsageReportRow, six_decimals};

/// What OpenCost calls pods that have no such label.
const UNALLOCATED: &str = "__unallocated__";

/// Numbers of an allocation that Berth does not know.
const ZERO: [&str; 34] = [
    "cpuCores",
    "cpuCoreRequestAverage",
    "cpuCoreUsageAverage",
    "cpuCoreHours",
    "cpuCost",
    "cpuCostAdjustment",
    "cpuEfficiency",
    "gpuCost",
    "gpuCostAdjustment",
    "gpuEfficiency",
    "networkTransferBytes",
    "networkReceiveBytes",
    "networkCost",
    "networkCrossZoneCost",
    "networkCrossRegionCost",
    "networkInternetCost",
    "networkCostAdjustment",
    "loadBalancerCost",
    "loadBalancerCostAdjustment",
    "pvBytes",
    "pvByteHours",
    "pvCost",
    "pvCostAdjustment",
    "ramBytes",
    "ramByteRequestAverage",
    "ramByteUsageAverage",
    "ramByteHours",
    "ramCost",
    "ramCostAdjustment",
    "ramEfficiency",
    "externalCost",
    "sharedCost",
    "totalCost",
    "totalEfficiency",
];

/// The answer.
pub(super) fn allocations(report: &UsageReport) -> Value {
    let set: Map<String, Value> = report.usage.iter().map(|row| allocation(report, row)).collect();
    json!({"code": 200, "data": [set]})
}

/// A name, and the allocation of this name.
fn allocation(report: &UsageReport, row: &UsageReportRow) -> (String, Value) {
    let (name, properties) = named(&report.grouping, row);
    let hours = report.until.duration_since(report.since).as_secs_f64() / 3600.0;
    let [start, end] = [report.since, report.until].map(|time| format!("{time:.0}"));
    let gpu_hours = row.hours.gpus;
    let mut allocation = json!({
        "name": name,
        "properties": properties,
        "window": {"start": start, "end": end},
        "start": start,
        "end": end,
        "minutes": hours * 60.0,
        "gpuCount": six_decimals(gpu_hours / hours),
        "gpuHours": gpu_hours,
    });
    for number in ZERO {
        allocation[number] = json!(0);
    }
    allocation["pvs"] = Value::Null;
    allocation["rawAllocationOnly"] = Value::Null;
    (name, allocation)
}

/// As OpenCost names allocations that are added up by namespace, by namespace and controller, or by a label.
fn named(by: &Grouping, row: &UsageReportRow) -> (String, Value) {
    let text = |name: &Option<String>| name.clone().unwrap_or_default();
    let namespace = text(&row.namespace);
    match by {
        Grouping::Namespace => (namespace.clone(), json!({"namespace": namespace})),
        Grouping::Owner => {
            let (kind, name) = (text(&row.owner_kind).to_lowercase(), text(&row.owner_name));
            let called = format!("{namespace}/{kind}:{name}");
            let properties = if kind == "pod" {
                json!({"namespace": namespace, "pod": name})
            } else {
                json!({"namespace": namespace, "controllerKind": kind, "controller": name})
            };
            (called, properties)
        }
        Grouping::Label(key) => {
            let value = text(&row.value);
            if value.is_empty() {
                (UNALLOCATED.to_owned(), json!({}))
            } else {
                (value.clone(), json!({"labels": {key: value}}))
            }
        }
    }
}
