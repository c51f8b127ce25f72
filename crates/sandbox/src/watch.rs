//! What a watch streams: initial events, changes as its selector sees them, bookmarks, and 410 when it fell behind; it changes nothing.

use super::{
    reply::Reply,
    request::Call,
    resource::Resource,
    selector::Selection,
    server::Server,
    status::{Cause, Result, StatusError},
    store::{Change, Outcome},
    table::Printer,
    wire,
};
use axum::body::{Body, Bytes};
use futures::stream;
use serde_json::{Value, json};
use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};
use tokio::{sync::Notify, time::Instant};

/// How long a watch lasts that names no time; real servers take 30 to 60 minutes.
const DEFAULT_TIMEOUT: u64 = 1800;
/// How often a watch that asked for bookmarks gets one.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
/// How long before its end a watch gets its last bookmark.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bookmarks {
    Sent,
    Unasked,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// An ERROR event is the last one.
    Failed,
}

/// Whether the columns of a watch that sends tables are still to be sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Columns {
    Due,
    Sent,
}

struct Watcher {
    server: Arc<Server>,
    resource: &'static Resource,
    selection: Selection,
    /// None where objects are sent as they are.
    printer: Option<Printer>,
    columns: Columns,
    moved: Arc<Notify>,
    /// Everything at or below this revision was looked at.
    seen: u64,
    ready: VecDeque<Bytes>,
    bookmarks: Bookmarks,
    next_bookmark: Instant,
    end: Instant,
    state: State,
}

/// Starts a watch; its first events are read in the same instant, so nothing falls between.
pub(super) fn watch(server: &Arc<Server>, call: &Call) -> Result<Reply> {
    let selection = Selection::read(call.resource, &call.namespace, &call.query)?;
    let asked = call.query.number("resourceVersion")?.filter(|revision| *revision > 0);
    let initial = call.query.get("sendInitialEvents").map(|_| call.query.is_set("sendInitialEvents"));
    check_initial(call, initial)?;
    let end = call.query.number("timeoutSeconds")?.unwrap_or(DEFAULT_TIMEOUT);
    let end = Instant::now() + Duration::from_secs(end);
    let asks = call.query.is_set("allowWatchBookmarks");
    let mut watcher = Watcher {
        moved: server.store().subscribe(call.resource),
        server: server.clone(),
        resource: call.resource,
        selection,
        printer: server.printer(call)?,
        columns: Columns::Due,
        seen: 0,
        ready: VecDeque::new(),
        bookmarks: if asks { Bookmarks::Sent } else { Bookmarks::Unasked },
        next_bookmark: bookmark_before(end),
        end,
        state: State::Open,
    };
    match asked.filter(|_| initial != Some(true)) {
        Some(revision) => watcher.resume(revision),
        None => watcher.start(initial),
    }
    let events = stream::unfold(watcher, |mut watcher| async {
        let event = watcher.next().await?;
        Some((Ok::<_, Infallible>(event), watcher))
    });
    Ok(Reply::Stream(Body::from_stream(events)))
}

fn check_initial(call: &Call, initial: Option<bool>) -> Result<()> {
    let matching = call.query.get("resourceVersionMatch");
    let cause = match (initial, matching) {
        (Some(_), Some("NotOlderThan")) | (None, None) => return Ok(()),
        (Some(_), _) => Cause::forbidden(
            "resourceVersionMatch",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        (None, Some(_)) => Cause::forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
    };
    let text = format!("ListOptions.meta.k8s.io \"\" is invalid: {}: {}", cause.field, cause.message);
    Err(StatusError::new(422, "Invalid", text))
}

fn bookmark_before(end: Instant) -> Instant {
    let last = end.checked_sub(LAST_BOOKMARK).unwrap_or(end);
    last.min(Instant::now() + BOOKMARK_EVERY)
}

fn line(kind: &str, object: &Value) -> Bytes {
    Bytes::from(format!("{}\n", json!({ "type": kind, "object": object })))
}

impl Watcher {
    /// Goes on from a revision, or fails with 410 when that is too long ago.
    fn resume(&mut self, revision: u64) {
        self.seen = revision;
        let known = self.server.store().check_start(self.resource, revision);
        if let Err(error) = known {
            self.fail(&error);
        }
    }

    fn fail(&mut self, error: &StatusError) {
        self.ready.push_back(line("ERROR", &error.to_status()));
        self.state = State::Failed;
    }

    /// Queues the present state as ADDED events, then the bookmark that ends them.
    fn start(&mut self, initial: Option<bool>) {
        let mut store = self.server.store();
        self.seen = store.revision();
        let objects = store.objects(self.resource).values();
        let picked = objects.filter(|object| initial != Some(false) && self.selection.matches(object));
        let sent: Vec<Value> = picked.map(|object| wire::encode(self.resource, object)).collect();
        drop(store);
        for object in sent {
            let event = self.line("ADDED", object);
            self.ready.push_back(event);
        }
        if initial == Some(true) && self.bookmarks == Bookmarks::Sent {
            let annotations = json!({ "k8s.io/initial-events-end": "true" });
            let bookmark = self.bookmark(Some(annotations));
            self.ready.push_back(bookmark);
        }
    }

    fn bookmark(&mut self, annotations: Option<Value>) -> Bytes {
        let mut metadata = json!({ "resourceVersion": self.seen.to_string(), "creationTimestamp": null });
        if let Some(annotations) = annotations {
            metadata["annotations"] = annotations;
        }
        let (kind, version) = (self.resource.kind, self.resource.api_version());
        self.line("BOOKMARK", json!({ "kind": kind, "apiVersion": version, "metadata": metadata }))
    }

    /// An event about an object, in the form that was asked for.
    fn line(&mut self, kind: &str, sent: Value) -> Bytes {
        let columns = std::mem::replace(&mut self.columns, Columns::Sent);
        let sent = match (&self.printer, columns) {
            (None, _) => sent,
            (Some(printer), Columns::Due) => printer.one(&sent),
            (Some(printer), Columns::Sent) => printer.one_more(&sent),
        };
        line(kind, &sent)
    }

    /// The next line of the stream; none when the watch is over.
    async fn next(&mut self) -> Option<Bytes> {
        let notify = self.moved.clone();
        loop {
            // Waiting begins before the look, so that nothing falls between.
            let mut moved = std::pin::pin!(notify.notified());
            moved.as_mut().enable();
            self.collect();
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.state == State::Failed || Instant::now() >= self.end {
                return None;
            }
            let wake = match self.bookmarks {
                Bookmarks::Sent => self.next_bookmark.min(self.end),
                Bookmarks::Unasked => self.end,
            };
            let moved = tokio::time::timeout_at(wake, moved).await;
            if moved.is_err() && self.bookmarks == Bookmarks::Sent && wake < self.end {
                self.next_bookmark =
                    if wake + LAST_BOOKMARK >= self.end { self.end } else { bookmark_before(self.end) };
                self.collect();
                let bookmark = self.bookmark(None);
                self.ready.push_back(bookmark);
            }
        }
    }

    /// Queues what happened since the last look.
    fn collect(&mut self) {
        if self.state == State::Failed {
            return;
        }
        let mut store = self.server.store();
        let newest = store.revision();
        let changes = store.changes_after(self.resource, self.seen);
        drop(store);
        match changes {
            Ok(changes) => {
                for change in &changes {
                    if let Some((kind, sent)) = self.event(change) {
                        let event = self.line(kind, sent);
                        self.ready.push_back(event);
                    }
                }
                self.seen = self.seen.max(newest);
            }
            Err(error) => self.fail(&error),
        }
    }

    /// A change as this selector sees it: what leaves the selection is DELETED, what enters it is ADDED.
    fn event(&self, change: &Change) -> Option<(&'static str, Value)> {
        let before = change.before.as_deref().filter(|object| self.selection.matches(object));
        let after = Some(&*change.after)
            .filter(|object| change.outcome == Outcome::Stored && self.selection.matches(object));
        match (before, after) {
            (None, None) => None,
            (None, Some(after)) => Some(("ADDED", wire::encode(self.resource, after))),
            (Some(_), Some(after)) => Some(("MODIFIED", wire::encode(self.resource, after))),
            (Some(before), None) => {
                let mut last = wire::encode(self.resource, before);
                last["metadata"]["resourceVersion"] = json!(change.revision.to_string());
                Some(("DELETED", last))
            }
        }
    }
}
