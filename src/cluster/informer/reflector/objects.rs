//! The objects of one kind: read, counted, and made into the events of a reflector.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use super::{
    Failure, Objects, ReflectorEvent,
    tally::{Listing, WatchTally},
};
use crate::{
    cluster::informer::{
        changes::{NoChange, WatchChange, change},
        list::{Items, LastItem, Strange},
        unread::{Nameless, Partly, Unread, UnreadObjects, partly},
        wire::Wire,
    },
    excerpt::brief,
    scheduling::model::pod::is_older,
};

/// Reads the objects of a kind, each with a function that makes of it what its event has.
pub(super) struct ObjectReader<T, I, R> {
    read: R,
    tally: WatchTally,
    listing: Option<(Listing, Vec<I>)>,
    item: LastItem<T>,
    event: Option<ReflectorEvent<T, I>>,
    reading: PhantomData<fn(&T) -> I>,
}

impl<T: Wire, I, R: Fn(&T, &[Unread]) -> I> ObjectReader<T, I, R> {
    pub(super) fn new(read: R, objects: UnreadObjects) -> Self {
        let tally = WatchTally::new(T::KIND, objects);
        Self { read, tally, listing: None, item: LastItem::default(), event: None, reading: PhantomData }
    }

    /// The event to deliver, once.
    pub(super) fn take_event(&mut self) -> Option<ReflectorEvent<T, I>> {
        self.event.take()
    }

    fn keep_item(&mut self, Partly { object, unread }: &Partly<T>) {
        if let Some((listing, all)) = &mut self.listing {
            listing.take_in(object.metadata(), unread);
            all.push((self.read)(object, unread));
        }
    }
}

impl<T, I, R> Items for ObjectReader<T, I, R>
where
    T: Wire + DeserializeOwned + Send,
    I: Send,
    R: Fn(&T, &[Unread]) -> I + Send,
{
    fn read(&mut self, text: &str) -> serde_json::Result<usize> {
        self.item.read(text)
    }

    fn keep(&mut self) {
        if let Some(object) = self.item.take() {
            self.keep_item(&Partly { object, unread: Vec::new() });
        }
    }

    fn leave_out(&mut self, strange: Strange<'_>) {
        match partly(strange.json) {
            Ok(read) => self.keep_item(&read),
            Err(nameless) => log(T::KIND, &nameless),
        }
    }
}

impl<T, I, R> Objects for ObjectReader<T, I, R>
where
    T: Wire + DeserializeOwned + Send,
    I: Send,
    R: Fn(&T, &[Unread]) -> I + Send,
{
    fn begin_list(&mut self) {
        self.listing = Some((self.tally.anew(), Vec::new()));
    }

    fn end_list(&mut self) -> usize {
        let Some((listing, all)) = self.listing.take() else { return 0 };
        self.tally.replace(listing);
        let count = all.len();
        self.event = Some(ReflectorEvent::Listed(all));
        count
    }

    fn change(&mut self, known: &str, line: std::io::Result<Vec<u8>>) -> Option<Result<String, Failure>> {
        let version = match change::<T>(line)? {
            Ok(WatchChange::Seen(Partly { object, unread })) => {
                self.tally.take_in(object.metadata(), &unread);
                let version = object.metadata().resource_version.clone();
                // A watch tells in the order of versions: this was told before, and what it says holds no longer.
                if is_older(&version, known) && !version.is_empty() {
                    return Some(Ok(known.to_owned()));
                }
                self.event = Some(ReflectorEvent::Seen((self.read)(&object, &unread)));
                version
            }
            Ok(WatchChange::Gone(Partly { object, .. })) => {
                self.tally.take_out(object.metadata());
                let version = object.metadata().resource_version.clone();
                self.event = Some(ReflectorEvent::Gone(object));
                version
            }
            Ok(WatchChange::Bookmark(version)) => version,
            Err(NoChange::Nameless(nameless)) => {
                log(T::KIND, &nameless);
                known.to_owned()
            }
            Err(NoChange::Watch(error)) => return Some(Err(error.into())),
        };
        if version.is_empty() {
            self.event = None;
            return Some(Err(Failure::NoVersion));
        }
        Some(Ok(version))
    }

    fn has_event(&self) -> bool {
        self.event.is_some()
    }
}

fn log(kind: &str, nameless: &Nameless) {
    tracing::warn!(kind, "left out: {}", brief(nameless));
}
