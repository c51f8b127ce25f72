//! The changes of a kind as a watch delivers them, a line each.
//!
//! It opens no watch again and keeps no object. kube's own stream reads a line as a whole or not at all; here an object of which not all
//! can be read is still a change.

use std::{borrow::Cow, fmt, marker::PhantomData};

use futures::{AsyncBufRead, AsyncBufReadExt, Stream, StreamExt, stream, stream::BoxStream};
use http::{HeaderValue, header::ACCEPT_ENCODING};
use kube::{
    Client,
    api::WatchParams,
    core::{Request, Status},
};
use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeOwned, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{
    unread::{Nameless, Partly, partly},
    wire::Wire,
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
    kind: ChangeKind,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// What kind of change a line is.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "UPPERCASE")]
enum ChangeKind {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

/// The object of a bookmark.
#[derive(Deserialize)]
struct Marked {
    metadata: MarkedMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MarkedMetadata {
    resource_version: String,
}

/// One line, read as a whole.
enum ReadLine<T> {
    Seen(T),
    Gone(T),
    Bookmark(String),
    Error(Box<Status>),
}

/// A line whose type comes first, as API servers write it: the object can be read at once. kube's own type keeps the object to read it later, which is
/// code of its own for each kind.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for ReadLine<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(LineVisitor(PhantomData))
    }
}

struct LineVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for LineVisitor<T> {
    type Value = ReadLine<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a change")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let (mut kind, mut line) = (None, None);
        while let Some(key) = fields.next_key::<Cow<'de, str>>()? {
            match (&*key, kind) {
                ("type", _) => kind = Some(fields.next_value()?),
                ("object", Some(ChangeKind::Added | ChangeKind::Modified)) => {
                    line = Some(ReadLine::Seen(fields.next_value()?));
                }
                ("object", Some(ChangeKind::Deleted)) => line = Some(ReadLine::Gone(fields.next_value()?)),
                ("object", Some(ChangeKind::Bookmark)) => {
                    let Marked { metadata } = fields.next_value()?;
                    line = Some(ReadLine::Bookmark(metadata.resource_version));
                }
                ("object", Some(ChangeKind::Error)) => {
                    line = Some(ReadLine::Error(Box::new(fields.next_value()?)));
                }
                ("object", None) => return Err(de::Error::custom("the object comes before the type")),
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        line.ok_or_else(|| de::Error::missing_field("object"))
    }
}

/// The lines of a watch.
pub type Lines = BoxStream<'static, std::io::Result<Vec<u8>>>;

/// The lines with the changes of the kind at this path since that resource version, until the connection ends. [`change`] reads them: the rest is
/// the same for all kinds, and compiled once.
pub async fn changes(
    client: &Client,
    path: &str,
    parameters: &WatchParams,
    version: &str,
) -> kube::Result<Lines> {
    let mut request = Request::new(path).watch(parameters, version).map_err(kube::Error::BuildRequest)?;
    // Kubernetes 1.37 compresses each event by itself, and only the first would be decompressed (kube-client 5.0 `request_events`).
    request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let bytes = client.request_stream(request).await?;
    Ok(lines(Box::pin(bytes)).boxed())
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
pub fn change<T: Wire + DeserializeOwned>(
    line: std::io::Result<Vec<u8>>,
) -> Option<Result<WatchChange<T>, NoChange>> {
    line.map_or_else(failed, |line| read(&line))
}

fn read<T: Wire + DeserializeOwned>(line: &[u8]) -> Option<Result<WatchChange<T>, NoChange>> {
    let whole = |object: T| Partly { object, unread: Vec::new() };
    let text = match str::from_utf8(line) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => return None,
        Err(error) => return Some(Err(kube::Error::SerdeError(de::Error::custom(error)).into())),
    };
    match serde_json::from_str(text) {
        Ok(ReadLine::Seen(object)) => Some(Ok(WatchChange::Seen(whole(object)))),
        Ok(ReadLine::Gone(object)) => Some(Ok(WatchChange::Gone(whole(object)))),
        Ok(ReadLine::Bookmark(version)) => Some(Ok(WatchChange::Bookmark(version))),
        Ok(ReadLine::Error(status)) => Some(Err(kube::Error::Api(status).into())),
        Err(error) if error.is_eof() => None,
        Err(error) => Some(in_part(text, error).and_then(|line| match line {
            LineInPart::Seen(object) => Ok(WatchChange::Seen(partly(object)?)),
            LineInPart::Gone(object) => Ok(WatchChange::Gone(partly(object)?)),
            LineInPart::Bookmark(version) => Ok(WatchChange::Bookmark(version)),
        })),
    }
}

/// A line that can't be read as a whole, with its object as JSON.
enum LineInPart<'a> {
    Seen(&'a str),
    Gone(&'a str),
    Bookmark(String),
}

/// What can be read of a line that can't be read as a whole. It knows no kind, so that it is in the program once.
fn in_part(line: &str, error: serde_json::Error) -> Result<LineInPart<'_>, NoChange> {
    let unread = |error| NoChange::from(kube::Error::SerdeError(error));
    let Ok(WatchLine { kind, object }) = serde_json::from_str(line) else {
        // An answer that is no change at all.
        return match serde_json::from_str::<Status>(line) {
            Ok(status) => Err(kube::Error::Api(status.boxed()).into()),
            Err(_) => Err(unread(error)),
        };
    };
    match kind {
        ChangeKind::Added | ChangeKind::Modified => Ok(LineInPart::Seen(object.get())),
        ChangeKind::Deleted => Ok(LineInPart::Gone(object.get())),
        ChangeKind::Bookmark => {
            let Marked { metadata } = serde_json::from_str(object.get()).map_err(unread)?;
            Ok(LineInPart::Bookmark(metadata.resource_version))
        }
        ChangeKind::Error => {
            let status: Status = serde_json::from_str(object.get()).map_err(unread)?;
            Err(kube::Error::Api(status.boxed()).into())
        }
    }
}
