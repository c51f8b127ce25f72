//! Volcano's time division: windows, which nodes a pod may use and prefers, and how many pods are evicted when a window has closed.

use std::collections::BTreeMap;

use berth::{
    cluster::read::group::pod_group,
    config::Config,
    object::{Node, Pod},
    scheduling::{
        PodInfo, Snapshot,
        decide::{Filters, evaluation::Evaluation, verdicts::Verdicts},
        model::{kind::PodGroupKind, name::NodeName, tdm::Window},
        plan::eviction,
        plugin::{Plugin, pod_counts::PodCounts},
    },
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    table::{Case, Table, Verdict},
    upstream::{list, text},
};

#[test]
fn volcano_tdm_unit() {
    let table = Table { file: "volcano_tdm_unit.json", differences: &[], not_served: &[] };
    table.check(judge);
}

fn judge(case: &Case) -> Verdict {
    let input = &case.input;
    match case.test.as_str() {
        "Test_parseRevocableZone" => {
            let window = text(input, "rz").parse::<Window>();
            let found = json!({
                "delta": window.as_ref().map_or(0, |window| window.length().as_secs()),
                "err": window.is_err(),
            });
            Verdict::of(&found, &json!({"delta": input["delta"], "err": input["err"]}))
        }
        "Test_TDM" => {
            // The table holds no arguments: rz1 is open all day there, and rz2 for the first minute.
            let config = config(&json!({
                "tdm.revocable-zone.rz1": "0:00-0:00", "tdm.revocable-zone.rz2": "0:00-0:01",
            }));
            let cluster = &input["TestCommonStruct"];
            let scores = scores(&config, list(&cluster["Nodes"]), &list(&cluster["Pods"])[0]);
            let expected = list_of_scores(&input["scoreExpected"]);
            Verdict::of(&scores, &expected)
        }
        "Test_TDM_victimsFn" => {
            let found = victims(&config(&input["args"]), &input["TestCommonStruct"]);
            Verdict::of(&json!(found), &input["want"])
        }
        other => panic!("no adapter for {other}"),
    }
}

/// Settings with these arguments.
fn config(arguments: &Value) -> Config {
    let file = json!({"dialects": {"volcano": {"arguments": arguments}}});
    Config::parse(&file.to_string(), "berth.yaml").unwrap().0
}

/// Noon, at which the tables' short windows are closed.
fn noon() -> Timestamp {
    "2026-11-22T12:00:00Z".parse().unwrap()
}

fn snapshot(config: &Config, nodes: &[Value]) -> Snapshot {
    let reader = config.reader();
    let mut snapshot =
        Snapshot::new(reader.device_resources(), config.plugin_arguments(), config.revocable_zones());
    snapshot.set_now(noon());
    for node in nodes {
        // The tables' nodes have no card, and their pods ask for none.
        let mut node = node.clone();
        let register = "GPU-a,10,16000,NVIDIA,true,hami-core:";
        node["metadata"]["annotations"]["volcano.sh/node-vgpu-register"] = json!(register);
        snapshot.set_node(reader.node(&serde_json::from_value::<Node>(node).unwrap()).0);
    }
    snapshot
}

/// The nodes that pass, each with the score of time division; a pod that it has no score for finds every node alike.
fn scores(config: &Config, nodes: &[Value], pod: &Value) -> BTreeMap<String, i64> {
    let snapshot = snapshot(config, nodes);
    let mut pod = pod.clone();
    pod["spec"]["schedulerName"] = json!("berth");
    pod["spec"]["containers"][0]["resources"]["limits"] = json!({"volcano.sh/vgpu-number": "1"});
    let info = config.reader().pod(&serde_json::from_value::<Pod>(pod).unwrap()).0;
    let demand = info.demand().unwrap();
    let mut counts = PodCounts::default();
    let filters = Filters::prepare(&demand, snapshot.world(), &mut counts);
    let weights = config.scheduling.score_weights();
    let verdicts = Verdicts::new(&demand.ask, snapshot.world(), weights);
    let evaluation = Evaluation::of(filters, &verdicts, &mut counts, weights);
    let of = |scores: berth::scheduling::plugin::score::Scores| {
        scores.by_plugin().find(|(plugin, _)| *plugin == Plugin::Tdm).map_or(0.0, |(_, score)| score)
    };
    #[expect(clippy::cast_possible_truncation, reason = "the plugin's scores are whole")]
    let whole = |score: f64| score as i64;
    let mut judged = evaluation.judge_all();
    let nodes = evaluation.nodes(&mut judged).into_iter();
    nodes.filter_map(|(node, scores)| Some((node.info.name.to_string(), whole(of(scores.ok()?))))).collect()
}

/// The scores of the table's only pod; the nodes that pass are those that have one.
fn list_of_scores(expected: &Value) -> BTreeMap<String, i64> {
    let pods = expected.as_object().unwrap();
    let of_pod = pods.values().next().unwrap().as_object().unwrap();
    of_pod.iter().map(|(node, score)| (node.clone(), score.as_i64().unwrap())).collect()
}

fn victims(config: &Config, cluster: &Value) -> usize {
    let mut snapshot = snapshot(config, list(&cluster["Nodes"]));
    for group in list(&cluster["PodGroups"]) {
        snapshot
            .set_object(pod_group(PodGroupKind::Volcano, &serde_json::from_value(group.clone()).unwrap()));
    }
    let reader = config.reader();
    let read = |pod: &Value| reader.pod(&serde_json::from_value::<Pod>(pod.clone()).unwrap()).0;
    let pods: Vec<PodInfo> = list(&cluster["Pods"]).iter().map(read).collect();
    let zone = |node: &NodeName| snapshot.node(node)?.zone.clone();
    eviction::round(pods.iter(), zone, snapshot.objects(), |_| false).evictions.len()
}
