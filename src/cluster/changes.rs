//! The changes of a kind as a watch delivers them, a line each.
//!
//! It opens no watch again and keeps no object. kube's own stream reads a line as a whole or not at all; here an object of which not all
//! can be read is still a change.

use futures::{AsyncBufRead, AsyncBufReadExt, Stream, StreamExt, stream};
use http::{HeaderValue, header::ACCEPT_ENCODING};
use kube::{
    Client,
    api::{WatchEvent, WatchParams},
    core::{Request, Status},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{
    unread::{Nameless, Partly, partly},
    wire::{Watched, Wire},
};

/// A change of one object.
#[derive(Debug)]
pub enum WatchChange<T> {
    /// A new or changed object.
    Seen(Partly<T>),
    /// The last state of an object that was deleted, or is no longer selected.
    Gone(Partly<T>),
    /// Everything up to this resource version was delivered.
    Bookmark(String),
}

/// Why there is no change.
#[derive(Debug, thiserror::Error)]
pub enum NoChange {
    /// The API server reports an error, or the connection broke.
    #[error(transparent)]
    Watch(#[from] kube::Error),
    /// It is of an object of which not even the name can be read.
    #[error(transparent)]
    Nameless(#[from] Nameless),
}

/// One line, before its object is read.
#[derive(Deserialize)]
struct WatchLine<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// The changes of the kind at this path since that resource version, until the connection ends.
pub async fn changes<T: Wire + DeserializeOwned + Send>(
    client: &Client,
    path: &str,
    parameters: &WatchParams,
    version: &str,
) -> kube::Result<impl Stream<Item = Result<WatchChange<T>, NoChange>> + Send + use<T>> {
    let mut request = Request::new(path).watch(parameters, version).map_err(kube::Error::BuildRequest)?;
    // Kubernetes 1.37 compresses each event by itself, and only the first would be decompressed (kube-client 5.0 `request_events`).
    request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let bytes = client.request_stream(request).await?;
    Ok(lines(Box::pin(bytes))
        .filter_map(|line| std::future::ready(line.map_or_else(failed, |line| change(&line)))))
}

fn lines<R: AsyncBufRead + Unpin + Send>(bytes: R) -> impl Stream<Item = std::io::Result<Vec<u8>>> + Send {
    stream::unfold(bytes, async |mut bytes| {
        let mut line = Vec::new();
        match bytes.read_until(b'\n', &mut line).await {
            Ok(0) => None,
            Ok(_) => Some((Ok(line), bytes)),
            Err(error) => Some((Err(error), bytes)),
        }
    })
}

/// A connection that the API server ends in the middle of an answer is the usual end of a watch.
fn failed<T>(error: std::io::Error) -> Option<Result<WatchChange<T>, NoChange>> {
    let is_end = matches!(error.kind(), std::io::ErrorKind::TimedOut | std::io::ErrorKind::UnexpectedEof)
        || error.to_string().contains("unexpected EOF during chunk");
    (!is_end).then(|| Err(kube::Error::ReadEvents(error).into()))
}

/// The change in one line; `None`: the line is empty or was cut off.
fn change<T: Wire + DeserializeOwned>(line: &[u8]) -> Option<Result<WatchChange<T>, NoChange>> {
    let whole = |watched: Watched<T>| Partly { object: watched.object, unread: Vec::new() };
    match serde_json::from_slice::<WatchEvent<Watched<T>>>(line) {
        Ok(WatchEvent::Added(watched) | WatchEvent::Modified(watched)) => {
            Some(Ok(WatchChange::Seen(whole(watched))))
        }
        Ok(WatchEvent::Deleted(watched)) => Some(Ok(WatchChange::Gone(whole(watched)))),
        Ok(WatchEvent::Bookmark(bookmark)) => {
            Some(Ok(WatchChange::Bookmark(bookmark.metadata.resource_version)))
        }
        Ok(WatchEvent::Error(status)) => Some(Err(kube::Error::Api(status).into())),
        Err(error) if error.is_eof() => None,
        Err(error) => Some(in_part(line, error)),
    }
}

/// The change in a line that can't be read as a whole.
fn in_part<T: Wire + DeserializeOwned>(
    line: &[u8],
    error: serde_json::Error,
) -> Result<WatchChange<T>, NoChange> {
    match serde_json::from_slice::<WatchLine<'_>>(line) {
        Ok(WatchLine { kind, object }) => match kind.as_str() {
            "ADDED" | "MODIFIED" => Ok(WatchChange::Seen(partly(object.get())?)),
            "DELETED" => Ok(WatchChange::Gone(partly(object.get())?)),
            _ => Err(kube::Error::SerdeError(error).into()),
        },
        // An answer that is no change at all.
        Err(_) => match serde_json::from_slice::<Status>(line) {
            Ok(status) => Err(kube::Error::Api(status.boxed()).into()),
            Err(_) => Err(kube::Error::SerdeError(error).into()),
        },
    }
}
