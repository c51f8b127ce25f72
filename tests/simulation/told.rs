//! What users read: Events, and the conditions of pods. With `messages.details: own` none of them names a node, a card, or what is free of it.

use std::{collections::BTreeSet, sync::Arc};

use berth::scheduling::Details;
use berth_sandbox::Sandbox;
use serde_json::Value;

use crate::story::Story;

/// What the uuid of each card begins with, and how a message says what is free of one. A pod that can't be read is told of its own MiB.
const OF_CARDS: [&str; 4] = ["GPU-", " MiB on ", " MiB per card", " lacks "];

/// Texts that name what they must not.
pub(crate) fn leaks(sandbox: &Sandbox, story: &Story) -> Vec<String> {
    if story.details == Details::Full {
        return Vec::new();
    }
    let forbidden: Vec<&str> = story.nodes().iter().copied().chain(OF_CARDS).collect();
    let names = |text: &String| forbidden.iter().any(|word| text.contains(word));
    texts(sandbox).into_iter().filter(names).map(|text| format!("a user may read: {text}")).collect()
}

/// The reasons of all Events.
pub(crate) fn reasons(sandbox: &Sandbox) -> BTreeSet<String> {
    events(sandbox).iter().filter_map(|event| Some(event["reason"].as_str()?.to_owned())).collect()
}

fn texts(sandbox: &Sandbox) -> Vec<String> {
    let of_event =
        |event: &Arc<Value>| format!("{} {} {}", event["reason"], event["message"], event["related"]);
    let mut texts: Vec<String> = events(sandbox).iter().map(of_event).collect();
    for pod in sandbox.objects("pods") {
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        texts.extend(conditions.map(|condition| format!("{} {}", condition["type"], condition["message"])));
    }
    texts
}

/// Those about pods: an Event about a node stands where administrators look.
fn events(sandbox: &Sandbox) -> Vec<Arc<Value>> {
    let events = sandbox.objects("events");
    events.into_iter().filter(|event| event["involvedObject"]["kind"] == "Pod").collect()
}
