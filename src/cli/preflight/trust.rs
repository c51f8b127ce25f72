//! Which namespaces preflight believes: what runs there, and what is set there, is the work of administrators.
//!
//! Whoever may create workloads in a namespace can make one look like a scheduler or a device plugin. What looks so anywhere else gives
//! its account no right and the settings no key. Nothing that a cluster shows proves who writes to a namespace, neither labels nor the
//! marks of a Helm release nor a webhook that names a Service there: so the administrator names the namespaces.

use std::collections::BTreeSet;

use super::{
    finding::PreflightFinding,
    program::{Program, Project},
    rules,
    shell::quoted,
};

/// Where Kubernetes' own programs run: who writes there can do anything in the cluster already.
pub(super) const KUBE_SYSTEM: &str = "kube-system";

/// The namespaces whose programs and settings are believed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TrustedNamespaces {
    /// Berth's own namespace: what looks like Berth is Berth there.
    berth: String,
    /// Those that the administrator has named.
    named: BTreeSet<String>,
}

impl TrustedNamespaces {
    /// kube-system and these; and Berth's namespace, as far as Berth itself goes.
    pub fn new(berth: impl Into<String>, named: impl IntoIterator<Item = String>) -> Self {
        Self { berth: berth.into(), named: named.into_iter().collect() }
    }

    /// Whether settings and accounts are taken from this namespace.
    pub fn covers(&self, namespace: &str) -> bool {
        namespace == KUBE_SYSTEM || self.named.contains(namespace)
    }

    /// Whether the program is what it looks like. Of NVIDIA's plugin nothing is taken but a warning.
    pub fn believes(&self, program: &Program) -> bool {
        match program.project {
            Project::Hami | Project::Volcano => self.covers(&program.namespace),
            Project::Berth => self.covers(&program.namespace) || program.namespace == self.berth,
            Project::Nvidia => true,
        }
    }

    /// The flags that trust the same namespaces again, each with a blank before it.
    pub fn flags(&self) -> String {
        self.named.iter().flat_map(|name| [" --trust-namespace ".to_owned(), quoted(name)]).collect()
    }
}

/// The order in which programs are asked for their settings: those of kube-system first.
pub fn rank(program: &Program) -> bool {
    program.namespace != KUBE_SYSTEM
}

/// One blocker for each program in a namespace that is not trusted.
pub fn findings(strangers: &[Program]) -> Vec<PreflightFinding> {
    strangers.iter().map(unbelieved).collect()
}

fn unbelieved(program: &Program) -> PreflightFinding {
    let (project, part, namespace) = (program.project.name(), program.part.name(), &program.namespace);
    let flag = match program.project {
        Project::Berth => "--namespace",
        _ => "--trust-namespace",
    };
    let message = format!(
        "looks like the {part} of {project}, in a namespace that is not trusted: its account {namespace}/{} is given no right, and none of its \
         settings is used. If {project} is installed there and administrators alone may create workloads there (`kubectl -n {namespace} get \
         rolebindings`), run preflight with `{flag} {namespace}`; otherwise find out who created it, and delete it",
        program.account
    );
    PreflightFinding::new(&rules::UNTRUSTED_PROGRAM, program.called(), message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn program(namespace: &str, image: &str) -> Program {
        let labels = json!({"app.kubernetes.io/name": "berth"});
        let spec = json!({"containers": [{"image": image, "args": ["serve"]}]});
        let pod = json!({"kind": "Pod", "metadata": {"namespace": namespace, "name": "p", "labels": labels}, "spec": spec});
        Program::read(&pod).unwrap()
    }

    #[test]
    fn a_program_is_believed_in_kube_system_and_where_the_administrator_says_so() {
        let trust = TrustedNamespaces::new("berth-system", ["gpu".to_owned()]);
        let cases = [
            ("projecthami/hami-device-plugin", ["kube-system", "gpu"], ["team-a", "berth-system"]),
            ("vc-scheduler", ["kube-system", "gpu"], ["volcano-system", "berth-system"]),
            ("berth", ["berth-system", "gpu"], ["team-a", "berth"]),
        ];
        for (image, believed, unbelieved) in cases {
            for namespace in believed {
                assert!(trust.believes(&program(namespace, image)), "{image} in {namespace}");
            }
            for namespace in unbelieved {
                assert!(!trust.believes(&program(namespace, image)), "{image} in {namespace}");
            }
        }
        assert!(trust.believes(&program("team-a", "nvcr.io/nvidia/k8s-device-plugin")));
    }

    #[test]
    fn the_finding_names_the_account_and_the_flag() {
        let found = findings(&[program("team-a", "vc-scheduler"), program("team-a", "berth")]);
        assert!(found[0].message.contains("team-a/default is given no right"), "{found:?}");
        assert!(found[0].message.contains("`--trust-namespace team-a`"), "{found:?}");
        assert!(found[1].message.contains("`--namespace team-a`"), "{found:?}");
    }
}
