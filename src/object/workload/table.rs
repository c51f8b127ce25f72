//! The kinds of workloads that are known without a setting: where each keeps its pods, and how many it makes.
//!
//! A row is what the kind's own API says; its source stands beside it. Defaults are those that the API server or the kind's webhook
//! fills in.

/// A kind of workload.
pub(super) struct WorkloadRow {
    pub(super) group: &'static str,
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    /// Fields that keep the workload from making pods while they are true.
    pub(super) suspended: &'static [&'static str],
    pub(super) templates: &'static [Keeps],
}

/// A place in which a workload keeps a pod.
pub(super) struct Keeps {
    pub(super) path: &'static str,
    pub(super) form: FormRow,
    /// What stands between the workload's name and the number of a pod: a word, the path of a field, or the key of the mapping.
    pub(super) part: PartRow,
    pub(super) count: Times,
    pub(super) need: TemplateNeed,
}

/// How a pod is written down.
pub(super) enum FormRow {
    /// `PodTemplateSpec`: metadata and spec.
    Template,
    /// `PodSpec`, with labels and annotations among its fields. Each of these fields, where it is there, is one more container.
    Spec(&'static [&'static str]),
    /// `ResourceRequirements` of its one container; the rest is written elsewhere.
    Resources,
}

/// What names a group of pods.
pub(super) enum PartRow {
    Nothing,
    Word(&'static str),
    Field(&'static str),
    Key,
}

/// How many pods are made, as a product.
pub(super) enum Times {
    /// None: the kind only keeps templates.
    None,
    /// One on each node.
    EachNode,
    Product(&'static [FactorRow]),
}

/// One factor of a number of pods.
pub(super) enum FactorRow {
    /// One, with a number.
    One,
    /// A field, or this where it is absent.
    Field(&'static str, u64),
    /// A field, or this where it is absent, numbered from what another field says, or else from 0.
    From(&'static str, u64, &'static str),
    /// A field, or this where it is absent, less the one that another template makes; numbered from 1.
    Rest(&'static str, u64),
    /// The greater of two fields; absent: 0.
    Greater(&'static str, &'static str),
    /// How many pods the Job with this spec runs at a time: `parallelism`, at most `completions`.
    Job(&'static str),
}

/// Whether a template must be there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TemplateNeed {
    Must,
    May,
    /// Where it is absent, the one at this path is taken.
    Else(&'static str),
}

const fn keeps(path: &'static str, part: PartRow, count: Times) -> Keeps {
    Keeps { path, form: FormRow::Template, part, count, need: TemplateNeed::Must }
}

const fn one(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    templates: &'static [Keeps],
) -> WorkloadRow {
    WorkloadRow { group, kind, plural, suspended: &[], templates }
}

const REPLICAS: Times = Times::Product(&[FactorRow::Field("spec.replicas", 1)]);

/// Kubernetes `pkg/apis/apps/types.go`, `StatefulSetOrdinals`.
const ORDINALS: Times = Times::Product(&[FactorRow::From("spec.replicas", 1, "spec.ordinals.start")]);

/// kserve `pkg/apis/serving/v1beta1/predictor.go`, `PredictorSpec`: the frameworks, each a `Container` with more fields.
const PREDICTORS: &[&str] = &[
    "model",
    "sklearn",
    "xgboost",
    "tensorflow",
    "pytorch",
    "triton",
    "onnx",
    "huggingface",
    "pmml",
    "lightgbm",
    "paddle",
];

/// A job of Kubeflow's training operator v1, whose mapping has this name. Sources: kubeflow/training-operator
/// `pkg/apis/kubeflow.org/v1/{pytorch,tensorflow,xgboost,paddlepaddle,mxnet,jax}_types.go` and `common_types.go` (`ReplicaSpec`).
macro_rules! kubeflow {
    ($kind:literal, $plural:literal, $specs:literal) => {
        WorkloadRow {
            group: "kubeflow.org",
            kind: $kind,
            plural: $plural,
            suspended: &["spec.runPolicy.suspend"],
            templates: &[keeps(
                concat!("spec.", $specs, ".*.template"),
                PartRow::Key,
                Times::Product(&[FactorRow::Field(concat!("spec.", $specs, ".*.replicas"), 1)]),
            )],
        }
    };
}

/// The head and the workers of a Ray cluster whose spec stands at this path. Sources: ray-project/kuberay
/// `ray-operator/apis/ray/v1/{raycluster,rayjob,rayservice}_types.go`; names: `ray-operator/controllers/ray/utils/util.go`.
macro_rules! ray {
    ($spec:literal, $need:expr $(, $more:expr)?) => {
        [
            Keeps {
                need: $need,
                ..keeps(concat!($spec, ".headGroupSpec.template"), PartRow::Word("head"), Times::Product(&[]))
            },
            keeps(
                concat!($spec, ".workerGroupSpecs[*].template"),
                PartRow::Field(concat!($spec, ".workerGroupSpecs[*].groupName")),
                Times::Product(&[
                    FactorRow::Greater(
                        concat!($spec, ".workerGroupSpecs[*].replicas"),
                        concat!($spec, ".workerGroupSpecs[*].minReplicas"),
                    ),
                    FactorRow::Field(concat!($spec, ".workerGroupSpecs[*].numOfHosts"), 1),
                ]),
            ),
            $($more,)?
        ]
    };
}

const RAY_CLUSTER: [Keeps; 2] = ray!("spec", TemplateNeed::Must);
const RAY_SERVICE: [Keeps; 2] = ray!("spec.rayClusterConfig", TemplateNeed::Must);
const RAY_JOB: [Keeps; 3] = ray!("spec.rayClusterSpec", TemplateNeed::May, RAY_SUBMITTER);
const RAY_SUBMITTER: Keeps = Keeps {
    need: TemplateNeed::May,
    ..keeps("spec.submitterPodTemplate", PartRow::Word("submitter"), Times::Product(&[]))
};

/// A training runtime of Kubeflow's trainer v2: the template of a JobSet, which jobs refer to. Source: kubeflow/trainer
/// `pkg/apis/trainer/v1alpha1/trainingruntime_types.go`.
const RUNTIME: &[Keeps] = &[keeps(
    "spec.template.spec.replicatedJobs[*].template.spec.template",
    PartRow::Field("spec.template.spec.replicatedJobs[*].name"),
    Times::None,
)];

/// Every kind. Built-in kinds: Kubernetes `staging/src/k8s.io/api/{core,apps,batch}/v1/types.go`.
pub(super) const ROWS: &[WorkloadRow] = &[
    one("apps", "Deployment", "deployments", &[keeps("spec.template", PartRow::Nothing, REPLICAS)]),
    one("apps", "ReplicaSet", "replicasets", &[keeps("spec.template", PartRow::Nothing, REPLICAS)]),
    one("apps", "StatefulSet", "statefulsets", &[keeps("spec.template", PartRow::Nothing, ORDINALS)]),
    one("apps", "DaemonSet", "daemonsets", &[keeps("spec.template", PartRow::Nothing, Times::EachNode)]),
    one(
        "",
        "ReplicationController",
        "replicationcontrollers",
        &[keeps("spec.template", PartRow::Nothing, REPLICAS)],
    ),
    one("", "PodTemplate", "podtemplates", &[keeps("template", PartRow::Nothing, Times::None)]),
    WorkloadRow {
        suspended: &["spec.suspend"],
        ..one(
            "batch",
            "Job",
            "jobs",
            &[keeps("spec.template", PartRow::Nothing, Times::Product(&[FactorRow::Job("spec")]))],
        )
    },
    WorkloadRow {
        suspended: &["spec.suspend", "spec.jobTemplate.spec.suspend"],
        ..one(
            "batch",
            "CronJob",
            "cronjobs",
            &[keeps(
                "spec.jobTemplate.spec.template",
                PartRow::Nothing,
                Times::Product(&[FactorRow::Job("spec.jobTemplate.spec")]),
            )],
        )
    },
    // volcano-sh/apis `pkg/apis/batch/v1alpha1/job.go`; names: volcano `pkg/controllers/job/helpers/helpers.go`, `MakePodName`.
    one(
        "batch.volcano.sh",
        "Job",
        "jobs",
        &[keeps(
            "spec.tasks[*].template",
            PartRow::Field("spec.tasks[*].name"),
            Times::Product(&[FactorRow::Field("spec.tasks[*].replicas", 0)]),
        )],
    ),
    // kubernetes-sigs/jobset `api/jobset/v1alpha2/jobset_types.go`; names: `pkg/util/placement/placement.go`, `GenPodName`.
    WorkloadRow {
        suspended: &["spec.suspend"],
        ..one(
            "jobset.x-k8s.io",
            "JobSet",
            "jobsets",
            &[keeps(
                "spec.replicatedJobs[*].template.spec.template",
                PartRow::Field("spec.replicatedJobs[*].name"),
                Times::Product(&[
                    FactorRow::Field("spec.replicatedJobs[*].replicas", 1),
                    FactorRow::Job("spec.replicatedJobs[*].template.spec"),
                ]),
            )],
        )
    },
    // kubernetes-sigs/lws `api/leaderworkerset/v1/leaderworkerset_types.go`, names of pods included.
    one(
        "leaderworkerset.x-k8s.io",
        "LeaderWorkerSet",
        "leaderworkersets",
        &[
            Keeps {
                need: TemplateNeed::Else("spec.leaderWorkerTemplate.workerTemplate"),
                ..keeps("spec.leaderWorkerTemplate.leaderTemplate", PartRow::Nothing, REPLICAS)
            },
            keeps(
                "spec.leaderWorkerTemplate.workerTemplate",
                PartRow::Nothing,
                Times::Product(&[
                    FactorRow::Field("spec.replicas", 1),
                    FactorRow::Rest("spec.leaderWorkerTemplate.size", 1),
                ]),
            ),
        ],
    ),
    WorkloadRow { suspended: &["spec.suspend"], ..one("ray.io", "RayCluster", "rayclusters", &RAY_CLUSTER) },
    WorkloadRow { suspended: &["spec.suspend"], ..one("ray.io", "RayJob", "rayjobs", &RAY_JOB) },
    WorkloadRow { suspended: &["spec.suspend"], ..one("ray.io", "RayService", "rayservices", &RAY_SERVICE) },
    kubeflow!("PyTorchJob", "pytorchjobs", "pytorchReplicaSpecs"),
    kubeflow!("TFJob", "tfjobs", "tfReplicaSpecs"),
    kubeflow!("XGBoostJob", "xgboostjobs", "xgbReplicaSpecs"),
    kubeflow!("PaddleJob", "paddlejobs", "paddleReplicaSpecs"),
    kubeflow!("MXJob", "mxjobs", "mxReplicaSpecs"),
    kubeflow!("JAXJob", "jaxjobs", "jaxReplicaSpecs"),
    // kubeflow/mpi-operator `pkg/apis/kubeflow/v2beta1/types.go`; a Worker without `replicas` has none (`default.go`).
    WorkloadRow {
        suspended: &["spec.runPolicy.suspend"],
        ..one(
            "kubeflow.org",
            "MPIJob",
            "mpijobs",
            &[
                keeps(
                    "spec.mpiReplicaSpecs.Launcher.template",
                    PartRow::Word("launcher"),
                    Times::Product(&[FactorRow::Field("spec.mpiReplicaSpecs.Launcher.replicas", 1)]),
                ),
                Keeps {
                    need: TemplateNeed::May,
                    ..keeps(
                        "spec.mpiReplicaSpecs.Worker.template",
                        PartRow::Word("worker"),
                        Times::Product(&[FactorRow::Field("spec.mpiReplicaSpecs.Worker.replicas", 0)]),
                    )
                },
            ],
        )
    },
    // kubeflow/trainer `pkg/apis/trainer/v1alpha1/trainjob_types.go`: all but the resources of a node stands in the runtime.
    WorkloadRow {
        suspended: &["spec.suspend"],
        ..one(
            "trainer.kubeflow.org",
            "TrainJob",
            "trainjobs",
            &[Keeps {
                form: FormRow::Resources,
                need: TemplateNeed::May,
                ..keeps(
                    "spec.trainer.resourcesPerNode",
                    PartRow::Word("node"),
                    Times::Product(&[FactorRow::Field("spec.trainer.numNodes", 1)]),
                )
            }],
        )
    },
    one("trainer.kubeflow.org", "TrainingRuntime", "trainingruntimes", RUNTIME),
    one("trainer.kubeflow.org", "ClusterTrainingRuntime", "clustertrainingruntimes", RUNTIME),
    // kubeflow/kubeflow `components/notebook-controller/api/v1/notebook_types.go`: a template without metadata, one pod.
    one(
        "kubeflow.org",
        "Notebook",
        "notebooks",
        &[keeps("spec.template", PartRow::Nothing, Times::Product(&[FactorRow::One]))],
    ),
    // kserve/kserve `pkg/apis/serving/v1beta1/{predictor,transformer,explainer,component,podspec}.go`; a worker set has
    // `pipelineParallelSize` nodes, the head included.
    one(
        "serving.kserve.io",
        "InferenceService",
        "inferenceservices",
        &[
            Keeps {
                form: FormRow::Spec(PREDICTORS),
                ..keeps(
                    "spec.predictor",
                    PartRow::Word("predictor"),
                    Times::Product(&[FactorRow::Field("spec.predictor.minReplicas", 1)]),
                )
            },
            Keeps {
                form: FormRow::Spec(&[]),
                need: TemplateNeed::May,
                ..keeps(
                    "spec.predictor.workerSpec",
                    PartRow::Word("predictor-worker"),
                    Times::Product(&[
                        FactorRow::Field("spec.predictor.minReplicas", 1),
                        FactorRow::Rest("spec.predictor.workerSpec.pipelineParallelSize", 2),
                    ]),
                )
            },
            Keeps {
                form: FormRow::Spec(&[]),
                need: TemplateNeed::May,
                ..keeps(
                    "spec.transformer",
                    PartRow::Word("transformer"),
                    Times::Product(&[FactorRow::Field("spec.transformer.minReplicas", 1)]),
                )
            },
            Keeps {
                form: FormRow::Spec(&["art"]),
                need: TemplateNeed::May,
                ..keeps(
                    "spec.explainer",
                    PartRow::Word("explainer"),
                    Times::Product(&[FactorRow::Field("spec.explainer.minReplicas", 1)]),
                )
            },
        ],
    ),
];
