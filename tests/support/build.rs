//! Finds the programs of a real control plane: ready-made ones that the environment names, else ours, built by Go.
//!
//! It must not start them.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A release of Kubernetes of which `tests/controlplane` is built, in order. Each has a module file of its own.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Release {
    /// 1.34.4, the oldest minor release with `resource.k8s.io/v1`. Its program has no commands that run kube-scheduler's plugins.
    V1_34,
    /// The one against which all tests run: 1.36.3.
    Usual,
    /// 1.37.2.
    V1_37,
}

impl Release {
    /// The one whose API server the tests run against: `BERTH_KUBERNETES` names another than the usual one.
    pub fn of_tests() -> Result<Self, String> {
        let named = std::env::var_os("BERTH_KUBERNETES").unwrap_or_default();
        match named.to_str() {
            Some("" | "1.36") => Ok(Self::Usual),
            Some("1.34") => Ok(Self::V1_34),
            Some("1.37") => Ok(Self::V1_37),
            _ => Err(format!("BERTH_KUBERNETES={}: must be 1.34, 1.36 or 1.37", named.display())),
        }
    }

    /// The number, without the 1 before it.
    pub fn minor(self) -> u32 {
        match self {
            Self::V1_34 => 34,
            Self::Usual => 36,
            Self::V1_37 => 37,
        }
    }

    /// The whole version, as the API server names it.
    fn version(self) -> &'static str {
        match self {
            Self::V1_34 => "v1.34.4",
            Self::Usual => "v1.36.3",
            Self::V1_37 => "v1.37.2",
        }
    }

    /// The folder below `target` that its program is in.
    fn folder(self) -> &'static str {
        match self {
            Self::V1_34 => "controlplane-1.34",
            Self::Usual => "controlplane",
            Self::V1_37 => "controlplane-1.37",
        }
    }

    /// The tags of the sources that are left out or in.
    fn tags(self) -> &'static str {
        match self {
            Self::V1_34 => "servers",
            Self::Usual | Self::V1_37 => "",
        }
    }

    /// The file beside the sources that says of which modules it is built.
    fn module(self) -> &'static str {
        match self {
            Self::V1_34 => "go.1.34.mod",
            Self::Usual => "go.mod",
            Self::V1_37 => "go.1.37.mod",
        }
    }
}

/// How to run etcd, kube-apiserver and kube-scheduler.
#[derive(Clone, Debug)]
pub enum Programs {
    /// Binaries that somebody else installed; they do not end with their standard input.
    Installed { etcd: PathBuf, kube_apiserver: PathBuf },
    /// `tests/controlplane`, with the program's name as its first argument.
    Built(PathBuf),
}

impl Programs {
    /// The programs, or why there are none here.
    pub fn find() -> Result<Self, String> {
        match installed() {
            Some(programs) => Ok(programs),
            None => ours(Release::of_tests()?).map(Programs::Built),
        }
    }

    /// A command that runs one of the programs by its upstream name.
    pub fn command(&self, name: &str) -> Result<Command, String> {
        match (self, name) {
            (Programs::Installed { etcd, .. }, "etcd") => Ok(Command::new(etcd)),
            (Programs::Installed { kube_apiserver, .. }, "kube-apiserver") => {
                Ok(Command::new(kube_apiserver))
            }
            (Programs::Installed { .. }, _) => Err(format!("no {name} among the installed programs")),
            (Programs::Built(program), _) => {
                let mut command = Command::new(program);
                command.arg(name);
                Ok(command)
            }
        }
    }
}

fn installed() -> Option<Programs> {
    let directory = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let one = |variable: &str, name: &str| {
        std::env::var_os(variable)
            .map(PathBuf::from)
            .or_else(|| directory.as_ref().map(|directory| directory.join(name)))
            .filter(|path| path.is_file())
    };
    Some(Programs::Installed {
        etcd: one("TEST_ASSET_ETCD", "etcd")?,
        kube_apiserver: one("TEST_ASSET_KUBE_APISERVER", "kube-apiserver")?,
    })
}

/// `tests/controlplane`, built by Go also where others' programs are installed: only ours has the plugins of kube-scheduler.
pub fn ours(release: Release) -> Result<PathBuf, String> {
    once(("controlplane", release.folder()), "controlplane", |source, program| {
        go_build(source, program, release)
    })
}

/// Prometheus' promtool, built by Go from `tests/prometheus`.
pub fn promtool() -> Result<PathBuf, String> {
    once(("prometheus", "prometheus"), "promtool", |source, program| {
        super::server::say("building promtool from tests/prometheus, which takes minutes the first time");
        // Checks need no service discovery, which is a fifth of its packages.
        let arguments =
            ["build", "-trimpath", "-tags", "remove_all_sd", "-ldflags", "-s -w", "-o"].map(OsString::from);
        let package = "github.com/prometheus/prometheus/cmd/promtool";
        go(source, arguments.into_iter().chain([program.into(), package.into()]))
    })
}

/// Helm's program, built by Go from `tests/clients`.
pub fn helm() -> Result<PathBuf, String> {
    once(("clients", "clients"), "helm", |source, program| {
        super::server::say(
            "building helm and kubectl from tests/clients, which takes minutes the first time",
        );
        let arguments = ["build", "-trimpath", "-ldflags", "-s -w", "-o"].map(OsString::from);
        let folder = program.parent().ok_or("the program is in a folder")?;
        let packages = ["helm.sh/helm/v4/cmd/helm", "."].map(OsString::from);
        // A folder, as the flag has it where several programs are built, ends with a slash.
        go(source, arguments.into_iter().chain([folder.join("").into()]).chain(packages))
    })
}

/// kubectl, which is built together with Helm.
pub fn kubectl() -> Result<PathBuf, String> {
    helm().map(|helm| helm.with_file_name("kubectl"))
}

/// Karpenter's provisioner and disruption controller, built by Go from `tests/karpenter`.
pub fn karpenter() -> Result<PathBuf, String> {
    once(("karpenter", "karpenter"), "karpenter", |source, program| {
        super::server::say("building tests/karpenter, which takes minutes the first time");
        let arguments = ["build", "-trimpath", "-ldflags", "-s -w", "-o"].map(OsString::from);
        go(source, arguments.into_iter().chain([program.into(), ".".into()]))
    })
}

/// Builds at most once for all test binaries that ask at the same time; a build is kept until its sources change.
///
/// The folders are that of the sources below `tests` and that of the program below `target`.
fn once(
    (folder, output): (&str, &str),
    name: &str,
    build: impl FnOnce(&Path, &Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name(output);
    std::fs::create_dir_all(&target).map_err(|error| format!("{}: {error}", target.display()))?;
    let lock = File::create(target.join("lock")).map_err(|error| format!("lock file: {error}"))?;
    lock.lock().map_err(|error| format!("lock file: {error}"))?;
    let program = target.join(name);
    let stamp = target.join("sources");
    let sources = sources(&source)?;
    if program.is_file() && std::fs::read(&stamp).is_ok_and(|built_from| built_from == sources) {
        return Ok(program);
    }
    build(&source, &program)?;
    std::fs::write(&stamp, sources).map_err(|error| format!("{}: {error}", stamp.display()))?;
    Ok(program)
}

fn sources(directory: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error| format!("{}: {error}", directory.display());
    let entries = std::fs::read_dir(directory).map_err(unreadable)?;
    let mut paths: Vec<_> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(unreadable)?;
    paths.retain(|path| {
        path.extension().is_some_and(|name| ["go", "mod", "sum"].iter().any(|of| name == *of))
    });
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        all.extend(std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?);
    }
    Ok(all)
}

fn go_build(source: &Path, program: &Path, release: Release) -> Result<(), String> {
    let version = "k8s.io/component-base/version";
    let (git_version, minor) =
        (format!("gitVersion={}", release.version()), format!("gitMinor={}", release.minor()));
    let values = [
        git_version.as_str(),
        "gitMajor=1",
        minor.as_str(),
        "gitCommit=unknown",
        "gitTreeState=clean",
        "buildDate=1970-01-01T00:00:00Z",
    ];
    let ldflags =
        values.iter().fold("-s -w".to_owned(), |flags, value| format!("{flags} -X {version}.{value}"));
    super::server::say(&format!(
        "building etcd and kube-apiserver {} from tests/controlplane, which takes minutes the first time",
        release.version()
    ));
    let module = format!("-modfile={}", release.module());
    let arguments = ["build", "-trimpath", &module, "-tags", release.tags(), "-ldflags", &ldflags, "-o"]
        .map(OsString::from);
    go(source, arguments.into_iter().chain([program.into(), ".".into()]))
}

fn go(source: &Path, arguments: impl IntoIterator<Item = OsString>) -> Result<(), String> {
    let output = Command::new("go")
        .args(arguments)
        .env("CGO_ENABLED", "0")
        .current_dir(source)
        .output()
        .map_err(|error| format!("go: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("go build: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
}
