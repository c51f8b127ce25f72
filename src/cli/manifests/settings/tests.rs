//! What of a file comes to stand in the objects.

use super::{
    super::{ManifestsArgs, objects},
    *,
};

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
    assert_eq!((asking, all.matches("&& amounts[name] != '0')").count()), (8, 8), "{all}");
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
