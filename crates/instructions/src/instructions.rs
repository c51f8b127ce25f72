//! How many instructions a decision, a review and the binding of a pod take, counted by Valgrind: the same on a busy machine as on an idle one.
//!
//! It judges nothing: `.ci/instructions` compares the counts with those that are expected.
#![expect(
    clippy::boxed_local,
    clippy::needless_pass_by_value,
    clippy::unnecessary_box_returns,
    reason = "gungraun hands each case its value, which is boxed so that moving it counts next to nothing"
)]
#![expect(clippy::unwrap_used, reason = "what fails in a bench ends the bench")]
#![expect(missing_docs, reason = "gungraun makes public functions of those that it counts")]

#[path = "../../../benches/review/asked.rs"]
mod asked;
mod binding;
mod decide;
#[path = "../../../tests/support/fixtures.rs"]
mod fixtures;
#[path = "../../../benches/claims/objects.rs"]
#[allow(dead_code, reason = "the benches beside kube-scheduler use the rest of it")]
mod objects;

use std::hint::black_box;

use asked::{body, body_of, judge, pod};
use berth::{
    admission::AdmissionStage,
    object::Workloads,
    webhook::{Judge, answer},
};
use binding::{BindingCycle, waiting};
use decide::{
    family::Family,
    world::{TrialOutcome, TrialSubject, World},
};
use gungraun::{library_benchmark, library_benchmark_group, main};
use objects::Kind;
use serde_json::json;

/// The program's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Nodes of the clusters. Valgrind takes some fifty times as long as the processor, and it fills them for each case anew.
const NODES: usize = 250;

/// Memory of a pod of the class that was decided before, in MiB.
const KNOWN: u64 = 500;

/// Whether pods of the same class were decided before.
#[derive(Clone, Copy)]
enum PodClass {
    Known,
    New,
}

/// A cluster in which one pod was placed, and what is to be decided next.
struct Ready {
    world: World,
    subject: TrialSubject,
}

/// A cluster in which something was decided that is not charged yet.
pub struct Decided {
    world: World,
    outcome: TrialOutcome,
}

fn ready(family: Family, class: PodClass) -> Box<Ready> {
    let mut world = World::new(NODES, family, false);
    world.place(KNOWN);
    let subject = world.next(match class {
        PodClass::Known => KNOWN,
        PodClass::New => KNOWN + 1,
    });
    Box::new(Ready { world, subject })
}

/// Fails if the decision is not that of the family.
fn enter(decided: Box<Decided>) {
    let Decided { mut world, outcome } = *decided;
    world.enter(outcome);
}

#[library_benchmark(setup = ready, teardown = enter)]
#[bench::share_known(Family::Nothing, PodClass::Known)]
#[bench::share_new(Family::Nothing, PodClass::New)]
#[bench::plain_pod_known(Family::NoCard, PodClass::Known)]
#[bench::plain_pod_new(Family::NoCard, PodClass::New)]
#[bench::claim_known(Family::TemplateClaim(Kind::Selected), PodClass::Known)]
#[bench::claim_new(Family::TemplateClaim(Kind::Selected), PodClass::New)]
#[bench::claim_of_share_known(Family::TemplateClaim(Kind::Share), PodClass::Known)]
#[bench::koordinator_known(Family::JointDevices, PodClass::Known)]
#[bench::koordinator_new(Family::JointDevices, PodClass::New)]
#[bench::gang_known(Family::Gang, PodClass::Known)]
#[bench::gang_new(Family::Gang, PodClass::New)]
#[bench::preemption_known(Family::Preempts, PodClass::Known)]
#[bench::preemption_new(Family::Preempts, PodClass::New)]
#[bench::least_waste_known(Family::LeastWaste, PodClass::Known)]
#[bench::least_waste_new(Family::LeastWaste, PodClass::New)]
#[bench::least_waste_reweighed(Family::LeastWasteReweighed, PodClass::Known)]
#[bench::spread_known(Family::SpreadZones, PodClass::Known)]
fn decision(ready: Box<Ready>) -> Box<Decided> {
    let Ready { mut world, subject } = *ready;
    let outcome = black_box(world.decide(subject));
    Box::new(Decided { world, outcome })
}

/// What a pod is that is reviewed.
#[derive(Clone, Copy)]
enum Case {
    Admitted,
    /// It asks for more of a card than there is of one.
    Denied,
}

/// A review, and by what it is judged.
struct AskedReview {
    body: Vec<u8>,
    judge: Judge,
    workloads: Workloads,
    stage: AdmissionStage,
    case: Case,
}

/// An answer, and whether it was to be that of an admission.
pub struct AnsweredReview {
    asked: AskedReview,
    allowed: bool,
    answer: Vec<u8>,
}

fn asked(stage: AdmissionStage, case: Case) -> Box<AskedReview> {
    let body = match case {
        Case::Admitted => body(),
        Case::Denied => {
            let mut pod = pod();
            for amounts in ["limits", "requests"] {
                pod["spec"]["containers"][0]["resources"][amounts]["nvidia.com/gpucores"] = json!("150");
            }
            body_of(&pod)
        }
    };
    let (judge, workloads) = (judge(), Workloads::default());
    let asked = AskedReview { body, judge, workloads, stage, case };
    // What is set up once for a process is there before.
    enter_review(review(Box::new(asked.again())));
    Box::new(asked)
}

impl AskedReview {
    fn again(&self) -> Self {
        let (body, judge, workloads) = (self.body.clone(), self.judge.clone(), self.workloads.clone());
        Self { body, judge, workloads, ..*self }
    }
}

/// Fails if the answer is not that of the case.
fn enter_review(answered: Box<AnsweredReview>) {
    let AnsweredReview { asked, allowed, answer } = *answered;
    assert_eq!(allowed, matches!(asked.case, Case::Admitted), "{}", String::from_utf8_lossy(&answer));
}

/// From the bytes of the request to those of the answer.
fn review(asked: Box<AskedReview>) -> Box<AnsweredReview> {
    let found = answer(&asked.body, asked.stage, &asked.judge, &asked.workloads).unwrap();
    let (allowed, answer) = (found.review.response.allowed, serde_json::to_vec(&found.review).unwrap());
    drop(found);
    Box::new(AnsweredReview { asked: *asked, allowed, answer })
}

#[library_benchmark(setup = asked, teardown = enter_review)]
#[bench::mutate_admitted(AdmissionStage::Mutate, Case::Admitted)]
#[bench::mutate_denied(AdmissionStage::Mutate, Case::Denied)]
#[bench::validate_admitted(AdmissionStage::Validate, Case::Admitted)]
#[bench::validate_denied(AdmissionStage::Validate, Case::Denied)]
fn answered(asked: Box<AskedReview>) -> Box<AnsweredReview> {
    black_box(review(asked))
}

fn enter_binding(cycle: Box<BindingCycle>) {
    assert!(cycle.is_told());
}

#[library_benchmark(setup = waiting, teardown = enter_binding)]
#[bench::share(NODES)]
fn binding_cycle(cycle: Box<BindingCycle>) -> Box<BindingCycle> {
    black_box(cycle.run())
}

library_benchmark_group!(name = counts, benchmarks = [decision, answered, binding_cycle]);

main!(library_benchmark_groups = counts);
