//! Histories in which something is wrong, each made from one in which all was well: the checker must find it.

use serde_json::{Value, json};

use crate::support::checker::Checker;

/// Recorded by the checker beside two real nodes; both kinds of pods, some that run and two that fit nowhere.
const SOUND: &str = include_str!("sound.jsonl");

struct History(Vec<Value>);

impl History {
    fn sound() -> Self {
        Self(SOUND.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }

    fn replace(&mut self, from: &str, to: &str) {
        let text = serde_json::to_string(&self.0).unwrap();
        assert!(text.contains(from), "no {from} in the history");
        self.0 = serde_json::from_str(&text.replace(from, to)).unwrap();
    }

    /// The events of a pod.
    fn of(&mut self, pod: &str) -> Vec<&mut Value> {
        let is_it = |entry: &&mut Value| entry["object"]["metadata"]["name"] == pod;
        let events: Vec<_> = self.0.iter_mut().filter(is_it).collect();
        assert!(!events.is_empty(), "no {pod} in the history");
        events
    }

    /// The newest object of a pod.
    fn last(&mut self, pod: &str) -> &mut Value {
        self.of(pod).pop().unwrap()
    }

    /// A second pod that was given what this one was.
    fn twin(&mut self, pod: &str, name: &str) {
        let mut twin: Vec<Value> = self.of(pod).into_iter().map(|event| event.clone()).collect();
        for event in &mut twin {
            event["object"]["metadata"]["name"] = name.into();
            event["object"]["metadata"]["uid"] = name.into();
        }
        self.0.extend(twin);
    }

    /// All that is found.
    fn judge(&self, checker: &Checker) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.jsonl");
        let lines: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        std::fs::write(&path, lines.join("\n")).unwrap();
        let report = checker.judge(&path).unwrap();
        let found = [&report["violations"], &report["lost"]].map(|found| found.as_array().unwrap().clone());
        found.concat().iter().map(|found| found.as_str().unwrap().to_owned()).collect::<Vec<_>>().join("\n")
    }
}

/// What is to be found, and what is done to the history.
type Case = (&'static str, fn(&mut History));

const CASES: &[Case] = &[
    ("card GPU-hami-000-2 of hami-000 has 16384 MiB and 19500 are given away", |history| {
        history.twin("pod-00124", "twin");
    }),
    ("card GPU-volcano-000-0 of volcano-000 has 16384 MiB and 20500 are given away", |history| {
        history.twin("pod-00151", "twin");
    }),
    ("card GPU-hami-000-2 of hami-000 has 1 slots and 2 are given away", |history| {
        history.replace(r#"\"count\":10"#, r#"\"count\":1"#);
    }),
    ("card GPU-hami-000-2 of hami-000 has 50 percent and 55 are given away", |history| {
        history.replace(r#"\"devcore\":100"#, r#"\"devcore\":50"#);
    }),
    ("volcano-000 has no card GPU-volcano-000-9, which is given away", |history| {
        history.replace("GPU-volcano-000-3,NVIDIA,", "GPU-volcano-000-9,NVIDIA,");
    }),
    ("pod-00118 was bound to hami-000 and is bound to \"volcano-000\"", |history| {
        history.last("pod-00118")["object"]["spec"]["nodeName"] = "volcano-000".into();
    }),
    ("resident-0010 carries hami.io/vgpu-devices-allocated and is not bound", |history| {
        let record = json!({"hami.io/vgpu-devices-allocated": "GPU-hami-000-3,NVIDIA,9000,10:;"});
        history.last("resident-0010")["object"]["metadata"]["annotations"] = record;
    }),
    ("pod-00118 on hami-000 asked for 9000 MiB of card GPU-hami-000-3 and was given 8000", |history| {
        history.replace("GPU-hami-000-3,NVIDIA,9000,30:", "GPU-hami-000-3,NVIDIA,8000,30:");
    }),
    ("pod-00094 on hami-000 asked for 2 cards in container 0 and was given 1", |history| {
        history.replace("GPU-hami-000-1,NVIDIA,9000,15:", "");
    }),
    ("pod-00118 is gone, and its user did not delete it", |history| {
        history.last("pod-00118")["type"] = "DELETED".into();
    }),
    ("events of kind Pod before this version were not seen", |history| {
        history.0.push(json!({"version": 2000, "type": "GAP", "kind": "Pod"}));
    }),
    ("the history has no end", |history| drop(history.0.pop())),
    ("pod-00124: it is bound to hami-000 and does not run", |history| {
        history.last("pod-00124")["object"]["status"]["phase"] = "Pending".into();
    }),
    ("pod-00124: it is bound to hami-000 and its agent says \"allocating\"", |history| {
        history.last("pod-00124")["object"]["metadata"]["annotations"]["hami.io/bind-phase"] =
            "allocating".into();
    }),
    ("resident-0010: it is neither bound nor told why", |history| {
        history.last("resident-0010")["object"]["status"]["conditions"] = json!([]);
    }),
    ("resident-0010: it is said to be unschedulable because of \"no\"", |history| {
        history.last("resident-0010")["object"]["status"]["conditions"][0]["message"] = "no".into();
    }),
    ("resident-0010: it is said to be unschedulable, and hami-000 has room", |history| {
        history.last("pod-00124")["object"]["status"]["phase"] = "Succeeded".into();
    }),
    ("pod-00118: its user means to delete it and has not", |history| {
        history.last("pod-00118")["object"]["metadata"]["labels"] = json!({"deleted-by-user": "true"});
    }),
];

/// The sound history is found sound, and each of the others is not.
pub(crate) fn all_are_found(checker: &Checker) {
    assert_eq!(History::sound().judge(checker), "");
    for (expected, break_it) in CASES {
        let mut history = History::sound();
        break_it(&mut history);
        let found = history.judge(checker);
        assert!(found.contains(expected), "wanted: {expected}\nfound: {found}");
    }
}
