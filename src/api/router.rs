//! The paths.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, RawQuery, Request, State},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;

use super::{
    ApiError, changes,
    fleet::{CountedFleet, ShownCard},
    moves::MovesQuestion,
    namespace, node, pod, queue,
    server::{Api, json},
    top, usage,
    viewer::Viewer,
    what_if::{LONGEST_QUESTION, WhatIfQuestion},
};
use crate::webhook::{
    refusal::as_json,
    router::{body, wrong_method},
};

/// Under this prefix the paths are served.
pub const PREFIX: &str = "/api/v1";

/// No answer is kept by anyone between, or taken for anything but data.
const HEADERS: [(HeaderName, HeaderValue); 2] = [
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
];

/// The paths.
pub fn router(api: Arc<Api>) -> Router {
    let paths = Router::new()
        .route("/fleet", get(fleet))
        .route("/nodes/{name}", get(node))
        .route("/cards/{id}", get(card))
        .route("/namespaces/{namespace}", get(namespace))
        .route("/namespaces/{namespace}/pods/{name}", get(pod))
        .route("/namespaces/{namespace}/pods/{name}/change", get(change))
        .route("/queue", get(queue))
        .route("/fits", get(fits))
        .route("/top", get(top))
        .route("/moves", get(moves))
        .route("/usage", get(usage))
        .route("/what-if", post(what_if))
        .route("/changes", get(changes))
        .method_not_allowed_fallback(wrong_method)
        .with_state(api);
    Router::new().nest(PREFIX, paths)
}

async fn fleet(State(api): State<Arc<Api>>, headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    let page = move |api: &Api, fleet: &CountedFleet, viewer: &Viewer| {
        let since = parameter(query.as_deref(), "since");
        let since = since.and_then(|token| api.version(&token, viewer));
        Ok(json(&fleet.shown(viewer, api.seen_token(fleet.version, viewer), since)))
    };
    answered(api.page(&headers, page).await)
}

async fn node(State(api): State<Arc<Api>>, headers: HeaderMap, Path(name): Path<String>) -> Response {
    let page = move |_: &Api, fleet: &CountedFleet, viewer: &Viewer| match fleet.node(&name) {
        Some(node) => Ok(json(&node::page(node, viewer))),
        None => Err(ApiError::NotFound { kind: "nodes", name }),
    };
    answered(api.page(&headers, page).await)
}

async fn card(State(api): State<Arc<Api>>, headers: HeaderMap, Path(id): Path<String>) -> Response {
    let page = move |_: &Api, fleet: &CountedFleet, viewer: &Viewer| match fleet.card(&id) {
        Some((node, card)) => Ok(json(&CardPage { node, card: card.shown(viewer) })),
        None => Err(ApiError::NotFound { kind: "cards", name: id }),
    };
    answered(api.page(&headers, page).await)
}

async fn namespace(State(api): State<Arc<Api>>, headers: HeaderMap, Path(name): Path<String>) -> Response {
    let of = name.clone();
    let page = move |_: &Api, fleet: &CountedFleet, viewer: &Viewer| {
        Ok(json(&namespace::page(fleet, &name, viewer)?))
    };
    answered(api.page_of(&headers, Some(&of), page).await)
}

async fn pod(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    Path((namespace, name)): Path<(String, String)>,
) -> Response {
    let of = namespace.clone();
    let page = move |_: &Api, fleet: &CountedFleet, viewer: &Viewer| {
        Ok(json(&pod::pod(fleet, (&namespace, &name), viewer)?))
    };
    answered(api.page_of(&headers, Some(&of), page).await)
}

async fn change(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    Path(pod): Path<(String, String)>,
) -> Response {
    answered(api.change(&headers, pod).await)
}

async fn queue(State(api): State<Arc<Api>>, headers: HeaderMap) -> Response {
    let page = |_: &Api, fleet: &CountedFleet, viewer: &Viewer| Ok(json(&queue::queue(fleet, viewer)));
    answered(api.page(&headers, page).await)
}

async fn fits(State(api): State<Arc<Api>>, headers: HeaderMap) -> Response {
    answered(api.page(&headers, |_: &Api, fleet: &CountedFleet, _: &Viewer| Ok(json(&fleet.fits()))).await)
}

async fn top(State(api): State<Arc<Api>>, headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    let namespace = parameter(query.as_deref(), "namespace");
    let of = namespace.clone();
    let page = move |_: &Api, fleet: &CountedFleet, viewer: &Viewer| {
        Ok(json(&top::page(fleet, namespace.as_deref(), viewer)?))
    };
    answered(api.page_of(&headers, of.as_deref(), page).await)
}

async fn moves(State(api): State<Arc<Api>>, headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    match MovesQuestion::of(&parameters(query.as_deref())) {
        Ok(question) => answered(api.moves(&headers, question).await),
        Err(error) => error.into_response(),
    }
}

async fn usage(State(api): State<Arc<Api>>, headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    match usage::asked(&parameters(query.as_deref())) {
        Ok(by) => answered(api.usage(&headers, &by).await),
        Err(error) => error.into_response(),
    }
}

async fn what_if(State(api): State<Arc<Api>>, request: Request) -> Response {
    let headers = request.headers().clone();
    // Strangers have nothing read.
    if let Err(error) = api.know(&headers).await {
        return error.into_response();
    }
    match body(request, LONGEST_QUESTION).await.map(|body| WhatIfQuestion::read(&body, api.workloads())) {
        Ok(Ok(question)) => answered(api.what_if(&headers, question).await),
        Ok(Err(error)) => error.into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

/// The parameters of a query, in order.
fn parameters(query: Option<&str>) -> Vec<(String, String)> {
    form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect()
}

/// The first of this name.
fn parameter(query: Option<&str>, name: &str) -> Option<String> {
    parameters(query).into_iter().find_map(|(key, value)| (key == name).then_some(value))
}

async fn changes(State(api): State<Arc<Api>>, headers: HeaderMap) -> Response {
    match api.stream(&headers).await {
        Ok(room) => changes::follow(api, room),
        Err(error) => error.into_response(),
    }
}

/// A card and where it is.
#[derive(Debug, Serialize)]
struct CardPage<'a> {
    node: &'a str,
    card: ShownCard<'a>,
}

fn answered(page: Result<Vec<u8>, ApiError>) -> Response {
    match page {
        Ok(json) => (HEADERS, as_json(StatusCode::OK, json)).into_response(),
        Err(error) => error.into_response(),
    }
}
