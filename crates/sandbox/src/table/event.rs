//! What an Event's row says (kubernetes v1.36 `pkg/printers/internalversion/printers.go`, `printEvent`).

use super::{Kind, age, column, wide};
use crate::object;
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) const KIND: Kind = Kind {
    columns: &[
        column("Last Seen"),
        column("Type"),
        column("Reason"),
        column("Object"),
        wide("Subobject"),
        wide("Source"),
        column("Message"),
        wide("First Seen"),
        wide("Count"),
        wide("Name"),
    ],
    cells,
};

fn cells(event: &Value, now: Timestamp) -> Vec<Value> {
    let text = |path: &str| object::text(event, path);
    let first = or_event_time(event, "/firstTimestamp");
    let last = event.pointer("/series/lastObservedTime").and_then(Value::as_str);
    let last = last.unwrap_or_else(|| match text("/lastTimestamp") {
        "" => first,
        last => last,
    });
    let count = event.pointer("/series/count").or_else(|| event.get("count")).and_then(Value::as_i64);
    vec![
        json!(age::since(last, now)),
        json!(text("/type")),
        json!(text("/reason")),
        json!(about(event)),
        json!(text("/involvedObject/fieldPath")),
        json!(source(event)),
        json!(text("/message").trim()),
        json!(age::since(first, now)),
        json!(count.filter(|count| *count > 0).unwrap_or(1).to_string()),
        json!(object::name(event)),
    ]
}

fn or_event_time<'a>(event: &'a Value, path: &str) -> &'a str {
    match object::text(event, path) {
        "" => object::text(event, "/eventTime"),
        time => time,
    }
}

fn about(event: &Value) -> String {
    let kind = object::text(event, "/involvedObject/kind").to_lowercase();
    match object::text(event, "/involvedObject/name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

/// The component, and its host or instance.
fn source(event: &Value) -> String {
    let first = |paths: [&str; 2]| {
        let mut texts = paths.into_iter().map(|path| object::text(event, path));
        texts.find(|text| !text.is_empty()).unwrap_or_default().to_owned()
    };
    let component = first(["/source/component", "/reportingComponent"]);
    let place = first(["/source/host", "/reportingInstance"]);
    if place.is_empty() { component } else { format!("{component}, {place}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(event: &Value) -> Vec<String> {
        let now = "2026-11-22T10:00:00Z".parse().unwrap();
        cells(event, now).iter().map(|cell| cell.as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn an_event_is_printed_by_its_newest_sighting() {
        let event = json!({
            "metadata": {"name": "p.1"}, "type": "Normal", "reason": "Scheduled", "message": " assigned\n",
            "involvedObject": {"kind": "Pod", "name": "p"}, "eventTime": "2026-11-22T09:58:00.000000Z",
            "reportingComponent": "berth", "reportingInstance": "berth-0",
            "series": {"count": 3, "lastObservedTime": "2026-11-22T09:59:30.000000Z"},
        });
        let expected =
            ["30s", "Normal", "Scheduled", "pod/p", "", "berth, berth-0", "assigned", "2m", "3", "p.1"];
        let mut row = row(&event);
        row[7] = row[7].replace("2m0s", "2m");
        assert_eq!(row, expected);
    }

    #[test]
    fn an_event_of_the_old_form_is_printed_by_its_last_timestamp() {
        let event = json!({
            "metadata": {"name": "n.1"}, "type": "Warning", "reason": "Gone", "message": "m", "count": 2,
            "involvedObject": {"kind": "Node", "name": "n", "fieldPath": "spec"},
            "firstTimestamp": "2026-11-22T09:00:00Z", "lastTimestamp": "2026-11-22T09:59:00Z",
            "source": {"component": "kubelet", "host": "n"},
        });
        assert_eq!(
            row(&event),
            ["60s", "Warning", "Gone", "node/n", "spec", "kubelet, n", "m", "60m", "2", "n.1"]
        );
    }
}
