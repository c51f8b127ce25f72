//! The same seed gives the same run.

use super::world::{bind, create_pod, object, pod_json, pods};
use berth_sandbox::{Options, Sandbox};
use futures::StreamExt;
use kube::{
    ResourceExt,
    api::{DeleteParams, PostParams},
    runtime::watcher,
};
use serde_json::json;
use std::time::Duration;

/// Everything that a watcher sees while several clients write at once.
async fn transcript(seed: u64) -> Vec<String> {
    let sandbox = Sandbox::new(Options { seed, ..Options::default() });
    let client = sandbox.client();
    let mut stream = watcher::watcher(pods(&client), watcher::Config::default()).boxed();
    let writers = (0..5_u64).map(|index| {
        let client = sandbox.client();
        async move {
            tokio::time::sleep(Duration::from_secs(index % 2)).await;
            let mut sent = pod_json("");
            sent["metadata"] = json!({ "generateName": format!("w{index}-") });
            let pod = pods(&client).create(&PostParams::default(), &object(sent)).await.unwrap();
            bind(&client, &pod.name_any(), "n1", json!({ "uid": pod.uid() })).await.unwrap();
            pods(&client).delete(&pod.name_any(), &DeleteParams::default()).await.unwrap();
        }
    });
    let written = async {
        futures::future::join_all(writers).await;
        create_pod(&client, "last").await;
    };
    let read = async {
        let mut lines = Vec::new();
        while let Some(event) = stream.next().await {
            let line = format!("{:?}", event.unwrap());
            let last = line.contains("\"last\"");
            lines.push(line);
            if last {
                break;
            }
        }
        lines
    };
    let ((), mut lines) = tokio::join!(written, read);
    lines.push(format!("{:?}", sandbox.requests()));
    lines
}

fn run(seed: u64) -> Vec<String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(transcript(seed))
}

#[test]
fn one_seed_gives_one_transcript() {
    let first = run(42);
    assert!(first.len() > 15, "{first:#?}");
    assert_eq!(first, run(42));
    assert_ne!(first, run(43), "uids follow the seed");
}
