//! A list from the API server, parsed object by object while the API server still writes it.
//!
//! It keeps no object and repeats no request. The API server needs half of the time of a large list; a client that waits for the end
//! of the answer before it parses needs the other half in addition, as kube's own lists do.

use std::borrow::Cow;

use futures::{AsyncBufRead, AsyncBufReadExt};
use kube::{Client, api::ListParams, core::Request};
use serde::{Deserialize, de::DeserializeOwned, de::IgnoredAny};
use serde_json::{Value, value::RawValue};

use crate::excerpt::brief;

/// The fewest bytes that must arrive before a value that was cut off is parsed again.
const STRIDE: usize = 64 << 10;

/// Why a list failed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The API server refused the list, failed, or could not be reached.
    #[error("{}", said(.0))]
    Request(#[from] kube::Error),
    /// The connection broke in the middle of it.
    #[error("the list ended early: {0}")]
    Broken(#[from] std::io::Error),
    /// One of its objects is not JSON.
    #[error("object {at} of the list can't be read: {source}")]
    Object {
        /// How many objects were parsed before.
        at: usize,
        /// Why.
        source: serde_json::Error,
    },
    /// The answer does not have the form of a list.
    #[error("the answer is no list: {0}")]
    Shape(#[from] ShapeError),
    /// The list has no resource version to watch from.
    #[error("the list has no resourceVersion")]
    NoVersion,
}

/// Why an answer is not a list.
#[derive(Debug, thiserror::Error)]
pub enum ShapeError {
    /// Something else stands there.
    #[error("{found:?} stands where {expected} should")]
    Unexpected {
        /// What is there.
        found: char,
        /// What lists have there.
        expected: &'static str,
    },
    /// A part of it that is no object can't be read.
    #[error(transparent)]
    Unreadable(#[from] serde_json::Error),
}

/// An error in the API server's own words where it has said any, shortened.
pub fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} (HTTP status {})", brief(&status.message), status.code),
        error => brief(error),
    }
}

/// The metadata of a page.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ListMeta {
    resource_version: String,
    #[serde(rename = "continue")]
    rest: String,
}

/// The form of the listed objects.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ListForm {
    /// Complete objects.
    Whole,
    /// As `PartialObjectMetadata`: without specs and statuses.
    Metadata,
}

/// An item of a list with its version and kind, which items do not state themselves.
pub fn stated(mut item: Value, version: &str, kind: &str) -> Value {
    if let Some(fields) = item.as_object_mut() {
        fields.insert("apiVersion".to_owned(), version.into());
        fields.insert("kind".to_owned(), kind.into());
    }
    item
}

/// An object of a list that is not of the kind.
#[derive(Debug, thiserror::Error)]
#[error("object {at} of the list can't be read: {source}")]
pub struct Strange<'a> {
    /// How many objects came before it.
    pub at: usize,
    /// Why.
    pub source: serde_json::Error,
    /// The object.
    pub json: &'a str,
}

/// Passes every object of a list to `each`, also one that is not of the kind, and returns the list's `resourceVersion`. It requests
/// all pages, if the API server sends pages.
pub async fn list<T: DeserializeOwned + Send>(
    client: &Client,
    path: &str,
    form: ListForm,
    parameters: ListParams,
    each: impl FnMut(Result<T, Strange<'_>>) + Send,
) -> Result<String, ListError> {
    pages(client, path, form, parameters, &mut KindItems { each, read: LastItem::default() }).await
}

/// The items of a list as a kind: all that is compiled anew for each kind, so that the rest of a list is in the program once.
struct KindItems<T, F> {
    each: F,
    read: LastItem<T>,
}

/// The item of a list that was read last; it may not be complete.
pub(super) struct LastItem<T>(Option<T>);

impl<T> Default for LastItem<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: DeserializeOwned> LastItem<T> {
    /// Reads the item that the text begins with, and says where it ends.
    pub(super) fn read(&mut self, text: &str) -> serde_json::Result<usize> {
        let (item, end) = first(text)?;
        self.0 = Some(item);
        Ok(end)
    }

    /// The item, once.
    pub(super) fn take(&mut self) -> Option<T> {
        self.0.take()
    }
}

/// What becomes of the items of a list.
pub(super) trait Items: Send {
    /// Reads the item that the text begins with, and says where it ends.
    fn read(&mut self, text: &str) -> serde_json::Result<usize>;

    /// The item that was read last is complete.
    fn keep(&mut self);

    /// An item is not of the kind.
    fn leave_out(&mut self, strange: Strange<'_>);
}

impl<T: DeserializeOwned + Send, F: FnMut(Result<T, Strange<'_>>) + Send> Items for KindItems<T, F> {
    fn read(&mut self, text: &str) -> serde_json::Result<usize> {
        self.read.read(text)
    }

    fn keep(&mut self) {
        if let Some(read) = self.read.take() {
            (self.each)(Ok(read));
        }
    }

    fn leave_out(&mut self, strange: Strange<'_>) {
        (self.each)(Err(strange));
    }
}

/// The value that the text begins with, and where it ends; an error of category `Eof` where the text ends before.
fn first<T: DeserializeOwned>(text: &str) -> serde_json::Result<(T, usize)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    match values.next() {
        Some(value) => value.map(|value| (value, values.byte_offset())),
        // Blanks alone: what reads one value says so.
        None => serde_json::from_str(text).map(|value| (value, text.len())),
    }
}

/// Passes every object of a list to `items`, and returns the list's `resourceVersion`.
pub(super) async fn pages(
    client: &Client,
    path: &str,
    form: ListForm,
    mut parameters: ListParams,
    items: &mut dyn Items,
) -> Result<String, ListError> {
    let mut count = 0;
    loop {
        let ListMeta { resource_version, rest } =
            page(client, path, form, &parameters, &mut count, items).await?;
        if rest.is_empty() {
            return if resource_version.is_empty() {
                Err(ListError::NoVersion)
            } else {
                Ok(resource_version)
            };
        }
        parameters.continue_token = Some(rest);
    }
}

/// The `resourceVersion` that a list would have.
pub async fn version(client: &Client, path: &str) -> Result<String, ListError> {
    let one = ListParams::default().limit(1);
    let mut none = KindItems { each: |_: Result<IgnoredAny, Strange<'_>>| {}, read: LastItem::default() };
    let meta = page(client, path, ListForm::Metadata, &one, &mut 0, &mut none).await?;
    Ok(meta.resource_version)
}

async fn page(
    client: &Client,
    path: &str,
    form: ListForm,
    parameters: &ListParams,
    count: &mut usize,
    items: &mut dyn Items,
) -> Result<ListMeta, ListError> {
    let request = match form {
        ListForm::Whole => Request::new(path).list(parameters),
        ListForm::Metadata => Request::new(path).list_metadata(parameters),
    };
    let request = request.map_err(kube::Error::BuildRequest)?;
    ArrivingAnswer::new(client.request_stream(request).await?).page(count, items).await
}

/// An answer that is still arriving: a JSON object, parsed value by value.
struct ArrivingAnswer<R> {
    bytes: R,
    /// The text that has arrived; what stands from `at` on is not parsed yet.
    buffer: String,
    at: usize,
    /// The bytes of a character that has not arrived as a whole.
    cut: Vec<u8>,
    end: PageEnd,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum PageEnd {
    Ahead,
    Reached,
}

impl<R: AsyncBufRead + Unpin> ArrivingAnswer<R> {
    fn new(bytes: R) -> Self {
        Self { bytes, buffer: String::new(), at: 0, cut: Vec::new(), end: PageEnd::Ahead }
    }

    /// Reads one page to its end.
    async fn page(&mut self, count: &mut usize, items: &mut dyn Items) -> Result<ListMeta, ListError> {
        let mut meta = ListMeta::default();
        self.expect(b'{', "the beginning of an object").await?;
        loop {
            let name: String = self.value().await?.map_err(ShapeError::Unreadable)?;
            self.expect(b':', "a colon").await?;
            match name.as_str() {
                "metadata" => meta = self.value().await?.map_err(ShapeError::Unreadable)?,
                "items" if self.peek().await? == b'[' => self.items(count, items).await?,
                _ => {
                    let _: IgnoredAny = self.value().await?.map_err(ShapeError::Unreadable)?;
                }
            }
            match self.token().await? {
                b',' => {}
                b'}' => return Ok(meta),
                found => return Err(unexpected(found, "a comma or the end of the object")),
            }
        }
    }

    async fn items(&mut self, count: &mut usize, items: &mut dyn Items) -> Result<(), ListError> {
        self.expect(b'[', "the beginning of the items").await?;
        if self.peek().await? == b']' {
            self.at += 1;
            return Ok(());
        }
        loop {
            match items.read(&self.buffer[self.at..]) {
                Ok(end) if self.is_complete(end) => {
                    self.at += end;
                    items.keep();
                }
                Err(source) if !source.is_eof() => {
                    let at = *count;
                    let json: Box<RawValue> =
                        self.value().await?.map_err(|source| ListError::Object { at, source })?;
                    items.leave_out(Strange { at, source, json: json.get() });
                }
                _ => {
                    self.fill(STRIDE).await?;
                    continue;
                }
            }
            *count += 1;
            match self.token().await? {
                b',' => {}
                b']' => return Ok(()),
                found => return Err(unexpected(found, "a comma or the end of the items")),
            }
        }
    }

    /// The next value. One that reaches to the end of what has come may go on, and is read again when more has come.
    async fn value<T: DeserializeOwned>(&mut self) -> Result<serde_json::Result<T>, ListError> {
        loop {
            match first(&self.buffer[self.at..]) {
                Ok((value, end)) if self.is_complete(end) => {
                    self.at += end;
                    return Ok(Ok(value));
                }
                Err(error) if !error.is_eof() => return Ok(Err(error)),
                _ => self.fill(STRIDE).await?,
            }
        }
    }

    /// Whether a value that ends there, counted from where it begins, can't go on.
    fn is_complete(&self, end: usize) -> bool {
        self.at + end < self.buffer.len() || self.end == PageEnd::Reached
    }

    async fn expect(&mut self, token: u8, expected: &'static str) -> Result<(), ListError> {
        match self.token().await? {
            found if found == token => Ok(()),
            found => Err(unexpected(found, expected)),
        }
    }

    async fn token(&mut self) -> Result<u8, ListError> {
        let token = self.peek().await?;
        self.at += 1;
        Ok(token)
    }

    /// The next byte that is no white space; it stays to be read.
    async fn peek(&mut self) -> Result<u8, ListError> {
        loop {
            let rest = &self.buffer.as_bytes()[self.at..];
            let space = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.at += space;
            match self.buffer.as_bytes().get(self.at) {
                Some(byte) => return Ok(*byte),
                None => self.fill(1).await?,
            }
        }
    }

    /// Waits until at least so much more has come, or all; fails where nothing more will.
    async fn fill(&mut self, least: usize) -> Result<(), ListError> {
        if self.end == PageEnd::Reached {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        self.buffer.drain(..std::mem::take(&mut self.at));
        let enough = self.buffer.len() + least.max(self.buffer.len());
        while self.buffer.len() < enough {
            let more = self.bytes.fill_buf().await?;
            let count = more.len();
            if count == 0 {
                self.end = PageEnd::Reached;
                return Ok(());
            }
            append(more, &mut self.buffer, &mut self.cut)?;
            self.bytes.consume_unpin(count);
        }
        Ok(())
    }
}

/// Appends what has arrived, as far as it is whole characters; `cut` is what is left over before, and afterwards.
fn append(more: &[u8], text: &mut String, cut: &mut Vec<u8>) -> std::io::Result<()> {
    let mut bytes = Cow::Borrowed(more);
    if !cut.is_empty() {
        cut.extend_from_slice(more);
        bytes = Cow::Owned(std::mem::take(cut));
    }
    let whole = match str::from_utf8(&bytes) {
        Ok(whole) => whole,
        Err(error) if error.error_len().is_none() => {
            let (whole, rest) = bytes.split_at(error.valid_up_to());
            cut.extend_from_slice(rest);
            str::from_utf8(whole).unwrap_or_default()
        }
        Err(error) => return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, error)),
    };
    text.push_str(whole);
    Ok(())
}

fn unexpected(found: u8, expected: &'static str) -> ListError {
    ShapeError::Unexpected { found: found.into(), expected }.into()
}

#[cfg(test)]
mod tests;
