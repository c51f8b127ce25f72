//! What nodes and pods carry: registers and assignments that can't be read, shares without an assignment, cards with more users than they have room for.
//!
//! Read and summed by the binder's own code: they are listed to a scheduler that stands by, which decides nothing.

use std::collections::BTreeMap;

use super::{
    examination::Examination,
    finding::{PreflightFinding, called},
    gangs, rules,
};
use crate::{
    cluster::Reader,
    device::CardId,
    dialect::Unreadable,
    excerpt::listed,
    object::{Node, Pod, pod::DEFAULT_SCHEDULER},
    scheduling::{
        Event, NodeChange, NodeInfo, PodChange, PodInfo, Scheduler, Snapshot, Uid, finding::overcommitted,
    },
};

/// So many of a card's pods are named.
const MOST_HOLDERS: usize = 5;

/// What is wrong with them, nodes first.
pub fn findings(examination: &Examination<'_>) -> Vec<PreflightFinding> {
    let reader = examination.config.reader();
    let (mut findings, mut names) = (Vec::new(), BTreeMap::new());
    let (mut nodes, mut pods) = (Vec::new(), Vec::new());
    for node in &examination.seen.nodes {
        let (info, troubles) = reader.node(node);
        findings.extend(of_node(node, &info, &troubles, &reader));
        nodes.push(info);
    }
    if nodes.iter().all(|info| info.devices.offers.is_empty()) {
        let message = "no node has a list of cards that Berth can read: share pods would stay pending";
        findings.push(PreflightFinding::new(&rules::NO_CARDS, "nodes", message));
    }
    for pod in &examination.seen.pods {
        let (info, troubles) = reader.pod(pod);
        findings.extend(of_pod(examination, pod, &info, &troubles));
        names.insert(info.key.uid.clone(), info.key.to_string());
        pods.push(info);
    }
    let mut scheduler = Scheduler::standing_by(examination.config.scheduler_settings());
    scheduler.observe(Event::Pod(PodChange::Listed(pods.into_iter().collect())), examination.now);
    scheduler.observe(Event::Node(NodeChange::Listed(nodes)), examination.now);
    let snapshot = scheduler.snapshot();
    for state in snapshot.nodes() {
        let node = called("Node", "", &state.info.name);
        for (card, found) in overcommitted(&state.info, &state.usage) {
            let message = format!("{found}; pods: {}", holders(snapshot, &state.info, &card, &names));
            findings.push(PreflightFinding::new(&rules::CARD_OVERCOMMITTED, &node, message));
        }
    }
    findings
}

/// The pods that hold shares of a card, by either of its names.
fn holders(snapshot: &Snapshot, node: &NodeInfo, card: &CardId, names: &BTreeMap<Uid, String>) -> String {
    let on_node = snapshot.ledger().on_node(&node.name);
    let holding = on_node
        .filter(|(_, charge)| charge.shares().any(|share| node.devices.is_one_card(&share.card, card)));
    let holding: Vec<_> = holding.filter_map(|(uid, _)| names.get(uid)).collect();
    listed(&holding, MOST_HOLDERS)
}

fn of_node(node: &Node, info: &NodeInfo, troubles: &[Unreadable], reader: &Reader) -> Vec<PreflightFinding> {
    let object = called("Node", "", &info.name);
    let unreadable =
        |trouble: &Unreadable| PreflightFinding::new(&rules::UNREADABLE_NODE, &object, trouble.to_string());
    let mut findings: Vec<_> = troubles.iter().map(unreadable).collect();
    let asks = |name: &str| reader.dialects().mode_of(name).is_some();
    let mut advertised = node.allocatable().iter().filter(|(name, amount)| asks(name) && !amount.is_zero());
    if let (Some((name, amount)), true) = (advertised.next(), info.devices.offers.is_empty()) {
        let message = format!(
            "advertises {amount} of {name}, and no device plugin has registered its cards: Berth places no share there"
        );
        findings.push(PreflightFinding::new(&rules::NODE_WITHOUT_REGISTER, object, message));
    }
    findings
}

fn of_pod(
    examination: &Examination<'_>,
    pod: &Pod,
    info: &PodInfo,
    troubles: &[Unreadable],
) -> Vec<PreflightFinding> {
    let object = called("Pod", &info.key.namespace, &info.key.name);
    let unreadable = |trouble: &Unreadable| {
        PreflightFinding::new(&rules::UNREADABLE_ASSIGNMENT, &object, trouble.to_string())
    };
    let mut findings: Vec<_> = troubles.iter().map(unreadable).collect();
    if !examination.asks(pod) {
        return findings;
    }
    let bound = pod.spec.node_name.as_deref().is_some_and(|node| !node.is_empty());
    if let Some(message) = gangs::without_kind(examination, pod).filter(|_| !bound) {
        findings.push(PreflightFinding::new(&rules::GANG_WITHOUT_KIND, &object, message));
    }
    let scheduler = pod.spec.scheduler_name.as_deref().unwrap_or_default();
    let node = pod.spec.node_name.as_deref().filter(|node| !node.is_empty());
    let carries = info.holding.as_ref().is_some_and(|holding| !holding.allocations.is_empty());
    match node {
        Some(node) if !carries => {
            let message = format!(
                "is bound to {node} by {scheduler} and carries no assignment: Berth counts the card that it uses as free; \
                 let it end, or keep share pods off that node, before the switch"
            );
            findings.push(PreflightFinding::new(&rules::SHARE_WITHOUT_ASSIGNMENT, object, message));
        }
        None if scheduler != examination.config.scheduler_name => {
            let message = if scheduler == DEFAULT_SCHEDULER {
                format!(
                    "waits for {scheduler}, which always runs: Berth places no pod of that name, and renames a pod only when it is created; \
                     create it again once admission covers its namespace"
                )
            } else {
                format!(
                    "waits for {scheduler}: Berth places the pod once {scheduler} has stopped, if `adoptSchedulers` lists that name"
                )
            };
            findings.push(PreflightFinding::new(&rules::PENDING_POD, object, message));
        }
        Some(_) | None => {}
    }
    findings
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{cli::preflight::seen::Seen, config::Config};

    const REGISTER: &str =
        r#"[{"id":"GPU-a","count":2,"devmem":16384,"devcore":100,"type":"NVIDIA A100","health":true}]"#;

    fn node(name: &str, annotations: &Value) -> Value {
        json!({"kind": "Node", "metadata": {"name": name, "uid": name, "annotations": annotations},
            "status": {"allocatable": {"nvidia.com/gpu": "2"}}})
    }

    fn pod(name: &str, node: Option<&str>, assignment: Option<&str>) -> Value {
        let limits = json!({"nvidia.com/gpu": 1});
        let mut pod = json!({"kind": "Pod", "metadata": {"namespace": "team", "name": name, "uid": name, "annotations": {}},
            "spec": {"schedulerName": "hami-scheduler", "containers": [{"name": "c", "resources": {"limits": limits}}]}});
        if let Some(node) = node {
            pod["spec"]["nodeName"] = node.into();
        }
        if let Some(assignment) = assignment {
            pod["metadata"]["annotations"] = json!({
                "hami.io/vgpu-node": "n1", "hami.io/bind-phase": "success",
                "hami.io/vgpu-devices-to-allocate": assignment, "hami.io/vgpu-devices-allocated": assignment,
            });
        }
        pod
    }

    fn found(objects: Vec<Value>) -> Vec<(&'static str, String)> {
        told(objects).into_iter().map(|finding| (finding.rule, finding.object)).collect()
    }

    fn told(objects: Vec<Value>) -> Vec<PreflightFinding> {
        let mut seen = Seen::default();
        for object in objects {
            seen.take(object);
        }
        let config = Config::default();
        let examination = Examination::new(&seen, &config, "berth-system", jiff::Timestamp::UNIX_EPOCH);
        findings(&examination)
    }

    fn registered() -> Value {
        node("n1", &json!({"hami.io/node-nvidia-register": REGISTER}))
    }

    #[test]
    fn a_cluster_in_order_has_nothing_to_find() {
        let held = pod("p", Some("n1"), Some("GPU-a,NVIDIA,4000,30:;"));
        assert_eq!(found(vec![registered(), held]), []);
    }

    #[test]
    fn what_can_not_be_read_is_found_at_its_object() {
        let broken = node("n2", &json!({"hami.io/node-nvidia-register": "[{"}));
        let pod_n1 = pod("p", Some("n1"), Some("GPU-a,NVIDIA,many,30:;"));
        let expected =
            [("unreadable-node", "Node n2".to_owned()), ("unreadable-assignment", "Pod team/p".to_owned())];
        assert_eq!(found(vec![registered(), broken, pod_n1])[..2], expected);
    }

    #[test]
    fn a_share_that_nothing_accounts_for_is_found() {
        let found_in = found(vec![registered(), pod("bound", Some("n1"), None), pod("waits", None, None)]);
        let expected = [
            ("share-without-assignment", "Pod team/bound".to_owned()),
            ("pending-pod", "Pod team/waits".to_owned()),
        ];
        assert_eq!(found_in, expected);
        let ended = || {
            let mut pod = pod("ended", Some("n1"), None);
            pod["status"] = json!({"phase": "Succeeded"});
            pod
        };
        assert_eq!(found(vec![registered(), ended()]), []);
    }

    #[test]
    fn a_card_with_more_users_than_room_is_found() {
        let holds = |name: &str| pod(name, Some("n1"), Some("GPU-a,NVIDIA,9000,30:;"));
        assert_eq!(
            found(vec![registered(), holds("a"), holds("b")]),
            [("card-overcommitted", "Node n1".to_owned())]
        );
        let message = &told(vec![registered(), holds("a"), holds("b")])[0].message;
        assert!(message.ends_with("; pods: team/a, team/b"), "{message}");
    }

    #[test]
    fn a_pod_that_waits_for_kube_scheduler_is_not_promised_a_place() {
        let mut waits = pod("waits", None, None);
        waits["spec"]["schedulerName"] = "default-scheduler".into();
        let message = &told(vec![registered(), waits])[0].message;
        assert!(message.contains("create it again") && !message.contains("has stopped"), "{message}");
    }

    #[test]
    fn nodes_without_a_register_are_found() {
        let names: Vec<_> = found(vec![node("n1", &json!({}))]).into_iter().map(|(rule, _)| rule).collect();
        assert_eq!(names, ["node-without-register", "no-cards"]);
    }
}
