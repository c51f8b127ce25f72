//! Where the claims of a pool's pods would be allocated: on the pod's own node, in the order in which the pods were started; then where the
//! scheduler places the pods that wait.

use anyhow::Result;

use crate::{
    config::Config,
    device::{PodRequest, ShareRequest},
    dialect::{
        Dialect, Dialects, Unreadable,
        claim::{Target, Translation, Unexpressed, translate},
    },
    object::{
        Pod,
        resource_claim::{AllocationResult, ResourceClaimSpec},
    },
};

use super::{
    cluster::{Destination, PlacedClaim, PoolCluster, Stay},
    input::MigrationInput,
    objects::PlanObjects,
    pool::{MigrationPool, PoolNode},
    refusal::{self, LeftOnNode},
    report::{ContainerRow, MigrationPlan, MigrationRow},
};

/// A plan under way.
struct MigrationRun<'a> {
    pool: &'a MigrationPool<'a>,
    dialects: &'a Dialects,
    cluster: PoolCluster,
    /// The pool without a claim.
    empty: PoolCluster,
    objects: PlanObjects,
}

/// What a pod asks for, and in which dialect; an error where it asks for devices that are no shares of cards, or where that can't be read.
type Asked<'a> = Result<(&'a dyn Dialect, PodRequest), Vec<Unexpressed>>;

/// A claim as the nodes of a pod make it necessary, and what comes of it.
struct ClaimAttempt<'a> {
    /// Those for which it is the same.
    nodes: Vec<&'a PoolNode>,
    translation: Translation,
    /// On which node it is given what.
    given: Option<(&'a PoolNode, Box<AllocationResult>)>,
}

/// Of so many nodes a pod that waits is told why it does not fit there.
const MOST_TOLD: usize = 3;

/// The plan for all pods of the pool: those that run there, then those that wait and may go there.
pub(super) fn place(
    input: &MigrationInput<'_>,
    pool: &MigrationPool<'_>,
    config: &Config,
) -> Result<MigrationPlan> {
    let (cluster, empty) =
        (PoolCluster::new(pool, &pool.claims, config), PoolCluster::new(pool, &[], config));
    let dialects = &config.dialects();
    let mut run = MigrationRun { pool, dialects, cluster, empty, objects: PlanObjects::default() };
    let mut pods: Vec<&Pod> = input.pods.values().collect();
    let started = |pod: &Pod| pod.status.start_time.or(pod.metadata.creation_timestamp);
    pods.sort_by_key(|pod| (!is_bound(pod), started(pod).is_none(), started(pod)));
    let rows = pods.into_iter().filter_map(|pod| run.pod(pod).transpose()).collect::<Result<_>>()?;
    Ok(MigrationPlan::of(pool, run.cluster.held(), rows, run.objects.0))
}

fn is_bound(pod: &Pod) -> bool {
    pod.spec.node_name.as_ref().is_some_and(|node| !node.is_empty())
}

impl<'a> MigrationRun<'a> {
    /// The pod's row; `None`: it asks for no devices, or is not of the pool.
    fn pod(&mut self, pod: &Pod) -> Result<Option<MigrationRow>> {
        let nodes = self.nodes(pod);
        let Some(first) = nodes.first() else { return Ok(None) };
        let row = MigrationRow::new(pod, is_bound(pod).then(|| first.name.clone()));
        let (dialect, request) = match self.asks(pod) {
            None => return Ok(None),
            Some(Ok(asked)) => asked,
            Some(Err(reasons)) => return Ok(Some(row.inexpressible(reasons))),
        };
        let row = row.asking(dialect, pod, shares(&request));
        let mut attempts = self.attempts(pod, (dialect, &request), &nodes);
        for attempt in &mut attempts {
            self.give(pod, attempt, nodes.len())?;
            if attempt.given.is_some() {
                break;
            }
        }
        self.told(row, pod, &nodes, attempts).map(Some)
    }

    /// What the attempts come to. The claim is that which is given devices, else the first that there is.
    fn told(
        &mut self,
        row: MigrationRow,
        pod: &Pod,
        nodes: &[&'a PoolNode],
        mut attempts: Vec<ClaimAttempt<'a>>,
    ) -> Result<MigrationRow> {
        let fits = attempts.iter().position(|attempt| attempt.given.is_some());
        let told = fits.or_else(|| attempts.iter().position(|attempt| attempt.translation.spec.is_some()));
        let refusals = if fits.is_none() { self.refusals(pod, nodes, &attempts)? } else { String::new() };
        let ClaimAttempt { translation, given, .. } = attempts.swap_remove(told.unwrap_or(0));
        let Some(spec) = translation.spec else { return Ok(row.inexpressible(translation.unexpressed)) };
        let containers = containers(pod, &spec);
        let row = row.claiming(self.objects.of(pod, spec), containers, translation.unexpressed);
        Ok(match given {
            Some((node, allocation)) => row.given(node, &allocation),
            None => row.refused(refusals),
        })
    }

    /// The pod's own node, or those that it may go to: by its node selector and its required node affinity.
    fn nodes(&self, pod: &Pod) -> Vec<&'a PoolNode> {
        if let Some(node) = pod.spec.node_name.as_deref().filter(|node| !node.is_empty()) {
            return self.pool.node(node).into_iter().collect();
        }
        let affinity =
            pod.spec.affinity.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
        let may = |node: &&PoolNode| {
            let mut labels = pod.spec.node_selector.iter().flatten();
            labels.all(|(key, value)| node.labels.get(key) == Some(value))
                && affinity.is_none_or(|affinity| node.reached().matches(affinity))
        };
        self.pool.nodes.iter().filter(may).collect()
    }

    /// `None`: no devices.
    fn asks(&self, pod: &Pod) -> Option<Asked<'a>> {
        match self.dialects.request(pod) {
            Ok(Some((dialect, request))) => return Some(Ok((&**dialect, request))),
            Err(troubles) => return Some(Err(troubles.into_iter().map(unreadable).collect())),
            Ok(None) => {}
        }
        let by_type = |dialect: &&dyn Dialect| !matches!(dialect.joint_request(pod), Ok(None));
        let dialect = self.dialects.asked(pod).into_iter().map(|dialect| &**dialect).find(by_type)?;
        let reason = format!("requests devices of {}, for which no claim can be planned", dialect.name());
        Some(Err(vec![Unexpressed { field: "spec".to_owned(), reason }]))
    }

    /// The claims that the pod would need on these nodes, each once: a part of a card's memory may be another amount on another node.
    fn attempts(
        &self,
        pod: &Pod,
        (dialect, request): (&dyn Dialect, &PodRequest),
        nodes: &[&'a PoolNode],
    ) -> Vec<ClaimAttempt<'a>> {
        let mut attempts: Vec<ClaimAttempt<'a>> = Vec::new();
        for node in nodes {
            let target = Target {
                class: self.pool.class.name,
                driver: Some(self.pool.class.driver),
                card_memory: node.card_memory(&request.selection),
            };
            let translation = translate(dialect, pod, request, &target);
            match attempts.iter_mut().find(|attempt| attempt.translation == translation) {
                Some(known) => known.nodes.push(node),
                None => attempts.push(ClaimAttempt { nodes: vec![node], translation, given: None }),
            }
        }
        attempts
    }

    /// Lets the scheduler allocate the claim beside those before it.
    fn give(&mut self, pod: &Pod, attempt: &mut ClaimAttempt<'a>, nodes: usize) -> Result<()> {
        let Some(spec) = &attempt.translation.spec else { return Ok(()) };
        let to = |node| Destination::Node(node);
        let destinations: Vec<_> = if !is_bound(pod) && attempt.nodes.len() == nodes {
            vec![Destination::Selected]
        } else {
            attempt.nodes.iter().copied().map(to).collect()
        };
        for to in destinations {
            if let PlacedClaim::Given(node, allocation) = self.cluster.place(pod, spec, (to, Stay::Placed))? {
                attempt.given = self.pool.node(&node).map(|node| (node, allocation));
                return Ok(());
            }
        }
        Ok(())
    }

    /// Why the pod's node refuses its claim, or each node that it may go to.
    fn refusals(
        &mut self,
        pod: &Pod,
        nodes: &[&'a PoolNode],
        attempts: &[ClaimAttempt<'a>],
    ) -> Result<String> {
        let mut told = Vec::new();
        for node in nodes.iter().take(MOST_TOLD) {
            let of_node =
                |attempt: &&ClaimAttempt<'_>| attempt.nodes.iter().any(|one| std::ptr::eq(*one, *node));
            let Some(attempt) = attempts.iter().find(of_node) else { continue };
            let why = self.refusal(pod, node, &attempt.translation)?;
            if is_bound(pod) {
                return Ok(why);
            }
            told.push(format!("{}: {why}", node.name));
        }
        if let Some(more) = nodes.len().checked_sub(MOST_TOLD).filter(|more| *more > 0) {
            told.push(format!("and {more} more nodes"));
        }
        Ok(told.join("; "))
    }

    fn refusal(&mut self, pod: &Pod, node: &PoolNode, translation: &Translation) -> Result<String> {
        let Some(spec) = &translation.spec else { return Ok(unexpressed(&translation.unexpressed)) };
        let alone = match self.empty.place(pod, spec, (Destination::Node(node), Stay::Tried))? {
            PlacedClaim::Refused(Some(why)) => return Ok(why),
            PlacedClaim::Refused(None) => false,
            PlacedClaim::Given(..) => true,
        };
        let left = LeftOnNode { held: self.cluster.held(), alone };
        Ok(refusal::of(spec, node, self.pool, &left))
    }
}

fn unexpressed(reasons: &[Unexpressed]) -> String {
    reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn unreadable(trouble: Unreadable) -> Unexpressed {
    Unexpressed { field: trouble.field, reason: trouble.message }
}

/// How many shares of cards the pod asks for.
fn shares(request: &PodRequest) -> u32 {
    let shares = request.containers.iter().filter_map(|container| container.share);
    shares.map(|share: ShareRequest| share.cards.get()).sum()
}

/// Which request of the claim each container would use: requests are named by the container's place.
fn containers(pod: &Pod, spec: &ResourceClaimSpec) -> Vec<ContainerRow> {
    let used = |(at, (_, container)): (usize, (String, &crate::object::Container))| {
        let prefix = format!("container-{at}-");
        let request = spec.devices.requests.iter().find(|request| request.name.starts_with(&prefix))?;
        Some(ContainerRow { name: container.name.to_string(), request: request.name.clone() })
    };
    pod.containers().enumerate().filter_map(used).collect()
}
