//! The metrics of cards, pods, namespaces and quotas: values, labels and form.

use serde_json::json;

use crate::metrics::{
    machine::{Machine, bound, pod},
    promtool::Promtool,
    world::{cluster, cluster_with_devices, config, gpu_node, holder, lines, page},
};

#[tokio::test]
async fn what_is_given_away_shows_by_card_pod_namespace_and_quota() {
    let config = config("");
    let page = page(&cluster(&config), &config, "text/plain").await;
    let (a, b) = (
        r#"{node="n1",card="GPU-a",index="0",model="NVIDIA A100"}"#,
        r#"{node="n1",card="GPU-b",index="1",model="NVIDIA A100"}"#,
    );
    let mib = |mib: f64| mib * 1_048_576.0;
    let each = |name: &str, on_a: f64, on_b: f64| {
        assert_eq!(
            lines(&page, &format!("{name}{{")),
            [format!("{name}{a} {on_a:?}"), format!("{name}{b} {on_b:?}")]
        );
    };
    each("berth_card_memory_bytes", mib(16_000.0), mib(16_000.0));
    each("berth_card_memory_allocated_bytes", mib(6000.0), 0.0);
    each("berth_card_cores_ratio", 1.0, 1.0);
    each("berth_card_cores_allocated_ratio", 0.3, 0.0);
    each("berth_card_slots", 10.0, 10.0);
    each("berth_card_slots_allocated", 2.0, 0.0);
    each("berth_card_healthy", 1.0, 1.0);
    let mut memory = lines(&page, "berth_pod_memory_allocated_bytes");
    memory.sort_unstable();
    let of = |namespace: &str, pod: &str, value: f64| {
        format!(
            r#"berth_pod_memory_allocated_bytes{{namespace="{namespace}",pod="{pod}",node="n1",card="GPU-a",model="NVIDIA A100"}} {value:?}"#
        )
    };
    assert_eq!(memory, [of("default", "train", mib(4000.0)), of("team", "serve", mib(2000.0))]);
    assert_eq!(
        lines(&page, "berth_namespace_cores_allocated_ratio"),
        [
            r#"berth_namespace_cores_allocated_ratio{namespace="default",model="NVIDIA A100"} 0.3"#,
            r#"berth_namespace_cores_allocated_ratio{namespace="team",model="NVIDIA A100"} 0.0"#,
        ]
    );
    let quota = |name: &str| {
        let mut lines = lines(&page, name);
        lines.sort_unstable();
        lines.into_iter().map(|line| line.rsplit_once("resource=").unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        quota("berth_resource_quota_limit"),
        [r#""limits.nvidia.com/gpucores"} 100"#, r#""limits.nvidia.com/gpumem"} 8000"#]
    );
    assert_eq!(
        quota("berth_resource_quota_used"),
        [r#""limits.nvidia.com/gpucores"} 30"#, r#""limits.nvidia.com/gpumem"} 4000"#]
    );
    assert!(lines(&page, "hami_").is_empty(), "HAMi's names are asked for");
}

#[tokio::test]
async fn capacity_and_use_of_devices_show_by_type() {
    let config = config("");
    let page = page(&cluster_with_devices(&config), &config, "text/plain").await;
    let gpu = r#"{node="n2",type="gpu",index="3",device="GPU-c"}"#;
    let nic = r#"{node="n2",type="rdma",index="0",device="0000:01:00.0"}"#;
    let fpga = r#"{node="n2",type="fpga",index="0",device="f\"\n"}"#;
    let each = |name: &str, expected: &[(&str, f64)]| {
        let expected: Vec<_> =
            expected.iter().map(|(labels, value)| format!("{name}{labels} {value:?}")).collect();
        assert_eq!(lines(&page, &format!("{name}{{")), expected);
    };
    each("berth_device_capacity_ratio", &[(gpu, 1.0), (nic, 1.0), (fpga, 1.0)]);
    each("berth_device_allocated_ratio", &[(gpu, 0.5), (nic, 0.01), (fpga, 0.0)]);
    each("berth_device_memory_bytes", &[(gpu, 17_179_869_184.0)]);
    each("berth_device_memory_allocated_bytes", &[(gpu, 8_589_934_592.0)]);
    each("berth_device_virtual_functions", &[(nic, 2.0)]);
    each("berth_device_virtual_functions_allocated", &[(nic, 1.0)]);
    each("berth_device_healthy", &[(gpu, 1.0), (nic, 1.0), (fpga, 0.0)]);
}

#[tokio::test]
async fn gpus_show_in_parts_with_those_that_are_of_no_use() {
    let config = config("");
    let page = page(&cluster(&config), &config, "text/plain").await;
    let one = |name: &str, value: f64| {
        assert_eq!(
            lines(&page, &format!("{name}{{")),
            [format!(r#"{name}{{model="NVIDIA A100"}} {value:?}"#)]
        );
    };
    one("berth_gpus_capacity", 2.0);
    one("berth_gpus_allocated", 0.375);
    one("berth_gpus_free", 1.625);
    let pods: Vec<_> =
        [("0.125", 5 + 8), ("0.25", 2 + 4), ("0.5", 1 + 2), ("1", 1), ("2", 0), ("4", 0), ("8", 0)]
            .map(|(cards, pods)| {
                format!(r#"berth_gpus_fitting_pods{{model="NVIDIA A100",cards="{cards}"}} {pods}"#)
            })
            .into();
    assert_eq!(lines(&page, "berth_gpus_fitting_pods{"), pods);
    assert_eq!(stranded(&page), ["model 0.0", "slots 0.0", "partlyUsed 0.0", "cpu 0.0", "memory 0.0"]);
}

/// Reasons and values of what is stranded.
fn stranded(page: &str) -> Vec<String> {
    let lines = lines(page, "berth_gpus_stranded{");
    lines.iter().map(|line| line.rsplit_once("reason=").unwrap().1.replace(['"', '}'], "")).collect()
}

#[tokio::test]
async fn cards_of_a_node_without_cpu_are_stranded_and_fragmented() {
    let config = config("");
    let filler = bound(pod("filler", &json!({"cpu": "64"})), "n1", json!({}));
    let mut machine = Machine::new(&config, &[gpu_node("n1", &["GPU-a", "GPU-b"], "A100")], &[filler]);
    machine.run();
    let page = page(&machine, &config, "text/plain").await;
    assert_eq!(stranded(&page), ["model 0.0", "slots 0.0", "partlyUsed 0.0", "cpu 2.0", "memory 0.0"]);
    assert_eq!(lines(&page, "berth_gpus_fragmented{"), [r#"berth_gpus_fragmented{model="A100"} 2.0"#]);
    assert!(page.contains(r#"berth_gpus_fitting_pods{model="A100",cards="2"} 1"#), "by the cards alone");
}

#[tokio::test]
async fn series_of_pods_can_be_left_out() {
    let config = config("metrics: {pods: false}");
    let page = page(&cluster(&config), &config, "text/plain").await;
    assert!(lines(&page, "berth_pod_").is_empty());
    assert_eq!(lines(&page, "berth_namespace_slots_allocated{").len(), 2);
}

#[tokio::test]
async fn why_pods_wait_is_a_metric_by_plugin_and_reason() {
    let config = config("");
    let page = page(&cluster(&config), &config, "text/plain").await;
    let waiting =
        r#"berth_scheduler_unschedulable_pods{plugin="ResourceQuota",reason="ResourceQuotaExceeded"} 2"#;
    assert_eq!(lines(&page, "berth_scheduler_unschedulable_pods{"), [waiting]);
    let oldest = lines(&page, "berth_scheduler_oldest_unschedulable_pod_timestamp_seconds{");
    let at: jiff::Timestamp = "2036-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(oldest.len(), 1, "{page}");
    assert!(
        oldest[0].ends_with(&format!("reason=\"ResourceQuotaExceeded\"}} {}", at.as_second())),
        "{oldest:?}"
    );
    assert_eq!(lines(&page, "berth_scheduler_unplaceable_pods "), ["berth_scheduler_unplaceable_pods 0"]);
}

#[tokio::test]
async fn promtool_finds_nothing_to_say_of_the_page_whatever_nodes_and_pods_are_called() {
    let Some(promtool) = Promtool::find() else { return };
    let config = config("");
    let model = format!("a \"quoted\\\" model\nberth_card_slots 7 {}", "x".repeat(10_000));
    let nodes = [gpu_node("n1", &["GPU-a\"} 1\n"], &model), gpu_node("n2", &["GPU-c"], "ü")];
    let mut machine = Machine::new(&config, &nodes, &[holder("default", "p", "n2", "GPU-c,NVIDIA,1,1:;")]);
    machine.show_pod(&holder("default", "lost", "nowhere", "GPU-z,NVIDIA,5,5:;"));
    machine.run();
    let classic = page(&machine, &config, "text/plain").await;
    assert!(lines(&classic, "berth_card_slots ").is_empty(), "no name forges a line");
    assert!(classic.lines().all(|line| line.len() < 4000));
    promtool.check_metrics(&classic);
    let lost = r#"pod="lost",node="nowhere",card="GPU-z",model=""} 5242880.0"#;
    assert!(classic.contains(lost), "a share of a card that is not there has no model");
    let open = page(&machine, &config, "application/openmetrics-text; version=1.0.0").await;
    assert!(
        open.ends_with("\n# EOF\n")
            && json!(open).as_str().unwrap().contains("# TYPE berth_scheduler_drift counter")
    );
}
