//! A cluster of nodes with 8 cards and two pods each, and pods that are placed on it one after the other.

use std::{collections::HashSet, ops::ControlFlow, sync::Arc, time::Duration};

use berth::{
    device::{Allocation, Answer, Card, InitPhase, NodePolicy},
    object::{Pod, Taint},
    scheduling::{
        Ask, Constraints, Demand, FitError, Footprint, NodeInfo, ResourceAmounts, Snapshot, Stage,
        decide::{Decision, class::Classes},
        model::{
            footprint::NeighbourTerms, kind::Kind, node_affinity::NodeAffinityTerms,
            prebind_step::PrebindStep,
        },
        plan::{gang::Applicant, preemption::Candidate},
        world::ledger::{Charge, Commitment},
    },
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fixtures;

use super::{
    claims, devices,
    family::{Family, HOSTNAME, STANDING, ZONE},
    mix,
    storage::objects,
};

/// A cluster, and the pods that are placed on it.
pub(crate) struct World {
    pub(super) family: Family,
    nodes: usize,
    pub(super) snapshot: Snapshot,
    pub(super) classes: Classes,
    pub(super) placed: usize,
    /// The terms that pods have had, each once.
    terms: HashSet<Arc<NeighbourTerms>>,
    /// Whether what was published of the cluster before a decision is still held after it.
    viewed: bool,
}

/// What is decided at once.
pub(crate) enum TrialSubject {
    Pod(Demand),
    Preemptor(Demand),
    Gang(Vec<Applicant>),
}

/// What came of it, with what was decided.
pub(crate) enum TrialOutcome {
    Pod(Demand, Result<Decision, FitError>),
    Preemptor(Demand, Result<Decision, FitError>, Result<Candidate, String>),
    /// Why the gang found no room, where it found none.
    Gang(Vec<Applicant>, Option<String>),
}

/// The dialect of the cards.
pub(super) const PROFILE: &str = "hami";

/// Pods that can be placed: each has a claim of its own where its family has claims.
const PODS: usize = 1_000;

impl World {
    pub(crate) fn new(nodes: usize, family: Family, viewed: bool) -> Self {
        let mut snapshot = Snapshot::default();
        let mut terms = HashSet::new();
        for at in 0..nodes {
            if family == Family::JointDevices {
                snapshot.set_object(devices::listed(&name(at)));
            }
            let mut info = node(at, family);
            if family.wastes_least() {
                info.allocatable =
                    if family == Family::LeastWasteUnequal { mix::unequal_size(at) } else { mix::size(at) };
            }
            snapshot.objects().join_devices(&mut info);
            snapshot.set_node(info);
            let filling = if family == Family::LeastWasteFilled { 6 } else { 0 };
            let standing = [json!({}), family.neighbour(at)].into_iter().chain(vec![json!({}); filling]);
            for (pod, spec) in standing.enumerate() {
                let mut footprint = footprint(&read(&spec, STANDING));
                share_terms(&mut terms, &mut Arc::make_mut(&mut footprint).neighbours);
                let allocations = match family {
                    Family::LeastWasteFilled => mix::part(at, pod),
                    family if family.wastes_least() => mix::share(at, pod),
                    _ => share(at, pod),
                };
                let name = name(at);
                snapshot.charge(
                    format!("{name}/{pod}").into(),
                    charge(&name, allocations, footprint, Vec::new()),
                );
            }
        }
        for kind in Kind::ALL {
            snapshot.note_listed(*kind);
        }
        if family.wastes_least() {
            snapshot.packing_mut().weigh(mix::shapes());
        }
        for object in objects(family, nodes, PODS) {
            snapshot.set_object(object);
        }
        if let Family::TemplateClaim(kind) = family {
            claims::publish(&mut snapshot, nodes, kind);
        }
        Self { family, nodes, snapshot, classes: Classes::default(), placed: 0, terms, viewed }
    }

    /// Decides the next pod or gang, with so much memory in MiB, and charges it; how long the decision took. Where a view of the cluster is held, the time
    /// to charge it counts too, and that to take in its claim, and to drop the view.
    pub(crate) fn place(&mut self, memory: u64) -> Duration {
        if self.viewed {
            let view = self.snapshot.world().clone();
            let started = Instant::now();
            let subject = self.next(memory);
            let outcome = self.decide(subject);
            self.enter(outcome);
            drop(view);
            return started.elapsed();
        }
        let subject = self.next(memory);
        let started = Instant::now();
        let outcome = self.decide(subject);
        let spent = started.elapsed();
        self.enter(outcome);
        spent
    }

    /// The next pod or gang, with so much memory in MiB; what it refers to is there from now on.
    pub(crate) fn next(&mut self, memory: u64) -> TrialSubject {
        match self.family {
            family if family.is_gang() => return self.next_gang(memory),
            Family::TemplateClaim(kind) => {
                self.snapshot.set_object(claims::claim(self.placed, kind, memory));
            }
            Family::LeastWasteReweighed => {
                let packing = self.snapshot.packing_mut();
                packing.renew_beside();
                packing.weigh(vec![mix::another(self.placed)]);
                // The program does this beside its decisions.
                if let Some(renewal) = packing.begin_renewal() {
                    packing.renew(renewal.run(|| ControlFlow::Continue(())));
                }
            }
            _ => {}
        }
        let mut demand = self.demand(self.family.memory(memory));
        if self.family == Family::Preempts {
            demand.priority = 100;
            return TrialSubject::Preemptor(demand);
        }
        TrialSubject::Pod(demand)
    }

    /// The decision alone.
    pub(crate) fn decide(&mut self, subject: TrialSubject) -> TrialOutcome {
        match subject {
            TrialSubject::Pod(demand) => {
                let decision = self.classes.decide(&demand, &self.snapshot, |_| 0);
                TrialOutcome::Pod(demand, decision)
            }
            TrialSubject::Preemptor(demand) => self.preempt(demand),
            TrialSubject::Gang(applicants) => self.place_gang(applicants),
        }
    }

    /// Charges what was decided, or a pod of no constraint where nothing was.
    pub(crate) fn enter(&mut self, outcome: TrialOutcome) {
        let name = self.family.name();
        match outcome {
            TrialOutcome::Pod(demand, decision) => {
                assert_eq!(decision.is_ok(), self.family.fits(), "{name}: {decision:?}");
                let charge = match decision {
                    Ok(Decision { node, allocations, steps }) => {
                        charge(&node, allocations, demand.footprint, steps)
                    }
                    Err(_) => self.another(),
                };
                self.snapshot.charge(demand.uid, charge);
            }
            TrialOutcome::Preemptor(demand, decision, chosen) => {
                assert!(decision.is_err() && chosen.is_ok(), "{decision:?}, {chosen:?}");
                self.snapshot.charge(demand.uid, self.another());
            }
            TrialOutcome::Gang(applicants, unfit) => {
                drop(applicants);
                assert_eq!(unfit.is_none(), self.family.fits(), "{name}: {unfit:?}");
                if unfit.is_some() {
                    self.snapshot.charge(format!("other/{}", self.placed).into(), self.another());
                }
            }
        }
        self.placed += 1;
    }

    /// What the next pod asks for, with so much memory in MiB.
    pub(super) fn demand(&mut self, memory: u64) -> Demand {
        let pod = match self.family {
            Family::TemplateClaim(_) => claims::pod(self.placed),
            family => read(&family.spec(self.placed), "work"),
        };
        let mut footprint = footprint(&pod);
        share_terms(&mut self.terms, &mut Arc::make_mut(&mut footprint).neighbours);
        let ask = match self.family {
            Family::JointDevices => devices::ask(memory),
            Family::TemplateClaim(_) | Family::NoCard => tell_apart(memory),
            family if family.wastes_least() => mix::ask(memory),
            family => ask(&pod, &footprint, family.cards(), memory),
        };
        Demand { footprint, ..fixtures::demand(&claims::uid(self.placed), ask) }
    }

    /// What a pod of no constraint holds, on another node each time.
    pub(super) fn another(&self) -> Charge {
        let at = self.placed % self.nodes;
        charge(&name(at), share(at, 2), footprint(&read(&json!({}), STANDING)), Vec::new())
    }
}

fn name(node: usize) -> Arc<str> {
    format!("node-{node:05}").into()
}

/// A node with the labels of a cloud's and 8 cards of 80 GB.
fn node(at: usize, family: Family) -> NodeInfo {
    let name = name(at);
    let labels = [
        ("beta.kubernetes.io/arch", "amd64".to_owned()),
        ("kubernetes.io/arch", "amd64".to_owned()),
        (HOSTNAME, name.to_string()),
        ("kubernetes.io/os", "linux".to_owned()),
        ("node.kubernetes.io/instance-type", "gpu-8".to_owned()),
        ("topology.kubernetes.io/region", "region-1".to_owned()),
        (ZONE, format!("zone-{}", at % 16)),
    ];
    let offer = fixtures::offer(PROFILE, (0..8).map(|index| card(at, index)).collect());
    let taint = Taint { key: "gpu".into(), value: "yes".into(), effect: "NoSchedule".into() };
    NodeInfo {
        labels: labels.into(),
        taints: if family.taints() && at.is_multiple_of(4) { vec![taint] } else { Vec::new() },
        ..fixtures::node_offering(&name, vec![offer])
    }
}

fn card(node: usize, index: u32) -> Card {
    Card { numa: index / 4, ..fixtures::card(&format!("GPU-{node}-{index}"), index, 81_920) }
}

/// A tenth of a card of this node.
fn share(node: usize, index: usize) -> Vec<Allocation> {
    let share = fixtures::share(&format!("GPU-{node}-{index}"), 8_192, 10);
    vec![fixtures::allocation(PROFILE, share, Answer::Awaited)]
}

pub(super) fn charge(
    node: &Arc<str>,
    allocations: Vec<Allocation>,
    footprint: Arc<Footprint>,
    steps: Vec<PrebindStep>,
) -> Charge {
    Charge {
        // Charges on one node share its name, as those of the scheduler do.
        node: node.clone(),
        pod: fixtures::key(&format!("{}/p", footprint.namespace)),
        init: InitPhase::Ahead,
        footprint,
        steps: steps.into(),
        commitment: Commitment::Assumed,
        stage: Stage::Pending,
        ..fixtures::charge(node, allocations)
    }
}

/// The pod with this spec and this value of the label `app`.
fn read(spec: &Value, app: &str) -> Pod {
    let labels = json!({"app": app, "pod-template-hash": "7d9f8c6b5"});
    serde_json::from_value(json!({"metadata": {"namespace": "default", "labels": labels}, "spec": spec}))
        .unwrap()
}

fn footprint(pod: &Pod) -> Arc<Footprint> {
    Arc::new(Footprint::of_pod(pod, ResourceAmounts::default()))
}

/// Terms that are equal, once: as they are of the pods that the program reads.
fn share_terms(known: &mut HashSet<Arc<NeighbourTerms>>, terms: &mut Arc<NeighbourTerms>) {
    match known.get(terms) {
        Some(known) => terms.clone_from(known),
        None => drop(known.insert(terms.clone())),
    }
}

/// What the pods of a class ask for that ask for no card: nothing but what tells classes apart.
fn tell_apart(class: u64) -> Ask {
    let toleration = json!({"key": format!("class-{class}"), "operator": "Exists"});
    let tolerations = vec![serde_json::from_value(toleration).unwrap()];
    let constraints = Constraints { tolerations, ..Constraints::default() };
    Ask {
        devices: Vec::new(),
        resources: Arc::new(ResourceAmounts::default()),
        constraints,
        policy: NodePolicy::Indifferent,
    }
}

/// What a pod asks that wants so much memory of each of so many cards, in MiB.
fn ask(pod: &Pod, footprint: &Footprint, cards: u32, memory: u64) -> Ask {
    let affinity = pod.spec.affinity.node_affinity.clone().unwrap_or_default();
    let request = fixtures::request_of_one(fixtures::share_request(cards, memory, 1));
    Ask {
        constraints: Constraints {
            affinity: NodeAffinityTerms {
                required: affinity.required,
                preferred: affinity.preferred,
                ..NodeAffinityTerms::default()
            },
            tolerations: pod.spec.tolerations.clone(),
            exclusive: footprint.exclusive.clone(),
            ..Constraints::default()
        },
        ..fixtures::ask_for(fixtures::profile(PROFILE), request)
    }
}
