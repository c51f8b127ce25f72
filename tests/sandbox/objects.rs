//! Creating, reading, updating and listing objects.

use super::world::{create_pod, object, pod_json, pods, refusal, start};
use berth_sandbox::{RequestKey, Verb};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Event, Namespace, Node, Pod},
    events,
    scheduling::v1::PriorityClass,
};
use kube::{
    Api, ResourceExt,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn a_new_pod_gets_its_defaults() {
    let (_sandbox, client) = start();
    let mut sent = pod_json("p");
    sent["spec"]["containers"][0]["resources"] =
        json!({ "limits": { "example.com/gpumem": "8000", "cpu": "0.5" } });
    sent["spec"]["initContainers"] =
        json!([{ "name": "i", "image": "i", "resources": { "limits": { "memory": "1024Mi" } } }]);
    sent["status"] = json!({ "phase": "Running" });
    let pod = pods(&client).create(&PostParams::default(), &object(sent)).await.unwrap();
    let read = serde_json::to_value(&pod).unwrap();
    assert_eq!(read["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(read["metadata"]["generation"], 1);
    assert_eq!(read["metadata"]["namespace"], "default");
    assert_eq!(read["spec"]["schedulerName"], "default-scheduler");
    assert_eq!(read["spec"]["terminationGracePeriodSeconds"], 30);
    assert_eq!(read["spec"]["priority"], 0);
    let want = json!({ "example.com/gpumem": "8k", "cpu": "500m" });
    assert_eq!(read["spec"]["containers"][0]["resources"]["requests"], want);
    assert_eq!(read["spec"]["initContainers"][0]["resources"]["requests"], json!({ "memory": "1Gi" }));
    assert_eq!(read["status"], json!({ "phase": "Pending", "qosClass": "Burstable" }));
}

#[tokio::test(start_paused = true)]
async fn names_are_generated_and_taken_once() {
    let (_sandbox, client) = start();
    let mut sent = pod_json("");
    sent["metadata"] = json!({ "generateName": "job-" });
    let first = pods(&client).create(&PostParams::default(), &object(sent.clone())).await.unwrap();
    let second = pods(&client).create(&PostParams::default(), &object(sent)).await.unwrap();
    assert!(first.name_any().starts_with("job-") && first.name_any().len() == 9);
    assert_ne!(first.name_any(), second.name_any());
    let again = pods(&client).create(&PostParams::default(), &object(pod_json(&first.name_any()))).await;
    let (code, reason, message) = refusal(again);
    assert_eq!((code, reason.as_str()), (409, "AlreadyExists"));
    assert_eq!(message, format!("pods \"{}\" already exists", first.name_any()));
}

#[tokio::test(start_paused = true)]
async fn invalid_objects_are_refused_with_their_field() {
    let (_sandbox, client) = start();
    let cases = [
        ("/metadata/name", json!("Not_A_Name"), "metadata.name"),
        ("/spec/containers", json!([]), "spec.containers: Required value"),
        ("/spec/containers/0/name", json!("B_"), "spec.containers[0].name"),
        ("/spec/containers/0/resources", json!({ "limits": { "cpu": "-1" } }), "greater than or equal to 0"),
        ("/spec/containers/0/resources", json!({ "requests": { "a.b/gpu": "1" } }), "Limit must be set"),
        ("/metadata/labels", json!({ "a": "x".repeat(64) }), "no more than 63"),
        ("/metadata/annotations", json!({ "a": "x".repeat(262_144) }), "Too long"),
        ("/spec/containers/0/resources", json!({ "limits": { "a.b/gpu": "1.5" } }), "must be an integer"),
        (
            "/spec/containers/0/resources",
            json!({ "limits": { "gpu": "1" } }),
            "must be a standard resource for containers",
        ),
        (
            "/spec/containers/0/resources",
            json!({ "limits": { "cpu": "1" }, "requests": { "cpu": "1001m" } }),
            "must be less than or equal to cpu limit of 1",
        ),
    ];
    for (pointer, value, want) in cases {
        let mut sent = pod_json("p");
        sent["metadata"]["labels"] = json!({});
        sent["metadata"]["annotations"] = json!({});
        sent["spec"]["containers"][0]["resources"] = json!({});
        *sent.pointer_mut(pointer).unwrap() = value;
        let (code, reason, message) =
            refusal(pods(&client).create(&PostParams::default(), &object(sent)).await);
        assert_eq!((code, reason.as_str()), (422, "Invalid"), "{message}");
        assert!(message.contains(want) && message.starts_with("Pod "), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_decode_or_has_no_namespace_is_refused() {
    let (_sandbox, client) = start();
    let mut sent = pod_json("p");
    sent["spec"]["containers"][0]["resources"] = json!({ "limits": { "cpu": "many" } });
    let answer = refusal(pods(&client).create(&PostParams::default(), &object(sent)).await);
    assert_eq!((answer.0, answer.1.as_str()), (400, "BadRequest"));
    let elsewhere: Api<Pod> = Api::namespaced(client.clone(), "nowhere");
    let answer = refusal(elsewhere.create(&PostParams::default(), &object(pod_json("p"))).await);
    assert_eq!(answer, (404, "NotFound".to_owned(), "namespaces \"nowhere\" not found".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_stale_update_conflicts_and_a_fresh_one_bumps_the_version() {
    let (sandbox, client) = start();
    let created = create_pod(&client, "p").await;
    let mut fresh = created.clone();
    fresh.labels_mut().insert("a".to_owned(), "b".to_owned());
    let updated = pods(&client).replace("p", &PostParams::default(), &fresh).await.unwrap();
    assert_eq!(updated.resource_version().unwrap(), sandbox.resource_version().to_string());
    let (code, reason, message) = refusal(pods(&client).replace("p", &PostParams::default(), &fresh).await);
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert!(message.starts_with("Operation cannot be fulfilled on pods \"p\": the object has been modified"));
    let before = sandbox.resource_version();
    let same = pods(&client).replace("p", &PostParams::default(), &updated).await.unwrap();
    assert_eq!(same.resource_version(), updated.resource_version());
    assert_eq!(sandbox.resource_version(), before, "an update that changes nothing writes nothing");
}

#[tokio::test(start_paused = true)]
async fn a_pod_spec_stays_but_for_the_few_fields() {
    let (_sandbox, client) = start();
    let mut sent = pod_json("p");
    sent["spec"]["schedulingGates"] = json!([{ "name": "a.b/wait" }]);
    let pod = pods(&client).create(&PostParams::default(), &object(sent)).await.unwrap();
    let condition = &pod.status.as_ref().unwrap().conditions.as_ref().unwrap()[0];
    assert_eq!((condition.type_.as_str(), condition.status.as_str()), ("PodScheduled", "False"));
    assert_eq!(condition.reason.as_deref(), Some("SchedulingGated"));
    let mut moved = pod.clone();
    moved.spec.as_mut().unwrap().scheduler_name = Some("other".to_owned());
    assert_eq!(refusal(pods(&client).replace("p", &PostParams::default(), &moved).await).0, 422);
    let mut allowed = pod;
    let spec = allowed.spec.as_mut().unwrap();
    spec.scheduling_gates = None;
    spec.containers[0].image = Some("i:2".to_owned());
    let allowed = pods(&client).replace("p", &PostParams::default(), &allowed).await.unwrap();
    assert_eq!(allowed.metadata.generation, Some(2));
}

#[tokio::test(start_paused = true)]
async fn status_and_spec_are_isolated_both_ways() {
    let (_sandbox, client) = start();
    let nodes: Api<Node> = Api::all(client);
    let sent =
        json!({ "metadata": { "name": "n" }, "status": { "capacity": { "cpu": "8", "a.b/gpu": "8000" } } });
    let node = nodes.create(&PostParams::default(), &object(sent)).await.unwrap();
    let allocatable = node.status.as_ref().unwrap().allocatable.as_ref().unwrap();
    assert_eq!(allocatable["a.b/gpu"].0, "8k");
    let mut both = node.clone();
    both.spec.as_mut().unwrap().unschedulable = Some(true);
    both.status.as_mut().unwrap().phase = Some("Running".to_owned());
    both.annotations_mut().insert("a".to_owned(), "1".to_owned());
    let plain = nodes.replace("n", &PostParams::default(), &both).await.unwrap();
    assert_eq!(plain.spec.as_ref().unwrap().unschedulable, Some(true));
    assert_eq!(plain.status.as_ref().unwrap().phase, None);
    let mut both = plain;
    both.spec.as_mut().unwrap().unschedulable = None;
    both.status.as_mut().unwrap().phase = Some("Running".to_owned());
    both.annotations_mut().insert("a".to_owned(), "2".to_owned());
    let status = nodes.replace_status("n", &PostParams::default(), &both).await.unwrap();
    assert_eq!(status.spec.as_ref().unwrap().unschedulable, Some(true));
    assert_eq!(status.status.as_ref().unwrap().phase.as_deref(), Some("Running"));
    assert_eq!(status.annotations()["a"], "2", "annotations change through the status too");
}

#[tokio::test(start_paused = true)]
async fn lists_select_and_page_one_snapshot() {
    let (sandbox, client) = start();
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "x"), ("d", "x")] {
        let mut sent = pod_json(name);
        sent["metadata"]["labels"] = json!({ "app": label });
        pods(&client).create(&PostParams::default(), &object(sent)).await.unwrap();
    }
    let names = |list: &kube::core::ObjectList<Pod>| -> Vec<String> {
        list.iter().map(ResourceExt::name_any).collect()
    };
    let params = ListParams::default().labels("app in (x),app!=y").fields("metadata.name!=c");
    let selected = pods(&client).list(&params).await.unwrap();
    assert_eq!(names(&selected), ["a", "d"]);
    let first = pods(&client).list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(
        (names(&first), first.metadata.remaining_item_count),
        (vec!["a".to_owned(), "b".to_owned()], Some(2))
    );
    pods(&client).delete("c", &kube::api::DeleteParams::default()).await.unwrap();
    create_pod(&client, "e").await;
    let token = first.metadata.continue_.clone().unwrap();
    let rest = pods(&client).list(&ListParams::default().limit(9).continue_token(&token)).await.unwrap();
    assert_eq!(names(&rest), ["c", "d"], "the second page is of the same snapshot");
    assert_eq!(rest.metadata.resource_version, first.metadata.resource_version);
    sandbox.compact();
    create_pod(&client, "f").await;
    let gone = refusal(pods(&client).list(&ListParams::default().continue_token(&token)).await);
    assert_eq!((gone.0, gone.1.as_str()), (410, "Expired"));
}

#[tokio::test(start_paused = true)]
async fn dry_runs_answer_and_store_nothing() {
    let (sandbox, client) = start();
    let before = sandbox.resource_version();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let answered = pods(&client).create(&dry, &object(pod_json("p"))).await.unwrap();
    assert!(answered.uid().is_some());
    assert_eq!(refusal(pods(&client).create(&dry, &object(pod_json("B@d"))).await).0, 422);
    assert_eq!(refusal(pods(&client).get("p").await).0, 404);
    let kept = create_pod(&client, "q").await;
    let mut changed = kept.clone();
    changed.labels_mut().insert("a".to_owned(), "b".to_owned());
    assert_eq!(pods(&client).replace("q", &dry, &changed).await.unwrap().labels()["a"], "b");
    pods(&client).delete("q", &kube::api::DeleteParams::default().dry_run()).await.unwrap();
    assert_eq!(pods(&client).get("q").await.unwrap(), kept);
    assert_eq!(sandbox.resource_version(), before + 1);
}

#[tokio::test(start_paused = true)]
async fn events_are_read_through_both_groups() {
    let (_sandbox, client) = start();
    let new: Api<events::v1::Event> = Api::default_namespaced(client.clone());
    let sent = json!({ "metadata": { "name": "e" }, "eventTime": "2026-01-01T00:00:00.000000Z", "note": "n",
        "reason": "Scheduled", "action": "Binding", "type": "Normal", "reportingController": "berth",
        "reportingInstance": "berth-0", "regarding": { "kind": "Pod", "name": "p", "namespace": "default" } });
    new.create(&PostParams::default(), &object(sent)).await.unwrap();
    let core: Api<Event> = Api::default_namespaced(client);
    let fields = ListParams::default().fields("involvedObject.name=p,reason=Scheduled");
    let listed = core.list(&fields).await.unwrap();
    assert_eq!(listed.items[0].message.as_deref(), Some("n"));
    assert_eq!(listed.items[0].reporting_component.as_deref(), Some("berth"));
    assert_eq!(new.get("e").await.unwrap().note.as_deref(), Some("n"));
}

#[tokio::test(start_paused = true)]
async fn priority_comes_from_the_class() {
    let (_sandbox, client) = start();
    let classes: Api<PriorityClass> = Api::all(client.clone());
    let class = json!({ "metadata": { "name": "high" }, "value": 7 });
    classes.create(&PostParams::default(), &object(class)).await.unwrap();
    let mut sent = pod_json("p");
    sent["spec"]["priorityClassName"] = json!("high");
    let pod = pods(&client).create(&PostParams::default(), &object(sent.clone())).await.unwrap();
    assert_eq!(pod.spec.unwrap().priority, Some(7));
    sent["metadata"]["name"] = json!("q");
    sent["spec"]["priorityClassName"] = json!("low");
    let answer = refusal(pods(&client).create(&PostParams::default(), &object(sent)).await);
    assert_eq!((answer.0, answer.1.as_str()), (403, "Forbidden"));
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_updated_by_version_only_and_requests_are_counted() {
    let (sandbox, client) = start();
    let leases: Api<Lease> = Api::namespaced(client, "kube-system");
    let sent = json!({ "metadata": { "name": "berth" }, "spec": { "holderIdentity": "a", "leaseDurationSeconds": 15 } });
    let lease = leases.create(&PostParams::default(), &object(sent)).await.unwrap();
    let mut unversioned = lease.clone();
    unversioned.metadata.resource_version = None;
    assert_eq!(refusal(leases.replace("berth", &PostParams::default(), &unversioned).await).0, 422);
    leases.replace("berth", &PostParams::default(), &lease).await.unwrap();
    let count = |verb, code| {
        let resource = "leases.coordination.k8s.io".to_owned();
        let key = RequestKey { verb, resource, subresource: String::new(), code };
        sandbox.requests().get(&key).copied()
    };
    let counted =
        (count(Verb::Create, 201), count(Verb::Update, 200), count(Verb::Update, 422), count(Verb::Get, 200));
    assert_eq!(counted, (Some(1), Some(1), Some(1), None));
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_labelled_and_end_by_finalize() {
    let (_sandbox, client) = start();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let made =
        namespaces.create(&PostParams::default(), &object(json!({ "metadata": { "name": "ns" } }))).await;
    assert_eq!(made.unwrap().labels()["kubernetes.io/metadata.name"], "ns");
    namespaces.delete("ns", &kube::api::DeleteParams::default()).await.unwrap();
    let mut going = namespaces.get("ns").await.unwrap();
    assert_eq!(going.status.as_ref().unwrap().phase.as_deref(), Some("Terminating"));
    let inside: Api<Pod> = Api::namespaced(client.clone(), "ns");
    assert_eq!(refusal(inside.create(&PostParams::default(), &object(pod_json("p"))).await).0, 403);
    going.spec.as_mut().unwrap().finalizers = None;
    let body = serde_json::to_vec(&going).unwrap();
    let request = http::Request::put("/api/v1/namespaces/ns/finalize").body(body).unwrap();
    client.request::<Value>(request).await.unwrap();
    assert_eq!(refusal(namespaces.get("ns").await).0, 404);
}

#[tokio::test(start_paused = true)]
async fn the_server_says_what_it_serves() {
    let (_sandbox, client) = start();
    assert_eq!(client.apiserver_version().await.unwrap().git_version, "v1.36.3");
    let groups = client.list_api_groups().await.unwrap();
    assert!(groups.groups.iter().any(|group| group.name == "events.k8s.io"));
    let core = client.list_core_api_resources("v1").await.unwrap();
    assert!(core.resources.iter().any(|resource| resource.name == "pods/binding"));
    let request = http::Request::get("/apis/nothing.example.com/v1/things").body(Vec::new()).unwrap();
    assert_eq!(refusal(client.request::<Value>(request).await).0, 404);
}
