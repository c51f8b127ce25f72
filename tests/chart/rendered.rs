//! What `berth manifests`, Helm and kubectl print, as objects.
//!
//! It must not know what is right: a test states that.

use std::{
    collections::BTreeMap,
    process::{Command, Output},
};

use serde_json::Value;

use crate::support::{build, controlplane::absent};

/// Objects by kind, namespace and name.
pub(crate) type Objects = BTreeMap<String, Value>;

/// How a program ended, and what it printed.
pub(crate) struct Outcome {
    pub(crate) succeeded: bool,
    pub(crate) printed: String,
    pub(crate) errors: String,
}

impl Outcome {
    fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { succeeded: output.status.success(), printed: text(output.stdout), errors: text(output.stderr) }
    }

    /// The objects that were printed as YAML documents.
    pub(crate) fn objects(&self) -> Objects {
        assert!(self.succeeded, "{}", self.errors);
        let documents: Vec<Value> = serde_saphyr::from_multiple(&self.printed).unwrap();
        by_name(documents.into_iter().filter(|document| !document.is_null()))
    }
}

fn by_name(objects: impl IntoIterator<Item = Value>) -> Objects {
    let mut all = Objects::new();
    for object in objects {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        let name =
            format!("{} {}/{}", text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]));
        assert!(all.insert(name.clone(), object).is_none(), "{name} is printed twice");
    }
    all
}

/// What `berth manifests` prints with these flags.
pub(crate) fn berth(flags: &[&str]) -> Objects {
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    let command = command.args(["manifests", "--output", "json"]).args(flags).env_remove("BERTH_CONFIG");
    let outcome = Outcome::of(command.output().unwrap());
    assert!(outcome.succeeded, "{flags:?}: {}", outcome.errors);
    let mut list: Value = serde_json::from_str(&outcome.printed).unwrap();
    let Value::Array(items) = list["items"].take() else { panic!("a List has items") };
    by_name(items)
}

/// Runs Helm at the root of the repository; without Go, a line that the test did not run.
pub(crate) fn helm(arguments: &[&str]) -> Option<Outcome> {
    let program = build::helm().map_err(|reason| absent("helm", &reason)).ok()?;
    // Helm keeps what it remembers of registries in the home of the user.
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(program);
    for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(variable, home.path());
    }
    let command = command.env("KUBECONFIG", "none").current_dir(super::root()).args(arguments);
    Some(Outcome::of(command.output().unwrap()))
}

/// What kubectl makes of a folder with a `kustomization.yaml`; without Go, a line that the test did not run.
pub(crate) fn kustomize(folder: &str) -> Option<Outcome> {
    let program = build::kubectl().map_err(|reason| absent("kubectl", &reason)).ok()?;
    let mut command = Command::new(program);
    Some(Outcome::of(command.current_dir(super::root()).args(["kustomize", folder]).output().unwrap()))
}
