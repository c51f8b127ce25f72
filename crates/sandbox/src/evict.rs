//! The Eviction API: whether the PodDisruptionBudget of a pod lets it go, and its deletion; no controller renews a budget.
//!
//! kubernetes v1.36 `pkg/registry/core/pod/storage/eviction.go`.

use serde_json::{Value, json};

use super::{
    clock, delete, object,
    reply::Reply,
    request::Call,
    resource,
    selector::LabelSelector,
    server::Server,
    status::{Result, StatusError},
};

const VIOLATES: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
const SEVERAL: &str =
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";

/// Evicts a pod, and answers 201 with a Status.
pub(super) async fn evict(server: &Server, call: &Call, eviction: Value) -> Result<Reply> {
    let pod = server.get(call.resource, &call.key())?;
    let asked = object::text(&eviction, "/deleteOptions/preconditions/uid");
    if !asked.is_empty() && asked != object::uid(&pod) {
        let found = object::uid(&pod);
        let why = format!("the UID in the precondition ({asked}) does not match the UID in record ({found})");
        return Err(StatusError::conflict(call.resource, "pods", &call.name, &why));
    }
    let counts = object::text(&pod, "/status/phase") == "Running" && !object::is_deleting(&pod);
    if counts {
        take_from_budget(server, &pod)?;
    }
    let options = eviction.get("deleteOptions").cloned().unwrap_or_else(|| json!({}));
    delete::delete(server, call, options.to_string().as_bytes()).await?;
    let status =
        json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
    Ok(Reply::Json(201, status))
}

/// Counts one disruption more, if the only budget of the pod allows it.
fn take_from_budget(server: &Server, pod: &Value) -> Result<()> {
    let budgets = resource::known("policy", "poddisruptionbudgets");
    let mut store = server.store();
    let covers = |budget: &Value| {
        let selector = budget.pointer("/spec/selector").filter(|selector| !selector.is_null());
        object::namespace(budget) == object::namespace(pod)
            && selector.is_some_and(|selector| LabelSelector::from_object(Some(selector)).matches(pod))
    };
    let covering: Vec<_> = store.objects(budgets).values().filter(|budget| covers(budget)).cloned().collect();
    let budget = match covering.as_slice() {
        [] => return Ok(()),
        [budget] => budget,
        _ => return Err(StatusError::new(500, "", SEVERAL)),
    };
    let number = |pointer: &str| budget.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    if number("/status/observedGeneration") < number("/metadata/generation") {
        return Err(StatusError::new(429, "TooManyRequests", VIOLATES));
    }
    let (healthy, desired) = (number("/status/currentHealthy"), number("/status/desiredHealthy"));
    let always = object::text(budget, "/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow";
    if !is_ready(pod) && (always || desired > 0 && healthy >= desired) {
        return Ok(());
    }
    let allowed = number("/status/disruptionsAllowed");
    if allowed <= 0 {
        return Err(StatusError::new(429, "TooManyRequests", VIOLATES));
    }
    let mut counted = (**budget).clone();
    counted["status"]["disruptionsAllowed"] = json!(allowed - 1);
    let now = json!(clock::seconds(server.clock.now()));
    object::child(object::child(&mut counted, "status"), "disruptedPods")[object::name(pod)] = now;
    store.put(budgets, counted);
    Ok(())
}

fn is_ready(pod: &Value) -> bool {
    let ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    object::list(pod, "/status/conditions").iter().any(ready)
}
