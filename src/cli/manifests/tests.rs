//! What the flags change in what is printed.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    args: ManifestsArgs,
}

fn args(flags: &[&str]) -> ManifestsArgs {
    Program::try_parse_from([&["manifests"], flags].concat()).unwrap().args
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

#[test]
fn every_document_names_itself() {
    let objects = objects(&args(&[])).unwrap();
    assert_eq!(objects.len(), 26);
    for object in &objects {
        for name in ["/apiVersion", "/kind", "/metadata/name"] {
            let text = object.pointer(name).and_then(Value::as_str).unwrap_or_default();
            assert!(!text.is_empty(), "{name} of {object}");
        }
    }
}

#[test]
fn the_whole_file_set_is_embedded() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/webhook-config");
    let mut found: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| std::path::Path::new(name).extension().is_some_and(|end| end == "yaml"))
        .collect();
    found.sort();
    assert_eq!(found, FILES.map(|(name, _)| name));
}

#[test]
fn the_namespace_is_replaced_everywhere() {
    let objects = objects(&args(&["--namespace", "gpu"])).unwrap();
    let text = serde_json::to_string(&objects).unwrap();
    assert!(!text.contains(NAMESPACE));
    for webhook in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        let configuration = of_kind(&objects, webhook)[0];
        for webhook in configuration["webhooks"].as_array().unwrap() {
            assert_eq!(webhook["clientConfig"]["service"]["namespace"], "gpu");
            let excluded = &webhook["namespaceSelector"]["matchExpressions"][1];
            assert_eq!(excluded["values"], json!(["kube-system", "gpu"]));
        }
    }
    assert_eq!(of_kind(&objects, "Namespace")[0]["metadata"]["name"], "gpu");
}

#[test]
fn image_and_replicas_go_to_the_deployment() {
    let objects = objects(&args(&["--image", "example.com/berth:9", "--replicas", "3"])).unwrap();
    let deployment = of_kind(&objects, "Deployment")[0];
    assert_eq!(deployment["spec"]["replicas"], 3);
    assert_eq!(deployment.pointer("/spec/template/spec/containers/0/image").unwrap(), "example.com/berth:9");
}

#[test]
fn a_url_takes_the_place_of_the_service() {
    let objects = objects(&args(&["--webhook-url", "https://127.0.0.1:8443/"])).unwrap();
    let mutating = of_kind(&objects, "MutatingWebhookConfiguration")[0];
    assert_eq!(mutating["webhooks"][0]["clientConfig"], json!({"url": "https://127.0.0.1:8443/mutate"}));
    let validating = of_kind(&objects, "ValidatingWebhookConfiguration")[0];
    assert_eq!(validating["webhooks"][0]["clientConfig"], json!({"url": "https://127.0.0.1:8443/validate"}));
}

#[test]
fn a_url_that_the_api_server_would_refuse_is_refused() {
    for url in ["http://example.com", "https://user@example.com", "https://example.com/?a", "example.com"] {
        assert!(https(url).is_err(), "{url}");
    }
}

#[test]
fn what_is_printed_reads_back_the_same() {
    let flags = ["--namespace", "gpu", "--replicas", "4"];
    let expected = objects(&args(&flags)).unwrap();
    let printed = run(&args(&flags)).unwrap();
    let read: Vec<Value> = serde_saphyr::from_multiple(&printed).unwrap();
    assert_eq!(read, expected);
    let json: Value =
        serde_json::from_str(&run(&args(&[&flags[..], &["-o", "json"]].concat())).unwrap()).unwrap();
    assert_eq!(json["items"], Value::Array(expected));
}

#[test]
fn typed_readers_take_every_webhook_and_workload() {
    use k8s_openapi::api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        apps::v1::Deployment,
    };
    let objects = objects(&args(&[])).unwrap();
    let one = |kind| of_kind(&objects, kind)[0].clone();
    let mutating: MutatingWebhookConfiguration =
        serde_json::from_value(one("MutatingWebhookConfiguration")).unwrap();
    let mutating = &mutating.webhooks.unwrap()[0];
    assert_eq!(mutating.failure_policy.as_deref(), Some("Fail"));
    assert_eq!(mutating.reinvocation_policy.as_deref(), Some("IfNeeded"));
    let validating: ValidatingWebhookConfiguration =
        serde_json::from_value(one("ValidatingWebhookConfiguration")).unwrap();
    let validating = &validating.webhooks.unwrap()[0];
    assert_eq!(validating.object_selector, None, "protection has no opt-out");
    assert_eq!(validating.match_conditions, mutating.match_conditions);
    let deployment: Deployment = serde_json::from_value(one("Deployment")).unwrap();
    let pod = deployment.spec.unwrap().template.spec.unwrap();
    assert_eq!(pod.security_context.unwrap().run_as_non_root, Some(true));
}

#[test]
fn unmanaged_pods_are_set_in_policy_and_settings_alike() {
    for (word, action) in [("warn", "Warn"), ("deny", "Deny"), ("allow", "Audit")] {
        let objects = objects(&args(&["--unmanaged-pods", word])).unwrap();
        let bindings = of_kind(&objects, "ValidatingAdmissionPolicyBinding");
        let binding =
            bindings.iter().find(|binding| binding["metadata"]["name"] == UNMANAGED_POLICY).unwrap();
        assert_eq!(binding["spec"]["validationActions"], json!([action]));
        let settings =
            of_kind(&objects, "ConfigMap")[0].pointer("/data/berth.yaml").unwrap().as_str().unwrap();
        assert!(settings.contains(&format!("unmanagedPods: {word}\n")), "{settings}");
    }
}

#[test]
fn every_webhook_but_the_one_that_only_warns_fails_closed() {
    let objects = objects(&args(&[])).unwrap();
    let webhooks = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
        .into_iter()
        .flat_map(|kind| of_kind(&objects, kind)[0]["webhooks"].as_array().unwrap().clone());
    for webhook in webhooks {
        let only_warns = webhook["name"] == "workload.berth.dev";
        assert_eq!(
            webhook["failurePolicy"],
            if only_warns { "Ignore" } else { "Fail" },
            "{}",
            webhook["name"]
        );
        assert_eq!(webhook["sideEffects"], "None");
    }
}
