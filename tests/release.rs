//! What a release is built and published with: the workflow, the images, and that a reader of SECURITY.md can verify it.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod image;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

const WORKFLOW: &str = ".github/workflows/release.yml";

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap()
}

fn workflow() -> Value {
    serde_saphyr::from_str(&text(WORKFLOW)).unwrap()
}

/// The steps of all jobs.
fn steps(workflow: &Value) -> Vec<&Value> {
    let jobs = workflow["jobs"].as_object().unwrap().values();
    jobs.flat_map(|job| job["steps"].as_array().unwrap()).collect()
}

fn commands(workflow: &Value) -> String {
    steps(workflow).iter().filter_map(|step| step["run"].as_str()).collect::<Vec<_>>().join("\n")
}

/// A tag can be moved to another commit by whoever can write to the action's repository.
#[test]
fn each_action_is_pinned_to_a_commit() {
    let lines = text(WORKFLOW);
    let uses: Vec<_> = lines
        .lines()
        .filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("uses: "))
        .collect();
    assert_eq!(uses.len(), steps(&workflow()).iter().filter(|step| step["uses"].is_string()).count());
    assert!(uses.len() > 3, "{uses:?}");
    for action in uses {
        let (name, version) = action.split_once(" # v").unwrap_or_else(|| panic!("{action}: no version"));
        let (_, commit) = name.split_once('@').unwrap();
        assert!(commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()), "{action}");
        assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{action}");
    }
}

#[test]
fn only_the_job_that_publishes_may_write() {
    let workflow = workflow();
    assert_eq!(workflow["permissions"], serde_json::json!({}));
    for (name, job) in workflow["jobs"].as_object().unwrap() {
        let permissions = job["permissions"].as_object().unwrap();
        let writes = permissions.values().any(|permission| permission == "write");
        assert_eq!(writes, name == "publish", "{name}: {permissions:?}");
    }
    assert_eq!(workflow["jobs"]["publish"]["needs"], serde_json::json!(["check", "build"]));
}

#[test]
fn the_program_of_a_release_is_built_by_the_compiler_and_for_the_base_of_the_image() {
    let dockerfile = text("Dockerfile");
    let from = |text: &str, at: usize| -> String {
        let lines = text.lines().filter_map(|line| line.strip_prefix("FROM "));
        lines.map(|line| line.split(" AS ").next().unwrap().to_owned()).nth(at).unwrap()
    };
    assert_eq!(workflow()["jobs"]["build"]["container"], from(&dockerfile, 0));
    assert_eq!(from(&text("deploy/release/Dockerfile"), 0), from(&dockerfile, 1));
    let compiler = from(&dockerfile, 0).rsplit('/').next().unwrap().to_owned();
    assert!(text("SECURITY.md").contains(&compiler), "SECURITY.md does not name {compiler}");
    for line in ["USER 65532:65532", "ENTRYPOINT [\"/berth\"]", "CMD [\"serve\"]", "EXPOSE 8443"] {
        for file in ["Dockerfile", "deploy/release/Dockerfile"] {
            assert!(text(file).lines().any(|found| found == line), "{file} lacks {line}");
        }
    }
}

#[test]
fn the_scripts_that_the_workflow_runs_are_there_and_can_be_run() {
    use std::os::unix::fs::PermissionsExt as _;
    let workflow = workflow();
    let commands = commands(&workflow);
    let words =
        commands.split_whitespace().filter(|word| word.starts_with("deploy/") || word.starts_with(".ci/"));
    let scripts: Vec<_> = words.filter(|word| !word.contains("helm")).collect();
    assert!(scripts.len() > 3, "{scripts:?}");
    for script in scripts {
        let metadata = fs::metadata(path(script)).unwrap_or_else(|error| panic!("{script}: {error}"));
        assert!(script == ".ci/run" || metadata.permissions().mode() & 0o111 != 0, "{script} can't be run");
    }
    let build = workflow["jobs"]["build"]["steps"].to_string();
    for target in ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"] {
        assert!(build.contains(target) && text("SECURITY.md").contains(target), "{target}");
    }
}

/// The manifest is filled in from the archives, and the build puts into each what the manifest says is there.
#[test]
fn krew_installs_the_archives_of_the_release() {
    let (folder, version) = (tempfile::tempdir().unwrap(), env!("CARGO_PKG_VERSION"));
    let archive = |arch: &str| folder.path().join(format!("berth-{version}-linux-{arch}.tar.gz"));
    let fill = || {
        let mut fill = Command::new(path("deploy/release/krew"));
        fill.arg(folder.path()).arg(version).env("GITHUB_REPOSITORY", "owner/berth").output().unwrap()
    };
    fs::write(archive("amd64"), "of amd64").unwrap();
    assert!(!fill().status.success(), "an archive is missing");
    fs::write(archive("arm64"), "of arm64").unwrap();
    let output = fill();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let written = fs::read_to_string(folder.path().join(format!("berth-{version}-krew.yaml"))).unwrap();
    for blank in ["VERSION", "REPOSITORY", "SHA256"] {
        assert!(
            text("deploy/krew/berth.yaml").contains(blank) && !written.contains(blank),
            "{blank}: {written}"
        );
    }
    let manifest: Value = serde_saphyr::from_str(&written).unwrap();
    let spec = &manifest["spec"];
    assert_eq!(
        (&manifest["metadata"]["name"], &spec["version"]),
        (&"berth".into(), &format!("v{version}").into())
    );
    assert!(spec["shortDescription"].as_str().unwrap().len() <= 50, "krew's listing is as wide");
    // Of the two texts above, by sha256sum.
    let sums = [
        ("amd64", "f35af8cbe10de42ee765196a94f0766dae7502feb682be68018e7d0ea08c96ab"),
        ("arm64", "8948acb1e4c0af16d7fc0431fad1192c71808fc3602d1245fa3248edd975a901"),
    ];
    assert_eq!(spec["platforms"].as_array().unwrap().len(), sums.len());
    for ((arch, sum), platform) in sums.into_iter().zip(spec["platforms"].as_array().unwrap()) {
        assert_eq!(platform["selector"]["matchLabels"], serde_json::json!({"os": "linux", "arch": arch}));
        assert_eq!((&platform["sha256"], &platform["bin"]), (&sum.into(), &"berth".into()));
        let uri = format!(
            "https://github.com/owner/berth/releases/download/v{version}/berth-{version}-linux-{arch}.tar.gz"
        );
        assert_eq!(platform["uri"], uri);
    }
    let build = text("deploy/release/build");
    assert!(
        build.contains("berth LICENSE kubectl_complete-berth |") && build.contains("deploy/release/krew"),
        "{build}"
    );
}

/// The identity that SECURITY.md verifies is that of this workflow at a tag.
#[test]
fn what_is_signed_is_what_the_documentation_verifies() {
    let workflow = workflow();
    let (commands, page) = (commands(&workflow), text("SECURITY.md"));
    for (signs, verifies) in [
        (
            "cosign sign-blob --yes --bundle dist/SHA256SUMS.sigstore.json dist/SHA256SUMS",
            "cosign verify-blob SHA256SUMS --bundle SHA256SUMS.sigstore.json",
        ),
        ("cosign sign --yes", "cosign verify ghcr.io/OWNER/berth:"),
        ("cosign attest --yes --type cyclonedx", "cosign verify-attestation --type cyclonedx"),
    ] {
        assert!(commands.contains(signs), "the workflow lacks {signs}");
        assert!(page.contains(verifies), "SECURITY.md lacks {verifies}");
    }
    assert!(page.contains(&format!("/{WORKFLOW}@refs/tags/v{}", env!("CARGO_PKG_VERSION"))));
    assert_eq!(workflow["on"]["push"]["tags"][0], "v[0-9]+.[0-9]+.[0-9]+*");
    assert!(page.contains(&format!("ghcr.io/OWNER/berth:{}", env!("CARGO_PKG_VERSION"))));
}
