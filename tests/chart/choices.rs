//! The choices of an operator, as options of `berth manifests` and as values of the chart.

/// One choice in both forms.
pub(crate) struct Choice {
    pub(crate) namespace: &'static str,
    /// The text of `berth.yaml`.
    pub(crate) settings: Option<&'static str>,
    pub(crate) flags: &'static [&'static str],
    pub(crate) values: &'static [&'static str],
}

const DEFAULT: Choice = Choice {
    namespace: "berth-system",
    settings: None,
    flags: &["--split"],
    values: &["--kube-version", "1.30.0"],
};

const fn settings(text: &'static str) -> Choice {
    Choice { settings: Some(text), ..DEFAULT }
}

/// Names, scope and actions that differ from the built-in ones, further kinds, and a comment that must stay.
const NAMES: &str = "\
# The site's own names.
schedulerName: gpu
adoptSchedulers: [default-scheduler, volcano, batch]
unmanagedPods: deny
protection: deny
scope: opt-out
workloads:
- {apiGroup: example.com, kind: TrainingRun, templates: [{path: spec.template}]}
- {kind: Fleet, plural: fleet, templates: [{path: spec.template}]}
dialects:
  hami:
    resourceCountName: nvidia.com/gpumem
    resourceMemoryName: example.com/memory
    resourceMemoryPercentageName: example.com/percent
    resourceCoreName: example.com/cores
    resourcePriorityName: example.com/priority
    hygon: {resourceCountName: example.com/dcu, resourceMemoryName: example.com/dcumem, resourceCoreName: example.com/dcucores}
";

/// All vendors under the names that HAMi's chart gives them.
const VENDORS: &str = "\
unmanagedPods: allow
protection: warn
scope: opt-in
dialects:
  hami: {cambricon: {}, amd: {}, biren: {}, enable-iluvatar: true, enable-ascend: true}
";

/// The other forms of the same sections.
const RENAMED_VENDORS: &str = r#"
dialects:
  hami:
    nvidia: {resourceCountName: example.com/gpu}
    hygon: {enabled: false}
    cambricon: {enabled: false}
    amd: {resourceCountName: example.com/amd}
    enable-iluvatar: "1"
    iluvatars: [{commonWord: MR-V100, resourceMemoryName: example.com/mr}, {commonWord: XX-1}]
    enable-ascend: "true"
    vnpus:
      hamiVnpuCore: true
      configs:
      - {commonWord: Ascend910C, memoryAllocatable: 65536}
      - {commonWord: Ascend910Q, memoryAllocatable: 65536, superPod: true}
      - {commonWord: Ascend910R, memoryAllocatable: 65536, resourceName: example.com/npu}
"#;

/// Nothing but a zone's window makes pods leave.
const ZONES: &str = "\
scheduling: {gangs: {enabled: false}}
dialects: {volcano: {arguments: {tdm.revocable-zone.rz1: \"1:00-4:00\", deviceshare.VGPUEnable: true}}}
";

/// Vendors that are listed and not served.
const NO_VENDORS: &str = "dialects: {hami: {enabled: false, amd: {}, enable-ascend: true}}\n";
const ONE_LIST: &str =
    "dialects: {hami: {enable-ascend: true, vnpus: [{commonWord: Ascend310P, memoryAllocatable: 21527}]}}\n";
const WHOLE_CARDS: &str =
    "dialects: {koordinator: {wholeCards: true}, hami: {resourceCountName: example.com/gpu, amd: {}}}\n";
const NO_WHOLE_CARDS: &str = "dialects: {koordinator: {wholeCards: true, enabled: false}}\n";
const UNUSED_LIST: &str = "dialects: {hami: {vnpus: [{commonWord: Ascend310P, memoryAllocatable: 21527}]}}\n";

/// Every option, every kind of setting, and the options that change the same objects together.
pub(crate) const CHOICES: &[Choice] = &[
    DEFAULT,
    Choice { flags: &[], values: &["--set", "split=false"], ..DEFAULT },
    Choice { namespace: "gpu", flags: &[], values: &["--set", "split=false"], ..DEFAULT },
    Choice { namespace: "kube-system", ..DEFAULT },
    Choice { flags: &["--replicas", "3"], values: &["--set", "replicas=3,split=false"], ..DEFAULT },
    Choice { flags: &["--replicas", "1"], values: &["--set", "replicas=1,split=false"], ..DEFAULT },
    Choice { flags: &["--replicas", "1", "--split"], values: &["--set", "replicas=1"], ..DEFAULT },
    Choice {
        settings: Some("metrics: {authentication: token}\n"),
        flags: &["--split"],
        values: &["--set", "split=true"],
        ..DEFAULT
    },
    Choice {
        flags: &["--image", "registry.example:5000/gpu/berth:v9"],
        values: &["--set", "image.repository=registry.example:5000/gpu/berth,image.tag=v9,split=false"],
        ..DEFAULT
    },
    Choice { namespace: "gpu", flags: &["--split"], values: &["--set", "split=true"], ..DEFAULT },
    Choice { flags: &["--split", "--moves", "advise"], values: &["--set", "moves=advise"], ..DEFAULT },
    Choice { flags: &["--moves", "advise"], values: &["--set", "moves=advise,split=false"], ..DEFAULT },
    Choice {
        namespace: "gpu",
        flags: &["--cert-manager"],
        values: &["--set", "certManager.enabled=true,split=false"],
        ..DEFAULT
    },
    Choice {
        settings: Some(NAMES),
        flags: &["--cert-manager", "--split", "--replicas", "4"],
        values: &["--set", "certManager.enabled=true,split=true,replicas=4"],
        ..DEFAULT
    },
    Choice {
        flags: &["--webhook-url", "https://127.0.0.1:8443//"],
        values: &["--set", "webhook.url=https://127.0.0.1:8443//,split=false"],
        ..DEFAULT
    },
    Choice {
        flags: &["--agent", "kube-system/hami-device-plugin", "--agent", "volcano-system/a.b"],
        values: &["--set", "agents={kube-system/hami-device-plugin,volcano-system/a.b},split=false"],
        ..DEFAULT
    },
    Choice {
        settings: Some("protection: warn\n"),
        flags: &["--split", "--agent", "kube-system/hami-device-plugin"],
        values: &["--set", "agents={kube-system/hami-device-plugin}"],
        ..DEFAULT
    },
    Choice {
        settings: Some("protection: auto\n"),
        flags: &["--split", "--agent", "kube-system/hami-device-plugin"],
        values: &["--set", "agents={kube-system/hami-device-plugin}"],
        ..DEFAULT
    },
    Choice { namespace: "gpu", flags: &["--shadow"], values: &["--set", "shadow=true"], ..DEFAULT },
    Choice {
        settings: Some(NAMES),
        flags: &["--shadow", "--image", "registry.example/berth:v9"],
        values: &["--set", "shadow=true,replicas=3,image.repository=registry.example/berth,image.tag=v9"],
        ..DEFAULT
    },
    Choice {
        flags: &["--extender", "--replicas", "3"],
        values: &["--set", "extender=true,replicas=3"],
        ..DEFAULT
    },
    Choice {
        namespace: "gpu",
        settings: Some(NAMES),
        flags: &["--extender", "--split", "--cert-manager", "--agent", "kube-system/hami-device-plugin"],
        values: &[
            "--set",
            "extender=true,split=true,certManager.enabled=true,agents={kube-system/hami-device-plugin}",
        ],
    },
    Choice {
        flags: &["--extender", "--webhook-url", "https://127.0.0.1:8443"],
        values: &["--set", "extender=true,webhook.url=https://127.0.0.1:8443"],
        ..DEFAULT
    },
    settings(NAMES),
    settings("scheduling: {preemption: {enabled: false}}\n"),
    settings("scheduling: {gangs: {enabled: false}}\n"),
    settings("scheduling: {claims: {enabled: false}}\n"),
    Choice {
        settings: Some("scheduling: {claims: {enabled: false}}\n"),
        flags: &["--shadow"],
        values: &["--set", "shadow=true"],
        ..DEFAULT
    },
    settings(ZONES),
    settings("scheduling: {gangs: {enabled: false}}\ndialects: {volcano: {enabled: false}}\n"),
    settings("dialects: {koordinator: {enabled: false}}\n"),
    settings(VENDORS),
    settings(RENAMED_VENDORS),
    settings(NO_VENDORS),
    settings(ONE_LIST),
    settings(UNUSED_LIST),
    settings(WHOLE_CARDS),
    settings("dialects: {koordinator: {wholeCards: true}}\n"),
    settings(NO_WHOLE_CARDS),
];

/// Values that only the chart has.
pub(crate) const FOR_PODS: &str = "
image:
  repository: registry.example/berth
  digest: sha256:0000000000000000000000000000000000000000000000000000000000000000
  pullPolicy: Always
imagePullSecrets: [{name: registry}]
podAnnotations: {example.com/team: gpu}
podLabels: {example.com/cost: gpu}
commonLabels: {example.com/owner: platform}
priorityClassName: system-cluster-critical
hostNetwork: true
probes: {liveness: {timeoutSeconds: 7}}
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]
affinity: {nodeAffinity: {}}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}]
resources: {requests: {cpu: 1}}
extraArgs: [--client-ca-file, /etc/client/ca.crt]
extraVolumes: [{name: client, configMap: {name: client}}]
extraVolumeMounts: [{name: client, mountPath: /etc/client}]
";
