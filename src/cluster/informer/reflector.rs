//! Every object of a kind, listed and then watched without end: what client-go calls a reflector.
//!
//! Errors are logged and retried without end. It does not know what the objects mean. An object of which not all can be read is logged
//! with each field, and delivered with the others; one without a name is logged and left out. kube's `watcher` fails at both, and reads a
//! list only after it has arrived completely.

mod tally;

use std::{fmt::Debug, marker::PhantomData, time::Duration};

use futures::{Stream, StreamExt, stream};
use kube::{
    Api, Client, Resource,
    api::{ListParams, WatchParams},
    core::response::StatusCause,
};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use super::{
    changes::{Lines, NoChange, WatchChange, change, changes},
    list::{ListError, ListForm, Strange, list, said},
    retry::{self, Pauses},
    unread::{Nameless, Partly, Unread, UnreadObjects, partly},
    wire::{Watched, Wire},
};
use crate::{excerpt::brief, scheduling::model::pod::is_older};
use tally::WatchTally;

/// The time after which the API server ends a watch, in seconds.
const WATCH: u32 = 290;
/// A watch that is silent for longer has lost its connection, since the API server would have ended it.
const SILENCE: Duration = Duration::from_secs(WATCH as u64 + 5);
/// A watch that ends earlier without an event has failed.
const SHORT: Duration = Duration::from_secs(1);

/// An event of a kind, with objects as `read` returns them.
#[derive(Debug)]
pub enum ReflectorEvent<T, I> {
    /// All objects, after a list.
    Listed(Vec<I>),
    /// The API server does not serve the kind.
    Unserved,
    /// A new or changed object.
    Seen(I),
    /// The last state of an object that was deleted, or is no longer selected.
    Gone(T),
}

/// Why a list or a watch failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("listing: {0}")]
    List(#[from] ListError),
    #[error("watching: {}", said(.0))]
    Watch(#[from] kube::Error),
    #[error("watching: it ended at once")]
    Short,
    #[error("watching: an object without resourceVersion")]
    NoVersion,
}

enum State {
    Unlisted,
    /// Everything up to this resource version has been delivered.
    Known(String),
    Watching {
        version: String,
        lines: Lines,
        /// When it was opened; `None` after its first event.
        silent_since: Option<Instant>,
    },
}

/// Which objects of a kind are listed and watched.
#[derive(Clone, Debug, Default)]
pub struct ObjectSelection {
    /// Those that this field selector selects.
    pub fields: Option<String>,
    /// Those that this label selector selects.
    pub labels: Option<String>,
}

impl ObjectSelection {
    /// Those that this field selector selects.
    pub fn by_fields(fields: &str) -> Self {
        Self { fields: Some(fields.to_owned()), labels: None }
    }

    /// Those that this label selector selects.
    pub fn by_labels(labels: &str) -> Self {
        Self { fields: None, labels: Some(labels.to_owned()) }
    }
}

/// What a function reads of an object, with what it makes of it.
type Reads<T, I> = fn(&T) -> (T, I);

struct Reflector<T, I, R> {
    client: Client,
    path: String,
    selected: ObjectSelection,
    read: R,
    tally: WatchTally,
    pauses: Pauses,
    state: State,
    installed: KindInstalled,
    reading: PhantomData<Reads<T, I>>,
}

/// Whether the API server serves the kind.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum KindInstalled {
    /// It always does.
    Surely,
    /// It may not.
    Perhaps,
    /// It does not, and that has been told.
    No,
}

/// The events of the objects of a kind that are selected, beginning with a list, which is parsed while it arrives. `read` is given what
/// can be read of an object, and what can't be; `objects` counts those that can't be read completely.
///
/// The list is the newest one: without a `resourceVersion`, it never comes from a cache of the API server that lags behind.
pub fn reflect<T, I>(
    client: Client,
    selected: ObjectSelection,
    objects: UnreadObjects,
    read: impl Fn(&T, &[Unread]) -> I + Send + Sync,
) -> impl Stream<Item = ReflectorEvent<T, I>> + Send
where
    T: Wire + Clone + Debug + DeserializeOwned + Send + 'static,
    Watched<T>: Resource<DynamicType = ()>,
    I: Send,
{
    reflector(client, selected, objects, read, KindInstalled::Surely)
}

/// As [`reflect`], for a kind that may not be installed: where the API server does not serve it, [`ReflectorEvent::Unserved`] comes once, no error
/// is logged, and it is listed again from time to time.
pub fn reflect_if_served<T, I>(
    client: Client,
    selected: ObjectSelection,
    objects: UnreadObjects,
    read: impl Fn(&T, &[Unread]) -> I + Send + Sync,
) -> impl Stream<Item = ReflectorEvent<T, I>> + Send
where
    T: Wire + Clone + Debug + DeserializeOwned + Send + 'static,
    Watched<T>: Resource<DynamicType = ()>,
    I: Send,
{
    reflector(client, selected, objects, read, KindInstalled::Perhaps)
}

fn reflector<T, I>(
    client: Client,
    selected: ObjectSelection,
    objects: UnreadObjects,
    read: impl Fn(&T, &[Unread]) -> I + Send + Sync,
    installed: KindInstalled,
) -> impl Stream<Item = ReflectorEvent<T, I>> + Send
where
    T: Wire + Clone + Debug + DeserializeOwned + Send + 'static,
    Watched<T>: Resource<DynamicType = ()>,
    I: Send,
{
    let reflector = Reflector {
        path: Api::<Watched<T>>::all(client.clone()).resource_url().to_owned(),
        client,
        selected,
        read,
        tally: WatchTally::new(T::KIND, objects),
        pauses: if installed == KindInstalled::Surely {
            retry::pauses()
        } else {
            retry::pauses_of_unserved()
        },
        state: State::Unlisted,
        installed,
        reading: PhantomData,
    };
    stream::unfold(reflector, async |mut reflector| Some((reflector.next().await, reflector)))
}

impl<T, I, R> Reflector<T, I, R>
where
    T: Wire + Clone + Debug + DeserializeOwned + Send + 'static,
    Watched<T>: Resource<DynamicType = ()>,
    I: Send,
    R: Fn(&T, &[Unread]) -> I + Send + Sync,
{
    async fn next(&mut self) -> ReflectorEvent<T, I> {
        loop {
            match self.step().await {
                Ok(Some(told)) => return told,
                Ok(None) => {}
                Err(error) if self.installed != KindInstalled::Surely && error.is_unserved() => {
                    if std::mem::replace(&mut self.installed, KindInstalled::No) != KindInstalled::No {
                        return ReflectorEvent::Unserved;
                    }
                    sleep(self.pauses.next().unwrap_or_default()).await;
                }
                Err(error) => {
                    tracing::warn!(kind = T::KIND, %error, "watch failed, trying again");
                    sleep(self.pauses.next().unwrap_or_default()).await;
                }
            }
        }
    }

    /// Advances to the next state. After a failure, the state is the one to try next.
    async fn step(&mut self) -> Result<Option<ReflectorEvent<T, I>>, Failure> {
        match std::mem::replace(&mut self.state, State::Unlisted) {
            State::Unlisted => self.list().await.map(Some),
            State::Known(version) => {
                let lines = watch(&self.client, &self.path, self.selected.clone(), &version).await;
                let lines = lines.inspect_err(|error| {
                    self.state =
                        if error.is_gone() { State::Unlisted } else { State::Known(version.clone()) };
                })?;
                self.state = State::Watching { version, lines, silent_since: Some(Instant::now()) };
                Ok(None)
            }
            State::Watching { version, lines, silent_since } => {
                self.go_on(version, lines, silent_since).await
            }
        }
    }

    async fn list(&mut self) -> Result<ReflectorEvent<T, I>, Failure> {
        let (began, mut all) = (Instant::now(), Vec::new());
        let ObjectSelection { fields, labels } = self.selected.clone();
        let parameters =
            ListParams { field_selector: fields, label_selector: labels, ..ListParams::default() };
        let mut tally = self.tally.anew();
        let each = |object: Result<T, Strange<'_>>| {
            let read = object.map(|object| Partly { object, unread: Vec::new() });
            match read.or_else(|strange| partly(strange.json)) {
                Ok(Partly { object, unread }) => {
                    tally.take_in(object.metadata(), &unread);
                    all.push((self.read)(&object, &unread));
                }
                Err(nameless) => log(T::KIND, &nameless),
            }
        };
        let version = list(&self.client, &self.path, ListForm::Whole, parameters, each).await?;
        self.tally.replace(tally);
        if self.installed == KindInstalled::No {
            self.installed = KindInstalled::Perhaps;
        }
        tracing::debug!(kind = T::KIND, count = all.len(), took = ?began.elapsed(), "listed");
        self.state = State::Known(version);
        Ok(ReflectorEvent::Listed(all))
    }

    async fn go_on(
        &mut self,
        version: String,
        mut lines: Lines,
        silent_since: Option<Instant>,
    ) -> Result<Option<ReflectorEvent<T, I>>, Failure> {
        let Ok(Some(line)) = timeout(SILENCE, lines.next()).await else {
            self.state = State::Known(version);
            let short = silent_since.is_some_and(|since| since.elapsed() < SHORT);
            return if short { Err(Failure::Short) } else { Ok(None) };
        };
        let Some(event) = change(line) else {
            self.state = State::Watching { version, lines, silent_since };
            return Ok(None);
        };
        let (version, told) = match self.told(&version, event) {
            // A watch tells in the order of versions: this was told before, and what it says holds no longer.
            Ok((older, Some(ReflectorEvent::Seen(_)))) if is_older(&older, &version) => (version, Ok(None)),
            Ok((version, told)) => (version, Ok(told)),
            Err(error) if error.is_gone() => return Err(error),
            // A connection that broke ends by itself.
            Err(error) => (version, Err(error)),
        };
        self.state = State::Watching { version, lines, silent_since: None };
        told
    }

    /// The event to deliver for one event of a watch, and the resource version up to which everything is then delivered.
    fn told(
        &mut self,
        known: &str,
        event: Result<WatchChange<T>, NoChange>,
    ) -> Result<(String, Option<ReflectorEvent<T, I>>), Failure> {
        let (version, told) = match event {
            Ok(WatchChange::Seen(Partly { object, unread })) => {
                self.tally.take_in(object.metadata(), &unread);
                (version_of(&object), Some(ReflectorEvent::Seen((self.read)(&object, &unread))))
            }
            Ok(WatchChange::Gone(Partly { object, .. })) => {
                self.tally.take_out(object.metadata());
                (version_of(&object), Some(ReflectorEvent::Gone(object)))
            }
            Ok(WatchChange::Bookmark(version)) => (version, None),
            Err(NoChange::Nameless(nameless)) => {
                log(T::KIND, &nameless);
                return Ok((known.to_owned(), None));
            }
            Err(NoChange::Watch(error)) => return Err(error.into()),
        };
        if version.is_empty() { Err(Failure::NoVersion) } else { Ok((version, told)) }
    }
}

async fn watch(
    client: &Client,
    path: &str,
    ObjectSelection { fields, labels }: ObjectSelection,
    version: &str,
) -> Result<Lines, Failure> {
    let parameters = WatchParams {
        field_selector: fields,
        label_selector: labels,
        timeout: Some(WATCH),
        bookmarks: true,
        ..WatchParams::default()
    };
    Ok(changes(client, path, &parameters, version).await?)
}

fn log(kind: &str, nameless: &Nameless) {
    tracing::warn!(kind, "left out: {}", brief(nameless));
}

impl Failure {
    /// Whether the API server does not serve the kind.
    fn is_unserved(&self) -> bool {
        let (Self::List(ListError::Request(error)) | Self::Watch(error)) = self else { return false };
        matches!(error, kube::Error::Api(status) if status.code == 404)
    }

    /// Whether the API server no longer has the changes since the known version, or has not reached that version (its etcd was restored;
    /// apiserver `pkg/storage/errors.go`, `NewTooLargeResourceVersionError`): everything has to be listed again.
    fn is_gone(&self) -> bool {
        let too_large = |cause: &StatusCause| cause.reason == "ResourceVersionTooLarge";
        match self {
            Self::Watch(kube::Error::Api(status)) => {
                let mut causes = status.details.iter().flat_map(|details| &details.causes);
                status.code == 410 || causes.any(too_large)
            }
            Self::NoVersion => true,
            _ => false,
        }
    }
}

fn version_of(object: &impl Wire) -> String {
    object.metadata().resource_version.clone()
}

#[cfg(test)]
mod tests;
