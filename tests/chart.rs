//! The Helm chart and the kustomize base render the objects that `berth manifests` prints with the same choices.
//!
//! Both are rendered by the programs that users run, which Go builds from `tests/clients`.
#![cfg(feature = "sandbox")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod choices;
mod names;
mod production;
mod rendered;

use std::{fs, path::Path};

use serde_json::Value;

use choices::{CHOICES, Choice};
use rendered::{Objects, Outcome, berth, helm, kustomize};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(root().join(path)).unwrap()).unwrap()
}

/// The lines that say in which objects the two differ; none where they are equal.
fn differences(expected: &Objects, found: &Objects) -> Vec<String> {
    let names = expected.keys().chain(found.keys()).collect::<std::collections::BTreeSet<_>>();
    let differs = |name: &&&String| expected.get(**name) != found.get(**name);
    let line = |name: &String| {
        let text = |objects: &Objects| objects.get(name).map_or("absent".to_owned(), Value::to_string);
        format!("{name}\n  berth manifests: {}\n  rendered: {}", text(expected), text(found))
    };
    names.iter().filter(differs).map(|name| line(name)).collect()
}

/// The Namespace is left out: Helm makes it, with `--create-namespace`.
#[test]
fn the_chart_renders_what_berth_manifests_prints() {
    let mut faults = Vec::new();
    for Choice { namespace, settings, flags, values } in CHOICES {
        let folder = tempfile::tempdir().unwrap();
        let config = settings.map(|text| {
            let file = folder.path().join("berth.yaml");
            fs::write(&file, text).unwrap();
            file.display().to_string()
        });
        let mut flags = [&["--namespace", namespace], *flags].concat();
        flags.extend(config.iter().flat_map(|file| ["--config", file]));
        let file = config.as_ref().map(|file| format!("config={file}"));
        let mut values = [&["--namespace", namespace], *values].concat();
        values.extend(file.iter().flat_map(|file| ["--set-file", file]));
        let Some(outcome) = helm(&[&["template", "berth", "deploy/helm/berth"], &values[..]].concat()) else {
            return;
        };
        let mut expected = berth(&flags);
        expected.retain(|name, _| !name.starts_with("Namespace "));
        let fewest = if flags.contains(&"--shadow") { 5 } else { 25 };
        assert!(expected.len() > fewest, "{flags:?}");
        let different = differences(&expected, &outcome.objects());
        faults.extend(different.iter().map(|difference| format!("{flags:?}: {difference}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_kustomize_base_renders_what_berth_manifests_prints() {
    let Some(outcome) = kustomize("deploy/kustomize/base") else { return };
    let different = differences(&berth(&[]), &outcome.objects());
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn helm_finds_nothing_to_warn_of_in_the_chart() {
    let Some(Outcome { succeeded, printed, errors }) =
        helm(&["lint", "--strict", "--kube-version", "1.30.0", "deploy/helm/berth"])
    else {
        return;
    };
    assert!(succeeded, "{printed}\n{errors}");
}

/// A packaged chart holds files and no links, and renders the same.
#[test]
fn a_package_of_the_chart_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().display().to_string();
    let Some(outcome) = helm(&["package", "deploy/helm/berth", "--destination", &to]) else { return };
    assert!(outcome.succeeded, "{}", outcome.errors);
    let package = folder.path().join(concat!("berth-", env!("CARGO_PKG_VERSION"), ".tgz"));
    let render = |chart: &str| helm(&["template", "berth", chart, "--namespace", "gpu"]).unwrap().objects();
    assert_eq!(render(&package.display().to_string()), render("deploy/helm/berth"));
}

#[test]
fn values_that_mean_nothing_are_refused() {
    let wrong = [
        ("replica=3", "replica"),
        ("image.name=berth", "name"),
        ("replicas=0", "replicas"),
        ("webhook.url=http://10.0.0.5", "url"),
        ("webhook.url=https://user@example.com", "url"),
        ("agents={hami-device-plugin}", "agents"),
        ("agents={Kube/name}", "agents"),
        ("agents={a/b,a/b}", "agents"),
        ("image.pullPolicy=Sometimes", "pullPolicy"),
        ("image=null", "missing property 'image'"),
        ("image.repository=null", "missing property 'repository'"),
        ("replicas=null", "missing property 'replicas'"),
        ("config=null", "missing property 'config'"),
        ("config.scope=opt-out", "want string"),
        ("webhook.url=https://10.0.0.5,certManager.enabled=true", "not"),
        ("webhook.overrides.mutate\\.berth\\.de.timeoutSeconds=1", "mutate.berth.de"),
        ("webhook.overrides.mutate\\.berth\\.dev.timeoutSeconds=31", "timeoutSeconds"),
        ("webhook.overrides.mutate\\.berth\\.dev.failurePolicy=Perhaps", "failurePolicy"),
        ("certManager.issuerRef.kind=ClusterIssuer", "name"),
        ("monitoring.runbookUrl=runbooks", "runbookUrl"),
        ("monitoring.alerts.enabled=true", "alerts"),
        ("shadow=true,extender=true", "extender"),
        ("shadow=true,agents={a/b}", "agents"),
        ("shadow=true,webhook.url=https://10.0.0.5", "url"),
        ("shadow=true,certManager.enabled=true", "enabled"),
        ("shadow=yes", "shadow"),
        ("moves=carry-out", "moves"),
        ("shadow=true,moves=advise", "moves"),
        ("extender=true,moves=advise", "moves"),
        ("extender=null", "missing property 'extender'"),
        ("config=unmanagedPods: perhaps", "unmanagedPods: must be"),
        ("config=protection: none", "protection: must be"),
        ("config=scope: all", "scope: must be"),
        ("config=- a", "is not the text of a berth.yaml"),
    ];
    for (value, named) in wrong {
        let arguments = ["template", "berth", "deploy/helm/berth", "--set", value];
        let Some(Outcome { succeeded, errors, .. }) = helm(&arguments) else { return };
        assert!(!succeeded, "{value}");
        assert!(errors.contains(named), "{value}: {errors}");
    }
}

#[test]
fn a_cluster_that_is_too_old_is_refused() {
    let at = |version: &str| {
        let arguments = ["template", "berth", "deploy/helm/berth", "--kube-version", version];
        helm(&arguments).map(|outcome| (outcome.succeeded, outcome.errors))
    };
    let Some((succeeded, errors)) = at("1.29.9") else { return };
    assert!(!succeeded && errors.contains("incompatible with Kubernetes v1.29.9"), "{errors}");
    for version in ["1.30.0", "v1.30.4-gke.100", "v1.36.3+k3s1"] {
        let (succeeded, errors) = at(version).unwrap();
        assert!(succeeded, "{version}: {errors}");
    }
}

/// What only the chart offers: the values go to the pods of each Deployment, beside what the manifests have.
#[test]
fn the_values_for_pods_reach_each_deployment() {
    let folder = tempfile::tempdir().unwrap();
    let values = folder.path().join("values.yaml");
    fs::write(&values, choices::FOR_PODS).unwrap();
    let values = values.display().to_string();
    let arguments = ["template", "berth", "deploy/helm/berth", "--set", "split=true", "--values", &values];
    let Some(outcome) = helm(&arguments) else { return };
    let objects = outcome.objects();
    for (name, object) in &objects {
        assert_eq!(object["metadata"]["labels"]["example.com/owner"], "platform", "{name}");
    }
    let deployments: Vec<_> = objects.values().filter(|object| object["kind"] == "Deployment").collect();
    assert_eq!(deployments.len(), 2);
    let expected: Value = serde_saphyr::from_str(choices::FOR_PODS).unwrap();
    for deployment in deployments {
        let template = &deployment["spec"]["template"];
        let (pod, container) = (&template["spec"], &template["spec"]["containers"][0]);
        assert_eq!(template["metadata"]["annotations"], expected["podAnnotations"]);
        let labels = &template["metadata"]["labels"];
        assert_eq!(
            (&labels["example.com/cost"], &labels["example.com/owner"]),
            (&"gpu".into(), &"platform".into())
        );
        assert_eq!(labels["app.kubernetes.io/name"], "berth", "what selectors look for stays");
        assert_eq!(pod["priorityClassName"], expected["priorityClassName"]);
        assert_eq!(
            (&pod["hostNetwork"], &pod["dnsPolicy"]),
            (&true.into(), &"ClusterFirstWithHostNet".into())
        );
        let probe = &container["livenessProbe"];
        assert_eq!(
            (&probe["timeoutSeconds"], &probe["periodSeconds"]),
            (&7.into(), &10.into()),
            "the rest stays"
        );
        for key in
            ["imagePullSecrets", "nodeSelector", "tolerations", "affinity", "topologySpreadConstraints"]
        {
            assert_eq!(pod[key], expected[key], "{key}");
        }
        assert_eq!(container["resources"], expected["resources"]);
        assert_eq!(container["imagePullPolicy"], "Always");
        let digest = expected["image"]["digest"].as_str().unwrap();
        assert_eq!(container["image"], format!("registry.example/berth@{digest}"));
        let ends_with = |list: &Value, key: &str| {
            let (list, added) = (list.as_array().unwrap(), expected[key].as_array().unwrap());
            assert!(list.len() > added.len() && list.ends_with(added), "{key}: {list:?}");
        };
        ends_with(&container["args"], "extraArgs");
        ends_with(&container["volumeMounts"], "extraVolumeMounts");
        ends_with(&pod["volumes"], "extraVolumes");
    }
}

#[test]
fn the_chart_has_the_version_of_the_program() {
    let chart = yaml("deploy/helm/berth/Chart.yaml");
    for key in ["version", "appVersion"] {
        assert_eq!(chart[key], env!("CARGO_PKG_VERSION"), "{key}");
    }
}

/// Every value is in the schema, and every one that is in the schema is in the file that users read.
#[test]
fn the_schema_describes_each_value() {
    let schema: Value = serde_json::from_str(
        &fs::read_to_string(root().join("deploy/helm/berth/values.schema.json")).unwrap(),
    )
    .unwrap();
    let keys =
        |value: &Value| value.as_object().unwrap().keys().cloned().collect::<std::collections::BTreeSet<_>>();
    let values = yaml("deploy/helm/berth/values.yaml");
    let mut described = keys(&schema["properties"]);
    assert!(described.remove("global"), "Helm adds it to the values of a chart in a chart");
    assert_eq!(described, keys(&values));
    let mut sections = 0;
    for (section, described) in schema["properties"].as_object().unwrap() {
        if let Some(properties) = described.get("properties") {
            sections += 1;
            assert_eq!(keys(properties), keys(&values[section]), "{section}");
        }
    }
    assert!(sections > 6, "{sections}");
    let page = fs::read_to_string(root().join("docs/helm.md")).unwrap();
    for key in described {
        assert!(page.contains(&format!("`{key}")), "docs/helm.md lacks {key}");
    }
}
