//! What the server says about itself: health, version, groups and resources; it reads no object.

use super::{
    reply::Reply,
    request::Verb,
    resource::{RESOURCES, Resource, Scope},
    status::{Result, StatusError},
};
use serde_json::{Value, json};

/// The version that the server claims to be.
const VERSION: &str = "v1.36.3";
/// What kubectl means by `all`.
const IN_ALL: &[&str] =
    &["cronjobs", "daemonsets", "deployments", "jobs", "pods", "replicasets", "services", "statefulsets"];
const VERBS: &[Verb] = &[
    Verb::Create,
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Update,
    Verb::Watch,
];

/// Answers a path that is about no object.
pub(super) fn answer(path: &str) -> Result<Reply> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let body = match segments.as_slice() {
        ["healthz" | "readyz" | "livez", ..] => return Ok(Reply::Text("ok")),
        ["version"] => version(),
        ["api"] => json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] }),
        ["api", "v1"] => resources("", "v1")?,
        ["apis"] => json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups() }),
        ["apis", name] => named(name)?,
        ["apis", name, version] => resources(name, version)?,
        ["openapi", "v3"] => openapi_index(),
        ["openapi", "v3", "api", "v1"] => openapi("", "v1"),
        ["openapi", "v3", "apis", group, version] => openapi(group, version),
        _ => return Err(StatusError::no_path()),
    };
    Ok(Reply::Json(200, body))
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": VERSION, "gitCommit": "berth-sandbox", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc", "platform": "linux/amd64",
    })
}

/// Each version of each group but core, in the table's order.
fn group_versions() -> Vec<(&'static str, &'static str)> {
    let mut all: Vec<_> =
        RESOURCES.iter().filter(|row| !row.group.is_empty()).map(|row| (row.group, row.version)).collect();
    all.dedup();
    all
}

fn groups() -> Vec<Value> {
    let mut names: Vec<_> = group_versions().into_iter().map(|(name, _)| name).collect();
    names.dedup();
    names.into_iter().filter_map(group).collect()
}

/// A group with its versions, the first of which is preferred; `None`: there is no such group.
fn group(name: &str) -> Option<Value> {
    let versions = group_versions().into_iter().filter(|(group, _)| *group == name);
    let versions: Vec<Value> = versions
        .map(|(_, version)| json!({ "groupVersion": format!("{name}/{version}"), "version": version }))
        .collect();
    let preferred = versions.first()?.clone();
    Some(json!({ "name": name, "versions": versions, "preferredVersion": preferred }))
}

fn named(name: &str) -> Result<Value> {
    let mut group = group(name).ok_or_else(StatusError::no_path)?;
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    Ok(group)
}

fn resources(group: &str, version: &str) -> Result<Value> {
    let rows: Vec<&Resource> =
        RESOURCES.iter().filter(|row| (row.group, row.version) == (group, version)).collect();
    let first = rows.first().ok_or_else(StatusError::no_path)?;
    let resources: Vec<Value> = rows.iter().flat_map(|row| entries(row)).collect();
    Ok(json!({
        "kind": "APIResourceList", "apiVersion": "v1",
        "groupVersion": first.api_version(), "resources": resources,
    }))
}

fn entries(row: &Resource) -> Vec<Value> {
    let verbs: Vec<String> = match row.plural {
        "bindings" => vec![Verb::Create.to_string()],
        _ if row.is_review() => vec![Verb::Create.to_string()],
        _ => VERBS.iter().map(ToString::to_string).collect(),
    };
    let entry = |name: String, kind: &str, verbs: &[String]| {
        json!({
            "name": name, "singularName": "", "namespaced": row.scope == Scope::Namespaced,
            "kind": kind, "verbs": verbs,
        })
    };
    let mut own = entry(row.plural.to_owned(), row.kind, &verbs);
    own["singularName"] = json!(row.kind.to_lowercase());
    if IN_ALL.contains(&row.plural) {
        own["categories"] = json!(["all"]);
    }
    if !row.short_names.is_empty() {
        own["shortNames"] = json!(row.short_names);
    }
    let below = row.subresources.iter().map(|below| {
        let (kind, verbs): (&str, &[&str]) = match *below {
            "binding" => ("Binding", &["create"]),
            "eviction" => ("Eviction", &["create"]),
            "finalize" => (row.kind, &["update"]),
            _ => (row.kind, &["get", "patch", "update"]),
        };
        let verbs: Vec<String> = verbs.iter().map(|&verb| verb.to_owned()).collect();
        entry(format!("{}/{below}", row.plural), kind, &verbs)
    });
    std::iter::once(own).chain(below).collect()
}

fn openapi_index() -> Value {
    let groups = group_versions().into_iter().map(|(group, version)| format!("apis/{group}/{version}"));
    let paths = std::iter::once("api/v1".to_owned()).chain(groups);
    let paths: serde_json::Map<String, Value> = paths
        .map(|path| {
            let url = json!({ "serverRelativeURL": format!("/openapi/v3/{path}") });
            (path, url)
        })
        .collect();
    json!({ "paths": paths })
}

/// As much as kubectl reads before it sends objects: that patches take the parameter `fieldValidation`.
fn openapi(group: &str, version: &str) -> Value {
    let rows = RESOURCES.iter().filter(|row| (row.group, row.version) == (group, version));
    let paths: serde_json::Map<String, Value> = rows
        .map(|row| {
            let root =
                if group.is_empty() { "/api/v1".to_owned() } else { format!("/apis/{group}/{version}") };
            let scope = match row.scope {
                Scope::Cluster => "",
                Scope::Namespaced => "/namespaces/{namespace}",
            };
            let kind = json!({ "group": group, "version": version, "kind": row.kind });
            let parameters: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation", "force"]
                .iter()
                .map(|name| json!({ "name": name, "in": "query", "schema": { "type": "string" } }))
                .collect();
            let operation = json!({
                "x-kubernetes-action": "patch", "x-kubernetes-group-version-kind": kind,
                "parameters": parameters, "responses": {},
            });
            (format!("{root}{scope}/{}/{{name}}", row.plural), json!({ "patch": operation }))
        })
        .collect();
    json!({ "openapi": "3.0.0", "info": { "title": "Kubernetes", "version": VERSION }, "paths": paths })
}
