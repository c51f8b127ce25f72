//! Watches: continuity, selectors, bookmarks, initial events, 410.

use super::world::{bind, create_pod, object, pod_json, pods, refusal, start};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    runtime::watcher::{self, Event},
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// Kind and name of an event; a bookmark shows its version, an error its code.
fn short(event: &WatchEvent<Pod>) -> String {
    match event {
        WatchEvent::Added(pod) => format!("+{}", pod.name_any()),
        WatchEvent::Modified(pod) => format!("~{}", pod.name_any()),
        WatchEvent::Deleted(pod) => format!("-{}", pod.name_any()),
        WatchEvent::Bookmark(mark) => format!("={}", mark.metadata.resource_version),
        WatchEvent::Error(status) => format!("!{}", status.code),
    }
}

/// All events of a watch until it ends by itself.
async fn events(client: &Client, params: &WatchParams, version: &str) -> Vec<String> {
    let stream = pods(client).watch(params, version).await.unwrap();
    stream.map_ok(|event| short(&event)).try_collect().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_from_its_version() {
    let (sandbox, client) = start();
    create_pod(&client, "a").await;
    let from = sandbox.resource_version().to_string();
    create_pod(&client, "b").await;
    bind(&client, "a", "n", json!({})).await.unwrap();
    pods(&client).delete("b", &DeleteParams::default()).await.unwrap();
    let params = WatchParams::default().timeout(5).disable_bookmarks();
    assert_eq!(events(&client, &params, &from).await, ["+b", "~a", "-b"]);
    assert_eq!(events(&client, &params, "0").await, ["+a"]);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_carries_the_version_of_its_deletion() {
    let (sandbox, client) = start();
    let pod = create_pod(&client, "a").await;
    pods(&client).delete("a", &DeleteParams::default()).await.unwrap();
    let params = WatchParams::default().timeout(5).disable_bookmarks();
    let stream = pods(&client)
        .watch(&params, &pod.resource_version().unwrap())
        .await
        .unwrap();
    let all: Vec<WatchEvent<Pod>> = stream.try_collect().await.unwrap();
    let [WatchEvent::Deleted(gone)] = all.as_slice() else {
        panic!("{all:?}")
    };
    assert_eq!(
        gone.resource_version().unwrap(),
        sandbox.resource_version().to_string()
    );
    assert_eq!(gone.uid(), pod.uid());
}

#[tokio::test(start_paused = true)]
async fn what_leaves_the_selector_is_deleted_and_what_enters_is_added() {
    let (sandbox, client) = start();
    let from = sandbox.resource_version().to_string();
    create_pod(&client, "a").await;
    bind(&client, "a", "n", json!({})).await.unwrap();
    let label = Patch::Merge(json!({ "metadata": { "labels": { "x": "y" } } }));
    pods(&client)
        .patch("a", &PatchParams::default(), &label)
        .await
        .unwrap();
    let base = WatchParams::default().timeout(5).disable_bookmarks();
    assert_eq!(
        events(&client, &base.clone().fields("spec.nodeName="), &from).await,
        ["+a", "-a"]
    );
    assert_eq!(
        events(&client, &base.clone().fields("spec.nodeName=n"), &from).await,
        ["+a", "~a"]
    );
    assert_eq!(events(&client, &base.labels("x=y"), &from).await, ["+a"]);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_each_minute_and_before_the_end() {
    let (sandbox, client) = start();
    let from = sandbox.resource_version().to_string();
    let params = WatchParams::default().timeout(100);
    let began = Instant::now();
    let mut stream = pods(&client).watch(&params, &from).await.unwrap().boxed();
    let mut seen = Vec::new();
    while let Some(event) = stream.try_next().await.unwrap() {
        seen.push((began.elapsed().as_secs(), short(&event)));
    }
    let mark = format!("={from}");
    assert_eq!(seen, [(60, mark.clone()), (98, mark)]);
    assert_eq!(began.elapsed().as_secs(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_version_answers_410() {
    let (sandbox, client) = start();
    let from = sandbox.resource_version().to_string();
    create_pod(&client, "a").await;
    sandbox.compact();
    let params = WatchParams::default().timeout(5);
    let mut stream = pods(&client).watch(&params, &from).await.unwrap().boxed();
    let Some(Ok(WatchEvent::Error(status))) = stream.next().await else {
        panic!("no error event")
    };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    assert!(stream.next().await.is_none());
    let newest = sandbox.resource_version().to_string();
    let params = params.disable_bookmarks();
    assert!(
        events(&client, &params, &newest).await.is_empty(),
        "the newest version is not too old"
    );
}

#[tokio::test(start_paused = true)]
async fn a_running_watch_survives_a_compaction_of_what_it_has_seen() {
    let (sandbox, client) = start();
    create_pod(&client, "a").await;
    let params = WatchParams::default().timeout(20).disable_bookmarks();
    let from = sandbox.resource_version().to_string();
    let mut stream = pods(&client).watch(&params, &from).await.unwrap().boxed();
    let later = async {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let map = object(json!({ "metadata": { "name": "m" } }));
        maps.create(&PostParams::default(), &map).await.unwrap();
        sandbox.compact();
        create_pod(&client, "b").await;
    };
    let (event, ()) = tokio::join!(stream.next(), later);
    assert_eq!(short(&event.unwrap().unwrap()), "+b");
    assert_eq!(
        events(&client, &params, &from).await,
        ["!410"],
        "a new watch from there is too late"
    );
}

#[tokio::test(start_paused = true)]
async fn initial_events_end_with_an_annotated_bookmark() {
    let (sandbox, client) = start();
    create_pod(&client, "a").await;
    let request = |matching: &str| {
        let path = format!(
            "/api/v1/pods?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&timeoutSeconds=5{matching}"
        );
        http::Request::get(path).body(Vec::new()).unwrap()
    };
    assert_eq!(refusal(client.request::<Value>(request("")).await).0, 422);
    let text = client
        .request_text(request("&resourceVersionMatch=NotOlderThan"))
        .await
        .unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&lines[0]["type"], &lines[0]["object"]["metadata"]["name"]),
        (&json!("ADDED"), &json!("a"))
    );
    assert_eq!(lines[1]["type"], "BOOKMARK");
    let metadata = &lines[1]["object"]["metadata"];
    assert_eq!(
        metadata["annotations"],
        json!({ "k8s.io/initial-events-end": "true" })
    );
    assert_eq!(
        metadata["resourceVersion"],
        sandbox.resource_version().to_string()
    );
}

#[tokio::test(start_paused = true)]
async fn kubes_watcher_resyncs_after_410_by_list_and_by_stream() {
    for config in [
        watcher::Config::default(),
        watcher::Config::default().streaming_lists(),
    ] {
        let (sandbox, client) = start();
        create_pod(&client, "a").await;
        let mut stream = watcher::watcher(pods(&client), config.timeout(10)).boxed();
        let mut names = Vec::new();
        let mut rounds = 0;
        while rounds < 2 {
            match stream.next().await.unwrap() {
                Ok(Event::InitDone) => {
                    rounds += 1;
                    pods(&client).delete("a", &DeleteParams::default()).await.ok();
                    create_pod(&client, &format!("b{rounds}")).await;
                    sandbox.compact();
                }
                Ok(Event::InitApply(pod)) => names.push(pod.name_any()),
                Ok(_) | Err(_) => {}
            }
        }
        assert_eq!(names, ["a", "b1"]);
    }
}

#[tokio::test(start_paused = true)]
async fn events_arrive_when_they_happen() {
    let (_sandbox, client) = start();
    let params = WatchParams::default().timeout(60).disable_bookmarks();
    let mut stream = pods(&client).watch(&params, "0").await.unwrap().boxed();
    let began = Instant::now();
    let later = async {
        tokio::time::sleep(Duration::from_secs(7)).await;
        pods(&client)
            .create(&PostParams::default(), &object(pod_json("a")))
            .await
            .unwrap();
    };
    let (event, ()) = tokio::join!(stream.next(), later);
    assert_eq!(
        (
            short(&event.unwrap().unwrap()).as_str(),
            began.elapsed().as_secs()
        ),
        ("+a", 7)
    );
}
