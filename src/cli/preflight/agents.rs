//! Which schedulers and device plugins run, under which accounts, and what the policies would refuse them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::{
    examination::Examination,
    finding::{PreflightFinding, called},
    program::{Part, Program, Project},
    release::Release,
    rules,
    seen::{Seen, text},
};

/// The policy bindings that `protection` of `berth.yaml` sets.
const PROTECTION: [&str; 2] = ["berth-assignments.berth.dev", "berth-nodes.berth.dev"];

/// An account that writes assignments, locks or lists of cards.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct AgentAccount {
    /// `NAMESPACE/SERVICEACCOUNT`, as `berth manifests --agent` takes it.
    pub account: String,
    /// `device-plugin` or `scheduler`.
    pub role: &'static str,
    /// Whose program it is.
    pub project: &'static str,
    /// The workload.
    pub workload: String,
    /// Whether it has the verb `write` on `assignments.berth.dev`; absent: unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<bool>,
}

/// The accounts that need the right, by account, each once for each role.
pub fn agents(seen: &Seen) -> Vec<AgentAccount> {
    let writes = |program: &&Program| matches!(program.project, Project::Hami | Project::Volcano);
    let agent = |program: &Program| {
        let account = format!("{}/{}", program.namespace, program.account);
        AgentAccount {
            bound: seen.access.get(&account).copied(),
            account,
            role: program.part.name(),
            project: program.project.name(),
            workload: program.called(),
        }
    };
    let mut agents: Vec<_> = seen.programs.iter().filter(writes).map(agent).collect();
    agents.sort_by(|one, other| (&one.account, one.role).cmp(&(&other.account, other.role)));
    agents
}

/// What runs, and what of it lacks the right.
pub fn findings(examination: &Examination<'_>) -> Vec<PreflightFinding> {
    let seen = examination.seen;
    let mut findings: Vec<_> = seen.programs.iter().map(|program| found(program, examination)).collect();
    let denying = denying(seen);
    for agent in agents(seen).into_iter().filter(|agent| agent.bound == Some(false)) {
        findings.push(unbound(&agent, &denying));
    }
    findings.extend(writers(seen));
    findings.extend(extenders(seen));
    findings
}

fn found(program: &Program, examination: &Examination<'_>) -> PreflightFinding {
    let project = program.project.name();
    let account = format!("{}/{}", program.namespace, program.account);
    let names = program.scheduler_names().join(", ");
    match (program.project, program.part) {
        (Project::Berth, _) => PreflightFinding::new(
            &rules::BERTH_INSTALLED,
            program.called(),
            "Berth runs here; the commands change its settings",
        ),
        (Project::Nvidia, _) => PreflightFinding::new(
            &rules::PLAIN_DEVICE_PLUGIN,
            program.called(),
            "gives out whole cards of nvidia.com/gpu and registers none on its nodes: Berth places no share there; keep share pods and this \
             plugin on different nodes",
        ),
        (_, Part::Scheduler) if program.scheduler_names().contains(&examination.config.scheduler_name) => {
            PreflightFinding::new(
                &rules::SCHEDULER_NAME_TAKEN,
                program.called(),
                format!(
                    "{project}'s scheduler serves pods that name {names}: set `schedulerName` of berth.yaml to a name of its own"
                ),
            )
        }
        (_, Part::Scheduler) => PreflightFinding::new(
            &rules::SCHEDULER_FOUND,
            program.called(),
            format!(
                "{project}'s scheduler serves pods that name {names}; it writes as {account}{}{}",
                kept_by(program),
                dark(program.project, examination)
            ),
        ),
        (_, Part::DevicePlugin) => PreflightFinding::new(
            &rules::DEVICE_PLUGIN_FOUND,
            program.called(),
            format!(
                "{project}'s device plugin registers cards and allocates them; it writes as {account} and stays"
            ),
        ),
    }
}

/// Which release it belongs to, for whoever keeps it.
fn kept_by(program: &Program) -> String {
    let release = program.release.as_ref();
    release.map_or_else(String::new, |Release { name, namespace, chart }| {
        let chart = if chart.is_empty() { String::new() } else { format!(", chart {chart}") };
        format!("; Helm keeps it as release {namespace}/{name}{chart}")
    })
}

/// What ends with the scheduler that people may look at.
fn dark(project: Project, examination: &Examination<'_>) -> &'static str {
    if project == Project::Hami && !examination.config.metrics.hami_names {
        "; its metrics end with it: `metrics.hamiNames: true` exports them under the same names for dashboards and alerts"
    } else {
        ""
    }
}

/// The protection policies that are installed and deny.
fn denying(seen: &Seen) -> BTreeSet<&str> {
    let denies = |binding: &&Value| {
        let actions = binding.pointer("/spec/validationActions").and_then(Value::as_array);
        let name = text(binding, "/spec/policyName");
        PROTECTION.contains(&name) && actions.into_iter().flatten().any(|action| action == "Deny")
    };
    seen.policy_bindings.iter().filter(denies).map(|binding| text(binding, "/spec/policyName")).collect()
}

fn unbound(agent: &AgentAccount, denying: &BTreeSet<&str>) -> PreflightFinding {
    let AgentAccount { account, role, workload, .. } = agent;
    let object = format!("ServiceAccount {account}");
    let lacks = format!("the {role} of {workload} does not have the verb `write` on assignments.berth.dev");
    if denying.is_empty() {
        let policies = PROTECTION.join(" and ");
        let message = format!(
            "{lacks}: {policies} would warn of each of its writes, and refuse them with `protection: deny`"
        );
        PreflightFinding::new(&rules::AGENT_NOT_BOUND, object, message)
    } else {
        let policies: Vec<_> = denying.iter().copied().collect();
        PreflightFinding::new(
            &rules::AGENT_DENIED,
            object,
            format!("{lacks}: {} refuses its writes", policies.join(" and ")),
        )
    }
}

/// By field manager, on how many nodes it wrote; a warning where no plugin was found that could have.
fn writers(seen: &Seen) -> Vec<PreflightFinding> {
    let mut nodes: BTreeMap<&str, (BTreeSet<&str>, BTreeSet<&str>)> = BTreeMap::new();
    for writer in &seen.writers {
        let (on, keys) = nodes.entry(&writer.manager).or_default();
        on.insert(&writer.node);
        keys.extend(writer.keys.iter().map(String::as_str));
    }
    let writes = |program: &Program| matches!(program.project, Project::Hami | Project::Volcano);
    let known = seen.programs.iter().any(|program| program.part == Part::DevicePlugin && writes(program));
    let finding = |(manager, (on, keys)): (&str, (BTreeSet<&str>, BTreeSet<&str>))| {
        let keys: Vec<_> = keys.into_iter().collect();
        let message = format!("last wrote {} on {} node(s)", keys.join(", "), on.len());
        let object = format!("field manager {manager}");
        if known {
            return PreflightFinding::new(&rules::NODE_WRITER, object, message);
        }
        let more = "no workload of a device plugin was found: find its ServiceAccount and add `--agent NAMESPACE/SERVICEACCOUNT`";
        PreflightFinding::new(&rules::UNKNOWN_WRITER, object, format!("{message}; {more}"))
    };
    nodes.into_iter().map(finding).collect()
}

/// KubeSchedulerConfigurations that call an extender.
fn extenders(seen: &Seen) -> Vec<PreflightFinding> {
    let mut findings = Vec::new();
    for map in &seen.config_maps {
        for (key, document) in &map.data {
            let Ok(document) = serde_saphyr::from_str::<Value>(document) else { continue };
            let is_one = matches!(text(&document, "/kind"), "KubeSchedulerConfiguration" | "Policy");
            let extenders = document.get("extenders").and_then(Value::as_array).filter(|_| is_one);
            for extender in extenders.into_iter().flatten() {
                let managed = extender.get("managedResources").and_then(Value::as_array).map_or(0, Vec::len);
                let message = format!(
                    "{key}: calls the extender {} for {managed} resource(s)",
                    text(extender, "/urlPrefix")
                );
                findings.push(PreflightFinding::new(
                    &rules::EXTENDER_FOUND,
                    called("ConfigMap", &map.namespace, &map.name),
                    message,
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{cli::preflight::trust::TrustedNamespaces, config::Config};

    /// Nothing yet of a cluster in which these namespaces are trusted.
    fn seen() -> Seen {
        let trust = TrustedNamespaces::new("berth-system", ["gpu", "v", "n"].map(str::to_owned));
        Seen { trust, ..Seen::default() }
    }

    fn plugin(image: &str) -> Value {
        let spec = json!({"serviceAccountName": "plugin", "containers": [{"image": image}]});
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"namespace": "gpu", "name": "d"},
            "spec": {"template": {"spec": spec}}})
    }

    fn scheduler(name: &str) -> Value {
        let container = json!({"image": "volcanosh/vc-scheduler", "args": ["--scheduler-name", name]});
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "v", "name": "s"},
            "spec": {"template": {"spec": {"containers": [container]}}}})
    }

    fn found(seen: &Seen) -> Vec<(&'static str, String)> {
        let config = Config::default();
        let examination = Examination::new(seen, &config, "berth-system", jiff::Timestamp::UNIX_EPOCH);
        findings(&examination).into_iter().map(|finding| (finding.rule, finding.object)).collect()
    }

    fn names(seen: &Seen) -> Vec<&'static str> {
        found(seen).into_iter().map(|(rule, _)| rule).collect()
    }

    #[test]
    fn an_account_without_the_right_is_warned_of_until_the_policies_deny() {
        let mut seen = seen();
        seen.take(plugin("projecthami/hami-device-plugin"));
        assert_eq!(names(&seen), ["device-plugin-found"], "unknown is not no");
        seen.access.insert("gpu/plugin".to_owned(), true);
        assert_eq!(names(&seen), ["device-plugin-found"]);
        seen.access.insert("gpu/plugin".to_owned(), false);
        assert_eq!(found(&seen)[1], ("agent-not-bound", "ServiceAccount gpu/plugin".to_owned()));
        let binding = |actions: Value| {
            json!({"kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "b"},
                "spec": {"policyName": "berth-nodes.berth.dev", "validationActions": actions}})
        };
        seen.take(binding(json!(["Warn", "Audit"])));
        assert_eq!(names(&seen)[1], "agent-not-bound");
        seen.take(binding(json!(["Deny"])));
        assert_eq!(names(&seen)[1], "agent-denied");
    }

    #[test]
    fn a_workload_and_its_pods_are_one_agent() {
        let mut seen = seen();
        let template = plugin("projecthami/hami-device-plugin")["spec"]["template"].take();
        let pod = |name: &str| json!({"kind": "Pod", "metadata": {"namespace": "gpu", "name": name}, "spec": template["spec"]});
        seen.take(pod("d-1"));
        seen.take(plugin("projecthami/hami-device-plugin"));
        seen.take(pod("d-2"));
        let agents = agents(&seen);
        assert_eq!((agents.len(), agents[0].workload.as_str()), (1, "DaemonSet gpu/d"));
    }

    #[test]
    fn a_writer_without_a_workload_is_a_warning() {
        let mut seen = seen();
        let fields = json!({"f:metadata": {"f:annotations": {"f:hami.io/node-nvidia-register": {}}}});
        seen.take(json!({"kind": "Node", "metadata": {"name": "n", "managedFields": [{"manager": "m", "fieldsV1": fields}]}}));
        assert_eq!(found(&seen), [("unknown-writer", "field manager m".to_owned())]);
        seen.take(plugin("projecthami/hami-device-plugin"));
        assert_eq!(names(&seen), ["device-plugin-found", "node-writer"]);
    }

    #[test]
    fn a_scheduler_under_berths_name_blocks_and_a_plain_plugin_is_named() {
        let mut seen = seen();
        seen.take(scheduler("berth"));
        seen.take(plugin("nvcr.io/nvidia/k8s-device-plugin:v1"));
        assert_eq!(names(&seen), ["scheduler-name-taken", "plain-device-plugin"]);
        assert_eq!(agents(&seen).len(), 1, "the plain plugin writes nothing");
    }

    #[test]
    fn an_extender_is_read_from_its_configuration_alone() {
        let mut seen = seen();
        let map = |name: &str, text: &str| json!({"kind": "ConfigMap", "metadata": {"namespace": "n", "name": name}, "data": {"config.yaml": text}});
        seen.take(map(
            "scheduler",
            "kind: KubeSchedulerConfiguration\nextenders: [{urlPrefix: \"http://a\"}]\n",
        ));
        seen.take(map("other", "kind: Other\nextenders: [{urlPrefix: \"http://a\"}]\n"));
        seen.take(map("rubbish", "{["));
        assert_eq!(found(&seen), [("extender-found", "ConfigMap n/scheduler".to_owned())]);
    }

    #[test]
    fn what_looks_like_a_plugin_elsewhere_is_no_agent_and_hides_no_unknown_writer() {
        let mut seen = Seen::default();
        let fields = json!({"f:metadata": {"f:annotations": {"f:hami.io/node-nvidia-register": {}}}});
        seen.take(json!({"kind": "Node", "metadata": {"name": "n", "managedFields": [{"manager": "m", "fieldsV1": fields}]}}));
        seen.take(plugin("projecthami/hami-device-plugin"));
        seen.take(scheduler("berth"));
        let map = json!({"kind": "ConfigMap", "metadata": {"namespace": "v", "name": "m"},
            "data": {"c": "kind: KubeSchedulerConfiguration\nextenders: [{urlPrefix: \"http://a\"}]\n"}});
        seen.take(map);
        assert_eq!(found(&seen), [("unknown-writer", "field manager m".to_owned())]);
        assert!(agents(&seen).is_empty());
        assert_eq!(seen.strangers.len(), 2);
    }
}
