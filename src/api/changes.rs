//! A stream that says when something has changed (`text/event-stream`, WHATWG HTML section 9.2): what has changed is asked for then.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    response::{IntoResponse as _, Response},
};
use futures::{Stream, stream};
use http::header;
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use super::{server::Api, source::PERIOD, streams::StreamPlace};
use crate::webhook::ServerReadiness;

/// A line is sent at least so often, so that whoever is between does not take the connection for dead.
const ALIVE: Duration = Duration::from_secs(15);

/// A stream ends after so long: the token is checked again when the next one begins.
const LONGEST: Duration = Duration::from_mins(10);

/// One stream.
struct Following {
    api: Arc<Api>,
    readiness: watch::Receiver<ServerReadiness>,
    began: Instant,
    sent: Instant,
    version: Option<u64>,
    _place: StreamPlace,
}

/// The stream, for as long as the server is not ending.
pub(super) fn follow(
    api: Arc<Api>,
    (place, readiness): (StreamPlace, watch::Receiver<ServerReadiness>),
) -> Response {
    let now = Instant::now();
    let following = Following { api, readiness, began: now, sent: now, version: None, _place: place };
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    (headers, Body::from_stream(lines(following))).into_response()
}

fn lines(following: Following) -> impl Stream<Item = Result<Bytes, Infallible>> {
    stream::unfold(following, async |mut following| {
        let line = following.next().await?;
        following.sent = Instant::now();
        Some((Ok(Bytes::from(line)), following))
    })
}

impl Following {
    /// The next line; `None`: the stream ends.
    async fn next(&mut self) -> Option<String> {
        loop {
            let draining = |readiness: &ServerReadiness| *readiness == ServerReadiness::Draining;
            if self.began.elapsed() >= LONGEST || draining(&self.readiness.borrow()) {
                return None;
            }
            // A replica that has no answer now may have one soon.
            if let Ok(fleet) = self.api.fleet().await
                && self.version != Some(fleet.version)
            {
                self.version = Some(fleet.version);
                let version = self.api.version_token(fleet.version);
                return Some(format!("event: change\ndata: {{\"version\":\"{version}\"}}\n\n"));
            }
            if self.sent.elapsed() >= ALIVE {
                return Some(": still here\n\n".to_owned());
            }
            tokio::select! {
                () = sleep(PERIOD) => {}
                _ = self.readiness.wait_for(draining) => {}
            }
        }
    }
}
