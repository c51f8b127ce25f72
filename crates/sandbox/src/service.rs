//! How an HTTP request becomes an answer: reads it and hands it to its verb; the rules are the verbs'.

use super::{
    access, binding, create, delete, discovery, evict, list, patch,
    reply::{Reply, render},
    request::{Call, Query, UserInfo, Verb},
    route::{self, Route, Target},
    server::Server,
    status::{Result, StatusError},
    update, watch, wire,
};
use axum::body::Body;
use futures::{FutureExt, future::BoxFuture};
use http::{HeaderMap, Method, Request, Response, header, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use std::{
    convert::Infallible,
    sync::Arc,
    sync::Mutex,
    task::{Context, Poll},
};

/// The request size that a real server accepts.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// The API server as a service over HTTP requests of any body type.
#[derive(Clone, Debug)]
pub struct ApiService {
    server: Arc<Server>,
    user: UserInfo,
}

impl ApiService {
    pub(super) fn new(server: Arc<Server>, user: UserInfo) -> Self {
        Self { server, user }
    }

    /// Lets the bearer of this token ask as this service's user.
    pub(super) fn admit(&self, token: &str) {
        self.server.admit(token, self.user.clone());
    }

    /// Whether the token is one that was admitted.
    pub(super) fn knows(&self, token: &str) -> bool {
        self.server.bearer(token).is_some()
    }

    async fn respond<B>(self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let Some(route) = route::parse(parts.uri.path()) else {
            return render(Err(StatusError::no_path()), &[]);
        };
        let target = match route {
            Route::Plain(path) => return render(discovery::answer(path), &[]),
            Route::Objects(target) => target,
        };
        let call = match self.call(&parts, &target) {
            Ok(call) => call,
            Err(error) => return render(Err(error), &[]),
        };
        let reply = match Limited::new(body, BODY_LIMIT).collect().await {
            Ok(body) => dispatch(&self.server, &call, &body.to_bytes()).await,
            Err(error) => Err(unreadable(error.as_ref())),
        };
        let warnings = call.warnings.lock().expect("no holder of this lock panics").clone();
        let response = render(reply, &warnings);
        self.server.count(&call, response.status().as_u16());
        response
    }

    fn call(&self, parts: &Parts, target: &Target<'_>) -> Result<Call> {
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        Ok(Call {
            verb: verb(&parts.method, target, &query)?,
            resource: target.resource,
            namespace: target.namespace.to_owned(),
            name: target.name.to_owned(),
            subresource: target.subresource.to_owned(),
            query,
            user: impersonated(&parts.headers).unwrap_or_else(|| self.user.clone()),
            content_type: header_text(&parts.headers, header::CONTENT_TYPE.as_str()).to_owned(),
            accept: header_text(&parts.headers, header::ACCEPT.as_str()).to_owned(),
            warnings: Mutex::default(),
        })
    }
}

impl<B> tower::Service<Request<B>> for ApiService
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, std::result::Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.clone().respond(request).map(Ok).boxed()
    }
}

fn unreadable(error: &(dyn std::error::Error + Send + Sync + 'static)) -> StatusError {
    if error.is::<LengthLimitError>() {
        let text = format!("Request entity too large: limit is {BODY_LIMIT}");
        return StatusError::new(413, "RequestEntityTooLarge", text);
    }
    StatusError::bad_request(format!("the request body could not be read: {error}"))
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The user whom the headers `Impersonate-User` and `Impersonate-Group` name.
fn impersonated(headers: &HeaderMap) -> Option<UserInfo> {
    let username = header_text(headers, "impersonate-user");
    let groups = headers.get_all("impersonate-group").iter();
    let mut groups: Vec<String> = groups.filter_map(|group| Some(group.to_str().ok()?.to_owned())).collect();
    groups.push("system:authenticated".to_owned());
    (!username.is_empty()).then(|| UserInfo { username: username.to_owned(), groups })
}

fn verb(method: &Method, target: &Target<'_>, query: &Query) -> Result<Verb> {
    let one = !target.name.is_empty();
    let verb = match *method {
        Method::GET | Method::HEAD if one => Verb::Get,
        Method::GET if query.is_set("watch") => Verb::Watch,
        Method::GET => Verb::List,
        Method::POST if one == matches!(target.subresource, "binding" | "eviction") => Verb::Create,
        Method::PUT if one => Verb::Update,
        Method::PATCH if one => Verb::Patch,
        Method::DELETE if one => Verb::Delete,
        Method::DELETE => Verb::DeleteCollection,
        _ => return Err(not_allowed()),
    };
    let served = match (target.resource.plural, target.subresource) {
        ("bindings", _) | (_, "binding" | "eviction") => verb == Verb::Create,
        (_, "finalize") => verb == Verb::Update,
        (_, "") if target.resource.is_review() => verb == Verb::Create,
        (_, "") => verb != Verb::Create || scoped(target),
        _ => matches!(verb, Verb::Get | Verb::Update | Verb::Patch),
    };
    if served { Ok(verb) } else { Err(not_allowed()) }
}

fn scoped(target: &Target<'_>) -> bool {
    target.resource.scope == super::resource::Scope::Cluster || !target.namespace.is_empty()
}

fn not_allowed() -> StatusError {
    let text = "the server does not allow this method on the requested resource";
    StatusError {
        details: Box::new(serde_json::json!({})),
        ..StatusError::new(405, "MethodNotAllowed", text)
    }
}

async fn dispatch(server: &Arc<Server>, call: &Call, body: &[u8]) -> Result<Reply> {
    match call.verb {
        Verb::Get => {
            let printer = server.printer(call)?;
            let found = server.get(call.resource, &call.key())?;
            let found = wire::encode(call.resource, &found);
            Ok(Reply::Json(
                200,
                match printer {
                    Some(printer) => printer.one(&found),
                    None => found,
                },
            ))
        }
        Verb::List => list::list(server, call),
        Verb::Watch => watch::watch(server, call),
        Verb::Create if call.resource.plural == "bindings" || call.subresource == "binding" => {
            binding::bind(server, call, wire::read(&call.content_type, body)?).await
        }
        Verb::Create if call.resource.is_review() => {
            access::review(server, call, wire::read(&call.content_type, body)?)
        }
        Verb::Create if call.subresource == "eviction" => {
            evict::evict(server, call, wire::read(&call.content_type, body)?).await
        }
        Verb::Create => create::create(server, call, wire::read(&call.content_type, body)?).await,
        Verb::Update => update::update(server, call, wire::read(&call.content_type, body)?).await,
        Verb::Patch => patch::patch(server, call, body).await,
        Verb::Delete => delete::delete(server, call, body).await,
        Verb::DeleteCollection => delete::delete_collection(server, call, body).await,
    }
}
