//! The nodes of a pool as a cluster of their own, in which the live binder's scheduler gives claims their devices: nothing but claims, the labels
//! of nodes and what pods ask of these decides there.

use std::sync::Arc;

use anyhow::{Result, ensure};
use jiff::Timestamp;

use super::pool::{MigrationPool, PoolNode};
use crate::{
    cluster::Reader,
    config::Config,
    dra::HeldDevices,
    object::{
        Metadata, Node, Pod, ResourceClaim,
        affinity::{NodeAffinity, NodeSelector, NodeSelectorTerm},
        node::NodeStatus,
        pod::{PodResourceClaim, PodSpec, PodStatus},
        requirement::Requirement,
        resource_claim::{AllocationResult, ResourceClaimSpec},
    },
    scheduling::{
        NodeName, PendingReason, Uid,
        decide::blame::Blame,
        model::claim_use::DeviceClaims,
        plugin::{Reason, dynamic_resources::ClaimRejection},
        scheduler::{Pace, Settings},
        world::{object::Object, resource_claims::ResourceClaims},
    },
    simulation::{ClusterLists, SimulatedCluster},
};

/// So many turns of the scheduler are allowed for one pod.
const TURNS: usize = 1_000;

/// So many pods may be on a node: of what nodes have, only devices count.
const MOST_PODS: &str = "1000000";

/// A pool in which claims are allocated.
#[derive(Debug)]
pub(super) struct PoolCluster {
    reader: Reader,
    cluster: SimulatedCluster,
    /// How many pods have been created.
    created: usize,
}

/// Where a pod may go.
#[derive(Clone, Copy, Debug)]
pub(super) enum Destination<'a> {
    /// To this node alone.
    Node(&'a PoolNode),
    /// To each node that the pod's node selector and required affinity admit.
    Selected,
}

/// Whether a pod that was placed stays.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stay {
    /// It does, with its devices.
    Placed,
    /// It does not: what would come of it is to be seen.
    Tried,
}

/// What a pod with a claim comes to.
#[derive(Debug)]
pub(super) enum PlacedClaim {
    /// It is bound to this node, with these devices.
    Given(NodeName, Box<AllocationResult>),
    /// It fits nowhere; with why, where devices can't be chosen for the claim.
    Refused(Option<String>),
}

/// A pod that was created for a claim.
struct CreatedPod {
    uid: Uid,
    claim: Arc<ResourceClaim>,
}

impl PoolCluster {
    /// The pool, in which these claims are allocated.
    pub(super) fn new(pool: &MigrationPool<'_>, claims: &[Arc<ResourceClaim>], config: &Config) -> Self {
        let reader = config.reader();
        let settings = Settings {
            device_resources: reader.device_resources(),
            pace: Pace::OneByOne,
            claims: DeviceClaims::Served,
            ..config.scheduler_settings()
        };
        let slices = pool.slices.iter().cloned().map(Object::ResourceSlice);
        let classes = pool.classes.iter().cloned().map(Object::DeviceClass);
        let claims = claims.iter().cloned().map(Object::ResourceClaim);
        let lists = ClusterLists {
            nodes: pool.nodes.iter().map(|pool_node| reader.node(&node(pool_node)).0).collect(),
            objects: slices.chain(classes).chain(claims).collect(),
            ..ClusterLists::default()
        };
        let cluster = SimulatedCluster::new(settings, lists, Timestamp::UNIX_EPOCH);
        Self { reader, cluster, created: 0 }
    }

    /// Creates the claim and the pod that uses it, and lets the scheduler place the pod. Both are deleted again if it fits nowhere, or is only tried.
    pub(super) fn place(
        &mut self,
        pod: &Pod,
        spec: &ResourceClaimSpec,
        (to, stay): (Destination<'_>, Stay),
    ) -> Result<PlacedClaim> {
        let created = self.create(pod, spec, to)?;
        let placed = self.placed(&created);
        if stay == Stay::Tried || matches!(placed, PlacedClaim::Refused(_)) {
            self.delete(&created);
        }
        Ok(placed)
    }

    fn create(&mut self, pod: &Pod, spec: &ResourceClaimSpec, to: Destination<'_>) -> Result<CreatedPod> {
        self.created += 1;
        // No object of the API has a capital in its name: it is not that of a claim that exists.
        let name = format!("Claim-{}", self.created);
        let claim = Arc::new(claim(&pod.metadata.namespace, &name, spec));
        let (pod, _) = self.reader.pod(&self.pod(pod, &name, to));
        let created = CreatedPod { uid: pod.key.uid.clone(), claim: claim.clone() };
        self.cluster.create(Object::ResourceClaim(claim));
        self.cluster.arrive(pod);
        for turn in 0.. {
            ensure!(turn < TURNS, "the scheduler has not come to an end after {TURNS} turns");
            if self.cluster.turn().is_empty() && !self.cluster.wait_for_queue() {
                break;
            }
        }
        Ok(created)
    }

    fn placed(&self, CreatedPod { uid, claim }: &CreatedPod) -> PlacedClaim {
        let holding = self.cluster.pod(uid).and_then(|pod| pod.holding.as_ref());
        let Metadata { namespace, name, .. } = &claim.metadata;
        match (holding, self.claims().allocation(namespace, name)) {
            (Some(holding), Some(given)) => PlacedClaim::Given(holding.node.clone(), Box::new(given.clone())),
            _ => PlacedClaim::Refused(self.undecidable(uid)),
        }
    }

    fn delete(&mut self, CreatedPod { uid, claim }: &CreatedPod) {
        self.cluster.end(uid);
        self.cluster.delete(&Object::ResourceClaim(claim.clone()));
    }

    /// What claims hold of the devices.
    pub(super) fn held(&self) -> &HeldDevices {
        self.claims().held()
    }

    fn claims(&self) -> &ResourceClaims {
        self.cluster.scheduler().snapshot().resource_claims()
    }

    /// Why no devices can be chosen for the claim of a pod that waits; `None`: they could, if there were some.
    fn undecidable(&self, pod: &Uid) -> Option<String> {
        let PendingReason::Fit(error) = self.cluster.scheduler().view().reason(pod)? else { return None };
        let Blame::Reasons(reasons, _) = error.blame() else { return None };
        reasons.iter().find_map(|reason| match reason {
            Reason::DynamicResources(ClaimRejection::Undecidable(error)) => Some(error.to_string()),
            _ => None,
        })
    }

    /// The pod as it would be created: with the claim, and without all else that it asks for.
    fn pod(&self, pod: &Pod, claim: &str, to: Destination<'_>) -> Pod {
        let Metadata { namespace, name, .. } = &pod.metadata;
        let metadata = Metadata {
            namespace: namespace.clone(),
            name: name.clone(),
            uid: format!("{claim}-of-pod"),
            ..Metadata::default()
        };
        let used = PodResourceClaim {
            name: "cards".into(),
            resource_claim_name: Some(claim.into()),
            ..PodResourceClaim::default()
        };
        let mut spec = PodSpec {
            scheduler_name: Some(self.reader.scheduler_name().to_owned()),
            resource_claims: vec![used],
            ..PodSpec::default()
        };
        let mut status = PodStatus::default();
        let required = match to {
            Destination::Node(node) => {
                // The nominated node is tried before any other is looked at.
                status.nominated_node_name = Some(node.name.clone());
                Some(named(&node.name))
            }
            Destination::Selected => {
                spec.node_selector.clone_from(&pod.spec.node_selector);
                pod.spec.affinity.node_affinity.as_ref().and_then(|affinity| affinity.required.clone())
            }
        };
        spec.affinity.node_affinity = Some(NodeAffinity { required, ..NodeAffinity::default() });
        Pod { metadata, spec, status }
    }
}

fn node(node: &PoolNode) -> Node {
    let metadata =
        Metadata { name: node.name.clone(), labels: Some(node.labels.clone()), ..Metadata::default() };
    let allocatable = [("pods".to_owned(), MOST_PODS.into())].into_iter().collect();
    let status = NodeStatus { allocatable: Some(allocatable), ..NodeStatus::default() };
    Node { metadata, status, ..Node::default() }
}

fn claim(namespace: &str, name: &str, spec: &ResourceClaimSpec) -> ResourceClaim {
    let metadata = Metadata {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: name.to_owned(),
        ..Metadata::default()
    };
    ResourceClaim { metadata, spec: spec.clone(), ..ResourceClaim::default() }
}

/// The node of this name.
fn named(node: &str) -> NodeSelector {
    let name = Requirement {
        key: "metadata.name".to_owned(),
        operator: "In".to_owned(),
        values: vec![node.to_owned()],
    };
    let term = NodeSelectorTerm { match_fields: vec![name], ..NodeSelectorTerm::default() };
    NodeSelector { node_selector_terms: vec![term] }
}
