//! How often one review asks for memory, and that a repeated attempt asks for none. A number that grows is a copy too many somewhere; one that shrinks is
//! written down here.
#![expect(clippy::unwrap_used, reason = "what fails in a test ends the test")]

#[path = "../benches/review/asked.rs"]
mod asked;
#[path = "../benches/claims/objects.rs"]
#[allow(dead_code, reason = "the benches of claims use all of it")]
mod devices;
#[path = "../benches/scale/objects.rs"]
#[allow(dead_code, reason = "the bench of large clusters uses all of it")]
mod objects;

use std::sync::Arc;

use berth::{
    admission::AdmissionStage,
    cluster::read::shared::SharedParts,
    config::Config,
    object::{Node, Pod, Workloads},
    scheduling::{
        CardReason, DeviceReason, Event, FitError, NodeChange, ObjectChange, PendingReason, PodChange,
        PodKey, QuotaChange, Reason, Scheduler, Snapshot,
        model::kind::Kind,
        queue::{AttemptHistories, AttemptHistory, MOST_EARLIER_OUTCOMES, MOST_OUTCOMES},
        world::object::Object,
    },
    webhook::answer,
};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The most allocations that a review of a pod of 2.6 KB may take.
const MOST: u64 = 132;

#[test]
fn a_review_asks_for_memory_so_often_at_most() {
    let (body, judge, workloads) = (asked::body(), asked::judge(), Workloads::default());
    assert!((2500..2700).contains(&asked::pod().to_string().len()));
    let counted = allocation_counter::measure(|| {
        let answer = answer(&body, AdmissionStage::Mutate, &judge, &workloads).unwrap();
        assert!(answer.review.response.patch.is_some());
        std::hint::black_box(serde_json::to_vec(&answer.review).unwrap());
    });
    println!("a review takes {} allocations of {} bytes", counted.count_total, counted.bytes_total);
    assert!(counted.count_total <= MOST, "{} allocations", counted.count_total);
}

#[test]
fn an_attempt_that_fails_as_one_before_asks_for_no_memory() {
    let reasons: [Arc<str>; 2] = ["full".into(), "tainted".into()];
    let mut history = AttemptHistory::default();
    let mut fail = |reason: &Arc<str>| history.note(reason, Timestamp::UNIX_EPOCH, PartialEq::eq);
    reasons.iter().for_each(&mut fail);
    let counted = allocation_counter::measure(|| reasons.iter().cycle().take(100).for_each(&mut fail));
    assert_eq!(counted.count_total, 0);
    assert_eq!(history.outcomes().iter().map(|outcome| outcome.count).collect::<Vec<_>>(), [51, 51]);
}

/// Pods that wait, as many as a large cluster has.
const WAITING: usize = 100_000;

/// The most bytes that the history of a pod takes whose attempts all fail alike, as those of most pods do.
const MOST_BYTES: i64 = 320;

/// The most bytes that the histories take where every pod's attempts fail in ten ways.
const MOST_BYTES_IN_ALL: i64 = 128 << 20;

/// No node would have the pod, for these tests that cards of nodes fail.
fn refusal(cards: &[CardReason]) -> PendingReason {
    let reason =
        |reason: &CardReason| Reason::Devices(DeviceReason::Card { reason: *reason, count: 8, of: 8 });
    let nodes: Vec<_> = cards.iter().map(|card| vec![reason(card)]).collect();
    PendingReason::from(FitError::of_nodes(&nodes))
}

#[test]
fn the_histories_of_a_hundred_thousand_pods_take_so_much_memory_at_most() {
    use CardReason::{
        CardInsufficientCore, CardInsufficientMemory, CardNotHealth, CardTimeSlicingExhausted,
        CardTypeMismatch,
    };
    let cards = [
        CardInsufficientMemory,
        CardInsufficientCore,
        CardNotHealth,
        CardTimeSlicingExhausted,
        CardTypeMismatch,
    ];
    let pod = |number: usize| {
        let name = format!("pod-{number}");
        PodKey { uid: name.as_str().into(), namespace: "team".into(), name: name.into() }
    };
    let pods: Vec<_> = (0..WAITING).map(pod).collect();
    // What a pod waits for now is kept anyway; its history shares it.
    let now = refusal(&cards[..2]);
    let mut histories = AttemptHistories::default();
    let alike = allocation_counter::measure(|| {
        for pod in &pods {
            for _ in 0..3 {
                histories.note(pod, &now, Timestamp::UNIX_EPOCH, PendingReason::is_alike);
            }
        }
    });
    // Of outcomes that are over, a history alone keeps why.
    let others = allocation_counter::measure(|| {
        for pod in &pods {
            for few in 1..=u32::try_from(MOST_OUTCOMES).unwrap() {
                let chosen: Vec<_> =
                    (0..cards.len()).filter(|at| few >> at & 1 == 1).map(|at| cards[at]).collect();
                histories.note(pod, &refusal(&chosen), Timestamp::UNIX_EPOCH, PendingReason::is_alike);
            }
        }
    });
    let outcomes = |pod: &PodKey| histories.of(&pod.uid).map_or(0, |history| history.outcomes().len());
    assert_eq!(pods.iter().map(outcomes).sum::<usize>(), WAITING + MOST_EARLIER_OUTCOMES);
    let each = alike.bytes_current / i64::try_from(WAITING).unwrap();
    let all = alike.bytes_current + others.bytes_current;
    println!(
        "a history takes {each} bytes; those of {WAITING} pods that fail in {MOST_OUTCOMES} ways take {} MB",
        all / 1_000_000
    );
    assert!(each <= MOST_BYTES, "{each} bytes");
    assert!(all <= MOST_BYTES_IN_ALL, "{all} bytes");
}

/// Nodes of a cluster whose memory is counted, and pods on them.
const NODES: usize = 100;
const PODS: usize = 1_000;

/// The most bytes that a node of eight cards and a pod that runs take.
const MOST_OF_A_NODE: i64 = 5_300;
const MOST_OF_A_POD: i64 = 1_640;

/// Classes of pods, and the most bytes that one keeps of a node whose room no other node has.
const CLASSES: usize = 10;
const MOST_OF_A_VERDICT: i64 = 560;

fn each(bytes: i64, count: usize) -> i64 {
    bytes / i64::try_from(count).unwrap()
}

#[test]
fn what_is_kept_of_nodes_and_pods_takes_so_much_memory_at_most() {
    let config = Config::default();
    let (reader, parts) = (config.reader(), SharedParts::default());
    let (mut nodes, mut pods) = (Vec::with_capacity(NODES), Vec::with_capacity(PODS));
    let of_nodes = allocation_counter::measure(|| {
        for number in 0..NODES {
            let node: Node = serde_json::from_value(objects::node(number)).unwrap();
            nodes.push(parts.share_node(reader.node(&node).0));
        }
    });
    let of_pods = allocation_counter::measure(|| {
        for number in 0..PODS {
            let pod: Pod = serde_json::from_value(objects::running(number, NODES, false)).unwrap();
            pods.push(Box::new(parts.share(reader.pod(&pod).0)));
        }
    });
    let mut scheduler = Scheduler::new(config.scheduler_settings());
    let mut tell =
        |event| allocation_counter::measure(|| scheduler.observe(event, Timestamp::UNIX_EPOCH)).bytes_current;
    tell(Event::Quota(QuotaChange::Listed(Vec::new())));
    for kind in Kind::ALL {
        tell(Event::Object(ObjectChange::Listed(*kind, Vec::new())));
    }
    // The lists themselves are freed.
    let lists = i64::try_from(size_of_val(&*pods) + size_of_val(&*nodes)).unwrap();
    let of_known_pods = tell(Event::Pod(PodChange::Listed(pods.into())));
    let of_states = tell(Event::Node(NodeChange::Listed(nodes)));
    let settled = allocation_counter::measure(|| drop(scheduler.settle(Timestamp::UNIX_EPOCH))).bytes_current;
    println!(
        "read: {} bytes a node, {} a pod; known: {} more a pod, {} more a node with its pods; settled: {settled} more; lists of {lists} are freed",
        each(of_nodes.bytes_current, NODES),
        each(of_pods.bytes_current, PODS),
        each(of_known_pods, PODS),
        each(of_states, NODES),
    );
    let mut decide = |number: usize| {
        let mut asking = objects::asking(&format!("asking-{number}"), 2_000 + number);
        asking["metadata"]["uid"] = format!("asking-{number}").into();
        let (pod, _) = reader.pod(&serde_json::from_value(asking).unwrap());
        allocation_counter::measure(|| {
            scheduler.observe(Event::Pod(PodChange::Seen(Box::new(pod))), Timestamp::UNIX_EPOCH);
            drop(scheduler.settle(Timestamp::UNIX_EPOCH));
        })
        .bytes_current
    };
    // With the first class it is found out which nodes are alike, and what their rooms are.
    decide(0);
    let of_classes: i64 = (1..=CLASSES).map(&mut decide).sum();
    println!("a class: {} bytes for each node", each(of_classes, CLASSES * NODES));
    assert!(each(of_classes, CLASSES * NODES) <= MOST_OF_A_VERDICT);
    assert!(each(of_nodes.bytes_current + of_states, NODES) <= MOST_OF_A_NODE);
    assert!(each(of_pods.bytes_current + of_known_pods, PODS) <= MOST_OF_A_POD);
}

/// A cluster with so many objects of each of these kinds.
fn cluster(count: usize) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for number in 0..count {
        for object in OBJECTS {
            snapshot.set_object(object(number, "before"));
        }
    }
    snapshot
}

/// What grows with a cluster and changes while it runs: each by its number, with this in it.
const OBJECTS: [fn(usize, &str) -> Object; 5] = [
    |number, value| {
        let mut slice = devices::slice(number, devices::Kind::Any);
        slice["spec"]["devices"][0]["attributes"] = json!({"value": {"string": value}});
        Object::ResourceSlice(read(slice))
    },
    |number, value| {
        let (name, user) = (format!("claim-{number}"), format!("{value}-{number}"));
        let mut claim = devices::claim((&name, "pod"), devices::Kind::Any, "gpu");
        claim["status"] = devices::allocated((&name, &user), devices::Kind::Any, (number, 0));
        Object::ResourceClaim(read(claim))
    },
    |number, value| {
        let metadata = json!({"name": format!("claim-{number}"), "namespace": "team"});
        let spec = json!({"storageClassName": value});
        Object::PersistentVolumeClaim(read(json!({"metadata": metadata, "spec": spec})))
    },
    |number, value| {
        let spec = json!({"storageClassName": value, "claimRef": {"namespace": "team", "name": format!("claim-{number}")}});
        Object::PersistentVolume(read(
            json!({"metadata": {"name": format!("volume-{number}")}, "spec": spec}),
        ))
    },
    |number, value| {
        let source = json!({"persistentVolumeName": format!("volume-{number}")});
        let spec = json!({"attacher": value, "nodeName": devices::node_name(number), "source": source});
        Object::VolumeAttachment(read(
            json!({"metadata": {"name": format!("attached-{number}")}, "spec": spec}),
        ))
    },
];

fn read<T: DeserializeOwned>(written: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(written).unwrap())
}

/// So many times as many bytes are taken at most where there are a hundred times as many objects: the way to one of them is longer.
const MOST_LONGER: u64 = 3;

#[test]
fn what_changes_while_a_view_is_held_copies_nothing_else() {
    let (few, many) = (20, 2_000);
    let mut clusters = [few, many].map(|count| (count, cluster(count)));
    for object in OBJECTS {
        let kind = object(0, "any").kind();
        let [of_few, of_many] = clusters.each_mut().map(|(count, snapshot)| {
            let (_view, changed) = (snapshot.world().clone(), object(*count / 2, "after"));
            allocation_counter::measure(|| drop(snapshot.set_object(changed))).bytes_total
        });
        println!("{kind:?}: {of_few} bytes of {few}, {of_many} of {many}");
        assert!(of_many <= MOST_LONGER * of_few, "{kind:?}: {of_few} bytes of {few}, {of_many} of {many}");
    }
}
