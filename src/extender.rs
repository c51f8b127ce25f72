//! The HTTP side of kube-scheduler's extender protocol (`k8s.io/kube-scheduler/extender/v1`): `filter`, `prioritize`, `preempt`, `bind`.
//!
//! What is asked is read and what is answered is written here; which node would do is asked of what it is given.

mod room;
pub mod wire;

use std::{collections::BTreeMap, fmt, sync::Arc};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    middleware::from_fn_with_state,
    response::{IntoResponse, Response},
    routing::post,
};
use futures::future::BoxFuture;
use http::{StatusCode, header};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    excerpt::brief,
    object::Pod,
    scheduling::{NodeName, PodKey, plan::extension::NodeStanding},
};
use room::ExtenderRoom;
use wire::{
    BindingArgs, BindingResult, ExtenderArgs, FilterResult, HostPriority, MetaVictims, PreemptionArgs,
    PreemptionResult,
};

/// Under this prefix the verbs are served; it is the path of `urlPrefix`.
pub const PREFIX: &str = "/extender/v1";

/// The largest body that is read: full Nodes of some thousand nodes.
const BODY_LIMIT: usize = 64 * 1024 * 1024;

/// What nodes make of a pod, in the order of their names; or why nothing can be said.
pub type Judge =
    Arc<dyn Fn(Pod, Vec<String>) -> BoxFuture<'static, Result<Vec<NodeStanding>, String>> + Send + Sync>;

/// Binds a pod to a node; or why it is not bound.
pub type Bind = Arc<dyn Fn(PodKey, NodeName) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// For each node with the uids of pods that would be evicted, whether it would have the pod then.
pub type Preempt = Arc<
    dyn Fn(Pod, Vec<(String, Vec<String>)>) -> BoxFuture<'static, Result<Vec<bool>, String>> + Send + Sync,
>;

/// What the verbs need.
#[derive(Clone)]
pub struct Extender {
    /// Judges nodes.
    pub judge: Judge,
    /// Binds.
    pub bind: Bind,
    /// Judges nodes without some of their pods.
    pub preempt: Preempt,
}

/// The verbs.
pub fn router(extender: Extender) -> Router {
    let verbs = Router::new()
        .route("/filter", post(filter))
        .route("/prioritize", post(prioritize))
        .route("/preempt", post(preempt))
        .route("/bind", post(bind))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(from_fn_with_state(ExtenderRoom::default(), room::bounded))
        .with_state(extender);
    Router::new().nest(PREFIX, verbs)
}

async fn filter(State(extender): State<Extender>, body: Bytes) -> Response {
    answer(&body, async |args: ExtenderArgs| filtered(&extender, args).await).await
}

async fn filtered(extender: &Extender, args: ExtenderArgs) -> FilterResult {
    let names = args.names();
    let standings = match (extender.judge)(args.pod, names.clone()).await {
        Ok(standings) => standings,
        Err(error) => return FilterResult { error, ..FilterResult::default() },
    };
    let mut result = FilterResult::default();
    let mut fitting = Vec::new();
    for (name, standing) in names.into_iter().zip(standings) {
        match standing {
            NodeStanding::Fits(_) => fitting.push(name),
            NodeStanding::Fails(why) => drop(result.failed.insert(name, why)),
            NodeStanding::FailsEmpty(why) => drop(result.unresolvable.insert(name, why)),
        }
    }
    match args.nodes {
        Some(nodes) if args.node_names.is_none() => result.nodes = Some(nodes.only(&fitting)),
        _ => result.node_names = Some(fitting),
    }
    result
}

async fn prioritize(State(extender): State<Extender>, body: Bytes) -> Response {
    answer(&body, async |args: ExtenderArgs| prioritized(&extender, args).await).await
}

/// kube-scheduler passes over an error of this verb, so where nothing can be said all nodes are equal.
async fn prioritized(extender: &Extender, args: ExtenderArgs) -> Vec<HostPriority> {
    let names = args.names();
    let standings = (extender.judge)(args.pod, names.clone()).await.unwrap_or_else(|error| {
        tracing::warn!(error, "nodes could not be compared for kube-scheduler");
        Vec::new()
    });
    let scores = standings
        .into_iter()
        .map(|standing| if let NodeStanding::Fits(score) = standing { score } else { 0 });
    let scores = scores.chain(std::iter::repeat(0));
    names.into_iter().zip(scores).map(|(host, score)| HostPriority { host, score }).collect()
}

async fn preempt(State(extender): State<Extender>, body: Bytes) -> Response {
    match read::<PreemptionArgs>(&body) {
        Err(why) => refused(why),
        Ok(args) => match preempted(&extender, args).await {
            Ok(result) => json(StatusCode::OK, &result),
            // The protocol has no place for an error; another status is one to kube-scheduler.
            Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error).into_response(),
        },
    }
}

/// Keeps the nodes that would have the pod without their victims.
async fn preempted(extender: &Extender, args: PreemptionArgs) -> Result<PreemptionResult, String> {
    let PreemptionArgs { pod, .. } = &args;
    let pod = pod.clone();
    let victims: BTreeMap<String, MetaVictims> =
        args.victims().into_iter().filter(|(_, victims)| !victims.pods.is_empty()).collect();
    let candidates = victims.iter().map(|(node, victims)| (node.clone(), victims.uids())).collect();
    let helps = (extender.preempt)(pod, candidates).await?;
    let kept = victims.into_iter().zip(helps).filter(|(_, helps)| *helps).map(|(node, _)| node);
    Ok(PreemptionResult { victims: kept.collect() })
}

async fn bind(State(extender): State<Extender>, body: Bytes) -> Response {
    answer(&body, async |args: BindingArgs| {
        let (pod, node) = args.read();
        BindingResult { error: (extender.bind)(pod, node).await.err().unwrap_or_default() }
    })
    .await
}

async fn answer<T: DeserializeOwned, R: Serialize>(
    body: &[u8],
    decide: impl AsyncFnOnce(T) -> R,
) -> Response {
    match read(body) {
        Ok(args) => json(StatusCode::OK, &decide(args).await),
        Err(why) => refused(why),
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    let unreadable = |error: &dyn fmt::Display| format!("the body can't be read: {}\n", brief(error));
    let text = str::from_utf8(body).map_err(|error| unreadable(&error))?;
    serde_json::from_str(text).map_err(|error| unreadable(&error))
}

fn refused(why: String) -> Response {
    (StatusCode::BAD_REQUEST, why).into_response()
}

fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let body = serde_json::to_vec(body).expect("an answer has string keys only");
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

#[cfg(test)]
mod tests;
