//! What a release is built and published with: the workflow, the images, and that a reader of SECURITY.md can verify it.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod image;

use std::{
    fs,
    path::{Path, PathBuf},
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
