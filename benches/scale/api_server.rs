//! The sandbox's API server over HTTP, with many pods besides that are listed as if they had always been there: they are text, so that they take
//! little memory and no time while the program reads them.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use anyhow::Context as _;
use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    response::Response,
};
use berth::cluster::Clock;
use berth_sandbox::{Options, Sandbox};
use futures::{StreamExt as _, stream};
use http::{Method, header};
use jiff::Timestamp;
use kube::{Api, api::PostParams};
use serde_json::json;
use tokio::{net::TcpListener, task::JoinSet};
use tower::ServiceExt as _;

use super::{objects, sweep::ClusterSize};

/// So many pods of a list are sent at once.
const AT_ONCE: usize = 200;

/// An API server.
pub(crate) struct ApiServer {
    pub(crate) sandbox: Sandbox,
    pub(crate) address: SocketAddr,
    /// The bytes of the list of pods.
    pub(crate) bytes: usize,
    listed: Arc<Mutex<Option<Timestamp>>>,
    _accepting: JoinSet<()>,
}

impl ApiServer {
    /// Starts it with so many nodes and pods.
    pub(crate) async fn start(size: ClusterSize) -> anyhow::Result<Self> {
        let sandbox = Sandbox::new(Options::default());
        let client = sandbox.client();
        let namespaces = Api::<k8s_openapi::api::core::v1::Namespace>::all(client.clone());
        let labels = json!({"berth.dev/admission": "enabled"});
        let namespace =
            serde_json::from_value(json!({"metadata": {"name": objects::NAMESPACE, "labels": labels}}))?;
        namespaces.create(&PostParams::default(), &namespace).await.context("the namespace")?;
        let nodes = Api::<k8s_openapi::api::core::v1::Node>::all(client.clone());
        for number in 0..size.nodes {
            let node = serde_json::from_value(objects::node(number))?;
            nodes.create(&PostParams::default(), &node).await.context("a node")?;
        }
        sandbox.compact();
        let pods = Arc::new(list_of_pods(size, sandbox.resource_version()));
        let bytes = pods.iter().map(Bytes::len).sum();
        let listed = Arc::default();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (service, noted) = (sandbox.service(), Arc::clone(&listed));
        let answer = tower::service_fn(move |request: Request| {
            let (service, pods, noted) = (service.clone(), Arc::clone(&pods), Arc::clone(&noted));
            async move {
                if is_list_of_pods(&request) {
                    return Ok::<_, Infallible>(answer(&pods, noted));
                }
                service.oneshot(request).await
            }
        });
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let router = Router::new().fallback_service(answer);
            let ended = axum::serve(listener, router).await;
            eprintln!("scale: the API server has ended: {ended:?}");
        });
        Ok(Self { sandbox, address, bytes, listed, _accepting: accepting })
    }

    /// When the last bytes of the list of pods were taken; `None`: they were not.
    pub(crate) fn listed(&self) -> Option<Timestamp> {
        *self.listed.lock().expect("no holder of the lock panics")
    }

    /// What clients read to reach it.
    pub(crate) fn kubeconfig(&self) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: c, cluster: {{server: \"http://{}\"}}}}]\n\
             users: [{{name: u, user: {{}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n",
            self.address
        )
    }
}

fn is_list_of_pods(request: &Request) -> bool {
    let uri = request.uri();
    let watches = uri.query().is_some_and(|query| query.contains("watch="));
    request.method() == Method::GET && uri.path() == "/api/v1/pods" && !watches
}

/// The list as text, in parts.
fn list_of_pods(size: ClusterSize, version: u64) -> Vec<Bytes> {
    let head = format!(
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}},"items":["#
    );
    let mut parts = vec![Bytes::from(head)];
    for first in (0..size.pods).step_by(AT_ONCE) {
        let mut text = String::new();
        for number in first..size.pods.min(first + AT_ONCE) {
            if number > 0 {
                text.push(',');
            }
            text.push_str(&objects::running(number, size.nodes, size.uneven).to_string());
        }
        parts.push(text.into());
    }
    parts.push(Bytes::from_static(b"]}"));
    parts
}

fn answer(pods: &Arc<Vec<Bytes>>, listed: Arc<Mutex<Option<Timestamp>>>) -> Response {
    let parts = stream::iter(Vec::clone(pods)).map(Ok::<_, Infallible>);
    let end = stream::once(async move {
        *listed.lock().expect("no holder of the lock panics") = Some(Clock::System.now());
        Ok(Bytes::new())
    });
    let mut response = Response::new(Body::from_stream(parts.chain(end)));
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
