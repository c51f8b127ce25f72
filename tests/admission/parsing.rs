//! How often one review parses a pod's request.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use berth::{
    admission::{AdmissionStage, Facts, Operation, Request, Verdict, review},
    device::{Answer, Assignment, CountedAmount, Inventory, PodRequest, Profile},
    dialect::{
        Carried, Dialect, Dialects, HintKeys, LockSpec, MissingCount, Record, SharingMode, Unreadable,
    },
    object::{Node, Pod},
};
use jiff::Timestamp;
use serde_json::json;

use super::facts::Given;

/// HAMi's dialect, and how often a request was read.
#[derive(Debug)]
struct Counting {
    dialect: Arc<dyn Dialect>,
    reads: Arc<AtomicUsize>,
}

impl Dialect for Counting {
    fn profile(&self) -> &Profile {
        self.dialect.profile()
    }
    fn mode(&self) -> &SharingMode {
        self.dialect.mode()
    }
    fn resources(&self) -> Vec<&str> {
        self.dialect.resources()
    }
    fn share_resources(&self) -> Vec<&str> {
        self.dialect.share_resources()
    }
    fn counted(&self) -> Vec<CountedAmount<'_>> {
        self.dialect.counted()
    }
    fn hint_keys(&self) -> Option<&HintKeys> {
        self.dialect.hint_keys()
    }
    fn default_count(&self) -> Option<(&str, u32)> {
        self.dialect.default_count()
    }
    fn inventory(&self, node: &Node) -> Result<Option<Inventory>, Unreadable> {
        self.dialect.inventory(node)
    }
    fn request(&self, pod: &Pod, missing: MissingCount) -> Result<Option<PodRequest>, Vec<Unreadable>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.dialect.request(pod, missing)
    }
    fn assignment(&self, pod: &Pod) -> Result<Option<Carried>, Unreadable> {
        self.dialect.assignment(pod)
    }
    fn record(&self, assignment: &Assignment, node: &str, now: Timestamp) -> Record {
        self.dialect.record(assignment, node, now)
    }
    fn answer(&self, pod: &Pod) -> Answer {
        self.dialect.answer(pod)
    }
    fn locks(&self) -> &[LockSpec] {
        self.dialect.locks()
    }
}

/// A cluster whose cards and quota every rule about amounts reads.
fn facts() -> Facts {
    let given = json!({
        "nodes": [{"name": "n1", "hami": [{"id": "GPU-1", "model": "NVIDIA-A100", "memory": 40960}]}],
        "quotas": [{"namespace": "train", "name": "gpus", "hard": {"limits.nvidia.com/gpumem": "10000"}}],
    });
    serde_json::from_value::<Given>(given).unwrap().facts()
}

#[test]
fn a_review_parses_a_request_once() {
    let mut facts = facts();
    let reads = Arc::new(AtomicUsize::new(0));
    let counting = |dialect: &Arc<dyn Dialect>| -> Arc<dyn Dialect> {
        Arc::new(Counting { dialect: dialect.clone(), reads: reads.clone() })
    };
    facts.dialects = Dialects::new(facts.dialects.iter().map(counting).collect());
    let limits = json!({"nvidia.com/gpumem": "4000", "nvidia.com/gpucores": "30"});
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]}});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let request = Request {
        stage: AdmissionStage::Mutate,
        operation: Operation::Create,
        namespace: "train",
        pod: &pod,
    };
    assert!(matches!(review(&request, &facts), Verdict::Admitted { .. }));
    assert_eq!(reads.load(Ordering::Relaxed), 1);
}
