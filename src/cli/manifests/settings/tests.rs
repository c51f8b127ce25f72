//! What of a file comes to stand in the objects.

use std::collections::BTreeMap;

use super::*;
use crate::cli::manifests::{ManifestsArgs, objects};

const RENAMED: &str = "\
# The site's own names.
schedulerName: gpu
adoptSchedulers: [default-scheduler, volcano, batch]
unmanagedPods: deny
scope: opt-out
dialects:
  hami:
    resourceCountName: nvidia.com/gpumem
    resourceMemoryName: example.com/memory
";

fn installed(text: &str) -> Vec<Value> {
    let (settings, notices) = InstallationSettings::parse(text.to_owned(), "berth.yaml").unwrap();
    assert!(notices.is_empty(), "{notices:?}");
    objects(&ManifestsArgs::default(), &settings).unwrap()
}

fn expressions(object: &Value) -> String {
    match object {
        Value::Object(fields) => {
            let own = fields.get("expression").and_then(Value::as_str).unwrap_or_default();
            let below: String = fields.values().map(expressions).collect();
            format!("{own}\n{below}")
        }
        Value::Array(items) => items.iter().map(expressions).collect(),
        _ => String::new(),
    }
}

#[test]
fn the_file_of_the_defaults_says_what_the_defaults_are() {
    let objects = objects(&ManifestsArgs::default(), &InstallationSettings::default()).unwrap();
    let kept = objects.iter().find_map(|object| object.pointer("/data/berth.yaml")?.as_str()).unwrap();
    assert_eq!(Config::parse(kept, "berth.yaml").unwrap().0, Config::default());
    assert_eq!(installed(kept), objects, "and changes nothing");
}

#[test]
fn the_config_map_holds_the_file_as_it_is() {
    let objects = installed(RENAMED);
    let kept = objects.iter().find_map(|object| object.pointer("/data/berth.yaml")).unwrap();
    assert_eq!(kept, RENAMED);
}

#[test]
fn names_are_exchanged_as_whole_words_and_all_at_once() {
    let all: String = installed(RENAMED).iter().map(expressions).collect();
    assert!(
        all.contains("name in ['nvidia.com/gpumem', 'example.com/memory', 'nvidia.com/gpumem-percentage',")
    );
    assert!(!all.contains("'nvidia.com/gpu'") && !all.contains("'berth'"), "{all}");
    assert!(all.contains("authorizer.group('berth.dev')"), "what only begins like a name is none");
    assert!(all.contains("object.spec.schedulerName == 'gpu'"));
}

#[test]
fn schedulers_of_shares_are_ours_the_known_and_the_adopted() {
    let all: String = installed(RENAMED).iter().map(expressions).collect();
    assert_eq!(all.matches("['gpu', 'hami-scheduler', 'volcano', 'batch']").count(), 2, "{all}");
}

#[test]
fn unmanaged_pods_are_the_action_of_their_policy() {
    for (word, action) in [("warn", "Warn"), ("deny", "Deny"), ("allow", "Audit")] {
        let objects = installed(&format!("unmanagedPods: {word}\n"));
        let binding = |object: &&Value| {
            object["kind"] == "ValidatingAdmissionPolicyBinding"
                && object["metadata"]["name"] == UNMANAGED_POLICY
        };
        let binding = objects.iter().find(binding).unwrap();
        assert_eq!(binding["spec"]["validationActions"], json!([action]));
    }
}

#[test]
fn the_protection_policies_warn_until_the_accounts_are_known_or_they_are_set_to_deny() {
    let cases = [
        ("", json!(["Warn", "Audit"])),
        ("protection: warn", json!(["Warn", "Audit"])),
        ("protection: deny", json!(["Deny"])),
    ];
    for (settings, actions) in cases {
        let objects = installed(settings);
        let binding = |name: &&str| {
            objects.iter().find(|object| {
                object["kind"] == "ValidatingAdmissionPolicyBinding" && object["metadata"]["name"] == *name
            })
        };
        let bound: Vec<_> = PROTECTION_POLICIES.iter().filter_map(binding).collect();
        assert_eq!(bound.len(), 2);
        assert!(bound.iter().all(|binding| binding["spec"]["validationActions"] == actions), "{settings}");
    }
    let account = || Account { namespace: "kube-system".to_owned(), name: "hami-device-plugin".to_owned() };
    for (text, actions) in [
        ("", json!(["Deny"])),
        ("protection: auto", json!(["Deny"])),
        ("protection: warn", json!(["Warn", "Audit"])),
    ] {
        let settings = InstallationSettings::parse(text.to_owned(), "berth.yaml").unwrap().0;
        let args = ManifestsArgs { agent: vec![account()], ..ManifestsArgs::default() };
        let objects = objects(&args, &settings).unwrap();
        let named = |object: &&Value| {
            object["kind"] == "ValidatingAdmissionPolicyBinding"
                && PROTECTION_POLICIES.iter().any(|name| object["metadata"]["name"] == *name)
        };
        let found: Vec<_> =
            objects.iter().filter(named).map(|one| &one["spec"]["validationActions"]).collect();
        assert_eq!(found, [&actions, &actions], "{text}: the accounts are known");
    }
}

#[test]
fn who_comes_in_unasked_is_every_namespace_but_ours_and_those_that_are_labelled() {
    let text = |objects: &[Value]| serde_json::to_string(objects).unwrap();
    let built_in = text(&installed(""));
    let asked = r#"{"key":"berth.dev/admission","operator":"In","values":["enabled"]}"#;
    let unasked = r#"{"key":"berth.dev/admission","operator":"NotIn","values":["ignore"]},{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["kube-system","berth-system"]}"#;
    let opt_out = text(&installed("scope: opt-out"));
    assert_eq!(built_in.matches(asked).count(), 6, "five webhooks and the backstop");
    assert_eq!((opt_out.matches(asked).count(), opt_out.matches(unasked).count()), (0, 6));
}

#[test]
fn the_files_write_no_literal_that_the_exchange_would_miss() {
    for object in installed("") {
        let text = expressions(&object);
        assert!(!text.contains(['"', '\\']) && text.matches('\'').count().is_multiple_of(2), "{text}");
    }
}

#[test]
fn no_condition_is_met_by_an_amount_of_0() {
    let all: String = installed("").iter().map(expressions).collect();
    let asking = all.matches("amounts.exists(name,").count();
    assert_eq!((asking, all.matches("&& amounts[name] != '0')").count()), (9, 9), "{all}");
    assert!(
        !all.contains("'nvidia.com/gpucores', 'nvidia.com/priority', 'hygon"),
        "a priority alone requests no share"
    );
}

#[test]
fn koordinators_names_are_no_shares_where_its_dialect_is_turned_off() {
    let policies = |text: &str| -> String {
        let all = installed(text);
        all.iter().filter(|object| object["kind"] == "ValidatingAdmissionPolicy").map(expressions).collect()
    };
    let asks = "name.startsWith('koordinator.sh/')";
    assert_eq!(policies("").matches(asks).count(), 2);
    assert_eq!(policies("dialects: {koordinator: {enabled: false}}").matches(asks).count(), 0);
}

#[test]
fn every_resource_that_is_served_is_asked_about() {
    let served =
        "dialects: {hami: {enable-ascend: true, amd: {}, hygon: {resourceCountName: a.example/dcu}}}";
    let whole = "dialects: {koordinator: {wholeCards: true}, hami: {resourceCountName: a.example/gpu}}";
    for text in ["", served, whole] {
        let (config, _) = Config::parse(text, "berth.yaml").unwrap();
        let all = installed(text);
        let webhooks = all.iter().filter(|object| object["kind"] == "MutatingWebhookConfiguration");
        let asked: String = webhooks.map(expressions).collect();
        let dialects = config.dialects();
        for dialect in dialects.iter() {
            let hints = dialect.hint_keys().into_iter().flat_map(HintKeys::all).map(str::to_owned);
            let resources = dialect.resources().into_iter().filter(|name| !dialect.qualifies(name));
            for name in resources.map(str::to_owned).chain(hints) {
                let named = asked.contains(&format!("'{name}'")) || name.starts_with("volcano.sh/vgpu-");
                assert!(named, "{name} with {text:?}");
            }
        }
    }
    let all: String = installed(served).iter().map(expressions).collect();
    assert!(!all.contains("'hygon.com/dcunum'") && all.contains("'amd.com/gpu'"), "{all}");
}

/// Values that a key may have by its schema: each of a choice, the ends of a range, and texts of several kinds.
fn values(schema: &Value) -> Vec<Value> {
    if let Some(words) = schema["enum"].as_array() {
        return words.clone();
    }
    let is = |kind: &str| {
        schema["type"] == kind || schema["type"].as_array().is_some_and(|kinds| kinds.contains(&json!(kind)))
    };
    let texts = ["other", "example.com/other", "5m", "Europe/Berlin"];
    match () {
        () if is("boolean") => vec![json!(true), json!(false)],
        () if is("integer") => vec![schema["minimum"].clone(), schema["maximum"].clone()],
        () if is("string") => texts.map(Value::from).to_vec(),
        () if is("array") => texts.map(|text| json!([text])).to_vec(),
        () => Vec::new(),
    }
}

/// Settings with one key each, for every key and value of the schema, by the key's path.
fn changes(schema: &Value, path: &str, found: &mut Vec<(String, Value)>) {
    let Some(keys) = schema["properties"].as_object() else {
        found.extend(values(schema).into_iter().map(|value| (path.to_owned(), value)));
        return;
    };
    for (key, schema) in keys {
        let (before, path) =
            (found.len(), if path.is_empty() { key.clone() } else { format!("{path}.{key}") });
        changes(schema, &path, found);
        for (_, value) in &mut found[before..] {
            *value = json!({key: value.take()});
        }
    }
}

const WITHOUT_GANGS: &str = "scheduling: {gangs: {enabled: false}}";

/// Settings of which the schema does not say enough to make them up, and those before them.
const LISTS: [(&str, &str, &str); 5] = [
    (
        "workloads",
        "{}",
        "workloads: [{apiGroup: example.com, kind: Run, templates: [{path: spec.template}]}]",
    ),
    (
        "revocable zones",
        WITHOUT_GANGS,
        "{scheduling: {gangs: {enabled: false}}, dialects: {volcano: {arguments: {tdm.revocable-zone.rz1: 10:00-21:00}}}}",
    ),
    ("iluvatars", "{}", "dialects: {hami: {enable-iluvatar: true}}"),
    ("vnpus", "{}", "dialects: {hami: {enable-ascend: true}}"),
    ("vendors of HAMi's that is off", "{}", "dialects: {hami: {enabled: false, cambricon: {enabled: true}}}"),
];

#[test]
fn every_key_by_which_what_is_installed_differs_is_named_when_it_changes() {
    let mut found = Vec::new();
    changes(&crate::config::schema(), "", &mut found);
    let texts = found.iter().map(|(key, value)| (key.as_str(), "{}", value.to_string()));
    let texts = texts.chain(LISTS.map(|(key, before, text)| (key, before, text.to_owned())));
    let installed = |text: &str| {
        let (settings, _) = InstallationSettings::parse(text.to_owned(), "berth.yaml").ok()?;
        let mut objects = objects(&ManifestsArgs::default(), &settings).unwrap();
        objects.retain(|object| object["kind"] != "ConfigMap");
        Some((settings.config, objects))
    };
    let before = BTreeMap::from(["{}", WITHOUT_GANGS].map(|text| (text, installed(text).unwrap())));
    let (mut differing, mut unnamed) = (BTreeSet::new(), BTreeSet::new());
    for (key, base, text) in texts {
        // A value that makes no sense beside the other defaults.
        let Some((config, objects)) = installed(&text) else { continue };
        let (config_before, objects_before) = &before[base];
        if objects == *objects_before {
            continue;
        }
        if config.installed_otherwise(config_before).is_empty() {
            unnamed.insert(key);
        }
        differing.insert(key);
    }
    assert!(unnamed.is_empty(), "Config::installed_otherwise does not name {unnamed:#?}");
    for switch in ["scheduling.gangs.enabled", "metrics.authentication", "revocable zones", "workloads"] {
        assert!(differing.contains(switch), "{switch} changes nothing: {differing:#?}");
    }
}
