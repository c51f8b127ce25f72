//! The cluster of one comparison, as both sides get it: nodes with half of their devices held, and pods that wait.

use serde_json::{Value, json};

use super::objects::{self, Kind};

/// How large a cluster, how many pods wait, and what each claim asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cluster {
    pub(crate) nodes: usize,
    pub(crate) pods: usize,
    pub(crate) kind: Kind,
}

impl Cluster {
    /// Every object; pods name this scheduler.
    pub(crate) fn objects(&self, scheduler: &str) -> Vec<Value> {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": objects::NAMESPACE}});
        let mut all = vec![namespace, objects::class(self.kind)];
        for node in 0..self.nodes {
            all.extend([objects::node(node), objects::slice(node, self.kind)]);
            for place in 0..self.kind.room() / 2 {
                all.extend(self.standing(node, place, scheduler));
            }
        }
        for number in 0..self.pods {
            all.extend([claim(&name(number), self.kind), pod(&name(number), scheduler)]);
        }
        all
    }

    /// A pod that runs, and its claim.
    fn standing(&self, node: usize, place: usize, scheduler: &str) -> [Value; 2] {
        let name = format!("standing-{node}-{place}");
        let mut claim = claim(&name, self.kind);
        claim["status"] = objects::allocated((&name, &name), self.kind, (node, place));
        let mut pod = pod(&name, scheduler);
        pod["spec"]["nodeName"] = json!(objects::node_name(node));
        pod["status"]["phase"] = json!("Running");
        [claim, pod]
    }
}

impl std::fmt::Display for Cluster {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} nodes, {} pods, {}", self.nodes, self.pods, self.kind.name())
    }
}

/// The name, and the uid, of the pod of this number among those that wait.
pub(crate) fn name(number: usize) -> String {
    format!("waiting-{number}")
}

fn claim(name: &str, kind: Kind) -> Value {
    let mut claim = objects::claim((name, name), kind, "gpu");
    claim["metadata"]["resourceVersion"] = json!("1");
    claim
}

fn pod(name: &str, scheduler: &str) -> Value {
    let mut pod = objects::pod(name, scheduler);
    pod["metadata"]["uid"] = json!(name);
    pod["metadata"]["resourceVersion"] = json!("1");
    pod["status"] = json!({"phase": "Pending", "resourceClaimStatuses": objects::claim_statuses(name)});
    pod
}
