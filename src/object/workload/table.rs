//! The kinds of workloads that are known without a setting: where each keeps its pods, and how many it makes.
//!
//! A row is what the kind's own API says; its source stands beside it. Defaults are those that the API server or the kind's webhook
//! fills in.

/// A kind of workload.
pub(super) struct Row {
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
    pub(super) form: Shape,
    /// What stands between the workload's name and the number of a pod: a word, the path of a field, or the key of the mapping.
    pub(super) part: Part,
    pub(super) count: Times,
    pub(super) need: Need,
}

/// How a pod is written down.
pub(super) enum Shape {
    /// `PodTemplateSpec`: metadata and spec.
    Template,
    /// `PodSpec`, with labels and annotations among its fields. Each of these fields, where it is there, is one more container.
    Spec(&'static [&'static str]),
    /// `ResourceRequirements` of its one container; the rest is written elsewhere.
    Resources,
}

/// What names a group of pods.
pub(super) enum Part {
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
    Product(&'static [Factor]),
}

/// One factor of a number of pods.
pub(super) enum Factor {
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
pub(super) enum Need {
    Must,
    May,
    /// Where it is absent, the one at this path is taken.
    Else(&'static str),
}

const fn keeps(path: &'static str, part: Part, count: Times) -> Keeps {
    Keeps { path, form: Shape::Template, part, count, need: Need::Must }
}

const fn one(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    templates: &'static [Keeps],
) -> Row {
    Row { group, kind, plural, suspended: &[], templates }
}

const REPLICAS: Times = Times::Product(&[Factor::Field("spec.replicas", 1)]);

/// Kubernetes `pkg/apis/apps/types.go`, `StatefulSetOrdinals`.
const ORDINALS: Times = Times::Product(&[Factor::From("spec.replicas", 1, "spec.ordinals.start")]);

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
        Row {
            group: "kubeflow.org",
            kind: $kind,
            plural: $plural,
            suspended: &["spec.runPolicy.suspend"],
            templates: &[keeps(
                concat!("spec.", $specs, ".*.template"),
                Part::Key,
                Times::Product(&[Factor::Field(concat!("spec.", $specs, ".*.replicas"), 1)]),
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
                ..keeps(concat!($spec, ".headGroupSpec.template"), Part::Word("head"), Times::Product(&[]))
            },
            keeps(
                concat!($spec, ".workerGroupSpecs[*].template"),
                Part::Field(concat!($spec, ".workerGroupSpecs[*].groupName")),
                Times::Product(&[
                    Factor::Greater(
                        concat!($spec, ".workerGroupSpecs[*].replicas"),
                        concat!($spec, ".workerGroupSpecs[*].minReplicas"),
                    ),
                    Factor::Field(concat!($spec, ".workerGroupSpecs[*].numOfHosts"), 1),
                ]),
            ),
            $($more,)?
        ]
    };
}

const RAY_CLUSTER: [Keeps; 2] = ray!("spec", Need::Must);
const RAY_SERVICE: [Keeps; 2] = ray!("spec.rayClusterConfig", Need::Must);
const RAY_JOB: [Keeps; 3] = ray!("spec.rayClusterSpec", Need::May, RAY_SUBMITTER);
const RAY_SUBMITTER: Keeps = Keeps {
    need: Need::May,
    ..keeps("spec.submitterPodTemplate", Part::Word("submitter"), Times::Product(&[]))
};

/// A training runtime of Kubeflow's trainer v2: the template of a JobSet, which jobs refer to. Source: kubeflow/trainer
/// `pkg/apis/trainer/v1alpha1/trainingruntime_types.go`.
const RUNTIME: &[Keeps] = &[keeps(
    "spec.template.spec.replicatedJobs[*].template.spec.template",
    Part::Field("spec.template.spec.replicatedJobs[*].name"),
    Times::None,
)];

/// Every kind. Built-in kinds: Kubernetes `staging/src/k8s.io/api/{core,apps,batch}/v1/types.go`.
pub(super) const ROWS: &[Row] = &[
    one("apps", "Deployment", "deployments", &[keeps("spec.template", Part::Nothing, REPLICAS)]),
    one("apps", "ReplicaSet", "replicasets", &[keeps("spec.template", Part::Nothing, REPLICAS)]),
    one("apps", "StatefulSet", "statefulsets", &[keeps("spec.template", Part::Nothing, ORDINALS)]),
    one("apps", "DaemonSet", "daemonsets", &[keeps("spec.template", Part::Nothing, Times::EachNode)]),
    one(
        "",
        "ReplicationController",
        "replicationcontrollers",
        &[keeps("spec.template", Part::Nothing, REPLICAS)],
    ),
    one("", "PodTemplate", "podtemplates", &[keeps("template", Part::Nothing, Times::None)]),
    Row {
        suspended: &["spec.suspend"],
        ..one(
            "batch",
            "Job",
            "jobs",
            &[keeps("spec.template", Part::Nothing, Times::Product(&[Factor::Job("spec")]))],
        )
    },
    Row {
        suspended: &["spec.suspend", "spec.jobTemplate.spec.suspend"],
        ..one(
            "batch",
            "CronJob",
            "cronjobs",
            &[keeps(
                "spec.jobTemplate.spec.template",
                Part::Nothing,
                Times::Product(&[Factor::Job("spec.jobTemplate.spec")]),
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
            Part::Field("spec.tasks[*].name"),
            Times::Product(&[Factor::Field("spec.tasks[*].replicas", 0)]),
        )],
    ),
    // kubernetes-sigs/jobset `api/jobset/v1alpha2/jobset_types.go`; names: `pkg/util/placement/placement.go`, `GenPodName`.
    Row {
        suspended: &["spec.suspend"],
        ..one(
            "jobset.x-k8s.io",
            "JobSet",
            "jobsets",
            &[keeps(
                "spec.replicatedJobs[*].template.spec.template",
                Part::Field("spec.replicatedJobs[*].name"),
                Times::Product(&[
                    Factor::Field("spec.replicatedJobs[*].replicas", 1),
                    Factor::Job("spec.replicatedJobs[*].template.spec"),
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
                need: Need::Else("spec.leaderWorkerTemplate.workerTemplate"),
                ..keeps("spec.leaderWorkerTemplate.leaderTemplate", Part::Nothing, REPLICAS)
            },
            keeps(
                "spec.leaderWorkerTemplate.workerTemplate",
                Part::Nothing,
                Times::Product(&[
                    Factor::Field("spec.replicas", 1),
                    Factor::Rest("spec.leaderWorkerTemplate.size", 1),
                ]),
            ),
        ],
    ),
    Row { suspended: &["spec.suspend"], ..one("ray.io", "RayCluster", "rayclusters", &RAY_CLUSTER) },
    Row { suspended: &["spec.suspend"], ..one("ray.io", "RayJob", "rayjobs", &RAY_JOB) },
    Row { suspended: &["spec.suspend"], ..one("ray.io", "RayService", "rayservices", &RAY_SERVICE) },
    kubeflow!("PyTorchJob", "pytorchjobs", "pytorchReplicaSpecs"),
    kubeflow!("TFJob", "tfjobs", "tfReplicaSpecs"),
    kubeflow!("XGBoostJob", "xgboostjobs", "xgbReplicaSpecs"),
    kubeflow!("PaddleJob", "paddlejobs", "paddleReplicaSpecs"),
    kubeflow!("MXJob", "mxjobs", "mxReplicaSpecs"),
    kubeflow!("JAXJob", "jaxjobs", "jaxReplicaSpecs"),
    // kubeflow/mpi-operator `pkg/apis/kubeflow/v2beta1/types.go`; a Worker without `replicas` has none (`default.go`).
    Row {
        suspended: &["spec.runPolicy.suspend"],
        ..one(
            "kubeflow.org",
            "MPIJob",
            "mpijobs",
            &[
                keeps(
                    "spec.mpiReplicaSpecs.Launcher.template",
                    Part::Word("launcher"),
                    Times::Product(&[Factor::Field("spec.mpiReplicaSpecs.Launcher.replicas", 1)]),
                ),
                Keeps {
                    need: Need::May,
                    ..keeps(
                        "spec.mpiReplicaSpecs.Worker.template",
                        Part::Word("worker"),
                        Times::Product(&[Factor::Field("spec.mpiReplicaSpecs.Worker.replicas", 0)]),
                    )
                },
            ],
        )
    },
    // kubeflow/trainer `pkg/apis/trainer/v1alpha1/trainjob_types.go`: all but the resources of a node stands in the runtime.
    Row {
        suspended: &["spec.suspend"],
        ..one(
            "trainer.kubeflow.org",
            "TrainJob",
            "trainjobs",
            &[Keeps {
                form: Shape::Resources,
                need: Need::May,
                ..keeps(
                    "spec.trainer.resourcesPerNode",
                    Part::Word("node"),
                    Times::Product(&[Factor::Field("spec.trainer.numNodes", 1)]),
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
        &[keeps("spec.template", Part::Nothing, Times::Product(&[Factor::One]))],
    ),
    // kserve/kserve `pkg/apis/serving/v1beta1/{predictor,transformer,explainer,component,podspec}.go`; a worker set has
    // `pipelineParallelSize` nodes, the head included.
    one(
        "serving.kserve.io",
        "InferenceService",
        "inferenceservices",
        &[
            Keeps {
                form: Shape::Spec(PREDICTORS),
                ..keeps(
                    "spec.predictor",
                    Part::Word("predictor"),
                    Times::Product(&[Factor::Field("spec.predictor.minReplicas", 1)]),
                )
            },
            Keeps {
                form: Shape::Spec(&[]),
                need: Need::May,
                ..keeps(
                    "spec.predictor.workerSpec",
                    Part::Word("predictor-worker"),
                    Times::Product(&[
                        Factor::Field("spec.predictor.minReplicas", 1),
                        Factor::Rest("spec.predictor.workerSpec.pipelineParallelSize", 2),
                    ]),
                )
            },
            Keeps {
                form: Shape::Spec(&[]),
                need: Need::May,
                ..keeps(
                    "spec.transformer",
                    Part::Word("transformer"),
                    Times::Product(&[Factor::Field("spec.transformer.minReplicas", 1)]),
                )
            },
            Keeps {
                form: Shape::Spec(&["art"]),
                need: Need::May,
                ..keeps(
                    "spec.explainer",
                    Part::Word("explainer"),
                    Times::Product(&[Factor::Field("spec.explainer.minReplicas", 1)]),
                )
            },
        ],
    ),
];
