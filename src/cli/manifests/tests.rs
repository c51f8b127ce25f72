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

fn objects(args: &ManifestsArgs) -> Result<Vec<Value>, ManifestsError> {
    super::objects(args, &InstallationSettings::default())
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

#[test]
fn every_document_names_itself() {
    let objects = objects(&args(&[])).unwrap();
    assert_eq!(objects.len(), 34);
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
fn what_is_printed_is_what_the_files_hold() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("webhook-config");
    let read = |(name, _): (&str, &str)| -> Vec<Value> {
        serde_saphyr::from_multiple(&std::fs::read_to_string(folder.join(name)).unwrap()).unwrap()
    };
    let files: Vec<Value> = FILES.into_iter().flat_map(read).collect();
    assert_eq!(objects(&args(&[])).unwrap(), files);
}

#[test]
fn every_key_that_rules_read_is_among_those_whose_change_is_judged() {
    let objects = objects(&args(&[])).unwrap();
    let update = &of_kind(&objects, "ValidatingWebhookConfiguration")[0]["webhooks"][1];
    assert_eq!(update["name"], "update.berth.dev");
    let mut conditions = update["matchConditions"].as_array().unwrap().iter();
    let changes = conditions.find(|condition| condition["name"] == "changes-what-rules-read").unwrap();
    let changes = changes["expression"].as_str().unwrap();
    for key in crate::admission::hint_keys::KNOWN {
        assert!(changes.contains(&format!("'{key}'")), "{key}");
    }
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
    let printed = run(&args(&flags), None).unwrap().0;
    let read: Vec<Value> = serde_saphyr::from_multiple(&printed).unwrap();
    assert_eq!(read, expected);
    let json: Value =
        serde_json::from_str(&run(&args(&[&flags[..], &["-o", "json"]].concat()), None).unwrap().0).unwrap();
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
    let pod = deployment.spec.template.spec.unwrap();
    assert_eq!(pod.security_context.unwrap().run_as_non_root, Some(true));
}

#[test]
fn every_webhook_but_those_that_deny_no_pod_fails_closed() {
    let objects = objects(&args(&[])).unwrap();
    let webhooks = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
        .into_iter()
        .flat_map(|kind| of_kind(&objects, kind)[0]["webhooks"].as_array().unwrap().clone());
    for webhook in webhooks {
        let denies_none = ["adopt.berth.dev", "workload.berth.dev", "custom-workload.berth.dev"]
            .contains(&webhook["name"].as_str().unwrap());
        assert_eq!(
            webhook["failurePolicy"],
            if denies_none { "Ignore" } else { "Fail" },
            "{}",
            webhook["name"]
        );
        assert_eq!(webhook["sideEffects"], "None");
    }
}

/// A webhook is called after those before it in the list: a pod that the one for shares has given to Berth is not asked about again.
#[test]
fn pods_without_a_share_are_asked_about_after_those_with_one_and_in_labelled_namespaces_alone() {
    let names = |flags: &[&str]| -> Vec<Value> {
        let objects = objects(&args(flags)).unwrap();
        let webhooks =
            of_kind(&objects, "MutatingWebhookConfiguration")[0]["webhooks"].as_array().unwrap().clone();
        webhooks.into_iter().map(|webhook| webhook["name"].clone()).collect()
    };
    assert_eq!(names(&[]), ["mutate.berth.dev", "adopt.berth.dev"]);
    assert_eq!(names(&["--extender"]), ["mutate.berth.dev"], "kube-scheduler binds the others");
    for settings in ["", "scope: opt-out"] {
        let (settings, _) = InstallationSettings::parse(settings.to_owned(), "berth.yaml").unwrap();
        let objects = super::objects(&args(&["--namespace", "gpu"]), &settings).unwrap();
        let webhook = &of_kind(&objects, "MutatingWebhookConfiguration")[0]["webhooks"][1];
        let selector = json!({"matchExpressions": [
            {"key": "berth.dev/pods", "operator": "In", "values": ["all"]},
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "gpu"]},
        ]});
        assert_eq!(webhook["namespaceSelector"], selector);
        assert_eq!(webhook["clientConfig"]["service"]["path"], "/adopt");
    }
}

#[test]
fn the_webhooks_of_workloads_are_asked_about_every_kind_that_is_known() {
    let settings = InstallationSettings::parse(
        "workloads: [{apiGroup: example.com, kind: Run, templates: [{path: spec.template}]}]".to_owned(),
        "berth.yaml",
    );
    let settings = settings.unwrap().0;
    let objects = super::objects(&args(&[]), &settings).unwrap();
    let webhooks = of_kind(&objects, "ValidatingWebhookConfiguration")[0]["webhooks"].as_array().unwrap();
    let of_workloads = webhooks.iter().filter(|webhook| webhook["failurePolicy"] == "Ignore");
    let rules = of_workloads.flat_map(|webhook| webhook["rules"].as_array().unwrap());
    let mut asked: Vec<(String, String)> = rules
        .flat_map(|rule| {
            let group = rule["apiGroups"][0].as_str().unwrap().to_owned();
            let resources = rule["resources"].as_array().unwrap();
            resources.iter().map(move |resource| (group.clone(), resource.as_str().unwrap().to_owned()))
        })
        .collect();
    // PodTemplates make no pods, and what belongs to no namespace is in none that is opted in.
    let not_asked = ["podtemplates", "clustertrainingruntimes"];
    let workloads = settings.config().workloads();
    let known = workloads.kinds().filter(|kind| !not_asked.contains(&kind.plural.as_str()));
    let mut known: Vec<_> = known.map(|kind| (kind.group.clone(), kind.plural.clone())).collect();
    asked.sort();
    known.sort();
    assert_eq!(asked, known);
}

#[test]
fn two_halves_have_an_identity_each_and_share_no_right() {
    let objects = objects(&args(&["--split", "--namespace", "gpu"])).unwrap();
    let names = |kind| -> Vec<&str> {
        of_kind(&objects, kind).iter().map(|object| object["metadata"]["name"].as_str().unwrap()).collect()
    };
    for kind in ["ServiceAccount", "Deployment", "PodDisruptionBudget"] {
        assert_eq!(names(kind), ["berth-webhook", "berth-binder"], "{kind}");
    }
    for (at, flag) in ["--webhook-only", "--scheduler-only"].into_iter().enumerate() {
        let deployment = of_kind(&objects, "Deployment")[at];
        let (name, pod) = (&deployment["metadata"]["name"], &deployment["spec"]["template"]);
        assert_eq!(&pod["spec"]["serviceAccountName"], name);
        assert!(pod["spec"]["containers"][0]["args"].as_array().unwrap().contains(&json!(flag)));
        assert_eq!(deployment["spec"]["selector"]["matchLabels"], pod["metadata"]["labels"]);
        let budget = of_kind(&objects, "PodDisruptionBudget")[at];
        assert_eq!(budget["spec"]["selector"]["matchLabels"], pod["metadata"]["labels"]);
    }
    let webhooks = &of_kind(&objects, "Deployment")[0]["spec"]["template"]["metadata"]["labels"];
    let services = of_kind(&objects, "Service");
    assert_eq!(&services[0]["spec"]["selector"], webhooks);
    let binders = &of_kind(&objects, "Deployment")[1]["spec"]["template"]["metadata"]["labels"];
    assert_eq!(
        (&services[1]["metadata"]["name"], &services[1]["spec"]["selector"]),
        (&json!("berth-api"), binders)
    );
    for kind in ["ClusterRoleBinding", "RoleBinding"] {
        for binding in of_kind(&objects, kind) {
            let subject = &binding["subjects"][0];
            let webhooks = binding["roleRef"]["name"] == "berth:webhook";
            let expected = if webhooks { "berth-webhook" } else { "berth-binder" };
            assert_eq!((&subject["name"], &subject["namespace"]), (&json!(expected), &json!("gpu")));
        }
    }
    for schema in of_kind(&objects, "FlowSchema") {
        let account = &schema["spec"]["rules"][0]["subjects"][0]["serviceAccount"];
        assert_eq!(account, &json!({"name": "berth-binder", "namespace": "gpu"}));
    }
}

#[test]
fn cert_manager_makes_publishes_and_mounts_the_certificate() {
    let printed = objects(&args(&["--cert-manager", "--namespace", "gpu"])).unwrap();
    assert_eq!(printed[0]["kind"], "Namespace", "what stands in it comes after");
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        let annotations = &of_kind(&printed, kind)[0]["metadata"]["annotations"];
        assert_eq!(annotations, &json!({"cert-manager.io/inject-ca-from": "gpu/berth-webhook"}));
    }
    let certificates = of_kind(&printed, "Certificate");
    let served = certificates.iter().find(|object| object["metadata"]["name"] == "berth-webhook").unwrap();
    assert_eq!(served["metadata"]["namespace"], "gpu");
    let names: Vec<_> =
        served["spec"]["dnsNames"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let serving = crate::webhook::certificate::mint::ServingNames {
        service: "berth".to_owned(),
        namespace: "gpu".to_owned(),
        extra: Vec::new(),
    };
    assert_eq!(names, serving.all());
    let pod = &of_kind(&printed, "Deployment")[0]["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert!(container["args"].as_array().unwrap().contains(&json!("/etc/berth-tls/tls.crt")));
    assert_eq!(container["volumeMounts"][1]["mountPath"], "/etc/berth-tls");
    assert_eq!(pod["volumes"][1]["secret"]["secretName"], served["spec"]["secretName"]);
    let text = serde_json::to_string(&printed).unwrap();
    assert!(!text.contains("resourceNames\":[\"berth-webhook-tls"), "the server touches no Secret");

    let split = objects(&args(&["--cert-manager", "--split"])).unwrap();
    let mounts = |at: usize| of_kind(&split, "Deployment")[at]["spec"]["template"]["spec"]["volumes"].clone();
    assert_eq!((mounts(0).as_array().unwrap().len(), mounts(1).as_array().unwrap().len()), (2, 1));
}

/// `berth serve --namespace` reads it: Secret, Lease and serving names are of the namespace that was installed into.
#[test]
fn the_server_is_told_its_namespace() {
    let objects = objects(&args(&["--namespace", "gpu"])).unwrap();
    let container = &of_kind(&objects, "Deployment")[0]["spec"]["template"]["spec"]["containers"][0];
    let from =
        |name: &str, field: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}});
    let told = json!([
        from("POD_NAMESPACE", "metadata.namespace"),
        from("POD_NAME", "metadata.name"),
        from("POD_UID", "metadata.uid"),
    ]);
    assert_eq!(container["env"], told);
}

#[test]
fn the_priority_class_of_the_pods_is_there() {
    let objects = objects(&args(&[])).unwrap();
    let class = of_kind(&objects, "PriorityClass")[0];
    let pod = &of_kind(&objects, "Deployment")[0]["spec"]["template"]["spec"];
    assert_eq!(pod["priorityClassName"], class["metadata"]["name"]);
}

#[test]
fn a_namespace_that_may_be_there_already_gets_no_labels() {
    let of = |name: &str| {
        let objects = objects(&args(&["--namespace", name])).unwrap();
        of_kind(&objects, "Namespace").into_iter().cloned().collect::<Vec<_>>()
    };
    assert_eq!(of(NAMESPACE)[0]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
    let bare = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu"}});
    assert_eq!(of("gpu"), [bare]);
    for name in ["default", "kube-system", "kube-public"] {
        assert_eq!(of(name), Vec::<Value>::new(), "{name}");
    }
}

/// The users that the policies let write assignments by name.
fn named_agents(objects: &[Value]) -> Vec<&str> {
    let policies = of_kind(objects, "ValidatingAdmissionPolicy");
    let variables =
        policies.into_iter().filter_map(|policy| policy["spec"]["variables"].as_array()).flatten();
    let agents = variables.filter(|variable| variable["name"] == "agents");
    agents.map(|agents| agents["expression"].as_str().unwrap()).collect()
}

#[test]
fn each_agent_is_bound_to_the_role_of_writers() {
    let flags = ["--agent", "kube-system/hami-device-plugin", "--agent", "kube-system/hami-scheduler"];
    let objects = objects(&args(&flags)).unwrap();
    let bindings = of_kind(&objects, "ClusterRoleBinding");
    let bound: Vec<_> = bindings
        .into_iter()
        .filter(|binding| binding["roleRef"]["name"] == "berth:assignment-writer")
        .map(|binding| (&binding["subjects"][0]["namespace"], &binding["subjects"][0]["name"]))
        .collect();
    let expected =
        [("berth-system", "berth"), ("kube-system", "hami-device-plugin"), ("kube-system", "hami-scheduler")];
    assert_eq!(bound.len(), expected.len());
    for ((namespace, name), (wanted_namespace, wanted_name)) in bound.into_iter().zip(expected) {
        assert_eq!((namespace, name), (&json!(wanted_namespace), &json!(wanted_name)));
    }
    let named = "['system:serviceaccount:kube-system:hami-device-plugin', 'system:serviceaccount:kube-system:hami-scheduler']";
    assert_eq!(named_agents(&objects), [named; 2], "a policy may come into force before a binding");
    let unnamed = self::objects(&args(&[])).unwrap();
    assert_eq!(named_agents(&unnamed), ["[]"; 2]);
    for wrong in
        ["hami-device-plugin", "kube-system/", "/name", "Kube/name", "kube-system/a/b", "kube-system/-a"]
    {
        assert!(Program::try_parse_from(["manifests", "--agent", wrong]).is_err(), "{wrong}");
    }
}

#[test]
fn the_right_to_delete_pods_is_left_out_where_none_is_preempted() {
    let deletes = |file: &str| {
        let (settings, _) = InstallationSettings::parse(file.to_owned(), "berth.yaml").unwrap();
        let objects = super::objects(&args(&[]), &settings).unwrap();
        let rules = objects.iter().filter_map(|object| object["rules"].as_array()).flatten().cloned();
        rules.filter(|rule| rule["verbs"] == json!(["delete"])).collect::<Vec<_>>()
    };
    assert_eq!(deletes(""), [json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]})]);
    assert_eq!(deletes("scheduling: {preemption: {enabled: false}}"), Vec::<Value>::new());
}

#[test]
fn the_right_to_evict_pods_is_left_out_where_neither_gangs_nor_zones_need_it() {
    let evicts = |file: &str| {
        let (settings, _) = InstallationSettings::parse(file.to_owned(), "berth.yaml").unwrap();
        let objects = super::objects(&args(&[]), &settings).unwrap();
        let mut rules = objects.iter().filter_map(|object| object["rules"].as_array()).flatten();
        rules.any(|rule| rule["resources"] == json!(["pods/eviction"]))
    };
    let zone = "dialects: {volcano: {arguments: {tdm.revocable-zone.rz1: \"1:00-4:00\"}}}";
    let no_gangs = "scheduling: {gangs: {enabled: false}}";
    assert!(evicts("") && evicts(&format!("{no_gangs}\n{zone}")));
    assert!(!evicts(no_gangs));
    let no_volcano = zone.replace("{arguments", "{enabled: false, arguments");
    assert!(!evicts(&format!("{no_gangs}\n{no_volcano}")), "{no_volcano}");
}

#[test]
fn no_right_on_claims_is_granted_where_they_are_off() {
    let on_claims = |file: &str, flags: &[&str]| {
        let (settings, _) = InstallationSettings::parse(file.to_owned(), "berth.yaml").unwrap();
        let objects = super::objects(&args(flags), &settings).unwrap();
        objects
            .iter()
            .any(|object| object["kind"] == "ClusterRole" && object.to_string().contains("resource.k8s.io"))
    };
    for flags in [&[][..], &["--split"], &["--shadow"], &["--extender"]] {
        assert!(on_claims("", flags), "{flags:?}");
        assert!(!on_claims("scheduling: {claims: {enabled: false}}", flags), "{flags:?}");
    }
}

#[test]
fn a_shadow_has_names_of_its_own_and_no_right_to_write() {
    let objects = objects(&args(&["--shadow", "--namespace", "gpu"])).unwrap();
    let title = |object: &Value| {
        format!("{} {}", object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap())
    };
    let names: Vec<_> = objects.iter().map(title).collect();
    let expected = [
        "Namespace gpu",
        "ServiceAccount berth-shadow",
        "ClusterRole berth:shadow",
        "ClusterRoleBinding berth:shadow",
        "ConfigMap berth-shadow",
        "Deployment berth-shadow",
        "Service berth-shadow",
    ];
    assert_eq!(names, expected);
    let rules = of_kind(&objects, "ClusterRole")[0]["rules"].as_array().unwrap();
    let verbs = rules.iter().flat_map(|rule| rule["verbs"].as_array().unwrap());
    assert!(!rules.is_empty() && verbs.clone().count() > 0);
    for verb in verbs {
        assert!(["get", "list", "watch"].contains(&verb.as_str().unwrap()), "{verb}");
    }
    let deployment = of_kind(&objects, "Deployment")[0];
    let pod = &deployment["spec"]["template"];
    assert_eq!(
        pod["spec"]["containers"][0]["args"],
        json!(["serve", "--config", "/etc/berth/berth.yaml", "--shadow"])
    );
    assert_eq!(pod["spec"]["volumes"][0]["configMap"]["name"], "berth-shadow");
    let selector = &of_kind(&objects, "Service")[0]["spec"]["selector"];
    assert_eq!(selector["app.kubernetes.io/name"], pod["metadata"]["labels"]["app.kubernetes.io/name"]);
    let ours = super::objects(&ManifestsArgs::default(), &InstallationSettings::default()).unwrap();
    let service = &of_kind(&ours, "Service")[0]["spec"]["selector"];
    assert_ne!(selector, service, "the Service of an installation does not find the shadow's pods");
}

#[test]
fn a_shadow_is_printed_with_no_flag_that_means_a_webhook() {
    for flags in [
        ["--split", ""],
        ["--cert-manager", ""],
        ["--webhook-url", "https://example.com"],
        ["--agent", "a/b"],
    ] {
        let flags: Vec<_> = flags.into_iter().filter(|flag| !flag.is_empty()).collect();
        let all = [&["manifests", "--shadow"], &flags[..]].concat();
        assert!(Program::try_parse_from(all).is_err(), "{flags:?}");
    }
}

#[test]
fn the_process_that_binds_is_told_to_look_for_moves() {
    let advised = |flags: &[&str]| -> Vec<(String, bool)> {
        let objects = objects(&args(flags)).unwrap();
        let deployments = of_kind(&objects, "Deployment").into_iter();
        let told = |deployment: &Value| {
            let flags = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
            let is_told = flags.as_array().unwrap().contains(&json!("--moves=advise"));
            (deployment["metadata"]["name"].as_str().unwrap().to_owned(), is_told)
        };
        deployments.map(told).collect()
    };
    assert_eq!(advised(&[]), [("berth".to_owned(), false)]);
    assert_eq!(advised(&["--moves", "advise"]), [("berth".to_owned(), true)]);
    assert_eq!(
        advised(&["--moves", "advise", "--split"]),
        [("berth-webhook".to_owned(), false), ("berth-binder".to_owned(), true)]
    );
    for other in ["--shadow", "--extender"] {
        assert!(Program::try_parse_from(["manifests", "--moves", "advise", other]).is_err(), "{other}");
    }
}
