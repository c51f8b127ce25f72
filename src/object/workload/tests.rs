//! What each kind's own examples keep, under which names and where.

use super::*;

fn pods(object: &Value) -> Vec<KeptPod> {
    let workloads = Workloads::default();
    let text = |key: &str| object[key].as_str().unwrap();
    let kind = workloads.of_object(text("apiVersion"), text("kind")).expect("a known kind");
    kind.pods(object).unwrap()
}

fn endings(pod: &KeptPod) -> Vec<String> {
    let Count::Endings(endings) = &pod.count else { panic!("a number of pods") };
    endings.iter().collect()
}

/// Each template's path, and the names of its pods behind the workload's.
fn told(object: &Value) -> Vec<(String, Vec<String>)> {
    let names = |pod: KeptPod| {
        let endings = endings(&pod);
        let part = if pod.part.is_empty() { String::new() } else { format!("-{}", pod.part) };
        (pod.path, endings.iter().map(|ending| format!("{part}{ending}")).collect())
    };
    pods(object).into_iter().map(names).collect()
}

fn expected<const N: usize>(rows: [(&str, &[&str]); N]) -> Vec<(String, Vec<String>)> {
    let row = |(path, names): (&str, &[&str])| {
        (path.to_owned(), names.iter().map(|&name| name.to_owned()).collect())
    };
    rows.map(row).into()
}

fn template() -> Value {
    json!({"spec": {"containers": [{"name": "main"}]}})
}

#[test]
fn every_path_of_the_table_can_be_read_and_counts_by_its_own_wildcards() {
    for kind in Workloads::default().kinds() {
        assert!(!kind.templates.is_empty(), "{}", kind.kind);
        for template in &kind.templates {
            let factors = match &template.count {
                Number::Product(factors) => factors.as_slice(),
                Number::None | Number::EachNode => &[],
            };
            for path in factors.iter().flat_map(Factor::paths) {
                assert!(path.is_within(&template.path), "{}: {path} beside {}", kind.kind, template.path);
            }
            if let GroupPart::Field(path) = &template.part {
                assert!(path.is_within(&template.path), "{}: {path}", kind.kind);
            }
        }
    }
}

#[test]
fn no_two_rows_are_of_one_kind() {
    let workloads = Workloads::default();
    let mut names: Vec<_> = workloads.kinds().map(|kind| (&kind.group, &kind.kind)).collect();
    names.sort();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn a_ray_cluster_keeps_its_head_and_the_pods_of_each_group() {
    let spec = json!({
        "headGroupSpec": {"template": template()},
        "workerGroupSpecs": [
            {"groupName": "gpu", "replicas": 1, "minReplicas": 2, "numOfHosts": 2, "template": template()},
            {"groupName": "cpu", "minReplicas": 0, "template": template()},
        ],
    });
    let workers: &[&str] = &["-gpu-0-0", "-gpu-0-1", "-gpu-1-0", "-gpu-1-1"];
    let cluster = json!({"apiVersion": "ray.io/v1", "kind": "RayCluster", "spec": spec});
    let rows = [
        ("spec.headGroupSpec.template", &["-head"][..]),
        ("spec.workerGroupSpecs[0].template", workers),
        ("spec.workerGroupSpecs[1].template", &[]),
    ];
    assert_eq!(told(&cluster), expected(rows));
    let job = json!({"apiVersion": "ray.io/v1", "kind": "RayJob",
        "spec": {"rayClusterSpec": spec, "submitterPodTemplate": template()}});
    let paths: Vec<_> = told(&job).into_iter().map(|(path, _)| path).collect();
    let below = "spec.rayClusterSpec.";
    let groups = ["headGroupSpec.template", "workerGroupSpecs[0].template", "workerGroupSpecs[1].template"];
    let groups = groups.map(|path| format!("{below}{path}"));
    assert_eq!(paths, [&groups[..], &["spec.submitterPodTemplate".to_owned()]].concat());
}

#[test]
fn a_job_set_makes_each_jobs_pods_for_each_replica() {
    let job = |parallelism: u64, completions: u64| json!({"spec": {"parallelism": parallelism, "completions": completions, "template": template()}});
    let set = json!({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": {"replicatedJobs": [
        {"name": "workers", "replicas": 2, "template": job(2, 8)}, {"name": "driver", "template": job(4, 1)}]}});
    let path = |at: usize| format!("spec.replicatedJobs[{at}].template.spec.template");
    let workers: &[&str] = &["-workers-0-0", "-workers-0-1", "-workers-1-0", "-workers-1-1"];
    assert_eq!(told(&set), expected([(path(0).as_str(), workers), (path(1).as_str(), &["-driver-0-0"])]));
}

#[test]
fn a_leader_worker_set_makes_a_leader_of_the_workers_template_where_it_has_no_other() {
    let mut set = json!({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
        "spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 3, "workerTemplate": template()}}});
    let workers = "spec.leaderWorkerTemplate.workerTemplate";
    let names: &[&str] = &["-0-1", "-0-2", "-1-1", "-1-2"];
    assert_eq!(told(&set), expected([(workers, &["-0", "-1"]), (workers, names)]));
    set["spec"]["leaderWorkerTemplate"]["leaderTemplate"] = template();
    assert_eq!(told(&set)[0].0, "spec.leaderWorkerTemplate.leaderTemplate");
}

#[test]
fn jobs_of_the_training_operator_keep_a_template_for_each_type_of_replica() {
    let specs =
        json!({"Master": {"template": template()}, "Worker": {"replicas": 2, "template": template()}});
    let kinds = [
        ("PyTorchJob", "pytorchReplicaSpecs"),
        ("TFJob", "tfReplicaSpecs"),
        ("XGBoostJob", "xgbReplicaSpecs"),
    ];
    for (kind, key) in kinds {
        let job = json!({"apiVersion": "kubeflow.org/v1", "kind": kind, "spec": {key: specs}});
        let path = |name: &str| format!("spec.{key}.{name}.template");
        let rows = [(path("Master"), &["-master-0"][..]), (path("Worker"), &["-worker-0", "-worker-1"])];
        let rows = rows.each_ref().map(|(path, names)| (path.as_str(), *names));
        assert_eq!(told(&job), expected(rows));
    }
    let job = json!({"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "spec": {"mpiReplicaSpecs": {
        "Launcher": {"template": template()}, "Worker": {"replicas": 2, "template": template()}}}});
    let names: Vec<_> = told(&job).into_iter().flat_map(|(_, names)| names).collect();
    assert_eq!(names, ["-launcher-0", "-worker-0", "-worker-1"]);
}

#[test]
fn a_train_job_asks_for_each_of_its_nodes() {
    let amounts = json!({"limits": {"example.com/gpu": 1}});
    let job = json!({"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
        "spec": {"trainer": {"numNodes": 2, "resourcesPerNode": amounts}}});
    let [pod] = pods(&job).try_into().unwrap();
    assert_eq!(endings(&pod), ["-0", "-1"]);
    assert_eq!(pod.pod["spec"]["containers"][0]["resources"], amounts);
    let field = "spec.containers[0].resources.limits[example.com/gpu]";
    assert_eq!(pod.places.of(field), "spec.trainer.resourcesPerNode.limits[example.com/gpu]");
    let job = json!({"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "spec": {}});
    assert_eq!(pods(&job), []);
}

#[test]
fn a_notebook_and_an_inference_service_keep_a_spec_without_metadata() {
    let notebook =
        json!({"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "spec": {"template": template()}});
    assert_eq!(told(&notebook), expected([("spec.template", &["-0"])]));
    let service = json!({"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "spec": {"predictor": {
        "minReplicas": 2, "annotations": {"a": "b"}, "containers": [{"name": "proxy"}],
        "model": {"modelFormat": {"name": "x"}, "resources": {"limits": {"example.com/gpu": 1}}}}}});
    let [pod] = pods(&service).try_into().unwrap();
    assert_eq!((pod.path.as_str(), pod.part.as_str()), ("spec.predictor", "predictor"));
    assert_eq!(pod.pod["metadata"], json!({"annotations": {"a": "b"}}));
    assert_eq!(pod.pod["spec"]["containers"][1]["resources"]["limits"], json!({"example.com/gpu": 1}));
    let places = [
        ("spec.containers[1].resources.limits", "spec.predictor.model.resources.limits"),
        ("spec.containers[0].name", "spec.predictor.containers[0].name"),
        ("metadata.annotations[a]", "spec.predictor.annotations[a]"),
    ];
    for (field, place) in places {
        assert_eq!(pod.places.of(field), place);
    }
}

#[test]
fn a_suspended_workload_keeps_its_pods_and_makes_none() {
    let job =
        json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"suspend": true, "template": template()}});
    assert_eq!(told(&job), expected([("spec.template", &[])]));
}

#[test]
fn what_can_not_be_read_is_named_with_its_field() {
    let error = |kind: &str, spec: Value| {
        let object = json!({"spec": spec});
        Workloads::default().of_object("", kind).unwrap().pods(&object).unwrap_err().to_string()
    };
    assert_eq!(error("Deployment", json!({})), "spec.template: is missing");
    assert_eq!(error("Deployment", json!({"template": []})), "spec.template: must be a mapping");
    assert_eq!(
        error("JobSet", json!({"replicatedJobs": [{"name": "a"}]})),
        "spec.replicatedJobs[0].template.spec.template: is missing"
    );
    assert_eq!(
        error("Deployment", json!({"replicas": -1, "template": {}})),
        "spec.replicas: must be a whole number that is not negative, not -1"
    );
    assert_eq!(
        error("Deployment", json!({"replicas": 2_147_483_647, "template": {}})),
        "spec.replicas: asks for 2147483647 pods; at most 10000 of a template are counted out"
    );
}

#[test]
fn the_names_of_many_pods_of_many_templates_are_not_written_out_before_they_are_asked_for() {
    let job = |at: usize| json!({"name": format!("j{at}"), "replicas": 10_000, "template": {"spec": {"template": template()}}});
    let jobs: Vec<_> = (0..20_000).map(job).collect();
    let set =
        json!({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": {"replicatedJobs": jobs}});
    let pods = pods(&set);
    let count = |pod: &KeptPod| match &pod.count {
        Count::Endings(endings) => endings.len(),
        Count::EachNode => 0,
    };
    assert_eq!(pods.iter().map(count).sum::<u64>(), 200_000_000);
}

#[test]
fn a_kind_of_the_settings_keeps_templates_or_specs_at_its_paths() {
    let path = |text: &str| Path::parse(text).unwrap();
    let templates =
        [(path("spec.runs[*].pod"), Some(path("spec.runs[*].count"))), (path("spec.driver.template"), None)];
    let kind = WorkloadKind::with_templates("example.com", "Run", "runs", templates);
    let workloads = Workloads::default().and(vec![kind]);
    let kind = workloads.of_object("example.com/v7", "Run").unwrap();
    assert_eq!(workloads.of_resource("example.com", "runs"), Some(kind));
    let object = json!({"spec": {"driver": {"template": template()},
        "runs": [{"count": 2, "pod": {"containers": [{"name": "main"}]}}]}});
    let pods = kind.pods(&object).unwrap();
    let told: Vec<_> = pods.iter().map(|pod| (pod.path.as_str(), pod.part.as_str())).collect();
    assert_eq!(told, [("spec.runs[0].pod", "0"), ("spec.driver.template", "driver")]);
    assert_eq!(endings(&pods[0]), ["-0", "-1"]);
    assert_eq!(pods[0].pod["spec"], pods[1].pod["spec"]);
}
