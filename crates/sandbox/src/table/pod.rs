//! What a pod's row says (kubernetes v1.36 `pkg/printers/internalversion/printers.go`, `printPod`).

use super::{Kind, age, column, or, wide};
use crate::object;
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) const KIND: Kind = Kind {
    columns: &[
        column("Name"),
        column("Ready"),
        column("Status"),
        column("Restarts"),
        column("Age"),
        wide("IP"),
        wide("Node"),
        wide("Nominated Node"),
        wide("Readiness Gates"),
    ],
    cells,
};

fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let containers = Containers::of(pod);
    let field = |pointer: &str| json!(or(object::text(pod, pointer), "<none>"));
    vec![
        json!(object::name(pod)),
        json!(format!("{}/{}", containers.ready, containers.all)),
        json!(status(pod, &containers)),
        json!(containers.restarts(now)),
        json!(age::since(object::text(pod, "/metadata/creationTimestamp"), now)),
        field("/status/podIPs/0/ip"),
        field("/spec/nodeName"),
        field("/status/nominatedNodeName"),
        json!(readiness_gates(pod)),
    ]
}

/// What the containers' statuses come to.
#[derive(Default)]
struct Containers {
    all: usize,
    ready: usize,
    restarts: u64,
    /// When the last of those that were started again had ended.
    last_end: String,
    /// What a container says that is neither running nor silent.
    says: Option<String>,
    runs: Runs,
}

/// Whether a container is running and ready.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Runs {
    #[default]
    None,
    Some,
}

impl Containers {
    fn of(pod: &Value) -> Self {
        let app = object::list(pod, "/spec/containers").len();
        let sidecars = object::list(pod, "/spec/initContainers").iter().filter(|init| is_sidecar(init));
        let mut found = Self { all: app + sidecars.count(), ..Self::default() };
        if found.begin(pod) || is_true(pod, "Initialized") {
            found.restart_count_of_sidecars(pod);
            found.go_on(pod);
        }
        found
    }

    /// Looks at the init containers up to the first that is not done; whether all are.
    fn begin(&mut self, pod: &Value) -> bool {
        for (place, status) in object::list(pod, "/status/initContainerStatuses").iter().enumerate() {
            self.count_restarts(status);
            let ended = status.pointer("/state/terminated");
            let sidecar = init(pod, object::text(status, "/name")).is_some_and(is_sidecar);
            if ended.is_some_and(|ended| number(ended, "exitCode") == 0) {
                continue;
            }
            if sidecar && is_set(status, "started") {
                self.ready += usize::from(is_set(status, "ready"));
                continue;
            }
            let waits_for = object::text(status, "/state/waiting/reason");
            let said = match ended {
                Some(ended) => why_ended(ended),
                None if matches!(waits_for, "" | "PodInitializing") => {
                    format!("{place}/{}", object::list(pod, "/spec/initContainers").len())
                }
                None => waits_for.to_owned(),
            };
            self.says = Some(format!("Init:{said}"));
            return false;
        }
        true
    }

    /// Once app containers run, those that ended before them are no longer counted.
    fn restart_count_of_sidecars(&mut self, pod: &Value) {
        (self.restarts, self.last_end) = (0, String::new());
        for status in object::list(pod, "/status/initContainerStatuses") {
            if init(pod, object::text(status, "/name")).is_some_and(is_sidecar) {
                self.count_restarts(status);
            }
        }
    }

    fn go_on(&mut self, pod: &Value) {
        for status in object::list(pod, "/status/containerStatuses").iter().rev() {
            self.count_restarts(status);
            let waits_for = object::text(status, "/state/waiting/reason");
            if !waits_for.is_empty() {
                self.says = Some(waits_for.to_owned());
            } else if let Some(ended) = status.pointer("/state/terminated") {
                self.says = Some(why_ended(ended));
            } else if is_set(status, "ready") && status.pointer("/state/running").is_some() {
                self.runs = Runs::Some;
                self.ready += 1;
            }
        }
    }

    fn count_restarts(&mut self, status: &Value) {
        self.restarts += number(status, "restartCount").unsigned_abs();
        // Times are written in one form, so that their order is that of the texts.
        let ended = object::text(status, "/lastState/terminated/finishedAt");
        if ended > self.last_end.as_str() {
            ended.clone_into(&mut self.last_end);
        }
    }

    fn restarts(&self, now: Timestamp) -> String {
        match (self.restarts, self.last_end.as_str()) {
            (0, _) | (_, "") => self.restarts.to_string(),
            (restarts, end) => format!("{restarts} ({} ago)", age::since(end, now)),
        }
    }
}

fn status(pod: &Value, containers: &Containers) -> String {
    let phase = object::text(pod, "/status/phase");
    let reason = object::text(pod, "/status/reason");
    let deleted = object::is_deleting(pod);
    if deleted && reason == "NodeLost" {
        return "Unknown".to_owned();
    }
    if deleted && !matches!(phase, "Succeeded" | "Failed") {
        return "Terminating".to_owned();
    }
    match containers.says.as_deref() {
        Some("Completed") if containers.runs == Runs::Some => {
            if is_true(pod, "Ready") {
                "Running".to_owned()
            } else {
                "NotReady".to_owned()
            }
        }
        Some(said) => said.to_owned(),
        None if is_gated(pod) => "SchedulingGated".to_owned(),
        None => or(reason, phase).to_owned(),
    }
}

fn why_ended(ended: &Value) -> String {
    match (object::text(ended, "/reason"), number(ended, "signal")) {
        ("", 0) => format!("ExitCode:{}", number(ended, "exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn readiness_gates(pod: &Value) -> String {
    let gates = object::list(pod, "/spec/readinessGates");
    let open = gates.iter().filter(|gate| is_true(pod, object::text(gate, "/conditionType"))).count();
    if gates.is_empty() { "<none>".to_owned() } else { format!("{open}/{}", gates.len()) }
}

fn condition<'a>(pod: &'a Value, kind: &str) -> Option<&'a Value> {
    object::list(pod, "/status/conditions").iter().find(|found| object::text(found, "/type") == kind)
}

fn is_true(pod: &Value, kind: &str) -> bool {
    condition(pod, kind).is_some_and(|found| object::text(found, "/status") == "True")
}

fn is_gated(pod: &Value) -> bool {
    condition(pod, "PodScheduled").is_some_and(|found| object::text(found, "/reason") == "SchedulingGated")
}

fn init<'a>(pod: &'a Value, name: &str) -> Option<&'a Value> {
    object::list(pod, "/spec/initContainers").iter().find(|init| object::text(init, "/name") == name)
}

fn is_sidecar(init: &Value) -> bool {
    object::text(init, "/restartPolicy") == "Always"
}

fn is_set(status: &Value, field: &str) -> bool {
    status.get(field).and_then(Value::as_bool).unwrap_or_default()
}

fn number(of: &Value, field: &str) -> i64 {
    of.get(field).and_then(Value::as_i64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::cells;
    use jiff::Timestamp;
    use serde_json::{Value, json};

    fn pod(status: &Value) -> Value {
        let containers = json!([{ "name": "a" }, { "name": "b" }]);
        let inits = json!([{ "name": "i" }, { "name": "s", "restartPolicy": "Always" }]);
        json!({ "metadata": { "name": "p" }, "status": status,
            "spec": { "containers": containers, "initContainers": inits } })
    }

    /// Ready, status and restarts.
    fn shown(pod: &Value) -> [String; 3] {
        let now = Timestamp::constant(60, 0);
        let cells = cells(pod, now);
        [1, 2, 3].map(|place| cells[place].as_str().unwrap().to_owned())
    }

    #[test]
    fn readiness_status_and_restarts_are_those_that_kubectl_shows() {
        let running = json!({ "name": "a", "ready": true, "state": { "running": {} } });
        let ended = |name: &str, ended: Value| json!({ "name": name, "state": { "terminated": ended } });
        let completed = ended("i", json!({ "exitCode": 0, "reason": "Completed" }));
        let sidecar = json!({ "name": "s", "started": true, "ready": true, "restartCount": 2 });
        let again = json!({ "name": "b", "restartCount": 3, "state": { "waiting": { "reason": "CrashLoopBackOff" } },
            "lastState": { "terminated": { "finishedAt": "1970-01-01T00:00:30Z" } } });
        let gated = json!([{ "type": "PodScheduled", "status": "False", "reason": "SchedulingGated" }]);
        let ready = json!([{ "type": "Ready", "status": "True" }]);
        let cases = [
            (json!({ "phase": "Pending" }), ["0/3", "Pending", "0"]),
            (json!({ "phase": "Pending", "conditions": gated }), ["0/3", "SchedulingGated", "0"]),
            (json!({ "phase": "Failed", "reason": "Evicted" }), ["0/3", "Evicted", "0"]),
            (
                json!({ "phase": "Pending", "initContainerStatuses": [{ "name": "i", "state": { "waiting": {} } }] }),
                ["0/3", "Init:0/2", "0"],
            ),
            (
                json!({ "phase": "Pending", "initContainerStatuses": [ended("i", json!({ "exitCode": 3 }))] }),
                ["0/3", "Init:ExitCode:3", "0"],
            ),
            (
                json!({ "phase": "Running", "initContainerStatuses": [completed, sidecar],
                    "containerStatuses": [running, again] }),
                ["2/3", "CrashLoopBackOff", "5 (30s ago)"],
            ),
            (
                json!({ "phase": "Running", "containerStatuses": [completed, running] }),
                ["1/3", "NotReady", "0"],
            ),
            (
                json!({ "phase": "Running", "containerStatuses": [completed, running], "conditions": ready }),
                ["1/3", "Running", "0"],
            ),
            (
                json!({ "phase": "Failed", "containerStatuses": [ended("a", json!({ "exitCode": 137, "signal": 9 }))] }),
                ["0/3", "Signal:9", "0"],
            ),
        ];
        for (status, want) in cases {
            assert_eq!(shown(&pod(&status)), want, "{status}");
        }
    }

    #[test]
    fn a_pod_that_is_being_deleted_says_so_until_it_has_ended() {
        for (phase, want) in [("Running", "Terminating"), ("Succeeded", "Succeeded")] {
            let mut pod = pod(&json!({ "phase": phase }));
            pod["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
            assert_eq!(shown(&pod)[1], want);
        }
    }

    #[test]
    fn readiness_gates_are_counted_by_their_conditions() {
        let mut pod = pod(&json!({ "conditions": [{ "type": "x/a", "status": "True" }] }));
        pod["spec"]["readinessGates"] = json!([{ "conditionType": "x/a" }, { "conditionType": "x/b" }]);
        assert_eq!(cells(&pod, Timestamp::UNIX_EPOCH)[5..], ["<none>", "<none>", "<none>", "1/2"]);
    }
}
