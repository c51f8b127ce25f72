//! HAMi's own dashboard on our exposition: every query of it, by Prometheus' engine.
//!
//! Source of the queries: HAMi `dashboards/hami-vgpu-dashboard.json` at 96207fc (6 August 2026), its variables `$node` and `$namespace` as Grafana
//! fills them in for "All".

use crate::metrics::{
    promtool::{Promtool, Query, steady},
    world::{HAMI, cluster, config, lines, page, samples},
};

const MIB: f64 = 1_048_576.0;

/// What the agent on the node exports (`cmd/vGPUmonitor/metrics.go`), which stays as it is.
const AGENT: [(&str, &str); 5] = [
    (
        r#"hami_host_gpu_memory_used_bytes{node="n1",device_index="0",device_uuid="GPU-a",device_type="NVIDIA A100",zone="vGPU"}"#,
        "5000",
    ),
    (
        r#"hami_host_gpu_utilization_ratio{node="n1",device_index="0",device_uuid="GPU-a",device_type="NVIDIA A100",zone="vGPU"}"#,
        "40",
    ),
    (
        r#"hami_vgpu_memory_used_bytes{namespace="default",pod="train",container="main",vdevice_index="0",device_uuid="GPU-a",zone="vGPU"}"#,
        "50",
    ),
    (
        r#"hami_vgpu_memory_limit_bytes{namespace="default",pod="train",container="main",vdevice_index="0",device_uuid="GPU-a",zone="vGPU"}"#,
        "200",
    ),
    (
        r#"hami_container_device_utilization_ratio{namespace="default",pod="train",container="main",vdevice_index="0",device_uuid="GPU-a",zone="vGPU"}"#,
        "60",
    ),
];

fn query(expr: &str, answer: &[(&str, f64)]) -> Query {
    let expr = expr.replace("$node", ".*").replace("$namespace", ".*");
    Query { expr, answer: answer.iter().map(|(labels, value)| ((*labels).to_owned(), *value)).collect() }
}

/// Every query of the dashboard with its answer.
fn queries() -> Vec<Query> {
    let card = |name: &str, index: u32, uuid: &str| {
        format!(
            r#"{name}{{node="n1",device_uuid="{uuid}",device_index="{index}",device_type="NVIDIA A100",zone="vGPU"}}"#
        )
    };
    let by_card = |name: &str, on_a: f64, on_b: f64| {
        let (a, b) = (card(name, 0, "GPU-a"), card(name, 1, "GPU-b"));
        query(&format!(r#"{name}{{node=~"$node"}}"#), &[(&a, on_a), (&b, on_b)])
    };
    let agent = |at: usize, value: f64| (AGENT[at].0, value);
    let container = r#"{namespace="default",pod="train",container="main",vdevice_index="0",device_uuid="GPU-a",zone="vGPU"}"#;
    vec![
        query(r#"count(hami_gpu_memory_limit_bytes{node=~"$node"})"#, &[("{}", 2.0)]),
        query(r#"sum(hami_gpu_memory_limit_bytes{node=~"$node"})"#, &[("{}", 32_000.0 * MIB)]),
        query(r#"sum(hami_gpu_memory_allocated_bytes{node=~"$node"})"#, &[("{}", 6000.0 * MIB)]),
        query(
            r#"100 * sum(hami_gpu_memory_allocated_bytes{node=~"$node"}) / sum(hami_gpu_memory_limit_bytes{node=~"$node"})"#,
            &[("{}", 18.75)],
        ),
        query(r#"sum(hami_gpu_shared_count{node=~"$node"})"#, &[("{}", 2.0)]),
        query(
            r#"hami_host_gpu_memory_used_bytes and on (device_uuid) hami_gpu_memory_limit_bytes{node=~"$node"}"#,
            &[agent(0, 5000.0)],
        ),
        query(
            r#"hami_host_gpu_utilization_ratio and on (device_uuid) hami_gpu_memory_limit_bytes{node=~"$node"}"#,
            &[agent(1, 40.0)],
        ),
        query(
            r#"sum by (node) (hami_gpu_memory_allocated_bytes{node=~"$node"})"#,
            &[(r#"{node="n1"}"#, 6000.0 * MIB)],
        ),
        query(
            r#"sum by (node) (hami_gpu_memory_limit_bytes{node=~"$node"})"#,
            &[(r#"{node="n1"}"#, 32_000.0 * MIB)],
        ),
        by_card("hami_node_gpu_memory_allocated_ratio", 0.375, 0.0),
        by_card("hami_gpu_core_allocated_ratio", 30.0, 0.0),
        by_card("hami_gpu_shared_count", 2.0, 0.0),
        query(r#"hami_vgpu_memory_used_bytes{namespace=~"$namespace"}"#, &[agent(2, 50.0)]),
        query(r#"hami_vgpu_memory_limit_bytes{namespace=~"$namespace"}"#, &[agent(3, 200.0)]),
        query(r#"hami_container_device_utilization_ratio{namespace=~"$namespace"}"#, &[agent(4, 60.0)]),
        query(
            r#"100 * hami_vgpu_memory_used_bytes{namespace=~"$namespace"} / hami_vgpu_memory_limit_bytes{namespace=~"$namespace"}"#,
            &[(container, 25.0)],
        ),
        query(r#"topk(10, hami_vgpu_memory_used_bytes{namespace=~"$namespace"})"#, &[agent(2, 50.0)]),
    ]
}

#[tokio::test]
async fn every_query_of_hamis_dashboard_is_answered_as_by_hami() {
    let Some(promtool) = Promtool::find() else { return };
    let config = config(HAMI);
    let page = page(&cluster(&config), &config, "text/plain").await;
    let ours = samples(&page).into_iter().filter(|(series, _)| series.starts_with("hami_"));
    let samples: Vec<_> = ours.chain(AGENT).map(|(series, value)| steady(series, value)).collect();
    promtool.evaluate(&samples, None, &queries());
}

#[tokio::test]
async fn names_and_labels_are_those_of_hamis_scheduler() {
    let config = config(HAMI);
    let page = page(&cluster(&config), &config, "text/plain").await;
    let form = |series: &str| {
        let (name, labels) = series.trim_end_matches('}').split_once('{').unwrap();
        let mut keys: Vec<_> = labels.split("\",").map(|label| label.split_once('=').unwrap().0).collect();
        keys.sort_unstable();
        format!("{name} {}", keys.join(" "))
    };
    let mut found: Vec<_> = samples(&page)
        .into_iter()
        .filter(|(series, _)| series.starts_with("hami_"))
        .map(|(series, _)| form(series))
        .collect();
    found.sort();
    found.dedup();
    let expected = [
        "hami_build_info build_date compiler go_version platform revision version",
        "hami_gpu_core_allocated_ratio device_index device_type device_uuid node zone",
        "hami_gpu_core_limit_ratio device_index device_type device_uuid node zone",
        "hami_gpu_memory_allocated_bytes device_cores device_index device_type device_uuid node zone",
        "hami_gpu_memory_limit_bytes device_index device_type device_uuid node zone",
        "hami_gpu_shared_count device_index device_type device_uuid node zone",
        "hami_node_gpu_memory_allocated_ratio device_index device_type device_uuid node zone",
        "hami_node_gpu_overview device_cores device_index device_memory_limit device_type device_uuid node zone",
        "hami_resource_quota_limit namespace quota_name zone",
        "hami_resource_quota_used limit namespace quota_name zone",
        "hami_vgpu_core_allocated_ratio container_index device_uuid namespace node pod zone",
        "hami_vgpu_memory_allocated_bytes container_index device_uuid namespace node pod zone",
    ];
    assert_eq!(found, expected);
    let quotas = lines(&page, "hami_resource_quota_used");
    assert_eq!(
        quotas,
        [
            r#"hami_resource_quota_used{zone="vGPU",namespace="default",quota_name="nvidia.com/gpucores",limit="100"} 30"#,
            r#"hami_resource_quota_used{zone="vGPU",namespace="default",quota_name="nvidia.com/gpumem",limit="8000"} 4000"#,
            r#"hami_resource_quota_used{zone="vGPU",namespace="team",quota_name="nvidia.com/gpucores",limit="0"} 0"#,
            r#"hami_resource_quota_used{zone="vGPU",namespace="team",quota_name="nvidia.com/gpumem",limit="0"} 2000"#,
        ]
    );
    assert_eq!(lines(&page, "hami_resource_quota_limit{").len(), 2, "no limit where there is no quota");
}

#[tokio::test]
async fn the_names_of_legacy_metrics_are_exported_with_the_same_values() {
    let config = config(HAMI);
    let page = page(&cluster(&config), &config, "text/plain").await;
    let card = |name: &str, uuid: &str, index: u32, rest: &str| {
        format!(r#"{name}{{zone="vGPU",nodeid="n1",deviceuuid="{uuid}",deviceidx="{index}"{rest}}}"#)
    };
    let kind = r#",devicetype="NVIDIA A100""#;
    let cores = r#",devicetype="NVIDIA A100",devicecores="100""#;
    let size = r#",devicetype="NVIDIA A100",devicecores="100",devicememorylimit="16000""#;
    for (name, rest, on_a, on_b) in [
        ("GPUDeviceMemoryLimit", kind, 16_000.0 * MIB, 16_000.0 * MIB),
        ("GPUDeviceCoreLimit", kind, 100.0, 100.0),
        ("GPUDeviceMemoryAllocated", cores, 6000.0 * MIB, 0.0),
        ("GPUDeviceSharedNum", kind, 2.0, 0.0),
        ("GPUDeviceCoreAllocated", kind, 30.0, 0.0),
        ("nodeGPUOverview", size, 6000.0 * MIB, 0.0),
        ("nodeGPUMemoryPercentage", "", 0.375, 0.0),
    ] {
        let expected = [("GPU-a", 0, on_a), ("GPU-b", 1, on_b)];
        let expected =
            expected.map(|(uuid, index, value)| format!("{} {value:?}", card(name, uuid, index, rest)));
        assert_eq!(lines(&page, &format!("{name}{{")), expected);
    }
    let train = r#"{zone="vGPU",podnamespace="default",nodename="n1",podname="train",containeridx="0",deviceuuid="GPU-a"}"#;
    for (name, value) in [("vGPUMemoryAllocated", 4000.0 * MIB), ("vGPUCoreAllocated", 30.0)] {
        let held = lines(&page, &format!("{name}{{"));
        assert!(held.contains(&&*format!("{name}{train} {value:?}")), "{held:?}");
        assert_eq!(held.len(), 2, "one for each pod");
    }
    let quota =
        r#"QuotaUsed{zone="vGPU",quotanamespace="default",quotaName="nvidia.com/gpumem",limit="8000"} 4000"#;
    assert!(lines(&page, "QuotaUsed{").contains(&quota), "{page}");
}
