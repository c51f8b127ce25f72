//! Paths that are served to peers of the same host, such as `kubectl port-forward` and containers of the same pod, and to clients that
//! showed a certificate of the client authority.

use axum::{
    Router,
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::StatusCode;

use crate::webhook::{
    refusal::ReviewRefusal,
    server::serve::{Peer, Remote},
};

/// These paths, for such peers alone.
pub fn trusted(paths: Router) -> Router {
    paths.route_layer(axum::middleware::from_fn(admit))
}

async fn admit(request: Request, next: Next) -> Response {
    let verified = request.extensions().get::<Peer>() == Some(&Peer::Verified);
    let local =
        request.extensions().get::<Remote>().is_some_and(|remote| remote.0.to_canonical().is_loopback());
    if verified || local {
        return next.run(request).await;
    }
    let why = "this path is served to clients with a certificate of the configured authority and, as through \
               `kubectl port-forward`, to peers on the same host";
    ReviewRefusal::new(StatusCode::FORBIDDEN, why).into_response()
}
