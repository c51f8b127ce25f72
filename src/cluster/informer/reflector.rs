//! Every object of a kind, listed and then watched without end: what client-go calls a reflector.
//!
//! Errors are logged and retried without end. It does not know what the objects mean. An object of which not all can be read is logged
//! with each field, and delivered with the others; one without a name is logged and left out. kube's `watcher` fails at both, and reads a
//! list only after it has arrived completely.

mod objects;
mod tally;

use std::{fmt::Debug, time::Duration};

use futures::{FutureExt, Stream, StreamExt, future::BoxFuture, stream};
use kube::{
    Api, Client, Resource,
    api::{ListParams, WatchParams},
    core::response::StatusCause,
};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use super::{
    changes::{Lines, changes},
    list::{Items, ListError, ListForm, pages, said},
    retry::{self, Pauses},
    unread::{Unread, UnreadObjects},
    wire::{Watched, Wire},
};
use objects::ObjectReader;

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

/// What becomes of the objects of a kind: all that is compiled anew for each kind, so that the rest of a reflector is in the program once.
trait Objects: Items {
    /// A list begins; its objects come as [`Items`].
    fn begin_list(&mut self);

    /// The list is complete, and so is the event with its objects; how many there are.
    fn end_list(&mut self) -> usize;

    /// Reads one line of a watch that has delivered everything up to the known resource version, and returns the version up to which
    /// everything is delivered then; `None`: the line is empty or was cut off.
    fn change(&mut self, known: &str, line: std::io::Result<Vec<u8>>) -> Option<Result<String, Failure>>;

    /// Whether there is an event to deliver.
    fn has_event(&self) -> bool;
}

/// What came of waiting.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Awaited {
    /// The objects have an event.
    Event,
    /// The API server does not serve the kind.
    Unserved,
}

/// Lists and watches a kind, whatever its objects are.
struct Reflector {
    client: Client,
    kind: &'static str,
    path: String,
    selected: ObjectSelection,
    pauses: Pauses,
    state: State,
    installed: KindInstalled,
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
        kind: T::KIND,
        path: Api::<Watched<T>>::all(client.clone()).resource_url().to_owned(),
        client,
        selected,
        pauses: if installed == KindInstalled::Surely {
            retry::pauses()
        } else {
            retry::pauses_of_unserved()
        },
        state: State::Unlisted,
        installed,
    };
    let objects = ObjectReader::new(read, objects);
    stream::unfold((reflector, objects), async |(mut reflector, mut objects)| {
        let event = loop {
            if reflector.event(&mut objects).await == Awaited::Unserved {
                break ReflectorEvent::Unserved;
            }
            if let Some(event) = objects.take_event() {
                break event;
            }
        };
        Some((event, (reflector, objects)))
    })
}

impl Reflector {
    /// Waits for the next event. It is boxed, so that no kind gets a copy of its own.
    fn event<'a>(&'a mut self, objects: &'a mut dyn Objects) -> BoxFuture<'a, Awaited> {
        async {
            loop {
                match self.step(objects).await {
                    Ok(()) if objects.has_event() => return Awaited::Event,
                    Ok(()) => {}
                    Err(error) if self.installed != KindInstalled::Surely && error.is_unserved() => {
                        if std::mem::replace(&mut self.installed, KindInstalled::No) != KindInstalled::No {
                            return Awaited::Unserved;
                        }
                        sleep(self.pauses.next().unwrap_or_default()).await;
                    }
                    Err(error) => {
                        tracing::warn!(kind = self.kind, %error, "watch failed, trying again");
                        sleep(self.pauses.next().unwrap_or_default()).await;
                    }
                }
            }
        }
        .boxed()
    }

    /// Advances to the next state. After a failure, the state is the one to try next.
    async fn step(&mut self, objects: &mut dyn Objects) -> Result<(), Failure> {
        match std::mem::replace(&mut self.state, State::Unlisted) {
            State::Unlisted => self.list(objects).await,
            State::Known(version) => {
                let lines = watch(&self.client, &self.path, self.selected.clone(), &version).await;
                let lines = lines.inspect_err(|error| {
                    self.state =
                        if error.is_gone() { State::Unlisted } else { State::Known(version.clone()) };
                })?;
                self.state = State::Watching { version, lines, silent_since: Some(Instant::now()) };
                Ok(())
            }
            State::Watching { version, lines, silent_since } => {
                self.go_on(version, lines, silent_since, objects).await
            }
        }
    }

    async fn list(&mut self, objects: &mut dyn Objects) -> Result<(), Failure> {
        let began = Instant::now();
        let ObjectSelection { fields, labels } = self.selected.clone();
        let parameters =
            ListParams { field_selector: fields, label_selector: labels, ..ListParams::default() };
        objects.begin_list();
        let version = pages(&self.client, &self.path, ListForm::Whole, parameters, objects).await?;
        let count = objects.end_list();
        if self.installed == KindInstalled::No {
            self.installed = KindInstalled::Perhaps;
        }
        tracing::debug!(kind = self.kind, count, took = ?began.elapsed(), "listed");
        self.state = State::Known(version);
        Ok(())
    }

    async fn go_on(
        &mut self,
        version: String,
        mut lines: Lines,
        silent_since: Option<Instant>,
        objects: &mut dyn Objects,
    ) -> Result<(), Failure> {
        let Ok(Some(line)) = timeout(SILENCE, lines.next()).await else {
            self.state = State::Known(version);
            let short = silent_since.is_some_and(|since| since.elapsed() < SHORT);
            return if short { Err(Failure::Short) } else { Ok(()) };
        };
        let (version, silent_since, told) = match objects.change(&version, line) {
            None => (version, silent_since, Ok(())),
            Some(Ok(version)) => (version, None, Ok(())),
            Some(Err(error)) if error.is_gone() => return Err(error),
            // A connection that broke ends by itself.
            Some(Err(error)) => (version, None, Err(error)),
        };
        self.state = State::Watching { version, lines, silent_since };
        told
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

#[cfg(test)]
mod tests;
