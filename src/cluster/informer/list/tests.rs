//! Lists cut into pieces anywhere, and answers that are no lists.

use std::collections::VecDeque;

use futures::{TryStreamExt as _, stream};
use serde_json::json;

use super::*;

#[derive(Debug, Deserialize, PartialEq)]
struct Thing {
    name: String,
    size: Option<f64>,
}

/// Reads a page whose bytes come in these pieces.
async fn read(pieces: impl IntoIterator<Item = &[u8]>) -> (Vec<Thing>, Result<ListMeta, ListError>) {
    let pieces: VecDeque<_> = pieces.into_iter().map(|piece| Ok(piece.to_vec())).collect();
    let mut answer = ArrivingAnswer::new(stream::iter(pieces).into_async_read());
    let (mut things, mut count) = (Vec::new(), 0);
    let meta = answer
        .page(
            &mut count,
            &mut KindItems {
                each: |thing: Result<Thing, Strange<'_>>| things.extend(thing),
                read: LastItem::default(),
            },
        )
        .await;
    assert!(count >= things.len());
    (things, meta)
}

async fn read_whole(text: &str) -> (Vec<Thing>, Result<ListMeta, ListError>) {
    read([text.as_bytes()]).await
}

fn thing(name: &str, size: Option<f64>) -> Thing {
    Thing { name: name.to_owned(), size }
}

#[tokio::test]
async fn a_list_reads_the_same_wherever_it_is_cut() {
    let list = json!({
        "kind": "ThingList", "apiVersion": "v1",
        "metadata": {"resourceVersion": "7", "continue": "ab==", "remainingItemCount": 3},
        "items": [{"name": "é\"}],{\\", "size": 1.5}, {"name": "b", "more": [[1, {"x": "]"}], null]}],
    });
    for text in [list.to_string(), serde_json::to_string_pretty(&list).unwrap()] {
        for first in 0..text.len() {
            for second in [first, first + 1, first + 17] {
                let second = second.min(text.len());
                let bytes = text.as_bytes();
                let (things, meta) = read([&bytes[..first], &bytes[first..second], &bytes[second..]]).await;
                assert_eq!(things, [thing("é\"}],{\\", Some(1.5)), thing("b", None)]);
                let meta = meta.unwrap();
                assert_eq!((meta.resource_version.as_str(), meta.rest.as_str()), ("7", "ab=="));
            }
        }
        let (things, _) = read(text.as_bytes().chunks(1)).await;
        assert_eq!(things.len(), 2);
    }
}

#[tokio::test]
async fn a_list_longer_than_what_is_read_at_once_is_read_whole() {
    let things: Vec<_> = (0..5_000).map(|at| json!({"name": format!("thing-{at}").repeat(9)})).collect();
    let text = json!({"items": things, "metadata": {"resourceVersion": "9"}}).to_string();
    assert!(text.len() > 4 * STRIDE);
    let (read, meta) = read(text.as_bytes().chunks(4096)).await;
    assert_eq!((read.len(), meta.unwrap().resource_version.as_str()), (5_000, "9"));
    assert!(read[4_999].name.ends_with("thing-4999"));
}

#[tokio::test]
async fn an_empty_list_has_no_items() {
    for items in [r#""items":[]"#, r#""items": [ ]"#, r#""items":null"#, r#""kind":"L""#] {
        let (things, meta) =
            read_whole(&format!(r#"{{"metadata":{{"resourceVersion":"3"}},{items}}}"#)).await;
        assert_eq!((things.len(), meta.unwrap().resource_version.as_str()), (0, "3"), "{items}");
    }
}

#[tokio::test]
async fn what_is_no_list_is_refused_with_the_place() {
    let cases = [
        (r"[]", "the answer is no list: '[' stands where the beginning of an object should"),
        (r#"{"items" []}"#, "the answer is no list: '[' stands where a colon should"),
        (
            r#"{"items":[{"name":"a"} {"name":"b"}]}"#,
            "'{' stands where a comma or the end of the items should",
        ),
        (r#"{"items":[{"name":"a"},{"name":1]}"#, "object 1 of the list can't be read: expected `,` or `}`"),
        (r#"{"metadata":7}"#, "the answer is no list: invalid type"),
        (r#"{"items":[{"name":"a"}"#, "the list ended early: unexpected end of file"),
        (r#"{"items":[{"name":"a"#, "the list ended early: unexpected end of file"),
        ("", "the list ended early: unexpected end of file"),
    ];
    for (text, expected) in cases {
        let (_, meta) = read_whole(text).await;
        let error = meta.unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[tokio::test]
async fn an_object_that_is_not_of_the_kind_costs_no_other_object_wherever_the_list_is_cut() {
    let deep = format!("{}{}", "[".repeat(2000), "]".repeat(2000));
    let strange = [r#"{"name":7,"size":"x"}"#.to_owned(), format!(r#"{{"name":{deep}}}"#), "null".to_owned()];
    let text = format!(
        r#"{{"items":[{{"name":"a"}},{},{{"name":"é€𝄞"}}],"metadata":{{"resourceVersion":"3"}}}}"#,
        strange.join(",")
    );
    for size in [1, 7, 100, text.len()] {
        let pieces: VecDeque<_> = text.as_bytes().chunks(size).map(|piece| Ok(piece.to_vec())).collect();
        let mut answer = ArrivingAnswer::new(stream::iter(pieces).into_async_read());
        let (mut things, mut others, mut count) = (Vec::new(), Vec::new(), 0);
        let mut each = |thing: Result<Thing, Strange<'_>>| match thing {
            Ok(thing) => things.push(thing.name),
            Err(Strange { at, json, .. }) => others.push((at, json.to_owned())),
        };
        answer.page(&mut count, &mut KindItems { each: &mut each, read: LastItem::default() }).await.unwrap();
        assert_eq!((things, count), (vec!["a".to_owned(), "é€𝄞".to_owned()], 5));
        assert_eq!(others, (1..).zip(strange.clone()).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_list_that_is_no_text_ends_with_an_error() {
    let pieces = [Ok(b"{\"items\":[{\"name\":\"a\"},{\"name\":\"\xff\"}".to_vec())];
    let mut answer = ArrivingAnswer::new(stream::iter(pieces).into_async_read());
    let error = answer
        .page(&mut 0, &mut KindItems { each: |_: Result<Thing, Strange<'_>>| {}, read: LastItem::default() })
        .await
        .unwrap_err();
    assert!(error.to_string().starts_with("the list ended early: invalid utf-8"), "{error}");
}

#[tokio::test]
async fn a_connection_that_breaks_is_told_from_a_list_that_ends() {
    let broken = std::io::Error::other("connection reset");
    let pieces = [Ok(br#"{"items":[{"name":"a"},"#.to_vec()), Err(broken)];
    let mut answer = ArrivingAnswer::new(stream::iter(pieces).into_async_read());
    let mut things: Vec<Thing> = Vec::new();
    let error = answer
        .page(
            &mut 0,
            &mut KindItems {
                each: |thing: Result<Thing, Strange<'_>>| things.extend(thing),
                read: LastItem::default(),
            },
        )
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "the list ended early: connection reset");
    assert_eq!(things, [thing("a", None)]);
}

#[test]
fn what_the_api_server_says_is_passed_on_and_no_more() {
    let status = kube::core::Status::failure("pods is forbidden", "Forbidden").with_code(403);
    let error = ListError::from(kube::Error::Api(status.boxed()));
    assert_eq!(error.to_string(), "pods is forbidden (HTTP status 403)");
}
