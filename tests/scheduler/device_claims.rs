//! Pods with claims of devices: what is written before they are bound, and what becomes of that when they go elsewhere.

use berth::{
    config::Config,
    object::resource_claim::AllocationResult,
    scheduling::{
        BindOutcome, Concern, Details, Effect, Event, NodeChange, ObjectChange, PodChange, Setback,
        TellOutcome, WriteOutcome,
        effect::PrebindWrite,
        model::kind::{Kind, TaintRuleVersion},
        scheduler::Settings,
        world::object::Object,
    },
};
use serde_json::{Value, json};

use super::machine::{Machine, bound, key, node, parsed, pod, told};

/// A pod that uses the claim of this name.
pub(crate) fn user(name: &str, claim: &str) -> Value {
    let mut pod = pod(name, &json!({"cpu": "1"}));
    pod["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": claim}]);
    pod
}

/// A claim of one device of a class, with this status.
fn claim_of(class: &str, name: &str, (version, finalizers): (u32, &[&str]), status: &Value) -> Event {
    let request = json!({"name": "gpu", "exactly": {"deviceClassName": class}});
    let claim = json!({
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"),
            "resourceVersion": version.to_string(), "finalizers": finalizers},
        "spec": {"devices": {"requests": [request]}},
        "status": status,
    });
    Event::Object(ObjectChange::Seen(Object::ResourceClaim(parsed(&claim))))
}

fn free(name: &str) -> Event {
    claim_of("gpu", name, (1, &[]), &json!({}))
}

/// A claim that is kept by the finalizer, with this status.
pub(crate) fn claim(name: &str, version: u32, status: &Value) -> Event {
    claim_of("gpu", name, (version, &["resource.kubernetes.io/delete-protection"]), status)
}

/// A slice of a node with so many devices.
pub(crate) fn slice(node: &str, count: usize) -> Event {
    let devices: Vec<Value> = (0..count).map(|at| json!({"name": format!("gpu-{at}")})).collect();
    let slice = json!({
        "metadata": {"name": format!("{node}-gpu.example.com")},
        "spec": {"driver": "gpu.example.com", "nodeName": node, "devices": devices,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}},
    });
    Event::Object(ObjectChange::Seen(Object::ResourceSlice(parsed(&slice))))
}

fn class(name: &str) -> Event {
    Event::Object(ObjectChange::Seen(Object::DeviceClass(parsed(&json!({"metadata": {"name": name}})))))
}

/// Shows that there is nothing yet but the class `gpu`.
pub(crate) fn listed(machine: &mut Machine) {
    for kind in Kind::DEVICE_CLAIMS {
        machine.tell(Event::Object(ObjectChange::Listed(*kind, Vec::new())));
    }
    machine.tell(class("gpu"));
}

/// Nodes with so many devices each, and what else there is.
fn machine(nodes: &[(&str, usize)], objects: impl IntoIterator<Item = Event>) -> Machine {
    let named: Vec<Value> = nodes.iter().map(|(name, _)| node(name, &json!({}))).collect();
    let mut machine = Machine::new(&Config::default(), &named, &[]);
    listed(&mut machine);
    let slices = nodes.iter().map(|(name, count)| slice(name, *count));
    slices.chain(objects).for_each(|event| machine.tell(event));
    machine
}

/// A machine of one node with a device, and pod `p`, whose claim `c` stands so.
fn with_pod(objects: impl IntoIterator<Item = Event>) -> Machine {
    let mut machine = machine(&[("n1", 1)], objects);
    machine.show_pod(&user("p", "c"));
    machine
}

pub(crate) fn writes(effects: &[Effect]) -> Vec<PrebindWrite> {
    let write = |effect: &Effect| match effect {
        Effect::Prebind { write, .. } => Some(write.clone()),
        _ => None,
    };
    effects.iter().filter_map(write).collect()
}

/// What is to be written of claims, in short words.
pub(crate) fn asked(effects: &[Effect]) -> Vec<String> {
    let words = |write: PrebindWrite| {
        let (verb, claim) = match write {
            PrebindWrite::ProtectClaim { claim } => ("protect", claim),
            PrebindWrite::ReserveClaim { claim, allocation: Some(_), .. } => ("give", claim),
            PrebindWrite::ReserveClaim { claim, allocation: None, .. } => ("join", claim),
            PrebindWrite::ReleaseClaim { claim, deallocate: true, .. } => ("free", claim),
            PrebindWrite::ReleaseClaim { claim, deallocate: false, .. } => ("leave", claim),
            other => panic!("{other:?}"),
        };
        format!("{verb} {}", claim.metadata.name)
    };
    writes(effects).into_iter().map(words).collect()
}

/// What the one claim is given that is to be written.
pub(crate) fn given(effects: &[Effect]) -> AllocationResult {
    let allocation = effects.iter().find_map(|effect| match effect {
        Effect::Prebind { write: PrebindWrite::ReserveClaim { allocation, .. }, .. } => allocation.as_deref(),
        _ => None,
    });
    allocation.cloned().unwrap_or_else(|| panic!("{effects:?}"))
}

/// Answers the writes that are under way.
pub(crate) fn answer(machine: &mut Machine, effects: &[Effect], outcome: &WriteOutcome) {
    for effect in effects {
        if let Effect::Prebind { pod, write } = effect {
            let (pod, write, outcome) = (pod.clone(), write.clone(), outcome.clone());
            machine.tell(Event::Prebound { pod, write, outcome });
        }
    }
}

/// The writes are done at this version of claim `c`, which then has this status.
fn done(machine: &mut Machine, effects: &[Effect], version: u32, status: &Value) {
    answer(machine, effects, &written(version));
    machine.tell(claim("c", version, status));
}

pub(crate) fn written(version: u32) -> WriteOutcome {
    WriteOutcome::Written { resource_version: version.to_string() }
}

fn status(allocation: &AllocationResult, users: &[&str]) -> Value {
    let users: Vec<Value> =
        users.iter().map(|uid| json!({"resource": "pods", "name": uid, "uid": uid})).collect();
    json!({"allocation": serde_json::to_value(allocation).unwrap(), "reservedFor": users})
}

/// The first device of a node, which can be used there alone.
pub(crate) fn device_of(node: &str) -> AllocationResult {
    let result = json!({"request": "gpu", "driver": "gpu.example.com", "pool": node, "device": "gpu-0"});
    let name = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let selector = json!({"nodeSelectorTerms": [{"matchFields": [name]}]});
    parsed(&json!({"devices": {"results": [result]}, "nodeSelector": selector}))
}

/// Takes the claim `c` of pod `p` to the write of its status; returns what that gives the claim.
fn reserving(machine: &mut Machine) -> (Vec<Effect>, AllocationResult) {
    let effects = machine.settle();
    assert_eq!(asked(&effects), ["protect c"]);
    answer(machine, &effects, &written(2));
    assert_eq!(asked(&machine.settle()), [""; 0], "the claim is awaited as it was written");
    machine.tell(claim("c", 2, &json!({})));
    let effects = machine.settle();
    assert_eq!(asked(&effects), ["give c"]);
    let allocation = given(&effects);
    (effects, allocation)
}

/// The pods that are bound by these effects, with their nodes.
pub(crate) fn bindings(effects: &[Effect]) -> Vec<(String, String)> {
    let binding = |effect: &Effect| match effect {
        Effect::Bind { pod, node, .. } => Some((pod.name.to_string(), node.to_string())),
        _ => None,
    };
    effects.iter().filter_map(binding).collect()
}

/// The effects after a backoff.
pub(crate) fn later(machine: &mut Machine) -> Vec<Effect> {
    machine.pass(15);
    machine.settle()
}

/// The effects of two turns.
pub(crate) fn two_turns(machine: &mut Machine) -> Vec<Effect> {
    [machine.settle(), machine.settle()].concat()
}

#[test]
fn the_finalizer_comes_first_then_the_devices_then_the_binding() {
    let mut machine = with_pod([free("c")]);
    let (effects, given) = reserving(&mut machine);
    assert_eq!(given.devices.results[0].device, "gpu-0");
    answer(&mut machine, &effects, &written(3));
    assert_eq!(bindings(&machine.settle()), [], "what was written is seen first");
    machine.tell(claim("c", 3, &status(&given, &["p"])));
    assert_eq!(bindings(&machine.settle()), [("p".to_owned(), "n1".to_owned())]);
}

#[test]
fn a_device_is_given_once_and_free_again_with_its_claim() {
    let mut machine = with_pod([free("c"), free("d")]);
    machine.show_pod(&user("q", "d"));
    let effects = machine.settle();
    assert_eq!(asked(&effects), ["protect c"]);
    assert_eq!(told(&effects, "q"), "0/1 nodes are available: 1 cannot allocate all claims.");
    // Another program gives the claim its device, and a user that ends.
    machine.tell(Event::Pod(PodChange::Gone("p".into())));
    machine.tell(claim("c", 9, &status(&device_of("n1"), &[])));
    assert_eq!(asked(&machine.settle()), [""; 0]);
    machine.tell(claim("c", 10, &json!({})));
    assert_eq!(asked(&later(&mut machine)), ["protect d"]);
}

#[test]
fn what_was_begun_before_a_restart_is_taken_up() {
    let begun = |users: &[&str]| {
        let claim = claim("c", 3, &status(&device_of("n2"), users));
        let mut machine = machine(&[("n1", 1), ("n2", 1)], [claim]);
        machine.show_pod(&user("p", "c"));
        machine.settle()
    };
    assert_eq!(bindings(&begun(&["p"])), [("p".to_owned(), "n2".to_owned())]);
    assert_eq!(asked(&begun(&[])), ["join c"]);
}

#[test]
fn the_second_pod_of_a_claim_goes_where_the_first_is() {
    let mut machine = machine(&[("n1", 1), ("n2", 1)], [free("c")]);
    machine.show_pod(&user("p", "c"));
    let (effects, given) = reserving(&mut machine);
    machine.show_pod(&user("q", "c"));
    assert_eq!(asked(&machine.settle()), [""; 0], "the write of the first is awaited");
    done(&mut machine, &effects, 3, &status(&given, &["p"]));
    let effects = machine.settle();
    assert_eq!(asked(&effects), ["join c"]);
    done(&mut machine, &effects, 4, &status(&given, &["p", "q"]));
    let node = given.node_selector.unwrap().node_selector_terms[0].match_fields[0].values[0].clone();
    let outcome = BindOutcome::Bound;
    machine.tell(Event::BindAnswered { pod: key("p"), node: node.as_str().into(), outcome });
    assert_eq!(bindings(&machine.settle()), [("q".to_owned(), node)]);
}

#[test]
fn a_pod_that_is_gone_leaves_no_devices_behind() {
    let mut machine = with_pod([free("c"), free("d")]);
    let (effects, given) = reserving(&mut machine);
    machine.tell(Event::Pod(PodChange::Gone("p".into())));
    machine.show_pod(&user("q", "d"));
    assert_eq!(asked(&machine.settle()), [""; 0], "the write for the first may still arrive");
    done(&mut machine, &effects, 3, &status(&given, &["p"]));
    let effects = machine.settle();
    assert_eq!(asked(&effects), ["free c"]);
    done(&mut machine, &effects, 4, &json!({}));
    assert_eq!(asked(&later(&mut machine)), ["protect d"]);
}

/// Pod `p` is gone while the write that gives its claim devices has no answer, and pod `q` wants them; what asks whether it has arrived.
fn unanswered() -> (Machine, AllocationResult, Vec<Effect>) {
    let mut machine = with_pod([free("c"), free("d")]);
    let (effects, given) = reserving(&mut machine);
    machine.tell(Event::Pod(PodChange::Gone("p".into())));
    machine.show_pod(&user("q", "d"));
    answer(&mut machine, &effects, &WriteOutcome::Failed(Setback::default()));
    assert_eq!(asked(&machine.settle()), [""; 0]);
    machine.pass(5);
    assert_eq!(asked(&machine.settle()), [""; 0], "it may still arrive");
    machine.pass(12);
    let effects = machine.settle();
    assert_eq!(asked(&effects), ["protect c"], "which it is already");
    (machine, given, effects)
}

#[test]
fn a_write_without_an_answer_holds_the_devices_until_it_is_known_not_to_have_arrived() {
    let (mut machine, _, effects) = unanswered();
    // Nothing of the claim changes, so its version does not either.
    answer(&mut machine, &effects, &written(2));
    assert_eq!(asked(&machine.settle()), ["protect d"]);
}

#[test]
fn a_write_without_an_answer_that_has_arrived_holds_the_devices_however_late_it_is_seen() {
    let (mut machine, given, mut effects) = unanswered();
    for _ in 0..9 {
        let conflict = Setback { why: "409".to_owned(), ..Setback::default() };
        answer(&mut machine, &effects, &WriteOutcome::Failed(conflict));
        assert_eq!(asked(&machine.settle()), [""; 0]);
        machine.pass(7);
        effects = machine.settle();
        assert_eq!(asked(&effects), ["protect c"]);
    }
    machine.tell(claim("c", 3, &status(&given, &["p"])));
    answer(&mut machine, &effects, &WriteOutcome::Failed(Setback::default()));
    effects = later(&mut machine);
    assert_eq!(asked(&effects), ["free c"]);
    done(&mut machine, &effects, 4, &json!({}));
    assert_eq!(asked(&later(&mut machine)), ["protect d"]);
}

#[test]
fn a_write_without_an_answer_is_waited_for_where_its_node_is_gone_when_it_is_to_be_repeated() {
    let mut machine = with_pod([free("c")]);
    let (effects, given) = reserving(&mut machine);
    answer(&mut machine, &effects, &WriteOutcome::Failed(Setback::default()));
    assert_eq!(asked(&machine.settle()), [""; 0]);
    machine.pass(3);
    machine.tell(Event::Node(NodeChange::Gone("n1".into())));
    assert_eq!(asked(&two_turns(&mut machine)), [""; 0], "it may still arrive");
    machine.pass(7);
    let effects = machine.settle();
    assert_eq!(asked(&effects), ["protect c"], "which it is already");
    answer(&mut machine, &effects, &WriteOutcome::Failed(Setback::default()));
    machine.tell(claim("c", 3, &status(&given, &["p"])));
    assert_eq!(asked(&later(&mut machine)), ["free c"]);
}

#[test]
fn an_allocation_that_nobody_uses_is_given_up_for_a_node_with_room() {
    let mut machine = with_pod([claim("c", 3, &status(&device_of("gone"), &["p"]))]);
    let effects = two_turns(&mut machine);
    assert_eq!(told(&effects, "p"), "0/1 nodes are available: 1 resourceclaim not available on the node.");
    assert_eq!(asked(&effects), ["free c"]);
    done(&mut machine, &effects, 4, &json!({}));
    assert_eq!(asked(&later(&mut machine)), ["give c"]);
}

/// Pod `p` fits nowhere and its claim is being given up; then its node is open again.
fn open_again() -> (Machine, Vec<Effect>) {
    let mut machine = machine(&[("n1", 1)], [claim("c", 3, &status(&device_of("n1"), &["p"]))]);
    let mut closed = node("n1", &json!({}));
    closed["spec"] = json!({"unschedulable": true});
    machine.show_node(&closed);
    machine.show_pod(&user("p", "c"));
    let effects = two_turns(&mut machine);
    assert_eq!(asked(&effects), ["free c"]);
    machine.show_node(&node("n1", &json!({})));
    assert_eq!(bindings(&later(&mut machine)), [], "its claim may have lost its devices");
    (machine, effects)
}

#[test]
fn a_claim_that_is_being_given_up_is_used_again_only_once_that_is_seen() {
    let (mut machine, effects) = open_again();
    answer(&mut machine, &effects, &written(4));
    assert_eq!(bindings(&machine.settle()), [], "it is not seen yet");
    machine.tell(claim("c", 4, &json!({})));
    machine.settle();
    assert_eq!(asked(&later(&mut machine)), ["give c"]);
}

#[test]
fn a_claim_that_was_not_given_up_after_all_is_used_as_it_is() {
    let (mut machine, effects) = open_again();
    answer(&mut machine, &effects, &WriteOutcome::Failed(Setback::default()));
    assert_eq!(bindings(&machine.settle()), [], "the write may still arrive");
    machine.pass(7);
    let effects = machine.settle();
    assert_eq!(
        (asked(&effects), bindings(&effects)),
        (vec!["protect c".to_owned()], vec![]),
        "unseen, it may have"
    );
    // Nothing of the claim changes, so its version does not either.
    answer(&mut machine, &effects, &written(3));
    assert_eq!(bindings(&machine.settle()), [("p".to_owned(), "n1".to_owned())]);
}

#[test]
fn a_claim_that_was_given_up_by_a_write_without_an_answer_is_not_used_as_it_was_before_that() {
    let (mut machine, mut effects) = open_again();
    for _ in 0..9 {
        answer(&mut machine, &effects, &WriteOutcome::Failed(Setback::default()));
        assert_eq!(bindings(&machine.settle()), []);
        machine.pass(7);
        effects = machine.settle();
        assert_eq!((asked(&effects), bindings(&effects)), (vec!["protect c".to_owned()], vec![]));
    }
    machine.tell(claim("c", 4, &json!({})));
    answer(&mut machine, &effects, &WriteOutcome::Failed(Setback::default()));
    assert_eq!(bindings(&machine.settle()), []);
    let effects = later(&mut machine);
    assert_eq!(
        (asked(&effects), bindings(&effects)),
        (vec!["protect c".to_owned()], vec![]),
        "the last had no answer"
    );
    answer(&mut machine, &effects, &written(4));
    machine.settle();
    assert_eq!(asked(&later(&mut machine)), ["give c"]);
}

#[test]
fn a_claim_that_may_not_be_given_up_is_used_as_it_is() {
    let (mut machine, effects) = open_again();
    answer(&mut machine, &effects, &WriteOutcome::Refused("403".to_owned()));
    assert_eq!(bindings(&machine.settle()), []);
    machine.pass(7);
    assert_eq!(bindings(&machine.settle()), [("p".to_owned(), "n1".to_owned())]);
}

#[test]
fn an_allocation_in_use_stays_and_a_pod_that_waits_is_no_user_of_it() {
    let mut machine = with_pod([claim("c", 3, &status(&device_of("gone"), &["p", "other"]))]);
    let effects = two_turns(&mut machine);
    assert_eq!(asked(&effects), ["leave c"]);
    done(&mut machine, &effects, 4, &status(&device_of("gone"), &["other"]));
    assert_eq!(asked(&later(&mut machine)), [""; 0]);
}

#[test]
fn devices_that_have_to_be_prepared_are_awaited() {
    let mut allocation = device_of("n1");
    allocation.devices.results[0].binding_conditions = vec!["Attached".to_owned()];
    allocation.devices.results[0].binding_failure_conditions = vec!["Broken".to_owned()];
    let with = |condition: &str| {
        let mut status = status(&allocation, &["p"]);
        status["devices"] = json!([{"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0",
            "conditions": [{"type": condition, "status": "True"}]}]);
        claim("c", 4, &status)
    };
    let begun = || {
        let mut machine = with_pod([claim("c", 2, &status(&allocation, &[]))]);
        let effects = machine.settle();
        done(&mut machine, &effects, 3, &status(&allocation, &["p"]));
        assert_eq!(bindings(&machine.settle()), []);
        machine
    };
    let mut ready = begun();
    ready.tell(with("Attached"));
    assert_eq!(bindings(&ready.settle()), [("p".to_owned(), "n1".to_owned())]);
    let mut broken = begun();
    broken.tell(with("Broken"));
    let effects = broken.settle();
    assert_eq!(told(&effects, "p"), "resourceclaim \"c\": device \"gpu-0\" has the condition Broken");
    assert_eq!(bindings(&effects), []);
}

/// The rule `r`, which taints the devices of this node's pool with this effect.
fn taint_rule(version: TaintRuleVersion, node: &str, effect: &str) -> Event {
    let taint = json!({"key": "broken", "effect": effect});
    let spec = json!({"deviceSelector": {"driver": "gpu.example.com", "pool": node}, "taint": taint});
    let rule = parsed(&json!({"metadata": {"name": "r"}, "spec": spec}));
    Event::Object(ObjectChange::Seen(Object::DeviceTaintRule(version, rule)))
}

#[test]
fn devices_that_a_rule_taints_are_not_given_until_the_rule_goes() {
    for version in [TaintRuleVersion::V1, TaintRuleVersion::V1Beta2] {
        for effect in ["NoSchedule", "NoExecute"] {
            let mut machine = with_pod([free("c"), taint_rule(version, "n1", effect)]);
            let message = told(&machine.settle(), "p");
            assert!(message.contains("cannot allocate all claims"), "{message}");
            machine.tell(taint_rule(version, "n1", "None"));
            machine.pass(20);
            assert_eq!(
                asked(&machine.settle()),
                ["protect c"],
                "{effect}: the rule is only looked at by now"
            );
        }
        let mut machine = with_pod([free("c"), taint_rule(version, "n1", "NoSchedule")]);
        machine.settle();
        let gone = ObjectChange::Gone(Kind::DeviceTaintRule(version), "r".into());
        machine.tell(Event::Object(gone));
        machine.pass(20);
        assert_eq!(asked(&machine.settle()), ["protect c"], "the rule is gone");
    }
    let objects = [free("c"), taint_rule(TaintRuleVersion::V1, "n1", "NoSchedule")];
    let mut machine = machine(&[("n1", 1), ("n2", 1)], objects);
    machine.show_pod(&user("p", "c"));
    let effects = machine.settle();
    done(&mut machine, &effects, 2, &json!({}));
    assert_eq!(
        given(&machine.settle()).devices.results[0].pool,
        "n2",
        "only devices of the pool are tainted"
    );
}

#[test]
fn nothing_is_decided_before_claims_are_listed() {
    let mut machine = Machine::new(&Config::default(), &[node("n1", &json!({}))], &[]);
    machine.show_pod(&user("p", "c"));
    assert_eq!(told(&machine.settle(), "p"), "");
    machine.pass(5);
    assert_eq!(told(&machine.settle(), "p"), "");
    machine.pass(31);
    let message = told(&machine.settle(), "p");
    assert!(
        message.contains("resourceclaims, resourceslices, deviceclasses, devicetaintrules; "),
        "{message}"
    );
    machine.tell(Event::Told { pod: key("p"), message, outcome: TellOutcome::Done });
    let missing = "the Pod has claims, and these are not listed yet";
    machine.serve_none(Kind::DEVICE_CLAIMS);
    // What was last said is said again until it is answered.
    let message = told(&machine.settle(), "p");
    assert!(message.starts_with(missing), "{message}");
    machine.tell(Event::Told { pod: key("p"), message, outcome: TellOutcome::Done });
    let message = told(&machine.settle(), "p");
    assert_eq!(message, "0/1 nodes are available: resourceclaim \"c\" not found.");
}

#[test]
fn where_claims_are_off_their_pods_name_the_setting_and_others_wait_for_no_list() {
    let off = Config::parse("scheduling: {claims: {enabled: false}}", "berth.yaml").unwrap().0;
    let card = json!({"id": "GPU-0", "index": 0, "count": 10, "devmem": 16000, "devcore": 100, "type": "NVIDIA", "health": true});
    let register = json!({"hami.io/node-nvidia-register": json!([card]).to_string()});
    // A pod with a claim that runs there leaves no doubt about the card.
    let running = bound(user("r", "d"), "n1", json!({}));
    let mut machine = Machine::new(&off, &[node("n1", &register)], &[running]);
    machine.show_pod(&user("p", "c"));
    machine.show_pod(&pod("s", &json!({"nvidia.com/gpu": "1"})));
    let (effects, placed) = machine.run();
    let expected = "0/1 nodes are available: resourceclaims are not served, since scheduling.claims.enabled is false in Berth's settings.";
    assert_eq!(told(&effects, "p"), expected);
    assert_eq!(placed, [("s".to_owned(), "n1".to_owned())], "it does not wait until claims are listed");
}

#[test]
fn a_pod_of_another_scheduler_holds_what_its_claim_has() {
    let mut machine = machine(&[("n1", 1)], [claim("d", 1, &status(&device_of("n1"), &["o"])), free("c")]);
    let mut other = user("o", "d");
    other["spec"]["schedulerName"] = json!("default-scheduler");
    machine.show_pod(&bound(other, "n1", json!({})));
    machine.show_pod(&user("p", "c"));
    assert_eq!(told(&machine.settle(), "p"), "0/1 nodes are available: 1 cannot allocate all claims.");
}

/// What a pod says whose claim `c` is given another device than that which another claim has, too.
const SOUGHT: &str = "resourceclaim \"c\": device \"gpu-0\" was given to another claim at the same time; other devices are looked for";

/// Claim `d`, which has the device of node `n1`, and a user that runs.
fn taken() -> Event {
    claim("d", 4, &status(&device_of("n1"), &["o"]))
}

#[test]
fn a_claim_of_which_another_one_has_the_device_is_freed_whoever_has_given_it() {
    let mut ours = with_pod([free("c")]);
    let (effects, allocation) = reserving(&mut ours);
    ours.tell(taken());
    done(&mut ours, &effects, 5, &status(&allocation, &["p"]));
    let effects = two_turns(&mut ours);
    assert_eq!((told(&effects, "p").as_str(), asked(&effects)), (SOUGHT, vec!["free c".to_owned()]));
    // A new process does not know which scheduler gave it the device. The status names the pod as a user, or not yet.
    for users in [&["p"][..], &[]] {
        let mut restarted = with_pod([claim("c", 3, &status(&device_of("n1"), users)), taken()]);
        let effects = two_turns(&mut restarted);
        assert_eq!((told(&effects, "p").as_str(), asked(&effects)), (SOUGHT, vec!["free c".to_owned()]));
        done(&mut restarted, &effects, 5, &json!({}));
        let effects = [restarted.settle(), later(&mut restarted)].concat();
        assert_eq!((asked(&effects), bindings(&effects)), (vec![], vec![]), "the device is taken");
        restarted.tell(claim("d", 6, &json!({})));
        assert_eq!(asked(&[restarted.settle(), later(&mut restarted)].concat()), ["give c"]);
    }
}

/// The devices of node `n1`: two that may be shared, with so much memory, and that take 4 each of a counter, of which there is so much.
fn shared_devices(memory: u32, counter: u32) -> [Event; 2] {
    let device = |at: u32| {
        json!({"name": format!("gpu-{at}"), "allowMultipleAllocations": true, "capacity": {"memory": {"value": memory.to_string()}},
            "consumesCounters": [{"counterSet": "card", "counters": {"slots": {"value": "4"}}}]})
    };
    let counters = json!([{"name": "card", "counters": {"slots": {"value": counter.to_string()}}}]);
    let slice = |name: &str, field: &str, content: &Value| {
        let slice = json!({
            "metadata": {"name": name},
            "spec": {"driver": "gpu.example.com", "nodeName": "n1", field: content,
                "pool": {"name": "n1", "generation": 2, "resourceSliceCount": 2}},
        });
        Event::Object(ObjectChange::Seen(Object::ResourceSlice(parsed(&slice))))
    };
    [
        slice("n1-gpu.example.com", "devices", &json!([device(0), device(1)])),
        slice("n1-counters", "sharedCounters", &counters),
    ]
}

/// A share of a device of node `n1`.
fn share_of(device: &str, memory: u32) -> AllocationResult {
    let mut share = device_of("n1");
    let mut result = serde_json::to_value(&share.devices.results[0]).unwrap();
    result["device"] = json!(device);
    result["shareID"] = json!(format!("share-{device}-{memory}"));
    result["consumedCapacity"] = json!({"memory": memory.to_string()});
    share.devices.results = vec![parsed(&result)];
    share
}

#[test]
fn a_claim_is_freed_with_which_a_device_or_a_counter_has_too_little_for_all() {
    let given = |device: &str| {
        [
            claim("c", 3, &status(&share_of("gpu-0", 60), &["p"])),
            claim("d", 4, &status(&share_of(device, 60), &["o"])),
        ]
    };
    for (device, memory, counter, is_freed) in [
        ("gpu-0", 100, 100, true),
        ("gpu-0", 120, 100, false),
        ("gpu-1", 100, 7, true),
        ("gpu-1", 100, 8, false),
    ] {
        let mut machine = with_pod(shared_devices(memory, counter).into_iter().chain(given(device)));
        let effects = two_turns(&mut machine);
        let case = format!("{device}, {memory}, {counter}");
        if is_freed {
            assert_eq!(
                (told(&effects, "p").as_str(), asked(&effects)),
                (SOUGHT, vec!["free c".to_owned()]),
                "{case}"
            );
        } else {
            assert_eq!(bindings(&effects), [("p".to_owned(), "n1".to_owned())], "{case}");
        }
    }
}

#[test]
fn pods_that_run_are_told_of_shares_and_counters_that_are_more_than_there_is() {
    let told_of = |slices: [Event; 2], device: &str| {
        let given = [("c", "p", "gpu-0"), ("d", "o", device)];
        let claims =
            given.map(|(name, user, device)| claim(name, 3, &status(&share_of(device, 60), &[user])));
        let pods = given.map(|(name, pod, _)| bound(user(pod, name), "n1", json!({})));
        let mut machine = machine(&[("n1", 1)], shared_devices(120, 8).into_iter().chain(claims));
        for pod in &pods {
            machine.show_pod(pod);
        }
        let found = |effects: &[Effect]| -> Vec<(String, String)> {
            let found = effects.iter().filter_map(|effect| match effect {
                Effect::ReportFinding { of: Concern::Pod(pod), finding } => {
                    Some((pod.name.to_string(), finding.message().full))
                }
                _ => None,
            });
            found.collect()
        };
        assert_eq!(found(&two_turns(&mut machine)), []);
        // The driver publishes less: that is found as well as a claim that comes later.
        for slice in slices {
            machine.tell(slice);
        }
        let found = found(&two_turns(&mut machine));
        assert_eq!(found.len(), 2, "{found:?}");
        found.into_iter().map(|(pod, message)| format!("{pod}: {message}")).collect::<Vec<_>>()
    };
    let of_memory = "More of capacity memory is allocated than there is, with device gpu-0 of pool n1 (gpu.example.com), to claims default/c, default/d. \
                     Delete Pods of some of them";
    let mut told = told_of(shared_devices(100, 8), "gpu-0");
    told.sort();
    assert_eq!(told, ["o", "p"].map(|pod| format!("{pod}: {of_memory}")));
    let mut told = told_of(shared_devices(120, 7), "gpu-1");
    told.sort();
    let of_counter = |device: &str| {
        format!(
            "More of counter card/slots is allocated than there is, with device {device} of pool n1 (gpu.example.com), to claims default/c, default/d. \
             Delete Pods of some of them"
        )
    };
    assert_eq!(told, [format!("o: {}", of_counter("gpu-1")), format!("p: {}", of_counter("gpu-0"))]);
}

#[test]
fn a_pod_waits_for_a_claim_that_others_use_and_of_which_another_claim_has_the_device() {
    for (users, leaves) in [(&["q"][..], vec![]), (&["p", "q"], vec!["leave c".to_owned()])] {
        let mut shared = with_pod([claim("c", 3, &status(&device_of("n1"), users)), taken()]);
        let effects = two_turns(&mut shared);
        let waits = "resourceclaim \"c\": device \"gpu-0\" is allocated to another claim, too";
        assert_eq!((told(&effects, "p").as_str(), asked(&effects)), (waits, leaves));
        done(&mut shared, &effects, 5, &status(&device_of("n1"), &["q"]));
        let after = later(&mut shared);
        assert_eq!((asked(&after), bindings(&after)), (vec![], vec![]));
        // The other pod has left the claim too, and no controller frees it.
        shared.tell(claim("c", 6, &status(&device_of("n1"), &[])));
        assert_eq!(asked(&[two_turns(&mut shared), later(&mut shared)].concat()), ["free c"]);
    }
}

#[test]
fn a_pod_that_waits_for_such_a_claim_gives_up_its_other_claims() {
    let mut second = device_of("n1");
    second.devices.results[0].device = "gpu-1".to_owned();
    let shared = claim("c", 3, &status(&device_of("n1"), &["q"]));
    let mut machine = machine(&[("n1", 3)], [shared, taken(), claim("own", 3, &status(&second, &["p"]))]);
    let mut pod = user("p", "c");
    let own = json!({"name": "own", "resourceClaimName": "own"});
    pod["spec"]["resourceClaims"].as_array_mut().unwrap().push(own);
    machine.show_pod(&pod);
    let effects = two_turns(&mut machine);
    assert_eq!(asked(&effects), ["free own"]);
    answer(&mut machine, &effects, &written(4));
    machine.tell(claim("own", 4, &json!({})));
    assert_eq!(
        asked(&later(&mut machine)),
        [""; 0],
        "it is not given devices as long as the pod can't use the other one"
    );
    machine.tell(claim("c", 5, &json!({})));
    assert_eq!(asked(&later(&mut machine)), ["give c", "give own"]);
}

/// What is said of the pod, the nearest node included, with `details`.
fn said(details: Details, pods: &[Value], objects: impl IntoIterator<Item = Event>) -> String {
    let config = Config::default();
    let settings = Settings { gangs: None, ..config.scheduler_settings() };
    let mut machine = Machine::begin_with(&config, settings, &[node("n1", &json!({}))], &[]);
    listed(&mut machine);
    machine.tell(slice("n1", 2));
    objects.into_iter().for_each(|event| machine.tell(event));
    for pod in pods {
        machine.show_pod(pod);
    }
    let told = |effect: &Effect| match effect {
        Effect::TellUnschedulable { pod, reason, .. } if *pod.name == *"p" => {
            Some(reason.message().told(details).0)
        }
        _ => None,
    };
    machine.settle().iter().rev().find_map(told).unwrap_or_default()
}

#[test]
fn who_holds_the_devices_of_a_claim_is_named() {
    let of_another = |name: &str, device: &str| {
        let device = json!({"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": device});
        let users =
            json!([{"resource": "pods", "name": format!("{name}-pod"), "uid": format!("uid-{name}")}]);
        let claim = json!({
            "metadata": {"name": name, "namespace": "another", "uid": format!("uid-{name}"), "resourceVersion": "1"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
            "status": {"allocation": {"devices": {"results": [device]}}, "reservedFor": users},
        });
        Event::Object(ObjectChange::Seen(Object::ResourceClaim(parsed(&claim))))
    };
    let second = json!({"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-1"});
    let second = json!({"allocation": {"devices": {"results": [second]}}});
    let held = || [of_another("one", "gpu-0"), claim("d", 1, &second), free("c")];
    let counted = "0/1 nodes are available: 1 cannot allocate all claims.";
    let lacks = "claim c, request gpu: 0 of 2 matching device(s) free, 1 needed; held by";
    assert_eq!(
        said(Details::Full, &[user("p", "c")], held()),
        format!("{counted} nearest: n1: {lacks} another/one-pod, claim default/d.")
    );
    assert_eq!(
        said(Details::Own, &[user("p", "c")], held()),
        format!("{counted} nearest node: {lacks} claim default/d and 1 other(s).")
    );
}

#[test]
fn a_class_that_is_missing_is_named_and_wakes_the_pod_once_it_is_there() {
    let mut machine = with_pod([claim_of("late", "c", (1, &[]), &json!({}))]);
    let message = told(&machine.settle(), "p");
    assert!(message.contains("late"), "{message}");
    machine.tell(class("late"));
    assert_eq!(asked(&later(&mut machine)), ["protect c"]);
}

#[test]
fn what_was_found_of_a_node_holds_until_its_devices_or_what_is_held_of_them_change() {
    let mut machine = machine(&[("n1", 1), ("n2", 0)], ["a", "b", "c"].map(free));
    for (pod, claim) in [("p", "a"), ("q", "b"), ("r", "c")] {
        machine.show_pod(&user(pod, claim));
    }
    let effects = machine.settle();
    assert_eq!(asked(&effects), ["protect a"]);
    for waits in ["q", "r"] {
        assert_eq!(told(&effects, waits), "0/2 nodes are available: 2 cannot allocate all claims.");
    }
    for (devices, protected) in [(1, "protect b"), (2, "protect c")] {
        machine.tell(slice("n2", devices));
        assert_eq!(asked(&later(&mut machine)), [protected]);
    }
}
