//! Where the claims of a pool's pods would be allocated: on the pod's own node, in the order in which the pods were started.

use crate::{
    device::{PodRequest, ShareRequest},
    dialect::{
        Dialect, Dialects, Unreadable,
        claim::{Target, Translation, Unexpressed, translate},
    },
    dra::{self, HeldDevices, WaitingClaim},
    object::{
        Pod, ResourceClaim,
        resource_claim::{AllocationResult, ResourceClaimSpec},
    },
};

use super::{
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
    held: HeldDevices,
    objects: PlanObjects,
}

/// What a pod asks for, and in which dialect; an error where it asks for devices that are no shares of cards, or where that can't be read.
type Asked<'a> = Result<(&'a dyn Dialect, PodRequest), Vec<Unexpressed>>;

/// A claim on a node: what it would be given there, or why nothing.
struct ClaimAttempt<'a> {
    node: &'a PoolNode,
    translation: Translation,
    given: Result<AllocationResult, String>,
}

/// Of so many nodes a pod that waits is told why it does not fit there.
const MOST_TOLD: usize = 3;

/// The plan for all pods of the pool: those that run there, then those that wait and may go there.
pub(super) fn place(
    input: &MigrationInput<'_>,
    pool: &MigrationPool<'_>,
    dialects: &Dialects,
) -> MigrationPlan {
    let mut run = MigrationRun { pool, dialects, held: pool.held.clone(), objects: PlanObjects::default() };
    let mut pods: Vec<&Pod> = input.pods.values().collect();
    let started = |pod: &Pod| pod.status.start_time.or(pod.metadata.creation_timestamp);
    pods.sort_by_key(|pod| (!is_bound(pod), started(pod).is_none(), started(pod)));
    let rows: Vec<MigrationRow> = pods.into_iter().filter_map(|pod| run.pod(pod)).collect();
    MigrationPlan::of(pool, &run.held, rows, run.objects.0)
}

fn is_bound(pod: &Pod) -> bool {
    pod.spec.node_name.as_ref().is_some_and(|node| !node.is_empty())
}

impl<'a> MigrationRun<'a> {
    /// The pod's row; `None`: it asks for no devices, or is not of the pool.
    fn pod(&mut self, pod: &Pod) -> Option<MigrationRow> {
        let nodes = self.nodes(pod);
        let first = nodes.first()?;
        let row = MigrationRow::new(pod, is_bound(pod).then(|| first.name.clone()));
        let (dialect, request) = match self.asks(pod)? {
            Ok(asked) => asked,
            Err(reasons) => return Some(row.inexpressible(reasons)),
        };
        let row = row.asking(dialect, pod, shares(&request));
        let mut attempts: Vec<ClaimAttempt<'_>> = Vec::new();
        for node in nodes {
            attempts.push(self.attempt(pod, (dialect, &request), node));
            if attempts.last().is_some_and(|attempt| attempt.given.is_ok()) {
                break;
            }
        }
        Some(self.told(row, pod, attempts))
    }

    /// What the attempts come to. The claim is that of the node where it fits, else that of the first node for which there is one.
    fn told(&mut self, row: MigrationRow, pod: &Pod, mut attempts: Vec<ClaimAttempt<'_>>) -> MigrationRow {
        let fits = attempts.iter().position(|attempt| attempt.given.is_ok());
        let told = fits.or_else(|| attempts.iter().position(|attempt| attempt.translation.spec.is_some()));
        let everywhere = refusals(&attempts);
        let ClaimAttempt { node, translation, given } = attempts.swap_remove(told.unwrap_or(0));
        let Some(spec) = translation.spec else { return row.inexpressible(translation.unexpressed) };
        let containers = containers(pod, &spec);
        let row = row.claiming(self.objects.of(pod, spec), containers, translation.unexpressed);
        match given {
            Ok(allocation) => {
                self.held.add(&allocation);
                row.given(node, &allocation)
            }
            Err(reason) => row.refused(if is_bound(pod) { reason } else { everywhere }),
        }
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

    fn attempt(
        &self,
        pod: &Pod,
        (dialect, request): (&dyn Dialect, &PodRequest),
        node: &'a PoolNode,
    ) -> ClaimAttempt<'a> {
        let target = Target {
            class: self.pool.class.name,
            driver: Some(self.pool.class.driver),
            card_memory: node.card_memory(&request.selection),
        };
        let translation = translate(dialect, pod, request, &target);
        let given = match &translation.spec {
            Some(spec) => self.allocate(pod, spec, node),
            None => Err(unexpressed(&translation.unexpressed)),
        };
        ClaimAttempt { node, translation, given }
    }

    /// What the claim would be given on the node, beside the claims before it.
    fn allocate(
        &self,
        pod: &Pod,
        spec: &ResourceClaimSpec,
        node: &PoolNode,
    ) -> Result<AllocationResult, String> {
        let claim =
            ResourceClaim { metadata: pod.metadata.clone(), spec: spec.clone(), ..ResourceClaim::default() };
        let claim = WaitingClaim::read(&claim, &self.pool.classes).map_err(|error| error.to_string())?;
        let beside = |held: &HeldDevices| {
            let found = dra::allocate(&[&claim], node.reached(), &self.pool.inventory, held);
            found
                .map(|found| found.and_then(|mut found| found.results.pop()))
                .map_err(|error| error.to_string())
        };
        if let Some(allocation) = beside(&self.held)? {
            return Ok(allocation);
        }
        let alone = matches!(beside(&HeldDevices::default()), Ok(Some(_)));
        Err(refusal::of(spec, node, self.pool, &LeftOnNode { held: &self.held, alone }))
    }
}

/// Why each node refuses the pod's claim.
fn refusals(attempts: &[ClaimAttempt<'_>]) -> String {
    let refused = |attempt: &ClaimAttempt<'_>| {
        Some(format!("{}: {}", attempt.node.name, attempt.given.as_ref().err()?))
    };
    let mut told: Vec<String> = attempts.iter().take(MOST_TOLD).filter_map(refused).collect();
    if let Some(more) = attempts.len().checked_sub(MOST_TOLD).filter(|more| *more > 0) {
        told.push(format!("and {more} more nodes"));
    }
    told.join("; ")
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
