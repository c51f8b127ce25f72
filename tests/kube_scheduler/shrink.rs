//! A smaller cluster with the same difference, which makes a failure easier to read.

use serde_json::Value;

use crate::kube_scheduler::{
    difference::{Difference, Way},
    plugins::Plugins,
    run::compare,
    world::Case,
};

/// How many places at most are tried to be left out.
const TRIES: usize = 400;

/// Fields without which nothing is left to compare.
const KEPT: &[&str] = &["apiVersion", "kind", "name", "namespace", "uid", "containers", "image"];

/// The cluster without whatever is not needed for the difference, and the difference that it has.
pub(crate) fn shrink(plugins: &mut Plugins, case: &Case, difference: &Difference) -> (Case, Difference) {
    let alone = (only(case, difference), difference.clone());
    let objects = (0..alone.0.items.len()).map(|at| vec![Step::Index(at)]).collect();
    let few = without(plugins, alone, objects);
    let fields = paths(&few.0.items);
    without(plugins, few, fields)
}

/// The same without those of the places that are not needed, the last ones first: what is taken away moves none that are still to come.
fn without(plugins: &mut Plugins, from: (Case, Difference), places: Vec<Vec<Step>>) -> (Case, Difference) {
    let mut best = from;
    for place in places.into_iter().rev().take(TRIES) {
        let mut smaller = best.0.clone();
        if !remove(&mut smaller.items, &place) {
            continue;
        }
        let Ok((_, found)) = compare(plugins, &smaller) else { continue };
        let same = |found: &Difference| {
            // A smaller cluster has other scores.
            let alike = found.way == Way::Score || found.reasons == best.1.reasons;
            (found.way, &found.by) == (best.1.way, &best.1.by) && alike
        };
        if let Some(found) = found.into_iter().find(same) {
            best = (smaller, found);
        }
    }
    best
}

/// The cluster with no waiting pod but the one of the difference.
fn only(case: &Case, difference: &Difference) -> Case {
    let mut case = case.clone();
    let others: Vec<_> = case.waiting.keys().filter(|pod| **pod != difference.pod).cloned().collect();
    case.items.retain(|item| {
        item["metadata"]["name"].as_str().is_none_or(|name| !others.iter().any(|other| other == name))
    });
    case.waiting.retain(|pod, _| *pod == difference.pod);
    case
}

/// One step into a value.
#[derive(Clone, Debug)]
enum Step {
    Key(String),
    Index(usize),
}

/// Every place inside the objects; a place comes after those that it holds.
fn paths(items: &[Value]) -> Vec<Vec<Step>> {
    let mut paths = Vec::new();
    for (at, item) in items.iter().enumerate() {
        fields(item, &vec![Step::Index(at)], &mut paths);
    }
    paths
}

fn fields(value: &Value, path: &Vec<Step>, paths: &mut Vec<Vec<Step>>) {
    let mut into = |step: Step, value: &Value| {
        let inner = [path.as_slice(), &[step]].concat();
        fields(value, &inner, paths);
        paths.push(inner);
    };
    match value {
        Value::Object(map) => {
            let fields = map.iter().filter(|(key, _)| !KEPT.contains(&key.as_str()));
            fields.for_each(|(key, value)| into(Step::Key(key.clone()), value));
        }
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(at, value)| into(Step::Index(at), value));
        }
        _ => {}
    }
}

/// Takes one place away; false where it went with another.
fn remove(items: &mut Vec<Value>, path: &[Step]) -> bool {
    let Some((Step::Index(first), rest)) = path.split_first() else { return false };
    let Some((last, between)) = rest.split_last() else {
        let is_there = *first < items.len();
        if is_there {
            items.remove(*first);
        }
        return is_there;
    };
    let mut holder = items.get_mut(*first);
    for step in between {
        holder = holder.and_then(|holder| match step {
            Step::Key(key) => holder.get_mut(key),
            Step::Index(at) => holder.get_mut(at),
        });
    }
    match (holder, last) {
        (Some(Value::Object(map)), Step::Key(key)) => map.shift_remove(key).is_some(),
        (Some(Value::Array(values)), Step::Index(at)) if *at < values.len() => {
            values.remove(*at);
            true
        }
        _ => false,
    }
}
