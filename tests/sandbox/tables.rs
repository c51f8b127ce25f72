//! Tables: what kubectl prints of pods and nodes, and who gets objects as they are.

use super::world::{bind, create_pod, object, start};
use futures::{AsyncBufReadExt, TryStreamExt};
use http::{Request, header::ACCEPT};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, api::PostParams};
use serde_json::{Value, json};

/// The header that kubectl sends.
const KUBECTL: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,\
     application/json";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn request(path: &str, accept: &str) -> Request<Vec<u8>> {
    Request::get(path).header(ACCEPT, accept).body(Vec::new()).unwrap()
}

async fn get(client: &Client, path: &str) -> Value {
    client.request(request(path, KUBECTL)).await.unwrap()
}

/// The names of the columns; those for `-o wide` in parentheses.
fn columns(table: &Value) -> String {
    let columns = table["columnDefinitions"].as_array().unwrap().iter();
    let shown = columns.map(|column| match (column["name"].as_str().unwrap(), &column["priority"]) {
        (name, priority) if *priority == 0 => name.to_owned(),
        (name, _) => format!("({name})"),
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[tokio::test(start_paused = true)]
async fn a_list_is_a_table_for_whom_asks_for_one() {
    let (sandbox, client) = start();
    create_pod(&client, "a").await;
    create_pod(&client, "b").await;
    bind(&client, "b", "n", json!({})).await.unwrap();
    let table = get(&client, PODS).await;
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    assert_eq!(table["metadata"]["resourceVersion"], sandbox.resource_version().to_string());
    assert_eq!(
        columns(&table),
        "Name Ready Status Restarts Age (IP) (Node) (Nominated Node) (Readiness Gates)"
    );
    let none = "<none>";
    assert_eq!(table["rows"][0]["cells"], json!(["a", "0/1", "Pending", "0", "0s", none, none, none, none]));
    assert_eq!(table["rows"][1]["cells"], json!(["b", "0/1", "Pending", "0", "0s", none, "n", none, none]));
    let row = &table["rows"][0]["object"];
    assert_eq!((&row["kind"], &row["metadata"]["name"]), (&json!("PartialObjectMetadata"), &json!("a")));
    let page = get(&client, &format!("{PODS}?limit=1")).await;
    assert_eq!(
        (page["rows"].as_array().unwrap().len(), &page["metadata"]["remainingItemCount"]),
        (1, &json!(1))
    );
}

#[tokio::test(start_paused = true)]
async fn one_object_is_a_table_of_one_row_and_carries_what_is_asked_for() {
    let (_sandbox, client) = start();
    create_pod(&client, "a").await;
    let of = async |query: &str| get(&client, &format!("{PODS}/a{query}")).await["rows"][0]["object"].clone();
    assert_eq!(of("?includeObject=Object").await["spec"]["containers"][0]["name"], "c");
    assert_eq!(of("?includeObject=None").await, Value::Null);
    assert_eq!(of("").await["spec"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn nodes_have_the_columns_that_kubectl_shows_elsewhere() {
    let (_sandbox, client) = start();
    let node: Node = object(json!({ "metadata": { "name": "n" } }));
    Api::all(client.clone()).create(&PostParams::default(), &node).await.unwrap();
    let table = get(&client, "/api/v1/nodes").await;
    assert_eq!(
        columns(&table),
        "Name Status Roles Age Version (Internal-IP) (External-IP) (OS-Image) (Kernel-Version) (Container-Runtime)"
    );
    assert_eq!(table["rows"][0]["cells"].as_array().unwrap()[..4], ["n", "Unknown", "<none>", "0s"]);
}

#[tokio::test(start_paused = true)]
async fn others_get_objects_as_they_are() {
    let (_sandbox, client) = start();
    create_pod(&client, "a").await;
    let plain: Value = client.request(request(PODS, "application/json")).await.unwrap();
    assert_eq!((&plain["kind"], &plain["items"][0]["metadata"]["name"]), (&json!("PodList"), &json!("a")));
    assert_eq!(get(&client, "/api/v1/namespaces").await["kind"], "NamespaceList");
}

#[tokio::test(start_paused = true)]
async fn a_watch_sends_tables_and_their_columns_once() {
    let (_sandbox, client) = start();
    create_pod(&client, "a").await;
    create_pod(&client, "b").await;
    let path = format!("{PODS}?watch=1&timeoutSeconds=5");
    let lines = client.request_stream(request(&path, KUBECTL)).await.unwrap().lines();
    let lines: Vec<String> = lines.try_collect().await.unwrap();
    let events: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown = |event: &Value| (event["type"].clone(), event["object"]["rows"][0]["cells"][0].clone());
    assert_eq!(
        events.iter().map(shown).collect::<Vec<_>>(),
        [(json!("ADDED"), json!("a")), (json!("ADDED"), json!("b"))]
    );
    assert!(columns(&events[0]["object"]).starts_with("Name Ready"));
    assert_eq!(columns(&events[1]["object"]), "");
}
