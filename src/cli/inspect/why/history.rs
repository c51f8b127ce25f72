//! Why a pod's attempts failed, from its condition and its Events; and the table of that.

use jiff::Timestamp;
use kube::Client;
use serde_json::Value;

use crate::{
    api::history::HistoryRow,
    cli::{
        documents::{Document, live},
        inspect::cluster::is_pod,
        output::{self, Detail, Shown},
        table::Table,
    },
    scheduling::queue::MOST_OUTCOMES,
};

/// The reason of an Event that tells why a pod found no place, and of the condition that does.
const FAILED: &str = "FailedScheduling";
const CONDITION: &str = "PodScheduled";

/// The Events about a pod of a live cluster that found no place. Where the caller may not list them, that is said.
pub(super) async fn events(client: &Client, namespace: &str, name: &str) -> Vec<Document> {
    let fields = format!("involvedObject.kind=Pod,involvedObject.name={name},reason={FAILED}");
    let path = format!("/api/v1/namespaces/{namespace}/events");
    let events = live::selected(client, &path, ("v1", "Event"), &fields).await;
    events.unwrap_or_else(|error| {
        output::remark(&format!("warning: {error:#}; they are left out"));
        Vec::new()
    })
}

/// The last outcomes, the latest first: those of Events, and that of the condition where no Event says the same.
pub(super) fn of_objects(
    (namespace, name): (&str, &str),
    objects: &[Document],
    events: &[Document],
) -> Vec<HistoryRow> {
    let mut rows: Vec<HistoryRow> = Vec::new();
    let is_of_pod = |event: &&Document| {
        let of = ["involvedObject", "regarding"].iter().find_map(|key| event.value.get(key));
        let says = |key: &str, wanted: &str| of.and_then(|of| of[key].as_str()) == Some(wanted);
        event.value["reason"] == FAILED
            && says("kind", "Pod")
            && says("namespace", namespace)
            && says("name", name)
    };
    for row in events.iter().filter(is_of_pod).filter_map(|event| of_event(&event.value)) {
        match rows.iter_mut().find(|known| known.message == row.message) {
            Some(known) => {
                known.first = known.first.min(row.first);
                known.last = known.last.max(row.last);
                known.count = known.count.saturating_add(row.count);
            }
            None => rows.push(row),
        }
    }
    let condition = objects
        .iter()
        .find(|document| is_pod(document, namespace, name))
        .and_then(|pod| of_condition(&pod.value));
    rows.extend(condition.filter(|row| rows.iter().all(|known| known.message != row.message)));
    rows.sort_by_key(|row| std::cmp::Reverse(row.last));
    rows.truncate(MOST_OUTCOMES);
    rows
}

/// An Event of either API: times and counts of `events.k8s.io` are in its series, and else those of the core API.
fn of_event(event: &Value) -> Option<HistoryRow> {
    let text =
        |keys: &[&str]| keys.iter().find_map(|key| event[key].as_str().filter(|text| !text.is_empty()));
    let time = |keys: &[&str]| text(keys)?.parse::<Timestamp>().ok();
    let series = &event["series"];
    let first = time(&["firstTimestamp", "deprecatedFirstTimestamp", "eventTime"])?;
    let last = series["lastObservedTime"].as_str().and_then(|time| time.parse().ok());
    let count = [&series["count"], &event["count"], &event["deprecatedCount"]];
    Some(HistoryRow {
        reasons: Vec::new(),
        message: text(&["message", "note"])?.to_owned(),
        first,
        last: last.or_else(|| time(&["lastTimestamp", "deprecatedLastTimestamp"])).unwrap_or(first),
        count: count
            .into_iter()
            .find_map(Value::as_u64)
            .map_or(1, |count| u32::try_from(count).unwrap_or(u32::MAX)),
    })
}

/// The condition of a pod that found no place.
fn of_condition(pod: &Value) -> Option<HistoryRow> {
    let mut conditions = pod.pointer("/status/conditions")?.as_array()?.iter();
    let condition = conditions.find(|one| one["type"] == CONDITION && one["status"] == "False")?;
    let at = condition["lastTransitionTime"].as_str()?.parse().ok()?;
    let message = condition["message"].as_str()?.to_owned();
    Some(HistoryRow { reasons: Vec::new(), message, first: at, last: at, count: 1 })
}

/// A line for each outcome: its reasons where they are known, and in a wide table its message.
pub(super) fn table(history: &[HistoryRow], detail: Detail) -> Shown {
    let mut table = Table::new(&["TRIES", "FIRST", "LAST", "WHY"]);
    for HistoryRow { reasons, message, first, last, count } in history {
        let is_short = detail == Detail::Usual && !reasons.is_empty();
        let why = if is_short { reasons.join(", ") } else { message.clone() };
        let [first, last] = [first, last].map(|at| output::second(*at).to_string());
        table.row([count.to_string(), first, last, why]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::documents::DocumentPlace;

    fn documents(objects: &[Value]) -> Vec<Document> {
        let place = DocumentPlace { file: "test".to_owned(), document: 1, item: None };
        objects.iter().map(|value| Document { value: value.clone(), place: place.clone() }).collect()
    }

    fn pod(message: &str) -> Value {
        json!({"kind": "Pod", "metadata": {"namespace": "team", "name": "p"}, "status": {"conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
            "lastTransitionTime": "2026-11-20T10:00:00Z",
        }]}})
    }

    fn of_core(name: &str, message: &str, last: &str, count: u32) -> Value {
        json!({"kind": "Event", "involvedObject": {"kind": "Pod", "namespace": "team", "name": name}, "reason": "FailedScheduling",
            "message": message, "eventTime": null, "firstTimestamp": "2026-11-20T09:00:00Z", "lastTimestamp": last, "count": count})
    }

    fn told(objects: &[Value], events: &[Value]) -> Vec<(String, String, String, u32)> {
        let rows = of_objects(("team", "p"), &documents(objects), &documents(events));
        let row = |row: HistoryRow| (row.message, row.first.to_string(), row.last.to_string(), row.count);
        rows.into_iter().map(row).collect()
    }

    fn row(message: &str, [first, last]: [&str; 2], count: u32) -> (String, String, String, u32) {
        let at = |hour: &str| format!("2026-11-20T{hour}:00:00Z");
        (message.to_owned(), at(first), at(last), count)
    }

    #[test]
    fn events_of_both_apis_are_outcomes_and_the_condition_is_one_where_no_event_says_the_same() {
        let series = json!({"kind": "Event", "regarding": {"kind": "Pod", "namespace": "team", "name": "p"}, "reason": "FailedScheduling",
            "note": "full", "eventTime": "2026-11-20T08:00:00.000000Z",
            "series": {"count": 4, "lastObservedTime": "2026-11-20T12:00:00.000000Z"}});
        let mut normal = of_core("p", "placed", "2026-11-20T13:00:00Z", 1);
        normal["reason"] = "Scheduled".into();
        let events = [
            of_core("p", "tainted", "2026-11-20T11:00:00Z", 2),
            series,
            of_core("p", "full", "2026-11-20T10:00:00Z", 3),
            of_core("another", "other", "2026-11-20T14:00:00Z", 1),
            normal,
        ];
        let full = row("full", ["08", "12"], 7);
        let tainted = row("tainted", ["09", "11"], 2);
        assert_eq!(told(&[pod("full")], &events), [full.clone(), tainted.clone()]);
        assert_eq!(told(&[pod("new")], &events), [full, tainted, row("new", ["10", "10"], 1)]);
        assert_eq!(told(&[pod("new")], &[]), [row("new", ["10", "10"], 1)]);
        assert_eq!(told(&[json!({"kind": "Pod", "metadata": {"namespace": "team", "name": "p"}})], &[]), []);
    }

    #[test]
    fn of_many_outcomes_the_last_are_told() {
        let events: Vec<_> = (0..60)
            .map(|minute| of_core("p", &minute.to_string(), &format!("2026-11-20T10:{minute:02}:00Z"), 1))
            .collect();
        let told = told(&[], &events);
        assert_eq!((told.len(), told[0].0.as_str(), told[9].0.as_str()), (10, "59", "50"));
    }
}
